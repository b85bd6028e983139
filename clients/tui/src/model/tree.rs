//! The tree: which rows are on the screen, which are asked for, and where the cursor is.
//!
//! Rows are fetched in pages around the view. When the tree changes, the page about the cursor's entry is
//! asked for again, so the cursor stays on its entry and the entry on its line of the screen; what is
//! drawn stays until the answer is here. At most one such question is under way.

use super::input::Input;
use super::rows::{Row, Rows};
use crate::message::{Effect, Failure, Filter, Place, TreePage, TreeQuery};
use std::ops::Range;

/// Rows of a page at least.
const PAGE: usize = 200;

/// Rows of a page while looking for the end of a branch.
const SEEK_PAGE: usize = 1000;

/// The tree of the open session.
#[derive(Debug)]
pub struct TreeView {
    pub rows: Rows,
    /// The row the user is at.
    pub cursor: usize,
    /// Its entry, once the row is here.
    cursor_id: Option<String>,
    /// The first row on the screen.
    pub top: usize,
    /// Rows on the screen.
    pub height: usize,
    pub filter: Filter,
    pub search: Input,
    /// Letters go into the search.
    pub typing: bool,
    pub folded: Vec<String>,
    pub label_times: bool,
    pub leaf: Option<String>,
    /// Entries to compare, at most two: id and what they say.
    pub marks: Vec<(String, String)>,
    /// Entries that others appended and the user has not gone to.
    pub news: usize,
    /// Where others are, if it is elsewhere.
    pub others_at: Option<String>,
    /// The entry whose row stands for that: theirs, or the nearest visible one above it.
    pub others_row: Option<String>,
    generation: u64,
    /// Where the next page about an entry shall lie.
    wanted: Option<Place>,
    /// Where the cursor is to go, until it is there.
    going: Option<Place>,
    /// The user has moved the cursor since a page about an entry was asked for.
    moved: bool,
    /// Such a page is under way.
    pub reloading: bool,
    /// Pages of rows that are under way.
    in_flight: Vec<Range<usize>>,
    seek: Option<Seek>,
    /// The entry the cursor was on when the search began.
    anchor: Option<String>,
}

/// Looking for the start or the end of a branch, perhaps beyond the rows that are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seek {
    /// The start of this branch, from this row upwards.
    Up(usize),
    /// The next branch point, from this row downwards.
    Down(usize),
}

impl TreeView {
    /// An empty tree that will show what this filter leaves.
    pub fn new(filter: Filter) -> Self {
        Self {
            rows: Rows::default(),
            cursor: 0,
            cursor_id: None,
            top: 0,
            height: 1,
            filter,
            search: Input::line(""),
            typing: false,
            folded: Vec::new(),
            label_times: false,
            leaf: None,
            marks: Vec::new(),
            news: 0,
            others_at: None,
            others_row: None,
            generation: 0,
            wanted: None,
            going: None,
            moved: false,
            reloading: false,
            in_flight: Vec::new(),
            seek: None,
            anchor: None,
        }
    }

    /// Where others are, if that is not where the conversation stands by now.
    pub fn others(&self) -> Option<&str> {
        let others = self.others_at.as_deref();
        others.filter(|at| self.leaf.as_deref() != Some(at))
    }

    pub fn selected(&self) -> Option<&Row> {
        self.rows.get(self.cursor)
    }

    pub fn is_seeking(&self) -> bool {
        self.seek.is_some()
    }

    /// The cursor is on its way to an entry that is not here yet.
    pub fn is_going(&self) -> bool {
        self.rows.is_known() && (self.going.is_some() || self.is_seeking())
    }

    /// The cursor stays where it is.
    pub fn stay(&mut self) {
        let here = self.cursor;
        self.move_to(here);
    }

    pub fn is_folded(&self, id: &str) -> bool {
        self.folded.iter().any(|folded| folded == id)
    }

    /// The row whose neighbours are needed most.
    fn focus(&self) -> usize {
        match self.seek {
            Some(Seek::Up(at) | Seek::Down(at)) => at,
            None => self.top + self.height / 2,
        }
    }

    /// Rows on the screen.
    pub fn view(&self) -> Range<usize> {
        self.top..self.top + self.height
    }

    // Questions.

