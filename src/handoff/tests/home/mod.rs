//! Messages that an agent adds to a conversation that was handed over become a branch of the session that it came
//! from.

mod agents;
mod candidates;
mod cases;
mod pairs;
mod records;

use super::*;
use agents::{Guest, place_of};
use std::collections::BTreeMap;

/// The id of the session that is handed over.
const SESSION: &str = "01a20124-4777-7de2-915b-ef7ddcee9bbf";
const NOW: i64 = 1_800_000_000_000;

/// A session, and the agents in which it continues.
struct Tour {
    world: World,
}

impl Tour {
    fn empty() -> Self {
        let world = World::new();
        fs::create_dir_all(world.at("sessions/project")).unwrap();
        Self { world }
    }

    /// A session of treelined that has the messages of [`conversation`], with the entries `e0` to `e6`.
    fn new() -> Self {
        let tour = Self::empty();
        let folder = tour.world.at("sessions/project");
        let cwd = tour.world.at("project");
        let header = json!({ "type": "session", "version": 3, "id": SESSION,
            "timestamp": "2026-03-01T09:00:00.000Z", "cwd": cwd });
        let mut text = format!("{header}\n");
        for (at, message) in conversation().iter().enumerate() {
            let parent = at.checked_sub(1).map(|above| format!("e{above}"));
            let entry = json!({ "type": "message", "id": format!("e{at}"), "parentId": parent,
                "timestamp": "2026-03-01T09:00:00.000Z", "message": message });
            text.push_str(&format!("{entry}\n"));
        }
        let path = folder.join(format!("2026-03-01T09-00-00-000Z_{SESSION}.jsonl"));
        fs::write(path, text).unwrap();
        tour
    }

    /// The bytes of all session files.
    fn files(&self) -> BTreeMap<PathBuf, String> {
        let mut files = BTreeMap::new();
        for folder in fs::read_dir(self.world.at("sessions")).unwrap() {
            let folder = folder.unwrap();
            if folder.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            for file in fs::read_dir(folder.path()).unwrap() {
                let path = file.unwrap().path();
                files.insert(path.clone(), fs::read_to_string(path).unwrap());
            }
        }
        files
    }

