//! The settings of the README for editors that these tests cannot run.

use crate::live::answer;
use crate::{AGENT, Editor, Folders, daemon};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Makes the programs that the settings name: treelined, and an agent of the tests as opencode.
fn programs(folder: &Path) {
    fs::create_dir(folder).unwrap();
    symlink(daemon(), folder.join("treelined")).unwrap();
    let agent = folder.join("opencode");
    let script = format!("#!/bin/sh\n[ \"$*\" = acp ] && exec python3 '{AGENT}'\n");
    fs::write(&agent, script).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The blocks of the README in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let readme = include_str!("../../README.md");
    let begin = format!("```{language}\n");
    let blocks = readme.split(&begin[..]).skip(1);
    blocks
        .map(|rest| rest.split_once("\n```").unwrap().0)
        .collect()
}

#[test]
fn the_settings_of_the_readme_start_the_relay() {
    let blocks = blocks("json");
    assert_eq!(blocks.len(), 2, "Zed and JetBrains");
    for block in blocks {
        let settings: Value = serde_json::from_str(block).unwrap();
        let servers = settings["agent_servers"].as_object().unwrap();
        let server = servers.values().next().unwrap();
        let folders = Folders::new();
        let bin = folders.path("bin");
        programs(&bin);
        let mut command = Command::new(bin.join(server["command"].as_str().unwrap()));
        let arguments = server["args"].as_array().unwrap().iter();
        command.args(arguments.map(|argument| argument.as_str().unwrap()));
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", bin.display()));
        command.env("HOME", folders.path("home"));
        command.env("XDG_STATE_HOME", folders.path("state"));
        command.env("TREELINED_SESSION_DIR", folders.path("sessions"));
        let mut editor = Editor::start(command);
        editor.ask("initialize", json!({ "protocolVersion": 1 }));
        let place = json!({ "cwd": folders.path("work"), "mcpServers": [] });
        editor.ask("session/new", place);
        editor.prompt("s1", "one");
        let tree = answer(&mut editor, "s1", "/tree");
        assert!(tree.contains("● 1 one ← here"), "{tree}");
        assert_eq!(editor.end(), 0);
    }
}

/// The settings in Lua and in Lisp have the same words as the command.
#[test]
fn all_settings_of_the_readme_start_the_same_command() {
    let settings = [blocks("lua"), blocks("elisp")].concat();
    assert_eq!(settings.len(), 3, "CodeCompanion, avante and agent-shell");
    for block in settings {
        let words = block.split('"').skip(1).step_by(2);
        let words: Vec<_> = words.skip_while(|word| *word != "treelined").collect();
        let expected = ["treelined", "acp", "--live", "--", "opencode", "acp"];
        assert_eq!(words[..6], expected, "{block}");
    }
}
