//! The loaded rows of the tree. For a tree of any size, only rows around the view are loaded.

use crate::message::{Row, TreePage};
use std::collections::BTreeMap;
use std::ops::Range;

/// The most rows that are kept. The rows farthest from the view are dropped first.
const KEPT: usize = 4000;

/// The rows of a tree; some of them are not loaded.
#[derive(Debug, Default)]
pub struct Rows {
    rows: BTreeMap<usize, Row>,
    total: usize,
    hidden: usize,
    archived_branches: usize,
    shed_branches: usize,
    revision: String,
    /// Whether a page has arrived since the last call of `clear`.
    known: bool,
}

impl Rows {
    /// Adds a page. Drops the rows of another revision. If there are then too many rows, also drops the rows farthest
    /// from `focus`.
    pub fn insert(&mut self, page: TreePage, focus: usize) {
        if page.revision != self.revision || page.total != self.total {
            self.rows.clear();
        }
        self.revision = page.revision;
        self.total = page.total;
        self.hidden = page.hidden;
        self.archived_branches = page.archived_branches;
        self.shed_branches = page.shed_branches;
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

    /// Drops all rows.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub fn get(&self, at: usize) -> Option<&Row> {
        self.rows.get(&at)
    }

    /// Returns the index of the first loaded row for which `is_it` is true.
    pub fn find(&self, is_it: impl Fn(&Row) -> bool) -> Option<usize> {
        let found = self.rows.iter().find(|(_, row)| is_it(row));
        found.map(|(at, _)| *at)
    }

    /// Returns the first range within `wanted` that is not loaded.
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

    /// Returns the number of archived branches, whether they are shown or not.
    pub fn archived_branches(&self) -> usize {
        self.archived_branches
    }

    /// The number of branches in the cold file.
    pub fn shed_branches(&self) -> usize {
        self.shed_branches
    }

    pub fn is_known(&self) -> bool {
        self.known
    }

    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Returns the number of loaded rows.
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
            archived_branches: 0,
            shed_branches: 0,
            revision: revision.into(),
            leaf: None,
            at: None,
            others: None,
        }
    }

    #[test]
    fn missing_rows_are_found() {
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
    fn rows_of_an_older_revision_are_dropped() {
        let mut rows = Rows::default();
        rows.insert(page("r", 0..10), 5);
        rows.insert(page("s", 50..60), 55);
        assert_eq!(rows.get(0), None);
        assert_eq!(rows.len(), 10);
    }

    #[test]
    fn the_kept_rows_are_limited_and_near_the_focus() {
        let mut rows = Rows::default();
        for at in (0..100_000).step_by(500) {
            rows.insert(page("r", at..at + 500), at + 25);
            assert!(rows.get(at).is_some());
            assert!(rows.len() <= KEPT);
        }
    }
}
