//! Parts of a daemon that the program chooses.

use std::sync::Arc;
use treelined_core::error::Result;
use treelined_core::timestamp::Millis;
use treelined_files::cancel::Cancel;
use treelined_files::log::upstream::SharedLog;
use treelined_files::store::Store;
use treelined_wire::ImportSessionsParams;

/// Parts of a daemon that the program chooses. Without one, its requests fail.
#[derive(Default)]
pub struct Parts {
    /// Imports the conversations of other tools.
    pub importer: Option<Box<dyn Importer>>,
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
