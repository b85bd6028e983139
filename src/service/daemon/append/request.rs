//! Appends that wait in the queue of their session.

use crate::daemon::open_session::OpenSession;
use crate::daemon::queue::{Lease, Sessions};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::NewEntry;
use treelined_core::id::ExpectedLeaf;
use treelined_files::cancel::Cancel;

/// The open sessions of a daemon: the types of its queues.
pub(crate) struct OpenSessions;

impl Sessions for OpenSessions {
    type Open = OpenSession;
    type Append = Append;

    fn write(lease: Lease<Self>, appends: VecDeque<Append>) {
        // All appends of a queue have the same writer, the daemon.
        if let Some(first) = appends.front() {
            Arc::clone(&first.writer).write(lease, appends);
        }
    }

    fn refuse(append: Append, error: Error) {
        append.answer(Err(error));
    }
}

/// The entries that one request appends: one operation.
pub(crate) struct Append {
    pub(super) writer: Arc<dyn WriteAppends>,
    pub(super) entries: Arc<Vec<NewEntry>>,
    pub(super) expected: ExpectedLeaf,
    pub(super) cancel: Cancel,
    pub(super) asked: Instant,
    pub(super) answer: OnAppended,
}

impl Append {
    /// An append that `writer` writes when its turn in the queue comes. `cancel` belongs to the request.
    pub(crate) fn new(
        writer: Arc<dyn WriteAppends>,
        cancel: &Cancel,
        expected: ExpectedLeaf,
        entries: Vec<NewEntry>,
        answer: OnAppended,
    ) -> Self {
        Self {
            writer,
            entries: Arc::new(entries),
            expected,
            cancel: cancel.clone(),
            asked: Instant::now(),
            answer,
        }
    }

    pub(crate) fn answer(self, answer: Result<AppendOutcome>) {
        (self.answer)(answer);
    }
}

/// Queues the response of an append.
pub(crate) type OnAppended = Box<dyn FnOnce(Result<AppendOutcome>) + Send>;

/// Writes adjacent appends of a queue. The daemon implements this trait.
pub(crate) trait WriteAppends: Send + Sync {
    fn write(self: Arc<Self>, lease: Lease<OpenSessions>, appends: VecDeque<Append>);
}

/// The outcome of an append.
pub(crate) struct AppendOutcome {
    pub(crate) entry_ids: Vec<String>,
    pub(crate) durability: Durability,
}

impl AppendOutcome {
    pub(crate) fn last(&self) -> Result<String> {
        let last = self.entry_ids.last().cloned();
        last.ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))
    }
}
