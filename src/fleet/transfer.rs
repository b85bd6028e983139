//! Copies sessions between a session directory and a log, after comparing the two byte for byte.
//!
//! One of them must be the beginning of the other: anything else fails with `logDiverged` and changes nothing. A copy
//! that is cut off is continued by the next one.

use super::attempts::{ROUNDS, conflict};
use super::backend::{AppendOutcome, LogBackend, LogIdentity, LogParts, Position};
use super::closing;
use super::files::{self, SessionFiles};
use super::replica::{self, ReplicaRecord};
use sha2::{Digest, Sha256};
use treelined_core::bytes::part;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::os::file::Location;

/// Bytes of one write to a file while pulling.
pub(super) const WRITE: usize = 4 << 20;
/// Bytes after which the record is saved while pushing.
const SAVE: u64 = 16 << 20;

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The lines that were copied, and their bytes.
    pub lines: u64,
    pub bytes: u64,
    /// SHA-256 of these bytes in hex, equal on both sides.
    pub hash: String,
    /// The end of the log.
    pub sequence: u64,
    /// Whether the target has lines that the source has not.
    pub is_behind: bool,
}

/// The bytes of a file behind its last line break: a line in flight, or the start of one that a crash cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    Ignored,
    Compared,
}

/// How a file and a log relate. Both are equal up to `at`.
pub(super) struct Comparison {
    pub(super) at: Agreement,
    pub(super) relation: Relation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    FileAhead,
    /// The file already has this many bytes of the next part of the log.
    LogAhead {
        partial: usize,
    },
    /// Both have lines that the other has not. The file has this many bytes of the next part of the log.
    Diverged {
        partial: usize,
    },
}

/// The end of the last part of a log up to which a file is equal.
#[derive(Debug, Clone)]
pub(super) struct Agreement {
    pub(super) position: Position,
    /// Bytes of the file.
    pub(super) offset: u64,
    /// The end of the part before the one with the last lines.
    previous: Position,
    /// The lines of the last part that has some.
    pub(super) last: Vec<u8>,
}

impl Agreement {
    pub(super) const START: Self = Self {
        position: Position::START,
        offset: 0,
        previous: Position::START,
        last: Vec::new(),
    };

    pub(super) fn advance(&mut self, end: Position, lines: &[u8]) {
        let before = std::mem::replace(&mut self.position, end);
        // A foreign message moves the position alone.
        if lines.is_empty() {
            return;
        }
        self.previous = before;
        self.offset += lines.len() as u64;
        self.last.clear();
        self.last.extend_from_slice(lines);
    }

    /// The record for the file; `None` if nothing is equal.
    pub(super) fn record(&self, log: &LogIdentity) -> Option<ReplicaRecord> {
        (self.position != Position::START).then(|| ReplicaRecord {
            stream: log.stream.clone(),
            stream_created: log.created.clone(),
            subject: log.subject.clone(),
            sequence: self.position.0,
            offset: self.offset,
            hash: replica::hash(&self.last),
            previous: self.previous.0,
            length: self.last.len() as u64,
            is_closed: log.is_closed_by(&self.last),
            lost: 0,
        })
    }

    fn save(&self, log: &LogIdentity, at: &Location) -> Result<()> {
        match self.record(log) {
            Some(record) if ReplicaRecord::load(at)?.as_ref() != Some(&record) => record.save(at),
            _ => Ok(()),
        }
    }
}

/// Copies what the file of a session has more than the log into the log. Fails with `sessionDeleted` if the log is
/// closed.
pub fn push(files: &SessionFiles<'_>, log: &dyn LogBackend, session: &str) -> Result<Transfer> {
    let Some(at) = files.find(session)? else {
        let why = format!("there is no session {session:?} in the session directory");
        return Err(Error::new(Kind::SessionNotFound, why));
    };
    let identity = log.identity(session)?;
    let mut began = None;
    for _ in 0..ROUNDS {
        let Comparison {
            at: mut agreed,
            relation,
        } = compare_saved(log, session, &at, &identity, Tail::Ignored)?;
        check_open(log, &identity, &agreed, relation)?;
        let start = began.get_or_insert_with(|| agreed.clone()).clone();
        let is_done = match relation {
            Relation::FileAhead => append_rest(log, session, (&at, &identity), &mut agreed)?,
            Relation::Equal | Relation::LogAhead { .. } => true,
            Relation::Diverged { partial } => return Err(diverged(session, &agreed, partial)),
        };
        agreed.save(&identity, &at)?;
        if is_done {
            let is_behind = matches!(relation, Relation::LogAhead { .. });
            return verified(log, session, &at, (&start, 0, &agreed), is_behind);
        }
    }
    Err(conflict(session))
}

