//! How extensions are started, restarted and ended.

use super::*;
use std::time::{Duration, Instant};

/// A script that counts its starts in this file, and then runs `body`.
fn counting(starts: &Path, body: &str) -> String {
    format!("echo $$ >> {}; {body}", starts.display())
}

#[test]
fn an_extension_that_ends_at_once_is_restarted_five_times_and_then_given_up() {
    let home = Home::new();
    let starts = home.files().join("starts");
    let mut d = started(
        &home,
        "",
        &counting(&starts, "echo 'no todo list' >&2; exit 3"),
    );
    let begin = Instant::now();
    eventually("six starts", || lines(&starts).len() == 6);
    assert!(begin.elapsed() > Duration::from_secs(5), "the pauses grow");
    std::thread::sleep(Duration::from_millis(500));
    d.ok("list_sessions", json!({}));
    d.allow_stderr();
    let log = d.end_and_stderr();
    assert_eq!(lines(&starts).len(), 6);
    assert_eq!(
        log.matches("no todo list extension=\"todo\"").count(),
        6,
        "{log}"
    );
    assert_eq!(
        log.matches("an extension is restarted in").count(),
        5,
        "{log}"
    );
    let given_up = log.lines().find(|line| line.contains("ERROR")).unwrap();
    for part in ["is given up", "exit status: 3", "\"todo\"", "config.toml"] {
        assert!(given_up.contains(part), "{part}: {given_up}");
    }
}

#[test]
fn an_extension_that_does_not_initialize_in_time_is_restarted() {
    let home = Home::new();
    let starts = home.files().join("starts");
    let mut d = started(&home, "", &counting(&starts, "exec sleep 60"));
    let begin = Instant::now();
    eventually("the first start", || lines(&starts).len() == 1);
    let first = home.file("first", lines(&starts)[0].as_bytes());
    assert!(runs(&first));
    eventually("the second start", || lines(&starts).len() == 2);
    assert!(
        begin.elapsed() > Duration::from_secs(9),
        "{:?}",
        begin.elapsed()
    );
    assert!(!runs(&first));
    d.allow_stderr();
    let log = d.end_and_stderr();
    assert!(log.contains("it did not initialize within 10s"), "{log}");
}

/// All processes that an extension starts are in its process group and end with it.
#[test]
fn an_extension_that_dies_leaves_no_process_and_is_restarted() {
    let home = Home::new();
    let (starts, child) = (home.files().join("starts"), home.files().join("child"));
    let body = format!(
        "introduce '{{}}'; sleep 60 & echo $! > {0}.new; mv {0}.new {0}; read -r line; exit 1",
        child.display()
    );
    let mut d = started(&home, "sessions = \"all\"", &counting(&starts, &body));
    eventually("its child runs", || child.exists());
    let first = home.file("first", fs::read(&child).unwrap().as_slice());
    d.create();
    eventually("a second start", || lines(&starts).len() >= 2);
    assert!(!runs(&first));
    d.allow_stderr();
    let log = d.end_and_stderr();
    assert!(log.contains("restarted in 200ms"), "{log}");
}

#[test]
fn at_the_end_of_the_daemon_its_input_ends_and_no_process_is_left() {
    let home = Home::new();
    let (heard, pid) = (home.files().join("heard"), home.files().join("pid"));
    let body = format!(
        "echo $$ > {}; {}; echo end >> {}",
        pid.display(),
        listener(&heard),
        heard.display()
    );
    let mut d = started(&home, "sessions = \"all\"", &body);
    d.create();
    eventually("it is ready", || has(&heard, "session_opened"));
    drop(d);
    assert_eq!(lines(&heard).last().map(String::as_str), Some("end"));
    assert!(!runs(&pid));
}

#[test]
fn an_extension_that_goes_on_is_ended_by_sigterm_and_then_by_sigkill() {
    takes_at_most(Duration::from_secs(9), || {
        let home = Home::new();
        let (term, pid) = (home.files().join("term"), home.files().join("pid"));
        let body = format!(
            "trap 'echo x >> {0}' TERM; introduce '{{}}'; sleep 60 & \
             echo $! > {1}.new; mv {1}.new {1}; while true; do sleep 0.1; done",
            term.display(),
            pid.display()
        );
        let mut d = started(&home, "", &body);
        // The shell reports the end of its children on stderr.
        d.allow_stderr();
        eventually("it is ready", || pid.exists());
        let begin = Instant::now();
        drop(d);
        let took = begin.elapsed();
        assert_eq!(lines(&term).len(), 1);
        assert!(!runs(&pid), "the group ends");
        took
    });
}

