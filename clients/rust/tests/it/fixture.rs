//! Daemons to test with, and what they are told.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use treelined_client::{Builder, Client, Message};

/// The daemon: `TREELINED_BIN`, else what cargo has built beside these tests, built now if it is not there.
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

/// A daemon of its own for each test, with a session directory that goes with it.
pub struct Fixture {
    pub folder: tempfile::TempDir,
}

impl Fixture {
    pub fn new() -> Fixture {
        Fixture {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn builder(&self) -> Builder {
        Client::builder()
            .program(program())
            .session_dir(self.folder.path().join("sessions"))
            .current_dir(self.folder.path())
    }
}

/// A new session: u1, a1, u2, a2, each saying so.
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
