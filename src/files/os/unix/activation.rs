//! The socket that systemd passes to the program that it starts.

use super::socket::Listener;
use listenfd::ListenFd;
use std::io;

/// The sockets that this process got from the program that started it. Constructing this value removes the environment
/// variables that name the sockets, so that a child process does not use them.
pub struct PassedSockets(ListenFd);

impl PassedSockets {
    /// The passed sockets; `None` if there are none for this process. Call this before threads start, and before files
    /// are opened.
    pub fn take() -> Option<Self> {
        let pid = std::env::var("LISTEN_PID").ok();
        let is_ours = pid == Some(std::process::id().to_string());
        is_ours.then(|| Self(ListenFd::from_env()))
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The first socket; `None` if it was taken already. Fails if it is not a listening Unix socket.
    pub fn first(&mut self) -> io::Result<Option<Listener>> {
        self.0.take_unix_listener(0)
    }
}
