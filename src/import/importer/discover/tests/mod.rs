//! Where sources are found.

mod copilot;

use super::*;
use crate::importer::ledger::rows::SourceRow;
use crate::importer::source::facts::SideKind;
use std::os::unix::fs::{PermissionsExt, symlink};

const CLAUDE: &str = "{\"type\":\"user\",\"uuid\":\"u\",\"parentUuid\":null,\"sessionId\":\"s\"}\n";
const CODEX: &str = "{\"timestamp\":\"t\",\"type\":\"session_meta\",\"payload\":{\"id\":\"x\"}}\n";
const GEMINI: &str = "{\"sessionId\":\"s\",\"projectHash\":\"h\",\"startTime\":\"t\"}\n";
const GEMINI_OLD: &str =
    "{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"h\",\n  \"messages\": []\n}\n";
const PI: &str =
    "{\"type\":\"session\",\"version\":3,\"id\":\"p\",\"timestamp\":\"t\",\"cwd\":\"/\"}\n";

/// A folder of test files.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn root(&self) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap()
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn put_fixture(&self, path: &str, fixture: &str) {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import");
        self.put(path, fs::read(data.join(fixture)).unwrap());
    }

    /// For each source, its tool and its path below the folder.
    fn find(&self, from: Option<Tool>, paths: &[&str]) -> Vec<String> {
        self.shown(&self.discover(from, paths).unwrap())
    }

    fn discover(&self, from: Option<Tool>, paths: &[&str]) -> Result<FoundSources> {
        let paths = paths.iter().map(|path| self.root().join(path)).collect();
        let home = self.root().join("home");
        let environment = |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
        let sessions = self.root().join("sessions-of-ours");
        let ledger = Ledger::default();
        let request = Request { from, paths };
        discover_in(&request, &sessions, &ledger, &environment)
    }

    fn shown(&self, found: &FoundSources) -> Vec<String> {
        let show = |source: &Source| {
            let path = source.path.strip_prefix(self.root()).unwrap().display();
            let part = if source.part.is_some() { "#" } else { "" };
            format!("{} {path}{part}", source.tool.name())
        };
        let mut shown: Vec<String> = found.sources.iter().map(show).collect();
        shown.dedup();
        shown
    }
}

#[test]
fn each_tool_is_found_where_it_keeps_its_sessions() {
    let place = Place::new();
    place.put("home/.claude/projects/-w/s.jsonl", CLAUDE);
    place.put("home/.claude/projects/-w/s/subagents/agent-a.jsonl", CLAUDE);
    place.put("home/.claude/history.jsonl", "{}\n");
    place.put(
        "home/.codex/sessions/2026/11/22/rollout-2026-a.jsonl",
        CODEX,
    );
    place.put("home/.codex/archived_sessions/rollout-2026-b.jsonl.zst", "");
    place.put("home/.codex/history.jsonl", "{}\n");
    place.put("home/.gemini/tmp/p/chats/session-1.jsonl", GEMINI);
    place.put("home/.gemini/tmp/p/chats/session-2.json", GEMINI_OLD);
    place.put("home/.gemini/tmp/p/logs.json", "[]");
    place.put("home/.pi/agent/sessions/--w--/1_p.jsonl", PI);
    place.put_fixture(
        "home/.local/share/goose/sessions/sessions.db",
        "goose/sessions.db",
    );
    place.put_fixture(
        "home/.local/share/opencode/opencode.db",
        "opencode/opencode.db",
    );
    let expected = [
        "claude-code home/.claude/projects/-w/s/subagents/agent-a.jsonl",
        "claude-code home/.claude/projects/-w/s.jsonl",
        "codex home/.codex/archived_sessions/rollout-2026-b.jsonl.zst",
        "codex home/.codex/sessions/2026/11/22/rollout-2026-a.jsonl",
        "opencode home/.local/share/opencode/opencode.db#",
        "gemini home/.gemini/tmp/p/chats/session-1.jsonl",
        "gemini home/.gemini/tmp/p/chats/session-2.json",
        "goose home/.local/share/goose/sessions/sessions.db#",
        "pi home/.pi/agent/sessions/--w--/1_p.jsonl",
    ];
    assert_eq!(place.find(None, &[]), expected);
    assert_eq!(place.find(Some(Tool::Pi), &[]), expected[8..]);
    let codex = [
        "home/.codex/sessions",
        "home/.codex",
        "home/.codex/sessions",
    ];
    assert_eq!(place.find(None, &codex), expected[2..4], "once each");
    for (home, sources) in [("home/.claude", 0..2), ("home", 5..7), ("home/.pi", 8..9)] {
        assert_eq!(place.find(None, &[home]), expected[sources], "{home}");
    }
}

