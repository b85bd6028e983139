//! Whole imports inside the test process, from files to sessions.

mod counts;
mod damage;
mod databases;
mod ends;
mod exports;
mod families;
mod former;
mod git;
mod growing;
mod large;
mod names;
mod repeat;
mod tasks;

use super::request::{Import, ImportRequest};
use crate::importer::report::{ImportReport, ImportedSession};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use treelined_core::agent::Tool;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_files::cancel::Cancel;
use treelined_files::log::Log;
pub(crate) use treelined_files::os::file::{Folder, Location};
use treelined_files::store::Store;

/// A session directory and a folder with files of another tool.
struct Home {
    root: tempfile::TempDir,
    tool: Tool,
}

impl Home {
    fn new(tool: Tool) -> Self {
        // The folders are in memory if possible, because an import syncs each session.
        let memory = tempfile::tempdir_in("/dev/shm");
        let root = memory.unwrap_or_else(|_| tempfile::tempdir().unwrap());
        fs::create_dir(root.path().join("files")).unwrap();
        Self { root, tool }
    }

    fn sessions(&self) -> PathBuf {
        self.root.path().join("sessions")
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.path().join("files").join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn try_import(&self, change: impl FnOnce(&mut ImportRequest)) -> Result<ImportReport> {
        self.try_import_at(SystemTime::now(), change)
    }

    /// Like [`Self::try_import`], with a time that is not the machine's.
    fn try_import_at(
        &self,
        now: SystemTime,
        change: impl FnOnce(&mut ImportRequest),
    ) -> Result<ImportReport> {
        let mut request = ImportRequest {
            from: Some(self.tool),
            paths: vec![self.root.path().join("files")],
            is_final: true,
            ..ImportRequest::default()
        };
        change(&mut request);
        let store = Store::new(self.sessions());
        let import = Import {
            store: &store,
            session_dir: store.path(),
            request: &request,
            now: unix_millis(now),
            cancel: &Cancel::new(),
            progress: &|_, _| {},
            redact: &crate::importer::redaction::no_redaction,
        };
        let done = import.run_repeatably().map(|(report, _)| report);
        store.settle();
        done
    }

    #[track_caller]
    fn import(&self) -> ImportReport {
        self.try_import(|_| {}).unwrap()
    }

    /// The bytes of all session files.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let folders = fs::read_dir(self.sessions()).into_iter().flatten();
        for folder in folders.map(|folder| folder.unwrap().path()) {
            let name = folder.file_name().unwrap().to_str().unwrap();
            if name.starts_with('.') || !folder.is_dir() {
                continue;
            }
            for file in fs::read_dir(&folder).unwrap() {
                let path = file.unwrap().path();
                files.insert(path.clone(), fs::read(path).unwrap());
            }
        }
        files
    }
}

fn unix_millis(at: SystemTime) -> i64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap();
    since.as_millis().try_into().unwrap()
}

/// The messages on the path to the leaf of a session, from its entries.
fn path_of(row: &ImportedSession) -> Vec<Value> {
    let path = Path::new(&row.path);
    let folder = Arc::new(Folder::open(path.parent().unwrap()).unwrap());
    let name = path.file_name().unwrap().to_owned();
    let opened = Log::open(Location { folder, name }).unwrap();
    assert!(opened.diagnostics.is_empty(), "{:?}", opened.diagnostics);
    let bodies = opened.log.bodies();
    let nodes = opened.tree.path(opened.tree.file_leaf());
    let entry = |node| {
        let entry = bodies.entry(&bodies.fetch(&opened.tree, node).unwrap());
        serde_json::from_slice(&entry.unwrap()).unwrap()
    };
    nodes.into_iter().map(entry).collect()
}

/// The texts of a path, without ids and origins.
fn texts(path: &[Value]) -> Vec<String> {
    let text = |entry: &Value| {
        let mut entry = entry.clone();
        for name in ["id", "parentId", "origin", "copiedFrom", "firstKeptEntryId"] {
            entry.as_object_mut().unwrap().remove(name);
        }
        entry.to_string()
    };
    path.iter().map(text).collect()
}

/// A record of Claude Code.
fn record(kind: &str, uuid: &str, parent: &str, message: &str) -> String {
    let parent = match parent {
        "" => "null".to_owned(),
        parent => format!("\"{parent}\""),
    };
    format!(
        "{{\"type\":\"{kind}\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"sessionId\":\"s\",\
         \"timestamp\":\"2026-01-01T00:00:00.001Z\",\"cwd\":\"/w\",\"message\":{message}}}\n"
    )
}

