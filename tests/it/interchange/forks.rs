//! pi opens forks of the daemon, the daemon opens forks of pi, and both programs make the same fork.

use super::pi::is_record;
use super::*;

/// A session with two branches, labels between messages, moves, and compactions whose kept part begins with a label or
/// a record.
#[track_caller]
fn source() -> Option<Both> {
    let mut both = Both::created_here()?;
    both.ok("set_session_name", json!({"name": "source"}));
    both.live.chain(&["u1", "a1"]);
    both.ok(
        "append_label",
        json!({"targetId": "u1", "label": "start", "entryId": "l1"}),
    );
    both.live.chain(&["u2", "a2"]);
    both.ok(
        "append_label",
        json!({"targetId": "a2", "label": "left", "entryId": "l2"}),
    );
    both.ok(
        "append_label",
        json!({"targetId": "l2", "label": "on a label"}),
    );
    both.ok(
        "branch",
        json!({"entryId": "a1", "summary": {"summary": "left it"}}),
    );
    both.live.chain(&["u3", "a3"]);
    both.ok(
        "append_label",
        json!({"targetId": "u1", "label": "start again", "entryId": "l3"}),
    );
    both.append(json!({"type": "compaction", "id": "c1", "summary": "S1", "firstKeptEntryId": "a1", "tokensBefore": 1}));
    both.live.chain(&["u4"]);
    both.append(json!({"type": "compaction", "id": "c2", "summary": "S2", "firstKeptEntryId": "l3", "tokensBefore": 1}));
    both.append(json!({"type": "label", "id": "l5", "targetId": "c2", "label": "edge"}));
    both.append(json!({"type": "compaction", "id": "c3", "summary": "S3", "firstKeptEntryId": "l5", "tokensBefore": 1}));
    both.live.chain(&["a4"]);
    both.append(
        json!({"type": "context_edit", "targetId": "a4", "replacement": {"content": "edited"}}),
    );
    both.ok("set_leaf", json!({"leafId": "a2"}));
    // An entry that pi appends below a record has the record in its path.
    let m = both.pi.open(&both.path);
    let record = both.pi.ok(&m, "getLeafId", json!([]));
    both.pi
        .ok(&m, "appendMessage", json!([user("below a record")]));
    both.pi.ok(&m, "appendLabelChange", json!(["u2", "by pi"]));
    both.pi.ok(&m, "appendCompaction", json!(["S4", record, 1]));
    both.pi.ok(&m, "appendMessage", json!([assistant("last")]));
    both.agree("the source");
    Some(both)
}

/// Forks with the daemon; returns the session id and the file of the fork.
#[track_caller]
pub(super) fn fork_here(both: &mut Both, params: Json) -> (String, PathBuf) {
    let made = both.ok("fork_session", params);
    let session = &made["session"];
    let path = PathBuf::from(session["path"].as_str().unwrap());
    (session["sessionId"].as_str().unwrap().to_owned(), path)
}

/// Checks that pi and a daemon read the same session from this file, with the same header.
#[track_caller]
fn opens_in_both(both: &mut Both, path: &Path, what: &str) -> View {
    let there = both.pi.view(path);
    there.assert_same(&fresh(&mut both.reader, path), what);
    let m = both.pi.open(path);
    let header = both.pi.dump(&m)["header"].clone();
    both.pi.forget(m);
    let opened = both
        .reader
        .ok("open_session", json!({"path": path, "mode": "read"}))["session"]
        .clone();
    for (stored, found) in [
        ("id", "sessionId"),
        ("cwd", "cwd"),
        ("parentSession", "parentSession"),
    ] {
        assert_eq!(header.get(stored), opened.get(found), "{stored}: {what}");
    }
    both.reader
        .ok("close_session", json!({"sessionId": opened["sessionId"]}));
    there
}

