//! Where the shared daemon of a session directory is found, and how one is started (protocol.md §10).
//!
//! In reading order: [`place`] has the path of the socket and of the files beside it, and checks their folder.
//! [`reach`] connects, and checks who is on the other side. [`start_lock`] lets one process at a time bind the
//! socket. [`runtime_file`] describes the daemon, and its lock says whether the daemon lives. [`activation`]
//! takes a socket that systemd has bound. [`detached`] starts a daemon without a terminal. [`log_file`] bounds
//! the size of its log.

mod activation;
pub mod detached;
pub mod log_file;
pub mod place;
pub mod reach;
pub mod runtime_file;
pub mod start_lock;
#[cfg(test)]
mod tests;

pub use activation::PassedSocket;
pub use detached::Detached;
pub use place::Place;
pub(crate) use reach::peer_is_same_user;
pub use start_lock::START_TIMEOUT;

use anyhow::{Context, bail};
use place::remove;
use reach::Reach;
use runtime_file::{AccessInfo, DaemonInfo, RuntimeFile};
use start_lock::{LOCK_TIMEOUT, StartLock};
use std::fs;
use treelined_files::os::file::{Identity, identity_of};
use treelined_files::os::socket::{self, Listener};

/// Connections that wait to be accepted. The system lowers it to its own limit.
const BACKLOG: i32 = 4096;

/// A socket on which a daemon listens, with the runtime file that describes it. Both are removed on drop, unless
/// another daemon has replaced them.
pub struct Endpoint {
    place: Place,
    info: DaemonInfo,
    /// The socket file; `None` if systemd has bound it, and keeps it.
    bound: Option<Identity>,
    runtime_file: Option<RuntimeFile>,
}

/// Binds the socket, writes the runtime file, and listens. Fails if another daemon listens there.
///
/// `lock` is the lock that a starter has passed on; without one it is taken here. It is released at the end: from
/// then on, the socket itself shows that a daemon runs.
pub fn listen(
    place: &Place,
    info: &DaemonInfo,
    passed: Option<PassedSocket>,
    lock: Option<StartLock>,
) -> anyhow::Result<(Endpoint, Listener)> {
    place.prepare()?;
    let _lock = match lock {
        Some(lock) => lock,
        None => StartLock::take(place, LOCK_TIMEOUT)?,
    };
    let mut endpoint = Endpoint {
        place: place.clone(),
        info: info.clone(),
        bound: None,
        runtime_file: None,
    };
    let listening = match passed {
        Some(passed) => RuntimeFile::write(place, info).map(|file| {
            endpoint.runtime_file = Some(file);
            passed.listener
        }),
        None => endpoint.bind(info),
    };
    match listening {
        Ok(listener) => Ok((endpoint, listener)),
        Err(error) => {
            endpoint.remove_files();
            Err(error)
        }
    }
}

/// Removes the socket of a daemon that has died. Fails if a daemon lives there. Call it with the lock.
fn make_room(place: &Place) -> anyhow::Result<()> {
    match reach::reach(place)? {
        Reach::Absent => Ok(()),
        Reach::Stale => {
            let path = place.socket();
            fs::remove_file(path)
                .with_context(|| format!("remove the socket of a dead daemon, {}", path.display()))
        }
        Reach::Connected(_) => {
            let of = match runtime_file::read(place)? {
                Some(found) => format!(" (pid {})", found.info.pid),
                None => String::new(),
            };
            bail!(
                "a daemon{of} listens on {} already; use `treelined connect`, or end it with `treelined stop`",
                place.socket().display()
            )
        }
    }
}

impl Endpoint {
    /// Binds the socket and listens. Call it with the lock.
    fn bind(&mut self, info: &DaemonInfo) -> anyhow::Result<Listener> {
        let path = self.place.socket();
        make_room(&self.place)?;
        let socket =
            socket::bind(path).with_context(|| format!("make the socket {}", path.display()))?;
        self.bound = identity_of(path);
        // A client that connects finds the runtime file, since nobody can connect before `listen`.
        self.runtime_file = Some(RuntimeFile::write(&self.place, info)?);
        socket
            .listen(BACKLOG)
            .with_context(|| format!("listen on {}", path.display()))
    }

    /// Adds the URL of the WebSocket and its token to the runtime file.
    pub(crate) fn announce_web(&mut self, web_socket: &str, token: &str) -> anyhow::Result<()> {
        self.info.web_socket = Some(web_socket.to_owned());
        self.info.token = Some(token.to_owned());
        match &mut self.runtime_file {
            Some(file) => file.rewrite(&self.place, &self.info),
            None => Ok(()),
        }
    }

    /// Adds the sockets of limited connections to the runtime file.
    pub fn announce_access(&mut self, access: Vec<AccessInfo>) -> anyhow::Result<()> {
        self.info.access = access;
        match &mut self.runtime_file {
            Some(file) => file.rewrite(&self.place, &self.info),
            None => Ok(()),
        }
    }

    /// Removes the socket and the runtime file, so that another daemon can start while this one ends. The socket and
    /// the file of another daemon stay.
    pub(crate) fn withdraw(&mut self) {
        // A starter that holds the lock decides by the socket, so the socket must not vanish under it.
        let lock = StartLock::take(&self.place, LOCK_TIMEOUT);
        if let Err(error) = &lock {
            tracing::warn!("the socket stays: {error:#}");
            return;
        }
        self.remove_files();
    }

    /// Call it with the lock.
    fn remove_files(&mut self) {
        if let Some(bound) = self.bound.take()
            && identity_of(self.place.socket()) == Some(bound)
        {
            remove(self.place.socket());
        }
        if let Some(file) = self.runtime_file.take() {
            file.remove(&self.place);
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.bound.is_some() || self.runtime_file.is_some() {
            self.withdraw();
        }
    }
}
