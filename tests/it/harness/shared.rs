//! A daemon that serves a socket, and its clients.

use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::daemon::read_stderr;
use super::*;

/// A running daemon that serves a socket instead of stdio. Dropping it ends it with SIGTERM, and checks that the exit
/// code is 0 and that stderr is empty.
pub(crate) struct SharedDaemon {
    pub home: Arc<Home>,
    pub socket: PathBuf,
    child: Child,
    stderr: Option<JoinHandle<String>>,
    /// Whether output on stderr is allowed.
    pub may_warn: bool,
}

impl SharedDaemon {
    #[track_caller]
    pub(crate) fn start() -> SharedDaemon {
        SharedDaemon::start_with(&[], &[])
    }

    #[track_caller]
    pub(crate) fn start_with(args: &[&str], env: &[(&str, &str)]) -> SharedDaemon {
        SharedDaemon::start_in(&Home::new(), args, env)
    }

    /// Starts a daemon with these arguments after `serve --listen`.
    #[track_caller]
    pub(crate) fn start_in(home: &Arc<Home>, args: &[&str], env: &[(&str, &str)]) -> SharedDaemon {
        let socket = home.files().join("daemon.sock");
        let address = format!("unix:{}", socket.display());
        let mut all = vec!["serve", "--listen", &address];
        all.extend(args);
        let mut child = home.command(&all, env).spawn().expect("the daemon starts");
        let stderr = read_stderr(&mut child);
        let until = Instant::now() + DEADLINE;
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            let ended = child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "ended: {ended:?} {}",
                stderr.join().unwrap()
            );
            assert!(Instant::now() < until, "the daemon does not listen");
            thread::sleep(Duration::from_millis(2));
        }
        SharedDaemon {
            home: home.clone(),
            socket,
            child,
            stderr: Some(stderr),
            may_warn: false,
        }
    }

    /// A client that has not sent `initialize`.
    #[track_caller]
    pub(crate) fn connect(&self) -> Daemon {
        Daemon::connected(&self.home, &self.socket)
    }

    /// A client that has sent `initialize` with this name and these capabilities. It works in the directory of the
    /// home, and ignores bookkeeping.
    #[track_caller]
    pub(crate) fn client(&self, name: &str, capabilities: Json) -> Daemon {
        let mut client = self.connect();
        client.ignore_bookkeeping();
        client.initialize(json!({
            "protocolVersion": 1,
            "clientInfo": {"name": name},
            "cwd": self.home.cwd(),
            "capabilities": capabilities,
        }));
        client
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Waits until the daemon ends, and returns its exit code.
    #[track_caller]
    pub(crate) fn exited(&mut self) -> Option<i32> {
        wait(&mut self.child, DEADLINE)
    }
}

impl Drop for SharedDaemon {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.child.kill();
            let _ = self.child.wait();
            return;
        }
        if self.child.try_wait().unwrap().is_none() {
            self.signal(rustix::process::Signal::TERM);
        }
        let code = self.exited();
        let stderr = self.stderr.take().map(|thread| thread.join().unwrap());
        let stderr = stderr.unwrap_or_default();
        assert_eq!(code, Some(0), "exit code; stderr: {stderr}");
        assert!(stderr.is_empty() || self.may_warn, "stderr: {stderr}");
    }
}
