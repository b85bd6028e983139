//! Compares a session file with a log, byte for byte.

use super::backend::{LogBackend, LogIdentity, LogParts, Position};
use super::files;
use super::replica::{self, ReplicaRecord};
use treelined_core::bytes::part;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::os::file::Location;

/// The bytes of a file after its last line break: a line that is being written, or the start of a line that a crash cut
/// off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    Ignored,
    Compared,
}

/// How a file and a log relate. Both are equal up to `at`.
pub(super) struct Comparison {
    pub(super) at: Agreement,
    pub(super) relation: Relation,
    /// Whether the log had lost lines, got them back from the file, and now has them at other positions.
    pub(super) is_refilled: bool,
}

impl Comparison {
    /// The number of bytes, from the start of the file, that the log also has.
    fn reached(&self) -> u64 {
        match self.relation {
            Relation::LogAhead { partial } | Relation::Diverged { partial } => {
                self.at.offset + partial as u64
            }
            Relation::Equal | Relation::FileAhead => self.at.offset,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    FileAhead,
    /// The file already has this many bytes of the next part of the log.
    LogAhead {
        partial: usize,
    },
    /// Each has lines that the other does not have. The file has this many bytes of the next part of the log.
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
    /// The end of the part that comes before the part `last`.
    previous: Position,
    /// The end of the last line that this machine has written, in bytes of the file.
    own: Option<u64>,
    /// The lines of the last part that has lines.
    pub(super) last: Vec<u8>,
}

impl Agreement {
    pub(super) const START: Self = Self {
        position: Position::START,
        offset: 0,
        previous: Position::START,
        own: None,
        last: Vec::new(),
    };

    pub(super) fn advance(&mut self, end: Position, lines: &[u8]) {
        let before = std::mem::replace(&mut self.position, end);
        // A foreign message changes only the position.
        if lines.is_empty() {
            return;
        }
        self.previous = before;
        self.offset += lines.len() as u64;
        self.last.clear();
        self.last.extend_from_slice(lines);
    }

    /// Notes that this machine has written the last lines.
    pub(super) fn note_own(&mut self) {
        self.own = Some(self.offset);
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
            own: self.own,
            is_closed: log.is_closed_by(&self.last),
            lost: 0,
        })
    }

    pub(super) fn save(&self, log: &LogIdentity, at: &Location) -> Result<()> {
        match self.record(log) {
            Some(record) if ReplicaRecord::load(at)?.as_ref() != Some(&record) => record.save(at),
            _ => Ok(()),
        }
    }
}

/// Compares a file with a log, from the position in the replica record on. Fails with `logRewound` if the log does not
/// have the lines of the record any more.
pub(super) fn compare(
    log: &dyn LogBackend,
    session: &str,
    place: (&Location, Tail),
    identity: &LogIdentity,
    record: Option<&ReplicaRecord>,
) -> Result<Comparison> {
    match compare_with_lost(log, session, place, identity, record)? {
        (compared, None) => Ok(compared),
        (_, Some(lost)) => Err(lost),
    }
}

/// Like [`compare`]. If that comparison fails, compares from the start, and also returns the failure.
///
/// A log that was made anew, or restored, is compared from the start. If the log has all lines of the record, other
/// machines have filled it again, and nothing is lost.
pub(super) fn compare_with_lost(
    log: &dyn LogBackend,
    session: &str,
    place: (&Location, Tail),
    identity: &LogIdentity,
    record: Option<&ReplicaRecord>,
) -> Result<(Comparison, Option<Error>)> {
    let compared = compare_behind(log, session, place, identity, record);
    match (compared, record) {
        (Err(lost), Some(record)) if lost.kind == Kind::LogRewound => {
            let anew = compare_behind(log, session, place, identity, None)?;
            let has_all = anew.reached() >= record.offset;
            let anew = Comparison {
                is_refilled: has_all,
                ..anew
            };
            Ok((anew, (!has_all).then_some(lost)))
        }
        (compared, _) => Ok((compared?, None)),
    }
}

/// Compares a file with a log, from the position in the replica record on. If the file lacks bytes before this
/// position, for example after a crash, compares from the start.
fn compare_behind(
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
    agreed.own = intact.and_then(|record| match record.is_own() {
        // The record is saved when lines of other machines arrive, so all lines after the record are from this machine.
        true => Some(agreed.offset),
        false => record.own,
    });
    // If the log ends before the message of the record, the log has lost that message, whatever the file has.
    let is_at_end = matches!(relation, Relation::Equal | Relation::FileAhead);
    let is_lost = |record: &&ReplicaRecord| is_at_end && agreed.position.0 < record.sequence;
    let lost = record.filter(is_lost);
    let compared = Comparison {
        at: agreed,
        relation,
        is_refilled: false,
    };
    match lost.or(intact.filter(|record| compared.reached() < record.offset)) {
        Some(record) => Err(rewound(record, session)),
        None => Ok(compared),
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

/// The bytes of a file, matched with the bytes of a log.
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

    /// Removes the equal bytes from the start of the unmatched bytes, and returns their number.
    fn matched(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut count = 0;
        while count < bytes.len() && self.fill()? {
            let theirs = part(bytes, count..);
            let ours = part(&self.unmatched, self.at..);
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
