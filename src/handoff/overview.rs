//! Finds the goal, the decisions and the open work of a conversation in its own texts. No model is used.

use serde_json::{Map, Value};
use treelined_core::terminal::is_control;
use treelined_import::neutral::{Call, Message, ModelPart, NeutralPath, text_of};

/// The longest section that is quoted, in characters.
const MAX_SECTION: usize = 2000;
/// The most items of a list of tasks that are quoted.
const MAX_ITEMS: usize = 50;

/// The headings of such sections in summaries of treelined and of agents, in lower case.
const GOAL: &[&str] = &["goal", "primary request and intent"];
const DECISIONS: &[&str] = &["key decisions", "decisions"];
const OPEN_WORK: &[&str] = &["next steps", "pending tasks", "open work"];

/// The texts of the sections; `None` if the conversation has no such text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overview {
    pub(crate) goal: Option<String>,
    pub(crate) decisions: Option<String>,
    pub(crate) open_work: Option<String>,
}

impl Overview {
    pub(crate) fn of(path: &NeutralPath) -> Self {
        let summary = last_summary(path);
        let section = |names| summary.as_deref().and_then(|text| section_of(text, names));
        Self {
            goal: section(GOAL).or_else(|| first_words(path)),
            decisions: section(DECISIONS),
            open_work: last_tasks(path).unwrap_or_else(|| section(OPEN_WORK)),
        }
    }
}

fn last_summary(path: &NeutralPath) -> Option<String> {
    path.messages
        .iter()
        .rev()
        .find_map(|message| match message {
            Message::User(said) if said.is_summary => Some(text_of(&said.parts)),
            Message::User(_) | Message::Model(_) | Message::Results(_) => None,
        })
}

/// The text of the user's first message.
fn first_words(path: &NeutralPath) -> Option<String> {
    path.messages.iter().find_map(|message| match message {
        Message::User(said) if !said.is_summary => shortened(&text_of(&said.parts)),
        Message::User(_) | Message::Model(_) | Message::Results(_) => None,
    })
}

/// The tasks in the agent's last list that are not done. `None` without a list; `Some(None)` if all tasks are done.
fn last_tasks(path: &NeutralPath) -> Option<Option<String>> {
    let said = path
        .messages
        .iter()
        .rev()
        .filter_map(|message| match message {
            Message::Model(said) => Some(&said.parts),
            Message::User(_) | Message::Results(_) => None,
        });
    let mut parts = said.flat_map(|parts| parts.iter().rev());
    parts.find_map(|part| match part {
        ModelPart::Call(call) => tasks_of(call),
        ModelPart::Text(_) => None,
    })
}

fn tasks_of(call: &Call) -> Option<Option<String>> {
    let name: String = call
        .name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    let list = match name.to_ascii_lowercase().as_str() {
        "todowrite" | "writetodos" => "todos",
        "updateplan" => "plan",
        _ => return None,
    };
    let tasks = call.arguments.get(list)?.as_array()?;
    let open = tasks
        .iter()
        .filter_map(Value::as_object)
        .filter_map(open_task);
    let lines: Vec<String> = open.take(MAX_ITEMS).collect();
    Some((!lines.is_empty()).then(|| lines.join("\n")))
}

/// The line for a task; `None` if the task is done.
fn open_task(task: &Map<String, Value>) -> Option<String> {
    let of = |names: &[&str]| {
        let mut found = names.iter().filter_map(|name| task.get(*name)?.as_str());
        found.find(|text| !text.trim().is_empty())
    };
    let status = of(&["status"]).unwrap_or("pending");
    if matches!(status, "completed" | "done" | "cancelled" | "canceled") {
        return None;
    }
    let text = of(&["content", "step", "description", "title"])?;
    let text = one_line(text);
    let begun = match status {
        "in_progress" => " (begun)",
        _ => "",
    };
    Some(format!("- {}{begun}", text.trim()))
}

/// The first section of a Markdown text that has one of these headings, in the form `## Goal` or `1. Goal:`.
fn section_of(text: &str, names: &[&str]) -> Option<String> {
    let mut lines = text.lines();
    let level = lines.find_map(|line| {
        let (level, name) = heading(line)?;
        let is_named = names.iter().any(|known| name.eq_ignore_ascii_case(known));
        is_named.then_some(level)
    })?;
    // A summary on the path is inside a tag, which also ends the section.
    let ends = |line: &str| {
        heading(line).is_some_and(|(its, _)| its <= level) || line.trim() == "</summary>"
    };
    let body: Vec<&str> = lines.take_while(|line| !ends(line)).collect();
    shortened(&body.join("\n"))
}

/// The level and the text of a heading; `None` if the line is not a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let marks = line.bytes().take_while(|byte| *byte == b'#').count();
    let name = match marks {
        0 => {
            let (number, name) = line.split_once(". ")?;
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            return is_number.then_some((7, name.trim().strip_suffix(':')?));
        }
        1..=6 => line.get(marks..)?.strip_prefix(' ')?,
        _ => return None,
    };
    Some((marks, name.trim().trim_end_matches(':')))
}

fn shortened(text: &str) -> Option<String> {
    let text = text.trim();
    let short = match text.char_indices().nth(MAX_SECTION) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} […]", text.get(..at).unwrap_or(text).trim_end()),
    };
    (!short.is_empty()).then_some(short)
}

/// The text as one line of a list. In Markdown, a line break could begin a heading or another block.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_summaries_are_found() {
        let text = "## Goal\nShip it.\n\n### Why\nSoon.\n## Progress\n- a\n## Key Decisions\n- **SQLite**: it is there\n";
        let of = |names| section_of(text, names);
        assert_eq!(of(GOAL).as_deref(), Some("Ship it.\n\n### Why\nSoon."));
        assert_eq!(of(DECISIONS).as_deref(), Some("- **SQLite**: it is there"));
        assert_eq!(of(OPEN_WORK), None);
        let text = "Analysis.\n\n1. Primary Request and Intent:\n   Ship it.\n7. Pending Tasks:\n   - Test it\n8. Current Work:\n   x";
        assert_eq!(section_of(text, GOAL).as_deref(), Some("Ship it."));
        assert_eq!(section_of(text, OPEN_WORK).as_deref(), Some("- Test it"));
        let items = "## Goal\n1. First, this\n2. then that\n";
        assert_eq!(
            section_of(items, GOAL).as_deref(),
            Some("1. First, this\n2. then that")
        );
    }

    #[test]
    fn hostile_headings_are_not_sections() {
        for text in [
            "",
            "##",
            "##Goal\nx",
            "####### Goal\nx",
            ". Goal:\nx",
            "## Goal",
            "## Goal\n \n",
        ] {
            assert_eq!(section_of(text, GOAL), None, "{text:?}");
        }
        let long = section_of(&format!("# goal:\n{}", "é".repeat(5000)), GOAL).unwrap();
        assert_eq!(long.chars().count(), MAX_SECTION + 4);
    }
}
