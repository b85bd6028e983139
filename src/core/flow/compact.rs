//! Compaction: the cut in the context, the entries to summarize, and the new entry (semantics.md §4). The caller reads
//! the bodies; the summary comes from a summarizer or a client.

use super::{IdAllocator, push_raw_member, push_text_member};
use crate::context::agent;
use crate::context::content::{self, ContentBlock};
use crate::context::{Edits, Kept, PathStep};
use crate::entry::{Kind, Role};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::flow::PlannedLines;
use crate::id::{EntryId, Source};
use crate::json;
use crate::summary::files::FileCollector;
use crate::summary::request::is_content;
use crate::summary::{FileLists, frame};
use crate::tree::{Node, Tree};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Tokens kept by default.
pub const KEEP_RECENT_TOKENS: u64 = 20_000;

/// The entries that a compaction replaces, and the first entry that it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionPlan {
    pub first_kept_entry_id: String,
    /// The bodies of the entries to summarize, in file order, with context edits applied. System messages and the
    /// prefix of a split turn are left out. Empty if no model would see any of the bodies.
    pub history: Vec<Vec<u8>>,
    /// The bodies of a split turn before the cut; `None` if the cut is between turns.
    pub turn_prefix: Option<Vec<Vec<u8>>>,
    /// The entries of `history`, and of `turn_prefix`. Edits may leave out some of them.
    pub history_nodes: Vec<Node>,
    pub prefix_nodes: Vec<Node>,
    /// The context edits of these entries.
    pub edits: Edits,
    /// The ids of the entries of `history` and of `turn_prefix`, if their bodies have more bytes than the limit. Then
    /// the lists of bodies are empty.
    pub ids: Option<(Vec<String>, Option<Vec<String>>)>,
    /// The summary of the previous compaction, as stored.
    pub previous_summary: Option<String>,
    /// `previous_summary` without the file lists at its end. The files are collected again.
    pub previous_text: Option<String>,
    /// The compactions on the path, newest first.
    pub previous_compactions: Vec<String>,
    /// The files that the summarized entries touched, and the files that the previous compaction lists.
    pub files: FileLists,
}

impl CompactionPlan {
    /// Frees the bodies. Ids, nodes and edits stay.
    pub fn forget_bodies(&mut self) {
        self.history = Vec::new();
        if let Some(prefix) = &mut self.turn_prefix {
            *prefix = Vec::new();
        }
    }
}

/// A summary ready to be written.
#[derive(Debug, Clone)]
pub struct Compaction {
    pub summary: String,
    /// The first kept entry. If nothing is kept, this is `None`, and the new entry names itself.
    pub first_kept_entry_id: Option<String>,
    pub tokens_before: u64,
    /// Raw JSON.
    pub details: Option<Vec<u8>>,
    /// Raw JSON.
    pub usage: Option<Vec<u8>>,
    /// Raw JSON: the message before the summary in the context.
    pub system_message: Option<Vec<u8>>,
    /// Whether a client or a hook wrote the summary.
    pub from_hook: bool,
}

