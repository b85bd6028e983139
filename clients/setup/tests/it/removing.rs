//! Setup removes the pieces that it has added.

use crate::{ALL, Files, Home, with};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

#[test]
fn what_was_added_is_taken_out_to_the_byte() {
    let home = Home::new();
    home.file(
        ".claude/settings.json",
        "\u{feff}{\r\n\t// mine\r\n\t\"model\": \"opus\",\r\n}\r\n",
    );
    home.file(".claude.json", "{}");
    home.file(
        ".codex/config.toml",
        "# mine\nmodel = \"o\"\n\n[tui]\nx = 1",
    );
    home.file(".config/opencode/opencode.jsonc", "");
    home.file(".gemini/settings.json", "{\"mcpServers\": {}}\n");
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(home.path(".codex/config.toml"), mode).unwrap();
    let before = home.files();

    let shown = home.ok(&with(&ALL, &["--print"]));
    assert!(shown.contains("+notify = ["), "{shown}");
    assert_eq!(home.files(), before, "--print writes nothing");

    home.ok(&with(&ALL, &["--yes", "--no-import"]));
    let after = home.files();
    assert!(
        home.read(".claude/settings.json")
            .contains("import --hook claude-code")
    );
    assert!(home.read(".claude.json").contains("\"mcpServers\""));
    assert!(
        home.read(".codex/config.toml")
            .contains("[mcp_servers.treelined]")
    );
    assert!(
        home.read(".config/opencode/plugins/treelined.js")
            .contains("session.idle")
    );
    assert!(
        home.read(".config/opencode/opencode.jsonc")
            .contains("\"local\"")
    );
    for agent in ["gemini", "goose", "pi"] {
        let unit = format!("treelined-import-{agent}.service");
        let text = home.read(&format!(".config/systemd/user/default.target.wants/{unit}"));
        assert!(
            text.contains(&format!("import --watch --from {agent}\n")),
            "{text}"
        );
    }
    let mode = home.path(".codex/config.toml").metadata().unwrap().mode();
    assert_eq!(mode & 0o777, 0o640);

    let second = home.ok(&with(&ALL, &["--yes", "--no-import"]));
    assert!(second.contains("There is nothing to change."), "{second}");
    assert_eq!(home.files(), after, "twice changes nothing");

    home.ok(&["--remove", "--yes"]);
    assert_eq!(names(&home.files()), names(&before));
    assert_eq!(home.files(), before);
}

/// Hooks that recall are written only on request. A later setup keeps them, and `--remove` removes them with everything
/// else.
#[test]
fn hooks_that_recall_are_added_on_demand_and_taken_out_to_the_byte() {
    let home = Home::new();
    home.file(".claude/settings.json", "{\"model\": \"opus\"} // mine\n");
    home.file(".codex/hooks.json", "{\n  \"hooks\": {}\n}\n");
    home.file(".codex/config.toml", "");
    home.file(".gemini/settings.json", "{\n  \"ui\": {}\n}\n");
    let before = home.files();
    let agents = ["claude-code", "codex", "gemini", "opencode", "pi"];
    let plugin = ".config/opencode/plugins/treelined.js";
    let extension = ".pi/agent/extensions/treelined.js";
    home.ok(&with(&agents, &["--yes", "--no-import"]));
    assert!(!home.read(".claude/settings.json").contains("--recall"));
    assert!(!home.read(".codex/hooks.json").contains("--recall"));
    assert!(!home.read(".gemini/settings.json").contains("--recall"));
    assert!(!home.read(plugin).contains("--recall"));
    assert!(!home.path(extension).exists());
    let shown = home.ok(&with(&agents, &["--yes", "--no-import", "--recall"]));
    assert!(shown.contains("/hooks"), "{shown}");
    let after = home.files();
    let claude = home.read(".claude/settings.json");
    for wanted in [
        "import --hook claude-code",
        "mcp --recall",
        "\"PostToolUseFailure\"",
        "startup|clear",
    ] {
        assert!(claude.contains(wanted), "{wanted}: {claude}");
    }
    let codex = home.read(".codex/hooks.json");
    assert!(
        codex.contains("\"SessionStart\"") && codex.contains("\"PostToolUse\""),
        "{codex}"
    );
    let gemini = home.read(".gemini/settings.json");
    for wanted in [
        "\"mcpServers\"",
        "\"SessionStart\"",
        "\"AfterTool\"",
        "10000",
    ] {
        assert!(gemini.contains(wanted), "{wanted}: {gemini}");
    }
    for script in [plugin, extension] {
        let script = home.read(script);
        assert!(script.contains("[\"mcp\",\"--recall\"]"), "{script}");
    }
    for options in [
        &["--yes", "--no-import"][..],
        &["--yes", "--no-import", "--recall"],
    ] {
        home.ok(&with(&agents, options));
        assert_eq!(home.files(), after, "{options:?}");
    }
    home.ok(&["--remove", "--yes"]);
    assert_eq!(home.files(), before);
}

