//! Conversations that were handed over, continued in an agent, and were imported again.

use super::*;

/// Once the answer of an agent became a separate session, with a second copy of the messages that were handed over.
#[test]
fn an_answer_is_a_branch_below_the_entry_that_was_handed_over() {
    for tool in Tool::AGENTS {
        for tour in [Tour::new(), Tour::imported()] {
            let (entry, _) = tour.answers();
            let usage = tour.text().matches("\"usage\"").count();
            let mut guest = tour.hand_over(&entry, tool);
            guest.say("QUESTION", "ANSWER");
            let report = tour.import(&guest);
            let text = tour.text();
            assert_eq!(report["totals"]["entriesAdded"], 2, "{tool:?} {text}");
            assert_eq!(report["totals"]["created"], 0, "{tool:?} {report}");
            tour.check_branch(&entry, "QUESTION", "ANSWER");
            let used = text.matches("\"usage\"").count();
            assert_eq!(used, usage + 1, "{tool:?}: only the answer counts");
            tour.check_settled(&[tool]);
            guest.say("MORE", "FURTHER");
            let report = tour.import(&guest);
            assert_eq!(report["totals"]["entriesAdded"], 2, "{tool:?} {report}");
            tour.check_branch(
                tour.entry("ANSWER")["id"].as_str().unwrap(),
                "MORE",
                "FURTHER",
            );
            tour.check_settled(&[tool]);
        }
    }
}

/// Once a session that no import had made counted as Codex's own when an answer of Codex was imported into it.
#[test]
fn an_answer_that_comes_home_changes_no_origin() {
    for (tour, origin) in [
        (Tour::new(), None),
        (Tour::imported(), Some(Tool::ClaudeCode.name())),
    ] {
        let (entry, _) = tour.answers();
        let mut guest = tour.hand_over(&entry, Tool::Codex);
        guest.say("QUESTION", "ANSWER");
        tour.import(&guest);
        let rows = Store::new(tour.world.at("sessions")).rows().unwrap();
        let source = rows[0].listing.source.as_ref().unwrap();
        assert_eq!(source.tool.as_deref(), origin);
        let native = guest.prepared.native_id.as_ref().unwrap();
        assert!(source.native_ids.contains(native));
    }
}

/// The writer closes a call that has no result, and the importer of a tool removes such a call from the path.
#[test]
fn a_call_that_was_closed_is_not_an_entry() {
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        let mut guest = tour.hand_over("e6", tool);
        guest.say("QUESTION", "ANSWER");
        tour.import(&guest);
        tour.check_branch("e6", "QUESTION", "ANSWER");
        assert!(!tour.text().contains("Not run"), "{tool:?}");
    }
}

/// Once an import made a session, or moved the leaf, before the agent had added a message.
#[test]
fn what_was_handed_over_alone_changes_nothing() {
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        let mut guest = tour.hand_over("e4", tool);
        let before = tour.files();
        let report = tour.import(&guest);
        assert_eq!(report["totals"]["entriesAdded"], 0, "{tool:?} {report}");
        assert!(tour.files() == before, "{tool:?}: {}", tour.text());
        guest.say("QUESTION", "ANSWER");
        tour.import(&guest);
        tour.check_branch("e4", "QUESTION", "ANSWER");
        tour.check_settled(&[tool]);
    }
}

/// A conversation goes from one agent to another and back. Each agent gets the messages that the agent before it has
/// added.
#[test]
fn three_hops_are_one_session() {
    for [first, second] in [
        [Tool::Codex, Tool::ClaudeCode],
        [Tool::ClaudeCode, Tool::Pi],
        [Tool::Gemini, Tool::Opencode],
    ] {
        let tour = Tour::imported();
        let mut above = tour.answers().1;
        for (hop, tool) in [first, second, first].into_iter().enumerate() {
            let (question, answer) = (format!("QUESTION{hop}"), format!("ANSWER{hop}"));
            let mut guest = tour.hand_over(&above, tool);
            guest.say(&question, &answer);
            let report = tour.import(&guest);
            assert_eq!(
                report["totals"]["entriesAdded"], 2,
                "{tool:?} {hop} {report}"
            );
            tour.check_branch(&above, &question, &answer);
            above = tour.entry(&answer)["id"].as_str().unwrap().to_owned();
            assert_eq!(
                tour.path().last().unwrap().entry_id,
                above,
                "the leaf follows"
            );
        }
        tour.check_settled(&[first, second, Tool::ClaudeCode]);
    }
}

