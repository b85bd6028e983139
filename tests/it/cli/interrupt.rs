//! Interrupts and pagers.

use super::*;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn an_interrupted_command_ends_with_130() {
    let home = Home::new();
    // While it runs, the command waits for its params.
    let mut child = home
        .command(&["call", "list_sessions", "-"], &[])
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    let caught = |status: &str| {
        let line = status.lines().find(|line| line.starts_with("SigCgt:"));
        let mask = line.and_then(|line| u64::from_str_radix(line[7..].trim(), 16).ok());
        mask.is_some_and(|mask| mask & 0b10 != 0)
    };
    let path = format!("/proc/{}/status", child.id());
    let until = Instant::now() + Duration::from_secs(60);
    while !fs::read_to_string(&path).is_ok_and(|status| caught(&status)) {
        assert!(Instant::now() < until, "nothing waits for the interrupt");
        thread::yield_now();
    }
    // The first signal may arrive just before the program waits for it.
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < until, "the interrupt ends nothing");
        let _ended = kill_process(pid, Signal::INT);
        thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(status.code(), Some(130));
}

/// Runs the command with a terminal as stdout; `None` without the program `script`.
fn at_a_terminal(home: &Home, command: &str, pager: &str) -> Option<String> {
    let program = home.command(&[], &[]);
    let line = format!("{} {command}", program.get_program().to_str().unwrap());
    let mut script = Command::new("script");
    script
        .args(["-q", "-e", "-c", &line, "/dev/null"])
        .env("TREELINED_SESSION_DIR", home.sessions())
        .env("PAGER", pager)
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .current_dir(home.cwd())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = script.output().ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).replace('\r', ""))
}

#[test]
fn long_output_goes_through_the_pager_and_an_early_end_of_it_is_not_an_error() {
    let home = Home::new();
    branched(&home);
    let run = |command: &str, pager: &str| at_a_terminal(&home, command, pager);
    let Some(paged) = run("tree s1", "sed s/^/paged:/") else {
        return skip(Needs::Faults, "there is no `script`");
    };
    assert!(
        paged
            .lines()
            .any(|line| line.contains("paged:") && line.contains("go left")),
        "{paged}"
    );
    for (command, pager) in [
        ("tree s1 --no-pager", "sed s/^/paged:/"),
        ("show s1", "cat"),
        ("list --all", "no-such-pager"),
    ] {
        let plain = run(command, pager).unwrap();
        assert!(
            plain.contains("question") && !plain.contains("paged:"),
            "{command}: {plain}"
        );
    }
    for command in ["doctor s1", "--help", "list --help", "restore", "config"] {
        let paged = run(command, "sed s/^/paged:/").unwrap();
        assert!(paged.starts_with("paged:"), "{command}: {paged}");
        let plain = run(&format!("{command} --no-pager"), "sed s/^/paged:/").unwrap();
        assert!(!plain.contains("paged:"), "{command}: {plain}");
    }
    assert_eq!(run("tree s1", "true").unwrap().trim(), "", "left at once");
    assert_eq!(
        run("tree s1", "exit 1").unwrap().trim(),
        "",
        "left with an error"
    );
}

/// Some commands once ended with an error if their output pipe was closed early.
#[test]
fn a_reader_that_leaves_early_is_not_an_error() {
    let home = Home::new();
    branched(&home);
    let mut child = home.command(&["list", "--all"], &[]).spawn().unwrap();
    drop(child.stdin.take());
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
