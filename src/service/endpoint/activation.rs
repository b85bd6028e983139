//! Socket activation: systemd binds the socket, starts the daemon at the first connection, and passes the socket to it.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use treelined_files::os::activation::PassedSockets;
pub(crate) use treelined_files::os::socket::Listener;

/// The socket that systemd has passed.
pub struct PassedSocket {
    pub(super) listener: Listener,
    pub path: PathBuf,
}

impl PassedSocket {
    /// Takes the passed socket; `None` if this process got none. Must be called before threads start and before files
    /// are opened. It removes the environment variables of systemd, so that no child process uses the socket as its
    /// own.
    pub fn take() -> anyhow::Result<Option<Self>> {
        let Some(mut passed) = PassedSockets::take() else {
            return Ok(None);
        };
        if passed.count() != 1 {
            bail!(
                "systemd has passed {} sockets (LISTEN_FDS): the unit must have exactly one ListenStream=",
                passed.count()
            );
        }
        let listener = passed
            .first()
            .context("take the socket that systemd has passed as descriptor 3")?;
        let listener = listener.context("systemd has passed no socket")?;
        let address = listener
            .local_addr()
            .context("ask for the path of the passed socket")?;
        let Some(path) = address.as_pathname() else {
            bail!("the socket that systemd has passed has no path: ListenStream= must name a file");
        };
        // A unit can pass a socket that does not block (`NonBlocking=`), but the thread that accepts must wait.
        listener
            .set_nonblocking(false)
            .context("make the passed socket wait")?;
        Ok(Some(Self {
            path: path.to_owned(),
            listener,
        }))
    }

    /// Fails if the option names another socket than systemd has passed.
    pub fn check(&self, option: Option<&Path>) -> anyhow::Result<()> {
        match option {
            Some(option) if option != self.path => bail!(
                "the options name the socket {}, and systemd has passed {}: leave one out",
                option.display(),
                self.path.display()
            ),
            _ => Ok(()),
        }
    }
}