/// A tool, the variables that are set, and the locations that are expected.
type Case<'c> = (Tool, &'c [(&'c str, &'c str)], &'c [&'c str]);

/// A report names the variables. The test checks that these are the variables that are looked up.
#[test]
fn the_variables_that_are_told_are_those_that_count() {
    for tool in Tool::ALL {
        let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let environment = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            (name == "HOME").then(|| OsString::from("/h"))
        };
        homes::default_places(tool, &environment);
        let told: std::collections::BTreeSet<String> = homes::variables(tool)
            .iter()
            .map(|name| (*name).to_owned())
            .collect();
        assert_eq!(asked.into_inner(), told, "{tool:?}");
    }
}

#[test]
fn variables_of_the_tools_move_their_places() {
    let places = |tool, set: &[(&str, &str)]| {
        let environment = |name: &str| {
            let found = set.iter().find(|(set, _)| *set == name);
            let home = (name == "HOME").then_some("/h");
            found.map(|(_, value)| *value).or(home).map(OsString::from)
        };
        homes::default_places(tool, &environment)
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>()
    };
    let cases: [Case<'_>; 12] = [
        (Tool::ClaudeCode, &[], &["/h/.claude"]),
        (Tool::ClaudeCode, &[("CLAUDE_CONFIG_DIR", "/c")], &["/c"]),
        (Tool::Codex, &[("CODEX_HOME", "")], &["/h/.codex"]),
        (Tool::Codex, &[("CODEX_HOME", "/c")], &["/c"]),
        (Tool::Gemini, &[], &["/h/.gemini"]),
        (Tool::Gemini, &[("GEMINI_CLI_HOME", "/g")], &["/g/.gemini"]),
        (Tool::Opencode, &[("XDG_DATA_HOME", "/d")], &["/d/opencode"]),
        (
            Tool::Opencode,
            &[("OPENCODE_DB", "/x/y.db")],
            &["/x/y.db", "/h/.local/share/opencode"],
        ),
        (Tool::Goose, &[("GOOSE_PATH_ROOT", "/r")], &["/r"]),
        (
            Tool::Goose,
            &[("XDG_DATA_HOME", "/d")],
            if cfg!(target_os = "macos") {
                &["/h/Library/Application Support/Block/goose"]
            } else {
                &["/d/goose"]
            },
        ),
        (Tool::Pi, &[], &["/h/.pi/agent"]),
        (Tool::Pi, &[("PI_CODING_AGENT_DIR", "/p")], &["/p"]),
    ];
    for (tool, set, expected) in cases {
        assert_eq!(places(tool, set), expected, "{tool:?} {set:?}");
    }
}

