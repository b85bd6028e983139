//! `navigate_tree` (protocol.md §4): plan, resolve and commit, without the waits between them.

use super::branch;
use super::leaf::{self, BranchSummary};
use super::{IdAllocator, push_raw_member, push_text_member};
use crate::entry::{Kind, Role};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::flow::PlannedLines;
use crate::id::{EntryId, Source};
use crate::summary::request::is_content;
use crate::tree::{Cause, Node, Tree};

/// The plan of a navigation. Positions are ids: the tree may be read again before the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NavigationPlan {
    pub target_id: EntryId,
    pub old_leaf_id: Option<EntryId>,
    pub new_leaf_id: Option<EntryId>,
    pub common_ancestor_id: Option<EntryId>,
    /// The branch that the leaf leaves: from below the common ancestor to its end.
    pub abandoned: Vec<Node>,
    /// The number of entries of `abandoned` that the nearest compaction covers, including the compaction.
    compacted: usize,
    /// The entry whose text goes back to the editor.
    pub editor_entry: Option<Node>,
    /// Whether the branch has anything worth a summary.
    pub worth_summarizing: bool,
    /// The tip of the branch to merge. In a merge the leaf does not move, and the summary is about this branch.
    pub merges: Option<EntryId>,
    /// The session of the branch to merge, if it is another session. Then `abandoned` and `common_ancestor_id` belong
    /// to the tree of that session.
    pub from_session: Option<String>,
    /// The judgements about the candidates that were not chosen.
    pub judgements: Vec<Judgement>,
    /// The first entries of the branches to archive after the leaf has left them: first the branch that has the leaf,
    /// then the branches within it.
    pub archives: Vec<EntryId>,
}

/// The reason why a candidate was not chosen. It is written as a note about the end of the candidate's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub tip_id: EntryId,
    pub reason: Option<String>,
    /// The client that has chosen.
    pub by: String,
}

/// The outcome of planning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Navigation {
    /// The target is at the same step as the leaf.
    AlreadyThere,
    Move(NavigationPlan),
}

/// Plans a navigation to `target`. With `rewind` the new leaf is above a user message even if this message is the leaf.
pub fn plan(tree: &Tree, target: Node, rewind: bool) -> Navigation {
    let old_leaf = tree.leaf();
    let is_input = is_users(tree, target) || tree.kind(target) == Kind::CustomMessage;
    let rewinds = rewind && is_input;
    if !rewinds && tree.skip_bookkeeping(old_leaf) == tree.skip_bookkeeping(Some(target)) {
        return Navigation::AlreadyThere;
    }
    let new_leaf = if is_input {
        tree.parent(target)
    } else {
        Some(target)
    };
    let (ancestor, abandoned) = tree.branch(old_leaf, Some(target));
    let compacted = compacted_entries(tree, &abandoned);
    let id = |node: Node| EntryId::new(tree.id(node));
    Navigation::Move(NavigationPlan {
        target_id: id(target),
        old_leaf_id: old_leaf.map(id),
        new_leaf_id: from_leaf(tree, new_leaf).map(id),
        common_ancestor_id: ancestor.map(id),
        worth_summarizing: is_worth_summarizing(tree, &abandoned, compacted),
        abandoned,
        compacted,
        editor_entry: is_input.then_some(target),
        merges: None,
        from_session: None,
        judgements: Vec::new(),
        archives: Vec::new(),
    })
}

/// Plans a navigation to the end of a candidate. If the end is a user message, the leaf moves to it. [`plan`] would
/// move the leaf above the message, but the candidate may consist of this message only.
pub fn plan_choice(tree: &Tree, tip: Node) -> Navigation {
    let old_leaf = tree.leaf();
    if tree.is_same_conversation(old_leaf, Some(tip)) {
        return Navigation::AlreadyThere;
    }
    let (ancestor, abandoned) = tree.branch(old_leaf, Some(tip));
    let compacted = compacted_entries(tree, &abandoned);
    let id = |node: Node| EntryId::new(tree.id(node));
    Navigation::Move(NavigationPlan {
        target_id: id(tip),
        old_leaf_id: old_leaf.map(id),
        new_leaf_id: Some(id(tip)),
        common_ancestor_id: ancestor.map(id),
        worth_summarizing: is_worth_summarizing(tree, &abandoned, compacted),
        abandoned,
        compacted,
        editor_entry: None,
        merges: None,
        from_session: None,
        judgements: Vec::new(),
        archives: Vec::new(),
    })
}

