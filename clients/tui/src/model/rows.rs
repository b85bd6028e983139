//! The rows of the tree that are here: those around the view, of a tree of any size.

use crate::message::TreePage;
use std::collections::BTreeMap;
use std::ops::Range;

/// Rows kept at most; those farthest from the view go first.
const KEPT: usize = 4000;

/// A row of the tree, as the daemon describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    pub id: String,
    /// The nearest visible one above it.
    pub parent: Option<String>,
    pub kind: Kind,
    pub preview: String,
    pub label: Option<String>,
    /// When the label was set, as it is shown.
    pub label_time: Option<String>,
    /// Visible children, folded ones too.
    pub children: u64,
    pub on_active_path: bool,
    pub is_leaf: bool,
    pub is_branch_point: bool,
    /// Of a compaction.
    pub tokens: Option<u64>,
    /// Of a tool result.
    pub tool: Option<String>,
    pub is_error: bool,
    /// The guides before it.
    pub prefix: String,
    /// What is odd about it.
    pub flags: Vec<String>,
}

/// What a row is, for its looks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Kind {
    #[default]
    User,
    Assistant,
    Tool,
    Bash,
    Compaction,
    Summary,
    /// A message of a plugin.
    Plugin,
    /// Anything else, by its type or role.
    Other(String),
}

impl Row {
    /// Whether it has siblings, so that a branch begins here.
    pub fn heads_branch(&self) -> bool {
        self.prefix.ends_with("─ ")
    }
}

/// A tree of rows with holes.
#[derive(Debug, Default)]
pub struct Rows {
    rows: BTreeMap<usize, Row>,
    total: usize,
    hidden: usize,
    revision: String,
    /// Whether a page has arrived since it was emptied.
    known: bool,
}

impl Rows {
    /// Takes a page in. Rows of another revision are no longer true and go; of too many, those farthest
    /// from `focus` go.
    pub fn insert(&mut self, page: TreePage, focus: usize) {
        if page.revision != self.revision || page.total != self.total {
            self.rows.clear();
        }
        self.revision = page.revision;
        self.total = page.total;
        self.hidden = page.hidden;
        self.known = true;
        let rows = page.rows.into_iter().enumerate();
        self.rows
            .extend(rows.map(|(at, row)| (page.offset + at, row)));
        self.forget_far(focus);
    }

    fn forget_far(&mut self, focus: usize) {
        while self.rows.len() > KEPT {
            let (Some(first), Some(last)) = (
                self.rows.first_key_value().map(|(at, _)| *at),
                self.rows.last_key_value().map(|(at, _)| *at),
            ) else {
                return;
            };
            let farthest = if focus.saturating_sub(first) > last.saturating_sub(focus) {
                first
            } else {
                last
            };
            self.rows.remove(&farthest);
        }
    }

    /// Nothing here is true any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn get(&self, at: usize) -> Option<&Row> {
        self.rows.get(&at)
    }

    /// The index of the first such row that is here.
    pub fn find(&self, is_it: impl Fn(&Row) -> bool) -> Option<usize> {
        let found = self.rows.iter().find(|(_, row)| is_it(row));
        found.map(|(at, _)| *at)
    }

    /// The first of these that are not here.
    pub fn missing(&self, wanted: Range<usize>) -> Option<Range<usize>> {
        let wanted = wanted.start..wanted.end.min(self.total);
        let first = wanted.clone().find(|at| !self.rows.contains_key(at))?;
        let end = (first..wanted.end).find(|at| self.rows.contains_key(at));
        Some(first..end.unwrap_or(wanted.end))
    }

    pub fn total(&self) -> usize {
        self.total
    }

    pub fn hidden(&self) -> usize {
        self.hidden
    }

    pub fn is_known(&self) -> bool {
        self.known
    }

    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Rows that are here.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(revision: &str, range: Range<usize>) -> TreePage {
        let row = |at| Row {
            id: format!("e{at}"),
            ..Row::default()
        };
        TreePage {
            offset: range.start,
            rows: range.map(row).collect(),
            total: 100_000,
            hidden: 0,
            revision: revision.into(),
            leaf: None,
            at: None,
            others: None,
        }
    }

    #[test]
    fn holes_are_found() {
        let mut rows = Rows::default();
        rows.insert(page("r", 10..20), 15);
        rows.insert(page("r", 30..40), 15);
        assert_eq!(rows.missing(12..18), None);
        assert_eq!(rows.missing(5..35), Some(5..10));
        assert_eq!(rows.missing(10..50), Some(20..30));
        assert_eq!(rows.missing(99_990..100_010), Some(99_990..100_000));
        assert_eq!(rows.find(|row| row.id == "e31"), Some(31));
    }

    #[test]
    fn rows_of_an_older_tree_go() {
        let mut rows = Rows::default();
        rows.insert(page("r", 0..10), 5);
        rows.insert(page("s", 50..60), 55);
        assert_eq!(rows.get(0), None);
        assert_eq!(rows.len(), 10);
    }

    #[test]
    fn what_is_kept_is_bounded_and_near() {
        let mut rows = Rows::default();
        for at in (0..100_000).step_by(500) {
            rows.insert(page("r", at..at + 500), at + 25);
            assert!(rows.get(at).is_some());
            assert!(rows.len() <= KEPT);
        }
    }
}
