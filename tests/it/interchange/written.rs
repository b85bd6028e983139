//! Sessions that one program writes and the other opens, compared after every step: every type of entry, and every kind
//! of move.

use super::*;

#[test]
fn a_session_written_here_opens_in_pi_at_the_same_place() {
    let Some(mut both) = Both::created_here() else {
        return;
    };
    append_every_type(&mut both);
    label_and_edit(&mut both);
    move_the_leaf(&mut both);
    compact_and_summarize(&mut both);
}

/// Appends an entry of each type.
fn append_every_type(both: &mut Both) {
    both.ok("set_session_name", json!({"name": " my\nsession "}));
    both.agree_on_the_leaf("a name alone");
    for entry in [
        json!({"type": "model_change", "provider": "prov", "modelId": "m1"}),
        json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
        json!({"type": "message", "message": system("be brief")}),
        json!({"type": "custom", "customType": "ext", "data": {"n": [1, 2.5, null]}}),
        json!({"type": "custom", "customType": "ext"}),
        json!({"type": "future_type", "x": {"y": "\u{2028}"}}),
        json!({"type": "message", "id": "u1", "message": user("one")}),
        json!({"type": "message", "id": "a1", "message": assistant("answer one")}),
        json!({"type": "message", "id": "u2", "message": user("two, 😀 \u{0}\u{7f}")}),
        json!({"type": "message", "id": "t2", "message": assistant_with(json!([
            {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "let me"},
            tool_call("c1", "read", json!({"path": "a.rs"}))]))}),
        json!({"type": "message", "message": tool_result("c1", "read", "fn main", false)}),
        json!({"type": "message", "message": bash("ls", 2, false)}),
        json!({"type": "message", "message": bash("secret", 0, true)}),
        json!({"type": "message", "message": {"role": "custom", "customType": "old", "content": "c", "display": true, "timestamp": 7}}),
        json!({"type": "custom_message", "id": "cm", "customType": "ext", "content": "injected", "display": false}),
        json!({"type": "custom_message", "customType": "ext", "content": [{"type": "text", "text": "b"}], "display": true, "details": {"d": 1}}),
        json!({"type": "usage", "kind": "cache_warm", "provider": "prov", "model": "m1", "usage": usage(), "note": "warm"}),
        json!({"type": "message", "id": "a2", "message": assistant("answer two")}),
    ] {
        let what = entry.to_string();
        both.append(entry);
        both.agree_on_the_leaf(&what);
    }
}

/// Labels entries, clears labels, and edits the context.
fn label_and_edit(both: &mut Both) {
    for (target, label) in [
        ("u1", json!("start")),
        ("u2", json!("first")),
        ("u2", json!(" second ")),
        ("a1", json!("gone")),
        ("a1", json!(null)),
        ("cm", json!("gone")),
        ("cm", json!("")),
    ] {
        both.ok("append_label", json!({"targetId": target, "label": label}));
        both.agree_on_the_leaf(&format!("label {label} on {target}"));
    }

    for (target, replacement) in [
        ("u1", json!({"content": "one, edited"})),
        ("a1", json!({"content": "edited to text"})),
        (
            "u2",
            json!({"content": [{"type": "text", "text": "blocks"}]}),
        ),
        ("cm", json!(null)),
        ("u1", json!({"content": "one, edited again"})),
    ] {
        both.append(
            json!({"type": "context_edit", "targetId": target, "replacement": replacement}),
        );
        both.agree_on_the_leaf(&format!("edit of {target}: {replacement}"));
    }
}