/// Plans a merge: a summary of the branch that ends at `tip`. The branch begins below its common ancestor with the leaf
/// (semantics.md §5). If the path to the leaf has the step of the tip already, nothing needs to be merged.
pub fn plan_merge(tree: &Tree, tip: Node) -> Navigation {
    let leaf = tree.leaf();
    let (ancestor, abandoned) = tree.branch(Some(tip), leaf);
    if !has_steps(tree, &abandoned) {
        return Navigation::AlreadyThere;
    }
    let compacted = compacted_entries(tree, &abandoned);
    let id = |node: Node| EntryId::new(tree.id(node));
    Navigation::Move(NavigationPlan {
        target_id: id(tip),
        old_leaf_id: leaf.map(id),
        new_leaf_id: leaf.map(id),
        common_ancestor_id: ancestor.map(id),
        worth_summarizing: is_worth_summarizing(tree, &abandoned, compacted),
        abandoned,
        compacted,
        editor_entry: None,
        merges: Some(id(tip)),
        from_session: None,
        judgements: Vec::new(),
        archives: Vec::new(),
    })
}

/// Plans a merge of the branch of another session that ends at `tip`. The summary covers only entries that this session
/// does not have: a fork shares the beginning of its path with the session that it comes from.
pub fn plan_merge_from(tree: &Tree, session_id: &str, other: &Tree, tip: Node) -> Navigation {
    let path = other.path(Some(tip));
    let is_shared = |node: &&Node| is_shared(tree, other, **node);
    let shared = path.iter().take_while(is_shared).count();
    let abandoned = path.get(shared..).unwrap_or_default().to_vec();
    if !has_steps(other, &abandoned) {
        return Navigation::AlreadyThere;
    }
    let ancestor = shared.checked_sub(1).and_then(|last| path.get(last));
    let compacted = compacted_entries(other, &abandoned);
    let leaf = tree.leaf().map(|leaf| EntryId::new(tree.id(leaf)));
    let id = |node: Node| EntryId::new(other.id(node));
    Navigation::Move(NavigationPlan {
        target_id: id(tip),
        old_leaf_id: leaf.clone(),
        new_leaf_id: leaf,
        common_ancestor_id: ancestor.copied().map(id),
        worth_summarizing: is_worth_summarizing(other, &abandoned, compacted),
        abandoned,
        compacted,
        editor_entry: None,
        merges: Some(id(tip)),
        from_session: Some(session_id.to_owned()),
        judgements: Vec::new(),
        archives: Vec::new(),
    })
}

/// Whether `tree` has the entry `node` of `other` too. An equal id is not enough, since clients choose ids. So the
/// steps above the two entries are compared too. Bookkeeping is skipped, since a fork leaves out labels. If no step is
/// above `node`, only the entries are compared, since a session may begin in the middle of the path of another session.
fn is_shared(tree: &Tree, other: &Tree, node: Node) -> bool {
    let Some(own) = tree.find(other.id(node)) else {
        return false;
    };
    let above = |tree: &Tree, node: Node| tree.skip_bookkeeping(tree.parent(node));
    let parent = above(other, node).map(|node| other.id(node));
    let has_parent = parent.is_none() || parent == above(tree, own).map(|node| tree.id(node));
    has_parent && tree.kind(own) == other.kind(node) && tree.timestamp(own) == other.timestamp(node)
}