    /// The tree, about the cursor's entry, for it has changed or is to be seen otherwise.
    pub fn reload(&mut self) -> Vec<Effect> {
        let id = self.anchor.clone().or_else(|| self.cursor_id.clone());
        let place = match (&self.going, id) {
            (Some(place), _) => place.clone(),
            (None, Some(id)) => Place::Around(id),
            (None, None) if self.rows.is_known() => Place::Offset(self.top),
            (None, None) => Place::Leaf,
        };
        self.ask_about(place)
    }

    /// The tree about `place`, the cursor going there.
    pub fn load(&mut self, place: Place) -> Vec<Effect> {
        self.going = Some(place.clone());
        self.ask_about(place)
    }

    /// The cursor to an entry: at once if its row is here, for the next key may be about it.
    pub fn go_to(&mut self, place: Place) -> Vec<Effect> {
        let at = match &place {
            Place::Leaf => self.rows.find(|row| row.is_leaf),
            Place::Around(id) => self.rows.find(|row| row.id == *id),
            Place::Offset(at) => Some(*at),
        };
        match at.filter(|_| !self.reloading) {
            Some(at) => {
                self.move_to(at);
                Vec::new()
            }
            None => self.load(place),
        }
    }

    fn ask_about(&mut self, place: Place) -> Vec<Effect> {
        self.generation += 1;
        self.moved = false;
        self.seek = None;
        self.in_flight.clear();
        self.wanted = Some(place);
        self.ask_wanted()
    }

    fn ask_wanted(&mut self) -> Vec<Effect> {
        if self.reloading {
            return Vec::new();
        }
        let Some(place) = self.wanted.take() else {
            return Vec::new();
        };
        self.reloading = true;
        let limit = self.page();
        vec![self.ask(place, limit, true)]
    }

    fn page(&self) -> usize {
        PAGE.max(3 * self.height)
    }

    fn ask(&self, place: Place, limit: usize, reload: bool) -> Effect {
        Effect::GetTree(TreeQuery {
            generation: self.generation,
            filter: self.filter,
            query: self.search.text().trim().to_owned(),
            folded: self.folded.clone(),
            place,
            limit,
            reload,
            others: self.others().filter(|_| reload).map(str::to_owned),
        })
    }

    /// What is missing around the view is asked for, unless it is under way.
    pub fn fill(&mut self) -> Vec<Effect> {
        if self.reloading || !self.rows.is_known() || self.in_flight.len() >= 2 {
            return Vec::new();
        }
        let wanted = match self.seek {
            Some(Seek::Up(at)) if self.rows.get(at).is_none() => {
                at.saturating_sub(SEEK_PAGE - 1)..at + 1
            }
            Some(Seek::Down(at)) if self.rows.get(at).is_none() => at..at + SEEK_PAGE,
            _ => {
                let margin = self.height;
                self.top.saturating_sub(margin)..self.top + self.height + margin
            }
        };
        let Some(missing) = self.rows.missing(wanted.clone()) else {
            return Vec::new();
        };
        // A whole page in the direction in which rows are missing.
        let seeking = self.is_seeking();
        let range = if seeking {
            wanted
        } else if missing.start > self.top {
            missing.start..missing.start + self.page()
        } else {
            let end = missing.end.max(self.top);
            end.saturating_sub(self.page())..end
        };
        if self
            .in_flight
            .iter()
            .any(|flight| flight.contains(&missing.start))
        {
            return Vec::new();
        }
        let effect = self.ask(Place::Offset(range.start), range.len(), false);
        self.in_flight.push(range);
        vec![effect]
    }

    // Answers.