/// Moves the leaf in every way. Each move leaves a record, and pi resumes at the record.
fn move_the_leaf(both: &mut Both) {
    both.ok("set_leaf", json!({"leafId": "a1"}));
    both.agree_on_the_leaf("set_leaf");
    both.ok("set_leaf", json!({"leafId": "u2"}));
    both.agree_on_the_leaf("set_leaf twice");
    both.ok("branch", json!({"entryId": "a1"}));
    both.agree_on_the_leaf("branch");
    both.ok(
        "append_message",
        json!({"message": user("three"), "entryId": "u3"}),
    );
    both.agree_on_the_leaf("an append after a move");
    both.ok(
        "append_message",
        json!({"message": assistant("answer three"), "entryId": "a3"}),
    );
    both.ok("append_label", json!({"targetId": "a3", "label": "tip"}));
    both.agree_on_the_leaf("a label at the tip");
    both.ok("set_leaf", json!({"leafId": null}));
    both.agree_on_the_leaf("before the first entry");
    both.ok(
        "append_message",
        json!({"message": user("another root"), "entryId": "r2"}),
    );
    both.agree_on_the_leaf("a second root");
    both.ok("branch", json!({"entryId": "a2", "summary": {"summary": "left the other root", "details": {"readFiles": []}}}));
    both.agree_on_the_leaf("branch with a summary");
    let moved = both.ok("navigate_tree", json!({"targetId": "u3"}));
    assert_eq!(moved["editorText"], "three");
    both.agree_on_the_leaf("navigation to a user message");
    both.ok(
        "navigate_tree",
        json!({"targetId": "a2", "label": "labelled on the way"}),
    );
    both.agree_on_the_leaf("navigation with a label");
    both.ok("append_message", json!({"message": user("four")}));
    let moved = both.ok(
        "navigate_tree",
        json!({"targetId": "a3", "summarize": true, "label": "back"}),
    );
    assert!(moved["summaryEntry"].is_object(), "{moved}");
    both.agree_on_the_leaf("navigation with a summary and a label");
    for method in [
        "undo_navigation",
        "undo_navigation",
        "redo_navigation",
        "undo_navigation",
    ] {
        both.ok(method, json!({}));
        both.agree_on_the_leaf(method);
    }
    both.ok(
        "append_message",
        json!({"message": user("below u1"), "parentId": "u1"}),
    );
    both.agree_on_the_leaf("an append elsewhere");
    both.ok(
        "append_message",
        json!({"message": user("third root"), "parentId": null}),
    );
    both.agree_on_the_leaf("an append at the root");
}

/// Compacts, and keeps from a message, a label, a name, the compaction itself, and an entry off the path. Then it
/// appends summaries.
fn compact_and_summarize(both: &mut Both) {
    both.ok("set_leaf", json!({"leafId": "a2"}));
    both.append(
        json!({"type": "compaction", "summary": "S1", "firstKeptEntryId": "u2", "tokensBefore": 9}),
    );
    both.agree_on_the_leaf("compaction from a message");
    let label =
        both.ok("append_label", json!({"targetId": "a2", "label": "edge"}))["entryId"].clone();
    both.ok(
        "append_message",
        json!({"message": user("five"), "entryId": "u5"}),
    );
    both.append(json!({"type": "message", "message": system("other rules")}));
    both.append(json!({"type": "compaction", "summary": "S2", "firstKeptEntryId": label, "tokensBefore": 9,
        "systemMessage": system("kept rules"), "usage": usage(), "details": {"readFiles": ["a.rs"]}, "fromHook": true}));
    both.agree_on_the_leaf("compaction from a label, with a system message");
    both.append(json!({"type": "message", "message": system("new rules")}));
    both.append(json!({"type": "context_edit", "targetId": "u5", "replacement": {"content": "five, edited"}}));
    both.agree_on_the_leaf("an edit after a compaction");
    both.append(
        json!({"type": "compaction", "summary": "S3", "firstKeptEntryId": null, "tokensBefore": 9}),
    );
    both.agree_on_the_leaf("compaction that keeps nothing");
    both.ok("append_message", json!({"message": user("six")}));
    let error = both
        .call(
            "append_entries",
            json!({"entries": [{"type": "compaction", "summary": "", "firstKeptEntryId": "r2", "tokensBefore": 0}]}),
        )
        .unwrap_err();
    assert_eq!(error.kind, "entryNotFound", "r2 is on another branch");
    both.append(json!({"type": "branch_summary", "fromId": "root", "summary": "a client's own"}));
    both.append(json!({"type": "branch_summary", "fromId": "r2", "summary": ""}));
    both.agree_on_the_leaf("summaries by append_entries");
    both.ok("set_session_name", json!({"name": ""}));
    both.agree_on_the_leaf("no name");
    both.ok("set_leaf", json!({"leafId": "u1"}));
    both.agree_on_the_leaf("the last move");
}

#[test]
fn a_session_written_by_pi_opens_here_at_the_same_place() {
    let Some((mut both, m)) = Both::created_there() else {
        return;
    };
    both.agree_on_the_leaf("a first message");
    let named = messages_by_pi(&mut both, &m);
    changes_by_pi(&mut both, &m, named);
    assert_eq!(
        both.reader.home.session_files(),
        [m.file],
        "pi made one file"
    );
}