/// The summary that an earlier merge of this branch of another session wrote on the path to the leaf; `None` if there
/// is none.
pub fn merged_before(tree: &Tree, session_id: &str, tip_id: &str) -> Option<Node> {
    let copies = tree.copies_of(session_id, tip_id).into_iter().rev();
    let is_here = |node: Node| tree.leaf().is_some_and(|leaf| tree.is_ancestor(node, leaf));
    let mut merged =
        copies.filter(|node| tree.kind(*node) == Kind::BranchSummary && is_here(*node));
    merged.next()
}

/// Plans to move the leaf from the branch that begins with `head` to the position above `head`. The target is `head`. A
/// leaf outside of the branch does not move.
pub fn plan_archive(tree: &Tree, head: Node) -> Navigation {
    let old_leaf = tree.leaf();
    if !old_leaf.is_some_and(|leaf| tree.is_ancestor(head, leaf)) {
        return Navigation::AlreadyThere;
    }
    let new_leaf = tree.parent(head);
    let (_, abandoned) = tree.branch(old_leaf, new_leaf);
    let compacted = compacted_entries(tree, &abandoned);
    let id = |node: Node| EntryId::new(tree.id(node));
    Navigation::Move(NavigationPlan {
        target_id: id(head),
        old_leaf_id: old_leaf.map(id),
        new_leaf_id: new_leaf.map(id),
        common_ancestor_id: new_leaf.map(id),
        worth_summarizing: is_worth_summarizing(tree, &abandoned, compacted),
        abandoned,
        compacted,
        editor_entry: None,
        merges: None,
        from_session: None,
        judgements: Vec::new(),
        archives: vec![id(head)],
    })
}

impl NavigationPlan {
    /// The entries to summarize, without the entries that the nearest compaction covers (protocol.md §4.5).
    pub fn entries(&self) -> &[Node] {
        self.abandoned.get(self.compacted..).unwrap_or_default()
    }

    /// The entries that the nearest compaction of the branch covers, including the compaction.
    pub fn compacted(&self) -> &[Node] {
        self.abandoned.get(..self.compacted).unwrap_or_default()
    }

    /// The nearest compaction of the branch. Its summary is the earlier context.
    pub fn previous_compaction(&self) -> Option<Node> {
        self.compacted().last().copied()
    }

    /// The entries of the branch that this compaction keeps: from `first_kept` to the compaction, without earlier
    /// compactions and system messages. Empty if `first_kept` is not above the compaction.
    pub fn kept(&self, tree: &Tree, first_kept: Option<Node>) -> Vec<Node> {
        let end = self.compacted.saturating_sub(1);
        let before = self.abandoned.get(..end).unwrap_or_default();
        let above = before.first().and_then(|first| tree.parent(*first));
        let is_further_up =
            || first_kept.is_some() && tree.common_ancestor(above, first_kept) == first_kept;
        let start = before.iter().position(|node| Some(*node) == first_kept);
        let kept = match start {
            Some(start) => before.get(start..).unwrap_or_default(),
            None if is_further_up() => before,
            None => &[],
        };
        let counts = |node: &Node| match tree.kind(*node) {
            Kind::Compaction => false,
            Kind::Message => tree.role(*node) != Role::System,
            _ => true,
        };
        kept.iter().copied().filter(counts).collect()
    }

    /// Entries whose text may be the goal of the branch, the best first. The target is first, if it is on the old path
    /// and its text goes back to the editor. Then come the user messages of the branch, oldest first, and the user
    /// messages above the branch, nearest first.
    pub fn goals<'a>(&'a self, tree: &'a Tree) -> impl Iterator<Item = Node> + 'a {
        let ancestor = self.common_ancestor_id.as_ref();
        let ancestor = ancestor.and_then(|id| tree.find(id.as_str()));
        let target = self.editor_entry.filter(|node| Some(*node) == ancestor);
        let own = self.abandoned.iter().copied();
        let users = own.chain(tree.ancestors(ancestor));
        let users = users.filter(|node| is_users(tree, *node));
        target.into_iter().chain(users)
    }

