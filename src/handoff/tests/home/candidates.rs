//! Decides which of several continuations counts, and where the path that was handed over ends.

use super::*;

/// The latest record of a conversation is not valid. Once an earlier record of the conversation was used instead.
#[test]
fn only_the_latest_continuation_of_a_native_id_counts() {
    let check = |change: &dyn Fn(&mut Value)| {
        let tour = Tour::new();
        let mut guest = tour.hand_over("e4", Tool::Codex);
        let mut record: Value = serde_json::from_slice(&guest.prepared.record).unwrap();
        change(&mut record);
        tour.remember(&record);
        guest.say("QUESTION", "ANSWER");
        let report = tour.import(&guest);
        report["totals"]["created"].clone()
    };
    assert_eq!(check(&|_| {}), 0, "the same record again");
    let forged = check(&|record| {
        record["id"] = json!("0123456789abcdef");
        record["sha256"] = json!("0".repeat(64));
    });
    assert_eq!(forged, 1, "a later one of another path");
    let elsewhere = check(&|record| {
        record["id"] = json!("0123456789abcdef");
        record["entryId"] = json!("nowhere");
    });
    assert_eq!(elsewhere, 1, "a later one of no entry");
    let replaced = check(&|record| record["nativeId"] = json!("another"));
    assert_eq!(replaced, 1, "the same one with another id");
}

/// Two paths were handed over, and one is the beginning of the other. A conversation without an id begins with both.
#[test]
fn of_several_beginnings_the_longest_counts() {
    for tool in [Tool::Gemini, Tool::Goose] {
        for order in [["e4", "e6"], ["e6", "e4"]] {
            let tour = Tour::new();
            let guests = order.map(|entry| tour.hand_over(entry, tool));
            let longest = order.iter().position(|entry| *entry == "e6").unwrap();
            let mut guest = guests.into_iter().nth(longest).unwrap();
            guest.say("QUESTION", "ANSWER");
            let report = tour.import(&guest);
            assert_eq!(report["totals"]["created"], 0, "{tool:?} {report}");
            tour.check_branch("e6", "QUESTION", "ANSWER");
            tour.check_settled(&[tool]);
        }
    }
}

/// Once two equal sessions continued in an agent that makes its own ids, and each answer went to the first of the two
/// sessions in the list.
#[test]
fn of_two_equal_sessions_the_one_that_went_on_last_counts() {
    let other = "01a20124-4777-7de2-915b-000000000000";
    for (its_time, counts) in [("2026-03-01T09:54", SESSION), ("2026-03-01T09:56", other)] {
        let tour = Tour::new();
        let mut guest = tour.hand_over("e4", Tool::Goose);
        guest.say("QUESTION", "ANSWER");
        let copy = tour.text().replace(SESSION, other);
        let copy = copy.replace("2026-03-01T09:55", its_time);
        let name = format!("sessions/project/2026-03-01T09-00-00-000Z_{other}.jsonl");
        fs::write(tour.world.at(&name), copy).unwrap();
        tour.import(&guest);
        let files = tour.files();
        assert_eq!(files.len(), 2, "{:?}", files.keys());
        let with: Vec<&PathBuf> = files
            .iter()
            .filter(|(_, text)| text.contains("ANSWER"))
            .map(|(path, _)| path)
            .collect();
        let [path] = with[..] else {
            panic!("{with:?}");
        };
        assert!(
            path.to_str().unwrap().contains(counts),
            "{path:?} at {its_time}"
        );
    }
}

/// Once a tool result without text, at the end of the path, came back as a new entry below itself.
#[test]
fn a_result_without_text_at_the_end_is_adopted() {
    let image = json!([{ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" }]);
    for content in [json!([]), image] {
        for tool in Tool::AGENTS {
            let tour = Tour::new();
            tour.append(&json!({ "type": "message", "id": "e7", "parentId": "e6",
                "timestamp": "2026-03-01T09:00:00.000Z", "message": { "role": "toolResult",
                "toolCallId": "toolu_3", "toolName": "deploy", "isError": false, "content": content } }));
            let mut guest = tour.hand_over("e7", tool);
            guest.say("QUESTION", "ANSWER");
            let report = tour.import(&guest);
            let added = &report["totals"]["entriesAdded"];
            assert_eq!(added, 2, "{tool:?} {}", tour.text());
            tour.check_branch("e7", "QUESTION", "ANSWER");
            tour.check_settled(&[tool]);
        }
    }
}

/// Once the record named a summary that `last` had left out. The path that was made again then differed, and only its
/// end was adopted.
#[test]
fn a_summary_that_is_left_out_is_not_recorded() {
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        let mut guest = tour.hand_over_with("e6", tool, |request| {
            request.summary = Some("Much was said.");
            request.last = Some(1);
        });
        let record: Value = serde_json::from_slice(&guest.prepared.record).unwrap();
        let said = (&record["summary"], &record["from"]);
        assert_eq!(said, (&Value::Null, &json!("e5")), "{tool:?}");
        guest.say("QUESTION", "ANSWER");
        tour.import(&guest);
        tour.check_branch("e6", "QUESTION", "ANSWER");
        // If the path that is made again is the same, each node has its own entry. Otherwise all nodes have the last
        // entry.
        let text = tour.text();
        let mut lines = text.lines().filter(|line| line.contains("\"adopted\""));
        assert!(
            lines.any(|line| line.contains(":\"e5\"")),
            "{tool:?} {text}"
        );
        tour.check_settled(&[tool]);
    }
}

/// Once one session that could not be read ended the import of all conversations of its agent.
#[test]
fn a_session_that_cannot_be_read_hinders_no_other() {
    let tour = Tour::new();
    let mut guest = tour.hand_over("e4", Tool::Codex);
    guest.say("QUESTION", "ANSWER");
    tour.import(&guest);
    let damaged = tour.file();
    fs::write(&damaged, "not a session\n").unwrap();
    guest.say("MORE", "FURTHER");
    guest.arrange(&tour.world);
    let other = tour.world.prepare(Some(Tool::Codex), &conversation());
    place(&other.unwrap().files).unwrap();
    let report = tour.try_import(Tool::Codex, |_| {}).unwrap();
    let totals = (&report["totals"]["failed"], &report["totals"]["created"]);
    assert_eq!(totals, (&json!(1), &json!(1)), "{report}");
    assert_eq!(fs::read_to_string(&damaged).unwrap(), "not a session\n");
}

/// Codex adds ids to the records of a fork that have none. Once treelined wrote no ids, so the fork became a separate
/// session.
#[test]
fn a_fork_by_codex_is_a_branch_below_its_answer() {
    let tour = Tour::new();
    let mut guest = tour.hand_over("e6", Tool::Codex);
    guest.say("QUESTION", "ANSWER");
    tour.import(&guest);
    let fork = "01a2217d-f83f-7272-b00c-2fa624e61225";
    let path = &guest.file().path;
    let name = format!("rollout-2027-01-15T08-00-00-{fork}.jsonl");
    fs::write(path.with_file_name(name), guest.forked_by_codex(fork)).unwrap();
    let report = tour.import_from(Tool::Codex);
    assert_eq!(report["totals"]["created"], 0, "{report}");
    let answer = tour.entry("ANSWER")["id"].as_str().unwrap().to_owned();
    tour.check_branch(&answer, "IN THE FORK", "FORKED");
    tour.check_settled(&[Tool::Codex]);
}
