//! Random operations on one session, compared with a simple model in memory: appends, branches, labels, moves,
//! navigations, undo and redo, forks, reopenings, and appends of another program to the file. session-file.md §2–§5,
//! protocol.md §3 and §4.
//!
//! A failing run prints its seed. `TREELINED_TEST_SEED=n` repeats the run.

mod naive;

use std::path::PathBuf;
use std::sync::Arc;

use self::naive::{Body, Id, Model};
use crate::harness::*;

struct Run {
    home: Arc<Home>,
    daemon: Option<Daemon>,
    path: PathBuf,
    model: Model,
    random: Random,
    made: usize,
    seed: u64,
    story: Vec<String>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let tail = self.story.len().saturating_sub(25);
            eprintln!(
                "model: failed with TREELINED_TEST_SEED={}; the last operations:",
                self.seed
            );
            for line in &self.story[tail..] {
                eprintln!("  {line}");
            }
        }
    }
}

impl Run {
    fn begin(seed: u64) -> Run {
        let home = Home::new();
        let mut run = Run {
            path: PathBuf::new(),
            daemon: Some(start(&home)),
            home,
            model: Model::default(),
            random: Random(seed),
            made: 0,
            seed,
            story: Vec::new(),
        };
        run.ok("create_session", json!({"sessionId": "m"}));
        run.append_message();
        run.path = run.home.only_file();
        run
    }

    fn call(&mut self, method: &str, mut params: Json) -> Result<Json, RpcError> {
        params["sessionId"] = params.get("sessionId").cloned().unwrap_or(json!("m"));
        self.daemon.as_mut().expect("runs").call(method, params)
    }

    #[track_caller]
    fn ok(&mut self, method: &str, params: Json) -> Json {
        self.call(method, params.clone())
            .unwrap_or_else(|e| panic!("{method} {params}: {e:?}"))
    }

    fn tell(&mut self, what: String) {
        self.story.push(what);
    }

    fn fresh(&mut self) -> Id {
        self.made += 1;
        format!("e{}", self.made)
    }

    fn any_entry(&mut self) -> Id {
        let at = self.random.below(self.model.entries.len());
        self.model.entries[at].id.clone()
    }

    /// The id of a random message or summary.
    fn any_place(&mut self) -> Id {
        loop {
            let id = self.any_entry();
            if !matches!(self.model.get(&id).what, Body::Label { .. } | Body::Name) {
                return id;
            }
        }
    }

    // --- operations ---

    fn message(&mut self) -> (Id, Json, Body) {
        let id = self.fresh();
        let text = format!("says {id}");
        let role = if self.random.below(2) == 0 {
            "user"
        } else {
            "assistant"
        };
        let message = if role == "user" {
            user(&text)
        } else {
            assistant(&text)
        };
        (id, message, Body::Message { role, text })
    }

    fn append_message(&mut self) {
        let (id, message, what) = self.message();
        self.tell(format!("append {id} at {:?}", self.model.leaf));
        let result = self.ok("append_message", json!({"message": message, "entryId": id}));
        assert_eq!(result["leafId"], json!(id));
        let parent = self.model.leaf.clone();
        self.model.append(&id, parent, what);
        if self.random.below(4) == 0 {
            self.tell(format!("append {id} once more"));
            let again = self.ok("append_message", json!({"message": message, "entryId": id}));
            assert_eq!(again["entryId"], json!(id));
        }
    }

    fn append_elsewhere(&mut self) {
        let parent = if self.random.below(8) == 0 {
            None
        } else {
            Some(self.any_entry())
        };
        let (id, message, what) = self.message();
        self.tell(format!("append {id} below {parent:?}"));
        self.ok(
            "append_message",
            json!({"message": message, "entryId": id, "parentId": parent}),
        );
        self.model.append(&id, parent, what);
    }

    fn append_several(&mut self) {
        let mut entries = Vec::new();
        for _ in 0..=self.random.below(4) {
            let (id, message, what) = self.message();
            entries.push(json!({"type": "message", "id": id, "message": message}));
            let parent = self.model.leaf.clone();
            self.model.append(&id, parent, what);
        }
        self.tell(format!("append {} together", entries.len()));
        self.ok("append_entries", json!({"entries": entries}));
    }

