//! Parts of a daemon that the program chooses.

use std::sync::Arc;
use treelined_core::context::handed::PathMessage;
use treelined_core::error::Result;
use treelined_core::id::Source;
use treelined_core::stats::Prices;
use treelined_core::timestamp::Millis;
use treelined_files::cancel::Cancel;
use treelined_files::log::upstream::SharedLog;
use treelined_files::store::Store;
use treelined_wire::{
    ContinueSessionParams, ContinueSessionResult, GetUsageResult, ImportSessionsParams, UsageBy,
};

/// Parts of a daemon that the program chooses. Without one, its requests fail.
#[derive(Default)]
pub struct Parts {
    /// Imports the conversations of other tools.
    pub importer: Option<Box<dyn Importer>>,
    /// Hands conversations over to other agents.
    pub handoff: Option<Box<dyn Handoff>>,
    /// Counts what all sessions have used. Without it no price is known either.
    pub accounts: Option<Box<dyn Accounts>>,
    /// The log that sessions have on several machines.
    pub shared_log: Option<Arc<dyn SharedLog>>,
    /// Whether the program can publish what a replica gets while there is no log. If not, replicas are read only.
    pub publishes_later: bool,
}

/// Imports the conversations of other tools (protocol.md §3.17).
pub trait Importer: Send + Sync {
    /// Imports, and returns the result of `import_sessions` as JSON. Fails with `importBusy` during another import, with
    /// `invalidParams` for a path that is missing or inside the session directory, and with `cancelled`.
    fn import(&self, run: &ImportRun<'_>) -> Result<Vec<u8>>;
}

/// One import.
pub struct ImportRun<'a> {
    pub params: &'a ImportSessionsParams,
    /// `since` of the params.
    pub since: Option<Millis>,
    pub store: &'a Store,
    /// The beginning.
    pub now: Millis,
    pub cancel: &'a Cancel,
    /// Receives the bytes read since its last call, and the increase of the total.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// Hands conversations over to other agents (protocol.md §3.18).
pub trait Handoff: Send + Sync {
    /// Makes a new session of an agent, without its files. Fails with `invalidParams`, `contextTooLarge` and `pathDenied`.
    fn prepare(&self, run: HandoffRun<'_>) -> Result<PreparedHandoff>;

    /// The tokens of what [`Self::prepare`] hands over of a path, estimated.
    fn tokens(&self, params: &ContinueSessionParams, path: &[PathMessage]) -> u64;
}

/// A conversation to be handed over.
pub struct HandoffRun<'a> {
    pub params: &'a ContinueSessionParams,
    /// The most tokens; 0 takes any number.
    pub limit: u64,
    pub session_id: &'a str,
    /// The working directory of the session.
    pub cwd: &'a str,
    pub name: Option<&'a str>,
    /// The path as an agent sees it, the first message first.
    pub path: Vec<PathMessage>,
    /// The text that stands for what was before the path.
    pub summary: Option<String>,
    /// The summary of the branch that is left.
    pub learned: Option<String>,
    pub store: &'a Store,
    pub source: &'a dyn Source,
}

/// A new session of an agent, without its files.
pub struct PreparedHandoff {
    /// Its durability is set by the caller.
    pub result: ContinueSessionResult,
    /// `data.continuation` of its record, an object of raw JSON.
    pub record: Vec<u8>,
    /// Makes the files.
    pub place: Box<dyn FnOnce() -> Result<()> + Send>,
}

/// Knows prices, and counts what all sessions have used (usage.md).
pub trait Accounts: Prices {
    /// Counts. Fails with `invalidParams` if there is too much to count, and with `cancelled`.
    fn usage(&self, run: &UsageRun<'_>) -> Result<GetUsageResult>;
}

/// One count.
pub struct UsageRun<'a> {
    pub by: UsageBy,
    /// Only sessions of this directory and of those below it.
    pub cwd: Option<&'a str>,
    /// Only answers given at this time or later.
    pub since: Option<Millis>,
    /// The most rows.
    pub limit: usize,
    pub store: &'a Store,
    pub cancel: &'a Cancel,
}
