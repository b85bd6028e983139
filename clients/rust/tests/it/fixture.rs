//! Starts daemons, makes conversations, and waits, for the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;
use treelined_client::{Builder, Client, Message};

/// Returns the daemon: `TREELINED_BIN`, else the one in the target directory, built if it is missing.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        if let Some(program) = std::env::var_os("TREELINED_BIN") {
            return program.into();
        }
        let tests = std::env::current_exe().unwrap();
        let profile = tests.parent().and_then(Path::parent).unwrap();
        let program = profile.join(format!("treelined{}", std::env::consts::EXE_SUFFIX));
        if !program.exists() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--package", "treelined", "--bin", "treelined"]);
            cargo.arg("--target-dir").arg(profile.parent().unwrap());
            if profile.ends_with("release") {
                cargo.arg("--release");
            }
            cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
            assert!(cargo.status().unwrap().success(), "the daemon can be built");
        }
        program
    })
}

/// Starts daemons with their own session directory, which is removed at the end.
pub struct Fixture {
    pub folder: tempfile::TempDir,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Starts a daemon with the default settings.
    pub async fn spawn(&self) -> Client {
        self.builder().spawn().await.unwrap()
    }

    pub fn builder(&self) -> Builder {
        Client::builder()
            .program(program())
            .session_dir(self.folder.path().join("sessions"))
            .current_dir(self.folder.path())
    }
}

/// Creates a session with the entries u1, a1, u2 and a2, whose text is "says u1" and so on. Returns its id.
pub async fn conversation(client: &Client) -> String {
    let session = client.create_session().await.unwrap().session;
    let client = client.with_session(&session.session_id);
    for id in ["u1", "a1", "u2", "a2"] {
        let text = format!("says {id}");
        let message = match id.starts_with('u') {
            true => Message::user(text),
            false => Message::assistant(text),
        };
        client.append_message(message).entry_id(id).await.unwrap();
    }
    session.session_id
}

/// Waits for the result; panics after a time that no test needs.
pub async fn soon<T>(what: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), what.into_future())
        .await
        .expect("the result did not arrive")
}

/// Returns whether the process of this id runs. A process that has ended keeps its id until its parent has waited for
/// it.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Kills the process with SIGKILL.
pub fn kill(pid: u32) {
    let status = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

/// Waits until the process has ended.
pub async fn gone(pid: u32) {
    soon(async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}