/// The daemon once waited 8 s for the thread that writes to the extension, and then 10 s for its connection.
#[test]
fn an_extension_that_reads_nothing_does_not_hold_up_the_end_of_the_daemon() {
    // 1 s, 500 ms and 2 s.
    takes_at_most(Duration::from_secs(7), || {
        let home = Home::new();
        let pid = home.files().join("pid");
        let body = format!(
            "trap '' TERM; introduce '{{}}'; echo $$ > {0}.new; mv {0}.new {0}; while true; do sleep 0.1; done",
            pid.display()
        );
        let mut d = started(&home, "sessions = \"all\"", &body);
        eventually("it is ready", || pid.exists());
        d.create();
        for n in 0..4_000 {
            let append = json!({"message": user("x"), "entryId": format!("e{n}")});
            d.send("append_message", append);
        }
        d.ok("get_leaf", json!({}));
        d.claim_responses();
        let begin = Instant::now();
        drop(d);
        let took = begin.elapsed();
        assert!(!runs(&pid));
        took
    });
}

#[test]
fn a_daemon_that_is_killed_leaves_no_extension() {
    let home = Home::new();
    let pid = home.files().join("pid");
    let body = format!(
        "introduce '{{}}'; echo $$ > {}; exec sleep 60",
        pid.display()
    );
    let d = started(&home, "", &body);
    eventually("it is ready", || !lines(&pid).is_empty());
    d.kill();
    eventually("it has ended", || !runs(&pid));
}

/// An extension gets the environment that hooks get, and its own name.
#[test]
fn an_extension_gets_a_small_environment() {
    let home = Home::new();
    let found = home.files().join("env");
    let body = format!(
        "env > {0}.new; mv {0}.new {0}; introduce '{{}}'; cat",
        found.display()
    );
    let path = configured(&home, "env = [\"NAMED\"]", &body);
    let given = [
        ("NAMED", "n"),
        ("LC_ALL", "C"),
        ("TREELINED_MINE", "m"),
        ("ANTHROPIC_API_KEY", "secret"),
        ("OTHER", "o"),
    ];
    let mut d = Daemon::start_in(&home, &["--config", &path], &given);
    eventually("it has started", || found.exists());
    d.ignore_bookkeeping();
    drop(d);
    for line in [
        "NAMED=n",
        "LC_ALL=C",
        "TREELINED_MINE=m",
        "TREELINED_EXTENSION=todo",
    ] {
        assert!(lines(&found).contains(&line.to_owned()), "{line}");
    }
    for name in ["ANTHROPIC_API_KEY", "OTHER"] {
        assert!(!has(&found, name), "{name}");
    }
}

#[test]
fn only_a_daemon_that_serves_starts_extensions() {
    let home = Home::new();
    let starts = home.files().join("starts");
    let path = configured(&home, "", &counting(&starts, "introduce '{}'; cat"));
    let config = ["--config", &path];
    let run = |args: &[&str], env: &[(&str, &str)]| {
        home.run(&[&config[..], args].concat(), env, "").clean();
    };
    run(&["call", "list_sessions"], &[]);
    run(&["serve", "--no-extensions"], &[]);
    // The program of an extension may run a daemon itself.
    run(&[], &[("TREELINED_EXTENSION", "other")]);
    run(&["config"], &[]);
    assert_eq!(lines(&starts).len(), 0);
    let mut shared = SharedDaemon::start_in(&home, &config, &[]);
    eventually("a start", || lines(&starts).len() == 1);
    shared.signal(rustix::process::Signal::TERM);
    assert_eq!(shared.exited(), Some(0));
}

/// The daemon does not run a program that other users may change.
#[test]
fn an_unsafe_extension_is_shown_and_not_started() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let starts = home.files().join("starts");
    let path = configured(&home, "", &counting(&starts, "introduce '{}'; cat"));
    let program = home.files().join("extension");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o722)).unwrap();
    let described = home.run(&["--config", &path, "config"], &[], "");
    let described = described.clean().text();
    let problem = "# the extension todo fails:";
    assert!(described.contains(problem), "{described}");
    let session = home.file("session.jsonl", b"");
    let session = session.to_str().unwrap();
    let doctor = home.run(&["--config", &path, "doctor", session], &[], "");
    let said = format!(
        "{}{}",
        doctor.stderr,
        String::from_utf8_lossy(&doctor.stdout)
    );
    assert!(said.contains("the extension todo fails:"), "{said}");
    let mut d = Daemon::start_in(&home, &["--config", &path], &[]);
    d.ok("list_sessions", json!({}));
    d.allow_stderr();
    let log = d.end_and_stderr();
    assert!(log.contains("can be written by others"), "{log}");
    assert_eq!(lines(&starts).len(), 0);
}

