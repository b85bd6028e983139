//! The input of a hook: the event, and the words of a failure.

use serde::Deserialize;
use serde_json::Value;

/// The most words of a question, and of these the most of the command.
const MAX_WORDS: usize = 40;
const OF_COMMAND: usize = 10;
/// The most bytes of an output that are read, at its end: programs say there why they failed.
const MAX_OUTPUT: usize = 4 << 10;
/// A line with one of these words says what failed.
const TELLING: [&str; 10] = [
    "error",
    "fail",
    "panic",
    "fatal",
    "cannot",
    "denied",
    "refused",
    "not found",
    "exception",
    "undefined",
];

/// The object that Claude Code and Codex write to a hook.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HookInput {
    pub(super) hook_event_name: String,
    /// The agent's own id of the conversation.
    pub(super) session_id: String,
    pub(super) cwd: String,
    /// Of `SessionStart`: `startup`, `resume`, `clear` or `compact`.
    source: String,
    tool_input: Value,
    /// Of `PostToolUseFailure`.
    error: Value,
    is_interrupt: bool,
    /// Of `PostToolUse`, which Codex also runs for a command that failed.
    tool_response: Value,
}

/// An event to which something can be recalled.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    /// A conversation begins.
    Start,
    /// A command has failed: the words to ask for.
    Failure(String),
}

impl HookInput {
    /// `None` if there is nothing to recall: a conversation that goes on has its own past, and a person who interrupts a
    /// command knows why.
    pub(super) fn event(&self) -> Option<Event> {
        let output = match self.hook_event_name.as_str() {
            "SessionStart" => {
                let begins = matches!(self.source.as_str(), "startup" | "clear");
                return begins.then_some(Event::Start);
            }
            "PostToolUseFailure" if !self.is_interrupt => text(&self.error),
            "PostToolUse" if has_failed(&self.tool_response) => text(&self.tool_response),
            _ => return None,
        };
        let command = self.tool_input.get("command").map(text);
        let words = question(command.as_deref().unwrap_or_default(), &output);
        (!words.is_empty()).then_some(Event::Failure(words))
    }
}

/// The strings in a value, a line each.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => members.values().map(text).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// Whether the response of a tool says that a command ended with another code than 0.
fn has_failed(response: &Value) -> bool {
    if let Some(members) = response.as_object() {
        let code = ["exit_code", "exitCode"]
            .iter()
            .find_map(|name| members.get(*name));
        let inner = ["metadata", "output"]
            .iter()
            .filter_map(|name| members.get(*name));
        return match code.and_then(Value::as_i64) {
            Some(code) => code != 0,
            None => inner.into_iter().any(has_failed),
        };
    }
    let Some(text) = response.as_str() else {
        return false;
    };
    let head: String = text.chars().take(400).collect::<String>().to_lowercase();
    ["exit code", "exited with code"].iter().any(|said| {
        let code = head
            .split_once(said)
            .map(|(_, code)| code.trim_start_matches([':', ' ']));
        code.is_some_and(|code| {
            let digits: String = code.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().is_ok_and(|code| code != 0)
        })
    })
}

/// The words of a command and of the lines of its output that say what failed, else of its last lines.
fn question(command: &str, output: &str) -> String {
    let start = output.len().saturating_sub(MAX_OUTPUT);
    let start = (start..=output.len()).find(|at| output.is_char_boundary(*at));
    let end = output.get(start.unwrap_or_default()..).unwrap_or_default();
    let lines: Vec<&str> = end.lines().filter(|line| !line.trim().is_empty()).collect();
    let tells = |line: &&&str| {
        let line = line.to_lowercase();
        TELLING.iter().any(|word| line.contains(word))
    };
    let telling: Vec<&str> = lines.iter().filter(tells).copied().collect();
    let last = lines.len().saturating_sub(6);
    let lines = match telling.is_empty() {
        true => lines.get(last..).unwrap_or_default(),
        false => &telling,
    };
    let words = lines.iter().flat_map(|line| line.split_whitespace());
    let command = command.split_whitespace().take(OF_COMMAND);
    let words: Vec<&str> = command.chain(words).take(MAX_WORDS).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(input: Value) -> Option<Event> {
        serde_json::from_value::<HookInput>(input).unwrap().event()
    }

    #[test]
    fn a_beginning_and_a_failure_are_events() {
        for source in ["startup", "clear"] {
            let start = json!({"hook_event_name": "SessionStart", "source": source});
            assert_eq!(event(start), Some(Event::Start));
        }
        for source in ["resume", "compact", ""] {
            let start = json!({"hook_event_name": "SessionStart", "source": source});
            assert_eq!(event(start), None, "{source}");
        }
        let failure = json!({
            "hook_event_name": "PostToolUseFailure", "tool_input": {"command": "make all"},
            "error": "Exit code 2\ncc main.c\nmain.c:3: error: unknown type",
        });
        let words = "make all main.c:3: error: unknown type".to_owned();
        assert_eq!(event(failure.clone()), Some(Event::Failure(words)));
        let mut interrupted = failure;
        interrupted["is_interrupt"] = json!(true);
        assert_eq!(event(interrupted), None);
        assert_eq!(event(json!({"hook_event_name": "Stop"})), None);
        assert_eq!(event(json!({})), None);
    }

    #[test]
    fn a_response_with_another_code_than_zero_has_failed() {
        for failed in [
            json!({"exit_code": 1, "output": "x"}),
            json!({"output": "x", "metadata": {"exit_code": 127}}),
            json!("Exit code: 101\nWall time: 0.1 seconds\nOutput:\nx"),
            json!("Chunk ID: 1\nProcess exited with code 1\nOutput:\nx"),
        ] {
            assert!(has_failed(&failed), "{failed}");
        }
        for passed in [
            json!({"exit_code": 0}),
            json!("Exit code: 0\nOutput:\nit says exit codes are 3"),
            json!("no code"),
            json!(null),
        ] {
            assert!(!has_failed(&passed), "{passed}");
        }
    }

    #[test]
    fn a_question_has_few_words_whatever_the_output_is() {
        let output = "é error ".repeat(100_000);
        let words = question(&"word ".repeat(1_000), &output);
        assert_eq!(words.split(' ').count(), MAX_WORDS);
    }
}