/// Two agents continue from the same entry. The leaf is in the branch of the agent that answered first.
#[test]
fn two_agents_at_once_are_two_branches() {
    let tour = Tour::new();
    let mut guests = [Tool::Codex, Tool::Gemini].map(|tool| tour.hand_over("e6", tool));
    for round in 0..3 {
        for guest in &mut guests {
            let name = guest.tool.name();
            guest.say(&format!("Q-{name}-{round}-"), &format!("A-{name}-{round}-"));
            tour.import(guest);
        }
    }
    for name in ["codex", "gemini"] {
        tour.check_branch("e6", &format!("Q-{name}-0-"), &format!("A-{name}-0-"));
    }
    assert_eq!(tour.words().last().unwrap(), "A-codex-2-");
    tour.check_settled(&[Tool::Codex, Tool::Gemini]);
}

/// Once a report had each session only once, with the agent of the first source. So an import of all agents reported
/// nothing new for the others.
#[test]
fn a_report_has_a_row_of_a_session_for_each_agent() {
    let tour = Tour::new();
    let mut guests = [Tool::Codex, Tool::Gemini].map(|tool| tour.hand_over("e6", tool));
    let places = guests
        .each_ref()
        .map(|guest| tour.world.at(place_of(guest.tool)));
    for _ in 0..2 {
        for guest in &mut guests {
            guest.say("QUESTION", "ANSWER");
            guest.arrange(&tour.world);
        }
        let all = |request: &mut ImportRequest| {
            request.from = None;
            request.paths = places.to_vec();
        };
        let report = tour.try_import(Tool::Codex, all).unwrap();
        let rows = report["sessions"].as_array().unwrap();
        let mut added: Vec<(&str, &Value)> = rows
            .iter()
            .map(|row| (row["tool"].as_str().unwrap(), &row["entriesAdded"]))
            .collect();
        added.sort_by_key(|(tool, _)| *tool);
        assert_eq!(
            added,
            [("codex", &json!(2)), ("gemini", &json!(2))],
            "{report}"
        );
        assert_eq!(report["totals"]["entriesAdded"], 4, "{report}");
    }
}

/// One agent continues the same path twice.
#[test]
fn two_conversations_of_one_agent_are_two_branches() {
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        let mut one = tour.hand_over("e4", tool);
        one.say("Q-one", "A-one");
        tour.import(&one);
        let mut two = tour.hand_over("e4", tool);
        two.say("Q-two", "A-two");
        tour.import(&two);
        one.say("Q-further", "A-further");
        tour.import(&one);
        tour.check_branch("e4", "Q-one", "A-one");
        tour.check_branch("e4", "Q-two", "A-two");
        let last = tour.entry("A-one")["id"].as_str().unwrap().to_owned();
        tour.check_branch(&last, "Q-further", "A-further");
        tour.check_settled(&[tool]);
    }
}

/// A person writes a message and continues in an agent, which gets the message as its first prompt. The message was
/// once in the tree twice, and the message on the path to the leaf had no answer.
#[test]
fn a_message_that_was_handed_over_as_the_prompt_is_there_once() {
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        tour.append(&json!({ "type": "message", "id": "asked", "parentId": "e6",
            "timestamp": "2026-03-01T09:50:00.000Z",
            "message": { "role": "user", "content": "QUESTION one", "timestamp": 1 } }));
        let mut guest = tour.hand_over("asked", tool);
        guest.say("QUESTION one", "ANSWER");
        let report = tour.import(&guest);
        assert_eq!(report["totals"]["entriesAdded"], 1, "{tool:?} {report}");
        tour.check_branch("e6", "QUESTION one", "ANSWER");
        let answer = tour.entry("ANSWER")["id"].as_str().unwrap().to_owned();
        assert_eq!(tour.path().last().unwrap().entry_id, answer, "{tool:?}");
        tour.check_settled(&[tool]);
        guest.say("MORE", "FURTHER");
        tour.import(&guest);
        tour.check_branch(&answer, "MORE", "FURTHER");
        tour.check_settled(&[tool]);
    }
}

/// Two messages of the user without an answer between them are one prompt of the agent. This prompt once came back as a
/// third message.
#[test]
fn messages_that_were_handed_over_as_one_prompt_are_there_once() {
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        for (id, above, text) in [("one", "e6", "THREE."), ("two", "one", "FOUR.")] {
            tour.append(&json!({ "type": "message", "id": id, "parentId": above,
                "timestamp": "2026-03-01T09:50:00.000Z",
                "message": { "role": "user", "content": text, "timestamp": 1 } }));
        }
        let mut guest = tour.hand_over("two", tool);
        assert_eq!(guest.prepared.prompt.as_deref(), Some("THREE.\nFOUR."));
        guest.say("THREE.\nFOUR.", "ANSWER");
        let report = tour.import(&guest);
        assert_eq!(report["totals"]["entriesAdded"], 1, "{tool:?} {report}");
        tour.check_branch("one", "FOUR.", "ANSWER");
        tour.check_settled(&[tool]);
    }
}