#[test]
fn files_elsewhere_are_recognized_by_their_content() {
    let place = Place::new();
    place.put("mixed/a/claude.txt", CLAUDE);
    place.put("mixed/b.jsonl", CODEX);
    let compressed = zstd::encode_all(CODEX.as_bytes(), 3).unwrap();
    place.put("mixed/c.jsonl.zst", compressed);
    let damaged = b"\x28\xb5\x2f\xfd not Zstandard";
    place.put("mixed/rollout-d.jsonl.zst", damaged);
    place.put("mixed/d.json", GEMINI_OLD);
    place.put("mixed/e.jsonl", PI);
    place.put("mixed/f.jsonl", "{\"some\":\"thing\"}\n");
    place.put("mixed/g.txt", "no JSON");
    place.put("mixed/empty.jsonl", "");
    let summary = "{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"y\"}\n";
    place.put("mixed/h.jsonl", summary);
    let long = format!("{}{}", &GEMINI[..GEMINI.len() - 2], ",\"messages\":[");
    place.put("mixed/i.json", long + &"{\"a\":1},".repeat(100_000));
    place.put_fixture("mixed/j.sqlite", "goose/sessions.db");
    let expected = [
        "claude-code mixed/a/claude.txt",
        "claude-code mixed/h.jsonl",
        "codex mixed/b.jsonl",
        "codex mixed/c.jsonl.zst",
        "codex mixed/rollout-d.jsonl.zst",
        "gemini mixed/d.json",
        "gemini mixed/i.json",
        "goose mixed/j.sqlite#",
        "pi mixed/e.jsonl",
    ];
    assert_eq!(place.find(None, &["mixed"]), expected);
    assert_eq!(place.find(Some(Tool::Codex), &["mixed"]), expected[2..5]);
    for file in [
        "mixed/a/claude.txt",
        "mixed/b.jsonl",
        "mixed/d.json",
        "mixed/e.jsonl",
    ] {
        assert_eq!(place.find(None, &[file]).len(), 1, "{file}");
    }
    // Once a folder was imported as if its unknown file did not exist.
    let failures = |from: Option<Tool>| {
        let found = place.discover(from, &["mixed"]).unwrap();
        let failures = found.failures.into_iter();
        failures.map(|it| (it.path, it.kind)).collect::<Vec<_>>()
    };
    let unknown = place.root().join("mixed/f.jsonl");
    for from in [None, Some(Tool::Codex)] {
        assert_eq!(failures(from), [(unknown.clone(), "unrecognized")]);
    }
    let unknown = place.discover(None, &["mixed/f.jsonl"]).unwrap();
    assert_eq!(unknown.failures[0].kind, "unrecognized");
    assert_eq!(
        place.find(Some(Tool::Codex), &["mixed/f.jsonl"]),
        ["codex mixed/f.jsonl"],
        "the named tool counts"
    );
}

/// Qwen Code writes Gemini's messages in records like the records of Claude Code. Once such a file was taken for a file
/// of Claude Code, and nothing was read.
#[test]
fn files_of_qwen_code_are_not_taken_for_those_of_others() {
    let place = Place::new();
    let envelope =
        r#""sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","version":"0.3.0""#;
    let user = format!(
        r#"{{"uuid":"u","parentUuid":null,{envelope},"type":"user","message":{{"role":"user","parts":[{{"text":"go"}}]}}}}"#
    );
    let telemetry = format!(
        r#"{{"uuid":"t","parentUuid":"u",{envelope},"type":"system","subtype":"ui_telemetry","systemPayload":{{}}}}"#
    );
    place.put("qwen/chats/s.jsonl", format!("{user}\n{telemetry}\n"));
    place.put("qwen/chats/t.jsonl", format!("{telemetry}\n{user}\n"));
    for (from, path, files) in [
        (None, "qwen", 2),
        (None, "qwen/chats/s.jsonl", 1),
        (Some(Tool::QwenCode), "qwen/chats/t.jsonl", 1),
    ] {
        let found = place.find(from, &[path]);
        assert_eq!(found.len(), files, "{found:?}");
        assert!(
            found.iter().all(|it| it.starts_with("qwen-code ")),
            "{found:?}"
        );
    }
    let found = place.discover(Some(Tool::ClaudeCode), &["qwen/chats/t.jsonl"]);
    let found = found.unwrap();
    assert!(found.sources.is_empty(), "{:?}", found.sources);
    assert_eq!(found.failures[0].kind, "unrecognized");
    assert!(found.failures[0].message.contains("--from qwen-code"));
    let found = place.discover(Some(Tool::Gemini), &["qwen/chats"]).unwrap();
    assert!(found.sources.is_empty(), "{:?}", found.sources);
}

/// Qwen Code and Claude Code each have a folder `projects`.
#[test]
fn the_folder_of_qwen_code_is_not_that_of_claude_code() {
    let place = Place::new();
    place.put("home/projects/-w/chats/s.jsonl", "{}\n");
    let folder = place.root().join("home");
    assert!(homes::homes(Tool::ClaudeCode, &folder).is_empty());
    assert_eq!(homes::homes(Tool::QwenCode, &folder).len(), 1);
}

