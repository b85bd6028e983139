//! The program, with homes of its own.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

struct Home {
    root: TempDir,
}

/// A file: its bytes, or the target of a link, and its mode.
type Files = BTreeMap<PathBuf, (Vec<u8>, u32)>;

impl Home {
    fn new() -> Home {
        let home = Home {
            root: tempfile::tempdir().unwrap(),
        };
        // The program is a stand-in that fails: nothing here imports.
        home.file("bin/treelined", "#!/bin/sh\nexit 7\n");
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(home.path("bin/treelined"), mode).unwrap();
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_treelined-setup"));
        command
            .env_clear()
            .env("HOME", self.root.path())
            .env("PATH", self.path("bin"))
            .args(args)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs it, which succeeds.
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?} {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// All files of the home.
    fn files(&self) -> Files {
        let mut files = Files::new();
        let mut folders = vec![self.root.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                if metadata.is_dir() {
                    folders.push(path.clone());
                }
                let content = match () {
                    () if metadata.is_symlink() => fs::read_link(&path)
                        .unwrap()
                        .into_os_string()
                        .into_encoded_bytes(),
                    () if metadata.is_file() => fs::read(&path).unwrap(),
                    () => Vec::new(),
                };
                files.insert(path, (content, metadata.mode()));
            }
        }
        files
    }
}

const ALL: [&str; 6] = ["claude-code", "codex", "opencode", "gemini", "goose", "pi"];

fn with<'a>(agents: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
    [agents, options].concat()
}

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

fn names(files: &Files) -> Vec<&PathBuf> {
    files.keys().collect()
}

/// When something else has changed since, only what was added goes.
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

/// Makes a file.
type Make = &'static dyn Fn(&Home);

/// Each file is left as it is, and the lines are printed.
#[test]
fn what_cannot_be_changed_safely_stays_and_its_lines_are_shown() {
    let cases: [(&str, Make); 6] = [
        ("not JSON", &|home| {
            home.file(".claude/settings.json", "{\"a\": ")
        }),
        ("another form", &|home| {
            home.file(".claude/settings.json", "{\"hooks\": 1}")
        }),
        ("not text", &|home| {
            fs::create_dir_all(home.path(".claude")).unwrap();
            fs::write(home.path(".claude/settings.json"), b"{\"a\": \"\xff\"}").unwrap();
        }),
        ("a link", &|home| {
            home.file("dotfiles/settings.json", "{}");
            fs::create_dir_all(home.path(".claude")).unwrap();
            symlink(
                home.path("dotfiles/settings.json"),
                home.path(".claude/settings.json"),
            )
            .unwrap();
        }),
        ("several names", &|home| {
            home.file(".claude/settings.json", "{}");
            fs::hard_link(home.path(".claude/settings.json"), home.path("other")).unwrap();
        }),
        ("not writable", &|home| {
            home.file(".claude/settings.json", "{}");
            let mode = fs::Permissions::from_mode(0o400);
            fs::set_permissions(home.path(".claude/settings.json"), mode).unwrap();
        }),
    ];
    for (what, make) in cases {
        let home = Home::new();
        make(&home);
        home.file(
            ".claude.json",
            "{\"mcpServers\":{\"treelined\":{\"command\":\"x\"}}}",
        );
        let before = home.files();
        let shown = home.ok(&["claude-code", "--yes", "--no-import"]);
        assert!(
            shown.contains("not changed") && shown.contains("\"SessionEnd\""),
            "{what}: {shown}"
        );
        assert_eq!(home.files(), before, "{what}");
    }
}

/// Codex knows one program alone: another one was replaced.
#[test]
fn another_notify_stays() {
    let home = Home::new();
    home.file(".codex/config.toml", "notify = [\"say\", \"done\"]\n");
    let before = home.files();
    let shown = home.ok(&["codex", "--yes", "--no-import"]);
    assert!(
        shown.contains("`notify` already") && shown.contains("--hook"),
        "{shown}"
    );
    assert_eq!(home.files(), before);
}

#[test]
fn nothing_is_written_without_a_yes() {
    let home = Home::new();
    home.file(".codex/config.toml", "");
    let before = home.files();
    let output = home.run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("+notify"),
        "{output:?}"
    );
    assert_eq!(home.files(), before);
    // Without an agent there is nothing to set up.
    let output = Home::new().run(&[]);
    assert_eq!(output.status.code(), Some(1));
}