/// A person leaves a branch with a summary and continues in an agent. The agent once got the summary as a prompt and
/// answered it. The answer came back beside the summary, below a message that the person had not written.
#[test]
fn a_summary_at_the_end_is_handed_over_and_not_asked() {
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        tour.append(
            &json!({ "type": "branch_summary", "id": "sum", "parentId": "e4", "fromId": "e6",
            "timestamp": "2026-03-01T09:50:00.000Z", "summary": "SUMMARY of what was left" }),
        );
        let mut guest = tour.hand_over("sum", tool);
        assert_eq!(guest.prepared.prompt, None, "{tool:?}");
        let before = tour.files();
        let report = tour.import(&guest);
        assert_eq!(report["totals"]["entriesAdded"], 0, "{tool:?} {report}");
        assert!(tour.files() == before, "{tool:?}: {}", tour.text());
        guest.say("QUESTION", "ANSWER");
        let report = tour.import(&guest);
        assert_eq!(report["totals"]["entriesAdded"], 2, "{tool:?} {report}");
        tour.check_branch("sum", "QUESTION", "ANSWER");
        tour.check_settled(&[tool]);
    }
}

/// If the user has moved the leaf elsewhere in the tree, the leaf stays there.
#[test]
fn the_leaf_stays_where_the_user_went() {
    let tour = Tour::new();
    let mut guest = tour.hand_over("e4", Tool::Codex);
    tour.append(
        &json!({ "type": "custom", "customType": "treelined.leaf", "id": "moved", "parentId": "e1",
        "timestamp": "2026-03-01T09:56:00.000Z", "data": { "from": "e6", "cause": "set_leaf" } }),
    );
    guest.say("QUESTION", "ANSWER");
    tour.import(&guest);
    assert_eq!(tour.path().last().unwrap().entry_id, "e1");
    tour.append(
        &json!({ "type": "custom", "customType": "treelined.leaf", "id": "back", "parentId": "e4",
        "timestamp": "2026-03-01T09:57:00.000Z", "data": { "from": "e1", "cause": "set_leaf" } }),
    );
    guest.say("MORE", "FURTHER");
    tour.import(&guest);
    assert_eq!(
        tour.path().last().unwrap().entry_id,
        "e4",
        "it has spoken before"
    );
}

/// Once the conversation of another agent got into a session from which it was not handed over.
#[test]
fn a_forged_record_takes_nothing() {
    let forge = |change: &dyn Fn(&mut Value)| {
        let tour = Tour::new();
        let mut path = conversation();
        path[0] = json!({ "role": "user", "content": "SOMETHING ELSE" });
        let mut guest = Guest {
            tool: Tool::Codex,
            prepared: tour.world.prepare(Some(Tool::Codex), &path).unwrap(),
            added: Vec::new(),
        };
        place(&guest.prepared.files).unwrap();
        guest.say("QUESTION", "ANSWER");
        let mut record: Value = serde_json::from_slice(&guest.prepared.record).unwrap();
        change(&mut record);
        tour.remember(&record);
        let before = tour.text();
        let report = tour.import(&guest);
        assert_eq!(report["totals"]["created"], 1, "{report}");
        let file = tour
            .files()
            .into_iter()
            .find(|(_, text)| text.contains(SESSION));
        assert_eq!(file.unwrap().1, before);
    };
    // The hash belongs to neither path.
    forge(&|record| {
        record["sessionId"] = json!(SESSION);
        record["sha256"] = json!("0".repeat(64));
    });
    // The hash belongs to the agent's path, but the record belongs to another session.
    forge(&|_| {});
    // The entry does not exist.
    forge(&|record| {
        record["sessionId"] = json!(SESSION);
        record["entryId"] = json!("nowhere");
    });
}

