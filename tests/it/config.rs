//! The configuration file, `--config` and `treelined config`: which setting wins, and which files and settings are
//! refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use crate::harness::*;

/// Runs `treelined config` with this text as the configuration file of the user.
fn described(home: &Home, file: &str, args: &[&str], env: &[(&str, &str)]) -> Output {
    let folder = home.files().join("config/treelined");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), file).unwrap();
    let config = home.files().join("config");
    let mut all = vec![("XDG_CONFIG_HOME", config.to_str().unwrap())];
    all.extend(env);
    home.run(&[args, &["config"]].concat(), &all, "")
}

#[track_caller]
pub(crate) fn refused(file: &str, naming: &[&str]) {
    let output = described(&Home::new(), file, &[], &[]);
    assert_eq!(output.code, Some(1), "{file}");
    assert_eq!(output.stdout, b"", "{file}");
    for name in naming {
        assert!(output.stderr.contains(name), "{name} in {}", output.stderr);
    }
}

/// Writes a configuration file beside the sessions and returns its path.
pub(crate) fn file(home: &Arc<Home>, text: &str) -> String {
    let path = home.file("config.toml", text.as_bytes());
    path.to_str().unwrap().to_owned()
}

#[test]
fn without_a_file_every_setting_has_its_default() {
    let home = Home::new();
    let output = home.run(&["config"], &[], "").clean().text();
    assert!(output.starts_with("# no configuration file\n"), "{output}");
    let lines: Vec<&str> = output.lines().collect();
    assert!(
        lines.contains(&"durability = \"interval\" # default"),
        "{output}"
    );
    assert!(lines.contains(&"use = \"outline\" # default"), "{output}");
    assert!(
        lines.contains(&"max_frame_bytes = 67108864 # default"),
        "{output}"
    );
    let sessions = format!("session_dir = {:?} # environment", home.sessions());
    assert!(lines.contains(&sessions.as_str()), "{output}");
}

#[test]
fn the_command_line_overrides_the_environment_which_overrides_the_file() {
    let text = "session_dir = \"in-file\"\ndurability = \"always\"\n\
                [limits]\nmax_frame_bytes = 2048\n[summarizer]\nuse = \"outline\"\n";
    let output = described(&Home::new(), text, &[], &[]).clean().text();
    for line in [
        "durability = \"always\" # file",
        "use = \"outline\" # file",
        "max_frame_bytes = 2048 # file",
    ] {
        assert!(output.contains(line), "{line} in {output}");
    }
    assert!(
        output.contains("# environment"),
        "the session directory: {output}"
    );

    let output = described(&Home::new(), text, &[], &[("TREELINED_SESSION_DIR", "")]);
    let output = output.clean().text();
    assert!(
        output.contains("config/treelined/in-file\" # file"),
        "{output}"
    );

    let args = [
        "--summarizer",
        "none",
        "--durability",
        "os",
        "--session-dir",
        "/d",
    ];
    let output = described(&Home::new(), text, &args, &[]).clean().text();
    for line in [
        "durability = \"os\" # command line",
        "use = \"none\" # command line",
        "session_dir = \"/d\" # command line",
    ] {
        assert!(output.contains(line), "{line} in {output}");
    }
}

