//! Tests of the program, each with its own home.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod home;
mod removing;

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

/// The files of a home: the bytes or the target of a link, and the mode.
type Files = BTreeMap<PathBuf, (Vec<u8>, u32)>;

impl Home {
    fn new() -> Home {
        let home = Home {
            root: tempfile::tempdir().unwrap(),
        };
        // The program is a stand-in that fails, so imports never succeed here.
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

    /// Runs the program, which must succeed.
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

/// The program of the daemon, which this package does not build. `None`, with a message, if it does not exist.
fn treelined() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_treelined-setup")).with_file_name("treelined");
    let named = std::env::var_os("TREELINED_BIN").map(PathBuf::from);
    let is_named = named.is_some();
    let program = named.unwrap_or(beside);
    if program.is_file() {
        return Some(program);
    }
    assert!(!is_named, "{}", program.display());
    eprintln!("skipped: {} is not built", program.display());
    None
}

const ALL: [&str; 6] = ["claude-code", "codex", "opencode", "gemini", "goose", "pi"];

fn with<'a>(agents: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
    [agents, options].concat()
}

/// Makes a file.
type Make = &'static dyn Fn(&Home);

/// Setup does not change any of these files, and prints the lines to add.
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

/// Codex can have only one `notify` program. Setup once replaced the program of another tool. Later it left out the
/// server too, and printed a second `notify`, with which Codex does not start.
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

/// Setup once set up the named agents but imported from all agents, and failures of the others were not reported.
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

/// The first hooks that recalled in a large session directory were ended before they had an answer.
#[test]
fn with_recall_the_sessions_are_read_in_the_background() {
    let home = Home::new();
    let log = home.path("read.log");
    let text = format!("#!/bin/sh\necho \"$@\" >>{}\necho '{{}}'\n", log.display());
    home.file("bin/treelined", &text);
    let command = "mcp --recall --index";
    let shown = home.ok(&["codex", "--print"]);
    assert!(!shown.contains(command), "{shown}");
    let shown = home.ok(&["codex", "--recall", "--yes"]);
    assert!(
        shown.contains(&format!("Then `treelined {command}` reads")),
        "{shown}"
    );
    let begun = std::time::Instant::now();
    while fs::read_to_string(&log).unwrap() != format!("import --from codex\n{command}\n") {
        assert!(
            begun.elapsed().as_secs() < 60,
            "{:?}",
            fs::read_to_string(&log)
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// A relative folder on the `PATH` means another folder for each agent, and a file that cannot be executed is not a
/// program.
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

/// A program that reads the result once got nothing unless it passed `--yes`.
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
    // Without an agent setup has nothing to do.
    let output = Home::new().run(&[]);
    assert_eq!(output.status.code(), Some(1));
}

/// An editor changes a file while the user reads the preview.
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
    // The preview goes into a full pipe, so the program waits.
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
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !waits(child.id()) {
        assert!(std::time::Instant::now() < until);
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    home.file(".codex/config.toml", "model = \"other\"\n");
    // The preview is read now, so the program continues.
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
    let Some(own) = treelined() else {
        return;
    };
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
