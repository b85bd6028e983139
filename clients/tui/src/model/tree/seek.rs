//! Moves the cursor to a row that may not be loaded yet: the start or the end of a branch, a hit, or a message of
//! a person.

use super::TreeView;
use crate::message::{Effect, PagePosition};
use std::ops::Range;

/// The number of rows on a page while such a row is searched.
const PAGE: usize = 1000;

/// The row that is searched, and the row at which the search has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seek {
    /// The start of this branch, from this row upwards.
    Up(usize),
    /// The next branch point, from this row downwards.
    Down(usize),
    /// The next hit, from this row downwards.
    NextHit(usize),
    /// The previous hit, from this row upwards.
    PreviousHit(usize),
    /// The next message of a person, from this row downwards.
    NextPrompt(usize),
    /// The previous message of a person, from this row upwards.
    PreviousPrompt(usize),
}

impl Seek {
    /// Returns the row that is examined next.
    pub(super) const fn row(self) -> usize {
        match self {
            Self::Up(at) | Self::Down(at) => at,
            Self::NextHit(at) | Self::PreviousHit(at) => at,
            Self::NextPrompt(at) | Self::PreviousPrompt(at) => at,
        }
    }

    /// Returns the rows that must be loaded for the search.
    pub(super) fn wanted(self) -> Range<usize> {
        let at = self.row();
        match self {
            Self::Up(_) | Self::PreviousHit(_) | Self::PreviousPrompt(_) => {
                at.saturating_sub(PAGE - 1)..at + 1
            }
            Self::Down(_) | Self::NextHit(_) | Self::NextPrompt(_) => at..at + PAGE,
        }
    }
}

impl TreeView {
    /// Closes the branch or the list that begins at the cursor. If neither begins at the cursor, moves to the start of
    /// the cursor's branch.
    pub fn fold_or_up(&mut self) -> Vec<Effect> {
        let Some(row) = self.selected() else {
            return Vec::new();
        };
        if !row.expanded_by.is_empty() {
            let ids = row.expanded_by.clone();
            return self.close(&ids);
        }
        if row.is_folded() && !row.listed_by.is_empty() {
            let ids = row.listed_by.clone();
            return self.unlist(&ids);
        }
        if row.heads_branch()
            && let Some(parent) = row.parent.clone()
        {
            return self.go_to(PagePosition::Around(parent));
        }
        self.seek = Some(Seek::Up(self.cursor.saturating_sub(1)));
        self.seek_on();
        Vec::new()
    }

    /// Opens a folded row. If the row is not folded, moves to the first branch of the next branch point.
    pub fn unfold_or_down(&mut self) -> Vec<Effect> {
        let Some(row) = self.selected() else {
            return Vec::new();
        };
        if row.is_folded() {
            return self.open_selected();
        }
        self.seek = Some(Seek::Down(self.cursor));
        self.seek_on();
        Vec::new()
    }

    /// Moves to the next or the previous message of a person. Returns whether there may be such a message.
    pub fn seek_prompt(&mut self, forward: bool) -> bool {
        let (cursor, total) = (self.cursor, self.rows.total());
        self.seek = match forward {
            true => (cursor + 1 < total).then_some(Seek::NextPrompt(cursor + 1)),
            false => cursor.checked_sub(1).map(Seek::PreviousPrompt),
        };
        self.seek_on();
        self.seek.is_some() || self.cursor != cursor
    }

    /// Returns whether rows are marked as hits of a search.
    pub fn has_hits(&self) -> bool {
        !self.search.text().trim().is_empty() || !self.found.is_empty()
    }

    /// Moves to the next or the previous hit. Returns whether there may be such a hit.
    pub fn seek_hit(&mut self, forward: bool) -> bool {
        self.typing = false;
        let (cursor, total) = (self.cursor, self.rows.total());
        self.seek = match forward {
            true => (cursor + 1 < total).then_some(Seek::NextHit(cursor + 1)),
            false => cursor.checked_sub(1).map(Seek::PreviousHit),
        };
        self.seek_on();
        self.seek.is_some() || self.cursor != cursor
    }

    /// Continues the search in the loaded rows.
    pub(super) fn seek_on(&mut self) {
        while let Some(seek) = self.seek {
            let at = seek.row();
            let Some(row) = self.rows.get(at) else {
                return;
            };
            // If the tree has a query, all rows are hits.
            let is_hit = !self.search.text().trim().is_empty() || self.found(row).is_some();
            let last = at + 1 >= self.rows.total();
            match seek {
                Seek::Up(0) => self.move_to(0),
                Seek::Up(_) if row.heads_branch() || row.parent.is_none() => self.move_to(at),
                Seek::Up(_) => self.seek = Some(Seek::Up(at - 1)),
                Seek::Down(_) if row.children == 0 || row.is_folded() => self.move_to(at),
                Seek::Down(_) if row.is_branch_point => self.move_to(at + 1),
                Seek::Down(_) => self.seek = Some(Seek::Down(at + 1)),
                Seek::NextHit(_) | Seek::PreviousHit(_) if is_hit => self.move_to(at),
                Seek::NextPrompt(_) | Seek::PreviousPrompt(_) if row.is_prompt() => {
                    self.move_to(at)
                }
                Seek::NextPrompt(_) => self.seek = (!last).then_some(Seek::NextPrompt(at + 1)),
                Seek::PreviousPrompt(_) => self.seek = at.checked_sub(1).map(Seek::PreviousPrompt),
                Seek::NextHit(_) => self.seek = (!last).then_some(Seek::NextHit(at + 1)),
                Seek::PreviousHit(_) => self.seek = at.checked_sub(1).map(Seek::PreviousHit),
            }
        }
    }
}
