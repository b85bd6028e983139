//! Forks: the entries of a fork, and the new links between their lines (session-file.md §5).

use super::push_text_member;
use super::subtree::relinked;
use crate::bytes::part;
use crate::entry::{Kind, Role};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::flow::IdAllocator;
use crate::id::{EntryId, Source};
use crate::json::quoted;
use crate::json::{self, Elements};
use crate::tree::{Node, Tree};
use std::collections::{HashMap, HashSet};

/// Whether the fork ends before or at the entry that was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkSide {
    /// The fork ends above a user message, whose text goes back to the editor.
    Before,
    /// The fork ends with the entry.
    At,
}

/// The end of a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub position: ForkSide,
    /// The last entry of the source that the fork contains; `None` for an empty fork.
    pub tip: Option<Node>,
}

/// The entries of a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPlan {
    /// From the root to the tip, without label entries.
    pub kept: Vec<Node>,
    /// The `label` entries that set the current labels of kept entries, in file order.
    pub labels: Vec<Node>,
    /// For each entry that a kept compaction names and that the fork leaves out: the next kept entry.
    boundaries: HashMap<String, String>,
}

/// The end of a fork at `entry` (`None` for an empty session). By default `position` is `before` for a user
/// message, else `at`.
pub fn end(tree: &Tree, entry: Option<Node>, position: Option<ForkSide>) -> Result<End> {
    let is_user = |node: Node| tree.kind(node) == Kind::Message && tree.role(node) == Role::User;
    let position = match (position, entry) {
        (Some(ForkSide::Before), Some(node)) if !is_user(node) => {
            return Err(Error::new(
                ErrorKind::NotAUserMessage,
                format!("{:?} is not a user message to fork before", tree.id(node)),
            )
            .with_details(serde_json::json!({ "entryId": tree.id(node) })));
        }
        (Some(position), _) => position,
        (None, Some(node)) if is_user(node) => ForkSide::Before,
        (None, _) => ForkSide::At,
    };
    let tip = match position {
        ForkSide::Before => entry.and_then(|node| tree.parent(node)),
        ForkSide::At => entry,
    };
    Ok(End { position, tip })
}

/// The entries of a fork with this end. Linear in the length of the path.
pub fn plan(tree: &Tree, end: End) -> ForkPlan {
    let mut kept = tree.path(end.tip);
    let mut boundaries = HashMap::new();
    let mut next_kept = None;
    for node in kept.iter().rev() {
        if tree.kind(*node) != Kind::Label {
            next_kept = Some(*node);
        } else if let Some(next) = next_kept {
            boundaries.insert(tree.id(*node).to_owned(), tree.id(next).to_owned());
        }
    }
    kept.retain(|node| tree.kind(*node) != Kind::Label);
    let mut is_kept = vec![false; tree.node_count()];
    for node in &kept {
        if let Some(is_kept) = is_kept.get_mut(node.number()) {
            *is_kept = true;
        }
    }
    let mut labels: Vec<Node> = tree
        .labels()
        .filter(|(target, _)| is_kept.get(target.number()) == Some(&true))
        .map(|(_, label)| label.entry)
        .collect();
    labels.sort_unstable();
    ForkPlan {
        kept,
        labels,
        boundaries,
    }
}

impl ForkPlan {
    /// The line of a kept entry. It is copied byte for byte, except for a parent or boundary that the fork leaves
    /// out.
    pub fn copy(&self, entry: Vec<u8>, parent_id: Option<&str>) -> Vec<u8> {
        let entry = relinked(entry, parent_id, None);
        if self.boundaries.is_empty() {
            return entry;
        }
        let boundary = json::get(&entry, "firstKeptEntryId").and_then(json::string);
        let next = boundary.and_then(|id| self.boundaries.get(&*id));
        match next {
            Some(next) if is_compaction(&entry) => {
                json::with_member(&entry, "firstKeptEntryId", &quoted(next))
            }
            _ => entry,
        }
    }
}

fn is_compaction(entry: &[u8]) -> bool {
    json::get(entry, "type").and_then(json::string).as_deref() == Some("compaction")
}

/// A tool call without its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    pub id: String,
    pub name: String,
}