#[test]
fn a_missing_path_and_one_in_the_session_directory_are_errors() {
    let place = Place::new();
    place.put("sessions-of-ours/--w--/1_p.jsonl", PI);
    place.put("empty/x", "");
    fs::remove_file(place.root().join("empty/x")).unwrap();
    for wrong in [
        "missing",
        "sessions-of-ours",
        "sessions-of-ours/--w--/1_p.jsonl",
    ] {
        assert!(place.discover(None, &["empty", wrong]).is_err(), "{wrong}");
    }
    assert!(place.find(None, &["empty"]).is_empty());
    place.put("e.jsonl", PI);
    assert_eq!(place.find(None, &[""]), ["pi e.jsonl"], "ours are left out");
}

/// pi and Codex both have a folder named `sessions`.
#[test]
fn the_session_directory_is_not_a_home_of_a_tool() {
    let place = Place::new();
    place.put("sessions/.imports/ledger.jsonl", PI);
    place.put("sessions/--w--/1_p.jsonl", PI);
    place.put("c.jsonl", CODEX);
    let request = Request {
        from: None,
        paths: vec![place.root()],
    };
    let ours = place.root().join("sessions");
    let found = discover_in(&request, &ours, &Ledger::default(), &|_| None);
    assert_eq!(place.shown(&found.unwrap()), ["codex c.jsonl"]);
}

#[test]
fn records_of_claude_code_are_recognized_without_ids() {
    let place = Place::new();
    for name in ["valid_session", "truncated", "queued_system_messages"] {
        let file = format!("{name}.jsonl");
        place.put_fixture(&file, &format!("claude-code/{file}"));
    }
    let all = ["queued_system_messages", "truncated", "valid_session"];
    let all = all.map(|name| format!("claude-code {name}.jsonl"));
    assert_eq!(place.find(None, &[""]), all);
}

#[test]
fn links_below_a_path_are_not_followed_and_a_link_that_is_named_is() {
    let place = Place::new();
    let file = place.put("real/e.jsonl", PI);
    place.put("other/f.jsonl", PI);
    let root = place.root();
    symlink(&file, root.join("other/link.jsonl")).unwrap();
    symlink(root.join("real"), root.join("other/folder")).unwrap();
    symlink(root.join("other"), root.join("other/circle")).unwrap();
    assert_eq!(place.find(None, &["other"]), ["pi other/f.jsonl"]);
    for named in ["other/link.jsonl", "other/folder"] {
        assert_eq!(place.find(None, &[named]), ["pi real/e.jsonl"], "{named}");
    }
}

#[test]
fn a_plain_file_counts_instead_of_its_compressed_twin() {
    let place = Place::new();
    for name in [
        "rollout-a.jsonl",
        "rollout-a.jsonl.zst",
        "rollout-b.jsonl.zst",
    ] {
        place.put(&format!("codex/sessions/2026/{name}"), CODEX);
    }
    let expected = [
        "codex codex/sessions/2026/rollout-a.jsonl",
        "codex codex/sessions/2026/rollout-b.jsonl.zst",
    ];
    assert_eq!(place.find(None, &["codex"]), expected);
}

