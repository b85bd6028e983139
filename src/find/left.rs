//! Why a branch was left, and what was tried instead.

use std::collections::HashMap;
use std::ops::ControlFlow;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::search::{Excerpt, FieldKind, decoded, each_field_with_kind};
use treelined_core::summary::without_preamble;
use treelined_core::tree::{Node, Tree};
use treelined_files::log::body::BodyReader;

/// Why a branch was left, and which message followed instead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftBranch {
    pub reason: Option<LeftReason>,
    /// The first message of the user after `left_at` on the path to the leaf. If there is none, the first message of
    /// another role.
    pub instead: Option<SaidText>,
}

/// The reason why a branch was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftReason {
    pub kind: ReasonKind,
    pub said: SaidText,
}

/// The kind of entry that has the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonKind {
    Note,
    Label,
    Summary,
}

/// The beginning of an entry's text, on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaidText {
    pub entry_id: String,
    pub text: String,
}

/// The label of a fork without a title in an imported session (session-file.md §5.8). It is not a reason.
const FORK: &str = "fork";
/// The last text of a branch is looked for in this many messages at the end of the branch. Calls of tools have no text.
const END_MESSAGES: usize = 8;

/// Explains the branches of one session.
pub(crate) struct LeftBranches<'t> {
    tree: &'t Tree,
    /// The note about each entry (`notes`), and the summary of the branch that ends at an entry (`summaries`).
    notes: HashMap<Node, SaidText>,
    summaries: HashMap<Node, SaidText>,
    /// The path to the leaf, from the root.
    path: Vec<Node>,
    known: HashMap<(Node, Option<Node>), LeftBranch>,
}

impl<'t> LeftBranches<'t> {
    pub(crate) fn of(tree: &'t Tree, reader: &mut BodyReader<'_>) -> Result<Self> {
        let (mut notes, mut summaries) = (HashMap::new(), HashMap::new());
        for node in tree.entries() {
            let (kind, place) = (tree.kind(node), tree.place(node));
            let about: (&[&str], &[&str], _) = match kind {
                Kind::Note => (&["data", "targetId"], &["data", "reason"], &mut notes),
                Kind::BranchSummary => (&["fromId"], &["summary"], &mut summaries),
                _ => continue,
            };
            let line = reader.stored(place, usize::MAX)?;
            let member = |path: &[&str]| json::get_path(line, path).and_then(json::string);
            let of = member(about.0).and_then(|id| tree.find(&id));
            if let (Some(of), Some(text)) = (of, member(about.1)) {
                about
                    .2
                    .insert(of, said(tree, node, without_preamble(&text)));
            }
        }
        Ok(Self {
            tree,
            notes,
            summaries,
            path: tree.path(tree.leaf()),
            known: HashMap::new(),
        })
    }

    /// Explains the branch that begins below `left_at` and ends at `tip`.
    pub(crate) fn branch(
        &mut self,
        tip: Node,
        left_at: Option<Node>,
        reader: &mut BodyReader<'_>,
    ) -> Result<LeftBranch> {
        if let Some(known) = self.known.get(&(tip, left_at)) {
            return Ok(known.clone());
        }
        let own = self.tree.ancestors(Some(tip));
        let own: Vec<Node> = own.take_while(|node| Some(*node) != left_at).collect();
        let left = LeftBranch {
            reason: self.reason(&own),
            instead: self.instead(left_at, reader)?,
        };
        self.known.insert((tip, left_at), left.clone());
        Ok(left)
    }

    /// Why a branch with these entries was left. The entries begin with the tip of the branch.
    pub(crate) fn reason(&self, own: &[Node]) -> Option<LeftReason> {
        let label = |node: &Node| {
            let label = self
                .tree
                .label(*node)
                .filter(|label| &*label.text != FORK)?;
            Some(said(self.tree, label.entry, &label.text))
        };
        let reason = |kind, said| LeftReason { kind, said };
        let noted = own.iter().find_map(|node| self.notes.get(node));
        let noted = noted.map(|said| reason(ReasonKind::Note, said.clone()));
        let labelled = || {
            own.iter()
                .find_map(label)
                .map(|said| reason(ReasonKind::Label, said))
        };
        let summed = || {
            let said = own.iter().find_map(|node| self.summaries.get(node))?;
            Some(reason(ReasonKind::Summary, said.clone()))
        };
        noted.or_else(labelled).or_else(summed)
    }

    /// The last text of the user or the assistant among these entries. The entries begin with the last entry of the
    /// branch.
    pub(crate) fn end(
        &self,
        own: &[Node],
        reader: &mut BodyReader<'_>,
    ) -> Result<Option<SaidText>> {
        let of_turn = |node: &&Node| matches!(self.tree.role(**node), Role::User | Role::Assistant);
        for node in own.iter().filter(of_turn).take(END_MESSAGES) {
            if let Some(said) = self.said(*node, reader)? {
                return Ok(Some(said));
            }
        }
        Ok(None)
    }

    /// The first message of the user after `left_at` on the path to the leaf. If there is none, the first message of
    /// another role.
    fn instead(
        &self,
        left_at: Option<Node>,
        reader: &mut BodyReader<'_>,
    ) -> Result<Option<SaidText>> {
        let start = left_at.and_then(|at| self.path.iter().position(|node| *node == at));
        let after = start.map_or(0, |at| at + 1);
        let after = self.path.get(after..).unwrap_or_default().iter();
        let mut messages = after.filter(|node| self.tree.kind(**node) == Kind::Message);
        let first = messages.clone().next();
        let node = messages
            .find(|node| self.tree.role(**node) == Role::User)
            .or(first);
        match node {
            Some(node) => self.said(*node, reader),
            None => Ok(None),
        }
    }

    /// The first text of a message.
    fn said(&self, node: Node, reader: &mut BodyReader<'_>) -> Result<Option<SaidText>> {
        let line = reader.stored(self.tree.place(node), usize::MAX)?;
        let mut text = None;
        each_field_with_kind(line, Kind::Message, self.tree.role(node), |field, raw| {
            if field == FieldKind::Text {
                text = Some(decoded(raw).into_owned());
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        Ok(text.map(|text| said(self.tree, node, &text)))
    }
}

fn said(tree: &Tree, node: Node, text: &str) -> SaidText {
    SaidText {
        entry_id: tree.id(node).to_owned(),
        text: Excerpt::beginning(text).text,
    }
}
