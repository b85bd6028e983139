//! A separate server, for tests of TLS, credentials and connections.

use crate::support::{Machine, postgres, script, sql};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running server, ended when dropped.
pub(crate) struct Single {
    pub(crate) folder: TempDir,
    pub(crate) port: u16,
    /// `None` for a server of PostgreSQL, which a script starts and ends.
    process: Option<Child>,
}

impl Single {
    /// Starts a server with these lines in its configuration. `None` if the tests run without servers.
    pub(crate) fn start(lines: impl FnOnce(&Path) -> String) -> Option<Self> {
        Self::synced("sync_interval: always", lines)
    }

    /// Like `start`, but a server of NATS does not sync each write, so that a test can write very much.
    pub(crate) fn unsynced() -> Option<Self> {
        Self::synced("", |_| String::new())
    }

    fn synced(sync: &str, lines: impl FnOnce(&Path) -> String) -> Option<Self> {
        if postgres().is_some() {
            return Some(Self::postgres(""));
        }
        std::env::var_os("TREELINED_FLEET")?;
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let config = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {:?}, {sync} }}\n{}\n",
            folder.path().join("data"),
            lines(folder.path())
        );
        fs::write(folder.path().join("server.conf"), config).unwrap();
        let process = Some(launch(folder.path()));
        let mut server = Self {
            folder,
            port,
            process,
        };
        server.await_ready();
        Some(server)
    }

    /// Starts a server of PostgreSQL without a standby, with the database `team`, and with these lines in its configuration.
    pub(crate) fn postgres(lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let config = folder.path().join("config");
        fs::write(&config, lines).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/postgres");
        let output = Command::new(script)
            .arg("start")
            .arg(folder.path().join("server"))
            .env("FLEET_STANDBY", "none")
            .env("FLEET_CONFIG", config)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let address = String::from_utf8(output.stdout).unwrap();
        let (_, port) = address.trim().rsplit_once(':').unwrap();
        let port = port.parse().unwrap();
        sql(address.trim(), "postgres", &["CREATE DATABASE team"]);
        Self {
            folder,
            port,
            process: None,
        }
    }

    fn script(&self, action: &str) {
        let folder = self.folder.path().join("server");
        script("postgres", &[Path::new(action), &folder]);
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        match &mut self.process {
            None => self.script("kill"),
            Some(process) => {
                process.kill().unwrap();
                process.wait().unwrap();
            }
        }
    }

    /// Removes all data of the server, as if its disk had died. The server then runs again.
    pub(crate) fn lose_all(&mut self) {
        if self.process.is_none() {
            let address = format!("127.0.0.1:{}", self.port);
            sql(&address, "team", &["DROP SCHEMA treelined CASCADE"]);
            return;
        }
        self.kill();
        fs::remove_dir_all(self.folder.path().join("data")).unwrap();
        self.restart();
    }

    pub(crate) fn restart(&mut self) {
        if self.process.is_none() {
            return self.script("restart");
        }
        self.process = Some(launch(self.folder.path()));
        self.await_ready();
    }

    fn await_ready(&mut self) {
        let began = Instant::now();
        let log = self.folder.path().join("log");
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let process = self.process.as_mut().unwrap();
            let ended = process.try_wait().unwrap();
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

    /// Like `machine`, with another port.
    pub(crate) fn machine_at(port: u16, lines: &str) -> Machine {
        if postgres().is_some() {
            let url = format!("url = \"postgres://admin:secret@127.0.0.1:{port}/team\"");
            return Machine::configured(&format!("[log.postgres]\n{url}\n{lines}\n"));
        }
        let servers = format!("servers = [\"nats://127.0.0.1:{port}\"]");
        Machine::configured(&format!("[log.nats]\nreplicas = 1\n{servers}\n{lines}\n"))
    }

    /// Like `machine`, with TLS.
    pub(crate) fn tls_machine(&self, lines: &str) -> Machine {
        let servers = format!("servers = [\"tls://localhost:{}\"]", self.port);
        Machine::configured(&format!("[log.nats]\nreplicas = 1\n{servers}\n{lines}\n"))
    }
}

impl Drop for Single {
    fn drop(&mut self) {
        match &mut self.process {
            None => self.script("stop"),
            Some(process) => {
                let _killed = process.kill();
                let _ended = process.wait();
            }
        }
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

/// The program of the server: TREELINED_NATS_SERVER, or the one that `tests/fleet/cluster` has installed.
pub(crate) fn program() -> PathBuf {
    if let Some(given) = std::env::var_os("TREELINED_NATS_SERVER") {
        return given.into();
    }
    let cluster = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/cluster");
    let output = Command::new(cluster).arg("install").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// A port that is free at this moment. It is below the ports that Linux gives to connections and to listeners that
/// name no port, so that no other program takes it by chance.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(97);
    let mut ports = std::iter::repeat_with(|| {
        let number = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        10_000 + (number % 20_000) as u16
    });
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).unwrap()
}
