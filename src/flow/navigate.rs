//! `navigate_tree` (protocol.md §4): plan → resolve → commit, without the waiting between them.

use super::leaf::{self, BranchSummary};
use super::{Minter, push_text_member, summarize};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::id::{EntryId, Source};
use crate::json::{self, Elements};
use crate::log::scan::{Kind, Role};
use crate::session::Planned;
use crate::tree::{Cause, Node, Tree};

/// Where a navigation goes and what it leaves. Positions are ids: the tree may be read anew before
/// the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub target_id: EntryId,
    pub old_leaf_id: Option<EntryId>,
    pub new_leaf_id: Option<EntryId>,
    pub common_ancestor_id: Option<EntryId>,
    /// The branch that is left, in file order.
    pub abandoned: Vec<Node>,
    /// The compaction at which collecting stopped; its summary is earlier context.
    pub previous_compaction: Option<Node>,
    /// The entry whose text goes back to the editor.
    pub editor_entry: Option<Node>,
    /// Whether there is anything worth a summary.
    pub worth_summarizing: bool,
    /// The tip of the branch that is taken in: the leaf goes nowhere, and the summary is of that
    /// branch.
    pub merges: Option<EntryId>,
}

/// What a navigation comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Navigation {
    /// The target is the leaf, give or take labels and session_info.
    AlreadyThere,
    Move(Plan),
}

/// Plans going to `target`. `rewind` treats the leaf like any other target.
pub fn plan(tree: &Tree, target: Node, rewind: bool) -> Navigation {
    let old_leaf = tree.leaf();
    if !rewind && tree.settle(old_leaf) == tree.settle(Some(target)) {
        return Navigation::AlreadyThere;
    }
    let is_input = match tree.kind(target) {
        Kind::Message => tree.role(target) == Role::User,
        Kind::CustomMessage => true,
        _ => false,
    };
    let new_leaf = if is_input {
        tree.parent(target)
    } else {
        Some(target)
    };
    if new_leaf == old_leaf && !is_input {
        return Navigation::AlreadyThere;
    }
    let ancestor = tree.common_ancestor(old_leaf, Some(target));
    let (abandoned, previous_compaction) = branch_entries(tree, old_leaf, ancestor);
    let id = |node: Node| EntryId::new(tree.id(node));
    Navigation::Move(Plan {
        target_id: id(target),
        old_leaf_id: old_leaf.map(id),
        new_leaf_id: new_leaf.map(id),
        common_ancestor_id: ancestor.map(id),
        worth_summarizing: is_worth_summarizing(tree, &abandoned, previous_compaction),
        abandoned,
        previous_compaction,
        editor_entry: is_input.then_some(target),
        merges: None,
    })
}

/// Plans taking in a summary of what the branch that ends at `tip` has of its own, from the common
/// ancestor on (semantics.md §5). A tip on the path to the leaf has nothing of its own.
pub fn plan_merge(tree: &Tree, tip: Node) -> Navigation {
    let leaf = tree.leaf();
    let ancestor = tree.common_ancestor(leaf, Some(tip));
    if ancestor == Some(tip) {
        return Navigation::AlreadyThere;
    }
    let (entries, previous_compaction) = branch_entries(tree, Some(tip), ancestor);
    let id = |node: Node| EntryId::new(tree.id(node));
    Navigation::Move(Plan {
        target_id: id(tip),
        old_leaf_id: leaf.map(id),
        new_leaf_id: leaf.map(id),
        common_ancestor_id: ancestor.map(id),
        worth_summarizing: is_worth_summarizing(tree, &entries, previous_compaction),
        abandoned: entries,
        previous_compaction,
        editor_entry: None,
        merges: Some(id(tip)),
    })
}

/// The user message that `pop` goes back before: the one named, or the nearest at or above the leaf.
/// Anything else is `notAUserMessage`.
pub fn pop_target(tree: &Tree, entry_id: Option<&str>) -> Result<Node> {
    let is_user = |node: &Node| tree.kind(*node) == Kind::Message && tree.role(*node) == Role::User;
    let refused = |message: String, entry_id: Option<&str>| {
        Error::new(ErrorKind::NotAUserMessage, message)
            .with_details(serde_json::json!({ "entryId": entry_id }))
    };
    match entry_id {
        None => tree.ancestors(tree.leaf()).find(is_user).ok_or_else(|| {
            let message = "there is no user message at or above the leaf".to_owned();
            refused(message, tree.leaf().map(|leaf| tree.id(leaf)))
        }),
        Some(id) => {
            let node = tree.find(id).ok_or_else(|| Error::entry_not_found(id))?;
            if !is_user(&node) {
                return Err(refused(format!("{id:?} is not a user message"), Some(id)));
            }
            Ok(node)
        }
    }
}

