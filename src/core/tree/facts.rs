//! Facts of an entry that the tree keeps: labels, the session's name, moves, references to other entries.

use super::flags::Flags;
use super::moves::{Cause, Move, Position};
use super::node::{Label, NO_TIME, Node};
use super::state::Tree;
use crate::entry::{CONTINUE, Envelope, Facts, KEEP, Kind, NO_MOVE, Role};
use crate::name;
use crate::timestamp::{self, Millis};

/// The cause of the leaf record at the end of an import.
const IMPORT: &str = "import";

/// The facts of an entry that do not depend on other entries, so that they are also true for a copy in another tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainFacts {
    pub(super) kind: Kind,
    pub(super) role: Role,
    pub(super) timestamp: Millis,
    pub(super) flags: Flags,
}

impl PlainFacts {
    /// `None` for an entry that refers to an entry other than its parent, or that was not appended at the leaf.
    pub fn of(envelope: &Envelope<'_>) -> Option<Self> {
        let is_own = envelope.background.is_none() && envelope.copied_from.is_none();
        (is_own && is_plain(envelope.kind)).then(|| Self::of_any(envelope))
    }

    /// Like [`PlainFacts::of`], for any entry. Facts that refer to other entries are left out.
    fn of_any(envelope: &Envelope<'_>) -> Self {
        let timestamp = envelope.timestamp.as_deref();
        let (timestamp, canonical) = timestamp
            .and_then(timestamp::parse_exact)
            .unwrap_or((NO_TIME, false));
        let mut flags = Flags::NONE;
        let mut role = Role::None;
        if !canonical {
            flags.set(Flags::ODD_TIMESTAMP);
        }
        match envelope.facts {
            Facts::Message {
                role: sender,
                silent,
                is_error,
                ..
            } => {
                role = sender;
                if silent {
                    flags.set(Flags::SILENT);
                }
                if is_error {
                    flags.set(Flags::ERROR);
                }
            }
            Facts::CustomMessage { display: false } => flags.set(Flags::HIDDEN),
            _ => {}
        }
        Self {
            kind: envelope.kind,
            role,
            timestamp,
            flags,
        }
    }
}

/// Whether entries of this kind refer to no entry other than their parent.
fn is_plain(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Message
            | Kind::ThinkingLevelChange
            | Kind::ModelChange
            | Kind::ModeChange
            | Kind::Custom
            | Kind::CustomMessage
            | Kind::Usage
            | Kind::Unknown
    )
}

impl Tree {
    /// The facts for a copy of this entry, so that its line need not be read again. `None` for entries that refer to
    /// others, and for entries whose stored line is damaged or was replaced.
    pub fn plain_facts(&self, node: Node) -> Option<PlainFacts> {
        let row = self.row(node);
        let is_as_stored = [Flags::DUPLICATE_ID, Flags::RECOVERED, Flags::INVALID_UTF8];
        let is_as_stored = is_as_stored.iter().all(|flag| !row.flags.has(*flag));
        let is_own = !row.flags.has(Flags::STAYS) && !self.born.is_copy(node);
        let mut flags = Flags::NONE;
        for flag in [
            Flags::HIDDEN,
            Flags::ERROR,
            Flags::SILENT,
            Flags::ODD_TIMESTAMP,
        ] {
            if row.flags.has(flag) {
                flags.set(flag);
            }
        }
        (is_plain(row.kind) && is_as_stored && is_own).then_some(PlainFacts {
            kind: row.kind,
            role: row.role,
            timestamp: row.timestamp,
            flags,
        })
    }

