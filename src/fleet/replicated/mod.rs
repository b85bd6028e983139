//! A session file and its log. They are kept equal while the session is open: lines go to the log first, then to the
//! file (schema/fleet.md).
//!
//! The file is a copy of the log, byte for byte. It may have more lines at its end: lines of programs that do not know
//! the log, and lines that wait for the servers. If the log has received other lines meanwhile, the file is made again
//! in the order of the log. The caller of a method of [`Upstream`] holds the lock of the file. All other methods take
//! the lock if they write.

mod apart;
pub mod branch;
pub(crate) mod closing;
mod equality;
mod known;
mod looking_up;
mod lost;
mod publishing;
#[cfg(test)]
mod tests;

use self::equality::{Equality, SAVED_EVERY};
use self::known::{FileLine, KnownLines, is_entry};
use super::attempts::ROUNDS;
use super::backend::{AppendOutcome, LogBackend, LogIdentity, LogPart, Position};
use super::closing::{deleted, is_closed};
use super::comparison::{self, Agreement, Comparison, Relation, Tail};
use super::files;
use super::patience;
use super::replica::ReplicaRecord;
use super::transfer::{self, WRITE, part_after};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::lock::lock;
use treelined_files::log::rewrite;
use treelined_files::os::FileAt;
use treelined_files::os::file::{self, Identity, Location};
use treelined_files::os::handle::HandleAccess;

/// Lines that are not entries are moved to a file with this suffix.
const FOREIGN_SUFFIX: &str = ".foreign";

/// Connects to the log when it is needed.
pub trait LogSource: Send + Sync {
    fn log(&self) -> Result<Arc<dyn LogBackend>>;

    /// The log, if it can be used without a wait for a connection.
    fn ready(&self) -> Option<Arc<dyn LogBackend>> {
        None
    }

    /// The durability of an append, as far as it is known.
    fn durability(&self) -> Durability {
        Durability::Replicated
    }

    /// Notes that the log did not answer, so that other requests need not wait for it too.
    fn note_silence(&self, error: &Error) {
        let _ = error;
    }
}

impl LogSource for Arc<dyn LogBackend> {
    fn log(&self) -> Result<Arc<dyn LogBackend>> {
        Ok(Arc::clone(self))
    }
}

/// One session file and its log.
pub struct ReplicatedFile {
    source: Arc<dyn LogSource>,
    session: String,
    at: Location,
    /// Whether lines are written to the file while the log cannot be reached.
    queues: bool,
    /// Locked only for a moment at a time, since a task of the connection reads it too.
    state: Mutex<Equality>,
    /// Whether this process is deleting the session.
    is_closing: AtomicBool,
    /// Notified when an append has stopped waiting for a server.
    left_behind: Notify,
    /// How often lines that only the file had were published. Appends do not count.
    published: AtomicU64,
    /// Whether a caller has learned that lines wait in the file, since the follower last reported that no lines wait.
    has_waited: AtomicBool,
}

/// The positions of published lines that only the file had before.
struct PublishedOwn {
    /// The end of the log before these lines were published, and after that.
    before: Position,
    end: Position,
    /// The number of bytes of the file that were read.
    seen: u64,
}

/// An incomplete last line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TornLine {
    /// The line stays, since another program may be writing it. Nothing else is done while the line is there.
    Leave,
    /// The line gets a line break, as before any append (session-file.md §3).
    Close,
}

impl ReplicatedFile {
    pub fn new(source: Arc<dyn LogSource>, session: &str, at: Location, queues: bool) -> Arc<Self> {
        Arc::new(Self {
            source,
            session: session.to_owned(),
            at,
            queues,
            state: Mutex::default(),
            is_closing: AtomicBool::new(false),
            left_behind: Notify::new(),
            published: AtomicU64::new(0),
            has_waited: AtomicBool::new(false),
        })
    }

