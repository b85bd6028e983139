//! Commits to a session whose file is a replica of a team's stream (fleet.md). The lines are in the stream before they
//! are in the file.

use super::state::{Changes, SessionGuard, SessionState};
use crate::blocking::blocking;
use crate::log::Standing;
use crate::log::append::{self, Lock};
use crate::log::body::Bodies;
use crate::log::upstream::{LineInStream, PublishOutcome, Publishing, Upstream};
use crate::os::file::File;
use crate::os::time;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::PlannedLines;
use treelined_core::id::EntryId;
use treelined_core::tree::{FilePlace, Node};

/// The number of times that a commit is planned again because others have appended to the stream.
pub(super) const ROUNDS: usize = 16;
const RETRY_AFTER_MS: u64 = 500;
/// How long a commit waits for servers if its lines can wait in the file. Including its own work, the commit is
/// answered within 50 ms (fleet.md "Offline").
const QUEUE_PATIENCE: Duration = Duration::from_millis(30);

/// A comparison of a line of the file with the team's stream.
pub struct LineCheck {
    upstream: Arc<dyn Upstream>,
    bodies: Bodies,
    place: FilePlace,
}

impl LineCheck {
    /// Reads the file up to the line, and waits for servers. `None` if the line cannot be in a stream.
    pub fn run(&self) -> Result<Option<LineInStream>> {
        let line = self.bodies.line_of(self.place)?;
        line.map(|line| self.upstream.look_up(&line)).transpose()
    }
}

/// The state of file and stream before a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// The file and the stream are equal as far as this process knows, or there is no stream.
    Equal,
    /// The stream cannot be reached, so the lines wait in the file.
    Queued,
    /// Another file has replaced this one.
    Replaced,
}

impl<T: Send + 'static> SessionGuard<T> {
    /// Publishes the lines of a file that was just made. Lines that cannot be published wait in the file.
    pub async fn published(mut self) -> Result<Self> {
        if self.upstream.is_none() || !self.log.is_written() {
            return Ok(self);
        }
        blocking(move || {
            self.until = None;
            let mut changes = Changes::default();
            let settled = match self.lock_fresh(&mut changes, true) {
                Ok(Some(lock)) => self.settle(&lock, &mut changes).map(|_| ()),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = settled {
                tracing::warn!(%error, "a new session waits for the team's stream");
            }
            Ok(self)
        })
        .await
    }
}

impl SessionState {
    /// Begins a commit. If lines can wait in the file, this sets the time until which the commit waits for servers.
    /// Otherwise, and for a patient commit, the deadlines of the servers' requests count.
    pub(super) fn begin_waiting(&mut self) {
        let queues = self
            .upstream
            .as_ref()
            .is_some_and(|upstream| upstream.queues());
        self.until = (queues && !self.is_patient).then(|| time::now() + QUEUE_PATIENCE);
    }

    /// Sets whether commits wait for servers even if their lines can wait in the file.
    pub fn set_patient(&mut self, is_patient: bool) {
        self.is_patient = is_patient;
    }

    /// Whether lines of the file wait for the stream.
    pub fn is_queued(&self) -> bool {
        match (&self.upstream, self.log.file_to_sync()) {
            (Some(upstream), Ok(Some((file, _)))) => !upstream.is_settled(&file),
            _ => false,
        }
    }

    /// Whether the stream is known to have lost lines that are still in the file.
    pub fn has_lost_lines(&self) -> bool {
        self.upstream
            .as_ref()
            .is_some_and(|upstream| upstream.has_lost())
    }

    /// A comparison of the line of an entry with the team's stream; `None` without a stream.
    pub fn line_check(&self, node: Node) -> Option<LineCheck> {
        Some(LineCheck {
            upstream: self.upstream.clone()?,
            bodies: self.bodies(),
            place: self.tree.place(node),
        })
    }

    /// The leaf, if this machine left it there and others have continued at another position in the team's stream.
    pub fn left_leaf(&self) -> Option<Node> {
        let leaf = self.tree.leaf()?;
        let is_left = self.left_at.as_deref() == Some(self.tree.id(leaf));
        is_left.then_some(leaf)
    }

