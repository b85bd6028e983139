//! The request for an import.

use super::limits::Limits;
use super::redaction::MakeRedact;
use crate::tool::Tool;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use treelined_core::tags::GitPlace;
use treelined_core::timestamp::Millis;
use treelined_files::cancel::Cancel;
use treelined_files::store::Store;

/// The options of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportRequest {
    /// `None` for every tool.
    pub from: Option<Tool>,
    /// `None` for the tools' default places.
    pub paths: Vec<PathBuf>,
    pub cwd: Option<String>,
    /// Unix milliseconds.
    pub since: Option<Millis>,
    pub is_dry_run: bool,
    pub split: bool,
    pub is_final: bool,
    /// What one source may become.
    pub limits: Limits,
    /// Whether the tool says that the turn has ended: a mark at the end of a message counts sooner.
    pub has_ended: bool,
    /// Where in git conversations are now, by the tool's ids of them.
    pub git: BTreeMap<String, GitPlace>,
    /// Whether secrets are replaced from now on; `None` as it was before.
    pub redact: Option<bool>,
    /// A session that is written anew, or a deleted one that is imported again.
    pub again: Option<String>,
}

/// The inputs of a run.
pub struct Import<'a> {
    pub store: &'a Store,
    pub session_dir: &'a Path,
    pub request: &'a ImportRequest,
    /// The beginning, in Unix milliseconds.
    pub now: Millis,
    pub cancel: &'a Cancel,
    /// Receives the bytes read since its last call, and the increase of the total.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    pub redact: MakeRedact<'a>,
}