    /// A page is here, or none will come; what to ask next. The error is for the user.
    pub fn arrived(
        &mut self,
        query: TreeQuery,
        result: Result<Box<TreePage>, Failure>,
    ) -> Result<Vec<Effect>, Failure> {
        if query.reload {
            self.reloading = false;
        }
        if query.generation != self.generation {
            return Ok(self.ask_wanted());
        }
        let asked_at = match query.place {
            Place::Offset(offset) => Some(offset),
            _ => None,
        };
        if !query.reload {
            self.in_flight.retain(|range| Some(range.start) != asked_at);
        }
        let page = match result {
            Ok(page) => *page,
            Err(failure) if failure.kind == "entryNotFound" && query.place != Place::Leaf => {
                // What was folded, or where the cursor was, is no longer in the file.
                self.folded.clear();
                self.going = None;
                self.cursor_id = None;
                self.anchor = None;
                return Ok(self.load(Place::Leaf));
            }
            Err(failure) => {
                self.going = None;
                self.seek = None;
                return Err(failure);
            }
        };
        self.leaf = page.leaf.clone();
        let at = page.at;
        if query.reload {
            self.others_row = page.others.clone();
            // The same tree, seen otherwise, has the same revision.
            self.rows.clear();
            self.rows.insert(page, self.focus());
            return Ok(self.arrive(at.or(asked_at.map(|_| self.cursor)), &query.place));
        }
        let moved_on = page.revision != self.rows.revision();
        self.rows.insert(page, self.focus());
        if moved_on {
            // The rows before and behind are of an older tree.
            return Ok(self.reload());
        }
        self.seek_on();
        Ok(Vec::new())
    }

    /// The page about an entry is here, and its row is `at`: the cursor goes there, unless the user has
    /// moved it since that was asked.
    fn arrive(&mut self, at: Option<usize>, place: &Place) -> Vec<Effect> {
        if !std::mem::take(&mut self.moved) {
            self.going = None;
            self.place_cursor(at.unwrap_or(0), *place == Place::Leaf);
            return Vec::new();
        }
        let Some(id) = self.cursor_id.clone() else {
            self.show_cursor();
            return Vec::new();
        };
        match self.rows.find(|row| row.id == id) {
            Some(at) => self.place_cursor(at, false),
            None => return self.reload(),
        }
        Vec::new()
    }

    /// What is under way will not be answered.
    pub fn abandon_questions(&mut self) {
        self.going = None;
        self.generation += 1;
        self.reloading = false;
        self.wanted = None;
        self.in_flight.clear();
        self.seek = None;
    }

    /// The cursor to row `at`, which keeps its line on the screen if it was on it before.
    fn place_cursor(&mut self, at: usize, centre: bool) {
        let line = if centre {
            self.height * 2 / 3
        } else {
            self.cursor.saturating_sub(self.top)
        };
        self.cursor = at;
        self.top = at.saturating_sub(line.min(self.height.saturating_sub(1)));
        self.show_cursor();
    }

    // Moves.

    /// Keeps the cursor in the tree and on the screen, and notes its entry.
    pub fn show_cursor(&mut self) {
        let total = self.rows.total();
        self.cursor = self.cursor.min(total.saturating_sub(1));
        self.top = super::scrolled(self.top, self.cursor, self.height, total);
        self.cursor_id = self.selected().map(|row| row.id.clone());
    }

    pub fn move_to(&mut self, to: usize) {
        self.cursor = to;
        self.moved = true;
        self.going = None;
        self.seek = None;
        self.anchor = None;
        self.show_cursor();
    }

    /// The view without the cursor, which follows at its edge.
    pub fn scroll(&mut self, lines: isize) {
        let last = self.rows.total().saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(lines).min(last);
        let bottom = (self.top + self.height).saturating_sub(1);
        let to = self.cursor.clamp(self.top, bottom);
        self.move_to(to);
    }

    /// Folds the branch that begins at the cursor, else goes to the start of the cursor's branch.
    pub fn fold_or_up(&mut self) -> Vec<Effect> {
        let Some(row) = self.selected() else {
            return Vec::new();
        };
        let begins = row.heads_branch() || row.parent.is_none();
        if begins && row.children > 0 && !self.is_folded(&row.id) {
            return self.toggle_fold();
        }
        if row.heads_branch()
            && let Some(parent) = row.parent.clone()
        {
            return self.go_to(Place::Around(parent));
        }
        self.seek = Some(Seek::Up(self.cursor.saturating_sub(1)));
        self.seek_on();
        Vec::new()
    }

    /// Unfolds, else goes to the next branch point's first branch.
    pub fn unfold_or_down(&mut self) -> Vec<Effect> {
        let Some(row) = self.selected() else {
            return Vec::new();
        };
        if self.is_folded(&row.id) {
            return self.toggle_fold();
        }
        self.seek = Some(Seek::Down(self.cursor));
        self.seek_on();
        Vec::new()
    }

