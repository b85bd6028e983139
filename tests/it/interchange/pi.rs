//! pi's own SessionManager, which `tests/interchange/driver.mjs` runs, and the [`View`] of a session that is compared
//! with the daemon's.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::harness::*;

pub(super) struct Pi {
    child: Child,
    stdin: ChildStdin,
    answers: Receiver<String>,
    made: usize,
}

/// A SessionManager in the driver.
#[derive(Clone, Debug)]
pub(super) struct Manager {
    handle: String,
    pub file: PathBuf,
    pub session: String,
}

impl Pi {
    /// `None` if `tests/interchange/install` was not run.
    #[track_caller]
    pub(super) fn start() -> Option<Pi> {
        let mut child = match start_driver() {
            Ok(child) => child,
            Err(missing) => {
                let what = format!("{missing}; run tests/interchange/install");
                skip(Needs::Interchange, &what);
                return None;
            }
        };
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, answers) = channel();
        thread::spawn(move || {
            for line in stdout.lines() {
                if tell.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        Some(Pi {
            stdin: child.stdin.take().unwrap(),
            child,
            answers,
            made: 0,
        })
    }

    fn ask(&mut self, request: Json) -> Result<Json, String> {
        writeln!(self.stdin, "{request}").expect("the driver runs");
        let answer = self.answers.recv_timeout(DEADLINE).unwrap_or_else(|e| {
            panic!("pi does not answer {}: {e}", shorten(&request.to_string()))
        });
        let mut answer = parse(&answer).unwrap();
        match answer.get("error") {
            Some(error) => Err(error.as_str().unwrap().to_owned()),
            None => Ok(answer["ok"].take()),
        }
    }

    /// Creates a SessionManager with one of its static methods.
    #[track_caller]
    pub(super) fn make(&mut self, by: &str, args: Json) -> Manager {
        self.made += 1;
        let handle = format!("m{}", self.made);
        let made = self
            .ask(json!({"make": handle, "by": by, "args": args}))
            .unwrap_or_else(|e| panic!("pi {by} {args}: {e}"));
        Manager {
            handle,
            file: made["file"].as_str().map(PathBuf::from).unwrap_or_default(),
            session: made["sessionId"].as_str().unwrap().to_owned(),
        }
    }

    /// Opens a file in the same way as pi resumes a session.
    #[track_caller]
    pub(super) fn open(&mut self, path: &Path) -> Manager {
        self.make("open", json!([path]))
    }

    pub(super) fn call(&mut self, on: &Manager, method: &str, args: Json) -> Result<Json, String> {
        self.ask(json!({"on": on.handle, "call": method, "args": args}))
    }

    #[track_caller]
    pub(super) fn ok(&mut self, on: &Manager, method: &str, args: Json) -> Json {
        self.call(on, method, args.clone())
            .unwrap_or_else(|e| panic!("pi {method} {args}: {e}"))
    }

    /// Calls a method that returns an id.
    #[track_caller]
    pub(super) fn id(&mut self, on: &Manager, method: &str, args: Json) -> String {
        let id = self.ok(on, method, args);
        id.as_str().expect("an id").to_owned()
    }

    #[track_caller]
    pub(super) fn dump(&mut self, of: &Manager) -> Json {
        self.ask(json!({"dump": of.handle})).unwrap()
    }

    /// The sessions of a working directory in this folder, in pi's order.
    #[track_caller]
    pub(super) fn list(&mut self, cwd: &str, folder: &Path) -> Json {
        self.ask(json!({"list": [cwd, folder]})).unwrap()
    }

    pub(super) fn forget(&mut self, manager: Manager) {
        self.ask(json!({"drop": manager.handle})).unwrap();
    }

    /// The session as pi reads it when it resumes this file. pi must not write to it.
    #[track_caller]
    pub(super) fn view(&mut self, path: &Path) -> View {
        self.view_of_fork(path, &[])
    }

    /// Like [`Pi::view`], for a fork that pi has made of these stored entries. The fork may name records that pi left
    /// out.
    #[track_caller]
    pub(super) fn view_of_fork(&mut self, path: &Path, source: &[Json]) -> View {
        let before = fs::read(path).unwrap();
        let manager = self.open(path);
        let view = View::of_pi(&self.dump(&manager), source);
        self.forget(manager);
        assert!(fs::read(path).unwrap() == before, "pi writes on opening");
        view
    }

    /// Like [`Pi::view`], after a move to `leaf`.
    #[track_caller]
    pub(super) fn view_at(&mut self, path: &Path, leaf: Option<&str>) -> View {
        let manager = self.open(path);
        match leaf {
            Some(id) => self.ok(&manager, "branch", json!([id])),
            None => self.ok(&manager, "resetLeaf", json!([])),
        };
        let view = View::of_pi(&self.dump(&manager), &[]);
        self.forget(manager);
        view
    }
}

fn start_driver() -> Result<Child, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = root.join("target/interchange");
    let bundle = installed.join("pi/dist/bundle/index.js");
    if !bundle.is_file() {
        return Err(format!("no {}", bundle.display()));
    }
    // This installation has Node only if the machine has no Node, or one that is too old.
    let own = installed.join("node/bin/node");
    let node = if own.is_file() { own } else { "node".into() };
    Command::new(&node)
        .arg(root.join("tests/interchange/driver.mjs"))
        .arg(&bundle)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", node.display()))
}

impl Drop for Pi {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A session as one program sees it.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub entries: Vec<Json>,
    pub leaf: Json,
    pub name: Json,
    /// For each target, its label and the time of the label.
    pub labels: BTreeMap<String, (Json, Json)>,
    /// The tree in depth-first pre-order. `None` if there are leaf records, since the orders may then differ: an entry
    /// below a record has other siblings in pi than here.
    pub order: Option<Vec<String>>,
    pub context: Json,
    pub llm: Json,
}

impl View {
    /// The state of an open session in the daemon.
    #[track_caller]
    pub(super) fn of_daemon(d: &mut Daemon, session: &str) -> View {
        let of = |more: Json| {
            let mut params = json!({"sessionId": session});
            for (name, value) in more.as_object().unwrap() {
                params[name] = value.clone();
            }
            params
        };
        let entries = d.ok("get_entries", of(json!({})));
        let name = entries["entries"]
            .as_array()
            .unwrap()
            .iter()
            .rfind(|entry| entry["type"] == "session_info")
            .map_or(Json::Null, |entry| shown_name(&entry["name"]));
        let tree = d.ok("get_tree", of(json!({"filter": "all"})));
        let rows = tree["nodes"].as_array().unwrap();
        let labels = rows.iter().filter(|row| row.get("label").is_some());
        let labels = labels.map(|row| {
            let label = (row["label"].clone(), row["labelTimestamp"].clone());
            (row["id"].as_str().unwrap().to_owned(), label)
        });
        let context = d.ok("get_context", of(json!({})));
        let llm = d.ok("get_context", of(json!({"format": "llm"})))["messages"].clone();
        View {
            entries: entries["entries"]
                .as_array()
                .unwrap()
                .iter()
                .map(loose)
                .collect(),
            leaf: entries["leafId"].clone(),
            name,
            labels: labels.collect(),
            order: Some(ids(&tree["nodes"])),
            context: loose(&context),
            llm: loose(&llm),
        }
    }