    fn append_label(&mut self) {
        let (id, target) = (self.fresh(), self.any_entry());
        let label = (self.random.below(4) > 0).then(|| format!("label {id}"));
        self.tell(format!("label {id} on {target}: {label:?}"));
        self.ok(
            "append_label",
            json!({"targetId": target, "label": label, "entryId": id}),
        );
        let parent = self.model.leaf.clone();
        self.model
            .append(&id, parent, Body::Label { target, label });
    }

    fn set_name(&mut self) {
        let name = format!("name {}", self.made);
        let id = self.ok("set_session_name", json!({"name": name}))["entryId"]
            .as_str()
            .unwrap()
            .to_owned();
        self.tell(format!("name {id}"));
        let parent = self.model.leaf.clone();
        self.model.append(&id, parent, Body::Name);
    }

    fn move_leaf(&mut self) {
        let null = self.random.below(10) == 0;
        let target = (!null).then(|| self.any_entry());
        // The model does not define whether a change of the leaf across labels alone is a move.
        if target != self.model.leaf
            && self.model.place(target.as_deref()) == self.model.place(self.model.leaf.as_deref())
        {
            return;
        }
        let branch = target.is_some() && self.random.below(2) == 0;
        self.tell(format!(
            "{} to {target:?}",
            if branch { "branch" } else { "set_leaf" }
        ));
        let result = if branch {
            self.ok("branch", json!({"entryId": target}))
        } else {
            self.ok("set_leaf", json!({"leafId": target}))
        };
        assert_eq!(
            (&result["oldLeafId"], &result["newLeafId"]),
            (&json!(self.model.leaf), &json!(target))
        );
        if target != self.model.leaf {
            self.model.moved(target);
        }
    }

    fn navigate(&mut self) {
        let target = self.any_place();
        let summarize = self.random.below(3) == 0;
        let old = self.model.leaf.clone();
        let old_place = self.model.place(old.as_deref());
        let is_user = matches!(
            self.model.get(&target).what,
            Body::Message { role: "user", .. }
        );
        let new = if is_user {
            self.model.get(&target).parent.clone()
        } else {
            Some(target.clone())
        };
        let already = old_place.as_ref() == Some(&target);
        if !already && new != old && self.model.place(new.as_deref()) == old_place {
            return;
        }
        self.tell(format!("navigate to {target}, summarize {summarize}"));
        let result = self.ok(
            "navigate_tree",
            json!({"targetId": target, "summarize": summarize}),
        );
        assert_eq!(result["cancelled"], false);
        if already {
            assert_eq!(result["reason"], "alreadyThere");
            return;
        }
        assert_eq!(result["oldLeafId"], json!(old));
        if is_user {
            assert_eq!(result["editorText"], format!("says {target}"));
        }
        let worth = self
            .model
            .abandoned(&target)
            .iter()
            .any(|e| matches!(e.what, Body::Message { .. } | Body::Summary { .. }));
        if summarize && worth {
            let summary = &result["summaryEntry"];
            let id = summary["id"].as_str().expect("a summary").to_owned();
            assert_eq!(summary["parentId"], json!(new));
            assert_eq!(summary["fromId"], json!(old));
            assert_eq!(result["newLeafId"], json!(id));
            self.model.moved(Some(id.clone()));
            self.model.add(&id, new, Body::Summary { from: old });
        } else {
            assert_eq!(result["newLeafId"], json!(new));
            assert_eq!(
                result.get("reason").and_then(Json::as_str),
                summarize.then_some("nothingToSummarize")
            );
            if new != old {
                self.model.moved(new);
            }
        }
    }

    fn step_back(&mut self, redo: bool) {
        let method = if redo {
            "redo_navigation"
        } else {
            "undo_navigation"
        };
        let old = self.model.leaf.clone();
        let expected = self.model.stepped_back(redo);
        self.tell(format!("{method} to {expected:?}"));
        match (self.call(method, json!({})), expected) {
            (Ok(result), Some(to)) => {
                assert_eq!(
                    (&result["oldLeafId"], &result["newLeafId"]),
                    (&json!(old), &json!(to))
                );
            }
            (Err(error), None) => assert_eq!(error.kind, "nothingToUndo"),
            (result, expected) => panic!("{method}: {result:?}, expected {expected:?}"),
        }
    }

