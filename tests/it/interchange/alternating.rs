//! pi and the daemon write one file in turns, at random: appends, branches, labels, summaries, compactions, edits,
//! names, moves, forks. After every round both must read the same session.
//!
//! The seed is printed; `TREELINED_TEST_SEED=n` repeats the run. `TREELINED_INTERCHANGE_ROUNDS` sets the number of
//! rounds (20).

use super::forks::{assert_same_fork, fork_here, fork_there};
use super::pi::is_record;
use super::*;
use std::fs;
use std::io::Write;

#[test]
fn taking_turns_on_one_file_both_see_the_same_after_every_round() {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(
            text.parse::<u64>()
                .unwrap_or_else(|_| panic!("{name}: a number")),
        )
    };
    let rounds = number("TREELINED_INTERCHANGE_ROUNDS").unwrap_or(20);
    let seed = sample::seed(sample::of_the_clock());
    let Some(mut turns) = Turns::begin(seed) else {
        return;
    };
    // Written directly, since the output of a passing test is captured.
    let _ = writeln!(
        std::io::stderr(),
        "interchange: {rounds} rounds with TREELINED_TEST_SEED={seed}"
    );
    for round in 0..rounds {
        turns.round(round);
    }
}

struct Turns {
    both: Both,
    /// A daemon that keeps the file open and gets its changes.
    follower: Daemon,
    /// A SessionManager that stays open, and does not see entries of the daemon.
    stale: Option<Manager>,
    /// The expected leaf of the open daemon, from its last result.
    leaf: Json,
    /// The bytes of the file after the last round.
    written: Vec<u8>,
    random: Random,
    said: usize,
    story: Vec<String>,
}

impl Drop for Turns {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for line in &self.story[self.story.len().saturating_sub(25)..] {
                eprintln!("  {line}");
            }
        }
    }
}

impl Turns {
    fn begin(seed: u64) -> Option<Turns> {
        let mut both = Both::created_here()?;
        both.live.chain(&["u1", "a1", "u2"]);
        let mut follower = daemon(&both.home);
        follower.ok("open_session", json!({"path": both.path, "mode": "read"}));
        Some(Turns {
            both,
            follower,
            stale: None,
            leaf: json!("u2"),
            written: Vec::new(),
            random: Random(seed),
            said: 0,
            story: Vec::new(),
        })
    }

    fn round(&mut self, round: u64) {
        for _ in 0..=self.random.below(3) {
            if self.random.below(2) == 0 {
                self.here()
            } else {
                self.there()
            }
        }
        let what = format!("round {round}");
        let bytes = fs::read(&self.both.path).unwrap();
        assert!(bytes.starts_with(&self.written), "both only append: {what}");
        self.written = bytes;
        let live = self.both.agree(&what);
        assert_eq!(
            live.leaf, self.leaf,
            "the open daemon has its own leaf: {what}"
        );
        let there = self.both.pi.view(&self.both.path);
        let follower = View::of_daemon(&mut self.follower, &self.both.session);
        there.assert_same(&follower, &format!("{what}, in the daemon that follows"));
        self.contexts_agree(live, &what);
        if self.random.below(3) == 0 {
            let forks = self.forks_agree(&what);
            if self.random.below(15) == 0 && !forks.is_empty() {
                let at = self.random.below(forks.len());
                self.go_on_in(&forks[at]);
            }
        }
    }

    /// Compares the contexts at the leaf of the open daemon and at a random entry.
    fn contexts_agree(&mut self, live: View, what: &str) {
        let at = live.leaf.as_str().map(str::to_owned);
        let there = self.both.pi.view_at(&self.both.path, at.as_deref());
        there.assert_same_context(&live, &format!("{what}, at the leaf of the open daemon"));
        let id = self.any(false);
        let there = self.both.pi.view_at(&self.both.path, Some(&id));
        let context = self.both.ok("get_context", json!({"leafId": id}));
        let context = super::pi::loose(&context);
        assert_eq!(there.context, context, "{what}, at {id}");
    }