/// Plans a compaction of the context at the end of a path. The compaction keeps about `keep_recent_tokens` (estimated).
/// The plan has the bodies, unless the stored bodies together have more than `max_bytes`. Fails with
/// `nothingToCompact`, or with the error of `body`.
pub fn plan(
    path: &[PathStep],
    kept: Kept,
    keep_recent_tokens: u64,
    max_bytes: u64,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>>,
) -> Result<CompactionPlan> {
    let range = ContextRange::read(path, kept, body)?;
    let cut = cut(&range.parts, keep_recent_tokens).ok_or_else(nothing_to_compact)?;
    let Some(first_kept) = range.parts.get(cut) else {
        return Err(nothing_to_compact());
    };
    let turn_start = split_turn(&range.parts, cut);
    let summarized = range.parts.get(..cut).unwrap_or_default();
    let turn = turn_start.unwrap_or(cut);
    if !summarized.iter().any(ContextPart::is_visible) {
        return Err(nothing_to_compact());
    }
    let (history, prefix) = summarized.split_at(turn);
    let history = match history.iter().any(ContextPart::is_visible) {
        true => history,
        false => &[],
    };
    let size: u64 = summarized.iter().map(|part| part.size).sum();
    let is_named = size > max_bytes;
    let mut files = FileCollector::default();
    if let Some(previous) = &range.previous {
        files.note_entry(previous);
    }
    let (mut history_bodies, mut prefix_bodies) = (Vec::new(), Vec::new());
    for (at, step) in range.steps.iter().take(cut).enumerate() {
        let touches_no_file =
            step.kind == Kind::Message && !matches!(step.role, Role::Assistant | Role::ToolResult);
        if is_named && touches_no_file {
            continue;
        }
        let stored = body(step.node)?;
        files.note_entry(&stored);
        if is_named {
            continue;
        }
        let is_history = at < turn;
        match range.edits.apply(step.kind, step.role, stored) {
            Some(edited) if !is_history => prefix_bodies.push(edited),
            Some(edited) if !history.is_empty() => history_bodies.push(edited),
            _ => {}
        }
    }
    let ids = |parts: &[ContextPart]| -> Vec<String> {
        let named = parts.iter().filter(|part| !part.is_left_out);
        named.map(|part| part.id.clone()).collect()
    };
    let nodes = range.steps.iter().map(|step| step.node);
    let history_nodes = match history.is_empty() {
        true => Vec::new(),
        false => nodes.clone().take(turn).collect(),
    };
    let (previous_summary, previous_text) = summary_of(range.previous.as_deref());
    Ok(CompactionPlan {
        first_kept_entry_id: first_kept.id.clone(),
        ids: is_named.then(|| (ids(history), turn_start.map(|_| ids(prefix)))),
        history_nodes,
        prefix_nodes: nodes.take(cut).skip(turn).collect(),
        edits: range.edits,
        history: history_bodies,
        turn_prefix: turn_start.map(|_| prefix_bodies),
        previous_text,
        previous_summary,
        previous_compactions: range.compactions,
        files: files.into_lists(),
    })
}

/// The beginning of the turn that the cut splits; `None` if the cut is between turns.
fn split_turn(parts: &[ContextPart], cut: usize) -> Option<usize> {
    let is_between = parts.get(cut).is_some_and(ContextPart::starts_turn);
    let mut before = parts.iter().take(cut);
    before
        .rposition(ContextPart::starts_turn)
        .filter(|_| !is_between)
}

/// The summary of a compaction: as stored, and without the file lists at its end.
fn summary_of(compaction: Option<&[u8]>) -> (Option<String>, Option<String>) {
    let Some(summary) = compaction.and_then(|entry| text_member(entry, "summary")) else {
        return (None, None);
    };
    let by_client = compaction.is_some_and(|entry| json::get(entry, "fromHook") == Some(b"true"));
    let text = match by_client {
        true => summary.clone(),
        false => frame::without_files(&summary).to_owned(),
    };
    (Some(summary), Some(text))
}

/// The line of a compaction.
pub fn commit(tree: &Tree, source: &dyn Source, compaction: &Compaction) -> PlannedLines {
    let mut minter = IdAllocator::new(tree, source);
    let id = minter.id();
    let mut members = Vec::new();
    push_text_member(&mut members, "summary", &compaction.summary);
    let first_kept = compaction.first_kept_entry_id.as_deref();
    let first_kept = first_kept.unwrap_or(id.as_str());
    push_text_member(&mut members, "firstKeptEntryId", first_kept);
    let tokens_before = compaction.tokens_before.to_string();
    push_raw_member(&mut members, "tokensBefore", tokens_before.as_bytes());
    for (name, raw) in [
        ("details", &compaction.details),
        ("usage", &compaction.usage),
        ("systemMessage", &compaction.system_message),
    ] {
        if let Some(raw) = raw {
            push_raw_member(&mut members, name, raw);
        }
    }
    if compaction.from_hook {
        push_raw_member(&mut members, "fromHook", b"true");
    }
    let parent_id = tree.leaf().map(|leaf| tree.id(leaf));
    PlannedLines {
        lines: vec![minter.line("compaction", &id, parent_id, &members)],
        entry_ids: vec![EntryId::new(id.as_str())],
        ..PlannedLines::default()
    }
}

