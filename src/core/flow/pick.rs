//! `cherry_pick`: copies of messages of other branches (semantics.md §5). Pure.

use super::fork::{OpenCall, unanswered_calls};
use super::{IdAllocator, push_text_member};
use crate::author;
use crate::context::kind_and_role;
use crate::entry::{Kind, Role};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::flow::PlannedLines;
use crate::id::{EntryId, Source};
use crate::json;
use crate::json::{quoted, quoted_or_null};
use crate::tree::{Node, Tree};

/// One message to copy: its id, and the entry as delivered.
pub struct PickedMessage {
    pub id: String,
    pub entry: Vec<u8>,
}

/// Plans copies at the leaf, in the given order. The messages are copied byte for byte, except for id, parent,
/// timestamp, `copiedFrom` and the writer. If the source is another session, `copiedFrom` also names the session. Fails
/// with `invalidParams` for an entry that is not a message, and with `unansweredToolCalls` for calls without all their
/// results right after them.
pub fn plan(
    tree: &Tree,
    source: &dyn Source,
    picked: &[PickedMessage],
    from_session: Option<&str>,
) -> Result<PlannedLines> {
    check(picked)?;
    if let Some(entry_ids) = from_session.and_then(|from| copied_before(tree, picked, from)) {
        return Ok(PlannedLines {
            entry_ids,
            ..PlannedLines::default()
        });
    }
    let mut minter = IdAllocator::new(tree, source);
    let mut parent_id = tree.leaf().map(|leaf| tree.id(leaf).to_owned());
    let mut planned = PlannedLines::default();
    for PickedMessage { id, entry } in picked {
        let copy_id = minter.id();
        let parent = quoted_or_null(parent_id.as_deref());
        let mut line = ["background", "group"]
            .iter()
            .fold(author::without(entry).into_owned(), |line, name| {
                json::without_member(&line, name)
            });
        for (name, value) in [
            ("id", quoted(copy_id.as_str())),
            ("parentId", parent),
            ("timestamp", quoted(minter.now())),
            ("copiedFrom", copied_from(id, from_session)),
        ] {
            line = json::with_member(&line, name, &value);
        }
        let mut one_line = Vec::with_capacity(line.len());
        json::push_one_line(&mut one_line, &line);
        planned.lines.push(one_line);
        parent_id = Some(copy_id.as_str().to_owned());
        planned.entry_ids.push(copy_id);
    }
    Ok(planned)
}

/// The value of `copiedFrom`.
pub(super) fn copied_from(entry_id: &str, session_id: Option<&str>) -> Vec<u8> {
    let Some(session_id) = session_id else {
        return quoted(entry_id);
    };
    let mut value = Vec::new();
    push_text_member(&mut value, "sessionId", session_id);
    push_text_member(&mut value, "entryId", entry_id);
    if let Some(comma) = value.first_mut() {
        *comma = b'{';
    }
    value.push(b'}');
    value
}

/// The copies of these messages of another session, if they are on the path to the leaf, one after the other. If so,
/// the request is a repetition.
fn copied_before(
    tree: &Tree,
    picked: &[PickedMessage],
    from_session: &str,
) -> Option<Vec<EntryId>> {
    let last = picked.last()?;
    let copies = tree.copies_of(from_session, &last.id);
    let on_path = |copy: &&Node| {
        tree.leaf()
            .is_some_and(|leaf| tree.is_ancestor(**copy, leaf))
    };
    let is_message = |copy: &&Node| tree.kind(**copy) != Kind::BranchSummary;
    let mut copies = copies.iter().rev().filter(is_message);
    let newest = copies.find(on_path)?;
    let mut above = tree.ancestors(Some(*newest));
    let mut found = Vec::with_capacity(picked.len());
    for message in picked.iter().rev() {
        let copy = above.next()?;
        if !tree.is_copy_of(copy, from_session, &message.id) {
            return None;
        }
        found.push(EntryId::new(tree.id(copy)));
    }
    found.reverse();
    Some(found)
}

fn check(picked: &[PickedMessage]) -> Result<()> {
    let mut open: Vec<OpenCall> = Vec::new();
    for (index, PickedMessage { entry, .. }) in picked.iter().enumerate() {
        let refused = |reason: &str| Error::invalid_params(format!("entryIds[{index}]"), reason);
        match kind_and_role(entry) {
            Some((Kind::Message, Role::ToolResult)) => {
                let call = json::get_path(entry, &["message", "toolCallId"]);
                let call = call.and_then(json::string);
                let answered = open
                    .iter()
                    .position(|open| Some(&*open.id) == call.as_deref());
                let Some(answered) = answered else {
                    return Err(refused(
                        "is a tool result whose call is not copied before it",
                    ));
                };
                open.remove(answered);
            }
            Some((Kind::Message | Kind::CustomMessage, role)) => {
                refuse_open(&open)?;
                if role == Role::Assistant {
                    open = unanswered_calls(std::slice::from_ref(entry));
                }
            }
            _ => return Err(refused("is not a message")),
        }
    }
    refuse_open(&open)
}

fn refuse_open(open: &[OpenCall]) -> Result<()> {
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = open.iter().map(|call| call.id.as_str()).collect();
    Err(Error::new(
        ErrorKind::UnansweredToolCalls,
        "tool calls can only be copied together with their results",
    )
    .with_details(serde_json::json!({ "toolCallIds": ids })))
}
