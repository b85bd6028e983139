//! The socket of the shared daemon of a session directory: where it is, and how a daemon is started for it (protocol.md
//! §10).
//!
//! In reading order: [`place`] has the path of the socket and of the files beside it, and checks their folder.
//! [`reach`] connects to the socket, and checks which user is on the other side. [`start_lock`] lets only one process
//! at a time bind the socket. [`runtime_file`] describes the daemon, and the lock of that file says whether the daemon
//! lives. [`activation`] takes a socket that systemd has bound. [`detached`] starts a daemon without a terminal.
//! [`log_file`] limits the size of the daemon's log.

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

/// The number of connections that can wait to be accepted. The system may have a lower limit.
const BACKLOG: i32 = 4096;

/// A socket on which a daemon listens, with the runtime file that describes the daemon. Both are removed on drop,
/// unless another daemon has replaced them.
pub struct Endpoint {
    place: Place,
    info: DaemonInfo,
    /// The identity of the socket file. `None` if systemd has bound the socket, since systemd keeps the file.
    bound: Option<Identity>,
    runtime_file: Option<RuntimeFile>,
}

/// Binds the socket, writes the runtime file, and listens. Fails if another daemon listens on the socket.
///
/// `lock` is the lock that a starter has passed on. Without one, this function takes the lock. The lock is released at
/// the end of this function, since the socket itself then shows that a daemon runs.
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

/// Removes the socket of a daemon that has died. Fails if a daemon listens on it. The caller must hold the lock.
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
    /// Binds the socket and listens. The caller must hold the lock.
    fn bind(&mut self, info: &DaemonInfo) -> anyhow::Result<Listener> {
        let path = self.place.socket();
        make_room(&self.place)?;
        let socket =
            socket::bind(path).with_context(|| format!("make the socket {}", path.display()))?;
        self.bound = identity_of(path);
        // No client can connect before `listen`, so each client finds the runtime file.
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

    /// Removes the socket and the runtime file, so that another daemon can start while this one ends. If another daemon
    /// has replaced them, they stay.
    pub(crate) fn withdraw(&mut self) {
        // A starter with the lock checks the socket and then acts, so the socket must not vanish in between.
        let lock = StartLock::take(&self.place, LOCK_TIMEOUT);
        if let Err(error) = &lock {
            tracing::warn!("the socket stays: {error:#}");
            return;
        }
        self.remove_files();
    }

    /// The caller must hold the lock.
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
