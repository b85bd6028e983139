//! The input of a hook: the event, and the words of a failure.

use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The most words of a question, and the most of them that come from the command.
const MAX_WORDS: usize = 40;
const OF_COMMAND: usize = 10;
/// The most bytes that are read at the end of an output, where programs say why they failed.
const MAX_OUTPUT: usize = 4 << 10;
/// The most bytes that are read at the end of a transcript.
const MAX_TRANSCRIPT: u64 = 64 << 10;
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

/// The object that agents write to a hook: Claude Code, Codex and Gemini CLI themselves, and the scripts of `treelined
/// setup` for other agents.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HookInput {
    pub(super) hook_event_name: String,
    /// The agent's own id of the conversation.
    pub(super) session_id: String,
    pub(super) cwd: String,
    /// For `SessionStart`: `startup`, `resume`, `clear` or `compact`.
    source: String,
    /// The file of the conversation.
    transcript_path: Option<PathBuf>,
    tool_use_id: String,
    tool_input: Value,
    /// For `PostToolUseFailure`: the error.
    error: Value,
    is_interrupt: bool,
    /// For `PostToolUse` of Codex and `AfterTool` of Gemini CLI: the response of the tool. These agents also run the
    /// hook for a command that failed.
    tool_response: Value,
}

/// An event to which something can be recalled.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    /// A conversation begins.
    Start,
    /// A command has failed. The text has the words for the question.
    Failure(String),
}

impl HookInput {
    /// Adds the exit code of a command if only the file of the conversation has it. Codex gives a hook only the output.
    pub(super) fn with_code(mut self) -> Self {
        let is_named = self.tool_response.is_string() && !self.tool_use_id.is_empty();
        if let Some(path) = self.transcript_path.as_deref().filter(|_| is_named)
            && let Some(code) = code_in(path, &self.tool_use_id)
        {
            self.tool_response = json!({"exit_code": code, "output": self.tool_response});
        }
        self
    }

    /// The event to which something is recalled. `None` if a conversation continues, since it has its own past. `None`
    /// too if a person has interrupted the command, since this person knows the reason.
    pub(super) fn event(&self) -> Option<Event> {
        let output = match self.hook_event_name.as_str() {
            "SessionStart" => {
                let begins = matches!(self.source.as_str(), "startup" | "clear");
                return begins.then_some(Event::Start);
            }
            "PostToolUseFailure" if !self.is_interrupt => text(&self.error),
            "PostToolUse" if has_failed(&self.tool_response) => text(&self.tool_response),
            "AfterTool" if has_failed_in_gemini(&self.tool_response) => {
                text(self.tool_response.get("llmContent").unwrap_or(&Value::Null))
            }
            _ => return None,
        };
        let command = self.tool_input.get("command").map(text);
        let words = question(command.as_deref().unwrap_or_default(), &output);
        (!words.is_empty()).then_some(Event::Failure(words))
    }
}

/// The strings in a value, one on each line.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("\n"),
        Value::Object(members) => members.values().map(text).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// Whether the response of a tool says that a command ended with an exit code other than 0.
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

/// The exit code of a command, from one of the last records of Codex. One form of record names the call itself, and
/// another form names the call in an item.
fn code_in(transcript: &Path, call: &str) -> Option<i64> {
    let mut file = File::open(transcript).ok()?;
    let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let start = metadata.len().saturating_sub(MAX_TRANSCRIPT);
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_TRANSCRIPT).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().rev().filter(|line| line.contains(call));
    lines.find_map(|line| {
        let record = serde_json::from_str::<Value>(line).ok()?;
        let payload = record.get("payload")?;
        let item = payload.get("item").unwrap_or(payload);
        let names = |member: &str| item.get(member).and_then(Value::as_str) == Some(call);
        let code = item.get("exit_code").and_then(Value::as_i64);
        code.filter(|_| names("id") || names("call_id"))
    })
}