/// Checks that the forks of both programs are equal, except for labels. pi gives label entries new ids, and orders them
/// by the first label of their targets. The daemon keeps their ids and order.
#[track_caller]
pub(super) fn assert_same_fork(here: &View, there: &View, what: &str) {
    let kept = |view: &View| {
        let entries = view.entries.iter().filter(|e| e["type"] != "label");
        entries.cloned().collect::<Vec<_>>()
    };
    let (ours, theirs) = (kept(here), kept(there));
    assert_eq!(ours.len(), theirs.len(), "number of entries: {what}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs, "an entry: {what}");
    }
    assert_eq!(here.labels, there.labels, "labels: {what}");
    assert_eq!(here.name, there.name, "name: {what}");
    assert_eq!(above_labels(here), above_labels(there), "position: {what}");
    here.assert_same_context(there, what);
}

fn above_labels(view: &View) -> Json {
    let mut at = view.leaf.clone();
    while let Some(entry) = view
        .entries
        .iter()
        .find(|e| e["id"] == at && e["type"] == "label")
    {
        at = entry["parentId"].clone();
    }
    at
}

/// Forks at this entry with pi. `None` if the fork has no message yet, and so no file.
pub(super) fn fork_there(both: &mut Both, entry: &str) -> Option<PathBuf> {
    let m = both.pi.open(&both.path);
    let path = both.pi.ok(&m, "createBranchedSession", json!([entry]));
    both.pi.forget(m);
    Some(PathBuf::from(path.as_str()?)).filter(|path| path.is_file())
}

#[test]
fn both_fork_alike_at_every_entry_and_open_each_others_forks() {
    let Some(mut both) = source() else { return };
    let stored = file_lines(&both.path);
    let mut compared = 0;
    for entry in stored.iter().skip(1).filter(|entry| !is_record(entry)) {
        let id = entry["id"].as_str().unwrap();
        let what = format!("a fork at {entry}");
        let (session, path) = fork_here(&mut both, json!({"entryId": id, "position": "at"}));
        if !path.is_file() {
            continue;
        }
        let here = opens_in_both(&mut both, &path, &what);
        View::of_daemon(&mut both.live, &session).assert_same(&here, &what);
        both.live.ok("close_session", json!({"sessionId": session}));
        let Some(path) = fork_there(&mut both, id) else {
            continue;
        };
        let there = opens_in_both(&mut both, &path, &what);
        assert_same_fork(&here, &there, &what);
        compared += 1;
    }
    assert!(compared > 15, "{compared}");
}

#[test]
fn a_fork_before_a_user_message_opens_in_pi() {
    let Some(mut both) = source() else { return };
    for id in ["u2", "u3", "u4"] {
        let (session, path) = fork_here(&mut both, json!({"entryId": id, "position": "before"}));
        opens_in_both(&mut both, &path, id);
        both.live.ok(
            "append_message",
            json!({"sessionId": session, "message": user("and on")}),
        );
        opens_in_both(&mut both, &path, id);
        let m = both.pi.open(&path);
        both.pi
            .ok(&m, "appendMessage", json!([user("and on there")]));
        opens_in_both(&mut both, &path, id);
    }
}

#[test]
fn a_fork_with_closed_tool_calls_opens_in_pi() {
    let Some(mut both) = Both::created_here() else {
        return;
    };
    both.live.chain(&["u1"]);
    let calls = json!([
        tool_call("c1", "read", json!({})),
        tool_call("c2", "write", json!({}))
    ]);
    both.ok("append_message", json!({"message": assistant_with(calls)}));
    both.ok("append_label", json!({"targetId": "u1", "label": "start"}));
    let (_, path) = fork_here(&mut both, json!({"closeToolCalls": true}));
    let view = opens_in_both(&mut both, &path, "closed calls");
    let roles: Vec<_> = view
        .llm
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].clone())
        .collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "toolResult"]);
}

#[test]
fn a_whole_session_that_pi_forks_into_another_folder_opens_here() {
    let Some(mut both) = source() else { return };
    both.ok("set_leaf", json!({"leafId": "u3"}));
    let args = json!([both.path, both.home.files(), both.home.sessions(), {"id": "moved"}]);
    let m = both.pi.make("forkFrom", args);
    assert_eq!(m.session, "moved");
    let forked = opens_in_both(&mut both, &m.file, "forkFrom");
    forked.assert_same(&both.pi.view(&both.path), "the fork and its source");
    both.pi.ok(&m, "appendMessage", json!([user("and on")]));
    opens_in_both(&mut both, &m.file, "forkFrom, gone on with");
}
