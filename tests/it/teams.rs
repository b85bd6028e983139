//! The settings of a team, and the errors about them in a program without an engine. fleet.md.

use crate::config::{file, refused};
use crate::harness::*;

#[test]
fn a_database_of_the_team_needs_the_feature_postgres() {
    let home = Home::new();
    let url = "postgres://alice:secret@127.0.0.1:1/team";
    let with_team = file(
        &home,
        &format!("[team]\nengine = \"postgres\"\nurl = {url:?}\n"),
    );
    let lacks_feature = |args: &[&str], env: &[(&str, &str)]| {
        let output = home.run(args, env, "");
        assert_eq!(output.code, Some(2), "{args:?}: {output:?}");
        let text = &output.stderr;
        let is_named = text.contains("built without the feature postgres");
        assert!(is_named && !text.contains("secret"), "{text}");
    };
    lacks_feature(&["--config", &with_team], &[]);
    lacks_feature(&["list"], &[("TREELINED_LOG_SERVERS", url)]);
    let config = ["--config", &with_team, "config"];
    let shown = home.run(&config, &[], "").clean().text().to_owned();
    assert!(shown.contains("postgres://…@127.0.0.1:1/team"), "{shown}");
    let wrong = "[team]\nengine = \"postgres\"\nurl = \"mysql://db\"\n";
    refused(wrong, &["team.url", "begins with postgres://"]);
}

/// The name of a section once chose the engine, and the engine was called the log.
#[test]
fn a_team_has_one_engine() {
    let home = Home::new();
    let nats = "servers = [\"nats://h\"]\nstream = \"s\"\n";
    let url = "url = \"postgres://db/team\"\n";
    let shown = |text: &str, args: &[&str]| {
        let path = file(&home, text);
        let args = [&["--config", &path], args, &["config"]].concat();
        home.run(&args, &[], "").clean().text().to_owned()
    };
    let team = |engine: &str, members: &str| format!("[team]\nengine = {engine:?}\n{members}");
    for (engine, members) in [("nats", nats), ("postgres", url)] {
        let new = shown(&team(engine, members), &[]);
        assert!(!new.contains("old name"), "{new}");
        // The shown settings can be read again.
        let again = shown(&new, &[]);
        let is_ours = |line: &&str| line.starts_with("engine") || line.starts_with("url");
        assert!(
            again
                .lines()
                .filter(is_ours)
                .eq(new.lines().filter(is_ours))
        );
        let old = shown(&format!("[log.{engine}]\n{members}"), &[]);
        let hint = format!("# [log.{engine}] is the old name of this section");
        assert!(old.contains(&hint), "{old}");
        let rest = old.lines().filter(|line| !line.starts_with(&hint));
        assert!(rest.eq(new.lines()), "{old}\n{new}");
    }
    // A program without the engines refuses the option.
    if cfg!(all(feature = "nats", feature = "postgres")) {
        // The option replaces an address in the settings, or the engine.
        let other = shown(&team("nats", nats), &["--log", "postgres://other/team"]);
        assert!(other.contains("engine = \"postgres\" # command line"));
        assert!(!other.contains("servers"), "{other}");
        let other = shown(&team("nats", nats), &["--log", "nats://other"]);
        assert!(other.contains("stream = \"s\" # file"), "{other}");
        assert!(!other.contains("nats://h"), "{other}");
        let none = shown(&team("nats", nats), &["--log", "files"]);
        assert!(!none.contains("[team]"), "{none}");
    }

    refused(
        &team("mysql", url),
        &["team", "mysql", "`nats` or `postgres`"],
    );
    refused(&format!("[team]\n{url}"), &["engine"]);
    refused(&team("nats", url), &["url"]);
    let both = team("nats", nats) + "[log.postgres]\n" + url;
    refused(&both, &["a team has one engine"]);
}

/// Without the feature `nats`, the program once answered `unrecognized subcommand 'push'`, and a daemon with a team in
/// its settings kept sessions in files only, with a warning.
#[test]
fn what_needs_the_feature_nats_says_what_to_install() {
    let home = Home::new();
    let with_log = file(
        &home,
        "[team]\nengine = \"nats\"\nservers = [\"nats://127.0.0.1:1\"]\n",
    );
    let refuses = |args: &[&str], env: &[(&str, &str)]| {
        let output = home.run(args, env, "");
        assert_eq!(output.code, Some(2), "{args:?}: {output:?}");
        assert_eq!(output.stdout, b"", "{args:?}");
        for part in [
            "needs NATS JetStream",
            "built without the feature",
            "--features nats",
        ] {
            assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
        }
        assert_eq!(output.stderr.lines().count(), 2, "{}", output.stderr);
    };
    for args in [
        &["push", "--all"][..],
        &["pull", "a name"],
        &["--log", "nats://127.0.0.1:1"],
        &["list", "--log=nats://127.0.0.1:1"],
        &["doctor", "--cluster"],
        &["--config", &with_log],
        &["--config", &with_log, "list"],
        &["--config", &with_log, "call", "list_sessions"],
    ] {
        refuses(args, &[]);
    }
    refuses(&[], &[("TREELINED_LOG_SERVERS", "nats://127.0.0.1:1")]);
    let files = [("TREELINED_LOG_SERVERS", "files")];
    let list = ["--config", &with_log, "call", "list_sessions"];
    home.run(&list, &files, "").clean();
    let output = home
        .run(&["--config", &with_log, "config"], &[], "")
        .clean();
    assert!(output.text().contains("nats://127.0.0.1:1"));
}