/// From `tip` back to `ancestor`, exclusive, in file order, stopping before a compaction, which is
/// returned (protocol.md §4.5).
pub fn branch_entries(
    tree: &Tree,
    tip: Option<Node>,
    ancestor: Option<Node>,
) -> (Vec<Node>, Option<Node>) {
    let mut entries = Vec::new();
    let mut compaction = None;
    for node in tree
        .ancestors(tip)
        .take_while(|node| Some(*node) != ancestor)
    {
        if tree.kind(node) == Kind::Compaction {
            compaction = Some(node);
            break;
        }
        entries.push(node);
    }
    entries.reverse();
    (entries, compaction)
}

/// Whether a branch holds anything that would be lost without a summary.
fn is_worth_summarizing(tree: &Tree, entries: &[Node], previous: Option<Node>) -> bool {
    let is_content = |node: &Node| summarize::is_content(tree.kind(*node), tree.role(*node));
    previous.is_some() || entries.iter().any(is_content)
}

/// The lines of the commit: a summary or a leaf record, then the label (protocol.md §4.8).
pub fn commit(
    tree: &Tree,
    source: &dyn Source,
    plan: &Plan,
    summary: Option<&BranchSummary>,
    label: Option<&str>,
) -> Result<Planned> {
    let find = |id: &EntryId| {
        let found = tree.find(id.as_str());
        found.ok_or_else(|| Error::entry_not_found(id.as_str()))
    };
    let new_leaf = match plan.merges {
        Some(_) => tree.leaf(),
        None => plan.new_leaf_id.as_ref().map(find).transpose()?,
    };
    let mut minter = Minter::new(tree, source);
    let mut planned = match summary {
        Some(summary) => {
            let merges = plan.merges.as_ref().map(EntryId::as_str);
            leaf::plan_summary(tree, &mut minter, new_leaf, merges, summary)
        }
        None => Planned::default(),
    };
    if summary.is_none() && new_leaf != tree.leaf() {
        let record = leaf::record(&mut minter, tree, new_leaf, Cause::NavigateTree);
        planned.lines.push(record);
    }
    if let Some(label) = label.filter(|label| !label.is_empty()) {
        let summary_id = planned.entry_ids.first().cloned();
        let target_id = summary_id.as_ref().unwrap_or(&plan.target_id);
        let parent_id = summary_id.as_ref().or(plan.new_leaf_id.as_ref());
        let id = minter.id();
        let mut members = Vec::new();
        push_text_member(&mut members, "targetId", target_id.as_str());
        push_text_member(&mut members, "label", label);
        let line = minter.line("label", &id, parent_id.map(EntryId::as_str), &members);
        planned.lines.push(line);
        planned.entry_ids.push(id);
    }
    Ok(planned)
}

/// What goes back to the editor from a user message or custom_message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    pub text: String,
    /// Image blocks, raw JSON.
    pub images: Vec<Vec<u8>>,
}

/// The text (blocks joined) and the images of an entry.
pub fn draft(entry: &[u8]) -> Draft {
    let content =
        json::get_path(entry, &["message", "content"]).or_else(|| json::get(entry, "content"));
    let Some(content) = content else {
        return Draft::default();
    };
    if let Some(text) = json::string(content) {
        return Draft {
            text: text.into_owned(),
            images: Vec::new(),
        };
    }
    let mut draft = Draft::default();
    let Ok(mut blocks) = Elements::open(content, 0) else {
        return draft;
    };
    while let Ok(Some(span)) = blocks.next() {
        let block = content.get(span).unwrap_or_default();
        match json::get(block, "type").and_then(json::string).as_deref() {
            Some("text") => {
                let text = json::get(block, "text").and_then(json::string);
                draft.text.push_str(text.as_deref().unwrap_or_default());
            }
            Some("image") => draft.images.push(block.to_vec()),
            _ => {}
        }
    }
    draft
}