    /// Forks at the same entry in both programs, compares the forks, and returns their files.
    fn forks_agree(&mut self, what: &str) -> Vec<PathBuf> {
        let id = self.any(false);
        let what = format!("{what}, a fork at {id}");
        let (session, path) = fork_here(&mut self.both, json!({"entryId": id, "position": "at"}));
        self.both
            .live
            .ok("close_session", json!({"sessionId": session}));
        // A fork with labels only is empty and has no file yet.
        if !path.is_file() {
            return Vec::new();
        }
        let ours = path.clone();
        let here = self.both.pi.view(&path);
        here.assert_same(&fresh(&mut self.both.reader, &path), &what);
        let Some(path) = fork_there(&mut self.both, &id) else {
            return vec![ours];
        };
        let there = self.both.pi.view(&path);
        there.assert_same(&fresh(&mut self.both.reader, &path), &what);
        // A label of a record names the record's entry here. If pi leaves out the record, it leaves out the label too.
        let stored = self.stored();
        let on_record = |label: &Json| {
            stored
                .iter()
                .any(|e| is_record(e) && e["id"] == label["targetId"])
        };
        if !stored.iter().any(|e| e["type"] == "label" && on_record(e)) {
            let there = self.both.pi.view_of_fork(&path, &stored);
            assert_same_fork(&here, &there, &what);
        }
        vec![ours, path]
    }

    fn go_on_in(&mut self, fork: &Path) {
        self.tell(format!("both go on in the fork {}", fork.display()));
        let opened = self.both.live.open(fork)["session"].clone();
        self.both.session = opened["sessionId"].as_str().unwrap().to_owned();
        self.both.path = fork.to_owned();
        self.leaf = opened["leafId"].clone();
        let read = json!({"path": fork, "mode": "read"});
        self.follower.ok("open_session", read);
        self.written.clear();
        if let Some(stale) = self.stale.take() {
            self.both.pi.forget(stale);
        }
    }

    // --- the file ---

    fn stored(&self) -> Vec<Json> {
        file_lines(&self.both.path).split_off(1)
    }

    /// The id of a random entry of the file, or also of a record.
    fn any(&mut self, or_record: bool) -> String {
        let mut stored = self.stored();
        stored.retain(|e| or_record || !is_record(e));
        self.one_of(&stored)
    }

    /// A message of the context at the daemon's leaf. The daemon refuses edits of other entries.
    fn message_of_the_context(&mut self) -> Option<String> {
        let ids = self.both.ok("get_context", json!({}))["entryIds"].clone();
        let ids = ids.as_array().unwrap().clone();
        let mut stored = self.stored();
        stored.retain(|e| e["type"] == "message" && ids.contains(&e["id"]));
        (!stored.is_empty()).then(|| self.one_of(&stored))
    }

    fn one_of(&mut self, entries: &[Json]) -> String {
        let at = self.random.below(entries.len());
        entries[at]["id"].as_str().unwrap().to_owned()
    }

    fn message(&mut self) -> Json {
        self.said += 1;
        let text = format!("says {}", self.said);
        match self.random.below(5) {
            0 | 1 => user(&text),
            2 | 3 => assistant(&text),
            _ => bash(&text, self.random.below(2) as u8, self.random.below(2) == 0),
        }
    }

    fn tell(&mut self, what: String) {
        self.story.push(what);
    }

    // --- the daemon's operations ---

    fn here(&mut self) {
        let (method, params) = self.operation_here();
        self.tell(format!("here: {method} {params}"));
        let result = match self.both.call(method, params.clone()) {
            Ok(result) => result,
            Err(error) if error.kind == "nothingToUndo" => return,
            Err(error) => panic!("{method} {params}: {error:?}"),
        };
        let leaf = result.get("leafId").or(result.get("newLeafId"));
        self.leaf = leaf.unwrap_or(&result["session"]["leafId"]).clone();
    }

    fn operation_here(&mut self) -> (&'static str, Json) {
        let message = self.message();
        match self.random.below(14) {
            0..3 => ("append_message", json!({"message": message})),
            3 => {
                let parent = (self.random.below(6) > 0).then(|| self.any(false));
                (
                    "append_message",
                    json!({"message": message, "parentId": parent}),
                )
            }
            4 => {
                let mut entries = vec![json!({"type": "message", "message": message})];
                for _ in 0..=self.random.below(3) {
                    entries.push(self.small_entry());
                }
                ("append_entries", json!({"entries": entries}))
            }
            5 => {
                let label = (self.random.below(4) > 0).then(|| format!("label {}", self.said));
                (
                    "append_label",
                    json!({"targetId": self.any(false), "label": label}),
                )
            }
            6 => {
                let name = if self.random.below(4) == 0 {
                    String::new()
                } else {
                    format!("name {}", self.said)
                };
                ("set_session_name", json!({"name": name}))
            }
            7 => {
                let leaf = (self.random.below(8) > 0).then(|| self.any(false));
                ("set_leaf", json!({"leafId": leaf}))
            }
            8 => {
                let mut params = json!({"entryId": self.any(false)});
                if self.random.below(2) == 0 {
                    params["summary"] = json!({"summary": format!("summary {}", self.said)});
                }
                ("branch", params)
            }
            9 => {
                let mut params =
                    json!({"targetId": self.any(false), "summarize": self.random.below(2) == 0});
                if self.random.below(3) == 0 {
                    params["label"] = json!(format!("navigated {}", self.said));
                }
                ("navigate_tree", params)
            }
            10 => ("undo_navigation", json!({})),
            11 => ("redo_navigation", json!({})),
            12 => {
                let path = self.both.ok("get_path", json!({}))["entries"]
                    .as_array()
                    .unwrap()
                    .clone();
                let some = !path.is_empty() && self.random.below(4) > 0;
                let kept = some.then(|| self.one_of(&path));
                let entry = json!({"type": "compaction", "summary": format!("compaction {}", self.said),
                    "firstKeptEntryId": kept, "tokensBefore": 7});
                ("append_entries", json!({"entries": [entry]}))
            }
            _ => {
                self.both.ok("close_session", json!({}));
                ("open_session", json!({}))
            }
        }
    }