fn user(uuid: &str, parent: &str, text: &str) -> String {
    record(
        "user",
        uuid,
        parent,
        &format!("{{\"role\":\"user\",\"content\":\"{text}\"}}"),
    )
}

fn assistant(uuid: &str, parent: &str, text: &str) -> String {
    let message = format!(
        "{{\"id\":\"msg_{uuid}\",\"role\":\"assistant\",\"model\":\"m\",\
         \"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"usage\":{{\"input_tokens\":1,\"output_tokens\":2}}}}"
    );
    record("assistant", uuid, parent, &message)
}

fn call(uuid: &str, parent: &str, id: &str) -> String {
    let message = format!(
        "{{\"id\":\"msg_{uuid}\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[{{\"type\":\"tool_use\",\
         \"id\":\"{id}\",\"name\":\"Bash\",\"input\":{{\"command\":\"ls\"}}}}],\"usage\":{{}}}}"
    );
    record("assistant", uuid, parent, &message)
}

fn answer(uuid: &str, parent: &str, id: &str) -> String {
    let content =
        format!("[{{\"type\":\"tool_result\",\"tool_use_id\":\"{id}\",\"content\":\"done\"}}]");
    record(
        "user",
        uuid,
        parent,
        &format!("{{\"role\":\"user\",\"content\":{content}}}"),
    )
}

fn title(text: &str) -> String {
    format!("{{\"type\":\"custom-title\",\"customTitle\":\"{text}\",\"sessionId\":\"s\"}}\n")
}

/// A conversation of two turns, the first with a call.
fn conversation() -> String {
    [
        user("u1", "", "one"),
        call("a1", "u1", "c1"),
        answer("r1", "a1", "c1"),
        assistant("a2", "r1", "first"),
        user("u2", "a2", "two"),
        assistant("a3", "u2", "second"),
    ]
    .concat()
}

/// A file of the test data.
fn fixture(path: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import");
    data.join(path)
}

/// The paths to the leaves of all sessions of an import, without ids and origins.
fn leaf_paths(result: &ImportReport) -> Vec<Vec<String>> {
    let paths = result.sessions.iter().map(|row| texts(&path_of(row)));
    let mut paths: Vec<_> = paths.collect();
    paths.sort();
    paths
}

/// The codex sessions among the test data.
fn codex(home: &Home) {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import/codex/0.169-paginated");
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("rollout")
        {
            let name = path.file_name().unwrap().to_str().unwrap();
            home.write(name, fs::read(&path).unwrap());
        }
    }
}

#[test]
fn a_second_import_writes_nothing() {
    let home = Home::new(Tool::Codex);
    codex(&home);
    let first = home.import();
    assert_eq!(first.totals.failed, 0);
    assert!(first.totals.entries_added == 21 && first.totals.recovered == 1);
    let files = home.files();
    let second = home.import();
    assert_eq!(home.files(), files);
    assert_eq!(second.totals.entries_added, 0);
    let ids = |result: &ImportReport| {
        let rows = result.sessions.iter();
        rows.map(|row| (row.session_id.clone(), row.branches))
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&first), ids(&second));
    assert!(second.sessions.iter().all(|row| !row.created));
}

/// In every list the file of the fork comes before the file of its root. The root still owns the entries that they
/// share.
#[test]
fn a_family_that_grows_keeps_the_ids_of_its_common_prefix() {
    let home = Home::new(Tool::ClaudeCode);
    let fork = conversation().replace("\"s\"", "\"f\"")
        + &user("f3", "a3", "in the fork").replace("\"s\"", "\"f\"");
    home.write("a-fork.jsonl", fork.replace("00.001Z", "05.001Z"));
    home.write("s.jsonl", conversation() + &user("u3", "a3", "in the root"));
    let first = home.import();
    assert_eq!((first.sessions.len(), first.totals.branches), (1, 1));
    let more = user("u3", "a3", "in the root") + &assistant("a4", "u3", "more");
    home.write("s.jsonl", conversation() + &more);
    let second = home.import();
    assert_eq!((second.sessions.len(), second.totals.entries_added), (1, 1));
    assert_eq!((second.totals.branches, second.totals.revised), (1, 0));
}

