//! Opens a database without writing into its folder.
//!
//! SQLite writes into the folder of a database in two cases. In write-ahead mode it makes the files `-wal` and `-shm`.
//! If a crash has left a file `-journal`, it rolls back the changes of the last transaction. In these cases the
//! database is copied together with these files, and the copy is opened. Every other database is opened in place, read
//! only.

use super::super::native::{FaultKind, NativeError};
use super::fault::failed;
use crate::importer::limits::Limits;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use treelined_files::os::file::{Identity, make_private_folder, status_of};

/// The longest wait for another program's lock.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 5_000 });
/// How often a copy is tried while other programs write the database, and the pause between two attempts.
const ATTEMPTS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(60);
/// The precision of the times of files, in nanoseconds.
const TICK_NANOS: i64 = 20_000_000;
/// The number of bytes in the header of a `-wal`. They change when SQLite writes the log from its beginning again.
const WAL_HEADER: usize = 32;
/// The number of bytes at the beginning of a database that are read. Byte 18 is 2 in write-ahead mode.
const HEADER: usize = 20;
/// The size of SQLite's cache for a database, in KiB.
const CACHE_KIB: i64 = 8_192;

/// Opens the database at `path`. If a copy is needed, it is made in a new folder in `scratch`.
pub(super) fn open(path: &Path, scratch: &Path) -> Result<Connection, NativeError> {
    // If `path` is a symbolic link, the other files of the database are beside its target.
    let path = fs::canonicalize(path).map_err(|error| NativeError::io(&error))?;
    let (header, _) = beginning(&path, HEADER)?;
    let is_write_ahead = header.get(18) == Some(&2);
    let has_more = ["-wal", "-journal"]
        .iter()
        .any(|end| with_ending(&path, end).exists());
    let connection = match is_write_ahead || has_more {
        true => open_copy(&path, scratch)?,
        false => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(&path, flags).map_err(failed)?
        }
    };
    protect(&connection).map_err(failed)?;
    Ok(connection)
}

/// Makes a connection distrust the schema, detect damage, and never write.
fn protect(connection: &Connection) -> rusqlite::Result<()> {
    limit_values(connection, Limits::default().value)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "query_only", true)
}

/// Makes SQLite refuse values and rows of more than `most` bytes before it reads them.
pub(super) fn limit_values(connection: &Connection, most: u64) -> rusqlite::Result<()> {
    let most = i32::try_from(most).unwrap_or(i32::MAX);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, most)?;
    Ok(())
}

fn open_copy(path: &Path, scratch: &Path) -> Result<Connection, NativeError> {
    let folder = PrivateFolder::new(scratch).map_err(NativeError::Output)?;
    let copy = folder.0.join("copy.db");
    let mut attempt = 1;
    while !copy_files(path, &copy)? {
        attempt += 1;
        if attempt > ATTEMPTS {
            let message = "another program keeps writing the database: close it, or import again";
            return Err(NativeError::new(FaultKind::Locked, message));
        }
        std::thread::sleep(PAUSE);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&copy, flags).map_err(failed)?;
    // In this mode SQLite needs no `-shm`. The first read replays the log or rolls the journal back.
    connection
        .pragma_update(None, "locking_mode", "EXCLUSIVE")
        .map_err(failed)?;
    let tables = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| {
        row.get::<_, i64>(0)
    });
    tables.map_err(failed)?;
    // The files stay open after the folder is removed, so a killed process leaves no files.
    Ok(connection)
}

/// Copies a database with its other files. False if the database changed during the copy.
///
/// The `-shm` is not copied: it is an index of the `-wal` in shared memory, which SQLite makes again.
fn copy_files(path: &Path, copy: &Path) -> Result<bool, NativeError> {
    let endings = ["", "-wal", "-journal"];
    let before = endings.map(|ending| Trace::of(&with_ending(path, ending)));
    if before.iter().flatten().any(Trace::is_fresh) {
        return Ok(false);
    }
    for (ending, trace) in endings.iter().zip(&before) {
        let to = with_ending(copy, ending);
        match (trace, *ending) {
            (Ok(_), _) => drop(
                fs::copy(with_ending(path, ending), to).map_err(|error| NativeError::io(&error))?,
            ),
            (Err(error), "") => return Err(NativeError::io(error)),
            (Err(error), _) if error.kind() != io::ErrorKind::NotFound => {
                return Err(NativeError::io(error));
            }
            (Err(_), _) => drop(fs::remove_file(to)),
        }
    }
    let after = endings.map(|ending| Trace::of(&with_ending(path, ending)));
    // A log may have grown during the copy: SQLite does not replay frames that are incomplete.
    Ok(before
        .iter()
        .zip(&after)
        .all(|(before, after)| match (before, after) {
            (Ok(before), Ok(after)) => before == after,
            (Err(_), Err(_)) => true,
            _ => false,
        }))
}

/// The properties of a file that must not change while it is copied.
#[derive(Debug, PartialEq, Eq)]
struct Trace {
    beginning: Vec<u8>,
    identity: Identity,
    /// The size and the time; `None` for a log, which may grow.
    content: Option<(u64, i64, i64)>,
}

impl Trace {
    /// Whether the file is so new that a further change might not change its time.
    fn is_fresh(&self) -> bool {
        let Some((_, seconds, nanos)) = self.content else {
            return false;
        };
        let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else {
            return false;
        };
        let now = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let modified = seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        (0..TICK_NANOS).contains(&now.saturating_sub(modified))
    }

    fn of(path: &Path) -> io::Result<Self> {
        let is_log = path.as_os_str().as_encoded_bytes().ends_with(b"-wal");
        let mut file = open_file(path)?;
        let (beginning, metadata) = read_beginning(&mut file, WAL_HEADER)?;
        let status = status_of(&file)?;
        let content = (metadata.len(), status.modified.0, status.modified.1);
        Ok(Self {
            beginning,
            identity: status.identity,
            content: (!is_log).then_some(content),
        })
    }
}

fn beginning(path: &Path, len: usize) -> Result<(Vec<u8>, Metadata), NativeError> {
    let mut file = open_file(path).map_err(|error| NativeError::io(&error))?;
    read_beginning(&mut file, len).map_err(|error| NativeError::io(&error))
}

/// Opens a regular file. To open a file of another kind, such as a pipe, could block for ever.
fn open_file(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    File::open(path)
}

fn read_beginning(file: &mut File, len: usize) -> io::Result<(Vec<u8>, Metadata)> {
    let mut bytes = Vec::new();
    file.take(len as u64).read_to_end(&mut bytes)?;
    Ok((bytes, file.metadata()?))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// A new folder that only its owner can read. It is removed on drop.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn new(parent: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        for _ in 0..1_000 {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!(".import-{}-{number}.treelined.tmp", std::process::id());
            let folder = parent.join(name);
            match make_private_folder(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| Self(folder)),
            }
        }
        Err(io::Error::other("no folder for a copy can be made"))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