    /// Makes the file again from the log. Before that, entries that only the file has are published, and its other
    /// lines are moved to the file with the suffix `.foreign`. Fails if the file is a replica of another log, or if the
    /// log has lost messages.
    pub fn remake(&self) -> Result<()> {
        let Some(_locked) = self.locked()? else {
            return Ok(());
        };
        let log = self.source.log()?;
        let identity = log.identity(&self.session)?;
        if let Some(record) = ReplicaRecord::load(&self.at)? {
            record.check(&identity)?;
            // The read fails if the log ends before that message.
            drop(log.read(&self.session, Position(record.sequence))?);
        }
        self.rebuild(&*log, &identity, &Agreement::START).map(drop)
    }

    /// The last message that the file has.
    pub(crate) fn position(&self) -> Position {
        let state = lock(&self.state);
        let record = state.record.as_ref();
        record.map_or(Position::START, |record| Position(record.sequence))
    }

    /// Whether an append of this process is not finished: its lines are not yet in both the log and the file.
    pub(crate) fn is_appending(&self) -> bool {
        lock(&self.state).is_appending
    }

    /// Whether file and log are known to be equal.
    pub(crate) fn is_equal(&self) -> bool {
        let file = self.at.folder.file(&self.at.name, HandleAccess::Read);
        file.is_ok_and(|file| self.is_settled(&file))
    }

    /// Like [`Self::is_equal`]. If an append of this process is writing to the file, waits for it first.
    pub(crate) fn is_equal_now(&self) -> Result<bool> {
        let locked = self.locked()?;
        Ok(locked.is_some_and(|file| self.is_settled(&file)))
    }

    /// How often lines that only the file had were published. Appends do not count.
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// Waits until an append stops waiting for a server and leaves its lines in the file.
    pub(crate) async fn left_behind(&self) {
        self.left_behind.notified().await;
    }

    /// Whether the file has lines that are not known to be in the log. The size of the file shows this.
    pub(crate) fn waits(&self) -> bool {
        let Ok(status) = self.at.status() else {
            return false;
        };
        if lock(&self.state).is_appending {
            return false;
        }
        let known = self.known(status.identity);
        let waits = known.is_none_or(|known| known.offset < status.size);
        if waits {
            self.has_waited.store(true, Ordering::Relaxed);
        }
        waits
    }

    /// Whether no lines wait in the file, although [`Self::waits`] has returned true before. True only once for each
    /// such change.
    pub(crate) fn has_stopped_waiting(&self) -> bool {
        !self.waits() && self.has_waited.swap(false, Ordering::Relaxed)
    }

    /// The record of the part of this file that is known to be in the log.
    fn known(&self, file: Identity) -> Option<ReplicaRecord> {
        let state = lock(&self.state);
        let compared = state.record.clone().filter(|_| state.file == Some(file));
        compared.or_else(|| ReplicaRecord::load(&self.at).ok().flatten())
    }

    /// Appends a part of the log to the file. `before` is the position before the part.
    pub(crate) fn take(&self, before: Position, part: &LogPart) -> Result<()> {
        let Some(locked) = self.locked()? else {
            return Ok(());
        };
        {
            let mut state = lock(&self.state);
            let at = state.record.as_ref().map(|record| record.sequence);
            if at.is_some_and(|at| at >= part.end.0) && state.is_of(&locked) {
                return Ok(());
            }
            if at == Some(before.0) && state.is_equal(&locked) {
                let log = self.source.log()?;
                self.append(&locked, &part.lines)?;
                let identity = log.identity(&self.session)?;
                let record = state.record_behind(&identity, &part.lines, part.end);
                state.advance(record);
                drop(state);
                self.save_sometimes()?;
                return self.check_open();
            }
        }
        drop(locked);
        self.settle_alone(TornLine::Leave)
    }

    /// Saves the record and syncs it, so that the next opening compares less.
    pub(crate) fn save(&self) -> Result<()> {
        let (record, file, unsaved) = {
            let state = lock(&self.state);
            (state.record.clone(), state.file, state.unsaved)
        };
        let is_there = || self.at.status().is_ok_and(|now| Some(now.identity) == file);
        if let Some(record) = record.filter(|_| unsaved > 0 && is_there()) {
            record.save(&self.at)?;
            let mut state = lock(&self.state);
            state.unsaved = state.unsaved.saturating_sub(unsaved);
        }
        Ok(())
    }

