//! stub
use super::source::{Medium, Source, SourceFailure, SourceStatus};
use crate::error::Result;
use crate::import::Tool;
use crate::import::records::Layout;
use std::path::{Path, PathBuf};
pub(crate) struct Request {
    pub(crate) from: Option<Tool>,
    pub(crate) paths: Vec<PathBuf>,
}
pub(crate) struct Discovered {
    pub(crate) sources: Vec<Source>,
    pub(crate) failures: Vec<SourceFailure>,
}
pub(crate) fn discover(request: &Request, _session_dir: &Path) -> Result<Discovered> {
    let mut sources = Vec::new();
    let tool = request.from.unwrap_or(Tool::ClaudeCode);
    let mut stack = request.paths.clone();
    while let Some(path) = stack.pop() {
        if path.is_dir() {
            for e in std::fs::read_dir(&path).unwrap() {
                stack.push(e.unwrap().path());
            }
            continue;
        }
        let name = path.to_string_lossy().into_owned();
        if name.ends_with(".db") {
            let extraction = super::extraction(tool).unwrap();
            for part in extraction.parts(&path).unwrap() {
                sources.push(Source {
                    tool,
                    path: path.clone(),
                    part: Some(part.native_id),
                    status: part.status,
                    medium: Medium::Extracted(extraction),
                    side_files: Vec::new(),
                });
            }
            continue;
        }
        let medium = if name.ends_with(".zst") {
            Medium::Compressed
        } else if name.ends_with(".jsonl") {
            Medium::Plain(Layout::Lines)
        } else {
            continue;
        };
        let status = crate::os::file::status_of(&std::fs::File::open(&path).unwrap()).unwrap();
        sources.push(Source {
            tool,
            path,
            part: None,
            status: SourceStatus::of_file(status),
            medium,
            side_files: Vec::new(),
        });
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Discovered {
        sources,
        failures: Vec::new(),
    })
}