/// An editor writes a file while the preview is read.
#[test]
fn a_file_that_changes_after_the_preview_stays() {
    let home = Home::new();
    home.file(".codex/config.toml", "model = \"o\"\n");
    home.file(".claude/settings.json", "{}\n");
    let fifo = home.path("fifo");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
    let mut child = home.command(&["claude-code", "codex", "--yes", "--no-import"]);
    let stdout = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&fifo)
        .unwrap();
    // The preview goes into a pipe that is full: the program waits.
    let mut filler = stdout.try_clone().unwrap();
    rustix::io::ioctl_fionbio(&filler, true).unwrap();
    while std::io::Write::write(&mut filler, &[b'x'; 4096]).is_ok() {}
    while std::io::Write::write(&mut filler, b"x").is_ok() {}
    rustix::io::ioctl_fionbio(&filler, false).unwrap();
    let child = child
        .stdout(stdout.try_clone().unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let waits = |id: u32| {
        let path = PathBuf::from(format!("/proc/{id}/wchan"));
        let state = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        let state = state.rsplit_once(") ").unwrap().1.to_owned();
        path.exists() && state.starts_with('S')
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !waits(child.id()) {
        assert!(std::time::Instant::now() < until);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    home.file(".codex/config.toml", "model = \"other\"\n");
    // The preview is read now.
    let reader = std::thread::spawn(move || {
        let mut stdout = stdout;
        let mut block = [0; 65_536];
        while std::io::Read::read(&mut stdout, &mut block)
            .is_ok_and(|read| block[..read].iter().any(|byte| *byte != b'#'))
        {}
    });
    drop(filler);
    let output = child.wait_with_output().unwrap();
    drop(reader);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("has changed in the meantime"), "{said}");
    assert_eq!(home.read(".codex/config.toml"), "model = \"other\"\n");
    assert!(
        home.read(".claude/settings.json").contains("--hook"),
        "the others are written"
    );
}

#[test]
fn an_earlier_path_of_the_program_is_replaced() {
    let home = Home::new();
    home.file(".codex/config.toml", "model = \"o\"\n");
    let before = home.files();
    home.ok(&["codex", "--yes", "--no-import"]);
    home.file("other/treelined", "");
    let other = home.path("other/treelined");
    home.ok(&[
        "codex",
        "--yes",
        "--no-import",
        "--daemon",
        other.to_str().unwrap(),
    ]);
    let text = home.read(".codex/config.toml");
    assert!(
        text.contains("other/treelined") && !text.contains("bin/treelined"),
        "{text}"
    );
    home.ok(&["--remove", "--yes"]);
    fs::remove_dir_all(home.path("other")).unwrap();
    assert_eq!(home.files(), before);
}

#[test]
fn the_result_is_json() {
    let home = Home::new();
    home.file(".codex/config.toml", "notify = [\"say\"]\n");
    let shown = home.ok(&[
        "codex",
        "pi",
        "--json",
        "--yes",
        "--no-import",
        "--session-dir",
        "/data/x",
    ]);
    let result: Value = serde_json::from_str(&shown).unwrap();
    let actions: Vec<_> = result["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["action"].clone())
        .collect();
    assert_eq!(actions, ["manual", "create", "create"]);
    assert!(
        result["steps"][0]["lines"]
            .as_str()
            .unwrap()
            .contains("/data/x")
    );
    assert_eq!(result["written"], true);
    let shown = home.ok(&[
        "codex",
        "pi",
        "--json",
        "--print",
        "--session-dir",
        "/data/x",
    ]);
    let result: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(result["steps"][1]["action"], "none");
}

#[test]
fn a_hook_that_setup_writes_is_one_that_the_program_takes() {
    let home = Home::new();
    home.ok(&["codex", "--yes", "--no-import"]);
    let text = home.read(".codex/config.toml");
    let line = text
        .lines()
        .find(|line| line.starts_with("notify"))
        .unwrap();
    let words: Vec<String> = serde_json::from_str(line.split_once('=').unwrap().1).unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_treelined-setup")).with_file_name("treelined");
    if !own.is_file() {
        // Without the workspace's other programs.
        return;
    }
    let output = Command::new(own)
        .args(&words[1..])
        .arg("{\"type\":\"agent-turn-complete\",\"thread-id\":\"x\"}")
        .env("HOME", home.root.path())
        .env("TREELINED_SESSION_DIR", home.path("sessions"))
        .output()
        .unwrap();
    assert!(output.status.success());
    let log = home.read("sessions/.imports/hooks.log");
    assert!(log.contains("not the id of a thread of Codex"), "{log}");
}