/// Like [`has_failed`], for Gemini CLI. It writes the code into one of the last lines, unless the code is 0. Other
/// lines may follow this line: the signal, and the numbers of processes.
fn has_failed_in_gemini(response: &Value) -> bool {
    let output = text(response.get("llmContent").unwrap_or(&Value::Null));
    let mut last = output.lines().rev().take(6);
    response.get("error").is_some_and(|error| !error.is_null())
        || last.any(|line| line.starts_with("Exit Code: "))
}

/// The words of a command, and of the lines of its output that say what failed. If no line says this, the last lines
/// are used.
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
    // Text in quotation marks would be a phrase that an entry must contain.
    words.join(" ").replace('"', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(input: Value) -> Option<Event> {
        serde_json::from_value::<HookInput>(input).unwrap().event()
    }

    /// A quoted argument was once a phrase that an entry had to have, so nothing was recalled.
    #[test]
    fn a_question_has_no_phrases() {
        let failure = json!({
            "hook_event_name": "PostToolUseFailure",
            "tool_input": {"command": "git commit -m \"fix it\""},
            "error": "error: could not compile \"my crate\"",
        });
        let Some(Event::Failure(words)) = event(failure) else {
            panic!("no failure");
        };
        assert!(words.contains("fix it") && words.contains("my crate"));
        assert!(!words.contains('"'), "{words}");
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

    /// Codex does not pass the code to a hook, so once nothing was recalled after a failed command of Codex.
    #[test]
    fn the_code_of_codex_is_in_its_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollout.jsonl");
        let ended = |code: i64| {
            let item = json!({"type": "CommandExecution", "id": "call_1", "exit_code": code});
            let record =
                json!({"type": "event_msg", "payload": {"type": "item_completed", "item": item}});
            let legacy = json!({"payload": {"type": "exec_command_end", "call_id": "call_2", "exit_code": code}});
            let long = "x".repeat(100_000);
            let call = json!({"payload": {"type": "function_call", "call_id": "call_1"}});
            std::fs::write(&path, format!("{long}\n{record}\n{legacy}\n{call}\nhalf")).unwrap();
        };
        let input = |call: &str| {
            let input = json!({"hook_event_name": "PostToolUse", "tool_use_id": call, "transcript_path": path,
                "tool_input": {"command": "make"}, "tool_response": "error: no rule"});
            let input = serde_json::from_value::<HookInput>(input).unwrap();
            input.with_code().event()
        };
        let failed = Some(Event::Failure("make error: no rule".to_owned()));
        ended(3);
        assert_eq!(input("call_1"), failed);
        assert_eq!(input("call_2"), failed);
        assert_eq!(input("call_3"), None);
        assert_eq!(input(""), None);
        ended(0);
        assert_eq!(input("call_1"), None);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(input("call_1"), None);
    }

    #[test]
    fn gemini_says_the_code_at_the_end() {
        let after = |content: &str| {
            let response = json!({"llmContent": content, "returnDisplay": "x"});
            event(
                json!({"hook_event_name": "AfterTool", "tool_name": "run_shell_command",
                "tool_input": {"command": "make all"}, "tool_response": response}),
            )
        };
        let failed = "Output: error: unknown type\nExit Code: 2\nProcess Group PGID: 7";
        let words = "make all Output: error: unknown type".to_owned();
        assert_eq!(after(failed), Some(Event::Failure(words)));
        assert_eq!(after("Output: Exit Code: 2\nProcess Group PGID: 7"), None);
        assert_eq!(after("Exit Code: 2\na\nb\nc\nd\ne\nf"), None);
    }

    #[test]
    fn a_question_has_few_words_whatever_the_output_is() {
        let output = "é error ".repeat(100_000);
        let words = question(&"word ".repeat(1_000), &output);
        assert_eq!(words.split(' ').count(), MAX_WORDS);
    }
}
