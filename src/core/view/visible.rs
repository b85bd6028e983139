//! The visible tree as rows: the entries of an [`Outline`] that are not hidden by a filter, query, fold or depth. Also
//! the rows of a page.
//!
//! The visible tree has only numbers, so it needs neither the tree nor the lock.

use super::layout::Outline;
use super::left::{self, Left, LeftRows};
use super::visible_row::{NONE, Row, some};
use crate::tree::{Node, number32};
use std::collections::HashSet;
use std::ops::Range;

/// The visible entries that have no row. The relations of the other rows do not change without these entries.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Folding {
    /// Entries whose descendants have no rows. An entry that is not visible folds nothing.
    pub folded: HashSet<Node>,
    /// Folds the branches that the leaf has left. The outline must have the active path last
    /// ([`super::Scope::active_last`]).
    pub left: Option<Left>,
    /// The deepest depth that is shown; 0 shows only the visible roots.
    pub max_depth: Option<u64>,
}

/// All rows of a view, in pre-order.
#[derive(Debug, PartialEq, Eq)]
pub struct Visible {
    rows: Vec<Row>,
    /// For each item, its own row, or the row of its nearest ancestor that has one.
    nearest: Vec<u32>,
    /// The items of the visible roots.
    roots: Vec<u32>,
    hidden: usize,
    /// The rows that stand for branches that the leaf has left.
    left: LeftRows,
}

impl Visible {
    /// `matched` has the query's result for each item; `None` without a query.
    pub fn new(outline: &Outline, matched: Option<&[bool]>, folding: &Folding) -> Self {
        let (mut rows, mut nearest) = visible_tree(outline, matched);
        let hidden = outline.items().len() - rows.len();
        let mut left_rows = LeftRows::default();
        let mut moved = None;
        if let Some(left) = &folding.left {
            let (to, made) = left::fold(outline, &mut rows, &nearest, left, folding.max_depth);
            (moved, left_rows) = (Some(to), made);
        } else {
            draw(&mut rows);
            if !folding.folded.is_empty() || folding.max_depth.is_some() {
                moved = Some(fold(outline, &mut rows, folding));
            }
        }
        if let Some(moved) = moved {
            for at in &mut nearest {
                *at = moved.get(*at as usize).copied().unwrap_or(NONE);
            }
        }
        let leaf = outline.leaf().and_then(|leaf| nearest.get(leaf).copied());
        if let Some(row) = leaf.and_then(|leaf| rows.get_mut(leaf as usize)) {
            row.is_leaf = true;
        }
        let roots = rows.iter().filter(|row| row.parent == NONE);
        Self {
            roots: roots.map(|row| row.item).collect(),
            rows,
            nearest,
            hidden,
            left: left_rows,
        }
    }

    /// The memory that the view uses, in bytes.
    pub fn bytes(&self) -> usize {
        let numbers = self.nearest.capacity() + self.roots.capacity();
        let rows = self.rows.capacity() * size_of::<Row>();
        rows + numbers * size_of::<u32>() + self.left.bytes()
    }