/// In a copy of a session file under another id, the records are ignored.
#[test]
fn a_copied_session_takes_nothing() {
    let tour = Tour::new();
    let mut guest = tour.hand_over("e4", Tool::Codex);
    guest.say("QUESTION", "ANSWER");
    let other = "01a20124-4777-7de2-915b-000000000000";
    let copy = |tour: &Tour, file: &Path| {
        let text = fs::read_to_string(file)
            .unwrap()
            .replacen(SESSION, other, 1);
        let path = tour.world.at(&format!(
            "sessions/project/2026-03-02T09-00-00-000Z_{other}.jsonl"
        ));
        fs::write(&path, &text).unwrap();
        (path, text)
    };
    let file = tour.file();
    let (path, text) = copy(&tour, &file);
    tour.import(&guest);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert!(fs::read_to_string(&file).unwrap().contains("QUESTION"));
    // The copy also has the record of the import.
    let (path, text) = copy(&tour, &file);
    fs::remove_dir_all(tour.world.at("sessions/.imports")).unwrap();
    guest.say("MORE", "FURTHER");
    tour.import(&guest);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert!(fs::read_to_string(&file).unwrap().contains("FURTHER"));
    assert_eq!(tour.files().len(), 2);
}

/// If an agent writes its history again, the conversation becomes a branch below the entry, and not a root or another
/// session. If the agent also gives the conversation another id, it is not recognized.
#[test]
fn a_rewritten_beginning_is_a_branch_with_a_label() {
    for tool in [Tool::ClaudeCode, Tool::Codex, Tool::Pi] {
        let tour = Tour::new();
        let mut guest = tour.hand_over("e4", tool);
        guest.say("QUESTION", "ANSWER");
        let file = guest.prepared.files.first_mut().unwrap();
        let text = String::from_utf8(file.bytes.clone()).unwrap();
        file.bytes = text.replace("ALPHA", "OMEGA").into_bytes();
        let report = tour.import(&guest);
        assert_eq!(report["totals"]["created"], 0, "{tool:?} {report}");
        let text = tour.text();
        let first = tour.entry("OMEGA");
        let roots = text.matches("\"parentId\":null").count();
        assert_eq!(roots, 1, "{tool:?} {text}");
        let label = tour.entry(&format!("rewritten by {}", tool.name()));
        let mut below: HashMap<Value, Value> = HashMap::new();
        for line in text.lines().skip(1) {
            let entry: Value = serde_json::from_str(line).unwrap();
            below.insert(entry["id"].clone(), entry["parentId"].clone());
        }
        let mut at = &label["targetId"];
        assert_eq!(below[at], "e4", "{tool:?} {text}");
        at = &first["id"];
        while below[at] != "e4" {
            at = &below[at];
        }
        tour.check_settled(&[tool]);
        guest.say("MORE", "FURTHER");
        tour.import(&guest);
        tour.check_branch(
            tour.entry("ANSWER")["id"].as_str().unwrap(),
            "MORE",
            "FURTHER",
        );
        tour.check_settled(&[tool]);
    }
}

/// A path may be cut, or begin with a summary.
#[test]
fn a_part_of_a_path_is_adopted() {
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        let mut guest = tour.hand_over_with("e6", tool, |request| request.last = Some(1));
        guest.say("QUESTION", "ANSWER");
        let report = tour.import(&guest);
        assert_eq!(
            report["totals"]["entriesAdded"],
            2,
            "{tool:?} {}",
            tour.text()
        );
        tour.check_branch("e6", "QUESTION", "ANSWER");
        tour.check_settled(&[tool]);
    }
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        let mut guest = tour.hand_over_with("e6", tool, |request| {
            request.path.drain(..5);
            request.summary = Some("Two files were looked at.");
        });
        guest.say("QUESTION", "ANSWER");
        let report = tour.import(&guest);
        assert_eq!(
            report["totals"]["entriesAdded"],
            2,
            "{tool:?} {}",
            tour.text()
        );
        tour.check_branch("e6", "QUESTION", "ANSWER");
        tour.check_settled(&[tool]);
    }
}

/// If thoughts were written into the text that the agent gets, an import still recognizes the entry from which they
/// come.
#[test]
fn thoughts_in_the_text_are_adopted() {
    for tool in Tool::AGENTS {
        let tour = Tour::new();
        let mut guest = tour.hand_over_with("e4", tool, |request| request.keeps_thoughts = true);
        guest.say("QUESTION", "ANSWER");
        let report = tour.import(&guest);
        assert_eq!(
            report["totals"]["entriesAdded"],
            2,
            "{tool:?} {}",
            tour.text()
        );
        tour.check_branch("e4", "QUESTION", "ANSWER");
    }
}