/// Fails with `sessionDeleted` if the log that was compared is closed. Two histories under one id are not judged.
fn check_open(
    log: &dyn LogBackend,
    identity: &LogIdentity,
    agreed: &Agreement,
    relation: Relation,
) -> Result<()> {
    let session = &identity.session;
    match relation {
        Relation::Equal | Relation::FileAhead if identity.is_closed_by(&agreed.last) => {
            Err(closing::deleted(session))
        }
        Relation::LogAhead { .. } => closing::check_open(log, session),
        _ => Ok(()),
    }
}

/// Appends the rest of a file to the log. Returns false if somebody else has appended meanwhile.
pub(super) fn append_rest(
    log: &dyn LogBackend,
    session: &str,
    (at, identity): (&Location, &LogIdentity),
    agreed: &mut Agreement,
) -> Result<bool> {
    let (most, longest) = (log.max_append(), log.max_line());
    // Before the first line is written, so that no half of the session is in the log for lack of room for a line.
    let mut is_first = agreed.offset == 0;
    for part in files::parts(at, agreed.offset)? {
        let part = part?;
        if std::mem::take(&mut is_first) {
            files::header_of(session, &part.lines)?;
        }
        if let Some(line) = part
            .lines
            .split_inclusive(|byte| *byte == b'\n')
            .find(|line| line.len() > longest)
        {
            let why = format!(
                "a line of session {session:?} has {} bytes, and an append to the log at most {longest}",
                line.len()
            );
            return Err(Error::new(Kind::PayloadTooLarge, why));
        }
    }
    let mut saved = agreed.offset;
    for part in files::parts(at, agreed.offset)? {
        let part = part?;
        let mut rest = &part.lines[..];
        while !rest.is_empty() {
            let lines = whole_lines(rest, most);
            let appended = log.append(session, agreed.position, lines);
            let AppendOutcome::Appended(end) = appended.map_err(to_be_continued)? else {
                return Ok(false);
            };
            agreed.advance(end, lines);
            rest = part_after(rest, lines.len());
            if agreed.offset - saved >= SAVE {
                agreed.save(identity, at)?;
                saved = agreed.offset;
            }
        }
    }
    Ok(true)
}

/// The error of an append in a copy. The next copy finds lines that are there in spite of it.
fn to_be_continued(error: Error) -> Error {
    match error.kind {
        Kind::DurabilityUnknown => Error {
            retry_after_ms: Some(1000),
            ..Error::new(Kind::LogUnavailable, error.message)
        },
        _ => error,
    }
}

/// The most whole lines at the start that have at most `most` bytes; one line at least.
pub(super) fn whole_lines(lines: &[u8], most: usize) -> &[u8] {
    if lines.len() <= most {
        return lines;
    }
    let fitting = part(lines, ..most);
    match memchr::memrchr(b'\n', fitting) {
        Some(last) => part(lines, ..=last),
        None => lines
            .split_inclusive(|byte| *byte == b'\n')
            .next()
            .unwrap_or(lines),
    }
}

pub(super) fn part_after(bytes: &[u8], count: usize) -> &[u8] {
    part(bytes, count..)
}