    /// The steps of the branch that the leaf leaves.
    pub fn abandoned_steps(&self, tree: &Tree) -> usize {
        let steps = self.abandoned.iter();
        steps
            .filter(|node| !tree.kind(**node).is_bookkeeping())
            .count()
    }

    /// The end of the branch that is summarized.
    pub fn tip(&self) -> Option<Node> {
        self.abandoned.last().copied()
    }
}

/// The position of the leaf after the navigation: the present leaf if it is at the same step as `new_leaf`, else
/// `new_leaf`.
fn from_leaf(tree: &Tree, new_leaf: Option<Node>) -> Option<Node> {
    match tree.is_same_conversation(new_leaf, tree.leaf()) {
        true => tree.leaf(),
        false => new_leaf,
    }
}

fn is_users(tree: &Tree, node: Node) -> bool {
    tree.kind(node) == Kind::Message && tree.role(node) == Role::User
}

/// The target of `pop`: the named entry, or the nearest user message at or above the leaf. Fails with `notAUserMessage`
/// if neither of these entries exists.
pub fn pop_target(tree: &Tree, entry_id: Option<&str>) -> Result<Node> {
    if let Some(id) = entry_id {
        return tree.find(id).ok_or_else(|| Error::entry_not_found(id));
    }
    let mut above = tree.ancestors(tree.leaf());
    above.find(|node| is_users(tree, *node)).ok_or_else(|| {
        let message = "there is no user message at or above the leaf: name an entry to go to";
        let leaf_id = tree.leaf().map(|leaf| tree.id(leaf));
        Error::new(ErrorKind::NotAUserMessage, message)
            .with_details(serde_json::json!({ "entryId": leaf_id }))
    })
}

fn has_steps(tree: &Tree, branch: &[Node]) -> bool {
    let mut kinds = branch.iter().map(|node| tree.kind(*node));
    kinds.any(|kind| !kind.is_bookkeeping())
}

/// The number of a branch's entries that its nearest compaction covers, including the compaction.
fn compacted_entries(tree: &Tree, branch: &[Node]) -> usize {
    let is_compaction = |node: &Node| tree.kind(*node) == Kind::Compaction;
    branch
        .iter()
        .rposition(is_compaction)
        .map_or(0, |at| at + 1)
}

/// Whether a branch has anything that would be lost without a summary.
fn is_worth_summarizing(tree: &Tree, entries: &[Node], compacted: usize) -> bool {
    let has_content = |node: &Node| is_content(tree.kind(*node), tree.role(*node));
    compacted > 0 || entries.iter().any(has_content)
}

/// The lines of the commit: a summary or a leaf record, then the label (protocol.md §4.8).
pub fn commit(
    tree: &Tree,
    source: &dyn Source,
    plan: &NavigationPlan,
    summary: Option<&BranchSummary>,
    label: Option<&str>,
) -> Result<PlannedLines> {
    let find = |id: &EntryId| {
        let found = tree.find(id.as_str());
        found.ok_or_else(|| Error::entry_not_found(id.as_str()))
    };
    let new_leaf = match plan.merges {
        Some(_) => tree.leaf(),
        None => from_leaf(tree, plan.new_leaf_id.as_ref().map(find).transpose()?),
    };
    let mut minter = IdAllocator::new(tree, source);
    let mut planned = match summary {
        Some(summary) => {
            let merges = plan.merges.as_ref().map(|tip| leaf::Merged {
                tip_id: tip.as_str(),
                session_id: plan.from_session.as_deref(),
            });
            leaf::plan_summary(tree, &mut minter, new_leaf, merges, summary)
        }
        None => PlannedLines::default(),
    };
    if summary.is_none() && new_leaf != tree.leaf() {
        let record = leaf::record(&mut minter, tree, new_leaf, Cause::NavigateTree);
        planned.lines.push(record);
    }
    let is_unmoved = planned.lines.is_empty();
    if let Some(label) = label {
        let summary_id = planned.entry_ids.first().cloned();
        let target_id = summary_id.as_ref().unwrap_or(&plan.target_id);
        let parent_id = summary_id.as_ref().map(EntryId::as_str);
        let parent_id = parent_id.or(new_leaf.map(|leaf| tree.id(leaf)));
        push_label(
            &mut planned,
            &mut minter,
            parent_id,
            target_id.as_str(),
            label,
        );
    }
    let parent_id = planned.entry_ids.last().map(EntryId::as_str);
    let parent_id = parent_id.or(new_leaf.map(|leaf| tree.id(leaf)));
    let parent_id = parent_id.map(str::to_owned);
    push_judgements(&mut planned, &mut minter, parent_id, &plan.judgements);
    for head in &plan.archives {
        let parent_id = planned.entry_ids.last().map(EntryId::as_str);
        let at = parent_id.or(new_leaf.map(|leaf| tree.id(leaf)));
        let record = branch::archived_record(&mut minter, tree, find(head)?, at);
        planned.lines.push(record);
    }
    if is_unmoved {
        leaf::keep(&mut planned, &mut minter, tree);
    }
    Ok(planned)
}

