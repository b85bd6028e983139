//! A folder, a daemon and a session for tests of the program.

use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program of the daemon, from the build of the workspace.
pub fn daemon() -> PathBuf {
    let given = std::env::var_os("TREELINED_BIN").map(PathBuf::from);
    given.unwrap_or_else(|| {
        PathBuf::from(env!("CARGO_BIN_EXE_treelined-files")).with_file_name("treelined")
    })
}

pub struct Scene {
    pub folder: tempfile::TempDir,
}

impl Scene {
    pub fn new() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "run", "home"] {
            let mut private = fs::DirBuilder::new();
            private
                .mode(0o700)
                .create(folder.path().join(name))
                .unwrap();
        }
        Scene { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn work(&self) -> PathBuf {
        self.path("work")
    }

    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.work())
            .env("HOME", self.path("home"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("TREELINED_SESSION_DIR", self.path("sessions"))
            .env("TREELINED_FILES", self.path("state"))
            // The free space on the disk does not matter in these tests.
            .env("TREELINED_FILES_FREE", "0")
            .env("TREELINED_BIN", daemon())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn files(&self, args: &[&str]) -> Output {
        let program = Path::new(env!("CARGO_BIN_EXE_treelined-files"));
        self.command(program).args(args).output().unwrap()
    }

    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.files(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    pub fn fails(&self, args: &[&str]) -> String {
        let output = self.files(args);
        assert!(!output.status.success(), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Sends requests to a daemon, and returns the results.
    #[track_caller]
    pub fn call(&self, args: &[&str], requests: &[(&str, Value)]) -> Vec<Value> {
        let mut child = self.command(&daemon());
        let mut child = child.args(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for (id, (method, params)) in requests.iter().enumerate() {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            writeln!(stdin, "{request}").unwrap();
        }
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let answers = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let answers = answers.filter(|answer| answer.get("id").is_some());
        let results = answers.map(|answer| {
            assert!(answer.get("error").is_none(), "{answer}");
            answer["result"].clone()
        });
        results.collect()
    }

    pub fn create(&self) {
        let cwd = self.work();
        self.call(
            &[],
            &[("create_session", json!({"sessionId": "tour", "cwd": cwd}))],
        );
    }

    /// Appends a message. The id `u1` makes it a message of the user.
    pub fn say(&self, args: &[&str], id: &str) {
        let message = match id.starts_with('u') {
            true => json!({"role": "user", "content": id}),
            false => json!({"role": "assistant", "content": [{"type": "text", "text": id}]}),
        };
        let append = json!({"entryId": id, "message": message});
        let open = json!({"sessionId": "tour"});
        self.call(args, &[("open_session", open), ("append_message", append)]);
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.work().join(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap()
    }

    /// The records of saved files in the session: whether the files were saved before or after the agent worked, and
    /// the entry.
    pub fn records(&self, args: &[&str]) -> Vec<(String, String)> {
        let open = json!({"sessionId": "tour"});
        let wanted = json!({"customType": "files"});
        let results = self.call(args, &[("open_session", open), ("get_entries", wanted)]);
        let entries = results[1]["entries"].as_array().unwrap();
        let text = |entry: &Value, name: &str| entry["data"][name].as_str().unwrap().to_owned();
        entries
            .iter()
            .map(|entry| (text(entry, "when"), text(entry, "entryId")))
            .collect()
    }
}