    /// The file of the only session.
    #[track_caller]
    fn file(&self) -> PathBuf {
        let files = self.files();
        assert_eq!(files.len(), 1, "{:?}", files.keys());
        files.into_keys().next().unwrap()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn path(&self) -> Vec<PathMessage> {
        let store = Store::new(self.world.at("sessions"));
        context_of(&store, &self.file())
    }

    /// The texts of the messages on the path to the leaf in the file.
    fn words(&self) -> Vec<String> {
        self.path().iter().map(words).collect()
    }

    fn append(&self, line: &Value) {
        let file = self.file();
        let text = fs::read_to_string(&file).unwrap() + &format!("{line}\n");
        fs::write(file, text).unwrap();
    }

    /// The id of the session.
    fn id(&self) -> String {
        let text = self.text();
        let header: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        header["id"].as_str().unwrap().to_owned()
    }

    /// Hands over the path to an entry, and writes the record.
    fn hand_over(&self, entry: &str, tool: Tool) -> Guest {
        self.hand_over_with(entry, tool, |_| {})
    }

    fn hand_over_with(
        &self,
        entry: &str,
        tool: Tool,
        change: impl FnOnce(&mut Request<'_>),
    ) -> Guest {
        let mut path = self.path();
        let last = path.iter().position(|message| message.entry_id == entry);
        path.truncate(last.unwrap() + 1);
        let (id, sessions) = (self.id(), self.world.at("sessions"));
        let (home, cwd) = (
            self.world.at("home").into_os_string(),
            self.world.at("project"),
        );
        let environment =
            |name: &str| -> Option<OsString> { (name == "HOME").then(|| home.clone()) };
        let mut request = Request {
            tool: Some(tool),
            session_id: &id,
            name: Some("A tour"),
            cwd: cwd.to_str().unwrap(),
            path,
            summary: None,
            learned: None,
            last: None,
            keeps_thoughts: false,
            limit: 0,
            session_dir: &sessions,
            source: &SystemSource,
            environment: &environment,
        };
        change(&mut request);
        let prepared = prepare(request);
        let prepared = prepared.unwrap();
        let record: Value = serde_json::from_slice(&prepared.record).unwrap();
        self.remember(&record);
        place(&prepared.files).unwrap();
        Guest {
            tool,
            prepared,
            added: Vec::new(),
        }
    }

    /// Appends the record of a continuation below the leaf in the file.
    fn remember(&self, record: &Value) {
        let leaf = self.path().last().unwrap().entry_id.clone();
        self.append(&json!({ "type": "custom", "customType": "treelined.leaf",
            "id": format!("r{:07x}", self.text().len()), "parentId": leaf,
            "timestamp": "2026-03-01T09:55:00.000Z",
            "data": { "from": leaf, "cause": "continue", "continuation": record } }));
    }

    #[track_caller]
    fn import(&self, guest: &Guest) -> Value {
        guest.arrange(&self.world);
        self.import_from(guest.tool)
    }

    #[track_caller]
    fn import_from(&self, tool: Tool) -> Value {
        let report = self.try_import(tool, |_| {}).unwrap();
        assert_eq!(report["totals"]["failed"], 0, "{report}");
        report
    }

    fn try_import(
        &self,
        tool: Tool,
        change: impl FnOnce(&mut ImportRequest),
    ) -> treelined_core::error::Result<Value> {
        let store = Store::new(self.world.at("sessions"));
        let mut request = ImportRequest {
            from: Some(tool),
            paths: vec![self.world.at(place_of(tool))],
            is_final: true,
            ..ImportRequest::default()
        };
        change(&mut request);
        let report = treelined_import::importer::repeat::LastImport::default().run(&Import {
            store: &store,
            session_dir: store.path(),
            request: &request,
            now: NOW,
            cancel: &Cancel::new(),
            progress: &|_, _| {},
            redact: &treelined_import::importer::redaction::no_redaction,
        });
        store.settle();
        report.map(|report| serde_json::from_slice(&report).unwrap())
    }

    /// Checks that a further import finds nothing new, with the ledger and without it.
    #[track_caller]
    fn check_settled(&self, tools: &[Tool]) {
        let before = self.files();
        for has_ledger in [true, false] {
            if !has_ledger {
                fs::remove_dir_all(self.world.at("sessions/.imports")).unwrap();
            }
            for tool in tools {
                let report = self.import_from(*tool);
                assert_eq!(report["totals"]["entriesAdded"], 0, "{has_ledger} {report}");
                assert!(
                    self.files() == before,
                    "{tool:?} {has_ledger}: {}",
                    self.text()
                );
            }
        }
    }
}

fn words(message: &PathMessage) -> String {
    let message: Value = serde_json::from_slice(&message.json).unwrap();
    match &message["content"] {
        Value::String(text) => text.clone(),
        content => {
            let blocks = content.as_array().unwrap().iter();
            let texts =
                blocks.filter_map(|block| block["text"].as_str().or(block["name"].as_str()));
            texts.collect::<Vec<_>>().join("|")
        }
    }
}

impl Tour {
    /// The entry that has this text.
    #[track_caller]
    fn entry(&self, words: &str) -> Value {
        let text = self.text();
        let mut lines = text.lines().filter(|line| line.contains(words));
        let line = lines.next().unwrap_or_else(|| panic!("no {words}: {text}"));
        assert_eq!(lines.next(), None, "{words} is there twice");
        serde_json::from_str(line).unwrap()
    }

    /// Checks that the answer is below the question, and the question below this entry.
    #[track_caller]
    fn check_branch(&self, entry: &str, question: &str, answer: &str) {
        let (asked, answered) = (self.entry(question), self.entry(answer));
        assert_eq!(asked["parentId"], entry);
        assert_eq!(answered["parentId"], asked["id"]);
    }

    /// A session that an import of Claude Code has made, with the same conversation.
    fn imported() -> Self {
        let tour = Self::new();
        let first = tour.hand_over("e6", Tool::ClaudeCode);
        fs::remove_file(tour.file()).unwrap();
        tour.import(&first);
        tour
    }

    /// The entry of the model's last message, and the entry of its message two turns before.
    fn answers(&self) -> (String, String) {
        let path = self.path();
        let id = |at: usize| path[at].entry_id.clone();
        (id(4), id(path.len() - 1))
    }
}
