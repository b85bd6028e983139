//! A session directory as a backend: each session is one file. A position is a number of bytes.

use super::backend::{AppendOutcome, LogBackend, LogIdentity, LogPart, LogParts, Position};
use serde::Deserialize;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use treelined_core::bytes::index;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id;
use treelined_core::timestamp;
use treelined_files::log::header::{CURRENT_VERSION, Header};
use treelined_files::os::FileAt;
use treelined_files::os::file::{self, Location};
use treelined_files::os::handle::HandleAccess;
use treelined_files::os::temporary::Temporary;
use treelined_files::store::{Store, listing};

/// The bytes of a part, unless a line is longer.
const PART: usize = 1 << 20;
/// How long an append waits for the lock of a session file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(2);
/// How long a follower waits for the watcher before it reads the file itself.
const LOOK: Duration = Duration::from_secs(5);

/// The session files of a session directory.
pub struct SessionFiles<'s> {
    store: &'s Store,
    /// The file of one session, if the caller names a file.
    given: Option<(String, Location)>,
}

impl<'s> SessionFiles<'s> {
    pub fn of(store: &'s Store) -> Self {
        Self { store, given: None }
    }

    /// Like [`Self::of`], but one session is in this file, wherever the file is. Also returns the id of that session.
    pub fn with_file(store: &'s Store, at: Location) -> Result<(Self, String)> {
        let Some(header) = listing::header(&at) else {
            let why = format!("{} has no session header", at.path().display());
            return Err(Error::new(Kind::HeaderMissing, why));
        };
        let given = Some((header.id.clone(), at));
        Ok((Self { store, given }, header.id))
    }

    /// The file of a session; `None` if the session has none.
    pub(super) fn find(&self, session: &str) -> Result<Option<Location>> {
        if let Some((id, at)) = &self.given
            && id == session
        {
            return Ok(Some(at.clone()));
        }
        match self.store.find(session) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind == Kind::SessionNotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self, session: &str, lines: &[u8]) -> Result<AppendOutcome> {
        let header = header_of(session, lines)?;
        let _claimed = match self.store.claim(session) {
            Err(error) if error.kind == Kind::SessionExists => return Ok(AppendOutcome::Conflict),
            claimed => claimed?,
        };
        let at = self.store.place(&header)?;
        let made = (|| {
            let new = Temporary::for_name(&at.folder, &at.name)?;
            (&**new.file()).write_all(lines)?;
            new.file().sync_all()?;
            new.name_new(&at)?;
            at.folder.sync()
        })();
        match made {
            Ok(()) => Ok(AppendOutcome::Appended(Position(lines.len() as u64))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => complete(&at, lines),
            Err(error) => Err(Error::io(&format!("write {}", at.path().display()), &error)),
        }
    }
}

/// Writes the rest of a session's first lines into a file that has only a part of them, for example after a crash. If
/// the file has other bytes, the outcome is a conflict. Fails if the file has no session header.
fn complete(at: &Location, lines: &[u8]) -> Result<AppendOutcome> {
    let failed = |error: io::Error| Error::io(&format!("write {}", at.path().display()), &error);
    let mut file = at.folder.file(&at.name, HandleAccess::Append)?;
    lock_file(&file)?;
    let size = file::status_of(&file).map_err(failed)?.size;
    let present = bytes_of(at, 0, size.min(lines.len() as u64))?;
    match lines.strip_prefix(&*present) {
        Some(rest) if (present.len() as u64) == size => {
            file.write_all(rest).map_err(failed)?;
            file.sync_all().map_err(failed)?;
            Ok(AppendOutcome::Appended(Position(lines.len() as u64)))
        }
        _ if listing::header(at).is_some() => Ok(AppendOutcome::Conflict),
        _ => {
            let why = format!(
                "{} has no session header: it is in the way of the session of the team",
                at.path().display()
            );
            Err(Error::new(Kind::HeaderMissing, why))
        }
    }
}

impl LogBackend for SessionFiles<'_> {
    fn append(&self, session: &str, expected: Position, lines: &[u8]) -> Result<AppendOutcome> {
        if expected == Position::START {
            return self.create(session, lines);
        }
        let Some(at) = self.find(session)? else {
            return Ok(AppendOutcome::Conflict);
        };
        let failed =
            |error: io::Error| Error::io(&format!("write {}", at.path().display()), &error);
        let mut file = at.folder.file(&at.name, HandleAccess::Append)?;
        lock_file(&file)?;
        let status = file::status_of(&file).map_err(failed)?;
        let named = at.status().map_err(failed)?;
        if named.identity != status.identity || Position(status.size) != expected {
            return Ok(AppendOutcome::Conflict);
        }
        file.write_all(lines).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        Ok(AppendOutcome::Appended(Position(
            status.size + lines.len() as u64,
        )))
    }

    fn read<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>> {
        let Some(at) = self.find(session)? else {
            return Ok(Box::new(std::iter::empty()));
        };
        Ok(Box::new(parts(&at, from.0)?))
    }

    fn follow<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>> {
        let changed = Arc::new((Mutex::new(false), Condvar::new()));
        let notified = Arc::clone(&changed);
        let watch = self.store.watch(move || {
            *treelined_files::lock::lock(&notified.0) = true;
            notified.1.notify_all();
        })?;
        let session = session.to_owned();
        let (mut parts, mut end) = (self.read(&session, from)?, from);
        Ok(Box::new(std::iter::from_fn(move || {
            let _watch = &watch;
            loop {
                match parts.next() {
                    Some(Ok(part)) => {
                        end = part.end;
                        return Some(Ok(part));
                    }
                    Some(Err(error)) => return Some(Err(error)),
                    None => {}
                }
                let waiting = treelined_files::lock::lock(&changed.0);
                let waited = changed
                    .1
                    .wait_timeout_while(waiting, LOOK, |changed| !*changed);
                if let Ok((mut changed, _)) = waited {
                    *changed = false;
                }
                match self.read(&session, end) {
                    Ok(later) => parts = later,
                    Err(error) => return Some(Err(error)),
                }
            }
        })))
    }

