//! Connects to the socket, and checks the user on the other side.

use super::place::Place;
use super::start_lock::{LOCK_TIMEOUT, START_TIMEOUT, StartLock};
use anyhow::{Context, bail};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use treelined_files::os::file::owner_and_mode;
use treelined_files::os::process;
use treelined_files::os::socket::{self, Stream};

/// The pause between two tries while another process starts a daemon.
const PAUSE: Duration = Duration::from_millis(5);
/// A message that every daemon answers at once, since it is a request without a method.
const PROBE: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":0}\n";

/// The state of a socket.
pub(super) enum Reach {
    Connected(Stream),
    /// There is no socket.
    Absent,
    /// The socket of a daemon that has died.
    Stale,
}

/// Whether the process on the other side of a connection belongs to this user. The daemon must check this for each
/// accepted connection before it reads anything.
pub(crate) fn peer_is_same_user(stream: &Stream) -> io::Result<bool> {
    Ok(socket::peer(stream)?.user == process::effective_user())
}

/// Connects to the socket. Fails if the path has anything but a socket of this user, or if no process accepts in time.
pub(super) fn reach(place: &Place) -> anyhow::Result<Reach> {
    let path = place.socket();
    if !is_socket(path)? {
        return Ok(Reach::Absent);
    }
    let stream = match socket::connect(path, START_TIMEOUT) {
        Ok(stream) => stream,
        Err(error) => match error.kind() {
            ErrorKind::ConnectionRefused => return Ok(Reach::Stale),
            ErrorKind::NotFound => return Ok(Reach::Absent),
            ErrorKind::WouldBlock => bail!(silent(path, None)),
            _ => return Err(error).with_context(|| format!("connect to {}", path.display())),
        },
    };
    let peer = socket::peer(&stream).context("ask for the user of the socket")?;
    // Root has all rights already, and binds sockets for the services of other users.
    if peer.user != process::effective_user() && peer.user != 0 {
        bail!(
            "{} is served by another user (uid {}): give another path with --socket",
            path.display(),
            peer.user
        );
    }
    Ok(Reach::Connected(stream))
}

/// Whether the path has a socket of this user. Fails if it has anything else.
fn is_socket(path: &Path) -> anyhow::Result<bool> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let shown = path.display();
    let kind = metadata.file_type();
    if kind.is_symlink() {
        bail!(
            "{shown} is a symbolic link in place of a socket: remove it, or give another path with --socket"
        );
    }
    if !socket::is_socket(kind) {
        bail!("{shown} is not a socket: remove it, or give another path with --socket");
    }
    let (uid, mode) = owner_and_mode(&metadata).context("ask for the owner of the socket")?;
    let own = process::effective_user();
    if uid != own && uid != 0 {
        bail!("{shown} belongs to another user (uid {uid}): give another path with --socket");
    }
    if mode & 0o022 != 0 {
        bail!(
            "{shown} can be written by others; use chmod go-w, or give another path with --socket"
        );
    }
    Ok(true)
}

/// Connects to the running daemon; `None` if no daemon runs. Waits while another process starts a daemon.
pub fn find(place: &Place) -> anyhow::Result<Option<Stream>> {
    if !place.check()? {
        return Ok(None);
    }
    let began = Instant::now();
    loop {
        // The lock must be checked first. If a starter ends between the two checks, its daemon listens, and the second
        // check finds the daemon.
        let is_starting = StartLock::is_taken(place);
        match reach(place)? {
            Reach::Connected(stream) => return Ok(Some(stream)),
            Reach::Absent | Reach::Stale if !is_starting => return Ok(None),
            _ if began.elapsed() > LOCK_TIMEOUT => bail!(StartLock::held(place)),
            _ => std::thread::sleep(PAUSE),
        }
    }
}

/// Connects to the running daemon. If no daemon runs, calls `start` to start one. `start` holds the lock until the
/// daemon listens.
pub fn find_or_start(
    place: &Place,
    start: impl FnOnce(StartLock) -> anyhow::Result<()>,
) -> anyhow::Result<Stream> {
    place.prepare()?;
    let began = Instant::now();
    loop {
        if let Reach::Connected(stream) = reach(place)? {
            return Ok(stream);
        }
        if let Some(lock) = StartLock::try_take(place)? {
            // Another starter may have started a daemon before this lock was taken.
            if let Reach::Connected(stream) = reach(place)? {
                return Ok(stream);
            }
            start(lock)?;
            return match reach(place)? {
                Reach::Connected(stream) => Ok(stream),
                _ => bail!(
                    "the daemon has started and ended at once; see {}",
                    place.log_file().display()
                ),
            };
        }
        if began.elapsed() > LOCK_TIMEOUT {
            bail!(StartLock::held(place));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Fails unless the daemon answers a message in time. A connection alone proves nothing, since a stopped process
/// accepts connections too.
pub fn probe(place: &Place) -> anyhow::Result<()> {
    let path = place.socket();
    let Reach::Connected(mut stream) = reach(place)? else {
        bail!("no daemon listens on {}", path.display());
    };
    let mut answer = Vec::new();
    let asked = stream
        .set_read_timeout(Some(START_TIMEOUT))
        .and_then(|()| stream.write_all(PROBE))
        // The whole answer is read: if a connection is closed with unread bytes, the daemon sees an error.
        .and_then(|()| BufReader::new(&stream).read_until(b'\n', &mut answer));
    match asked {
        Ok(1..) => Ok(()),
        Ok(0) => bail!(
            "the daemon on {} closes connections at once",
            path.display()
        ),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            let peer = socket::peer(&stream).ok().and_then(|peer| peer.process);
            bail!(silent(path, peer))
        }
        Err(error) => Err(error).with_context(|| format!("ask the daemon on {}", path.display())),
    }
}

fn silent(path: &Path, process: Option<u32>) -> String {
    let path = path.display();
    let (name, remedy) = match process {
        Some(pid) => (format!("process {pid}"), format!("`kill -9 {pid}`")),
        None => ("the process".to_owned(), format!("`fuser -k {path}`")),
    };
    format!(
        "{name} listens on {path}, and does not answer: end it ({remedy}), or give another path with --socket"
    )
}