    /// The state of a session in pi, without leaf records and with references to them resolved (session-file.md §4).
    #[track_caller]
    fn of_pi(dump: &Json, source: &[Json]) -> View {
        let stored = dump["entries"].as_array().unwrap();
        let records = Records::of(&[source, stored].concat());
        let entries: Vec<Json> = stored
            .iter()
            .filter(|entry| !is_record(entry))
            .map(|entry| loose(&records.resolved(entry)))
            .collect();
        let by_target = |list: &Json| {
            let list = list.as_array().unwrap().iter();
            list.map(|l| {
                (
                    l[0].as_str().unwrap().to_owned(),
                    (l[1].clone(), l[2].clone()),
                )
            })
            .collect::<BTreeMap<_, _>>()
        };
        let mut labels = by_target(&dump["labels"]);
        // pi may label a record. Here the label belongs to the entry of the record, so the last label wins.
        if stored
            .iter()
            .any(|e| e["type"] == "label" && records.is_record(&e["targetId"]))
        {
            labels = latest_labels(&entries);
        }
        // pi shows a label as it is stored. The daemon normalizes the label, and treats a blank label as no label.
        labels.retain(|_, (label, _)| {
            *label = shown_name(label);
            !label.is_null()
        });
        let mut context = dump["context"].clone();
        for message in context["messages"].as_array_mut().unwrap() {
            // pi takes this member from the stored entry.
            if message["role"] == "branchSummary" {
                message["fromId"] = records.left(&message["fromId"]);
            }
        }
        context["entryIds"] = dump["contextIds"].clone();
        View {
            leaf: records.resolve(&dump["leafId"]),
            name: dump["name"].clone(),
            labels,
            order: records.0.is_empty().then(|| ids(&dump["order"])),
            context: loose(&context),
            llm: loose(&dump["llm"]),
            entries,
        }
    }

    #[track_caller]
    pub(super) fn assert_same(&self, other: &View, what: &str) {
        self.assert_same_entries(other, what);
        assert_eq!(self.leaf, other.leaf, "the position: {what}");
        self.assert_same_context(other, what);
    }

    #[track_caller]
    pub(super) fn assert_same_entries(&self, other: &View, what: &str) {
        assert_eq!(ids_of(&self.entries), ids_of(&other.entries), "ids: {what}");
        for (left, right) in self.entries.iter().zip(&other.entries) {
            assert_eq!(left, right, "an entry: {what}");
        }
        assert_eq!(self.labels, other.labels, "labels: {what}");
        assert_eq!(self.name, other.name, "name: {what}");
        if let (Some(left), Some(right)) = (&self.order, &other.order) {
            assert_eq!(left, right, "order of the tree: {what}");
        }
    }