fn names(files: &Files) -> Vec<&PathBuf> {
    files.keys().collect()
}

/// If something else in a file has changed since, only the added pieces are removed.
#[test]
fn changes_of_others_stay() {
    let home = Home::new();
    home.file(".claude/settings.json", "{\n  \"model\": \"opus\"\n}\n");
    home.file(".codex/config.toml", "model = \"o\"\n");
    home.ok(&["claude-code", "codex", "--yes", "--no-import"]);
    let text = home.read(".claude/settings.json").replace("opus", "sonnet");
    home.file(".claude/settings.json", &text);
    let text = home.read(".codex/config.toml") + "\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n";
    home.file(".codex/config.toml", &text);
    // The record is lost too.
    fs::remove_file(home.path(".local/state/treelined/setup.json")).unwrap();
    home.ok(&["claude-code", "codex", "--remove", "--yes"]);
    assert_eq!(
        home.read(".claude/settings.json"),
        "{\n  \"model\": \"sonnet\"\n}\n"
    );
    assert_eq!(
        home.read(".codex/config.toml"),
        "model = \"o\"\n\n[projects.\"/w\"]\ntrust_level = \"trusted\"\n"
    );
}

/// The record once had the whole text between the first and the last change of the file, and the preview showed the
/// keys in this text.
#[test]
fn secrets_are_neither_kept_nor_shown() {
    let home = Home::new();
    // The token is assembled, since other programs search this file for tokens.
    let token = format!("ghp_{}", "0aB1cD2eF3gH4iJ5kL6m".repeat(2).split_at(36).0);
    home.file(
        ".codex/config.toml",
        &format!(
            "model = \"o\"\n# {token}\n[model_providers.a]\nkey = \"SECRET\"\n\n[tui]\nx = 1\n"
        ),
    );
    let long = "x".repeat(5_000);
    home.file(
        ".claude.json",
        &format!("{{\"a\":\"SECRET {long}\",\"token\":\"{token}\",\"mcpServers\":{{}}}}"),
    );
    let before = home.files();
    for options in [&["--print"][..], &["--print", "--json"]] {
        let shown = home.ok(&with(&["codex", "claude-code"], options));
        assert!(!shown.contains(&token), "{shown}");
        assert!(shown.contains("redacted:"), "{shown}");
        assert!(!shown.contains("SECRET"), "{shown}");
        assert!(!shown.contains(&long), "{shown}");
        assert!(shown.contains("mcpServers"), "{shown}");
    }
    let shown = home.ok(&["codex", "--print", "--json"]);
    assert!(
        !shown.contains("[tui]") && !shown.contains("model ="),
        "no context: {shown}"
    );

    home.ok(&["codex", "claude-code", "--yes", "--no-import"]);
    let record = home.path(".local/state/treelined/setup.json");
    let text = fs::read_to_string(&record).unwrap();
    assert!(text.contains("mcp_servers.treelined"), "{text}");
    assert!(!text.contains("SECRET") && !text.contains(&token), "{text}");
    assert_eq!(record.metadata().unwrap().mode() & 0o777, 0o600);
    let folder = record.parent().unwrap().metadata().unwrap();
    assert_eq!(folder.mode() & 0o777, 0o700);
    home.ok(&["--remove", "--yes"]);
    assert_eq!(home.files(), before);
}

