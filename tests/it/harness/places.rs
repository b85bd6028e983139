//! The directories of a test, runs of the program to their end, and skipped tests.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use super::daemon::read_stderr;
use super::{DEADLINE, Json, parse_message, wait};

pub(crate) fn binary() -> PathBuf {
    option_env!("CARGO_BIN_EXE_treelined")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("TREELINED_BIN").map(PathBuf::from))
        .expect("run under `cargo test` of the package, or set TREELINED_BIN")
}

/// The directories of one test: for sessions, for sockets, for other files, and the working directory.
pub(crate) struct Home {
    root: tempfile::TempDir,
}

impl Home {
    pub(crate) fn new() -> Arc<Home> {
        Home::create_in(&std::env::temp_dir())
    }

    /// Directories in memory, where a sync costs nothing, for tests that write very many files.
    pub(crate) fn in_memory() -> Arc<Home> {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            Home::create_in(memory)
        } else {
            Home::new()
        }
    }

    fn create_in(folder: &Path) -> Arc<Home> {
        let root = tempfile::Builder::new()
            .prefix("treelined-it-")
            .tempdir_in(folder)
            .unwrap();
        for folder in ["sessions", "work", "files", "run"] {
            fs::DirBuilder::new()
                .mode(0o700)
                .create(root.path().join(folder))
                .unwrap();
        }
        Arc::new(Home { root })
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.root.path().join("sessions")
    }

    pub(crate) fn cwd(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The `XDG_RUNTIME_DIR` of programs that run in this home.
    pub(crate) fn runtime_dir(&self) -> PathBuf {
        self.root.path().join("run")
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.root.path().join("files")
    }

    /// Writes a file outside the session directory.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.files().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// All session files below the session directory, also in the trash, sorted.
    pub(crate) fn session_files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.sessions()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).unwrap() {
                let path = item.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "jsonl") {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    #[track_caller]
    pub(crate) fn only_file(&self) -> PathBuf {
        let mut files = self.session_files();
        assert_eq!(
            files.len(),
            1,
            "exactly one session file expected: {files:?}"
        );
        files.remove(0)
    }

    pub(crate) fn command(&self, args: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(args)
            .current_dir(self.cwd())
            .env_remove("TREELINED_LOG")
            .env_remove("TREELINED_SOCKET")
            .env("XDG_RUNTIME_DIR", self.runtime_dir())
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.root.path())
            .env("TREELINED_SESSION_DIR", self.sessions())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in env {
            command.env(name, value);
        }
        command
    }

    /// Runs the program to its end, with `input` on stdin, which is then closed.
    #[track_caller]
    pub(crate) fn run(
        &self,
        args: &[&str],
        env: &[(&str, &str)],
        input: impl Into<Vec<u8>>,
    ) -> Output {
        let mut child = self.command(args, env).spawn().expect("the daemon starts");
        let mut stdin = child.stdin.take().unwrap();
        let input = input.into();
        let writer = thread::spawn(move || {
            // A program that ends early closes the pipe. Its output is checked, so this error is ignored.
            let _ = stdin.write_all(&input);
        });
        let mut stdout = child.stdout.take().unwrap();
        let stdout = thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let stderr = read_stderr(&mut child);
        let code = wait(&mut child, DEADLINE);
        writer.join().unwrap();
        Output {
            stdout: stdout.join().unwrap(),
            stderr: stderr.join().unwrap(),
            code,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Output {
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub code: Option<i32>,
}

impl Output {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("stdout is UTF-8")
    }

    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Json> {
        let text = self.text();
        assert!(
            text.is_empty() || text.ends_with('\n'),
            "the last line is whole"
        );
        text.lines().map(parse_message).collect()
    }

    /// Responses by id (JSON text), without those whose id is null.
    #[track_caller]
    pub(crate) fn responses(&self) -> HashMap<String, Json> {
        let mut found = HashMap::new();
        for line in self.lines() {
            if line.get("method").is_none() && !line["id"].is_null() {
                let id = line["id"].to_string();
                assert!(
                    found.insert(id.clone(), line).is_none(),
                    "two responses to {id}"
                );
            }
        }
        found
    }

    #[track_caller]
    pub(crate) fn clean(self) -> Output {
        assert_eq!(self.code, Some(0), "exit code; stderr: {}", self.stderr);
        assert_eq!(self.stderr, "", "stderr stays empty");
        self
    }
}

#[track_caller]
pub(crate) fn script_in(home: &Home, args: &[&str], lines: &[String]) -> Vec<Json> {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    home.run(args, &[], input).clean().lines()
}

// --- requirements that a machine may lack ---

/// A requirement that some machines lack. Tests that need it are skipped there, or fail if the environment variable of
/// the requirement is `required`.
#[derive(Clone, Copy)]
pub(crate) enum Needs {
    /// Root, to mount a small disk; a C compiler; several file systems, some of them large.
    Faults,
    /// pi, which `tests/interchange/install` installs.
    Interchange,
    /// The real session `pi-v1-large-session.jsonl`.
    RealSession,
    /// Time for the long run.
    Time,
}

/// Prints that a test is skipped for lack of `what`, or fails if the test must not be skipped.
#[track_caller]
pub(crate) fn skip(needs: Needs, what: &str) {
    let variable = match needs {
        Needs::Faults => "TREELINED_FAULTS",
        Needs::Interchange => "TREELINED_INTERCHANGE",
        Needs::RealSession => "TREELINED_REAL",
        Needs::Time => "TREELINED_TEST_LONG",
    };
    let is_required = std::env::var_os(variable).is_some_and(|value| value == "required");
    assert!(!is_required, "{variable} is required: {what}");
    let test = thread::current().name().unwrap_or("a test").to_owned();
    // Written directly, since the output of a passing test is captured.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {what}");
}

pub(crate) const REAL_SESSION: &str = "pi-v1-large-session.jsonl";

/// A real session that pi has written: version 1, 1,018 entries. Its path is TREELINED_REAL_SESSION, or it is in
/// `shared/data` of a folder above the repository. The repository does not have this file, so the result may be `None`.
#[track_caller]
pub(crate) fn real_session() -> Option<Vec<u8>> {
    let named = std::env::var_os("TREELINED_REAL_SESSION").map(PathBuf::from);
    let found = named.or_else(|| {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .map(|folder| folder.join("shared/data").join(REAL_SESSION))
            .find(|path| path.is_file())
    });
    match found {
        Some(path) => Some(fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))),
        None => {
            skip(Needs::RealSession, &format!("there is no {REAL_SESSION}"));
            None
        }
    }
}
