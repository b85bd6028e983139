//! Imports of tasks. The tools rewrite the files of a task at each turn.

use super::{Home, path_of};
use serde_json::{Value, json};
use treelined_core::agent::Tool;

const HISTORY: &str = "api_conversation_history.json";

fn history(said: &[&str]) -> String {
    let message = |(number, said): (usize, &&str)| {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        json!({ "role": role, "content": [{ "type": "text", "text": said }] })
    };
    let messages: Vec<Value> = said.iter().enumerate().map(message).collect();
    serde_json::to_string(&messages).unwrap()
}

#[test]
fn a_task_that_grows_adds_new_turns_and_what_was_removed_stays_as_a_branch() {
    let home = Home::new(Tool::Cline);
    let import = |said: &[&str]| {
        home.write(HISTORY, history(said));
        let mut report = home.import();
        assert_eq!(report.sessions.len(), 1);
        report.sessions.remove(0)
    };
    assert_eq!(import(&["One?", "First."]).entries_added, 2);
    assert_eq!(
        import(&["One?", "First.", "Two?", "Second."]).entries_added,
        2
    );
    // The user went back to the first answer.
    let row = import(&["One?", "First.", "Another?", "Third."]);
    assert_eq!((row.entries_added, row.branches), (2, 1));
    let path = path_of(&row);
    let said = path
        .iter()
        .map(|entry| entry["message"]["content"][0]["text"].as_str());
    let said: Vec<&str> = said.flatten().collect();
    assert_eq!(said, ["One?", "First.", "Another?", "Third."]);
    assert_eq!(home.import().sessions[0].entries_added, 0);
}