#[test]
fn side_files_belong_to_their_sources() {
    let place = Place::new();
    let main = place.put("c/projects/-w/v1.2.jsonl", CLAUDE);
    place.put("c/projects/-w/v1.2/tool-results/toolu_1.txt", "output");
    place.put("c/projects/-w/v1.2/tool-results/log.jsonl", "{}\n");
    place.put("c/projects/-w/v1.2/subagents/agent-a.jsonl", CLAUDE);
    place.put("c/projects/-w/v1.2/subagents/agent-a.meta.json", "{}");
    place.put("x/session_index.jsonl", "{}\n");
    place.put("x/sessions/2026/rollout-a.jsonl", CODEX);
    place.put("g/projects.json", "{}");
    place.put("g/tmp/p/.project_root", "/w");
    place.put("g/tmp/p/chats/session-1.jsonl", GEMINI);
    let sides = |from, path: &str| {
        let found = place.discover(from, &[path]).unwrap();
        assert!(found.failures.is_empty(), "{:?}", found.failures);
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let shown = |source: &Source| {
            let files = source.side_files.iter();
            let files = files.map(|file| (file.kind, name(&file.path))).collect();
            (name(&source.path), files)
        };
        found
            .sources
            .iter()
            .map(shown)
            .collect::<Vec<(_, Vec<_>)>>()
    };
    let result = |name: &str| (SideKind::ToolResult, name.to_owned());
    let spawn = vec![(SideKind::Spawn, "agent-a.meta.json".to_owned())];
    let results = vec![result("log.jsonl"), result("toolu_1.txt")];
    let claude = vec![
        ("agent-a.jsonl".to_owned(), spawn),
        ("v1.2.jsonl".to_owned(), results),
    ];
    assert_eq!(sides(None, "c"), claude);
    assert_eq!(
        sides(None, main.to_str().unwrap()),
        claude,
        "of a single file"
    );
    let names = vec![(SideKind::Names, "session_index.jsonl".to_owned())];
    for path in ["x", "x/sessions/2026", "x/sessions/2026/rollout-a.jsonl"] {
        assert_eq!(sides(Some(Tool::Codex), path)[0].1, names, "{path}");
    }
    let projects = vec![
        (SideKind::ProjectRoot, ".project_root".to_owned()),
        (SideKind::Projects, "projects.json".to_owned()),
    ];
    for path in ["g", "g/tmp/p/chats/session-1.jsonl"] {
        assert_eq!(sides(None, path)[0].1, projects, "{path}");
    }
}

#[test]
fn folders_without_permission_are_failures_and_the_rest_is_found() {
    let place = Place::new();
    place.put("c/projects/a/s.jsonl", CLAUDE);
    let closed = place.put("c/projects/b/t.jsonl", CLAUDE);
    let folder = closed.parent().unwrap().to_owned();
    let allow = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
    allow(0o000);
    let is_root = fs::read_dir(&folder).is_ok();
    let found = place.discover(None, &["c"]).unwrap();
    // The folder itself is not a home of Codex, so its files are recognized by their content.
    let named = place.discover(Some(Tool::Codex), &["c"]).unwrap();
    allow(0o700);
    assert!(
        place
            .shown(&found)
            .contains(&"claude-code c/projects/a/s.jsonl".to_owned())
    );
    if !is_root {
        assert_eq!(found.failures.len(), 1);
        assert_eq!(found.failures[0].kind, "pathDenied");
        assert_eq!(found.failures[0].path, folder);
        assert_eq!(named.failures[0].tool, Some(Tool::Codex));
    }
}

#[test]
fn a_database_that_is_imported_is_not_opened_before_it_changes() {
    let place = Place::new();
    place.put_fixture("goose/sessions.db", "goose/sessions.db");
    let first = place.discover(None, &["goose"]).unwrap();
    assert!(
        first
            .sources
            .iter()
            .all(|source| source.status.version != 0)
    );
    let mut ledger = Ledger::default();
    let row = |source: &Source| SourceRow {
        tool: source.tool,
        source: source.name(),
        natives: Vec::new(),
        targets: Vec::new(),
        bases: Vec::new(),
        status: source.status,
        len: 0,
        hash: [0; 32],
        origin: String::new(),
        held_until: None,
        version: 1,
        former: crate::mapping::Former::default(),
    };
    let rows: Vec<SourceRow> = first.sources.iter().map(row).collect();
    let request = Request {
        from: None,
        paths: vec![place.root().join("goose")],
    };
    let again = |ledger: &Ledger| discover(&request, Path::new("/nowhere"), ledger).unwrap();
    ledger.note(rows[1..].to_vec(), Vec::new()).unwrap();
    ledger
        .note_databases(first.databases.clone(), &ledger.incomplete(&first.sources))
        .unwrap();
    assert_eq!(again(&ledger).databases.len(), 1, "one is not imported");
    ledger.note(rows, Vec::new()).unwrap();
    ledger
        .note_databases(first.databases.clone(), &ledger.incomplete(&first.sources))
        .unwrap();
    let states = |found: &FoundSources| {
        let state = |source: &Source| (source.name(), source.status);
        found.sources.iter().map(state).collect::<Vec<_>>()
    };
    assert!(!first.sources.is_empty());
    assert_eq!(states(&again(&ledger)), states(&first));
    assert!(again(&ledger).databases.is_empty(), "it was not opened");
    place.put("goose/sessions.db-wal", "");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    let log = fs::File::options()
        .write(true)
        .open(place.root().join("goose/sessions.db-wal"));
    log.unwrap().set_modified(later).unwrap();
    assert_eq!(again(&ledger).databases.len(), 1);
}