#[test]
fn settings_of_extensions_are_checked_and_shown() {
    let home = Home::new();
    let settings =
        "sessions = \"all\"\nanswers = [\"session_before_tree\"]\non_failure = \"proceed\"";
    let path = configured(&home, settings, "");
    let described = home.run(&["--config", &path, "config"], &[], "");
    let described = described.clean().text();
    for line in [
        "[[extensions]]\nname = \"todo\" # file",
        "sessions = \"all\" # file",
        "answers = [\"session_before_tree\"] # file",
        "on_failure = \"proceed\" # file",
        "env = [] # default",
    ] {
        assert!(described.contains(line), "{line}: {described}");
    }
    let again = home.run(&["--config", &file(&home, &described), "config"], &[], "");
    let settings = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap().to_owned());
        lines.collect()
    };
    assert_eq!(settings(&again.clean().text()), settings(&described));
    let wrong = [
        (
            "name = \"a\"\nargv = []",
            "extensions[0]: [extensions].argv",
        ),
        ("name = \" \"\nargv = [\"/a\"]", "extensions[0].name"),
        ("argv = [\"/a\"]", "extensions[0]: missing field `name`"),
        (
            "name = \"a\"\nargv = [\"/a\"]\nsessions = \"some\"",
            "extensions[0].sessions",
        ),
        (
            "name = \"a\"\nargv = [\"/a\"]\nanswers = [\"session_tree\"]",
            "extensions[0].answers",
        ),
        (
            "name = \"a\"\nargv = [\"/a\"]\n[[extensions]]\nname = \"a\"\nargv = [\"/a\"]",
            "extensions[1].name: another extension",
        ),
    ];
    for (text, expect) in wrong {
        let path = file(&home, &format!("[[extensions]]\n{text}\n"));
        let output = home.run(&["--config", &path, "config"], &[], "");
        assert_eq!(output.code, Some(1), "{text}");
        assert!(
            output.stderr.contains(expect),
            "{expect}: {}",
            output.stderr
        );
    }
}

/// A shared daemon that an extension started with `connect --start` once inherited the environment of the extension,
/// and started no extensions.
#[test]
fn a_shared_daemon_starts_its_extensions_whoever_starts_it() {
    let home = Home::new();
    let started = home.files().join("started");
    let body = format!("echo started > {}; cat > /dev/null", started.display());
    let path = configured(&home, "", &body);
    let environment = [("TREELINED_EXTENSION", "another")];
    home.run(&["--config", &path, "connect", "--start"], &environment, "");
    eventually("the extension starts", || has(&started, "started"));
    home.run(&["--config", &path, "stop"], &[], "");
}

/// An extension that wrote without end once filled the log of a stdio daemon with 400 MB in seconds.
#[test]
fn the_log_takes_a_budget_of_the_stderr_of_an_extension() {
    let home = Home::new();
    let done = home.files().join("done");
    let body = format!(
        "introduce '{{}}'; yes 'on and on' | head -c 20000000 >&2; touch {}; read -r line",
        done.display()
    );
    let mut d = started(&home, "sessions = \"all\"", &body);
    eventually("all is written", || done.exists());
    d.allow_stderr();
    let log = d.end_and_stderr();
    assert!(log.len() < 4 << 20, "{} bytes", log.len());
    assert!(log.contains("on and on extension=\"todo\""));
    assert_eq!(log.matches("writes more than 262144 bytes").count(), 1);
    let left_out = log
        .lines()
        .rfind(|line| line.contains("of stderr were left out"));
    let bytes = left_out.and_then(|line| {
        let number = line
            .split_whitespace()
            .find(|word| word.parse::<u64>().is_ok());
        number?.parse::<u64>().ok()
    });
    let bytes = bytes.unwrap_or_else(|| panic!("{}", shorten(&log)));
    assert!((19_000_000..20_000_000).contains(&bytes), "{bytes}");
}