    /// Like [`Self::save`], but saves only if many messages have arrived since the last save.
    pub(crate) fn save_sometimes(&self) -> Result<()> {
        let unsaved = lock(&self.state).unsaved;
        match unsaved >= SAVED_EVERY {
            true => self.save(),
            false => Ok(()),
        }
    }

    fn is_settled(&self, file: &File) -> bool {
        let state = lock(&self.state);
        !state.is_behind && !state.is_closed() && state.is_equal(file)
    }

    /// The file with its lock; `None` if there is no file.
    fn locked(&self) -> Result<Option<File>> {
        loop {
            let opened = self.at.folder.file(&self.at.name, HandleAccess::Append);
            let file = match opened {
                Ok(file) => file,
                Err(_) if self.at.status().is_err() => return Ok(None),
                Err(error) => return Err(error),
            };
            files::lock_file(&file)?;
            if self.is_named(&file) {
                return Ok(Some(file));
            }
        }
    }

    /// Whether the path still names this file.
    fn is_named(&self, file: &File) -> bool {
        match (file::status_of(file), self.at.status()) {
            (Ok(ours), Ok(named)) => ours.identity == named.identity,
            _ => false,
        }
    }

    fn make_equal(&self, file: &File, torn: TornLine) -> Result<()> {
        match self.compare_and_copy(file, torn) {
            // The file has gone to the trash meanwhile, and the caller will see that.
            Err(error) if error.kind == Kind::StorageIo && !self.is_named(file) => Ok(()),
            made => made.inspect_err(|error| self.note_failure(error)),
        }
    }

    /// Whether the log was found to have lost lines that are still in the file.
    pub(crate) fn has_lost(&self) -> bool {
        lock(&self.state).has_lost
    }

    /// Notes why the file and the log could not be made equal.
    pub(crate) fn note_failure(&self, error: &Error) {
        if error.kind == Kind::LogRewound {
            lock(&self.state).has_lost = true;
        }
        // If the caller waits only for a moment, a missing answer says nothing about other sessions.
        let is_silence = matches!(error.kind, Kind::LogUnavailable | Kind::DurabilityUnknown);
        if is_silence && patience::until().is_none() {
            self.source.note_silence(error);
        }
    }

    fn compare_and_copy(&self, file: &File, torn: TornLine) -> Result<()> {
        // If another file has replaced this one, the caller will see that.
        if !self.is_named(file) {
            return Ok(());
        }
        let log = self.source.log()?;
        let identity = log.identity(&self.session)?;
        for _ in 0..ROUNDS {
            let record = match self.record_of(file) {
                Some(record) => Some(record),
                None => ReplicaRecord::load(&self.at)?,
            };
            let Comparison {
                at: mut agreed,
                relation,
                ..
            } = comparison::compare(
                &*log,
                &self.session,
                (&self.at, Tail::Ignored),
                &identity,
                record.as_ref(),
            )?;
            // Lines that only the file has wait until the session is restored.
            if relation == Relation::FileAhead && identity.is_closed_by(&agreed.last) {
                return Err(deleted(&self.session));
            }
            let is_torn = self.is_torn(file)?;
            if is_torn && torn == TornLine::Leave {
                return Ok(());
            }
            // Without a record, nothing shows that the file is a copy of this log.
            let is_first = record.is_none();
            match relation {
                Relation::Equal if !is_torn => {
                    return self.begin(file, agreed.record(&identity));
                }
                Relation::Equal | Relation::FileAhead if is_torn => self.append(file, b"\n")?,
                Relation::FileAhead if is_first || self.has_only_entries(agreed.offset)? => {
                    let place = (&self.at, &identity);
                    transfer::append_rest(&*log, &self.session, place, &mut agreed)?;
                }
                Relation::LogAhead { partial: 0 } if !is_torn => {
                    self.append_parts(file, &*log, &mut agreed)?;
                    self.begin(file, agreed.record(&identity))?;
                }
                // These are two different sessions with the same id.
                Relation::Diverged { partial } if is_first => {
                    return Err(transfer::diverged(&self.session, &agreed, partial));
                }
                _ => return self.rebuild(&*log, &identity, &agreed).map(drop),
            }
        }
        Err(super::attempts::conflict(&self.session))
    }

