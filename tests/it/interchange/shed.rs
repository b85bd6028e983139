//! Sessions with shed branches (session-file.md §4.10): pi reads them without these branches, and goes on.

use super::*;
use std::fs;

/// The ids of the entries that pi reads.
fn ids_there(both: &mut Both) -> Vec<String> {
    let entries = both.pi.view(&both.path).entries;
    let ids = entries.iter().map(|entry| entry["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

/// The lines after the header.
fn lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn pi_goes_on_without_the_shed_branches_and_they_come_back_in_front() {
    // With a manager that has read the branch, and keeps it in memory.
    for is_stale in [false, true] {
        let Some(mut both) = Both::created_here() else {
            return;
        };
        for name in ["branches_changed", "session_reordered"] {
            both.live.ignore(name);
        }
        both.live.chain(&["u1", "a1", "u2", "a2"]);
        both.ok("set_leaf", json!({"leafId": "a1"}));
        both.live.chain(&["u3", "a3"]);
        both.ok("archive_branch", json!({"entryId": "a2"}));
        both.agree_on_the_leaf("archived");
        let before = fs::read(&both.path).unwrap();
        let stale = is_stale.then(|| both.pi.open(&both.path));

        let shed = both.ok("shed_branches", json!({}));
        assert_eq!(shed["shed"][0]["entryId"], "u2");
        assert!(both.path.with_extension("jsonl.cold").exists());
        both.agree_on_the_leaf("shed");
        let left = ids_there(&mut both);
        assert!(left.contains(&"a3".to_owned()) && !left.contains(&"a2".to_owned()));

        let shed_len = fs::read(&both.path).unwrap().len();
        let manager = stale.unwrap_or_else(|| both.pi.open(&both.path));
        let told = both.pi.id(&manager, "appendMessage", json!([user("on")]));
        both.agree("an append of pi");
        both.pi
            .ok(&manager, "appendLabelChange", json!([told, "here"]));
        both.ok("append_message", json!({"message": user("here again")}));
        both.agree("appends of both");
        let grown = fs::read(&both.path).unwrap()[shed_len..].to_vec();

        let exported = both.home.files().join("whole.jsonl");
        let params = json!({"format": "jsonl", "path": exported});
        both.ok("export_session", params);
        let whole = both.pi.view(&exported);
        whole.assert_same(&fresh(&mut both.reader, &exported), "the export");

        let back = both.ok("unshed_branches", json!({}));
        assert_eq!(back["entryIds"], json!(["u2"]));
        let now = fs::read(&both.path).unwrap();
        let between = now.strip_prefix(&before[..]).expect("the old bytes");
        let between = between.strip_suffix(&grown[..]).expect("the new bytes");
        // The manager that has read the record goes on below it.
        let records = between.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(records, usize::from(!is_stale));
        assert_eq!(lines(&exported), lines(&both.path), "the export is whole");
        both.agree("back");
        let back = ids_there(&mut both);
        assert!(left.iter().all(|id| back.contains(id)));
        assert!(back.contains(&"u2".to_owned()) && back.contains(&"a2".to_owned()));
    }
}