    /// Another program takes the last line for the leaf, even a record, and appends below it.
    fn foreign_append(&mut self) {
        let last = file_lines(&self.path).pop().unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let (id, message, what) = self.message();
        self.tell(format!("another program appends {id} below {last}"));
        foreign_append(
            &self.path,
            &entry_line(
                self.made,
                "message",
                &id,
                &last,
                json!({"message": message}),
            ),
        );
        let parent = self.model.file_leaf.clone();
        self.model.add(&id, parent, what);
        // The daemon sees the line with its next append, or when it opens the file.
        if self.random.below(2) == 0 {
            self.append_message()
        } else {
            self.reopen()
        }
    }

    fn reopen(&mut self) {
        self.tell("reopen".to_owned());
        drop(self.daemon.take());
        self.daemon = Some(start(&self.home));
        let opened = self.ok("open_session", json!({}));
        assert_eq!(opened["diagnostics"], json!([]));
        self.model.leaf = self.model.file_leaf.clone();
        assert_eq!(opened["session"]["entryCount"], self.model.entries.len());
    }

    fn fork(&mut self) {
        let at = self.any_entry();
        self.tell(format!("fork at {at}"));
        let fork = self.ok("fork_session", json!({"entryId": at, "position": "at"}))["session"]["sessionId"].clone();
        let found = self.ok("get_entries", json!({"sessionId": fork}))["entries"]
            .as_array()
            .unwrap()
            .clone();
        let path = self.model.path(Some(&at));
        let kept: Vec<_> = path
            .iter()
            .filter(|e| !matches!(e.what, Body::Label { .. }))
            .collect();
        let mut parent = Json::Null;
        for (entry, kept) in found.iter().zip(&kept) {
            assert_eq!(
                (&entry["id"], &entry["parentId"]),
                (&json!(kept.id), &parent),
                "fork at {at}"
            );
            parent = entry["id"].clone();
        }
        let mut labels: Vec<_> = found[kept.len()..]
            .iter()
            .map(|l| (l["targetId"].clone(), l["label"].clone()))
            .collect();
        let mut expected: Vec<_> = kept
            .iter()
            .filter_map(|e| Some((json!(e.id), json!(self.model.label(&e.id)?))))
            .collect();
        labels.sort_by_key(|l| l.0.to_string());
        expected.sort_by_key(|l| l.0.to_string());
        assert_eq!(labels, expected, "labels of the fork at {at}");
        self.ok("close_session", json!({"sessionId": fork}));
    }

    // --- comparison ---

    fn compare(&mut self) {
        let model = self.model.clone();
        assert_eq!(self.ok("get_leaf", json!({}))["leafId"], json!(model.leaf));
        let found = self.ok("get_entries", json!({}))["entries"]
            .as_array()
            .unwrap()
            .clone();
        let found: Vec<_> = found
            .iter()
            .map(|e| (e["id"].clone(), e["parentId"].clone()))
            .collect();
        let expected: Vec<_> = model
            .entries
            .iter()
            .map(|e| (json!(e.id), json!(e.parent)))
            .collect();
        assert_eq!(found, expected, "entries and parents in file order");
    }

    fn compare_all(&mut self) {
        self.compare();
        self.compare_rows();
        let model = self.model.clone();
        let any = self.any_entry();
        let path = model.path(Some(&any));
        let found = ids(&self.ok("get_path", json!({"entryId": any}))["entries"]);
        assert_eq!(found, path.iter().map(|e| e.id.clone()).collect::<Vec<_>>());
        self.compare_context(&any);
        if let Some(leaf) = &model.leaf {
            self.compare_context(leaf);
        }

        let moves = self.ok("get_navigation_log", json!({"limit": 100_000}))["moves"]
            .as_array()
            .unwrap()
            .clone();
        let listed: Vec<_> = moves
            .iter()
            .rev()
            .map(|m| (m["from"].clone(), m["to"].clone()))
            .collect();
        let expected: Vec<_> = model
            .moves
            .iter()
            .map(|(from, to)| (json!(from), json!(to)))
            .collect();
        assert_eq!(listed, expected, "the navigation log");
    }

