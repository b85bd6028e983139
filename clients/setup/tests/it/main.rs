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

/// Codex knows one program alone: another one was replaced. Later the server was not added either, and the lines to add had
/// a second `notify`, with which Codex does not start.
#[test]
fn another_notify_stays_beside_the_server() {
    let home = Home::new();
    home.file(".codex/config.toml", "notify = [\"say\", \"done\"]\n");
    let before = home.files();
    let shown = home.ok(&["codex", "--yes", "--no-import"]);
    let command = format!(
        "{} import --hook codex JSON",
        home.path("bin/treelined").display()
    );
    assert!(
        shown.contains("`notify` already") && shown.contains(&command),
        "{shown}"
    );
    assert!(!shown.contains("notify = [\"/"), "{shown}");
    let text = home.read(".codex/config.toml");
    assert!(
        text.starts_with("notify = [\"say\", \"done\"]\n")
            && text.contains("[mcp_servers.treelined]"),
        "{text}"
    );
    assert_eq!(text.matches("notify").count(), 1, "{text}");
    let again = home.ok(&["codex", "--yes", "--no-import"]);
    assert!(again.contains("There is nothing to change."), "{again}");
    home.ok(&["codex", "--remove", "--yes"]);
    assert_eq!(home.files(), before);
}

/// The record had all of the file between the first place that was changed and the last; the preview showed the keys beside.
#[test]
fn secrets_are_neither_kept_nor_shown() {
    let home = Home::new();
    // Not one as a whole in this file: other programs look for them.
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

/// A hook and a server of a program with another name were not known as ours: each run added them, and none took them out.
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
    // Something else changes, so that the record cannot be used.
    for name in [
        ".claude/settings.json",
        ".claude.json",
        ".codex/config.toml",
    ] {
        home.file(name, &(home.read(name) + "\n"));
    }
    // Without its name it is told by the record that something is left.
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

/// Half of what Codex gets was taken for nothing: the record then had our lines as those that were there before.
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

/// A stand-in for systemctl, which notes what it is told.
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

/// A unit that runs without the link, since somebody has disabled it, was restarted when it was removed.
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

/// A file whose place a variable named at the time, or that another file now stands for, was never taken back.
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
    home.ok(&["opencode", "--yes", "--no-import"]);
    home.file(".config/opencode/opencode.jsonc", "{}\n");
    // Only by its form can it be taken out of this one.
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

/// What somebody has taken out by hand stayed in the record for ever.
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

/// The program may be gone before its texts are.
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

/// The agents that were named were set up, and all were imported, whose failure was nobody's.
#[test]
fn only_named_agents_are_imported_and_a_failure_counts() {
    let home = Home::new();
    let log = home.path("import.log");
    let answer = "{\"totals\":{\"newSessions\":2}}";
    let stand_in = |code: u8| {
        let log = log.display();
        let text = format!("#!/bin/sh\necho \"$@\" >>{log}\necho '{answer}'\nexit {code}\n");
        home.file("bin/treelined", &text);
    };
    stand_in(0);
    let shown = home.ok(&["codex", "pi", "--print"]);
    assert!(shown.contains("treelined import --from codex"), "{shown}");
    let shown = home.ok(&["codex", "pi", "--yes", "--json"]);
    let result: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(result["imported"]["newSessions"], 4);
    let expected = "import --from codex --json\nimport --from pi --json\n";
    assert_eq!(fs::read_to_string(&log).unwrap(), expected);
    stand_in(7);
    let output = home.run(&["codex", "--yes"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("`treelined import --from codex` failed"),
        "{said}"
    );
}

/// A relative folder of the `PATH` is another one for each agent, and what cannot be executed is not a program.
#[test]
fn the_program_is_one_that_agents_can_start() {
    let home = Home::new();
    let mut command = home.command(&["codex", "--print"]);
    command.current_dir(home.root.path()).env("PATH", "bin:");
    assert_eq!(command.output().unwrap().status.code(), Some(1));
    let mode = fs::Permissions::from_mode(0o644);
    fs::set_permissions(home.path("bin/treelined"), mode).unwrap();
    assert_eq!(home.run(&["codex", "--print"]).status.code(), Some(1));
}

/// A server of ours to which somebody has added stayed, and nobody said so.
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

/// The record of a file was that of the step that failed, so that the file could no longer be taken back to the byte.
#[test]
fn a_failed_step_forgets_nothing() {
    let home = Home::new();
    home.file(".codex/config.toml", "model = \"o\"");
    let before = home.files();
    home.ok(&["codex", "--yes", "--no-import"]);
    // The name of the file beside is taken: it has the id of the process, which exec keeps.
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
        // Of files this fails.
        let _folder = fs::remove_dir(entry.unwrap().path());
    }
    home.ok(&["--remove", "--yes"]);
    assert_eq!(home.files(), before);
}

/// A program that reads the result got nothing without a yes.
#[test]
fn json_is_printed_without_a_yes_too() {
    let home = Home::new();
    let output = home.run(&["codex", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["written"], false);
    assert_eq!(result["steps"][0]["action"], "create");
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
    assert_eq!(actions, ["edit", "manual", "create", "create"]);
    assert!(
        result["steps"][1]["lines"]
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
    assert_eq!(result["steps"][0]["action"], "none");
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
    let own = std::env::var_os("TREELINED_BIN").map_or(own, PathBuf::from);
    if !own.is_file() {
        assert!(
            std::env::var_os("TREELINED_BIN").is_none(),
            "{}",
            own.display()
        );
        eprintln!("skipped: {} is not built", own.display());
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