/// Setup once did not recognize a hook and a server of a program with another name: each run added them again, and no
/// run removed them.
#[test]
fn a_program_of_another_name_is_known() {
    let home = Home::new();
    home.file(".claude/settings.json", "{\n  \"model\": \"opus\"\n}\n");
    home.file(".claude.json", "{\n  \"a\": 1\n}");
    home.file(".codex/config.toml", "model = \"o\"\n");
    let set = [
        "claude-code",
        "codex",
        "--yes",
        "--no-import",
        "--daemon",
        "/opt/tl",
    ];
    home.ok(&set);
    let after = home.files();
    let second = home.ok(&set);
    assert!(second.contains("There is nothing to change."), "{second}");
    assert_eq!(home.files(), after);
    // Another change makes the record unusable.
    for name in [
        ".claude/settings.json",
        ".claude.json",
        ".codex/config.toml",
    ] {
        home.file(name, &(home.read(name) + "\n"));
    }
    // Without the name of the program, only the record shows that something is left.
    let shown = home.ok(&["--remove", "--yes"]);
    assert!(
        shown.contains("/opt/tl import --hook claude-code"),
        "{shown}"
    );
    let kept = home.read(".local/state/treelined/setup.json");
    assert!(kept.contains("/opt/tl"), "{kept}");
    home.ok(&["--remove", "--yes", "--daemon", "/opt/tl"]);
    assert_eq!(
        home.read(".claude/settings.json"),
        "{\n  \"model\": \"opus\"\n}\n\n"
    );
    assert_eq!(home.read(".claude.json"), "{\n  \"a\": 1\n}\n");
    assert_eq!(home.read(".codex/config.toml"), "model = \"o\"\n\n");
    assert!(!home.path(".local").exists());
}

/// Setup once ignored half of its pieces for Codex: the record then had our lines as lines that were there before.
#[test]
fn half_of_it_is_made_whole_and_taken_out() {
    let home = Home::new();
    let hook = format!(
        "notify = [\"{}\", \"import\", \"--hook\", \"codex\"]\n",
        home.path("bin/treelined").display()
    );
    let server = format!(
        "[mcp_servers.treelined]\ncommand = \"{}\"\nargs = [\"mcp\"]\n",
        home.path("bin/treelined").display()
    );
    for half in [hook, server] {
        home.file(".codex/config.toml", &format!("model = \"o\"\n{half}"));
        home.ok(&["codex", "--yes", "--no-import"]);
        home.ok(&["codex", "--remove", "--yes"]);
        assert_eq!(home.read(".codex/config.toml"), "model = \"o\"\n");
    }
}