/// The lines of a choice that does not move the leaf: the judgements, appended at the leaf.
pub fn judge_at_leaf(tree: &Tree, source: &dyn Source, judgements: &[Judgement]) -> PlannedLines {
    let mut planned = PlannedLines::default();
    let mut minter = IdAllocator::new(tree, source);
    let leaf_id = tree.leaf().map(|leaf| tree.id(leaf).to_owned());
    push_judgements(&mut planned, &mut minter, leaf_id, judgements);
    leaf::keep(&mut planned, &mut minter, tree);
    planned
}

/// Notes about the candidates that were not chosen (session-file.md §1.4). Each note is a child of the note before it.
fn push_judgements(
    planned: &mut PlannedLines,
    minter: &mut IdAllocator<'_>,
    mut parent_id: Option<String>,
    judgements: &[Judgement],
) {
    for judgement in judgements {
        let id = minter.id();
        let mut data = Vec::new();
        push_text_member(&mut data, "targetId", judgement.tip_id.as_str());
        if let Some(reason) = &judgement.reason {
            push_text_member(&mut data, "reason", reason);
        }
        push_text_member(&mut data, "outcome", "notChosen");
        push_text_member(&mut data, "by", &judgement.by);
        if let Some(comma) = data.first_mut() {
            *comma = b'{';
        }
        data.push(b'}');
        let mut members = Vec::new();
        push_text_member(&mut members, "customType", "note");
        push_raw_member(&mut members, "data", &data);
        let line = minter.line("custom", &id, parent_id.as_deref(), &members);
        planned.lines.push(line);
        parent_id = Some(id.as_str().to_owned());
        planned.entry_ids.push(id);
    }
}

/// The line of a navigation that does not move the leaf: the label, appended at the leaf.
pub fn label_at_leaf(
    tree: &Tree,
    source: &dyn Source,
    target_id: &EntryId,
    label: &str,
) -> PlannedLines {
    let mut planned = PlannedLines::default();
    let mut minter = IdAllocator::new(tree, source);
    let leaf_id = tree.leaf().map(|leaf| tree.id(leaf));
    push_label(
        &mut planned,
        &mut minter,
        leaf_id,
        target_id.as_str(),
        label,
    );
    leaf::keep(&mut planned, &mut minter, tree);
    planned
}

fn push_label(
    planned: &mut PlannedLines,
    minter: &mut IdAllocator<'_>,
    parent_id: Option<&str>,
    target_id: &str,
    label: &str,
) {
    let id = minter.id();
    let mut members = Vec::new();
    push_text_member(&mut members, "targetId", target_id);
    push_text_member(&mut members, "label", label);
    let line = minter.line("label", &id, parent_id, &members);
    planned.lines.push(line);
    planned.entry_ids.push(id);
}