    #[track_caller]
    pub(super) fn assert_same_context(&self, other: &View, what: &str) {
        assert_eq!(self.context, other.context, "context: {what}");
        let (left, right) = (paired(&self.llm), paired(&other.llm));
        assert_eq!(left, right, "context for a model: {what}");
    }
}

/// The messages with one result for each call, as the daemon pairs them. pi leaves this to its providers.
fn paired(messages: &Json) -> Vec<Json> {
    let mut paired = Vec::new();
    let mut open: Vec<Json> = Vec::new();
    for message in messages.as_array().expect("messages") {
        match message["role"].as_str() {
            Some("toolResult") => {
                let id = &message["toolCallId"];
                match open.iter().position(|call| call["toolCallId"] == *id) {
                    Some(at) => drop(open.remove(at)),
                    None => continue,
                }
            }
            Some("user" | "assistant") => paired.append(&mut open),
            _ => {}
        }
        if message["role"] == "assistant" {
            let calls = message["content"].as_array().expect("blocks").iter();
            open.extend(calls.filter(|block| block["type"] == "toolCall").map(|call| {
                json!({
                    "role": "toolResult", "toolCallId": call["id"], "toolName": call["name"],
                    "content": [{"type": "text", "text": "No result was recorded."}],
                    "isError": true, "timestamp": message["timestamp"],
                })
            }));
        }
        paired.push(message.clone());
    }
    paired.append(&mut open);
    paired
}

fn ids_of(entries: &[Json]) -> Vec<&str> {
    entries.iter().map(|e| e["id"].as_str().unwrap()).collect()
}

pub(super) fn is_record(entry: &Json) -> bool {
    let records = ["leaf", "branch", "archived", "unarchived", "shed"];
    let records = records.map(|name| json!(format!("treelined.{name}")));
    entry["type"] == "custom" && records.contains(&entry["customType"])
}

/// The parents of the records, and the parents of all stored entries.
struct Records(HashMap<String, Json>, HashMap<String, Json>);

impl Records {
    fn of(stored: &[Json]) -> Records {
        let link = |e: &Json| (e["id"].as_str().unwrap().to_owned(), e["parentId"].clone());
        let records = stored.iter().filter(|e| is_record(e)).map(link).collect();
        Records(records, stored.iter().map(link).collect())
    }

    fn is_record(&self, id: &Json) -> bool {
        id.as_str().is_some_and(|id| self.0.contains_key(id))
    }

    /// The nearest entry above a record that is not a record.
    fn resolve(&self, id: &Json) -> Json {
        let mut at = id.clone();
        while let Some(parent) = at.as_str().and_then(|id| self.0.get(id)) {
            at = parent.clone();
        }
        at
    }

    fn left(&self, id: &Json) -> Json {
        match self.resolve(id) {
            Json::Null => json!("root"),
            id => id,
        }
    }

    /// On the path from the root to `below`, the first entry that is not a record, from `id` on.
    fn boundary(&self, id: &Json, below: &Json) -> Json {
        if !self.is_record(id) {
            return id.clone();
        }
        let mut next = below.clone();
        let mut at = below.clone();
        while let Some(parent) = at.as_str().and_then(|id| self.1.get(id)) {
            if at == *id {
                return next;
            }
            if !self.is_record(&at) {
                next = at;
            }
            at = parent.clone();
        }
        id.clone()
    }

    fn resolved(&self, entry: &Json) -> Json {
        let mut entry = entry.clone();
        entry["parentId"] = self.resolve(&entry["parentId"]);
        match entry["type"].as_str().unwrap_or_default() {
            "label" | "context_edit" => entry["targetId"] = self.resolve(&entry["targetId"]),
            "branch_summary" => entry["fromId"] = self.left(&entry["fromId"]),
            "compaction" if entry.get("firstKeptEntryId").is_some() => {
                let boundary = self.boundary(&entry["firstKeptEntryId"], &entry["id"]);
                entry["firstKeptEntryId"] = boundary;
            }
            _ => {}
        }
        entry
    }
}

fn latest_labels(entries: &[Json]) -> BTreeMap<String, (Json, Json)> {
    let mut labels = BTreeMap::new();
    for entry in entries.iter().filter(|e| e["type"] == "label") {
        let Some(target) = entry["targetId"].as_str() else {
            continue;
        };
        match entry["label"].as_str() {
            None | Some("") => labels.remove(target),
            Some(label) => {
                let label = (json!(label), entry["timestamp"].clone());
                labels.insert(target.to_owned(), label)
            }
        };
    }
    labels
}

fn shown_name(name: &Json) -> Json {
    match name.as_str().map(str::trim) {
        None | Some("") => Json::Null,
        Some(name) => json!(name),
    }
}

/// Numbers as JavaScript reads them: `0.0` becomes `0`.
pub(super) fn loose(value: &Json) -> Json {
    match value {
        Json::Number(number) => json!(number.as_f64()),
        Json::Array(items) => items.iter().map(loose).collect(),
        Json::Object(members) => {
            let members = members
                .iter()
                .map(|(name, value)| (name.clone(), loose(value)));
            Json::Object(members.collect())
        }
        other => other.clone(),
    }
}
