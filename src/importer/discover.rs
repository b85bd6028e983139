//! stub
use super::source::{Source, SourceFailure};
use crate::error::Result;
use crate::import::Tool;
use std::path::{Path, PathBuf};
pub(crate) struct Request {
    pub(crate) from: Option<Tool>,
    pub(crate) paths: Vec<PathBuf>,
}
pub(crate) struct Discovered {
    pub(crate) sources: Vec<Source>,
    pub(crate) failures: Vec<SourceFailure>,
}
pub(crate) fn discover(_request: &Request, _session_dir: &Path) -> Result<Discovered> {
    Ok(Discovered {
        sources: Vec::new(),
        failures: Vec::new(),
    })
}