/// The system message in force at the end of a context. A compaction stores it, so that the summary does not remove it.
/// A single message is unchanged. Several messages are merged into one, in which later sections and tools replace
/// earlier ones.
pub fn system_message(messages: &[Vec<u8>]) -> Option<Vec<u8>> {
    let is_system = |message: &&Vec<u8>| text_member(message, "role").as_deref() == Some("system");
    let all: Vec<&Vec<u8>> = messages.iter().filter(is_system).collect();
    let (last, earlier) = all.split_last()?;
    if earlier.is_empty() {
        return Some(last.to_vec());
    }
    let mut texts = Vec::new();
    let (mut sections, mut tools) = (Map::new(), Map::new());
    for message in &all {
        let text = content::text(content::of(message), "");
        if !text.is_empty() {
            texts.push(text);
        }
        let member = |name: &str| -> Option<Value> {
            serde_json::from_slice(json::get(message, name)?).ok()
        };
        if let Some(Value::Object(changes)) = member("sections") {
            for (name, section) in changes {
                match section {
                    Value::Null => sections.shift_remove(&name),
                    section => sections.insert(name, section),
                };
            }
        }
        let named = |list: Option<Value>| -> Vec<(String, Value)> {
            let list = match list {
                Some(Value::Array(list)) => list,
                _ => Vec::new(),
            };
            let name = |tool: &Value| Some(tool.get("name")?.as_str()?.to_owned());
            let list = list.into_iter();
            list.filter_map(|tool| Some((name(&tool)?, tool))).collect()
        };
        for (name, _) in named(member("toolsRemoved")) {
            tools.shift_remove(&name);
        }
        tools.extend(named(member("toolsAdded")));
    }
    let mut folded = b"{\"role\":\"system\"".to_vec();
    push_text_member(&mut folded, "content", &texts.join("\n\n"));
    if !sections.is_empty() {
        let sections = Value::Object(sections).to_string();
        push_raw_member(&mut folded, "sections", sections.as_bytes());
    }
    if !tools.is_empty() {
        let tools: Value = tools.into_iter().map(|(_, tool)| tool).collect();
        push_raw_member(&mut folded, "toolsAdded", tools.to_string().as_bytes());
    }
    let timestamp = json::get(last, "timestamp").unwrap_or(b"0");
    push_raw_member(&mut folded, "timestamp", timestamp);
    folded.push(b'}');
    Some(folded)
}

/// An entry that can be summarized or kept, without its body: a context may have many of them.
struct ContextPart {
    id: String,
    /// Bytes of its body as delivered.
    size: u64,
    /// Whether a context edit leaves it out.
    is_left_out: bool,
    /// The role of its message; `None` if it has no message.
    role: Option<Role>,
    /// Estimated tokens.
    tokens: u64,
    /// The ids of its tool calls.
    calls: Vec<String>,
    /// The id of the call that this tool result answers.
    result_of: Option<String>,
}

/// The entries of a context, without system messages and compactions.
struct ContextRange {
    parts: Vec<ContextPart>,
    /// The step of each part.
    steps: Vec<PathStep>,
    edits: Edits,
    /// The latest compaction.
    previous: Option<Vec<u8>>,
    /// Ids of all compactions on the path, newest first.
    compactions: Vec<String>,
}