#[test]
fn the_printed_configuration_is_a_file_with_the_same_settings() {
    let home = Home::new();
    let hook = script(&home, "hook", "exit 0");
    let text = format!(
        "[summarizer]\nuse = \"llm\"\n[summarizer.llm]\nprovider = \"local\"\nmodel = \"m\"\n\
         [summarizer.llm.context_windows]\n\"a.b\" = 5000\n\
         [summarizer.llm.providers.local]\napi = \"openai\"\nbase_url = \"http://127.0.0.1:1/v1\"\n\
         [[hooks]]\nevents = [\"session_tree\"]\nargv = [{hook:?}]\n\
         [[hooks]]\nevents = [\"session_before_tree\"]\nargv = [{hook:?}, \"x\"]\n"
    );
    let first = home.run(&["--config", &file(&home, &text), "config"], &[], "");
    let first = first.clean().text();
    let second = home.run(&["--config", &file(&home, &first), "config"], &[], "");
    let second = second.clean().text();
    let said = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .map(|line| line.split(" # ").next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(said(&first), said(&second));
    assert!(first.contains("\"a.b\" = 5000"), "{first}");
    assert!(!second.contains("# default"), "{second}");
}

#[test]
fn unknown_keys_and_wrong_values_are_errors_that_name_them() {
    refused("colour = 1", &["colour", "config.toml"]);
    refused("[limits]\nmax_frames = 1", &["max_frames"]);
    refused("[summarizer.llm.providers.x]\nkey = \"k\"", &["`key`"]);
    refused(
        "[[hooks]]\nevents = []\nargv = []\nshell = true",
        &["shell"],
    );
    refused("durability = \"sometimes\"", &["sometimes"]);
    refused("idle_exit = \"10\"", &["idle_exit", "10m"]);
    refused("[limits]\nmax_frame_bytes = 5", &["limits.max_frame_bytes"]);
    refused(
        "[limits]\nmax_frame_bytes = \"5\"",
        &["config.toml: line 2: limits.max_frame_bytes: "],
    );
    refused(
        "[summarizer]\nuse = \"command\"",
        &["summarizer.command.argv"],
    );
    refused(
        "[summarizer.command]\nargv = []",
        &["summarizer.command.argv"],
    );
    refused(
        "[[hooks]]\nevents = [\"session_befor_tree\"]\nargv = [\"/bin/true\"]",
        &["hooks[0].events", "session_befor_tree"],
    );
    refused(
        "[summarizer]\nuse = \"llm\"\n[summarizer.llm]\nmodel = \"m\"",
        &["summarizer.llm.provider"],
    );
    refused(
        "[summarizer]\nuse = \"llm\"\n[summarizer.llm]\nmodel = \"m\"\nprovider = \"p\"",
        &["summarizer.llm.provider", "\"p\""],
    );
    refused(
        "[summarizer]\nuse = \"llm\"\n[summarizer.llm.providers.x]\napi = \"openai\"",
        &["summarizer.llm.providers.x.base_url"],
    );
    refused("not toml", &["config.toml: line 1: "]);
}

#[test]
fn an_api_key_in_the_file_is_not_printed() {
    let home = Home::new();
    let path = file(
        &home,
        "[summarizer.llm.providers.x]\nkey = \"sk-canary-1\"\n",
    );
    let output = home.run(&["--config", &path, "config"], &[], "");
    assert_eq!(output.code, Some(1));
    assert!(!output.stderr.contains("canary"), "{}", output.stderr);
}

#[test]
fn a_named_file_must_exist() {
    let output = Home::new().run(&["--config", "/nowhere/c.toml"], &[], "");
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("/nowhere/c.toml"),
        "{}",
        output.stderr
    );
}

#[test]
fn the_daemon_uses_the_settings_of_the_file() {
    let home = Home::new();
    let path = file(
        &home,
        "durability = \"always\"\n[limits]\nmax_frame_bytes = 4096\n[summarizer]\nuse = \"outline\"\n",
    );
    let mut d = Daemon::start_in(&home, &["--config", &path], &[]);
    d.ignore_bookkeeping();
    let said = d.init(json!({}));
    assert_eq!(said["limits"]["maxFrameBytes"], 4096);
    assert_eq!(said["capabilities"]["summarizer"], "outline");
    d.create();
    let appended = d.ok("append_message", json!({"message": user("x")}));
    assert_eq!(appended["durability"], "always");
}