/// The root of a fork is found after the fork, and joins the fork's session. Without the ledger, it would become a
/// separate session.
#[test]
fn a_lost_ledger_is_rebuilt_from_the_sessions() {
    let home = Home::new(Tool::ClaudeCode);
    let fork = conversation()
        .replace("\"s\"", "\"f\"")
        .replace("00.001Z", "05.001Z");
    home.write(
        "f.jsonl",
        fork + &user("f3", "a3", "in the fork").replace("\"s\"", "\"f\""),
    );
    let first = home.import().sessions.remove(0);
    home.write("s.jsonl", conversation() + &user("u3", "a3", "in the root"));
    let both = home.import();
    assert_eq!(both.sessions.len(), 1);
    assert_eq!(
        (both.sessions[0].entries_added, both.sessions[0].branches),
        (2, 1),
        "the message and the fork's label"
    );
    fs::remove_dir_all(home.sessions().join(".imports")).unwrap();
    let files = home.files();
    let again = home.import();
    assert_eq!(again.sessions[0].session_id, first.session_id);
    assert_eq!((again.sessions.len(), again.totals.entries_added), (1, 0));
    assert_eq!(home.files(), files);
}

#[test]
fn a_dry_run_reports_the_same_and_writes_nothing() {
    let home = Home::new(Tool::Codex);
    codex(&home);
    let dry = home
        .try_import(|request| request.is_dry_run = true)
        .unwrap();
    assert!(!home.sessions().exists());
    let done = home.import();
    let rows = |result: ImportReport| {
        (
            serde_json::to_value(result.sessions).unwrap(),
            serde_json::to_value(result.files).unwrap(),
        )
    };
    assert_eq!(rows(dry), rows(done));
}

#[test]
fn a_node_that_its_tool_has_changed_gets_a_new_version_beside_it() {
    let home = Home::new(Tool::ClaudeCode);
    home.write("s.jsonl", conversation());
    let before = home.import();
    let old = home.files().into_values().next().unwrap();
    let changed = conversation().replace("first", "first, corrected");
    home.write("s.jsonl", changed + &user("u3", "a3", "three"));
    let after = home.import();
    let row = &after.sessions[0];
    assert_eq!((row.revised, row.entries_added, row.branches), (1, 4, 1));
    assert_eq!(row.session_id, before.sessions[0].session_id);
    let new = home.files().into_values().next().unwrap();
    assert!(new.starts_with(&old), "nothing that is written changes");
    let path = path_of(row);
    let copies: Vec<bool> = path
        .iter()
        .map(|it| it.get("copiedFrom").is_some())
        .collect();
    assert_eq!(copies, [false, false, false, true, true, true, false]);
    assert_eq!(path[3]["message"]["content"][0]["text"], "first, corrected");
    // Everything is imported once more, for comparison.
    let fresh = Home::new(Tool::ClaudeCode);
    fresh.write(
        "s.jsonl",
        fs::read(home.root.path().join("files/s.jsonl")).unwrap(),
    );
    assert_eq!(texts(&path), texts(&path_of(&fresh.import().sessions[0])));
    // First comes an import without a change, then one with a change.
    assert_eq!(home.import().totals.entries_added, 0);
    let again = fs::read_to_string(home.root.path().join("files/s.jsonl")).unwrap();
    home.write("s.jsonl", again.replace("corrected", "corrected twice"));
    let third = home.import();
    assert_eq!(third.sessions[0].revised, 1);
    assert_eq!(
        path_of(&third.sessions[0])[3]["message"]["content"][0]["text"],
        "first, corrected twice"
    );
}

#[test]
fn an_import_does_not_move_a_leaf_that_the_user_moved() {
    let home = Home::new(Tool::ClaudeCode);
    home.write("s.jsonl", conversation());
    let row = home.import().sessions.remove(0);
    let path = path_of(&row);
    let at = path[2]["id"].as_str().unwrap();
    let mine = format!(
        "{{\"type\":\"message\",\"id\":\"mine\",\"parentId\":\"{at}\",\"timestamp\":\"2026-02-01T00:00:00.000Z\",\
         \"message\":{{\"role\":\"user\",\"content\":\"mine\",\"timestamp\":1}}}}\n"
    );
    let mut bytes = fs::read(&row.path).unwrap();
    bytes.extend_from_slice(mine.as_bytes());
    fs::write(&row.path, bytes).unwrap();
    home.write("s.jsonl", conversation() + &user("u3", "a3", "three"));
    let row = home.import().sessions.remove(0);
    assert_eq!((row.entries_added, row.branches), (1, 1));
    let path = path_of(&row);
    assert_eq!(path.len(), 4);
    assert_eq!(path[3]["id"], "mine");
    // The last import kept this leaf, but the user has chosen it.
    let more = user("u3", "a3", "three") + &assistant("a4", "u3", "third");
    home.write("s.jsonl", conversation() + &more);
    let row = home.import().sessions.remove(0);
    assert_eq!(row.entries_added, 1);
    assert_eq!(path_of(&row), path);
}

