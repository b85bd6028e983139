//! Compares a session file with a log byte for byte, and then copies between a session directory and the log.
//!
//! One of the two must be the beginning of the other. Otherwise the copy fails with `logDiverged` and changes nothing.
//! If a copy is interrupted, the next one continues it.

use super::attempts::{ROUNDS, conflict};
use super::backend::{AppendOutcome, LogBackend, LogIdentity, LogParts, Position};
use super::closing;
use super::comparison::{Agreement, Comparison, Relation, Tail, compare, compare_with_lost};
use super::files::{self, SessionFiles};
use super::replica::{self, ReplicaRecord};
use sha2::{Digest, Sha256};
use treelined_core::bytes::part;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::os::file::Location;

/// The most bytes that a pull writes to the file at once.
pub(super) const WRITE: usize = 4 << 20;
/// A push saves the record each time it has copied this many bytes.
const SAVE: u64 = 16 << 20;

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The number of copied lines, and of their bytes.
    pub lines: u64,
    pub bytes: u64,
    /// The SHA-256 of the copied bytes, in hex. It is the same on both sides.
    pub hash: String,
    /// The end of the log.
    pub sequence: u64,
    /// Whether the target has lines that the source does not have.
    pub is_behind: bool,
    /// Whether the log had lost lines, and got them back from the file.
    pub is_refilled: bool,
    /// Whether both the file and the log had new lines, so that the lines of the file are a branch now.
    pub is_branch: bool,
}

/// Copies into the log the lines that only the file of the session has, including lines that the log has lost. Fails
/// with `sessionDeleted` if the log is closed.
pub fn push(files: &SessionFiles<'_>, log: &dyn LogBackend, session: &str) -> Result<Transfer> {
    let at = found(files, session)?;
    let identity = log.identity(session)?;
    let mut began = None;
    let mut is_refilled = false;
    for _ in 0..ROUNDS {
        let record = ReplicaRecord::load(&at)?;
        let place = (&at, Tail::Ignored);
        let (compared, lost) = compare_with_lost(log, session, place, &identity, record.as_ref())?;
        is_refilled |= lost.is_some();
        let Comparison {
            at: mut agreed,
            relation,
            ..
        } = compared;
        check_open(log, &identity, &agreed, relation)?;
        let start = began.get_or_insert_with(|| agreed.clone()).clone();
        let is_done = match relation {
            Relation::FileAhead => append_rest(log, session, (&at, &identity), &mut agreed)?,
            Relation::Equal | Relation::LogAhead { .. } => true,
            Relation::Diverged { partial } => return Err(diverged(session, &agreed, partial)),
        };
        agreed.save(&identity, &at)?;
        if is_done {
            let pushed = verified(log, session, &at, (&start, 0, &agreed))?;
            return Ok(Transfer {
                is_behind: matches!(relation, Relation::LogAhead { .. }),
                is_refilled,
                ..pushed
            });
        }
    }
    Err(conflict(session))
}

pub(super) fn found(files: &SessionFiles<'_>, session: &str) -> Result<Location> {
    files.find(session)?.ok_or_else(|| {
        let why = format!("there is no session {session:?} in the session directory");
        Error::new(Kind::SessionNotFound, why)
    })
}

/// Fails with `sessionDeleted` if the log that was compared is closed. If the file and the log are different sessions
/// with the same id, this does not fail.
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

/// Appends the rest of a file to the log. Returns false if another program has appended meanwhile.
pub(super) fn append_rest(
    log: &dyn LogBackend,
    session: &str,
    (at, identity): (&Location, &LogIdentity),
    agreed: &mut Agreement,
) -> Result<bool> {
    let (most, longest) = (log.max_append(), log.max_line());
    // The sizes are checked before the first line is written. Otherwise a line that is too long could leave half of the
    // session in the log.
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
                "a line of session {session:?} has {} bytes, and an append to the team's stream at most {longest}",
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
            agreed.note_own();
            rest = part_after(rest, lines.len());
            if agreed.offset - saved >= SAVE {
                agreed.save(identity, at)?;
                saved = agreed.offset;
            }
        }
    }
    Ok(true)
}

/// The error of an append in a copy. If the lines are in the log in spite of the error, the next copy finds them.
fn to_be_continued(error: Error) -> Error {
    match error.kind {
        Kind::DurabilityUnknown => Error {
            retry_after_ms: Some(1000),
            ..Error::new(Kind::LogUnavailable, error.message)
        },
        _ => error,
    }
}

/// The whole lines at the beginning that have at most `most` bytes together, but at least one line.
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

/// Copies lines of a session's log into the file: the lines that the file does not have. Makes the file if there is
/// none. Fails with `sessionDeleted` if the log is closed.
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
                is_refilled: false,
            },
        };
        let Comparison {
            at: mut agreed,
            relation,
            ..
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
            let pulled = verified(log, session, &at, (&start, present, &agreed))?;
            return Ok(Transfer {
                is_behind: relation == Relation::FileAhead,
                ..pulled
            });
        }
    }
    Err(conflict(session))
}

/// Pulls a session, then writes each later part of the log to its file when the part arrives. Calls `written` after
/// each write. Ends only with an error.
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

/// Appends parts of a log to the file. The file already has `partial` bytes of the first part. Returns false if another
/// program has written to the file meanwhile.
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

/// Compares a file with a log, from the position in the saved record of the file on.
pub(super) fn compare_saved(
    log: &dyn LogBackend,
    session: &str,
    at: &Location,
    identity: &LogIdentity,
    tail: Tail,
) -> Result<Comparison> {
    let record = ReplicaRecord::load(at)?;
    compare(log, session, (at, tail), identity, record.as_ref())
}

pub(super) fn diverged(session: &str, agreed: &Agreement, partial: usize) -> Error {
    diverged_after(session, agreed.offset + partial as u64)
}

fn diverged_after(session: &str, offset: u64) -> Error {
    let why = format!(
        "the file and the stream of session {session:?} differ after byte {offset}, and neither is the beginning of the other"
    );
    Error::new(Kind::LogDiverged, why)
}

/// Reads the copied lines again from the file and the log. Fails unless the number of lines and the hash are equal.
/// Before the copy, the file had the first `present` bytes of the first part.
pub(super) fn verified(
    log: &dyn LogBackend,
    session: &str,
    at: &Location,
    (start, present, end): (&Agreement, usize, &Agreement),
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
        is_behind: false,
        is_refilled: false,
        is_branch: false,
    })
}

pub(super) fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