    fn append(&self, mut file: &File, lines: &[u8]) -> Result<()> {
        let written = file.write_all(lines);
        written.map_err(|error| self.failed("write", &error))
    }

    /// Appends the lines that the log has after `agreed`.
    fn append_parts(
        &self,
        file: &File,
        log: &dyn LogBackend,
        agreed: &mut Agreement,
    ) -> Result<()> {
        let mut pending = Vec::new();
        for part in log.read(&self.session, agreed.position)? {
            let part = part?;
            pending.extend_from_slice(&part.lines);
            agreed.advance(part.end, &part.lines);
            if pending.len() >= WRITE {
                self.append(file, &pending)?;
                pending.clear();
            }
        }
        self.append(file, &pending)
    }

    /// Appends to the log the lines that only the file has. Then writes the file again: the equal part, the rest of the
    /// log, and these lines. Returns the end of the log before these lines.
    fn rebuild(
        &self,
        log: &dyn LogBackend,
        identity: &LogIdentity,
        agreed: &Agreement,
    ) -> Result<Position> {
        let PublishedOwn { before, end, .. } = self.publish_own(log, agreed, Tail::Compared)?;
        let old = self.at.folder.file(&self.at.name, HandleAccess::Read)?;
        let mut reached = agreed.clone();
        let mut failed = None;
        let replaced = rewrite::replace(&self.at, &self.at, |out| {
            rewrite::copy_range(out, &old, 0, agreed.offset)?;
            let copied = copy_log(log, &self.session, out, &mut reached, end);
            copied.map_err(|error| {
                failed = Some(error);
                io::Error::other("the team's stream cannot be read")
            })
        });
        match (replaced, failed) {
            (Err(_), Some(error)) => return Err(error),
            (replaced, _) => replaced?,
        }
        tracing::info!(
            session = self.session,
            "the file has the order of the team's stream again"
        );
        let new = self.at.folder.file(&self.at.name, HandleAccess::Read)?;
        if before < end {
            reached.note_own();
        }
        self.begin(&new, reached.record(identity))?;
        Ok(before)
    }

    /// Sets the state after a comparison of this file.
    fn begin(&self, file: &File, record: Option<ReplicaRecord>) -> Result<()> {
        let mut state = lock(&self.state);
        state.begin(file, record)?;
        drop(state);
        self.save()?;
        self.check_open()
    }

    /// The record of a file, if this process has compared that file.
    fn record_of(&self, file: &File) -> Option<ReplicaRecord> {
        let state = lock(&self.state);
        state.record.clone().filter(|_| state.is_of(file))
    }

    /// Appends to the log the lines after `agreed` that only the file has.
    fn publish_own(
        &self,
        log: &dyn LogBackend,
        agreed: &Agreement,
        tail: Tail,
    ) -> Result<PublishedOwn> {
        for _ in 0..ROUNDS {
            let mut known = KnownLines::default();
            let mut before = agreed.position;
            let mut is_closed_log = is_closed(&self.session, &agreed.last);
            for part in log.read(&self.session, agreed.position)? {
                let part = part?;
                known.add(&part.lines);
                before = part.end;
                // A foreign message neither opens nor closes a log.
                if !part.lines.is_empty() {
                    is_closed_log = is_closed(&self.session, &part.lines);
                }
            }
            if is_closed_log {
                return Err(deleted(&self.session));
            }
            let mut own = Vec::new();
            let mut foreign = Vec::new();
            let seen = self.each_line_after(agreed.offset, tail, &mut |line| match known
                .classify(line)
            {
                FileLine::Known => {}
                FileLine::Own => own.extend_from_slice(line),
                FileLine::Foreign => foreign.extend_from_slice(line),
            })?;
            self.keep_foreign(&foreign)?;
            if let Some(end) = append_all(log, &self.session, before, &own)? {
                return Ok(PublishedOwn { before, end, seen });
            }
        }
        Err(super::attempts::conflict(&self.session))
    }

