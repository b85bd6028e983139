//! A server of its own, for tests of TLS, credentials and connections.

use crate::support::Machine;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running server, ended when dropped.
pub(crate) struct Single {
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    process: Child,
}

impl Single {
    /// Starts a server with these lines in its configuration. `None` where the tests run without servers.
    pub(crate) fn start(lines: impl FnOnce(&Path) -> String) -> Option<Self> {
        std::env::var_os("TREELINED_FLEET")?;
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {:?}, sync_interval: always }}\n{}\n",
            folder.path().join("data"),
            lines(folder.path())
        );
        fs::write(folder.path().join("server.conf"), config).unwrap();
        let process = launch(folder.path());
        let mut server = Self {
            folder,
            port,
            process,
        };
        server.await_ready();
        Some(server)
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub(crate) fn restart(&mut self) {
        self.process = launch(self.folder.path());
        self.await_ready();
    }

    fn await_ready(&mut self) {
        let began = Instant::now();
        let log = self.folder.path().join("log");
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.process.try_wait().unwrap();
            let text = || fs::read_to_string(&log).unwrap_or_default();
            assert!(ended.is_none(), "{}", text());
            assert!(began.elapsed() < Duration::from_secs(60), "{}", text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A machine whose configuration has these lines in `[log.nats]`, besides one copy of each message.
    pub(crate) fn machine(&self, lines: &str) -> Machine {
        Self::machine_at(self.port, lines)
    }

    /// The same through another port.
    pub(crate) fn machine_at(port: u16, lines: &str) -> Machine {
        let servers = format!("servers = [\"nats://127.0.0.1:{port}\"]");
        Machine::configured(&format!("[log.nats]\nreplicas = 1\n{servers}\n{lines}\n"))
    }

    /// The same with TLS.
    pub(crate) fn tls_machine(&self, lines: &str) -> Machine {
        let servers = format!("servers = [\"tls://localhost:{}\"]", self.port);
        Machine::configured(&format!("[log.nats]\nreplicas = 1\n{servers}\n{lines}\n"))
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        let _killed = self.process.kill();
        let _ended = self.process.wait();
    }
}

fn launch(folder: &Path) -> Child {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("log"));
    Command::new(program())
        .arg("--config")
        .arg(folder.join("server.conf"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.unwrap())
        .spawn()
        .unwrap()
}

/// The server that `tests/fleet/cluster` has installed, or the one of TREELINED_NATS_SERVER.
pub(crate) fn program() -> PathBuf {
    if let Some(given) = std::env::var_os("TREELINED_NATS_SERVER") {
        return given.into();
    }
    let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/cluster");
    let output = Command::new(cluster).arg("install").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// A port that is free at this moment.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