    /// Adds the items by which the outline was [extended](Outline::extend). Returns false and changes nothing if this
    /// would also change other rows. Do not use it for views with a query, folded ids or a depth.
    pub fn extend(&mut self, outline: &Outline) -> bool {
        let known = self.nearest.len();
        let items = outline.items();
        let new = items.get(known..).unwrap_or_default();
        let Some(mut end) = self.nearest.last().copied() else {
            return false;
        };
        let own = self
            .rows
            .get(end as usize)
            .filter(|row| row.item() + 1 == known);
        let was_shown_as_leaf =
            own.filter(|row| items.get(row.item()).is_some_and(|item| !item.kept));
        let gone = was_shown_as_leaf.map(|row| row.parent);
        // The row above the new items, and the number of its children.
        let above = gone.unwrap_or(end);
        let children = usize::from(gone.is_some());
        let has_room =
            (self.rows.get(above as usize)).is_some_and(|row| row.child_count as usize == children);
        // A second child indents the first child and all its descendants, and a second root indents all rows. If either
        // is removed, these rows move back.
        if !has_room && (gone.is_some() || new.iter().any(|item| item.kept)) {
            return false;
        }
        if gone.is_some() {
            self.rows.pop();
            self.nearest.pop();
            self.nearest.push(above);
            self.hidden += 1;
            if let Some(row) = self.rows.get_mut(above as usize) {
                row.child_count = 0;
            }
            end = above;
        }
        if let Some(row) = self.rows.get_mut(end as usize) {
            row.is_leaf = false;
        }
        let mut above = end;
        for (at, item) in new.iter().enumerate() {
            if item.kept
                && let Some(parent) = self.rows.get_mut(above as usize)
            {
                parent.child_count += 1;
                let row = Row {
                    item: number32(known + at),
                    parent: above,
                    depth: parent.depth + 1,
                    child_count: 0,
                    heads_branch: false,
                    has_later_sibling: false,
                    on_active_path: true,
                    ..*parent
                };
                above = number32(self.rows.len());
                self.rows.push(row);
            } else {
                self.hidden += 1;
            }
            self.nearest.push(above);
        }
        if let Some(row) = self.rows.get_mut(above as usize) {
            row.is_leaf = true;
        }
        true
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The rows that stand for branches that the leaf has left.
    pub fn left(&self) -> &LeftRows {
        &self.left
    }

    /// The name of the branch that begins with the row of an item. The name is shown on the first row at or below the
    /// entry that has the name. Only the entries after the previous row are searched, so each entry is searched once,
    /// and all rows take linear time.
    pub fn branch_name<'o>(&self, outline: &'o Outline, item: usize) -> Option<&'o str> {
        let before = self.row_of(item)?.checked_sub(1);
        let before = before.and_then(|before| self.rows.get(before));
        outline.branch_name_behind(item, before.map(Row::item))
    }

    /// The number of rows on all pages together.
    pub fn total(&self) -> usize {
        self.rows.len()
    }

    /// The number of entries in scope that the filter or the query removes.
    pub fn hidden(&self) -> usize {
        self.hidden
    }

    /// The items of the visible roots.
    pub(crate) fn roots(&self) -> impl Iterator<Item = usize> + '_ {
        self.roots.iter().map(|item| *item as usize)
    }

    /// The row of `item`, or else the nearest row above it.
    pub fn row_of(&self, item: usize) -> Option<usize> {
        some(self.nearest.get(item).copied().unwrap_or(NONE))
    }

    /// Like [`Visible::row_of`]. If no row is at or above the item, returns the next row, or else the last one. `None`
    /// if there are no rows.
    pub fn row_near(&self, item: usize) -> Option<usize> {
        let last = self.rows.len().checked_sub(1)?;
        let next = || self.rows.partition_point(|row| row.item() < item).min(last);
        Some(self.row_of(item).unwrap_or_else(next))
    }

    /// The items that these rows need: first their own items in order, then their parents, the visible roots, and the
    /// items that folded and opened rows name. An item may occur twice.
    pub fn items_of(&self, range: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let page = self.rows.get(range.clone()).unwrap_or_default();
        let parents = page.iter().filter_map(|row| self.rows.get(row.parent()?));
        page.iter()
            .chain(parents)
            .map(Row::item)
            .chain(self.roots())
            .chain(self.left.items_of(range))
    }

    pub(super) fn parent_item(&self, row: &Row) -> Option<usize> {
        self.rows.get(row.parent()?).map(Row::item)
    }
}

/// Where a page starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The page begins with this row. A cursor also gives such a row.
    Offset(u64),
    /// This row is in the middle of the page, if there are enough rows before and after it.
    Around(usize),
}