impl ContextRange {
    fn read(
        path: &[PathStep],
        kept: Kept,
        body: &mut dyn FnMut(Node) -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let after = kept.after(path);
        let mut previous = None;
        if let Some(step) = kept.compaction(path) {
            previous = Some(body(step.node)?);
            let has_content = |step: &PathStep| is_content(step.kind, step.role);
            if !after.iter().any(has_content) {
                return Err(nothing_to_compact());
            }
        }
        let mut compactions = Vec::new();
        for step in path.iter().rev() {
            if step.kind == Kind::Compaction {
                compactions.extend(text_member(&body(step.node)?, "id"));
            }
        }
        let edits = Edits::of(path, kept, body)?;
        let (mut parts, mut steps) = (Vec::new(), Vec::new());
        for step in kept.before(path).iter().chain(after) {
            match step.kind {
                Kind::Compaction | Kind::LeafRecord => {}
                Kind::Message if step.role == Role::System => {}
                _ => {
                    parts.push(ContextPart::new(
                        step.kind,
                        step.role,
                        body(step.node)?,
                        &edits,
                    ));
                    steps.push(*step);
                }
            }
        }
        Ok(Self {
            parts,
            steps,
            edits,
            previous,
            compactions,
        })
    }
}

impl ContextPart {
    fn new(kind: Kind, role: Role, stored: Vec<u8>, edits: &Edits) -> Self {
        let id = text_member(&stored, "id").unwrap_or_default();
        let size = stored.len() as u64;
        let edited = edits.apply(kind, role, stored);
        let entry = edited.as_deref().unwrap_or_default();
        let message = agent::messages(kind, role, entry).pop();
        let message = message.filter(|_| edited.is_some());
        let role = message.as_ref().map(|message| message.role);
        let stored_message = json::get(entry, "message").unwrap_or_default();
        Self {
            id,
            size,
            is_left_out: edited.is_none(),
            tokens: message.as_ref().map_or(0, content::estimated_tokens),
            calls: match role {
                Some(Role::Assistant) => calls(stored_message),
                _ => Vec::new(),
            },
            result_of: match role {
                Some(Role::ToolResult) => text_member(stored_message, "toolCallId"),
                _ => None,
            },
            role,
        }
    }

    fn is_visible(&self) -> bool {
        self.role.is_some()
    }

    fn starts_turn(&self) -> bool {
        matches!(
            self.role,
            Some(Role::User | Role::BashExecution | Role::Custom | Role::BranchSummary)
        )
    }

    fn is_cut_point(&self) -> bool {
        self.starts_turn() || self.role == Some(Role::Assistant)
    }
}

/// The ids of the tool calls in a message.
fn calls(message: &[u8]) -> Vec<String> {
    let blocks = content::blocks(content::of(message));
    let id = |block: ContentBlock<'_>| match block {
        ContentBlock::Call(call) => call.id.map(std::borrow::Cow::into_owned),
        _ => None,
    };
    blocks.filter_map(id).collect()
}

/// The index of the first kept part; `None` if all parts together have fewer than `keep` tokens.
fn cut(parts: &[ContextPart], keep: u64) -> Option<usize> {
    let inside = between_call_and_result(parts);
    let cuts: Vec<usize> = parts
        .iter()
        .zip(inside)
        .enumerate()
        .filter(|(_, (part, inside))| part.is_cut_point() && !inside)
        .map(|(at, _)| at)
        .collect();
    let mut kept: u64 = 0;
    for (at, part) in parts.iter().enumerate().rev() {
        kept = kept.saturating_add(part.tokens);
        if part.tokens > 0 && kept >= keep {
            let after = cuts.partition_point(|cut| *cut < at);
            return cuts.get(after).or(cuts.last()).copied();
        }
    }
    None
}

/// For each part, whether a cut before it would separate a call from its result.
fn between_call_and_result(parts: &[ContextPart]) -> Vec<bool> {
    let mut calls: HashMap<&str, usize> = HashMap::new();
    let mut spans: Vec<i64> = vec![0; parts.len() + 1];
    let mut mark = |at: usize, by: i64| {
        if let Some(count) = spans.get_mut(at) {
            *count += by;
        }
    };
    for (at, part) in parts.iter().enumerate() {
        for id in &part.calls {
            calls.insert(id, at);
        }
        if let Some(call) = part.result_of.as_deref().and_then(|id| calls.get(id)) {
            mark(call + 1, 1);
            mark(at + 1, -1);
        }
    }
    let mut open = 0;
    spans
        .into_iter()
        .take(parts.len())
        .map(|change| {
            open += change;
            open > 0
        })
        .collect()
}

