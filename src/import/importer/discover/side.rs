//! The files that belong to a source.

use crate::importer::source::facts::{SideFile, SideKind};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use treelined_core::agent::Tool;

/// The number of folders that are searched upwards, from `chats/<session>` up to `.gemini`.
const LEVELS: usize = 5;

/// Whether a file is not a conversation itself, but belongs to a conversation of the tool.
pub(super) fn is_side_file(tool: Tool, path: &Path) -> bool {
    tool == Tool::ClaudeCode && (is_spawn_file(path) || is_tool_result(path))
}

fn is_spawn_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b"agent-") && name.ends_with(b".meta.json")
}

fn is_tool_result(path: &Path) -> bool {
    let folder = path.parent().and_then(Path::file_name);
    folder == Some(OsStr::new("tool-results"))
}

/// The file beside `agent-<id>.jsonl` that names the call which spawned this subagent.
pub(super) fn spawn_file(path: &Path) -> Option<PathBuf> {
    let spawn = path.with_extension("meta.json");
    (is_spawn_file(&spawn) && spawn.is_file()).then_some(spawn)
}

/// The side files that were found, by their sources.
pub(super) struct SideFiles {
    tool: Tool,
    by_source: HashMap<PathBuf, Vec<SideFile>>,
    /// The folder above all sources of the search.
    folder: PathBuf,
    /// The side files that belong to many sources, by the folder where the search for them began.
    above: HashMap<PathBuf, Vec<SideFile>>,
}

impl SideFiles {
    /// Groups the side files among `files`. `folder` is above all sources of the search.
    pub(super) fn of(tool: Tool, files: Vec<PathBuf>, folder: &Path) -> Self {
        let mut by_source: HashMap<PathBuf, Vec<SideFile>> = HashMap::new();
        for path in files {
            let found = match is_spawn_file(&path) {
                true => Some((
                    SideKind::Spawn,
                    path.with_extension("").with_extension("jsonl"),
                )),
                // A file `<session>/tool-results/<name>` belongs to `<session>.jsonl`.
                false => {
                    let session = path.parent().and_then(Path::parent);
                    session.map(|session| (SideKind::ToolResult, with_ending(session)))
                }
            };
            if let Some((kind, source)) = found {
                by_source
                    .entry(source)
                    .or_default()
                    .push(SideFile { kind, path });
            }
        }
        for files in by_source.values_mut() {
            files.sort_by(|a, b| a.path.cmp(&b.path));
        }
        Self {
            tool,
            by_source,
            folder: folder.to_owned(),
            above: HashMap::new(),
        }
    }

    pub(super) fn of_source(&mut self, source: &Path) -> Vec<SideFile> {
        let mut files = self.by_source.get(source).cloned().unwrap_or_default();
        let has_above = [
            Tool::Codex,
            Tool::Gemini,
            Tool::CopilotCli,
            Tool::VscodeChat,
        ];
        if !has_above.contains(&self.tool) {
            return files;
        }
        let from = match (self.tool, source.parent()) {
            // These tools have a separate folder for each project or session.
            (Tool::Gemini | Tool::CopilotCli | Tool::VscodeChat, Some(parent)) => parent,
            _ => &self.folder,
        };
        let tool = self.tool;
        let above = self.above.entry(from.to_owned());
        files.extend_from_slice(above.or_insert_with_key(|from| above_of(tool, from)));
        files
    }
}

/// The path `<session>.jsonl` for the folder `<session>`, whose name may have dots.
fn with_ending(folder: &Path) -> PathBuf {
    let mut path = folder.as_os_str().to_owned();
    path.push(".jsonl");
    path.into()
}

/// The files in a folder, or above it, that apply to all sources below that folder.
fn above_of(tool: Tool, folder: &Path) -> Vec<SideFile> {
    let nearest = |name: &str| {
        let above = folder
            .ancestors()
            .take(LEVELS)
            .map(|above| above.join(name));
        above.into_iter().find(|path| path.is_file())
    };
    match tool {
        Tool::Codex => {
            let is_home = |above: &&Path| {
                above.join("sessions").is_dir() || above.join("session_index.jsonl").is_file()
            };
            let home = folder.ancestors().find(is_home);
            let names = home.map(|home| home.join("session_index.jsonl"));
            let names = names.filter(|path| path.is_file());
            let names = names.map(|path| SideFile {
                kind: SideKind::Names,
                path,
            });
            names.into_iter().collect()
        }
        Tool::Gemini => {
            let files = [
                (SideKind::ProjectRoot, ".project_root"),
                (SideKind::Projects, "projects.json"),
            ];
            let found = files.map(|(kind, name)| {
                Some(SideFile {
                    kind,
                    path: nearest(name)?,
                })
            });
            found.into_iter().flatten().collect()
        }
        Tool::CopilotCli => beside(folder, SideKind::Workspace, "workspace.yaml"),
        // The file is in the folder of the workspace, above `chatSessions`.
        Tool::VscodeChat => match folder.parent() {
            Some(above) => beside(above, SideKind::Folder, "workspace.json"),
            None => Vec::new(),
        },
        Tool::ClaudeCode
        | Tool::Opencode
        | Tool::Goose
        | Tool::Pi
        | Tool::QwenCode
        | Tool::Cline
        | Tool::RooCode
        | Tool::KiloCode
        | Tool::ChatGpt
        | Tool::ClaudeAi => Vec::new(),
    }
}

/// The side file of this name in a folder, if it is there.
fn beside(folder: &Path, kind: SideKind, name: &str) -> Vec<SideFile> {
    let path = folder.join(name);
    let file = path.is_file().then_some(SideFile { kind, path });
    file.into_iter().collect()
}