    pub fn toggle_fold(&mut self) -> Vec<Effect> {
        let Some(row) = self.selected() else {
            return Vec::new();
        };
        let id = row.id.clone();
        if self.is_folded(&id) {
            self.folded.retain(|folded| *folded != id);
        } else if row.children > 0 {
            self.folded.push(id);
        } else {
            return Vec::new();
        }
        self.anchor = None;
        self.reload()
    }

    /// Goes on looking, as far as rows are here.
    fn seek_on(&mut self) {
        while let Some(seek) = self.seek {
            let at = match seek {
                Seek::Up(at) | Seek::Down(at) => at,
            };
            let Some(row) = self.rows.get(at) else {
                return;
            };
            match seek {
                Seek::Up(0) => self.move_to(0),
                Seek::Up(_) if row.heads_branch() || row.parent.is_none() => self.move_to(at),
                Seek::Up(_) => self.seek = Some(Seek::Up(at - 1)),
                Seek::Down(_) if row.children == 0 || self.is_folded(&row.id) => self.move_to(at),
                Seek::Down(_) if row.is_branch_point => self.move_to(at + 1),
                Seek::Down(_) => self.seek = Some(Seek::Down(at + 1)),
            }
        }
    }

    // Search and filter.

    pub fn set_filter(&mut self, filter: Filter) -> Vec<Effect> {
        self.filter = filter;
        self.reload()
    }

    /// The filter, or the default one if it is in force already.
    pub fn toggle_filter(&mut self, filter: Filter) -> Vec<Effect> {
        let same = self.filter == filter;
        self.set_filter(if same { Filter::Default } else { filter })
    }

    /// The search has other words.
    pub fn searched(&mut self) -> Vec<Effect> {
        if self.anchor.is_none() {
            self.anchor = self.cursor_id.clone();
        }
        self.reload()
    }

    /// Ends the search; false if there was none.
    pub fn clear_search(&mut self) -> Option<Vec<Effect>> {
        let was_typing = std::mem::take(&mut self.typing);
        if self.search.is_empty() {
            return was_typing.then(Vec::new);
        }
        self.search.clear();
        let effects = self.reload();
        self.anchor = None;
        Some(effects)
    }

    /// Marks the cursor's entry for comparing, or takes its mark away. Of three the first goes.
    pub fn toggle_mark(&mut self) {
        let Some(row) = self.rows.get(self.cursor) else {
            return;
        };
        let before = self.marks.len();
        self.marks.retain(|(id, _)| *id != row.id);
        if self.marks.len() < before {
            return;
        }
        if self.marks.len() == 2 {
            self.marks.remove(0);
        }
        self.marks.push((row.id.clone(), row.preview.clone()));
    }

    /// Why there is nothing to see; `None` if there is.
    pub fn emptiness(&self) -> Option<String> {
        if self.rows.total() > 0 {
            return None;
        }
        if !self.rows.is_known() {
            return Some("Reading the session…".to_owned());
        }
        let hidden = self.rows.hidden();
        let query = crate::text::line(self.search.text().trim());
        Some(match (query.is_empty(), hidden) {
            (_, 0) => "This session has no entries yet.".to_owned(),
            (false, _) => format!(
                "Nothing matches “{query}” among what the filter “{}” shows.",
                self.filter.name()
            ),
            (true, _) => match self.filter {
                Filter::Labeled => "No entry has a label.".to_owned(),
                Filter::UserOnly => "There is no user message.".to_owned(),
                _ => format!(
                    "The filter “{}” hides all {hidden} entries.",
                    self.filter.name()
                ),
            },
        })
    }
}

impl Filter {
    /// As the protocol and the status line call it.
    pub const fn name(self) -> &'static str {
        match self {
            Filter::Default => "default",
            Filter::NoTools => "no-tools",
            Filter::UserOnly => "user-only",
            Filter::Labeled => "labeled-only",
            Filter::All => "all",
        }
    }

    /// The next one in the cycle.
    pub const fn next(self) -> Self {
        match self {
            Filter::Default => Filter::NoTools,
            Filter::NoTools => Filter::UserOnly,
            Filter::UserOnly => Filter::Labeled,
            Filter::Labeled => Filter::All,
            Filter::All => Filter::Default,
        }
    }
}