    fn small_entry(&mut self) -> Json {
        match self.random.below(6) {
            0 => json!({"type": "custom", "customType": "ext", "data": self.said}),
            1 => {
                json!({"type": "custom_message", "customType": "ext", "content": "injected", "display": true})
            }
            2 => {
                json!({"type": "model_change", "provider": "prov", "modelId": format!("m{}", self.said)})
            }
            3 => {
                json!({"type": "thinking_level_change", "thinkingLevel": format!("level {}", self.said)})
            }
            4 => {
                let replacement = match self.random.below(3) {
                    0 => Json::Null,
                    _ => json!({"content": format!("edit {}", self.said)}),
                };
                let Some(target) = self.message_of_the_context() else {
                    return json!({"type": "custom", "customType": "ext", "data": self.said});
                };
                json!({"type": "context_edit", "targetId": target, "replacement": replacement})
            }
            _ => {
                json!({"type": "usage", "kind": "warm", "provider": "prov", "model": "m", "usage": usage()})
            }
        }
    }

    // --- pi's operations ---

    fn there(&mut self) {
        let m = match self.stale.take() {
            Some(stale) if self.random.below(2) == 0 => stale,
            stale => {
                if let Some(stale) = stale {
                    self.both.pi.forget(stale);
                }
                self.tell("there: open".to_owned());
                self.both.pi.open(&self.both.path)
            }
        };
        for _ in 0..=self.random.below(3) {
            self.operate_there(&m);
        }
        self.stale = Some(m);
    }

    fn operate_there(&mut self, m: &Manager) {
        let known = self.both.pi.ok(m, "getEntries", json!([]));
        let known = known.as_array().unwrap();
        let branch = self.both.pi.ok(m, "getBranch", json!([]));
        let branch = branch.as_array().unwrap();
        let message = self.message();
        let (method, args) = match self.random.below(12) {
            0..3 => ("appendMessage", json!([message])),
            3 => ("branch", json!([self.one_of(known)])),
            4 if self.random.below(3) == 0 => ("resetLeaf", json!([])),
            4 | 5 => {
                let args = match self.random.below(4) {
                    0 => json!([self.one_of(known)]),
                    _ => json!([self.one_of(known), format!("pi's label {}", self.said)]),
                };
                ("appendLabelChange", args)
            }
            6 => {
                let to = (self.random.below(6) > 0).then(|| self.one_of(known));
                (
                    "branchWithSummary",
                    json!([to, format!("pi's summary {}", self.said)]),
                )
            }
            7 => {
                let some = !branch.is_empty() && self.random.below(4) > 0;
                let kept = some.then(|| self.one_of(branch));
                (
                    "appendCompaction",
                    json!([format!("pi's compaction {}", self.said), kept, 9]),
                )
            }
            8 => {
                let mut editable = branch.clone();
                editable.retain(|e| {
                    let role = e["message"]["role"].as_str().unwrap_or_default();
                    e["type"] == "custom_message" || matches!(role, "user" | "assistant")
                });
                if editable.is_empty() {
                    return;
                }
                let replacement = match self.random.below(3) {
                    0 => Json::Null,
                    _ => json!({"content": format!("pi's edit {}", self.said)}),
                };
                (
                    "appendContextEdit",
                    json!([self.one_of(&editable), replacement]),
                )
            }
            9 => (
                "appendSessionInfo",
                json!([format!("pi's name {}", self.said)]),
            ),
            10 => (
                "appendCustomMessageEntry",
                json!(["ext", format!("pi's {}", self.said), true]),
            ),
            _ => (
                "appendModelChange",
                json!(["prov", format!("m{}", self.said)]),
            ),
        };
        self.tell(format!("there: {method} {args}"));
        self.both.pi.ok(m, method, args);
    }
}
