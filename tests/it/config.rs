//! The configuration file, `--config` and `treelined config`: what counts, where it comes from, and
//! what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use crate::harness::*;

/// `treelined config` with this file in the platform's place.
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
fn refused(file: &str, naming: &[&str]) {
    let output = described(&Home::new(), file, &[], &[]);
    assert_eq!(output.code, Some(1), "{file}");
    assert_eq!(output.stdout, b"", "{file}");
    for name in naming {
        assert!(output.stderr.contains(name), "{name} in {}", output.stderr);
    }
}

/// A configuration file beside the sessions.
pub fn file(home: &Arc<Home>, text: &str) -> String {
    let path = home.file("config.toml", text.as_bytes());
    path.to_str().unwrap().to_owned()
}

#[test]
fn without_a_file_everything_is_built_in() {
    let home = Home::new();
    let output = home.run(&["config"], &[], "").clean().text();
    assert!(output.starts_with("# no configuration file\n"), "{output}");
    let lines: Vec<&str> = output.lines().collect();
    assert!(
        lines.contains(&"durability = \"interval\" # default"),
        "{output}"
    );
    assert!(lines.contains(&"use = \"none\" # default"), "{output}");
    assert!(
        lines.contains(&"max_frame_bytes = 67108864 # default"),
        "{output}"
    );
    let sessions = format!("session_dir = {:?} # environment", home.sessions());
    assert!(lines.contains(&sessions.as_str()), "{output}");
}

#[test]
fn the_command_line_counts_before_the_environment_before_the_file() {
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
fn what_is_printed_is_a_file_that_says_the_same() {
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
fn a_key_that_stands_in_the_file_is_not_repeated() {
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
fn a_file_that_is_named_must_be_there() {
    let output = Home::new().run(&["--config", "/nowhere/c.toml"], &[], "");
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("/nowhere/c.toml"),
        "{}",
        output.stderr
    );
}

#[test]
fn the_daemon_serves_with_what_the_file_says() {
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

#[test]
fn hooks_that_others_may_write_are_refused() {
    let home = Home::new();
    let hook = script(&home, "hook", "exit 0");
    let path = file(
        &home,
        &format!("[[hooks]]\nevents = [\"session_tree\"]\nargv = [{hook:?}]\n"),
    );
    let config = || home.run(&["--config", &path, "config"], &[], "");
    config().clean();
    let chmod = |path: &str, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    for mode in [0o777, 0o720, 0o702] {
        chmod(&hook, mode).unwrap();
        let output = config();
        assert_eq!(output.code, Some(1), "{mode:o}");
        assert!(
            output.stderr.contains("can be written by others"),
            "{}",
            output.stderr
        );
    }
    chmod(&hook, 0o700).unwrap();
    config().clean();
    // Whoever may write the file that names it may as well write it.
    chmod(&path, 0o666).unwrap();
    assert_eq!(config().code, Some(1));
    chmod(&path, 0o600).unwrap();
    // Whoever may write the folder may put another one in its place.
    let folder = home.files();
    let folder = folder.to_str().unwrap();
    chmod(folder, 0o777).unwrap();
    assert_eq!(config().code, Some(1));
    chmod(folder, 0o700).unwrap();
    config().clean();

    for argv in ["[\"hook\"]", "[]", "[\"/nowhere/hook\"]"] {
        let text = format!("[[hooks]]\nevents = [\"session_tree\"]\nargv = {argv}\n");
        let output = home.run(&["--config", &file(&home, &text), "config"], &[], "");
        assert_eq!(output.code, Some(1), "{argv}");
    }
}

/// An executable shell script; its path.
pub fn script(home: &Home, name: &str, body: &str) -> String {
    let path = home.file(name, format!("#!/bin/sh\n{body}\n").as_bytes());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What a script does that has a child and waits for it; the child's id goes into this file.
pub fn with_child(pid_file: &Path) -> String {
    let pid_file = pid_file.display();
    format!("sleep 60 & echo $! > {pid_file}.new; mv {pid_file}.new {pid_file}; wait")
}