    /// Calls `each` for the lines of the file after its first `offset` bytes. If the tail is compared, an incomplete
    /// line gets a line break and counts too. Returns the end of the whole lines.
    fn each_line_after(&self, offset: u64, tail: Tail, each: &mut dyn FnMut(&[u8])) -> Result<u64> {
        let mut end = offset;
        for part in files::parts(&self.at, offset)? {
            let part = part?;
            part.lines
                .split_inclusive(|byte| *byte == b'\n')
                .for_each(&mut *each);
            end = part.end.0;
        }
        if tail == Tail::Ignored {
            return Ok(end);
        }
        let status = self.at.status();
        let size = status.map_err(|error| self.failed("stat", &error))?.size;
        let mut torn = files::bytes_of(&self.at, end, size.saturating_sub(end))?;
        if !torn.is_empty() {
            torn.push(b'\n');
            each(&torn);
        }
        Ok(end)
    }

    /// Whether the lines of the file after its first `offset` bytes are entries.
    fn has_only_entries(&self, offset: u64) -> Result<bool> {
        for part in files::parts(&self.at, offset)? {
            let lines = part?.lines;
            if !lines.split_inclusive(|byte| *byte == b'\n').all(is_entry) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves lines that are not entries to the file beside the session file, and syncs that file.
    fn keep_foreign(&self, lines: &[u8]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let beside = self.at.beside(FOREIGN_SUFFIX);
        let earlier = match beside.status() {
            Ok(status) => files::bytes_of(&beside, 0, status.size)?,
            Err(_) => Vec::new(),
        };
        if earlier.ends_with(lines) {
            return Ok(());
        }
        rewrite::replace(&self.at, &beside, |out| {
            out.write_all(&earlier)?;
            out.write_all(lines)
        })
    }

    /// Whether the last line of the file has no line break.
    fn is_torn(&self, file: &File) -> Result<bool> {
        let failed = |error: io::Error| self.failed("read", &error);
        let size = file::status_of(file).map_err(failed)?.size;
        let Some(last) = size.checked_sub(1) else {
            return Ok(false);
        };
        let read = self.at.folder.file(&self.at.name, HandleAccess::Read)?;
        let mut byte = [0];
        read.read_exact_at(&mut byte, last).map_err(failed)?;
        Ok(byte != *b"\n")
    }

    fn failed(&self, action: &str, error: &io::Error) -> Error {
        Error::io(&format!("{action} {}", self.at.path().display()), error)
    }
}

/// Copies the log from `reached` to `end`.
fn copy_log(
    log: &dyn LogBackend,
    session: &str,
    out: &mut BufWriter<&File>,
    reached: &mut Agreement,
    end: Position,
) -> Result<()> {
    let failed = |error: io::Error| Error::io("write the session file", &error);
    for part in log.read(session, reached.position)? {
        let part = part?;
        if part.end > end {
            break;
        }
        out.write_all(&part.lines).map_err(failed)?;
        reached.advance(part.end, &part.lines);
    }
    Ok(())
}

/// Appends lines to a log in as many messages as necessary. `None` if another program has appended meanwhile.
fn append_all(
    log: &dyn LogBackend,
    session: &str,
    mut end: Position,
    lines: &[u8],
) -> Result<Option<Position>> {
    let mut rest = lines;
    while !rest.is_empty() {
        let next = transfer::whole_lines(rest, log.max_append());
        match log.append(session, end, next)? {
            AppendOutcome::Appended(at) => end = at,
            AppendOutcome::Conflict => return Ok(None),
        }
        rest = part_after(rest, next.len());
    }
    Ok(Some(end))
}