/// A stand-in for systemctl that records its arguments.
fn note_systemctl(home: &Home) {
    let log = home.path("systemctl.log");
    home.file(
        "bin/systemctl",
        &format!("#!/bin/sh\necho \"$@\" >>{}\n", log.display()),
    );
    fs::set_permissions(
        home.path("bin/systemctl"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
}

/// A running unit whose link a user had removed was once restarted when it should be removed.
#[test]
fn a_unit_that_is_removed_is_stopped() {
    let home = Home::new();
    note_systemctl(&home);
    home.ok(&["pi", "--yes", "--no-import"]);
    let unit = "treelined-import-pi.service";
    assert_eq!(
        home.read("systemctl.log"),
        format!("--user daemon-reload\n--user restart {unit}\n")
    );
    fs::remove_file(home.path(&format!(".config/systemd/user/default.target.wants/{unit}")))
        .unwrap();
    fs::remove_file(home.path("systemctl.log")).unwrap();
    home.ok(&["pi", "--remove", "--yes"]);
    assert_eq!(
        home.read("systemctl.log"),
        format!("--user stop {unit}\n--user daemon-reload\n")
    );
}

/// Setup may have written into a file that it does not use now: a variable named its folder at the time, or the agent
/// now uses another file. Pieces in such a file were once never removed.
#[test]
fn files_in_earlier_places_are_taken_back() {
    let home = Home::new();
    home.file("codex/config.toml", "model = \"o\"\n");
    home.file(".config/opencode/opencode.json", "{}\n");
    let before = home.files();
    let run = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("CODEX_HOME", home.path("codex"));
        let xdg = command.env("XDG_CONFIG_HOME", home.path("configuration"));
        assert!(xdg.output().unwrap().status.success());
    };
    run(&["codex", "pi", "--yes", "--no-import"]);
    // The unit sets the variables that it does not inherit.
    let unit = home.read("configuration/systemd/user/treelined-import-pi.service");
    let place = home.path("configuration");
    let variable = format!("\nEnvironment=XDG_CONFIG_HOME={}\n", place.display());
    assert!(unit.contains(&variable), "{unit}");
    home.ok(&["opencode", "--yes", "--no-import"]);
    home.file(".config/opencode/opencode.jsonc", "{}\n");
    // In this file only the form of the piece identifies it.
    home.file(
        "codex/config.toml",
        &home.read("codex/config.toml").replace("\"o\"", "\"p\""),
    );
    let shown = home.ok(&["--remove", "--yes"]);
    assert!(shown.contains("codex/config.toml"), "{shown}");
    fs::remove_file(home.path(".config/opencode/opencode.jsonc")).unwrap();
    assert_eq!(home.read("codex/config.toml"), "model = \"p\"\n");
    home.file("codex/config.toml", "model = \"o\"\n");
    assert_eq!(home.files(), before);
}

/// A piece that a person had removed by hand once stayed in the record for ever.
#[test]
fn the_record_forgets_what_was_taken_out_by_hand() {
    let home = Home::new();
    home.file(".codex/config.toml", "model = \"o\"\n");
    let before = home.files();
    home.ok(&["codex", "--yes", "--no-import"]);
    home.file(".codex/config.toml", "model = \"o\"\n");
    home.ok(&["--remove"]);
    assert_eq!(home.files(), before);
}

/// The pieces can be removed after the program is gone.
#[test]
fn removal_needs_no_program() {
    let home = Home::new();
    home.file(".codex/config.toml", "model = \"o\"\n");
    home.file(".claude.json", "{}");
    let before = home.files();
    home.ok(&["codex", "claude-code", "--yes", "--no-import"]);
    let program = fs::read(home.path("bin/treelined")).unwrap();
    fs::remove_file(home.path("bin/treelined")).unwrap();
    assert_eq!(home.run(&["codex", "--yes"]).status.code(), Some(1));
    home.ok(&["--remove", "--yes"]);
    fs::write(home.path("bin/treelined"), program).unwrap();
    fs::set_permissions(
        home.path("bin/treelined"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    assert_eq!(home.files(), before);
}

/// A person had added something to a server of ours. The removal once left the server without a message.
#[test]
fn what_stays_on_removal_is_named() {
    let home = Home::new();
    home.ok(&["claude-code", "codex", "--yes", "--no-import"]);
    let text = home
        .read(".claude.json")
        .replace("\"type\"", "\"env\": {}, \"type\"");
    home.file(".claude.json", &text);
    home.file(
        ".codex/config.toml",
        &(home.read(".codex/config.toml") + "enabled = true\n"),
    );
    home.file(
        ".config/goose/config.yaml",
        "extensions:\n  treelined:\n    enabled: true\n",
    );
    let shown = home.ok(&["--remove", "--yes"]);
    assert!(shown.contains("mcpServers.treelined"), "{shown}");
    assert!(shown.contains("[mcp_servers.treelined]"), "{shown}");
    assert!(shown.contains("YAML is not edited"), "{shown}");
    assert_eq!(home.read(".claude.json"), text);
}

/// The record of a file once had the content of the step that failed, so that the file could not be restored byte for
/// byte.
#[test]
fn a_failed_step_forgets_nothing() {
    let home = Home::new();
    home.file(".codex/config.toml", "model = \"o\"");
    let before = home.files();
    home.ok(&["codex", "--yes", "--no-import"]);
    // The name of the temporary file is taken. It contains the id of the process, which `exec` keeps.
    let script = format!(
        "mkdir .codex/.config.toml.$$.treelined-setup; PATH={} exec {} codex --yes --no-import --daemon /opt/treelined",
        home.path("bin").display(),
        env!("CARGO_BIN_EXE_treelined-setup"),
    );
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", &script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.root.path())
        .current_dir(home.root.path());
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    for entry in fs::read_dir(home.path(".codex")).unwrap() {
        // This fails for files, which stay.
        let _folder = fs::remove_dir(entry.unwrap().path());
    }
    home.ok(&["--remove", "--yes"]);
    assert_eq!(home.files(), before);
}

/// If the record is damaged, or from another version, the error says what to do.
#[test]
fn a_record_that_cannot_be_read_stops_it() {
    let home = Home::new();
    home.file(
        ".local/state/treelined/setup.json",
        "{\"files\":{\"/a\":{\"at\":1}}}",
    );
    let before = home.files();
    let output = home.run(&["codex", "--yes"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("setup.json cannot be read; remove it"),
        "{said}"
    );
    assert_eq!(home.files(), before);
}
