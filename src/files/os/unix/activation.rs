//! The socket that systemd passes to the program that it starts.

use super::socket::Listener;
use listenfd::ListenFd;
use std::io;

/// The sockets that the starter has passed to this process. Taking them removes the variables that name them, so that
/// no child takes them for its own.
pub struct PassedSockets(ListenFd);

impl PassedSockets {
    /// `None` if there are none for this process. Call it before threads start, and before files are opened.
    pub fn take() -> Option<Self> {
        let pid = std::env::var("LISTEN_PID").ok();
        let is_ours = pid == Some(std::process::id().to_string());
        is_ours.then(|| Self(ListenFd::from_env()))
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The first one; `None` if it was taken. Fails if it is not a listening socket of the file system.
    pub fn first(&mut self) -> io::Result<Option<Listener>> {
        self.0.take_unix_listener(0)
    }
}
