//! Exported branches and subtrees open in pi, with the same entries, labels, leaf and context as here.

use super::*;

#[test]
fn exported_branches_and_subtrees_open_in_pi() {
    let Some(mut both) = Both::created_here() else {
        return;
    };
    both.live.chain(&["u1", "a1"]);
    both.ok(
        "append_label",
        json!({"targetId": "u1", "label": "start", "entryId": "l1"}),
    );
    both.live.chain(&["u2", "a2"]);
    both.append(json!({"type": "compaction", "id": "c1", "summary": "S1", "firstKeptEntryId": "u1", "tokensBefore": 1}));
    both.live.chain(&["u3", "a3"]);
    both.ok(
        "append_label",
        json!({"targetId": "a2", "label": "left", "entryId": "l2"}),
    );
    both.ok("set_leaf", json!({"leafId": "a2"}));
    both.live.chain(&["u4", "a4"]);
    both.ok("set_leaf", json!({"leafId": "a3"}));
    let mut exported = 0;
    for scope in ["branch", "subtree"] {
        for entry in ["u1", "a1", "u2", "a2", "c1", "a3", "a4"] {
            let path = both.home.files().join(format!("{scope}-{entry}.jsonl"));
            let params = json!({"format": "jsonl", "scope": scope, "entryId": entry, "path": path});
            both.ok("export_session", params);
            let there = both.pi.view(&path);
            there.assert_same(&fresh(&mut both.reader, &path), &format!("{scope} {entry}"));
            exported += 1;
        }
    }
    assert_eq!(exported, 14);
    let path = both.home.files().join("trace.jsonl");
    let params = json!({"format": "trace", "entryId": "a4", "path": path});
    both.ok("export_session", params);
    let there = both.pi.view(&path);
    there.assert_same(&fresh(&mut both.reader, &path), "the trace");
    let path = both.home.files().join("tree.jsonl");
    both.ok("export_session", json!({"format": "jsonl", "path": path}));
    let there = both.pi.view(&path);
    there.assert_same(&fresh(&mut both.reader, &path), "the tree");
}
