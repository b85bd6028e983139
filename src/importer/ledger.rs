//! stub
use super::source::SourceStatus;
use crate::error::Result;
use crate::import::Tool;
use crate::wire::ImportedSession;
use std::path::Path;
pub(crate) struct SourceRow {
    pub(crate) tool: Tool,
    pub(crate) source: String,
    pub(crate) natives: Vec<String>,
    pub(crate) targets: Vec<String>,
    pub(crate) status: SourceStatus,
    pub(crate) len: u64,
    pub(crate) hash: [u8; 32],
    pub(crate) origin: String,
    pub(crate) held: bool,
    pub(crate) version: u32,
}
pub(crate) struct SessionRow {
    pub(crate) session: String,
    pub(crate) tool: Tool,
    pub(crate) trashed: bool,
    pub(crate) row: Option<ImportedSession>,
}
impl SessionRow {
    pub(crate) fn of(tool: Tool, row: &ImportedSession) -> Self {
        Self {
            session: row.session_id.clone(),
            tool,
            trashed: false,
            row: Some(row.clone()),
        }
    }
}
pub(crate) struct Ledger;
impl Ledger {
    pub(crate) fn open(_: &Path, _: bool) -> Result<Self> {
        Ok(Self)
    }
    pub(crate) fn source(&self, _: Tool, _: &str) -> Option<&SourceRow> {
        None
    }
    pub(crate) fn target(&self, _: Tool, _: &str) -> Option<(&str, usize)> {
        None
    }
    pub(crate) fn session(&self, _: &str) -> Option<&SessionRow> {
        None
    }
    pub(crate) fn note(&mut self, _: Vec<SourceRow>, _: Vec<SessionRow>) -> Result<()> {
        Ok(())
    }
    pub(crate) fn forget(&mut self, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
    pub(crate) fn note_trashed(&mut self, _: &str, _: bool) -> Result<()> {
        Ok(())
    }
}