/// The messages at the end of the path to `tip` that can have unanswered calls: the last assistant message
/// and the tool results after it. Empty if anything else follows that message.
pub fn closing_messages(tree: &Tree, tip: Option<Node>) -> Vec<Node> {
    let mut closing = Vec::new();
    for node in tree.ancestors(tip) {
        match (tree.kind(node), tree.role(node)) {
            (Kind::Message, Role::ToolResult) => closing.push(node),
            (Kind::Message, Role::Assistant) => {
                closing.push(node);
                closing.reverse();
                return closing;
            }
            (Kind::Message | Kind::CustomMessage | Kind::BranchSummary | Kind::Compaction, _) => {
                return Vec::new();
            }
            _ => {}
        }
    }
    Vec::new()
}

/// The calls of the first message that no other message answers.
pub fn unanswered_calls(messages: &[Vec<u8>]) -> Vec<OpenCall> {
    let Some((assistant, results)) = messages.split_first() else {
        return Vec::new();
    };
    let answered: HashSet<String> = results
        .iter()
        .filter_map(|result| json::get_path(result, &["message", "toolCallId"]))
        .filter_map(|id| json::string(id).map(std::borrow::Cow::into_owned))
        .collect();
    let mut open = Vec::new();
    let content = json::get_path(assistant, &["message", "content"]).unwrap_or_default();
    let Ok(mut blocks) = Elements::open(content, 0) else {
        return open;
    };
    while let Ok(Some(span)) = blocks.next_value() {
        let block = part(content, span);
        let text = |name: &str| json::get(block, name).and_then(json::string);
        if text("type").as_deref() != Some("toolCall") {
            continue;
        }
        if let Some(id) = text("id").filter(|id| !answered.contains(&**id)) {
            open.push(OpenCall {
                name: text("name").unwrap_or_default().into_owned(),
                id: id.into_owned(),
            });
        }
    }
    open
}

/// The error `unansweredToolCalls`, which names the calls.
pub fn refuse(open: &[OpenCall]) -> Error {
    let ids: Vec<&str> = open.iter().map(|call| call.id.as_str()).collect();
    Error::new(
        ErrorKind::UnansweredToolCalls,
        "the conversation ends in tool calls without results",
    )
    .with_details(serde_json::json!({ "toolCallIds": ids }))
}

/// Makes the lines that a fork adds: results that say that the calls were aborted, then the name of the fork.
/// Returns the lines and the last id.
pub fn added_lines(
    tree: &Tree,
    source: &dyn Source,
    open: &[OpenCall],
    name: Option<&str>,
    mut parent_id: Option<String>,
) -> (Vec<Vec<u8>>, Option<String>) {
    let mut minter = IdAllocator::new(tree, source);
    let mut lines = Vec::new();
    for call in open {
        let mut message = b"{\"role\":\"toolResult\"".to_vec();
        push_text_member(&mut message, "toolCallId", &call.id);
        push_text_member(&mut message, "toolName", &call.name);
        let rest = format!(
            ",\"content\":[{{\"type\":\"text\",\"text\":\"Aborted: the session was forked before this call returned\"}}],\"isError\":true,\"timestamp\":{}}}",
            source.now_ms()
        );
        message.extend_from_slice(rest.as_bytes());
        let mut members = b",\"message\":".to_vec();
        members.extend_from_slice(&message);
        let id: EntryId = minter.id();
        lines.push(minter.line("message", &id, parent_id.as_deref(), &members));
        parent_id = Some(id.as_str().to_owned());
    }
    if let Some(name) = name {
        let (line, id) = name_line(&mut minter, name, parent_id.as_deref());
        lines.push(line);
        parent_id = Some(id.as_str().to_owned());
    }
    (lines, parent_id)
}

/// The line that names a fork, and its id.
pub fn name_line(
    minter: &mut IdAllocator<'_>,
    name: &str,
    parent_id: Option<&str>,
) -> (Vec<u8>, EntryId) {
    let mut members = Vec::new();
    push_text_member(&mut members, "name", name);
    let id: EntryId = minter.id();
    let line = minter.line("session_info", &id, parent_id, &members);
    (line, id)
}