    fn list_after(&self, after: Option<&str>) -> Result<Vec<String>> {
        let files = self.store.session_files()?;
        let ids = files.iter().filter_map(|(at, _)| listing::header_id(at));
        let is_later = |id: &String| after.is_none_or(|after| **id > *after);
        let mut ids: Vec<String> = ids.filter(is_later).collect();
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    fn identity(&self, session: &str) -> Result<LogIdentity> {
        Ok(LogIdentity {
            session: session.to_owned(),
            stream: self.store.path().display().to_string(),
            created: String::new(),
            subject: session.to_owned(),
        })
    }

    fn max_append(&self) -> usize {
        usize::MAX
    }
}

/// The whole lines of a file after its first `from` bytes.
pub(super) fn parts(at: &Location, from: u64) -> Result<FileParts> {
    Ok(FileParts {
        file: at.folder.file(&at.name, HandleAccess::Read)?,
        at: at.clone(),
        end: from,
        has_tail: false,
    })
}

/// Like [`parts`], but also returns the bytes after the last line break.
pub(super) fn parts_and_tail(at: &Location, from: u64) -> Result<FileParts> {
    let parts = parts(at, from)?;
    Ok(FileParts {
        has_tail: true,
        ..parts
    })
}

/// The whole lines of a file. Bytes after the last line break may be a line that is being written. They are left out,
/// unless the reader wants them.
pub(super) struct FileParts {
    file: File,
    at: Location,
    end: u64,
    has_tail: bool,
}

impl Iterator for FileParts {
    type Item = Result<LogPart>;

    fn next(&mut self) -> Option<Self::Item> {
        let failed =
            |error: io::Error| Error::io(&format!("read {}", self.at.path().display()), &error);
        let mut lines = Vec::new();
        let mut wanted = PART;
        loop {
            let had = lines.len();
            lines.resize(wanted, 0);
            let mut filled = had;
            while filled < wanted {
                let rest = lines.get_mut(filled..).unwrap_or_default();
                match self.file.read_at(rest, self.end + filled as u64) {
                    Ok(0) => break,
                    Ok(read) => filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Some(Err(failed(error))),
                }
            }
            lines.truncate(filled);
            let fresh = lines.get(had..).unwrap_or_default();
            let last = memchr::memrchr(b'\n', fresh).map(|last| had + last + 1);
            let is_tail = last.is_none() && self.has_tail && filled < wanted && filled > 0;
            if let Some(whole) = last.or(is_tail.then_some(filled)) {
                lines.truncate(whole);
                self.end += lines.len() as u64;
                let end = Position(self.end);
                return Some(Ok(LogPart { lines, end }));
            }
            if filled < wanted {
                return None;
            }
            wanted *= 2;
        }
    }
}

/// The bytes in a range of a file. There are fewer bytes if the file is shorter.
pub(super) fn bytes_of(at: &Location, start: u64, length: u64) -> Result<Vec<u8>> {
    let file = at.folder.file(&at.name, HandleAccess::Read)?;
    let mut bytes = vec![0; index(length)];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let read = file.read_at(rest, start + filled as u64);
        match read.map_err(|error| Error::io(&format!("read {}", at.path().display()), &error))? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

pub(super) fn lock_file(file: &File) -> Result<()> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) if file::is_lock_unsupported(&error) => return Ok(()),
            Err(TryLockError::Error(error)) => {
                return Err(Error::io("lock the session file", &error));
            }
            Err(TryLockError::WouldBlock) if began.elapsed() > LOCK_TIMEOUT => {
                let why = "another process holds the lock of the session file";
                return Err(Error::new(Kind::SessionLocked, why));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
        }
    }
}

/// The members of a header that decide the path of its file.
#[derive(Deserialize)]
struct HeaderLine {
    r#type: String,
    #[serde(default)]
    version: f64,
    id: String,
    timestamp: String,
    #[serde(default)]
    cwd: String,
}

/// The header at the beginning of a log. Its members become names of files, so only a well-formed header is accepted.
pub(super) fn header_of(session: &str, lines: &[u8]) -> Result<Header> {
    let foreign = |why: &str| {
        let why =
            format!("the stream of session {session:?} does not begin with its header: {why}");
        Error::new(Kind::LogForeign, why)
    };
    let first = lines
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let header: HeaderLine =
        serde_json::from_slice(first).map_err(|error| foreign(&error.to_string()))?;
    if header.r#type != "session" {
        return Err(foreign("the first line is not a header"));
    }
    if header.version < CURRENT_VERSION as f64 {
        return Err(foreign("it is of an older version of the format"));
    }
    if header.id != session {
        return Err(foreign(&format!(
            "the header is of session {:?}",
            header.id
        )));
    }
    if !id::is_valid(&header.id) {
        return Err(foreign("the id is not well formed"));
    }
    let created = timestamp::parse(&header.timestamp);
    let created = created.ok_or_else(|| foreign("the timestamp is not an RFC 3339 time"))?;
    Ok(Header::new(&header.id, created, &header.cwd, None))
}