    fn compare_rows(&mut self) {
        let model = self.model.clone();
        let active: Vec<_> = model
            .path(model.leaf.as_deref())
            .iter()
            .map(|e| e.id.clone())
            .collect();
        let tree = self.ok("get_tree", json!({"filter": "all"}));
        assert_eq!(tree["total"], model.entries.len());
        let rows = tree["nodes"].as_array().unwrap();
        let mut seen = Vec::new();
        for row in rows {
            let id = row["id"].as_str().unwrap();
            let entry = model.get(id);
            assert_eq!(row["parentId"], json!(entry.parent), "{row}");
            assert!(
                row["parentId"].is_null() || seen.contains(&row["parentId"].as_str().unwrap()),
                "parents first"
            );
            assert_eq!(
                row.get("label").and_then(Json::as_str),
                model.label(id),
                "{row}"
            );
            assert_eq!(row["onActivePath"], active.iter().any(|a| a == id), "{row}");
            assert_eq!(row["isLeaf"], model.leaf.as_deref() == Some(id), "{row}");
            let children = model
                .entries
                .iter()
                .filter(|e| e.parent.as_deref() == Some(id))
                .count();
            assert_eq!(row["childCount"], children, "{row}");
            seen.push(id);
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), model.entries.len(), "each once");
    }

    fn compare_context(&mut self, leaf: &str) {
        let model = self.model.clone();
        let context = self.ok("get_context", json!({"leafId": leaf}));
        let expected: Vec<_> = model
            .path(Some(leaf))
            .into_iter()
            .filter(|e| matches!(e.what, Body::Message { .. } | Body::Summary { .. }))
            .collect();
        assert_eq!(
            context["entryIds"],
            json!(expected.iter().map(|e| &e.id).collect::<Vec<_>>())
        );
        let messages = context["messages"].as_array().unwrap();
        assert_eq!(messages.len(), expected.len());
        for (message, entry) in messages.iter().zip(&expected) {
            match &entry.what {
                Body::Message { role, text } => {
                    assert_eq!(message["role"], *role);
                    let said = message["content"]
                        .as_str()
                        .or(message["content"][0]["text"].as_str());
                    assert_eq!(said, Some(text.as_str()));
                }
                Body::Summary { from } => {
                    assert_eq!(message["role"], "branchSummary");
                    assert_eq!(message["fromId"], json!(from));
                }
                Body::Label { .. } | Body::Name => panic!("no message"),
            }
        }
    }

    fn go(&mut self, operations: usize) {
        for n in 0..operations {
            match self.random.below(100) {
                0..25 => self.append_message(),
                25..33 => self.append_elsewhere(),
                33..38 => self.append_several(),
                38..48 => self.append_label(),
                48..51 => self.set_name(),
                51..64 => self.move_leaf(),
                64..76 => self.navigate(),
                76..84 => self.step_back(false),
                84..89 => self.step_back(true),
                89..93 => self.foreign_append(),
                93..96 => self.fork(),
                _ => self.reopen(),
            }
            self.compare();
            if n % 5 == 4 {
                self.compare_all();
            }
            if n % 12 == 11 {
                self.reopen();
                self.compare_all();
            }
        }
    }
}

fn start(home: &Arc<Home>) -> Daemon {
    let mut daemon = Daemon::start_in(home, &["--summarizer", "outline"], &[]);
    daemon.ignore_bookkeeping();
    for name in [
        "session_before_fork",
        "session_fork",
        "summary_delta",
        "progress",
    ] {
        daemon.ignore(name);
    }
    daemon
}

#[test]
fn random_operations_agree_with_a_naive_model() {
    let chosen = std::env::var("TREELINED_TEST_SEED")
        .ok()
        .map(|s| s.parse().expect("a number"));
    let last = if is_long_run() { 40 } else { 4 };
    let seeds = chosen.map_or_else(|| (1..=last).collect(), |seed: u64| vec![seed]);
    for seed in seeds {
        Run::begin(seed).go(120);
    }
}