/// Calls a method of pi that appends, and checks that both programs see the same. Returns the id of the new entry.
#[track_caller]
fn step(both: &mut Both, m: &Manager, method: &str, args: Json) -> String {
    let what = format!("{method} {args}");
    let made = both.pi.ok(m, method, args);
    both.agree(&what);
    made.as_str()
        .or(made["id"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// The ids of entries that later entries name.
struct Named {
    note: String,
    u1: String,
    a1: String,
    t1: String,
    a2: String,
}

fn messages_by_pi(b: &mut Both, m: &Manager) -> Named {
    step(b, m, "appendModelChange", json!(["anthropic", "claude-x"]));
    step(b, m, "appendThinkingLevelChange", json!(["low"]));
    step(b, m, "appendMessage", json!([system("")]));
    step(b, m, "appendCustomEntry", json!(["ext"]));
    step(b, m, "appendCustomEntry", json!(["ext", {"n": 1}]));
    step(b, m, "appendSessionInfo", json!([" a\r\nname "]));
    let note = step(
        b,
        m,
        "appendCustomMessageEntry",
        json!(["ext", "hi", false]),
    );
    step(
        b,
        m,
        "appendCustomMessageEntry",
        json!(["ext", [{"type": "text", "text": "x"}], true, {"d": 1}]),
    );
    let u1 = step(b, m, "appendMessage", json!([user("one, \u{2028} and 😀")]));
    let call = assistant_with(
        json!([{"type": "text", "text": "let me"}, tool_call("c1", "read", json!({"path": "a"}))]),
    );
    let a1 = step(b, m, "appendMessage", json!([call]));
    let t1 = step(
        b,
        m,
        "appendMessage",
        json!([tool_result("c1", "read", "A", false)]),
    );
    step(b, m, "appendMessage", json!([bash("ls", 1, false)]));
    step(b, m, "appendMessage", json!([bash("secret", 0, true)]));
    step(
        b,
        m,
        "appendMessage",
        json!([{"role": "custom", "customType": "old", "content": "c", "display": true, "timestamp": 5}]),
    );
    step(
        b,
        m,
        "appendUsage",
        json!(["cache_warm", "anthropic", "claude-x", usage()]),
    );
    step(
        b,
        m,
        "appendUsage",
        json!(["cache_warm", "anthropic", "claude-x", usage(), "note"]),
    );
    let a2 = step(b, m, "appendMessage", json!([assistant("A2")]));
    Named {
        note,
        u1,
        a1,
        t1,
        a2,
    }
}

/// Labels, edits, compactions and branches by pi.
fn changes_by_pi(b: &mut Both, m: &Manager, named: Named) {
    let Named {
        note,
        u1,
        a1,
        t1,
        a2,
    } = named;
    let l1 = step(b, m, "appendLabelChange", json!([u1, "start"]));
    step(b, m, "appendLabelChange", json!([a2, "tip"]));
    step(b, m, "appendLabelChange", json!([a2, " other "]));
    step(b, m, "appendLabelChange", json!([u1]));
    step(b, m, "appendLabelChange", json!([u1, ""]));
    step(b, m, "appendLabelChange", json!([u1, "again"]));
    step(b, m, "appendLabelChange", json!([l1, "on a label"]));
    step(b, m, "appendContextEdit", json!([t1, {"content": "short"}]));
    step(
        b,
        m,
        "appendContextEdit",
        json!([u1, {"content": "edited"}]),
    );
    step(b, m, "appendContextEdit", json!([a1, null]));
    step(
        b,
        m,
        "appendContextEdit",
        json!([note, {"content": [{"type": "text", "text": "edited"}]}]),
    );
    step(
        b,
        m,
        "appendCompaction",
        json!(["sum", l1, 10, {"readFiles": ["a"], "modifiedFiles": []}, false, usage()]),
    );
    let u2 = step(b, m, "appendMessage", json!([user("two")]));
    step(b, m, "appendCompaction", json!(["sum2", null, 11]));
    step(b, m, "appendMessage", json!([assistant("A3")]));
    // When pi restarts, its own moves are lost, but the entries that it has appended after them are not.
    step(b, m, "branch", json!([a1]));
    step(b, m, "appendMessage", json!([user("a branch")]));
    step(
        b,
        m,
        "branchWithSummary",
        json!([u2, "left a branch", {"readFiles": [], "modifiedFiles": []}, false, usage()]),
    );
    step(b, m, "branchWithSummary", json!([null, "to the root"]));
    step(b, m, "resetLeaf", json!([]));
    step(b, m, "branchWithSummary", json!([u1, "from nowhere"]));
    step(b, m, "resetLeaf", json!([]));
    step(b, m, "appendMessage", json!([user("another root")]));
    step(b, m, "appendSessionInfo", json!([""]));
}

/// Moves the leaf, opens the session with pi, and returns the id of the leaf record.
fn record_at(both: &mut Both, leaf: Option<&str>) -> (Manager, String) {
    both.ok("set_leaf", json!({"leafId": leaf}));
    let m = both.pi.open(&both.path);
    let record = both.pi.ok(&m, "getLeafId", json!([]));
    (m, record.as_str().unwrap().to_owned())
}

/// pi takes a leaf record for an entry: it appends below the record, labels it, names it in a summary of a branch, and
/// names it as the first kept entry of a compaction.
#[test]
fn entries_that_pi_links_to_a_leaf_record_are_linked_to_its_position_here() {
    let Some(mut both) = Both::created_here() else {
        return;
    };
    both.live.chain(&["u1", "a1", "u2", "a2"]);

    let (m, record) = record_at(&mut both, Some("a1"));
    let said = both
        .pi
        .id(&m, "appendMessage", json!([user("below a record")]));
    both.agree("a message");
    assert_eq!(both.live.entry(&said)["parentId"], "a1");
    let label = both
        .pi
        .id(&m, "appendLabelChange", json!([record, "on a record"]));
    both.agree("a label");
    assert_eq!(both.live.entry(&label)["targetId"], "a1");
    both.pi.ok(
        &m,
        "appendLabelChange",
        json!(["a1", "on the entry itself"]),
    );
    both.agree("the later label counts");
    both.pi.ok(&m, "appendLabelChange", json!([record]));
    both.agree("clearing it");
    both.pi.ok(
        &m,
        "appendContextEdit",
        json!(["a1", {"content": "edited"}]),
    );
    both.agree("a context edit");
    let kept = both.pi.id(&m, "appendCompaction", json!(["S", record, 5]));
    both.agree("a compaction that keeps from the record on");
    assert_eq!(both.live.entry(&kept)["firstKeptEntryId"], json!(said));

    let (m, record) = record_at(&mut both, Some("a2"));
    let kept = both.pi.id(&m, "appendCompaction", json!(["S", record, 5]));
    both.agree("a compaction right below the record it keeps from");
    assert_eq!(both.live.entry(&kept)["firstKeptEntryId"], json!(kept));

    let (m, _) = record_at(&mut both, Some("u2"));
    let left = both
        .pi
        .id(&m, "branchWithSummary", json!(["a1", "left a record"]));
    both.agree("a summary of leaving it");
    assert_eq!(both.live.entry(&left)["fromId"], "u2");

    let (m, record) = record_at(&mut both, None);
    let left = both
        .pi
        .id(&m, "branchWithSummary", json!(["a2", "left nothing"]));
    both.agree("a summary of leaving the empty position");
    assert_eq!(both.live.entry(&left)["fromId"], "root");
    both.pi
        .ok(&m, "appendLabelChange", json!([record, "on nothing"]));
    both.agree("a label on the empty position");
    both.pi.ok(&m, "branch", json!([record]));
    let root = both.pi.id(&m, "appendMessage", json!([user("a root")]));
    both.agree("a message below the empty position");
    assert_eq!(both.live.entry(&root)["parentId"], json!(null));

    // A record below a record is resolved through all records above it.
    let (m, record) = record_at(&mut both, Some("u1"));
    let below = both.pi.id(
        &m,
        "appendCustomEntry",
        json!(["treelined.leaf", {"from": "a1", "cause": "branch"}]),
    );
    let said = both
        .pi
        .id(&m, "appendMessage", json!([user("below two records")]));
    both.agree("below a record below a record");
    assert_eq!(both.live.entry(&said)["parentId"], "u1");
    assert_ne!(below, record);
}

/// Both programs skip a line that a crash cut off, whichever writes next. pi ends the line when it opens the file, the
/// daemon before it writes the next line.
#[test]
fn both_continue_a_file_after_a_torn_line() {
    let Some(mut pi) = Pi::start() else { return };
    let home = Home::new();
    let log = Log::new("torn")
        .user("u1", "", "one")
        .assistant("a1", "u1", "two");
    let torn = log.text() + r#"{"type":"message","id":"torn","parentId":"a1","time"#;
    let mut d = daemon(&home);
    d.ignore("diagnostics");

    let path = home.file("by-pi.jsonl", torn.as_bytes());
    let m = pi.open(&path);
    pi.ok(&m, "appendMessage", json!([user("pi goes on")]));
    let opened = d.open(&path);
    assert_eq!(opened["diagnostics"][0]["kind"], "invalidJson", "{opened}");
    pi.view(&path)
        .assert_same(&View::of_daemon(&mut d, "torn"), "pi goes on");
    d.ok("close_session", json!({}));

    let path = home.file("here.jsonl", torn.as_bytes());
    let opened = d.open(&path);
    assert_eq!(opened["diagnostics"][0]["kind"], "tornTail", "{opened}");
    d.user("u2", "the daemon goes on");
    let there = pi.view(&path);
    there.assert_same(&View::of_daemon(&mut d, "torn"), "the daemon goes on");
    assert_eq!(there.leaf, "u2");
}

/// For pi, the records of branches are entries below the leaf, so it continues at the same position. An entry that pi
/// adds below an archived branch brings the branch back.
#[test]
fn records_of_branches_move_pi_nowhere() {
    let Some(mut both) = Both::created_here() else {
        return;
    };
    for name in ["branches_changed", "session_tree"] {
        both.live.ignore(name);
    }
    both.live.chain(&["u1", "a1", "u2", "a2"]);
    both.live.below(Some("a1"), "u3");
    both.agree_on_the_leaf("two branches");
    both.ok("name_branch", json!({"entryId": "u3", "name": "right"}));
    both.ok("archive_branch", json!({"entryId": "a2"}));
    both.agree_on_the_leaf("a name and an archived branch");
    let m = both.pi.open(&both.path);
    let said = both.pi.id(&m, "appendMessage", json!([user("on")]));
    both.agree("a message of pi");
    assert_eq!(both.live.entry(&said)["parentId"], "u3");
    assert_eq!(both.ok("get_tree", json!({}))["archivedBranches"], 1);
    both.pi.ok(&m, "branch", json!(["a2"]));
    let left = both.pi.id(&m, "appendMessage", json!([user("left again")]));
    both.agree("a message in the archived branch");
    assert_eq!(
        both.ok("get_tree", json!({}))["archivedBranches"],
        Json::Null
    );
    both.ok("navigate_tree", json!({"targetId": left}));
    both.ok("archive_branch", json!({"entryId": "u2"}));
    both.ok("unarchive_branch", json!({"entryId": "u2"}));
    both.agree("brought back");
}

/// Branches that grow in the background: pi continues where it was, whichever program wrote last.
#[test]
fn background_branches_move_pi_nowhere() {
    let Some(mut both) = Both::created_here() else {
        return;
    };
    both.live.chain(&["u1", "a1", "u2", "a2"]);
    let grow = |both: &mut Both, parent: &str, id: &str| {
        let params =
            json!({"message": user(id), "entryId": id, "parentId": parent, "keepLeaf": true});
        both.ok("append_message", params);
    };
    for (parent, id) in [("a1", "b1"), ("b1", "b2"), ("a2", "c1")] {
        grow(&mut both, parent, id);
        both.agree_on_the_leaf(id);
    }
    let m = both.pi.open(&both.path);
    let said = both.pi.id(&m, "appendMessage", json!([user("on")]));
    both.agree("a message of pi");
    assert_eq!(both.live.entry(&said)["parentId"], "a2");
    grow(&mut both, &said, "d1");
    assert_eq!(both.agree("below the message of pi").leaf, "a2");
    let again = both.pi.id(&m, "appendMessage", json!([user("on")]));
    both.agree("pi goes on");
    assert_eq!(both.live.entry(&again)["parentId"], json!(said));
    // pi moves to the branch and appends a message there, which is a step.
    both.pi.ok(&m, "branch", json!(["b2"]));
    let there = both
        .pi
        .id(&m, "appendMessage", json!([user("in the branch")]));
    both.agree("pi in the branch");
    grow(&mut both, "c1", "c2");
    both.agree("another branch grows");
    let opened = both.reader.open(&both.path);
    assert_eq!(opened["session"]["leafId"], json!(there));
}
