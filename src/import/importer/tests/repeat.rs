//! If an import finds nothing new, the last report is returned again only while nothing changes.

use super::*;
use crate::importer::repeat::LastImport;
use std::time::Duration;

/// Longer than the time for which the clock of a file system may stay the same.
const TICK: Duration = Duration::from_millis(60);

/// A folder of Claude Code with two sessions, and a session directory.
struct Repeated {
    home: Home,
    last: LastImport,
    store: Store,
}

impl Repeated {
    fn new() -> Self {
        let home = Home::new(Tool::ClaudeCode);
        fs::create_dir_all(home.root.path().join("files/projects/-w")).unwrap();
        home.write("projects/-w/s.jsonl", conversation());
        let store = Store::new(home.sessions());
        let last = LastImport::default();
        Self { home, last, store }
    }

    /// Imports. Returns the totals. The boolean is true if files were read, and false if the last report was returned
    /// again.
    fn import(&self, change: impl FnOnce(&mut ImportRequest)) -> (Value, bool) {
        let mut request = ImportRequest {
            paths: vec![self.home.root.path().join("files")],
            is_final: true,
            ..ImportRequest::default()
        };
        change(&mut request);
        let import = Import {
            store: &self.store,
            session_dir: self.store.path(),
            request: &request,
            now: unix_millis(SystemTime::now()),
            cancel: &Cancel::new(),
            progress: &|_, _| {},
            redact: &crate::importer::redaction::no_redaction,
        };
        let is_made = self.last.repeated(&import).unwrap().is_none();
        let json = self.last.run(&import).unwrap();
        let result: Value = serde_json::from_slice(&json).unwrap();
        (result["totals"].clone(), is_made)
    }

    /// Imports until the last report is returned again.
    fn settle(&self) -> Value {
        std::thread::sleep(TICK);
        let (made, _) = self.import(|_| {});
        let (again, is_made) = self.import(|_| {});
        assert!(!is_made);
        assert_eq!(made, again);
        again
    }
}

#[test]
fn an_import_without_anything_new_is_answered_again() {
    let repeated = Repeated::new();
    assert_eq!(repeated.import(|_| {}).0["created"], 1);
    let again = repeated.settle();
    assert_eq!(
        (&again["created"], &again["sessions"]),
        (&0.into(), &1.into())
    );
    assert!(repeated.import(|request| request.split = true).1);
    assert!(
        repeated.import(|_| {}).1,
        "the last request was another one"
    );
    assert!(repeated.import(|request| request.is_dry_run = true).1);
    assert!(repeated.import(|request| request.is_dry_run = true).1);
}

#[test]
fn any_change_of_sources_sessions_origins_or_ledger_is_seen() {
    let repeated = Repeated::new();
    repeated.import(|_| {});
    repeated.settle();
    let home = &repeated.home;
    let longer = conversation() + &user("u9", "u2", "more");
    home.write("projects/-w/s.jsonl", longer);
    assert_eq!(repeated.import(|_| {}).0["entriesAdded"], 1);
    repeated.settle();
    home.write(
        "projects/-w/t.jsonl",
        conversation().replace("\"s\"", "\"t\""),
    );
    assert_eq!(repeated.import(|_| {}).0["files"], 2);
    repeated.settle();
    fs::create_dir_all(home.root.path().join("files/projects/-v/t/subagents")).unwrap();
    let agent = conversation().replace("\"s\"", "\"v\"");
    home.write("projects/-v/t/subagents/agent-a.jsonl", agent);
    assert_eq!(repeated.import(|_| {}).0["files"], 3);
    repeated.settle();
    let (path, _) = home.files().pop_first().unwrap();
    fs::remove_file(path).unwrap();
    assert_eq!(repeated.import(|_| {}).0["created"], 1);
    repeated.settle();
    let origins = home.sessions().join(".origins");
    let origin = fs::read_dir(origins).unwrap().next().unwrap().unwrap();
    fs::remove_dir_all(origin.path()).unwrap();
    assert!(
        repeated.import(|_| {}).0["bytes"].as_u64() > Some(0),
        "read again"
    );
    repeated.settle();
    let ledger = home.sessions().join(".imports/ledger.jsonl");
    fs::remove_file(ledger).unwrap();
    assert_eq!(repeated.import(|_| {}).0["unchanged"], 0);
    repeated.settle();
    fs::create_dir_all(home.root.path().join("files/sessions/2026")).unwrap();
    assert!(
        repeated.import(|_| {}).1,
        "the folder is a home of Codex too"
    );
}

/// The end of the source becomes old enough and is imported, although nothing changes.
#[test]
fn a_source_with_an_open_end_is_always_examined() {
    let repeated = Repeated::new();
    let grow = |request: &mut ImportRequest| request.is_final = false;
    for _ in 0..3 {
        std::thread::sleep(TICK);
        assert!(repeated.import(grow).1);
    }
}

#[test]
fn sources_in_a_database_are_always_examined() {
    let repeated = Repeated::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import");
    let at = repeated.home.root.path().join("files/sessions.db");
    fs::copy(data.join("goose/sessions.db"), at).unwrap();
    for _ in 0..3 {
        std::thread::sleep(TICK);
        assert!(repeated.import(|_| {}).1);
    }
}

/// If another program has shortened a session file, entries are missing although the source is unchanged.
#[test]
fn a_shortened_session_is_completed_by_the_next_import() {
    let repeated = Repeated::new();
    repeated.import(|_| {});
    repeated.settle();
    let path = PathBuf::from(repeated.home.import().sessions.remove(0).path);
    let whole = fs::read(&path).unwrap();
    let first_line = memchr::memchr(b'\n', &whole).unwrap() + 1;
    let (ids, leaf) = (entry_ids(&whole), leaf_of(&path));
    for cut in [
        whole.len() - 2,
        whole.len() / 2,
        first_line + 10,
        first_line,
    ] {
        fs::write(&path, &whole[..cut]).unwrap();
        let (again, is_made) = repeated.import(|_| {});
        assert!(is_made, "cut at {cut}");
        assert_eq!(again["failed"], 0);
        let completed = entry_ids(&fs::read(&path).unwrap());
        assert!(completed.is_superset(&ids), "cut at {cut}");
        assert_eq!(leaf_of(&path), leaf, "cut at {cut}");
        repeated.settle();
    }
}

/// The last message on the path to the leaf.
fn leaf_of(path: &Path) -> String {
    let folder = Arc::new(Folder::open(path.parent().unwrap()).unwrap());
    let name = path.file_name().unwrap().to_owned();
    let tree = Log::open(Location { folder, name }).unwrap().tree;
    tree.id(tree.skip_bookkeeping(tree.leaf()).unwrap())
        .to_owned()
}

/// The ids of the entries in a session file, without leaf records.
fn entry_ids(bytes: &[u8]) -> std::collections::BTreeSet<String> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let entries = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let is_record = |entry: &Value| entry["customType"] == "treelined.leaf";
    let entries = entries.filter(|entry| entry["type"] != "session" && !is_record(entry));
    let ids = entries.filter_map(|entry| Some(entry["id"].as_str()?.to_owned()));
    ids.collect()
}
