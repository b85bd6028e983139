//! A cluster, and machines with the program.

use async_nats::jetstream::{self, Context};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use treelined_core::author::Author;
use treelined_core::error::Kind;
use treelined_core::id::random_token;
use treelined_files::clock::SystemSource;
use treelined_files::lock::lock;
use treelined_fleet::engine::Engine;
use treelined_fleet::engines;
use treelined_fleet::settings::{NatsSettings, PostgresSettings, TeamSettings};
use treelined_fleet::stream::NatsLog;

/// The folder of the PostgreSQL server, if the tests run with it and not with a cluster of NATS.
pub(crate) fn postgres() -> Option<PathBuf> {
    std::env::var_os("TREELINED_FLEET_POSTGRES").map(PathBuf::from)
}

/// Runs a script of this folder, which must succeed. Returns what it prints.
#[track_caller]
pub(crate) fn script(name: &str, args: &[&Path]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet");
    let output = Command::new(script.join(name)).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs statements as the superuser of a server of PostgreSQL. Returns their rows.
#[track_caller]
pub(crate) fn sql(server: &str, database: &str, statements: &[&str]) -> String {
    let mut command = Command::new("psql");
    command
        .arg(format!("postgres://admin:secret@{server}/{database}"))
        .args(["-qAtX", "-v", "ON_ERROR_STOP=1"]);
    for statement in statements {
        command.arg("-c").arg(statement);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{statements:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The writer of what a test does itself.
pub(crate) fn author() -> Author {
    Author::new("test", "test", random_token(&SystemSource))
}

/// The servers of one test: an account of the NATS cluster, or a database of the PostgreSQL server.
pub(crate) struct Fleet {
    folder: PathBuf,
    servers: Vec<String>,
    account: usize,
    is_postgres: bool,
    /// The nodes that were killed or paused, and the action that lets each go on.
    away: Mutex<BTreeMap<usize, &'static str>>,
}

/// A test that fails leaves its nodes to the next test as it found them: one that stays away fails all tests after it.
impl Drop for Fleet {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let away = std::mem::take(&mut *lock(&self.away));
        for (node, go_on) in away {
            // A second panic would end the process.
            let _ = self.run(go_on, node);
        }
    }
}

impl Fleet {
    /// `None` without a cluster. Each test has its own account.
    #[track_caller]
    pub(crate) fn get(account: usize) -> Option<Self> {
        static TAKEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
        let is_free = TAKEN.lock().unwrap().insert(account);
        assert!(is_free, "another test has account {account} too");
        if let Some(folder) = postgres() {
            return Some(Self::database(folder, account));
        }
        let Some(folder) = std::env::var_os("TREELINED_FLEET").map(PathBuf::from) else {
            let test = thread::current().name().unwrap_or("a test").to_owned();
            // Written directly, since the output of a passing test is captured.
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED {test}: no cluster; tests/fleet/run starts one"
            );
            return None;
        };
        let servers = fs::read_to_string(folder.join("servers")).unwrap();
        let servers = servers.trim().split(',').map(str::to_owned).collect();
        Some(Self {
            folder,
            servers,
            account,
            is_postgres: false,
            away: Mutex::default(),
        })
    }

    fn database(folder: PathBuf, account: usize) -> Self {
        let server = fs::read_to_string(folder.join("server")).unwrap();
        let server = server.trim().to_owned();
        let role = |name: &str| format!("CREATE ROLE {name}{account} LOGIN PASSWORD 'secret'");
        let make = format!("CREATE DATABASE t{account}");
        sql(&server, "postgres", &[&role("t"), &role("reader"), &make]);
        Self {
            folder,
            servers: vec![server],
            account,
            is_postgres: true,
            away: Mutex::default(),
        }
    }

    /// Runs statements in the database of this test as the superuser.
    #[track_caller]
    pub(crate) fn sql(&self, statements: &[&str]) -> String {
        sql(&self.servers[0], &format!("t{}", self.account), statements)
    }

    /// The configuration of a machine with the addresses in `log`.
    pub(crate) fn section(&self, log: &str, offline: &str) -> String {
        if self.is_postgres {
            return format!(
                "[team]\nengine = \"postgres\"\nurl = {log:?}\noffline = {offline:?}\n"
            );
        }
        let servers: Vec<&str> = log.split(',').collect();
        format!("[team]\nengine = \"nats\"\nservers = {servers:?}\noffline = {offline:?}\n")
    }

    /// An address without a server.
    pub(crate) fn nowhere(&self) -> &'static str {
        match self.is_postgres {
            true => "postgres://t:secret@127.0.0.1:1/t",
            false => "nats://127.0.0.1:1",
        }
    }

    /// Opens the stream of the team, of either kind, as soon as the servers answer.
    pub(crate) fn engine(&self) -> Arc<dyn Engine> {
        if !self.is_postgres {
            return Arc::new(self.open());
        }
        let settings = TeamSettings::Postgres(PostgresSettings::of_url(self.log()));
        loop {
            match engines::open(&settings, None) {
                Ok(log) => return log,
                Err(error) => assert_eq!(error.kind, Kind::LogUnavailable, "{error}"),
            }
        }
    }

    /// The addresses with the credentials of a user.
    pub(crate) fn log_of(&self, user: &str, password: &str) -> String {
        if self.is_postgres {
            let (server, account) = (&self.servers[0], self.account);
            return format!("postgres://{user}:{password}@{server}/t{account}");
        }
        let with =
            |server: &String| server.replacen("nats://", &format!("nats://{user}:{password}@"), 1);
        self.servers.iter().map(with).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn log(&self) -> String {
        self.log_of(&format!("t{}", self.account), "secret")
    }

    pub(crate) fn reader(&self) -> String {
        self.log_of(&format!("reader{}", self.account), "secret")
    }

    /// Runs an action for a node: `kill`, `restart`, `pause` or `resume`. PostgreSQL has only one node.
    pub(crate) fn node(&self, action: &str, number: usize) {
        match action {
            "kill" => lock(&self.away).insert(number, "restart"),
            "pause" => lock(&self.away).insert(number, "resume"),
            _ => lock(&self.away).remove(&number),
        };
        assert!(self.run(action, number).unwrap().success());
    }

    fn run(&self, action: &str, number: usize) -> io::Result<ExitStatus> {
        let name = if self.is_postgres {
            "postgres"
        } else {
            "cluster"
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fleet")
            .join(name);
        let mut command = Command::new(script);
        command.arg(action).arg(&self.folder);
        if !self.is_postgres {
            command.arg(number.to_string());
        }
        command.stdout(Stdio::null()).status()
    }

    /// Kills a node in one round, pauses a node in the next round, and so on. The node runs again after two seconds,
    /// and a round takes five seconds. Returns the number of rounds.
    pub(crate) fn disturb(&self, goes_on: impl Fn(usize) -> bool) -> usize {
        let mut rounds = 0;
        while goes_on(rounds) {
            let node = rounds % 3 + 1;
            let (stop, go_on) = match rounds % 2 {
                0 => ("kill", "restart"),
                _ => ("pause", "resume"),
            };
            self.node(stop, node);
            thread::sleep(Duration::from_secs(2));
            self.node(go_on, node);
            thread::sleep(Duration::from_secs(3));
            rounds += 1;
        }
        rounds
    }

    /// Saves or restores the data of a node that does not run.
    pub(crate) fn data(&self, action: &str, number: usize) {
        let node = self.folder.join(format!("node{number}"));
        let (from, to) = match action {
            "save" => ("data", "saved"),
            _ => ("saved", "data"),
        };
        let copied = Command::new("bash")
            .args([
                "-c",
                "rm -rf \"$2\" && cp -a \"$1\" \"$2\"",
                "copy",
                from,
                to,
            ])
            .current_dir(node)
            .status();
        assert!(copied.unwrap().success());
    }

    /// Runs `work` with a context of JetStream.
    pub(crate) fn with<T>(&self, work: impl AsyncFnOnce(Context) -> T) -> T {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async { work(jetstream::new(self.connect(0).await)).await })
    }

    /// Opens the stream of the team, as soon as the cluster has a leader.
    pub(crate) fn open(&self) -> NatsLog {
        let servers = self.log().split(',').map(str::to_owned).collect();
        let settings = NatsSettings::of_servers(servers);
        loop {
            match NatsLog::open(settings.clone()) {
                Ok(log) => return log,
                Err(error) => assert_eq!(error.kind, Kind::LogUnavailable, "{error}"),
            }
        }
    }

    /// Connects to the server with this number, which begins at 0. If that server is away, connects to another one.
    pub(crate) async fn connect(&self, server: usize) -> async_nats::Client {
        let user = format!("t{}", self.account);
        let options = async_nats::ConnectOptions::with_user_and_password(user, "secret".to_owned());
        let mut servers = self.servers.clone();
        servers.rotate_left(server);
        let connecting = options.retain_servers_order().connect(servers);
        connecting.await.unwrap()
    }

    /// The number of the node that leads the stream.
    pub(crate) fn leader(&self) -> usize {
        self.with(async |context| {
            let info = context
                .get_stream("treelined")
                .await
                .unwrap()
                .get_info()
                .await
                .unwrap();
            let leader = info.cluster.unwrap().leader.unwrap();
            leader.trim_start_matches("node").parse().unwrap()
        })
    }

    /// Makes the stream, by the program.
    pub(crate) fn with_stream(self) -> Self {
        if self.is_postgres {
            let administrator = Machine::with_log(self.log_of("admin", "secret"));
            administrator.until_sound(&["doctor", "--cluster", "--create"]);
            let of = self.account;
            let member = format!("GRANT t{of}_member TO t{of}");
            self.sql(&[&member, &format!("GRANT t{of}_reader TO reader{of}")]);
            return self;
        }
        Machine::new(&self).until_sound(&["doctor", "--cluster", "--create"]);
        self
    }
}

/// A machine with a session directory.
pub(crate) struct Machine {
    folder: TempDir,
    /// The value of `--log`; `None` if the configuration has the servers.
    log: Option<String>,
}

impl Machine {
    pub(crate) fn new(fleet: &Fleet) -> Self {
        Self::with_log(fleet.log())
    }

    pub(crate) fn with_log(log: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = Some(log);
        Self { folder, log }
    }

    /// A machine with a configuration file.
    pub(crate) fn configured(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = Self { folder, log: None };
        machine.configure(config);
        machine
    }

    /// Replaces the configuration file.
    pub(crate) fn configure(&self, config: &str) {
        let place = self.folder.path().join(".config/treelined");
        fs::create_dir_all(&place).unwrap();
        let file = place.join("config.toml");
        fs::write(&file, config).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// The value of `--log`.
    pub(crate) fn servers(&self) -> String {
        self.log.clone().unwrap()
    }

    /// This machine with other servers.
    pub(crate) fn elsewhere(self, log: String) -> Self {
        Self {
            log: Some(log),
            ..self
        }
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_treelined"));
        command
            .args(args)
            .args(self.log(args))
            .arg("--session-dir")
            .arg(self.folder.path().join("sessions"))
            .env("HOME", self.folder.path())
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("TREELINED_SESSION_DIR")
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// The option `--log`, unless these arguments contain it.
    fn log(&self, args: &[&str]) -> Vec<&str> {
        match &self.log {
            Some(log) if !args.contains(&"--log") => vec!["--log", log],
            _ => Vec::new(),
        }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command until it succeeds, since the copies of a new stream are behind at first.
    #[track_caller]
    pub(crate) fn until_sound(&self, args: &[&str]) {
        let began = Instant::now();
        loop {
            let output = self.run(args);
            if output.status.success() {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "{output:?}");
        }
    }

    /// The lines of JSON of a command that must succeed.
    #[track_caller]
    pub(crate) fn done(&self, args: &[&str]) -> Vec<Value> {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        lines(&output)
    }

    /// The kind of the error of a command that must fail, from its line of JSON or from stderr.
    #[track_caller]
    pub(crate) fn kind(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {output:?}");
        if let Some(line) = lines(&output).iter().find(|line| line["error"].is_object()) {
            return line["error"]["kind"].as_str().unwrap().to_owned();
        }
        let stderr = String::from_utf8(output.stderr).unwrap();
        let line = stderr.lines().find_map(|line| line.strip_prefix("error: "));
        let kind = line.and_then(|line| line.split(':').next());
        kind.unwrap_or_else(|| panic!("{args:?}: {stderr}"))
            .to_owned()
    }

    /// Makes a session with this number of entries, each of about this number of bytes.
    pub(crate) fn make(&self, session: &str, entries: usize, bytes: usize) -> PathBuf {
        let folder = self.folder.path().join("sessions").join("--c--");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{session}.jsonl"));
        let header = json!({
            "type": "session", "version": 3, "id": session, "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/c",
        });
        fs::write(&path, format!("{header}\n")).unwrap();
        append(&path, 0..entries, bytes);
        path
    }

    /// The session directory.
    pub(crate) fn sessions(&self) -> PathBuf {
        self.folder.path().join("sessions")
    }

    /// Appends to the file of a session.
    #[track_caller]
    pub(crate) fn append_text(&self, session: &str, text: &str) {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(self.path(session))
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[track_caller]
    pub(crate) fn text(&self, session: &str) -> Vec<u8> {
        fs::read(self.path(session)).unwrap()
    }

    /// The file of a session, in any folder of the session directory.
    #[track_caller]
    pub(crate) fn path(&self, session: &str) -> PathBuf {
        self.find(session).unwrap()
    }

    /// The file of a session, if there is one.
    #[track_caller]
    pub(crate) fn find(&self, session: &str) -> Option<PathBuf> {
        let folder = self.folder.path().join("sessions").join("--c--");
        let files = fs::read_dir(folder).ok()?;
        let files = files.map(|entry| entry.unwrap().path());
        let ending = format!("{session}.jsonl");
        let mut found: Vec<PathBuf> = files
            .filter(|path| path.to_str().unwrap().ends_with(&ending))
            .collect();
        assert!(found.len() <= 1, "{found:?}");
        found.pop()
    }
}

/// Appends entries to a session file, each as the child of the entry before.
pub(crate) fn append(path: &Path, numbers: std::ops::Range<usize>, bytes: usize) {
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    let mut text = String::new();
    for number in numbers {
        let parent = number.checked_sub(1).map(|before| format!("e{before}"));
        let entry = json!({
            "type": "message", "id": format!("e{number}"), "parentId": parent, "timestamp": "2026-01-02T03:04:05.000Z",
            "message": { "role": "user", "content": "x".repeat(bytes) },
        });
        text += &format!("{entry}\n");
    }
    file.write_all(text.as_bytes()).unwrap();
}

pub(crate) fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}
