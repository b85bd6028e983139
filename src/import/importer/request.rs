//! The request for an import, and its inputs.

use super::limits::Limits;
use super::redaction::MakeRedact;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use treelined_core::agent::Tool;
use treelined_core::tags::GitPlace;
use treelined_core::timestamp::Millis;
use treelined_files::cancel::Cancel;
use treelined_files::store::Store;

/// The options of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportRequest {
    /// The tool whose conversations are imported. `None`: of every tool.
    pub from: Option<Tool>,
    /// The paths to search. If empty, the default locations of the tools are searched.
    pub paths: Vec<PathBuf>,
    pub cwd: Option<String>,
    /// Only sessions with activity since this time, in Unix milliseconds.
    pub since: Option<Millis>,
    pub is_dry_run: bool,
    pub split: bool,
    pub is_final: bool,
    /// The limits on one source.
    pub limits: Limits,
    /// Whether the tool has said that the turn has ended. Marks at the end of messages then count sooner.
    pub has_ended: bool,
    /// The positions in git that a hook has seen, by native id.
    pub git: BTreeMap<String, GitPlace>,
    /// Whether secrets are replaced from now on. `None`: the setting does not change.
    pub redact: Option<bool>,
    /// A session that is written anew, or a deleted session that is imported again.
    pub again: Option<String>,
}

/// All inputs of an import.
pub struct Import<'a> {
    pub store: &'a Store,
    pub session_dir: &'a Path,
    pub request: &'a ImportRequest,
    /// The time at which the import begins, in Unix milliseconds.
    pub now: Millis,
    pub cancel: &'a Cancel,
    /// Gets the number of bytes that were read since its last call, and the increase of the total.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    pub redact: MakeRedact<'a>,
}
