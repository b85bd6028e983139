//! The parts of a daemon that the program chooses.

use std::sync::Arc;
use treelined_core::author::Author;
use treelined_core::context::handed::PathMessage;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source;
use treelined_core::stats::{NoPrices, Prices};
use treelined_core::timestamp::Millis;
use treelined_files::cancel::Cancel;
use treelined_files::log::upstream::SharedLog;
use treelined_files::store::Store;
use treelined_wire::{
    ContinueSessionParams, ContinueSessionResult, GetUsageResult, ImportSessionsParams, UsageBy,
};

/// The parts of a daemon that the program chooses. If a part is missing, the requests that need it fail.
#[derive(Default)]
pub struct Parts {
    /// Imports the conversations of other tools.
    pub importer: Option<Box<dyn Importer>>,
    /// Hands conversations over to other agents.
    pub handoff: Option<Box<dyn Handoff>>,
    /// Counts the usage of all sessions, and knows prices. Without this part, no price is known.
    pub accounts: Option<Box<dyn Accounts>>,
    /// The stream of the team, which other machines share.
    pub shared_log: Option<Arc<dyn SharedLog>>,
    /// Whether the program can publish the new entries of a replica later, if it has no stream of the team now. If not,
    /// replicas are read-only.
    pub publishes_later: bool,
    /// The writer that new entries of the team's sessions name; `None` if entries name none.
    pub author: Option<Author>,
    /// Whether entries of all other sessions name their writer too.
    pub signs_all: bool,
}

impl Parts {
    /// The importer of conversations. Fails in a program without an importer.
    pub(crate) fn importer(&self) -> Result<&dyn Importer> {
        let importer = self.importer.as_deref();
        importer.ok_or_else(|| Error::new(Kind::ImportFailed, "this program imports nothing"))
    }

    /// The part that hands conversations over. Fails in a program without this part.
    pub(crate) fn handoff(&self) -> Result<&dyn Handoff> {
        let handoff = self.handoff.as_deref();
        handoff.ok_or_else(|| Error::new(Kind::PathDenied, "this program hands nothing over"))
    }

    /// The part that counts the usage of sessions. Fails in a program without this part.
    pub(crate) fn accounts(&self) -> Result<&dyn Accounts> {
        let accounts = self.accounts.as_deref();
        accounts.ok_or_else(|| Error::new(Kind::StorageIo, "this program counts no usage"))
    }

    /// The prices of models.
    pub(crate) fn prices(&self) -> &dyn Prices {
        match self.accounts.as_deref() {
            Some(accounts) => accounts,
            None => &NoPrices,
        }
    }
}

/// Imports the conversations of other tools (protocol.md §3.17).
pub trait Importer: Send + Sync {
    /// Runs an import, and returns the result of `import_sessions` as JSON. Fails with `importBusy` during another
    /// import, with `invalidParams` for a path that is missing or inside of the session directory, and with
    /// `cancelled`.
    fn import(&self, run: &ImportRun<'_>) -> Result<Vec<u8>>;
}

/// One import.
pub struct ImportRun<'a> {
    pub params: &'a ImportSessionsParams,
    /// The param `since`, as a time.
    pub since: Option<Millis>,
    pub store: &'a Store,
    /// The time at which the import begins.
    pub now: Millis,
    pub cancel: &'a Cancel,
    /// Receives two numbers: the bytes that were read since its last call, and the increase of the total.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// Hands conversations over to other agents (protocol.md §3.18).
pub trait Handoff: Send + Sync {
    /// Makes a new session of an agent, but not its files. Fails with `invalidParams`, `contextTooLarge` and
    /// `pathDenied`.
    fn prepare(&self, run: HandoffRun<'_>) -> Result<PreparedHandoff>;

    /// An estimate of the tokens that [`Self::prepare`] hands over for a path.
    fn tokens(&self, params: &ContinueSessionParams, path: &[PathMessage]) -> u64;
}

/// A conversation that is handed over.
pub struct HandoffRun<'a> {
    pub params: &'a ContinueSessionParams,
    /// The most tokens that are handed over; 0 for no limit.
    pub limit: u64,
    pub session_id: &'a str,
    /// The working directory of the session.
    pub cwd: &'a str,
    pub name: Option<&'a str>,
    /// The messages of the path as an agent sees them, the first message first.
    pub path: Vec<PathMessage>,
    /// The summary of the conversation before the path.
    pub summary: Option<String>,
    /// The summary of the branch that the conversation leaves.
    pub learned: Option<String>,
    pub store: &'a Store,
    pub source: &'a dyn Source,
}

/// A new session of an agent whose files are not made yet.
pub struct PreparedHandoff {
    /// The result of the request. The caller sets its durability.
    pub result: ContinueSessionResult,
    /// The member `data.continuation` of the record, as raw JSON of an object.
    pub record: Vec<u8>,
    /// Makes the files.
    pub place: Box<dyn FnOnce() -> Result<()> + Send>,
}

/// Knows prices, and counts the usage of all sessions (usage.md).
pub trait Accounts: Prices {
    /// Counts the usage. Fails with `invalidParams` if there is too much to count, and with `cancelled`.
    fn usage(&self, run: &UsageRun<'_>) -> Result<GetUsageResult>;
}

/// One count.
pub struct UsageRun<'a> {
    pub by: UsageBy,
    /// If set, only sessions of this directory and of directories below it count.
    pub cwd: Option<&'a str>,
    /// If set, only answers from this time on count.
    pub since: Option<Millis>,
    /// If set, only the session with this id counts.
    pub session: Option<&'a str>,
    /// The most rows of the result.
    pub limit: usize,
    pub store: &'a Store,
    pub cancel: &'a Cancel,
}