    /// Stores the facts of an entry. Its row and its link must be in the tree already.
    pub(super) fn take_facts(&mut self, node: Node, envelope: &Envelope<'_>) {
        if let Some(id) = reference(&envelope.facts) {
            self.note_reference(node, id);
        }
        let plain = PlainFacts::of_any(envelope);
        self.born.take(node, envelope);
        let row = self.row_mut(node);
        row.timestamp = plain.timestamp;
        row.role = plain.role;
        row.flags.set(plain.flags);
        if envelope.background.is_some() {
            row.flags.set(Flags::STAYS);
        }
        match &envelope.facts {
            Facts::BranchSummary { from_id, merge } => {
                if *merge {
                    row.flags.set(Flags::MERGE);
                }
                let from = self.moved_from(from_id.as_deref(), "root");
                let at_its_own_parent = from == self.parent(node).into();
                if !merge && !at_its_own_parent && from_id.is_some() {
                    self.moves.note(Move {
                        at: node,
                        from,
                        to: Position::At(node),
                        cause: Cause::NavigateTree,
                    });
                }
            }
            // Records that keep a position, and records of continuations, deletions and imports, are not moves of the
            // user: undo skips them.
            Facts::LeafRecord {
                cause: Some(cause), ..
            } if [KEEP, CONTINUE, NO_MOVE].contains(&&**cause) => row.flags.set(Flags::STAYS),
            Facts::LeafRecord {
                cause: Some(cause), ..
            } if **cause == *IMPORT => {}
            Facts::BranchRecord { entry_id, change } => {
                row.flags.set(Flags::STAYS);
                if let Some(entry_id) = entry_id {
                    self.marks.take(node, entry_id, change);
                }
            }
            Facts::LeafRecord { from, cause } => {
                let from = self.moved_from(from.as_deref(), "");
                let to = match self.waiting.is_waiting(node) {
                    true => Position::Gone,
                    false => self.parent(node).into(),
                };
                self.moves.note(Move {
                    at: node,
                    from,
                    to,
                    cause: cause.as_deref().map_or(Cause::SetLeaf, Cause::parse),
                });
            }
            Facts::Label { target_id, label } => {
                let label = label.as_deref().and_then(name::given).map(|text| Label {
                    text: text.into(),
                    entry: node,
                });
                if let Some(target_id) = target_id {
                    match self.resolve(target_id) {
                        Some(Some(target)) => self.put_label(target, label),
                        Some(None) => {}
                        None => self.keep_label(target_id, label),
                    }
                }
            }
            Facts::SessionInfo { name } => {
                self.name = name.as_deref().and_then(name::given).map(Into::into);
            }
            Facts::Message { .. }
            | Facts::CustomMessage { .. }
            | Facts::Compaction { .. }
            | Facts::ContextEdit { .. }
            | Facts::None => {}
        }
    }

    /// Stores a reference to an entry other than the parent. If the reference names a leaf record, the entry is
    /// delivered with the position of this record instead (session-file.md §4).
    fn note_reference(&mut self, node: Node, id: &str) {
        match self.find_any(id) {
            Some(named) if self.kind(named) == Kind::LeafRecord => {
                self.row_mut(node).flags.set(Flags::STALE_REFERENCE);
            }
            Some(_) => {}
            None => self
                .waiting_references
                .entry_ref(id)
                .or_default()
                .push(node),
        }
    }

    /// The position that a move names by `id`; the word `root` means the empty position.
    fn moved_from(&self, id: Option<&str>, root: &str) -> Position {
        match id {
            None => Position::Root,
            Some(id) if id == root && self.find_any(id).is_none() => Position::Root,
            Some(id) => match self.resolve(id) {
                Some(position) => position.into(),
                None => Position::Gone,
            },
        }
    }

    fn put_label(&mut self, target: Node, label: Option<Label>) {
        let entry = label.as_ref().map(|label| label.entry);
        let former = match label {
            Some(label) => self.labels.insert(target, label),
            None => self.labels.remove(&target),
        };
        if let Some(former) = former {
            self.labelled.remove(&former.entry);
        }
        if let Some(entry) = entry {
            self.labelled.insert(entry, target);
        }
    }

    /// Keeps a label until its target has been read.
    fn keep_label(&mut self, target_id: &str, label: Option<Label>) {
        if let Some(label) = &label {
            self.awaited_targets.insert(label.entry, target_id.into());
        }
        if let Some(Some(former)) = self.waiting_labels.insert(target_id.into(), label) {
            self.awaited_targets.remove(&former.entry);
        }
    }

    /// Removes the label that `entry` sets, whether the label is in force or waits for its target.
    pub(super) fn withdraw_label(&mut self, entry: Node) {
        if let Some(target) = self.labelled.remove(&entry) {
            self.labels.remove(&target);
        }
        if let Some(target_id) = self.awaited_targets.remove(&entry) {
            self.waiting_labels.remove(&target_id);
        }
    }

    /// Applies to `node` a label that was read before it.
    pub(super) fn adopt_label(&mut self, node: Node, id: &str) {
        if self.waiting_labels.is_empty() {
            return;
        }
        let Some(label) = self.waiting_labels.remove(id) else {
            return;
        };
        if let Some(label) = &label {
            self.awaited_targets.remove(&label.entry);
        }
        if let Some(target) = self.resolve_node(node) {
            self.put_label(target, label);
        }
    }
}

/// The id of the entry to which an entry refers, apart from the parent.
fn reference<'a>(facts: &'a Facts<'_>) -> Option<&'a str> {
    match facts {
        Facts::BranchSummary { from_id, .. } => from_id.as_deref().filter(|id| *id != "root"),
        Facts::Label { target_id, .. } | Facts::ContextEdit { target_id } => target_id.as_deref(),
        Facts::Compaction {
            first_kept_entry_id,
            ..
        } => first_kept_entry_id.as_deref(),
        _ => None,
    }
}
