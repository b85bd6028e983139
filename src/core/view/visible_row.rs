//! One line of a view. It has only numbers.

/// One line of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub(super) item: u32,
    pub(super) parent: u32,
    /// The number of visible ancestors.
    pub depth: u32,
    /// The number of steps to the right: one for each visible ancestor that is a branch point, and one
    /// more if there are several visible roots.
    pub indent: u32,
    /// The number of visible children, folded ones included.
    pub child_count: u32,
    /// One bit for each step of indent, as many as fit; the last step is the lowest bit. A bit says
    /// whether the entry indented at that step has a later sibling, so that its line continues.
    pub(super) guides: u32,
    /// Whether the row itself causes the last step of its indent, because it has siblings.
    pub(super) heads_branch: bool,
    pub(super) has_later_sibling: bool,
    /// Whether the row is the leaf or an ancestor of the leaf.
    pub on_active_path: bool,
    /// Whether the row is the nearest row at or above the leaf.
    pub is_leaf: bool,
    /// Whether the row is in an archived branch.
    pub is_archived: bool,
}

impl Row {
    /// Its index in the outline.
    pub fn item(&self) -> usize {
        self.item as usize
    }

    /// The index of the row of its nearest visible ancestor.
    pub fn parent(&self) -> Option<usize> {
        some(self.parent)
    }

    /// Whether the row has two or more visible children.
    pub(crate) fn is_branch_point(&self) -> bool {
        self.child_count >= 2
    }
}

/// Stands for no row or no item.
pub(super) const NONE: u32 = u32::MAX;

pub(super) fn some(at: u32) -> Option<usize> {
    (at != NONE).then_some(at as usize)
}