#[test]
fn a_title_replaces_only_names_that_an_import_gave() {
    let home = Home::new(Tool::ClaudeCode);
    let with = |titles: &[&str]| {
        let titles: String = titles.iter().map(|text| title(text)).collect();
        home.write("s.jsonl", conversation() + &titles);
        home.import().sessions.remove(0)
    };
    assert_eq!(with(&[]).name, None);
    assert_eq!(with(&["A"]).name.as_deref(), Some("A"));
    let row = with(&["A", "B"]);
    assert_eq!(row.name.as_deref(), Some("B"));
    let named = "{\"type\":\"session_info\",\"id\":\"n\",\"parentId\":null,\
                 \"timestamp\":\"2026-02-01T00:00:00.000Z\",\"name\":\"mine\"}\n";
    let mut bytes = fs::read(&row.path).unwrap();
    bytes.extend_from_slice(named.as_bytes());
    fs::write(&row.path, bytes).unwrap();
    assert_eq!(with(&["A", "B", "C"]).name.as_deref(), Some("mine"));
}

#[test]
fn a_cancelled_import_keeps_whole_sessions_only() {
    let home = Home::new(Tool::ClaudeCode);
    for number in 0..4 {
        let text = conversation().replace("\"s\"", &format!("\"s{number}\""));
        home.write(
            &format!("s{number}.jsonl"),
            text.replace("\"uuid\":\"", "\"uuid\":\"x")
                .replace("\"parentUuid\":\"", &format!("\"parentUuid\":\"{number}")),
        );
    }
    let request = ImportRequest {
        from: Some(Tool::ClaudeCode),
        paths: vec![home.root.path().join("files")],
        is_final: true,
        ..ImportRequest::default()
    };
    let (store, cancel) = (Store::new(home.sessions()), Cancel::new());
    cancel.cancel();
    let import = Import {
        store: &store,
        session_dir: store.path(),
        request: &request,
        now: 0,
        cancel: &cancel,
        progress: &|_, _| {},
        redact: &crate::importer::redaction::no_redaction,
    };
    assert_eq!(
        import.run_repeatably().err().unwrap().kind,
        treelined_core::error::Kind::Cancelled
    );
    assert!(home.files().is_empty());
}

#[test]
fn only_sessions_of_the_directory_and_time_that_are_asked_for_are_imported() {
    let home = Home::new(Tool::ClaudeCode);
    home.write("s.jsonl", conversation());
    let none = home
        .try_import(|request| request.cwd = Some("/elsewhere".to_owned()))
        .unwrap();
    assert!(none.sessions.is_empty() && none.files.is_empty());
    let none = home
        .try_import(|request| request.since = Some(1_767_225_600_002))
        .unwrap();
    assert!(none.sessions.is_empty() && home.files().is_empty());
    let found = home.try_import(|request| {
        request.cwd = Some("/w/./".to_owned());
        request.since = Some(1_767_225_600_001);
    });
    assert_eq!(found.unwrap().sessions.len(), 1);
    // The result is the same when nothing is new.
    let none = home.try_import(|request| request.cwd = Some("/elsewhere".to_owned()));
    assert!(none.unwrap().sessions.is_empty());
    assert_eq!(home.import().sessions.len(), 1);
}

#[test]
fn every_entry_names_the_whole_records_that_it_comes_from() {
    let home = Home::new(Tool::ClaudeCode);
    let text = conversation();
    home.write("s.jsonl", &text);
    for entry in path_of(&home.import().sessions[0]) {
        let ranges = entry["origin"]["ranges"].as_array().unwrap().clone();
        assert!(!ranges.is_empty());
        for range in ranges {
            let at = range[0].as_u64().unwrap() as usize;
            let len = range[1].as_u64().unwrap() as usize;
            assert!(json::value_span(&text.as_bytes()[at..at + len]).is_ok());
        }
    }
}
