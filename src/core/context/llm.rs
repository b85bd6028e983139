//! Converts a message of a running agent to one that a provider of models accepts (`format:"llm"`,
//! semantics.md §1).
//!
//! The sentences around summaries and commands are the same as in the program that defined the session
//! format, so that the model reads the same conversation in both programs. Text is spliced without
//! decoding: the model gets the bytes of the file.

use super::agent::{AgentMessage, text_block};
use crate::entry::Role;
use crate::json;

const COMPACTION: [&str; 2] = [
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n",
    "\n</summary>",
];
const BRANCH: [&str; 2] = [
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n",
    "</summary>",
];

/// The message in a role that providers accept. `None` for roles that no provider knows, and for commands
/// that the user kept out of the context.
pub(crate) fn convert(message: AgentMessage) -> Option<AgentMessage> {
    let AgentMessage { role, json } = message;
    let content = match role {
        Role::System | Role::User | Role::Assistant | Role::ToolResult => {
            return Some(AgentMessage { role, json });
        }
        Role::BashExecution if is_true(json::get(&json, "excludeFromContext")) => return None,
        Role::BashExecution => text_block(&command(&json)),
        Role::Custom => blocks(&json),
        Role::BranchSummary => text_block(&summary(&json, BRANCH)),
        Role::CompactionSummary => text_block(&summary(&json, COMPACTION)),
        Role::None | Role::Other => return None,
    };
    Some(AgentMessage {
        role: Role::User,
        json: user(&content, &json),
    })
}

/// Whether JavaScript treats the value as true, since programs in JavaScript wrote the files.
fn is_true(raw: Option<&[u8]>) -> bool {
    match raw {
        None | Some(b"null" | b"false" | b"\"\"") => false,
        Some(raw) => number(Some(raw)) != Some(0.0),
    }
}

fn number(raw: Option<&[u8]>) -> Option<f64> {
    let raw = raw.filter(|raw| matches!(raw.first(), Some(b'-' | b'0'..=b'9')))?;
    str::from_utf8(raw).ok()?.parse().ok()
}

/// A user message with the timestamp of `message`.
fn user(content: &[u8], message: &[u8]) -> Vec<u8> {
    let mut json = br#"{"role":"user","content":"#.to_vec();
    json.extend_from_slice(content);
    if let Some(timestamp) = json::get(message, "timestamp") {
        json.extend_from_slice(b",\"timestamp\":");
        json.extend_from_slice(timestamp);
    }
    json.push(b'}');
    json
}

fn blocks(message: &[u8]) -> Vec<u8> {
    match json::get(message, "content") {
        Some(text @ [b'"', ..]) => text_block(text),
        None | Some(b"null") => b"[]".to_vec(),
        Some(content) => content.to_vec(),
    }
}

fn summary(message: &[u8], [before, after]: [&str; 2]) -> Vec<u8> {
    let mut text = LiteralBuilder::new();
    text.push(before);
    text.push_raw(json::get(message, "summary"));
    text.push(after);
    text.finish()
}

fn command(message: &[u8]) -> Vec<u8> {
    let member = |name| json::get(message, name);
    let mut text = LiteralBuilder::new();
    text.push("Ran `");
    text.push_raw(member("command"));
    text.push("`\n");
    match member("output") {
        output @ Some([b'"', _, _, ..]) => {
            text.push("```\n");
            text.push_raw(output);
            text.push("\n```");
        }
        _ => text.push("(no output)"),
    }
    if is_true(member("cancelled")) {
        text.push("\n\n(command cancelled)");
    } else if let Some(code) = number(member("exitCode")).filter(|code| *code != 0.0) {
        text.push(&format!("\n\nCommand exited with code {code}"));
    }
    let path = member("fullOutputPath");
    if is_true(member("truncated")) && is_true(path) {
        text.push("\n\n[Output truncated. Full output: ");
        text.push_raw(path);
        text.push("]");
    }
    text.finish()
}

/// A JSON string literal that is being built from text and other literals.
struct LiteralBuilder(Vec<u8>);

impl LiteralBuilder {
    fn new() -> Self {
        Self(vec![b'"'])
    }

    fn push(&mut self, text: &str) {
        let mut literal = Vec::with_capacity(text.len() + 2);
        json::push_string(&mut literal, text);
        self.push_raw(Some(&literal));
    }

    /// Appends the text of `literal`, or nothing if `literal` is not a string.
    fn push_raw(&mut self, literal: Option<&[u8]>) {
        if let Some([b'"', inner @ .., b'"']) = literal {
            self.0.extend_from_slice(inner);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.push(b'"');
        self.0
    }
}