/// The rows of a page. The start of the range is the `offset` of the response. Without a limit, the page has all rows
/// from the offset on; with [`Start::Around`] it has all rows of the tree.
pub fn page_range(total: usize, start: Start, limit: Option<usize>) -> Range<usize> {
    let limit = limit.unwrap_or(total);
    let first = match start {
        Start::Offset(offset) => usize::try_from(offset).unwrap_or(usize::MAX).min(total),
        Start::Around(row) => row
            .saturating_sub(limit / 2)
            .min(total.saturating_sub(limit)),
    };
    first..first.saturating_add(limit).min(total)
}

/// The visible entries with parent, depth and siblings; and for each item the row of the nearest visible item.
fn visible_tree(outline: &Outline, matched: Option<&[bool]>) -> (Vec<Row>, Vec<u32>) {
    let items = outline.items();
    let mut rows: Vec<Row> = Vec::with_capacity(items.len());
    let mut nearest: Vec<u32> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let above = nearest.get(item.parent as usize).copied().unwrap_or(NONE);
        let matches = matched.is_none_or(|matched| matched.get(at).copied().unwrap_or(false));
        if !(item.kept && matches) {
            nearest.push(above);
            continue;
        }
        let number = number32(rows.len());
        let mut depth = 0;
        if let Some(parent) = rows.get_mut(above as usize) {
            parent.child_count += 1;
            depth = parent.depth + 1;
        }
        let is_first_child = number == above.wrapping_add(1);
        if !is_first_child {
            mark_elder(&mut rows, above);
        }
        rows.push(Row {
            item: number32(at),
            parent: above,
            depth,
            indent: 0,
            child_count: 0,
            guides: 0,
            heads_branch: false,
            has_later_sibling: false,
            on_active_path: item.on_active_path,
            is_leaf: false,
            is_archived: item.is_archived,
        });
        nearest.push(number);
    }
    (rows, nearest)
}

/// Marks the last child that `parent` has so far. This child is the last row, or a row above the last row. No later
/// call visits the rows between the two again, so all calls together take linear time.
fn mark_elder(rows: &mut [Row], parent: u32) {
    let mut at = rows.len().wrapping_sub(1);
    while let Some(row) = rows.get_mut(at) {
        if row.parent == parent {
            row.has_later_sibling = true;
            return;
        }
        at = row.parent as usize;
    }
}

/// Computes indent and guides. Parents come before their children.
fn draw(rows: &mut [Row]) {
    let several_roots = rows.first().is_some_and(|root| root.has_later_sibling);
    for at in 0..rows.len() {
        let Some((before, [row, ..])) = rows.split_at_mut_checked(at) else {
            break;
        };
        let (indent, guides, grows) = match before.get(row.parent as usize) {
            Some(parent) => (parent.indent, parent.guides, parent.is_branch_point()),
            None => (0, 0, several_roots),
        };
        row.heads_branch = grows;
        row.indent = indent + u32::from(grows);
        row.guides = if grows {
            guides << 1 | u32::from(row.has_later_sibling)
        } else {
            guides
        };
    }
}

/// Removes the rows below folded rows and below the deepest depth. Returns for each former row its new row, or the new
/// row of its nearest remaining ancestor.
fn fold(outline: &Outline, rows: &mut Vec<Row>, folding: &Folding) -> Vec<u32> {
    let is_folded = |row: &Row| {
        !folding.folded.is_empty()
            && outline
                .items()
                .get(row.item())
                .is_some_and(|item| folding.folded.contains(&item.node))
    };
    // The new row of each former row, and whether the rows below it are removed.
    let mut moved: Vec<u32> = Vec::with_capacity(rows.len());
    let mut closed: Vec<bool> = Vec::with_capacity(rows.len());
    let mut left = 0;
    rows.retain_mut(|row| {
        let parent = row.parent as usize;
        let too_deep = folding
            .max_depth
            .is_some_and(|max| u64::from(row.depth) > max);
        let gone = too_deep || closed.get(parent).copied().unwrap_or(false);
        row.parent = moved.get(parent).copied().unwrap_or(NONE);
        closed.push(gone || is_folded(row));
        if gone {
            moved.push(row.parent);
        } else {
            moved.push(left);
            left += 1;
        }
        !gone
    });
    moved
}