    /// Whether [`Self::settle`] needs no answer of a server. Requires the lock.
    pub(super) fn is_settled(&self, lock: &Lock) -> bool {
        match (&self.upstream, lock.file()) {
            (Some(upstream), Some(file)) => !self.has_arrivals() && upstream.is_settled(file),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// Whether the file has lines that are not known to be in its stream.
    pub fn waits_for_log(&self) -> bool {
        let upstream = self.upstream.as_ref();
        self.log.is_written() && upstream.is_some_and(|upstream| upstream.waits())
    }

    /// Makes file and stream equal, unless they are known to be. Requires the lock and a refreshed tree.
    pub(super) fn settle(&mut self, lock: &Lock, changes: &mut Changes) -> Result<Settled> {
        let (Some(upstream), Some(file)) = (&self.upstream, lock.file()) else {
            return Ok(Settled::Equal);
        };
        if upstream.is_settled(file) {
            return Ok(Settled::Equal);
        }
        match upstream.settle(file, self.until) {
            Ok(()) => {}
            Err(error) if waits(&**upstream, &error) => return Ok(Settled::Queued),
            Err(error) => return Err(error),
        }
        match self.log.standing()? {
            Standing::Unchanged => Ok(Settled::Equal),
            standing @ Standing::Grown(_) => {
                self.catch_up_into(standing, changes)?;
                Ok(Settled::Equal)
            }
            Standing::Replaced => Ok(Settled::Replaced),
            Standing::Deleted => Err(append::deleted()),
        }
    }

    /// Appends to the stream lines that are not in the file yet. Requires the lock, and [`Self::settle`] before.
    pub(super) fn publish(
        &mut self,
        planned: &PlannedLines,
        settled: Settled,
    ) -> Result<Option<PublishOutcome>> {
        match (&self.upstream, settled) {
            (Some(upstream), Settled::Equal) => self.judged(
                planned,
                upstream.publish(&self.text_of(planned), self.until),
            ),
            _ => Ok(None),
        }
    }

    /// Begins [`Self::publish`] without a thread that waits; `None` if that cannot be done at this moment. File and
    /// stream must be equal.
    pub(super) fn begin_publish(&self, planned: &PlannedLines) -> Option<Publishing> {
        let upstream = self.upstream.clone()?;
        upstream.begin_publish(&self.text_of(planned), self.until)
    }

    /// The outcome of a publish; `None` if the lines wait in the file.
    pub(super) fn judged(
        &self,
        planned: &PlannedLines,
        outcome: Result<PublishOutcome>,
    ) -> Result<Option<PublishOutcome>> {
        let waits = |error: &Error| {
            let upstream = self.upstream.as_deref();
            upstream.is_some_and(|upstream| waits(upstream, error))
        };
        match outcome {
            Ok(outcome) => Ok(Some(outcome)),
            Err(error) if waits(&error) => Ok(None),
            Err(error) if error.kind == Kind::DurabilityUnknown => {
                // The stream may have the lines.
                Err(error.with_details(json!({ "entryIds": names(&planned.entry_ids) })))
            }
            Err(error) => Err(error),
        }
    }

    /// Publishes the first lines of a session again if the outcome of the first attempt is unknown: without a file,
    /// nothing else shows whether the stream has them.
    pub(super) fn publish_first_again(
        &mut self,
        lock: Lock,
        first: PlannedLines,
        changes: &mut Changes,
    ) -> Result<()> {
        let published = match self.publish(&first, Settled::Equal) {
            Ok(Some(PublishOutcome::Conflict)) => return Err(exists()),
            Ok(published) => published,
            Err(error) => {
                self.unknown_first = Some(first);
                return Err(error);
            }
        };
        let written = self.write(lock, first, published.is_some())?;
        self.take_in(written, changes).map(drop)
    }

    /// The durability of a commit whose answer promises `promised`. If the promise is `Replicated`, the servers of the
    /// team decide the durability.
    pub fn worth(&self, promised: Durability) -> Durability {
        match &self.upstream {
            Some(upstream) if promised == Durability::Replicated => upstream.durability(),
            _ => promised,
        }
    }

    /// Records that lines of the stream were written to the file, if that succeeded.
    pub(super) fn note_written(&self, file: Option<&Arc<File>>) {
        if let (Some(upstream), Some(file)) = (&self.upstream, file) {
            upstream.written(file);
        }
    }

    /// The lines as they are in the file, each with its line break. The header precedes the first lines of a session.
    fn text_of(&self, planned: &PlannedLines) -> Vec<u8> {
        let mut text = Vec::new();
        if !self.log.is_written() {
            text.extend_from_slice(&self.log.header_line());
            text.push(b'\n');
        }
        for line in &planned.lines {
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        text
    }
}

/// Whether the lines of a commit that failed with `error` are written to the file, to be published later.
fn waits(upstream: &dyn Upstream, error: &Error) -> bool {
    let is_away = matches!(error.kind, Kind::LogUnavailable | Kind::DurabilityUnknown);
    is_away && upstream.queues()
}

fn names(entry_ids: &[EntryId]) -> Vec<&str> {
    entry_ids.iter().map(EntryId::as_str).collect()
}

/// The error for one of several operations that failed together. If the outcome is unknown, the error names only the
/// new entries of this operation.
pub fn failure_of<'a>(failure: &Error, new: impl Iterator<Item = &'a EntryId>) -> Error {
    let details = failure.details.as_ref();
    let names = |key: &&str| details.is_some_and(|details| details.get(key).is_some());
    match ["entryIds", "writtenIds"].into_iter().find(names) {
        Some(key) if failure.kind == Kind::DurabilityUnknown => {
            let ids: Vec<&str> = new.map(EntryId::as_str).collect();
            failure.clone().with_details(json!({ key: ids }))
        }
        _ => failure.clone(),
    }
}

/// The error of a commit whose lines are in the stream but not in the file.
pub(super) fn only_published(cause: &Error, entry_ids: &[EntryId]) -> Error {
    let why = format!(
        "the team's stream has the entries, but they could not be written to the file: {}",
        cause.message
    );
    Error::new(Kind::DurabilityUnknown, why).with_details(json!({ "writtenIds": names(entry_ids) }))
}

/// The error of a commit if others appended before each of its attempts.
pub(super) fn conflict() -> Error {
    let why = "others append to the session all the time; nothing was written";
    let mut error = Error::new(Kind::LogConflict, why);
    error.retry_after_ms = Some(RETRY_AFTER_MS);
    error
}

/// The error of a new session whose id another session in the stream has.
pub(super) fn exists() -> Error {
    let why = "the team's stream has a session with this id: open it by its id";
    Error::new(Kind::SessionExists, why)
}
