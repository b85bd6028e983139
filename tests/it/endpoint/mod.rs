//! The shared daemon in the background: its start, `treelined connect`, `status`, `stop`, socket activation, and the
//! attempts of other users. protocol.md §10.

mod activation;
mod connect;
mod faults;
mod security;
mod start;
mod status;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};

use crate::harness::*;

/// The socket of a home. Its path depends on the session directory (protocol.md).
fn socket_of(home: &Home) -> PathBuf {
    let sessions = home.sessions().canonicalize().unwrap();
    let digest = Sha256::digest(sessions.as_os_str().as_bytes());
    let digits: String = digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    home.runtime_dir()
        .join("treelined")
        .join(format!("{digits}.sock"))
}

fn beside(socket: &Path, ending: &str) -> PathBuf {
    socket.with_extension(ending)
}

/// A daemon that `connect --start` has started. Dropping it ends it.
struct Background {
    home: Arc<Home>,
}

impl Background {
    #[track_caller]
    fn start() -> Background {
        Background::start_in(&Home::new(), &[])
    }

    /// Starts the daemon of a home, with options.
    #[track_caller]
    fn start_in(home: &Arc<Home>, args: &[&str]) -> Background {
        home.run(&[args, &["connect", "--start"]].concat(), &[], "")
            .clean();
        Background { home: home.clone() }
    }

    #[track_caller]
    fn status(&self) -> Json {
        let text = self.home.run(&["status", "--json"], &[], "").clean().text();
        serde_json::from_str(&text).unwrap()
    }

    #[track_caller]
    fn pid(&self) -> Pid {
        pid_of(&self.status())
    }

    fn socket(&self) -> PathBuf {
        socket_of(&self.home)
    }

    /// Kills the daemon, so that its files stay.
    #[track_caller]
    fn kill(self) -> Arc<Home> {
        let pid = self.pid();
        kill_process(pid, Signal::KILL).unwrap();
        wait_until_dead(pid);
        self.home.clone()
    }

    /// A client that speaks through `treelined connect`.
    #[track_caller]
    fn connect(&self) -> Daemon {
        let command = self.home.command(&["connect"], &[]);
        let mut client = Daemon::spawned(&self.home, command);
        client.ignore_bookkeeping();
        client
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let output = self.home.run(&["stop"], &[], "");
        if !std::thread::panicking() {
            assert!(matches!(output.code, Some(0 | 3)), "{output:?}");
        }
    }
}

#[track_caller]
fn pid_of(status: &Json) -> Pid {
    let pid = status["pid"].as_i64().expect("a pid");
    Pid::from_raw(pid as i32).unwrap()
}

/// Waits until a process has died. It may still be a zombie.
#[track_caller]
fn wait_until_dead(pid: Pid) {
    let is_alive = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    within("the process ends", || !is_alive());
}

/// Waits for a condition.
#[track_caller]
fn within(what: &str, condition: impl Fn() -> bool) {
    let until = std::time::Instant::now() + DEADLINE;
    while !condition() {
        assert!(std::time::Instant::now() < until, "{what}: not in time");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The input of a client: request 1 introduces it, and request 2 lists the sessions.
fn introduction() -> String {
    let initialize = request(&json!(1), "initialize", &json!({"protocolVersion": 1}));
    format!(
        "{initialize}\n{}\n",
        request(&json!(2), "list_sessions", &json!({}))
    )
}

/// Checks that a command ends with an error or a warning that contains these texts: one line, and a line with what to
/// do.
#[track_caller]
fn fails(output: &Output, code: i32, texts: &[&str]) {
    assert_eq!(output.code, Some(code), "{output:?}");
    let mut lines = output.stderr.lines();
    let is_message = |line: &str| line.starts_with("error: ") || line.starts_with("warning: ");
    assert!(lines.next().is_some_and(is_message), "{}", output.stderr);
    assert!(
        lines.next().is_none_or(|line| line.starts_with("  try: ")),
        "{}",
        output.stderr
    );
    assert_eq!(lines.next(), None, "{}", output.stderr);
    for text in texts {
        assert!(output.stderr.contains(text), "{text} in {}", output.stderr);
    }
}

/// Runs the command with a script of the shell, which contains `"$0" "$@"`.
fn through_shell(script: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        shell.current_dir(folder);
    }
    shell
}