/// Copies what the log of a session has more than the file into the file, which is made if there is none. Fails with
/// `sessionDeleted` if the log is closed.
pub fn pull(files: &SessionFiles<'_>, log: &dyn LogBackend, session: &str) -> Result<Transfer> {
    let identity = log.identity(session)?;
    let mut began = None;
    for _ in 0..ROUNDS {
        let found = files.find(session)?;
        let compared = match &found {
            Some(at) => compare_saved(log, session, at, &identity, Tail::Compared)?,
            None => Comparison {
                at: Agreement::START,
                relation: Relation::LogAhead { partial: 0 },
            },
        };
        let Comparison {
            at: mut agreed,
            relation,
        } = compared;
        check_open(log, &identity, &agreed, relation)?;
        let present = match relation {
            Relation::LogAhead { partial } => partial,
            Relation::Equal | Relation::FileAhead => 0,
            Relation::Diverged { partial } => return Err(diverged(session, &agreed, partial)),
        };
        let (start, present) = began
            .get_or_insert_with(|| (agreed.clone(), present))
            .clone();
        let is_done = match relation {
            Relation::LogAhead { partial } => {
                let parts = log.read(session, agreed.position)?;
                write_parts(files, session, &identity, parts, (&mut agreed, partial))?
            }
            Relation::Equal | Relation::FileAhead | Relation::Diverged { .. } => true,
        };
        let Some(at) = files.find(session)? else {
            let why = format!(
                "there is no session {session:?} in the stream {:?}",
                identity.stream
            );
            return Err(Error::new(Kind::SessionNotFound, why));
        };
        agreed.save(&identity, &at)?;
        if is_done {
            let is_behind = relation == Relation::FileAhead;
            return verified(log, session, &at, (&start, present, &agreed), is_behind);
        }
    }
    Err(conflict(session))
}

/// Pulls a session, then writes each later part of the log into its file when it arrives. `written` is called after each
/// write. Ends only with an error.
pub fn pull_on(
    files: &SessionFiles<'_>,
    log: &dyn LogBackend,
    session: &str,
    written: &mut dyn FnMut(&Transfer) -> Result<()>,
) -> Result<()> {
    let mut done = pull(files, log, session)?;
    written(&done)?;
    for part in log.follow(session, Position(done.sequence))? {
        part?;
        done = pull(files, log, session)?;
        if done.bytes > 0 {
            written(&done)?;
        }
    }
    Ok(())
}

/// Appends parts of a log to the file. `partial` bytes of the first part are there. Returns false if somebody else has
/// written to the file meanwhile.
fn write_parts(
    files: &SessionFiles<'_>,
    session: &str,
    identity: &LogIdentity,
    parts: LogParts<'_>,
    (agreed, partial): (&mut Agreement, usize),
) -> Result<bool> {
    let mut pending = Vec::new();
    let mut size = agreed.offset + partial as u64;
    let mut reached = agreed.clone();
    let mut skipped = partial;
    let mut write =
        |pending: &mut Vec<u8>, reached: &Agreement, agreed: &mut Agreement| -> Result<bool> {
            if pending.is_empty() {
                return Ok(true);
            }
            let appended = files.append(session, Position(size), pending)?;
            let AppendOutcome::Appended(end) = appended else {
                return Ok(false);
            };
            size = end.0;
            pending.clear();
            *agreed = reached.clone();
            match files.find(session)? {
                Some(at) => agreed.save(identity, &at).map(|()| true),
                None => Ok(false),
            }
        };
    for found in parts {
        let found = found?;
        if reached.offset == 0 && !found.lines.is_empty() {
            files::header_of(session, &found.lines)?;
        }
        pending.extend_from_slice(part_after(&found.lines, skipped));
        skipped = 0;
        reached.advance(found.end, &found.lines);
        if pending.len() >= WRITE && !write(&mut pending, &reached, agreed)? {
            return Ok(false);
        }
    }
    write(&mut pending, &reached, agreed)
}

/// Compares a file with a log, from the record beside it on.
fn compare_saved(
    log: &dyn LogBackend,
    session: &str,
    at: &Location,
    identity: &LogIdentity,
    tail: Tail,
) -> Result<Comparison> {
    let record = ReplicaRecord::load(at)?;
    compare(log, session, (at, tail), identity, record.as_ref())
}

