//! A conversation as text, within a token budget (semantics.md §2).
//!
//! The form is text, so that a model does not continue it as a conversation. This module chooses the
//! messages and makes the text of each; the caller chooses the entries.

use super::entries::SummaryEntries;
use crate::bytes::part;
use crate::context::agent::{self, AgentMessage};
use crate::context::content::{self, ContentBlock, ToolCallBlock};
use crate::context::{kind_and_role, llm};
use crate::entry::{Kind, Role};
use crate::error::Result;
use crate::json::{self, Members};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Longest tool result, in characters.
const TOOL_RESULT_CHARACTERS: usize = 2000;

/// The part of a conversation that a summarizer gets, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBudget {
    /// The context window of the model.
    pub context_window: u64,
    /// The tokens reserved for the prompt and the answer.
    pub reserve_tokens: u64,
}

impl Default for TokenBudget {
    fn default() -> Self {
        Self {
            context_window: 128_000,
            reserve_tokens: 16_384,
        }
    }
}

impl TokenBudget {
    /// The tokens left for the conversation.
    pub fn tokens(&self) -> u64 {
        self.context_window.saturating_sub(self.reserve_tokens)
    }
}

/// The text of these entries: the newest messages that fit into the budget, oldest first. A tool result is left out if
/// its call is included. If the newest message alone exceeds the budget, it is cut. Without a budget no entry is read.
pub(crate) fn within(entries: &SummaryEntries, budget: TokenBudget) -> Result<String> {
    let budget = budget.tokens();
    if budget == 0 {
        return Ok(String::new());
    }
    let mut calls = HashSet::new();
    entries.each(|entry| {
        let message = json::get(entry, "message").unwrap_or_default();
        for block in content::blocks(content::of(message)) {
            if let ContentBlock::Call(ToolCallBlock { id: Some(id), .. }) = block {
                calls.insert(id.into_owned());
            }
        }
    })?;
    let mut parts: Vec<Vec<String>> = Vec::new();
    let mut taken = 0;
    entries.pass(entries.all().rev(), |entry| {
        let Some((kind, role)) = kind_and_role(entry) else {
            return ControlFlow::Continue(());
        };
        let Some(message) = agent::messages(kind, role, entry).pop() else {
            return ControlFlow::Continue(());
        };
        if message.role == Role::ToolResult && is_represented(&message, &calls) {
            return ControlFlow::Continue(());
        }
        let tokens = estimated_tokens(&message);
        let Some(text) = serialize(message) else {
            return ControlFlow::Continue(());
        };
        let fits = taken + tokens <= budget;
        let is_summary = matches!(kind, Kind::BranchSummary | Kind::Compaction);
        if fits || (is_summary && taken.saturating_mul(10) < budget.saturating_mul(9)) {
            parts.push(text);
            taken += tokens;
        } else if parts.is_empty() {
            let characters = usize::try_from(budget.saturating_mul(4)).unwrap_or(usize::MAX);
            parts.push(vec![cut(text.join("\n\n"), characters)]);
        }
        match fits {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    parts.reverse();
    Ok(parts.concat().join("\n\n"))
}

/// Whether the conversation has the call that a tool result answers.
fn is_represented(result: &AgentMessage, calls: &HashSet<String>) -> bool {
    json::get(&result.json, "toolCallId")
        .and_then(json::string)
        .is_some_and(|id| calls.contains(&*id))
}

/// Like [`content::estimated_tokens`], without the text of a tool result that is not shown.
fn estimated_tokens(message: &AgentMessage) -> u64 {
    let tokens = content::estimated_tokens(message);
    match message.role {
        Role::ToolResult => tokens.min(TOOL_RESULT_CHARACTERS.div_ceil(4) as u64),
        _ => tokens,
    }
}

/// The text of a message, in parts; `None` if it has no text. Thinking is left out.
pub(crate) fn serialize(message: AgentMessage) -> Option<Vec<String>> {
    let role = message.role;
    let message = llm::convert(message)?.json;
    let content = content::of(&message);
    let mut parts = Vec::new();
    match role {
        Role::System | Role::None | Role::Other => {}
        Role::Assistant => {
            let text = content::text(content, "\n");
            if !text.trim().is_empty() {
                parts.push(format!("[Assistant]: {text}"));
            }
            let calls: Vec<String> = content::blocks(content)
                .filter_map(|block| match block {
                    ContentBlock::Call(call) => Some(written_call(&call)),
                    _ => None,
                })
                .collect();
            if !calls.is_empty() {
                parts.push(format!("[Assistant tool calls]: {}", calls.join("; ")));
            }
        }
        Role::ToolResult => {
            let text = content::text(content, "");
            if !text.is_empty() {
                parts.push(format!(
                    "[Tool result]: {}",
                    cut(text, TOOL_RESULT_CHARACTERS)
                ));
            }
        }
        Role::User
        | Role::BashExecution
        | Role::Custom
        | Role::BranchSummary
        | Role::CompactionSummary => {
            let text = content::text(content, "");
            if !text.is_empty() {
                parts.push(format!("[User]: {text}"));
            }
        }
    }
    (!parts.is_empty()).then_some(parts)
}

/// A call as text, with values as raw JSON: `read(path="a.rs", limit=10)`.
fn written_call(call: &ToolCallBlock<'_>) -> String {
    let raw = |span| String::from_utf8_lossy(part(call.arguments, span));
    let mut written = format!("{}(", call.name);
    match Members::open(call.arguments, 0) {
        Ok(mut members) => {
            let mut first = true;
            while let Ok(Some(key)) = members.next_key() {
                let Ok(value) = members.value() else { break };
                if !first {
                    written.push_str(", ");
                }
                first = false;
                written.push_str(&String::from_utf8_lossy(&key.name(call.arguments)));
                written.push('=');
                written.push_str(&raw(value));
            }
        }
        Err(_) => written.push_str(&raw(0..call.arguments.len())),
    }
    written.push(')');
    written
}

/// `text` cut to `room` characters, with a note that says how many characters were cut.
pub(crate) fn cut(mut text: String, room: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(room) {
        let more = text.get(at..).unwrap_or_default().chars().count();
        text.truncate(at);
        text.push_str(&format!("\n\n[… {more} more characters were cut]"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn message(message: Value) -> Vec<u8> {
        json!({"type": "message", "id": "x", "message": message})
            .to_string()
            .into_bytes()
    }

    fn user(text: &str) -> Vec<u8> {
        message(json!({"role": "user", "content": text}))
    }

    fn call(id: &str) -> Vec<u8> {
        message(json!({"role": "assistant", "content": [
            {"type": "toolCall", "id": id, "name": "read", "arguments": {"path": "a \"b\"", "limit": 3}},
        ]}))
    }

    fn result(id: &str, text: &str) -> Vec<u8> {
        let content = json!([{"type": "text", "text": text}]);
        message(json!({"role": "toolResult", "toolCallId": id, "content": content}))
    }

    fn summary(text: &str) -> Vec<u8> {
        json!({"type": "branch_summary", "id": "x", "summary": text})
            .to_string()
            .into_bytes()
    }

    fn tokens(tokens: u64) -> TokenBudget {
        TokenBudget {
            context_window: tokens + 5,
            reserve_tokens: 5,
        }
    }

    #[track_caller]
    fn check(entries: &[Vec<u8>], budget: TokenBudget, expect: &str) {
        assert_eq!(within(&entries.to_vec().into(), budget).unwrap(), expect);
    }

    #[test]
    fn each_message_as_text_oldest_first() {
        let assistant = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "one"},
            {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "p"}},
            {"type": "text", "text": "two"},
            {"type": "toolCall", "id": "2", "name": "bash", "arguments": {"n": [1, null]}},
        ]});
        let bash = json!({"role": "bashExecution", "command": "ls", "output": "o"});
        let hidden = json!({"role": "bashExecution", "command": "ls", "excludeFromContext": true});
        check(
            &[
                message(json!({"role": "system", "content": "s"})),
                message(
                    json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}),
                ),
                message(assistant),
                br#"{"type":"label","id":"l"}"#.to_vec(),
                message(bash),
                message(hidden),
                br#"{"type":"custom_message","id":"c","content":"cm"}"#.to_vec(),
            ],
            TokenBudget::default(),
            "[User]: ab\n\n[Assistant]: one\ntwo\n\n\
             [Assistant tool calls]: read(path=\"p\"); bash(n=[1,null])\n\n\
             [User]: Ran `ls`\n```\no\n```\n\n[User]: cm",
        );
    }

    #[test]
    fn a_tool_result_is_represented_by_its_call_if_that_is_here() {
        let calls = "[Assistant tool calls]: read(path=\"a \\\"b\\\"\", limit=3)";
        check(
            &[call("1"), result("1", "r")],
            TokenBudget::default(),
            calls,
        );
        check(
            &[result("0", "r"), call("1")],
            TokenBudget::default(),
            &format!("[Tool result]: r\n\n{calls}"),
        );
    }

    #[test]
    fn a_long_tool_result_is_cut_between_characters_and_says_so() {
        let expect = format!(
            "[Tool result]: {}\n\n[… 7 more characters were cut]",
            "é".repeat(2000)
        );
        check(
            &[result("1", &"é".repeat(2007))],
            TokenBudget::default(),
            &expect,
        );
        let expect = format!("[Tool result]: {}", "é".repeat(2000));
        check(&[result("1", &"é".repeat(2000))], tokens(500), &expect);
    }

    #[test]
    fn the_newest_that_fit_are_taken() {
        let entries = [user("aaaa"), user("bbbbb"), user("cccc")];
        check(
            &entries,
            tokens(4),
            "[User]: aaaa\n\n[User]: bbbbb\n\n[User]: cccc",
        );
        check(&entries, tokens(3), "[User]: bbbbb\n\n[User]: cccc");
        check(&entries, tokens(2), "[User]: cccc");
        check(&entries, tokens(0), "");
        // A message that does not fit ends the walk: older messages are not taken.
        let entries = [user("aaaa"), user(&"b".repeat(99)), user("cccc")];
        check(&entries, tokens(9), "[User]: cccc");
    }

    #[test]
    fn a_summary_is_taken_over_the_budget_while_under_nine_tenths_of_it() {
        let long = summary(&"s".repeat(400));
        let whole = |rest: &str| {
            format!(
                "[User]: The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{}</summary>{rest}",
                "s".repeat(400)
            )
        };
        let nine = user(&"x".repeat(36));
        let eight = user(&"x".repeat(32));
        check(
            &[user("old"), long.clone(), eight],
            tokens(10),
            &whole(&format!("\n\n[User]: {}", "x".repeat(32))),
        );
        check(
            &[user("old"), long, nine],
            tokens(10),
            &format!("[User]: {}", "x".repeat(36)),
        );
    }

    #[test]
    fn a_newest_message_over_the_budget_is_cut_to_it() {
        let expect = format!(
            "[User]: {}\n\n[… 88 more characters were cut]",
            "é".repeat(32)
        );
        check(&[user("old"), user(&"é".repeat(120))], tokens(10), &expect);
    }

    #[test]
    fn tokens_are_characters_by_four_and_images_1200() {
        let estimate = |message: Value, role| {
            content::estimated_tokens(&AgentMessage {
                role,
                json: message.to_string().into_bytes(),
            })
        };
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        assert_eq!(estimate(text(""), Role::User), 0);
        assert_eq!(estimate(text("éééé"), Role::User), 1);
        assert_eq!(estimate(text("ééééé"), Role::Custom), 2);
        assert_eq!(
            estimate(
                json!({"content": [{"type": "image"}, {"type": "text", "text": "a"}]}),
                Role::User
            ),
            1201
        );
        assert_eq!(
            estimate(json!({"summary": "12345678"}), Role::BranchSummary),
            2
        );
        assert_eq!(
            estimate(
                json!({"command": "1234", "output": "5"}),
                Role::BashExecution
            ),
            2
        );
        let call =
            json!({"content": [{"type": "toolCall", "name": "read", "arguments": {"path": "ab"}}]});
        assert_eq!(
            estimate(call, Role::Assistant),
            5,
            "4 + 13 characters, rounded up"
        );
        assert_eq!(estimate(json!({"content": 5}), Role::Assistant), 0);
    }

    #[test]
    fn odd_shapes_say_nothing() {
        for content in [
            json!(5),
            json!(null),
            json!({}),
            json!([5, null, [], {"type": 1}, {"type": "text", "text": 3}]),
        ] {
            for role in ["user", "assistant", "toolResult", "custom", "strange"] {
                check(
                    &[message(json!({"role": role, "content": content}))],
                    TokenBudget::default(),
                    "",
                );
            }
        }
        let odd = json!({"role": "assistant", "content": [
            {"type": "toolCall", "name": "x", "arguments": 5}, {"type": "toolCall", "name": "y"},
        ]});
        check(
            &[message(odd)],
            TokenBudget::default(),
            "[Assistant tool calls]: x(5); y()",
        );
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let deep = format!(
            r#"{{"type":"message","id":"a","message":{{"role":"user","content":{deep}}}}}"#
        );
        check(&[deep.into_bytes()], TokenBudget::default(), "");
    }
}