fn text_member(object: &[u8], name: &str) -> Option<String> {
    Some(json::string(json::get(object, name)?)?.into_owned())
}

fn nothing_to_compact() -> Error {
    Error::new(
        ErrorKind::NothingToCompact,
        "the context has no entries older than those to keep",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn part(message: Value) -> ContextPart {
        let stored = json!({"type": "message", "id": "x", "message": message});
        let stored = stored.to_string().into_bytes();
        let (kind, role) = crate::context::kind_and_role(&stored).unwrap();
        ContextPart::new(kind, role, stored, &Edits::default())
    }

    /// The parts that a script names, each of one token. `u` is a user's message and `a` is an answer. `c1` is an
    /// answer with the call 1, and `r1` is the result of that call.
    fn parts(script: &str) -> Vec<ContextPart> {
        let one = |word: &str| match word.split_at(1) {
            ("u", _) => part(json!({"role": "user", "content": "text"})),
            ("a", _) => {
                part(json!({"role": "assistant", "content": [{"type": "text", "text": "text"}]}))
            }
            ("c", ids) => {
                let calls = ids.chars().map(
                    |id| json!({"type": "toolCall", "id": id.to_string(), "name": "n", "arguments": {}}),
                );
                part(json!({"role": "assistant", "content": calls.collect::<Vec<_>>()}))
            }
            ("r", id) => part(json!({"role": "toolResult", "toolCallId": id, "content": "text"})),
            _ => part(json!({"role": "strange"})),
        };
        script.split_whitespace().map(one).collect()
    }

    #[track_caller]
    fn check(script: &str, keep: u64, expect: Option<usize>) {
        assert_eq!(cut(&parts(script), keep), expect, "{script} keeping {keep}");
    }

    #[test]
    fn the_cut_keeps_at_least_the_requested_tokens_if_there_are_that_many() {
        check("u a u a", 1, Some(3));
        check("u a u a", 2, Some(2));
        check("u a u a", 4, Some(0));
        check("u a u a", 5, None);
        check("u a x u a x", 2, Some(3));
        check("", 0, None);
    }

    #[test]
    fn never_at_a_result_and_never_between_a_call_and_its_result() {
        check("u c1 r1 a", 1, Some(3));
        check("u c1 r1 a", 2, Some(3));
        check("u c1 r1", 1, Some(1));
        check("u c12 r1 u r2 a", 2, Some(5));
        check("u c12 r1 u r2", 1, Some(1));
        check("u c12 r1 a r2 a r3 u", 3, Some(5));
    }

    #[test]
    fn ids_of_calls_may_be_used_again() {
        check("u c1 r1 a u c1 r1 a", 3, Some(5));
        check("u c1 r1 a u c1 r1 a", 6, Some(3));
    }

    #[test]
    fn system_messages_fold_into_the_one_in_force() {
        let message = |value: Value| value.to_string().into_bytes();
        assert_eq!(system_message(&[message(json!({"role": "user"}))]), None);
        let only = br#"{"role": "system","content":"a","n":1.0}"#.to_vec();
        assert_eq!(
            system_message(std::slice::from_ref(&only)),
            Some(only.clone())
        );
        let later = message(
            json!({"role": "system", "content": "b", "sections": {"x": "1", "y": "2"}, "toolsAdded": [{"name": "t"}, {"name": "s"}], "timestamp": 7}),
        );
        let last = message(
            json!({"role": "system", "content": "", "sections": {"x": null}, "toolsRemoved": [{"name": "t"}], "timestamp": 9}),
        );
        let folded = system_message(&[only, later, last]).unwrap();
        let folded: Value = serde_json::from_slice(&folded).unwrap();
        let expect = json!({"role": "system", "content": "a\n\nb", "sections": {"y": "2"}, "toolsAdded": [{"name": "s"}], "timestamp": 9});
        assert_eq!(folded, expect);
    }
}