/// Compares a file with a log, from its record on; from the start if the file lacks the bytes of the record, as after a
/// crash that lost its end.
pub(super) fn compare(
    log: &dyn LogBackend,
    session: &str,
    (at, tail): (&Location, Tail),
    identity: &LogIdentity,
    record: Option<&ReplicaRecord>,
) -> Result<Comparison> {
    let mut agreed = Agreement::START;
    if let Some(record) = record {
        record.check(identity)?;
    }
    let intact = match record {
        Some(record) if record.is_intact(at)? => Some(record),
        _ => None,
    };
    if let Some(record) = intact {
        agreed.position = record.previous();
        agreed.offset = record.offset - record.length;
    }
    let mut local = FileBytes {
        parts: Box::new(match tail {
            Tail::Ignored => files::parts(at, agreed.offset)?,
            Tail::Compared => files::parts_and_tail(at, agreed.offset)?,
        }),
        unmatched: Vec::new(),
        at: 0,
    };
    let mut parts = log.read(session, agreed.position)?;
    let relation = loop {
        let Some(found) = parts.next() else {
            break match local.fill()? {
                true => Relation::FileAhead,
                false => Relation::Equal,
            };
        };
        let found = found?;
        match local.matched(&found.lines)? {
            count if count == found.lines.len() => agreed.advance(found.end, &found.lines),
            partial if !local.fill()? => break Relation::LogAhead { partial },
            partial => break Relation::Diverged { partial },
        }
    };
    let reached = match relation {
        Relation::LogAhead { partial } | Relation::Diverged { partial } => {
            agreed.offset + partial as u64
        }
        Relation::Equal | Relation::FileAhead => agreed.offset,
    };
    // A log that ends before the message of the record has lost it, whatever the file has.
    let is_at_end = matches!(relation, Relation::Equal | Relation::FileAhead);
    let is_lost = |record: &&ReplicaRecord| is_at_end && agreed.position.0 < record.sequence;
    let lost = record.filter(is_lost);
    match lost.or(intact.filter(|record| reached < record.offset)) {
        Some(record) => Err(rewound(record, session)),
        None => Ok(Comparison {
            at: agreed,
            relation,
        }),
    }
}

/// The error for a log that does not have the message of the record any more.
fn rewound(record: &ReplicaRecord, session: &str) -> Error {
    let why = format!(
        "the file of session {session:?} has message {} of the stream {:?}, which the stream does not have any more",
        record.sequence, record.stream
    );
    Error::new(Kind::LogRewound, why)
}

pub(super) fn diverged(session: &str, agreed: &Agreement, partial: usize) -> Error {
    diverged_after(session, agreed.offset + partial as u64)
}

fn diverged_after(session: &str, offset: u64) -> Error {
    let why = format!(
        "the file and the log of session {session:?} differ after byte {offset}, and neither is the beginning of the other"
    );
    Error::new(Kind::LogDiverged, why)
}

/// The bytes of a file, matched with those of a log.
struct FileBytes<'a> {
    parts: LogParts<'a>,
    unmatched: Vec<u8>,
    /// Where the unmatched bytes begin.
    at: usize,
}

impl FileBytes<'_> {
    /// Whether there are unmatched bytes; reads some if necessary.
    fn fill(&mut self) -> Result<bool> {
        while self.at == self.unmatched.len() {
            let Some(part) = self.parts.next() else {
                return Ok(false);
            };
            self.unmatched = part?.lines;
            self.at = 0;
        }
        Ok(true)
    }

    /// How many bytes at the start are equal. Takes them.
    fn matched(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut count = 0;
        while count < bytes.len() && self.fill()? {
            let theirs = part_after(bytes, count);
            let ours = part_after(&self.unmatched, self.at);
            let equal = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
            self.at += equal;
            count += equal;
            if equal < ours.len().min(theirs.len()) {
                break;
            }
        }
        Ok(count)
    }
}

/// Reads what was copied from both sides again; fails unless number of lines and hash are equal. The file had the first
/// `present` bytes of the first part before.
fn verified(
    log: &dyn LogBackend,
    session: &str,
    at: &Location,
    (start, present, end): (&Agreement, usize, &Agreement),
    is_behind: bool,
) -> Result<Transfer> {
    let (mut lines, mut hashed) = (0, Sha256::new());
    let mut ours = (0, Sha256::new());
    let first = match start.position < end.position {
        true => start.offset + present as u64,
        false => end.offset,
    };
    let (mut offset, mut skipped) = (first, present);
    if start.position < end.position {
        for part in log.read(session, start.position)? {
            let part = part?;
            if part.end > end.position {
                break;
            }
            let copied = part_after(&part.lines, std::mem::take(&mut skipped));
            lines += count_lines(copied);
            hashed.update(copied);
            let local = files::bytes_of(at, offset, copied.len() as u64)?;
            offset += copied.len() as u64;
            ours.0 += count_lines(&local);
            ours.1.update(&local);
        }
    }
    let hash = replica::hex(hashed);
    if (lines, &hash) != (ours.0, &replica::hex(ours.1)) || offset != end.offset {
        return Err(diverged_after(session, start.offset));
    }
    Ok(Transfer {
        lines,
        bytes: offset - first,
        hash,
        sequence: end.position.0,
        is_behind,
    })
}

pub(super) fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