/// The name of a damaged database does not show its tool, but the database may have conversations. A database of
/// another program has none.
#[test]
fn a_damaged_database_is_reported_under_any_name() {
    let place = Place::new();
    place.put_fixture("whole/copy of sessions", "goose/sessions.db");
    let whole = place.root().join("whole/copy of sessions");
    assert_eq!(
        place.find(None, &["whole"]),
        ["goose whole/copy of sessions#"]
    );
    let mut bytes = fs::read(&whole).unwrap();
    bytes[100..].fill(0xa5);
    let damaged = place.put("damaged/copy of sessions", bytes);
    let other = place.put("damaged/other", "");
    let other = rusqlite::Connection::open(other).unwrap();
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    for path in ["damaged", "damaged/copy of sessions"] {
        let found = place.discover(None, &[path]).unwrap();
        let failures = found.failures.iter();
        let failures: Vec<_> = failures.map(|it| (&it.path, it.tool, it.kind)).collect();
        assert_eq!(failures, [(&damaged, None, "damaged")], "{path}");
    }
}

#[test]
fn a_folder_of_small_files_has_the_sessions_of_opencode() {
    let place = Place::new();
    let session = "{\"id\":\"ses_1\",\"directory\":\"/w\",\"title\":\"t\"}";
    place.put("o/storage/session/p/ses_1.json", session);
    place.put("o/storage/message/ses_1/msg_1.json", "{\"id\":\"msg_1\"}");
    for path in ["o", "o/storage", ""] {
        assert_eq!(place.find(None, &[path]), ["opencode o/storage#"], "{path}");
    }
}

#[test]
fn the_folders_whose_changes_matter_are_watched() {
    let place = Place::new();
    place.put("home/.claude/projects/-w/s.jsonl", CLAUDE);
    place.put("home/.codex/sessions/2026/rollout-a.jsonl", CODEX);
    place.put_fixture(
        "home/.local/share/goose/sessions/sessions.db",
        "goose/sessions.db",
    );
    let named = place.put("x/e.jsonl", PI);
    let home = place.root().join("home");
    let environment = |name: &str| (name == "HOME").then(|| home.clone().into_os_string());
    let watched = |paths: Vec<PathBuf>| {
        let request = Request { from: None, paths };
        let shown = |place: &WatchedPlace| (place.path.clone(), place.scope);
        let places = watched_in(&request, &environment);
        places.iter().map(shown).collect::<Vec<_>>()
    };
    let expected = [
        (".claude", WatchScope::Folders),
        (".claude/projects", WatchScope::Tree),
        (".cline/data", WatchScope::Files),
        (".codex", WatchScope::Folders),
        (".codex/sessions", WatchScope::Tree),
        (".config/Code/User", WatchScope::Files),
        (
            ".config/Code/User/globalStorage/kilocode.kilo-code",
            WatchScope::Files,
        ),
        (
            ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline",
            WatchScope::Files,
        ),
        (
            ".config/Code/User/globalStorage/saoudrizwan.claude-dev",
            WatchScope::Files,
        ),
        (".copilot", WatchScope::Files),
        (".gemini", WatchScope::Files),
        (".local/share/goose", WatchScope::Folders),
        (".local/share/goose/sessions", WatchScope::Files),
        (".local/share/opencode", WatchScope::Files),
        (".pi/agent", WatchScope::Files),
        (".qwen", WatchScope::Files),
    ];
    let expected = expected.map(|(path, scope)| (home.join(path), scope));
    assert_eq!(watched(Vec::new()), expected);
    let folder = place.root().join("x");
    assert_eq!(watched(vec![named]), [(folder.clone(), WatchScope::Files)]);
    assert_eq!(watched(vec![folder.clone()]), [(folder, WatchScope::Tree)]);
}
