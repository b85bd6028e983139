//! Handoffs from each agent to each agent and back, with conversations that the agents have written themselves.

use super::*;

/// The test data of an agent.
fn data(tool: Tool) -> &'static str {
    match tool {
        Tool::ClaudeCode => "claude-code/valid_session.jsonl",
        Tool::Codex => "codex/0.169-paginated",
        Tool::Opencode => "opencode/opencode.db",
        Tool::Gemini => "gemini/session-2026-11-22T02-51-4d3ab90e.jsonl",
        Tool::Goose => "goose/sessions.db",
        Tool::Pi => "pi/agentsview-session.jsonl",
        other => unreachable!("no conversation goes on in {other:?}"),
    }
}

/// Imports the files of an agent, and returns the bytes of the session that has the longest path.
fn imported_from(tool: Tool) -> String {
    let tour = Tour::empty();
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data/import")
        .join(data(tool));
    let files = tour.world.at("files");
    fs::create_dir(&files).unwrap();
    let copied: Vec<PathBuf> = match from.is_dir() {
        true => fs::read_dir(&from)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect(),
        false => vec![from],
    };
    for file in copied {
        fs::copy(&file, files.join(file.file_name().unwrap())).unwrap();
    }
    let take = |request: &mut ImportRequest| request.paths = vec![files.clone()];
    tour.try_import(tool, take).unwrap();
    let store = Store::new(tour.world.at("sessions"));
    let sessions = tour.files().into_iter();
    let longest = sessions.max_by_key(|(file, _)| context_of(&store, file).len());
    longest.unwrap().1
}

/// The losses of a handoff, by kind, in the form of the README's table.
fn lost(prepared: &Prepared) -> String {
    let losses = prepared.losses.iter();
    let losses: Vec<String> = losses.map(|(loss, count)| loss.text(count)).collect();
    match losses.is_empty() {
        true => "nothing".to_owned(),
        false => losses.join("; "),
    }
}

/// In each of 36 pairs, the answer becomes a branch of the session, and a second import finds nothing. The README has
/// the losses of each pair; `TREELINED_UPDATE=1` writes this table again.
#[test]
fn from_each_agent_to_each_agent_and_back() {
    let mut table = "| from | to | lost |\n|---|---|---|\n".to_owned();
    for source in Tool::AGENTS {
        let session = imported_from(source);
        for target in Tool::AGENTS {
            let tour = Tour::empty();
            fs::write(tour.world.at("sessions/project/session.jsonl"), &session).unwrap();
            let last = tour.path().last().unwrap().entry_id.clone();
            let mut guest = tour.hand_over(&last, target);
            guest.say("QUESTION", "ANSWER");
            let report = tour.import(&guest);
            let pair = format!("{} to {}", source.name(), target.name());
            assert_eq!(report["totals"]["created"], 0, "{pair}: {report}");
            assert_eq!(
                report["totals"]["entriesAdded"],
                2,
                "{pair}: {report} {}",
                tour.text()
            );
            let record: Value = serde_json::from_slice(&guest.prepared.record).unwrap();
            let entry = record["entryId"].as_str().unwrap();
            tour.check_branch(entry, "QUESTION", "ANSWER");
            tour.check_settled(&[target]);
            let lost = lost(&guest.prepared);
            table.push_str(&format!(
                "| {} | {} | {lost} |\n",
                source.name(),
                target.name()
            ));
        }
    }
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(&readme).unwrap();
    let start = text.find("| from | to | lost |").unwrap();
    let end = start + text[start..].find("\n\n").unwrap() + 1;
    if std::env::var_os("TREELINED_UPDATE").is_some() {
        let written = format!("{}{table}{}", &text[..start], &text[end..]);
        fs::write(&readme, written).unwrap();
    } else {
        assert_eq!(&text[start..end], table);
    }
}