fn chmod(path: &str, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A configuration file that other users may write was once accepted unless it named programs. These users could change
/// `base_url`, and the key was sent to their server. Now every command refuses such a file, except the commands that
/// report it.
#[test]
fn a_file_that_others_may_write_is_refused_by_every_command() {
    let home = Home::new();
    let path = file(&home, "durability = \"always\"\n");
    let v1 = home.file("v1.jsonl", include_bytes!("../data/v1.jsonl"));
    let v1 = v1.to_str().unwrap();
    chmod(&path, 0o666);
    let out = home.files().join("out");
    let schema = ["schema", "--out", out.to_str().unwrap()];
    let commands: [&[&str]; 9] = [
        &[],
        &["serve"],
        &["call", "list_sessions"],
        &["tree", v1],
        &["migrate", v1],
        &["demo"],
        &schema,
        &["completions", "bash"],
        &["--session-dir", "/d", "--durability", "os", "serve"],
    ];
    for command in commands {
        let output = home.run(&[&["--config", &path], command].concat(), &[], "");
        assert_eq!(output.code, Some(1), "{command:?}");
        assert_eq!(output.text(), "", "{command:?}");
        for part in [
            "is refused",
            "config.toml",
            "can be written by others",
            "chmod go-w",
        ] {
            assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
        }
    }
    let described = home.run(&["--config", &path, "config"], &[], "").clean();
    let described = described.text();
    assert!(described.contains("is refused"), "{described}");
    let doctor = home.run(&["--config", &path, "doctor", v1], &[], "");
    assert_eq!(doctor.code, Some(1), "{}", doctor.stderr);
    let doctor = doctor.text();
    assert!(doctor.contains("is refused"), "{doctor}");

    chmod(&path, 0o600);
    home.run(&["--config", &path, "call", "list_sessions"], &[], "")
        .clean();
}

/// A user who may write a folder on the path of the file, or who owns a link on it, can replace the file.
#[test]
fn a_file_that_others_may_replace_is_refused() {
    let home = Home::new();
    let path = file(&home, "");
    let folder = home.files().join("open");
    fs::create_dir(&folder).unwrap();
    let link = folder.join("link.toml");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let code = |path: &str| home.run(&["--config", path, "serve"], &[], "").code;
    let (folder, link) = (folder.to_str().unwrap(), link.to_str().unwrap());
    for (mode, expect) in [(0o700, 0), (0o777, 1), (0o1777, 0), (0o770, 1)] {
        chmod(folder, mode);
        assert_eq!(code(link), Some(expect), "a link in a folder of {mode:o}");
        assert_eq!(code(&path), Some(0));
    }
    chmod(folder, 0o700);
    let files = home.files();
    chmod(files.to_str().unwrap(), 0o777);
    assert_eq!(code(link), Some(1), "what the link points to");
    chmod(files.to_str().unwrap(), 0o700);

    assert_eq!(code(link), Some(0));
    assert_eq!(code("/dev/null"), Some(0));
    for given_away in [path.as_str(), link] {
        if std::os::unix::fs::lchown(given_away, Some(54321), None).is_err() {
            return skip(Needs::Faults, "giving a file to another user needs root");
        }
        let output = home.run(&["--config", link, "serve"], &[], "");
        assert_eq!(output.code, Some(1), "{given_away}");
        let why = "belongs to another user";
        assert!(output.stderr.contains(why), "{}", output.stderr);
        std::os::unix::fs::lchown(given_away, Some(0), None).unwrap();
    }
    assert_eq!(code(link), Some(0));
}

/// Before each run the daemon checks every file of a program, and every link and folder on its path.
#[test]
fn programs_that_others_may_change_are_reported_and_not_run() {
    let home = Home::new();
    let ran = home.files().join("ran");
    let body = format!("touch {}; echo text", ran.display());
    let program = script(&home, "program", &body);
    let folder = home.files().join("open");
    fs::create_dir(&folder).unwrap();
    chmod(folder.to_str().unwrap(), 0o777);
    let link = folder.join("link");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    let above = folder.join("../program");
    let open = script(&home, "other", &body);
    chmod(&open, 0o770);
    let why = "can be written by others";
    for (argv, why) in [
        (vec![open.as_str()], why),
        (vec![link.to_str().unwrap()], why),
        (vec![above.to_str().unwrap()], why),
        (vec![&program, open.as_str()], why),
        (vec!["program"], "is not an absolute path"),
        (vec!["./program"], "is not an absolute path"),
    ] {
        let text = format!(
            "[summarizer]\nuse = \"command\"\n[summarizer.command]\nargv = {argv:?}\n\
             [[hooks]]\nevents = [\"session_opened\", \"session_tree\"]\nargv = {argv:?}\n"
        );
        let path = file(&home, &text);
        let described = home.run(&["--config", &path, "config"], &[], "").clean();
        let described = described.text();
        assert_eq!(described.matches(why).count(), 2, "{argv:?}: {described}");
        let mut d = Daemon::start_in(&home, &["--config", &path], &[]);
        d.ignore_bookkeeping();
        d.allow_stderr();
        d.init(json!({}));
        d.create();
        d.chain(&["u1", "a1", "u2"]);
        let params = json!({"targetId": "a1", "summarize": true});
        let error = d.err_kind("navigate_tree", params, "summarizerFailed");
        assert!(error.message.contains(why), "{argv:?}: {}", error.message);
        d.end_and_stderr();
        assert!(!ran.exists(), "{argv:?}");
    }
}

/// Programs once inherited the whole environment, with all keys.
#[test]
fn programs_get_a_small_environment() {
    let home = Home::new();
    let (summarizer, hook) = (home.files().join("s.env"), home.files().join("h.env"));
    let write = |to: &Path| format!("env > {0}.new; mv {0}.new {0}; echo text", to.display());
    let text = format!(
        "[summarizer]\nuse = \"command\"\n\
         [summarizer.command]\nargv = [{:?}]\nenv = [\"FOR_SUMMARIES\", \"TEST_API_KEY\"]\n\
         [summarizer.llm.providers.x]\napi = \"openai\"\nbase_url = \"http://h\"\n\
         key_env = \"TREELINED_KEY\"\n\
         [[hooks]]\nevents = [\"session_tree\"]\nargv = [{:?}]\nenv = [\"FOR_HOOKS\", \"UNSET\"]\n",
        script(&home, "summarize", &write(&summarizer)),
        script(&home, "hook", &write(&hook)),
    );
    let given = [
        ("LC_ALL", "C"),
        ("TZ", "UTC"),
        ("XDG_CACHE_HOME", "/c"),
        ("TREELINED_MINE", "m"),
    ];
    let named = [
        ("TEST_API_KEY", "k1"),
        ("FOR_SUMMARIES", "s"),
        ("FOR_HOOKS", "h"),
    ];
    let secret = [
        ("ANTHROPIC_API_KEY", "k2"),
        ("OPENAI_API_KEY", "k3"),
        ("TREELINED_KEY", "k4"),
        ("AWS_SESSION_TOKEN", "k5"),
        ("LD_DEBUG_OUTPUT", "/dev/null"),
    ];
    let path = file(&home, &text);
    let env = [&given[..], &named, &secret].concat();
    let mut d = Daemon::start_in(&home, &["--config", &path], &env);
    d.ignore_bookkeeping();
    d.init(json!({}));
    d.create();
    d.chain(&["u1", "a1", "u2"]);
    let params = json!({"targetId": "a1", "summarize": true});
    d.ok("navigate_tree", params);
    for (file, own) in [(summarizer, &named[..2]), (hook, &named[2..])] {
        eventually("the program has run", || file.exists());
        let text = fs::read_to_string(&file).unwrap();
        let names = |of: &[(&str, &str)]| -> Vec<bool> {
            let line = |(name, value): &(&str, &str)| format!("{name}={value}");
            of.iter()
                .map(|it| text.lines().any(|found| found == line(it)))
                .collect()
        };
        assert_eq!(names(&given), [true; 4], "{text}");
        assert_eq!(names(own), vec![true; own.len()], "{text}");
        assert_eq!(names(&secret), [false; 5], "{text}");
        let others: Vec<_> = named
            .iter()
            .filter(|it| !own.contains(it))
            .copied()
            .collect();
        assert_eq!(names(&others), vec![false; others.len()], "{text}");
        assert!(text.lines().any(|line| line.starts_with("PATH=")), "{text}");
        assert!(text.lines().any(|line| line.starts_with("HOME=")), "{text}");
    }
}

/// Text from files and arguments was once printed unchanged: C1 controls and marks that reverse the direction of
/// writing reached the terminal.
#[test]
fn settings_and_errors_are_printed_without_control_characters() {
    let evil = "a\u{9b}2J\u{202e}b\u{1b}[31m";
    let text = format!(
        "session_dir = \"/s/{}\"\n[summarizer]\nuse = \"llm\"\n\
         [summarizer.llm.context_windows]\n{key} = 5\n\
         [summarizer.llm.providers.{key}]\napi = \"openai\"\nbase_url = \"http://h\"\nkey_env = {key}\n\
         [[hooks]]\nevents = []\nargv = [{key}]\n",
        "\\u009B\\u202E\\u001B",
        key = "\"a\\u009B2J\\u202Eb\\u001B[31m\"",
    );
    let home = Home::new();
    let folder = home.files().join(evil);
    fs::create_dir(&folder).unwrap();
    let path = folder.join("config.toml");
    fs::write(&path, &text).unwrap();
    let path = path.to_str().unwrap();
    let is_bad = |char: char| char != '\n' && treelined_core::terminal::is_control(char);
    let unset = [("TREELINED_SESSION_DIR", "")];
    let output = home.run(&["--config", path, "config"], &unset, "").clean();
    let described = output.text();
    assert!(!described.contains(is_bad), "{described:?}");
    let again = home.run(
        &["--config", &file(&home, &described), "config"],
        &unset,
        "",
    );
    assert!(again.clean().text().contains("\\u009B"));

    fs::write(path, format!("x = \"{evil}\"")).unwrap();
    let session = home.file("s.jsonl", include_bytes!("../data/v3.jsonl"));
    let session = session.to_str().unwrap();
    let arguments: [&[&str]; 10] = [
        &["--config", path, "config"],
        &["--config", path, "doctor", session],
        &["--config", path],
        &[evil],
        &["--summarizer", evil],
        &["--max-frame-bytes", evil],
        &["call", "list_sessions", evil],
        &["call", evil],
        &["tree", evil],
        &["doctor", evil],
    ];
    for arguments in arguments {
        let output = home.run(arguments, &[], "");
        let shown = output.text() + &output.stderr;
        assert!(shown.contains("2J"), "{arguments:?}: {shown:?}");
        assert!(!shown.contains(is_bad), "{arguments:?}: {shown:?}");
    }
}

/// Writes an executable shell script and returns its path.
pub(crate) fn script(home: &Home, name: &str, body: &str) -> String {
    let path = home.file(name, format!("#!/bin/sh\n{body}\n").as_bytes());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The body of a script that starts a child, writes the child's id to this file, and waits.
pub(crate) fn with_child(pid_file: &Path) -> String {
    let pid_file = pid_file.display();
    format!("sleep 60 & echo $! > {pid_file}.new; mv {pid_file}.new {pid_file}; wait")
}

/// The child daemon of a command once reported the same problem again.
#[test]
fn an_error_of_the_settings_is_reported_once_with_its_remedy() {
    let home = Home::new();
    let path = file(&home, "durability = \"never\"\n");
    for command in [&["list"][..], &["status"], &["config"], &["serve"]] {
        let args = [&["--config", &path], command].concat();
        let output = home.run(&args, &[], "");
        assert_eq!(output.code, Some(1), "{command:?}");
        let lines: Vec<&str> = output.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{command:?}: {}", output.stderr);
        assert!(
            lines[0].starts_with("error: ") && lines[0].contains(&path),
            "{command:?}: {}",
            lines[0]
        );
        assert!(lines[1].starts_with("  try: "), "{command:?}: {}", lines[1]);
    }
}

#[test]
fn the_settings_are_printed_as_json() {
    let home = Home::new();
    let path = file(&home, "[summarizer]\nuse = \"outline\"\n");
    let args = [
        "--config",
        &path,
        "--durability",
        "always",
        "config",
        "--json",
    ];
    let text = home.run(&args, &[], "").clean().text();
    let described: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(described["file"], path.as_str());
    assert_eq!(described["problem"], Json::Null);
    let rows = described["settings"].as_array().unwrap();
    let row = |section: &str, key: &str| {
        let found = rows
            .iter()
            .find(|row| row["section"] == section && row["key"] == key);
        found.cloned().unwrap_or_default()
    };
    assert_eq!(
        row("summarizer", "use"),
        json!({"section": "summarizer", "key": "use", "value": "outline", "source": "file"})
    );
    assert_eq!(
        row("", "durability"),
        json!({"section": "", "key": "durability", "value": "always", "source": "commandLine"})
    );
    assert_eq!(row("", "session_dir")["source"], "environment");
    assert_eq!(row("limits", "max_frame_bytes")["source"], "default");
}