/// A record may exist without its file, after a crash for example. It names a conversation that never begins.
#[test]
fn a_record_without_a_file_is_harmless() {
    let tour = Tour::new();
    let lost = tour.hand_over("e4", Tool::Codex);
    fs::remove_file(&lost.file().path).unwrap();
    let before = tour.files();
    tour.import_from(Tool::Codex);
    assert!(tour.files() == before);
    let mut guest = tour.hand_over("e4", Tool::Codex);
    guest.say("QUESTION", "ANSWER");
    tour.import(&guest);
    tour.check_branch("e4", "QUESTION", "ANSWER");
}

/// The folder in which the agent works is not the folder of the session.
#[test]
fn a_continuation_in_another_folder_stays_a_branch() {
    let tour = Tour::new();
    let other = tour.world.at("elsewhere");
    fs::create_dir(&other).unwrap();
    let text = tour.text().replace("/project", "/former");
    fs::write(tour.file(), text).unwrap();
    let mut guest = tour.hand_over("e4", Tool::ClaudeCode);
    guest.say("QUESTION", "ANSWER");
    tour.import(&guest);
    tour.check_branch("e4", "QUESTION", "ANSWER");
    tour.check_settled(&[Tool::ClaudeCode]);
}

/// Once the title of a branch became the name of the session.
#[test]
fn the_name_of_the_session_stays() {
    for tool in Tool::AGENTS {
        for (tour, name) in [(Tour::new(), None), (Tour::imported(), Some("⑂ A tour"))] {
            let (entry, _) = tour.answers();
            let mut guest = tour.hand_over_with(&entry, tool, |request| {
                request.name = Some("ANOTHER NAME");
            });
            guest.say("QUESTION", "ANSWER");
            tour.import(&guest);
            let text = tour.text();
            assert!(
                !text.contains("\"name\":\"⑂ ANOTHER NAME\",\"origin\""),
                "{tool:?} {text}"
            );
            assert_eq!(
                text.contains("session_info"),
                name.is_some(),
                "{tool:?} {text}"
            );
        }
    }
}

/// Agents had continued from entries of a session. When the session was written again, it once lost these entries.
#[test]
fn a_session_that_went_on_is_not_written_anew() {
    let tour = Tour::imported();
    let (entry, _) = tour.answers();
    let mut guest = tour.hand_over(&entry, Tool::Codex);
    guest.say("QUESTION", "ANSWER");
    tour.import(&guest);
    let before = tour.files();
    let id = tour.id();
    for tool in [Tool::Codex, Tool::ClaudeCode] {
        let again = tour.try_import(tool, |request| request.again = Some(id.clone()));
        assert_eq!(again.unwrap_err().kind, Kind::ImportFailed);
        assert!(tour.files() == before);
    }
}

/// Every record of an agent's file is counted: `doctor --origin` adds up the numbers.
#[test]
fn records_that_are_adopted_repeat_others() {
    for tool in [Tool::ClaudeCode, Tool::Codex, Tool::Gemini, Tool::Pi] {
        let tour = Tour::new();
        let mut guest = tour.hand_over("e6", tool);
        guest.say("QUESTION", "ANSWER");
        let report = tour.import(&guest);
        let file = &report["files"][0];
        let number = |value: &Value| value.as_u64().unwrap();
        let only: u64 = file["originOnly"]
            .as_object()
            .unwrap()
            .values()
            .map(number)
            .sum();
        let own = number(&file["entries"]);
        assert_eq!(own, 2, "{tool:?} {file}");
        assert_eq!(
            own + only + number(&file["duplicates"]),
            number(&file["records"]),
            "{tool:?} {file}"
        );
    }
}

/// Once a dry run wrote the cache of the list.
#[test]
fn a_dry_run_writes_nothing() {
    let tour = Tour::new();
    let mut guest = tour.hand_over("e6", Tool::Codex);
    guest.say("QUESTION", "ANSWER");
    guest.arrange(&tour.world);
    // There are enough sessions for the list to be cached. No file is so long that its index is cached.
    let header = tour.text().lines().next().unwrap().to_owned();
    for number in 0..2 {
        let text =
            header.replace(SESSION, &format!("other-{number}")) + &" ".repeat(1 << 20) + "\n";
        fs::write(
            tour.world.at(&format!("sessions/project/{number}.jsonl")),
            text,
        )
        .unwrap();
    }
    let before = tour.files();
    let report = tour.try_import(Tool::Codex, |request| request.is_dry_run = true);
    assert_eq!(report.unwrap()["totals"]["entriesAdded"], 2);
    assert!(tour.files() == before);
    let names = fs::read_dir(tour.world.at("sessions")).unwrap();
    let names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["project"]);
}
