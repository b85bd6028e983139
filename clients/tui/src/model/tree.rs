//! The tree: its visible rows, its requests, and the cursor.
//!
//! Rows are loaded in pages around the view. When the tree changes, the page around the entry of the cursor is
//! requested again, so that the cursor stays on its entry, and the entry stays on its line of the screen. The old rows
//! stay on the screen until the answer arrives. At most one such request is open.

mod seek;

use super::columns::EntryColumns;
use super::input::Input;
use super::rows::Rows;
use crate::marked::MarkedText;
use crate::message::Row;
use crate::message::{Effect, Failure, Filter, Folds, PagePosition, TreePage, TreeQuery};
use seek::Seek;
use std::collections::HashMap;
use std::ops::Range;

/// The fewest rows of a page.
const PAGE: usize = 200;

/// The tree of the open session.
#[derive(Debug)]
pub struct TreeView {
    pub rows: Rows,
    /// The index of the cursor's row.
    pub cursor: usize,
    /// The entry of the cursor, once its row is loaded.
    cursor_id: Option<String>,
    /// The first visible row.
    pub top: usize,
    /// The height of the pane.
    pub height: usize,
    /// The width for which guides are drawn.
    pub width: usize,
    /// The columns of guides in the last request.
    guides: usize,
    pub filter: Filter,
    pub search: Input,
    /// Whether letters go into the search.
    pub typing: bool,
    pub folds: Folds,
    /// Whether archived branches are shown.
    pub archived: bool,
    /// Whether the request asks for the names of the sessions that come from entries. The first request does not, so
    /// that the tree is shown before the daemon has read the list of sessions.
    names_sessions: bool,
    pub label_times: bool,
    pub leaf: Option<String>,
    pub columns: EntryColumns,
    /// The entries that are marked for comparing or copying, in the order of marking; id and preview.
    pub marks: Vec<(String, String)>,
    /// The number of new entries of other writers that the user has not seen.
    pub news: usize,
    /// The leaf of the session file, if this connection has another leaf.
    pub others_at: Option<String>,
    /// The row at which the leaf of the session file is shown: its own row, or the row of the nearest visible ancestor.
    pub others_row: Option<String>,
    generation: u64,
    /// The position of the next page that moves the cursor, if such a page is wanted.
    wanted: Option<PagePosition>,
    /// The position to which the cursor is going, until it has arrived.
    going: Option<PagePosition>,
    /// Whether the user has moved the cursor since the page that moves the cursor was requested.
    moved: bool,
    /// Whether a request is open whose answer replaces the rows.
    pub reloading: bool,
    /// The ranges of rows that were requested and have not arrived.
    in_flight: Vec<Range<usize>>,
    seek: Option<Seek>,
    /// The entry of the cursor when the search began.
    anchor: Option<String>,
    /// The matches of the search over all sessions in this session, by entry.
    found: HashMap<String, MarkedText>,
    /// The hit, if the tree is being opened at a hit.
    hit: Option<String>,
    /// An entry that must be shown, even if its branch would be folded.
    revealed: Option<String>,
}

impl TreeView {
    /// Makes an empty tree with this filter.
    pub fn new(filter: Filter) -> Self {
        Self {
            rows: Rows::default(),
            cursor: 0,
            cursor_id: None,
            top: 0,
            height: 1,
            width: 0,
            guides: 0,
            filter,
            search: Input::line(""),
            typing: false,
            folds: Folds::default(),
            archived: false,
            names_sessions: false,
            label_times: false,
            leaf: None,
            columns: EntryColumns::default(),
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
            found: HashMap::new(),
            hit: None,
            revealed: None,
        }
    }

    /// Returns the leaf of the session file, if this connection still has another leaf.
    pub fn others(&self) -> Option<&str> {
        let others = self.others_at.as_deref();
        others.filter(|at| self.leaf.as_deref() != Some(at))
    }

    pub fn selected(&self) -> Option<&Row> {
        self.rows.get(self.cursor)
    }

    /// Returns whether the cursor is on a row that stands for branches.
    pub fn is_at_folded(&self) -> bool {
        self.selected().is_some_and(Row::is_folded)
    }

    /// Returns the text of the row with the matches of a search.
    pub fn found<'a>(&'a self, row: &'a Row) -> Option<&'a MarkedText> {
        row.found.as_ref().or_else(|| self.found.get(&row.id))
    }

    /// Marks these matches of the search over all sessions; removes earlier marks.
    pub fn mark_found(&mut self, found: HashMap<String, MarkedText>) {
        self.found = found;
    }

    /// Loads the whole tree around a hit, and moves the cursor to the hit.
    pub fn open_at(&mut self, hit: String) -> Vec<Effect> {
        self.typing = false;
        self.search.clear();
        self.anchor = None;
        self.folds = Folds::default();
        self.hit = Some(hit.clone());
        self.revealed = Some(hit.clone());
        self.load(PagePosition::Around(hit))
    }

    pub fn is_seeking(&self) -> bool {
        self.seek.is_some()
    }

    /// Returns whether the cursor is going to a row that is not loaded yet.
    pub fn is_going(&self) -> bool {
        self.rows.is_known() && (self.going.is_some() || self.is_seeking())
    }

    /// Stops the cursor at its present row.
    pub fn stay(&mut self) {
        let here = self.cursor;
        self.move_to(here);
    }

    /// Returns the most columns of guides (protocol.md §6.3).
    fn guide_columns(&self) -> usize {
        self.width / 6
    }

    /// Returns the row around which rows must be loaded first.
    fn focus(&self) -> usize {
        match self.seek {
            Some(seek) => seek.row(),
            None => self.top + self.height / 2,
        }
    }

    /// Returns the range of visible rows.
    pub fn view(&self) -> Range<usize> {
        self.top..self.top + self.height
    }

    // Requests.

    /// Loads the tree around the entry of the cursor again. Call this after the tree, the filter or the search has
    /// changed.
    pub fn reload(&mut self) -> Vec<Effect> {
        let id = self.anchor.clone().or_else(|| self.cursor_id.clone());
        let place = match (&self.going, id) {
            (Some(place), _) => place.clone(),
            (None, Some(id)) => PagePosition::Around(id),
            (None, None) if self.rows.is_known() => PagePosition::Offset(self.top),
            (None, None) => PagePosition::Leaf,
        };
        self.ask_about(place)
    }

    /// Loads the tree around `place` and moves the cursor there.
    pub fn load(&mut self, place: PagePosition) -> Vec<Effect> {
        self.going = Some(place.clone());
        self.ask_about(place)
    }

    /// Moves the cursor to an entry. If its row is loaded, the cursor moves at once, since the next key may refer to
    /// the entry.
    pub fn go_to(&mut self, place: PagePosition) -> Vec<Effect> {
        let at = match &place {
            PagePosition::Leaf => self.rows.find(|row| row.is_leaf),
            PagePosition::Around(id) => self.rows.find(|row| row.id == *id),
            PagePosition::Offset(at) => Some(*at),
        };
        match at.filter(|_| !self.reloading) {
            Some(at) => {
                self.move_to(at);
                Vec::new()
            }
            None => {
                if let PagePosition::Around(id) = &place {
                    self.revealed = Some(id.clone());
                }
                self.load(place)
            }
        }
    }

    fn ask_about(&mut self, place: PagePosition) -> Vec<Effect> {
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
        self.guides = self.guide_columns();
        let limit = self.page();
        vec![self.ask(place, limit, true)]
    }

    fn page(&self) -> usize {
        PAGE.max(3 * self.height)
    }

    fn ask(&self, place: PagePosition, limit: usize, reload: bool) -> Effect {
        Effect::GetTree(TreeQuery {
            generation: self.generation,
            filter: self.filter,
            query: self.search.text().trim().to_owned(),
            folds: self.folds_with_others(),
            archived: self.archived,
            sessions: self.names_sessions,
            guide_columns: self.guides,
            place,
            limit,
            reload,
            others: self.others().filter(|_| reload).map(str::to_owned),
        })
    }

    /// Returns the folds. The branch to which other programs append is open.
    fn folds_with_others(&self) -> Folds {
        let mut folds = self.folds.clone();
        folds.expand.extend(self.others().map(str::to_owned));
        folds
    }

    /// Requests those rows around the view that are neither loaded nor requested.
    pub fn fill(&mut self) -> Vec<Effect> {
        if self.reloading || !self.rows.is_known() || self.in_flight.len() >= 2 {
            return Vec::new();
        }
        if self.guides != self.guide_columns() {
            return self.reload();
        }
        let wanted = match self.seek {
            Some(seek) if self.rows.get(seek.row()).is_none() => seek.wanted(),
            _ => {
                let margin = self.height;
                self.top.saturating_sub(margin)..self.top + self.height + margin
            }
        };
        let Some(missing) = self.rows.missing(wanted.clone()) else {
            return Vec::new();
        };
        // A whole page is requested, in the direction in which rows are missing.
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
        let effect = self.ask(PagePosition::Offset(range.start), range.len(), false);
        self.in_flight.push(range);
        vec![effect]
    }

    // Answers.

    /// Handles a page or a failure. Returns the next requests; the error is for the user.
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
            PagePosition::Offset(offset) => Some(offset),
            _ => None,
        };
        if !query.reload {
            self.in_flight.retain(|range| Some(range.start) != asked_at);
        }
        let page = match result {
            Ok(page) => *page,
            Err(failure)
                if failure.kind == "entryNotFound" && query.place != PagePosition::Leaf =>
            {
                // An entry in the folds, or the entry of the cursor, is no longer in the file.
                self.folds = Folds::default();
                self.revealed = None;
                self.going = None;
                self.hit = None;
                self.cursor_id = None;
                self.anchor = None;
                return Ok(self.load(PagePosition::Leaf));
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
            // The revision is the same for another filter or search of the same tree, so it cannot distinguish the
            // rows.
            self.rows.clear();
            self.rows.insert(page, self.focus());
            let effects = self.arrive(at.or(asked_at.map(|_| self.cursor)), &query.place);
            if effects.is_empty() && !std::mem::replace(&mut self.names_sessions, true) {
                return Ok(self.reload());
            }
            return Ok(effects);
        }
        let moved_on = page.revision != self.rows.revision();
        self.rows.insert(page, self.focus());
        if moved_on {
            // The page belongs to a newer tree than the rows that are loaded.
            return Ok(self.reload());
        }
        self.seek_on();
        Ok(Vec::new())
    }

    /// Moves the cursor to row `at` of the requested page, unless the user has moved the cursor since the request.
    fn arrive(&mut self, at: Option<usize>, place: &PagePosition) -> Vec<Effect> {
        if !std::mem::take(&mut self.moved) {
            self.going = None;
            let centre = *place == PagePosition::Leaf || self.hit.is_some();
            self.place_cursor(at.unwrap_or(0), centre);
            if let Some(id) = self.revealed.take()
                && self.selected().is_some_and(Row::is_folded)
            {
                self.folds.expand.push(id.clone());
                return self.load(PagePosition::Around(id));
            }
            return self.reveal_hit();
        }
        self.hit = None;
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

    /// If the filter hides the hit at which the tree is opened, shows all entries.
    fn reveal_hit(&mut self) -> Vec<Effect> {
        let Some(hit) = self.hit.take() else {
            return Vec::new();
        };
        if self.filter == Filter::All || self.cursor_id.as_ref() == Some(&hit) {
            return Vec::new();
        }
        self.filter = Filter::All;
        self.hit = Some(hit.clone());
        self.revealed = Some(hit.clone());
        self.load(PagePosition::Around(hit))
    }

    /// Call this if the open requests will get no answers.
    pub fn abandon_questions(&mut self) {
        self.going = None;
        self.generation += 1;
        self.reloading = false;
        self.wanted = None;
        self.in_flight.clear();
        self.seek = None;
    }

    /// Moves the cursor to row `at`. If the cursor was visible, its row is drawn on the same line of the screen, unless
    /// `centre` is set.
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

    // Cursor and folds.

    /// Keeps the cursor within the tree and visible, and remembers its entry.
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

    /// Scrolls the view. The cursor moves only if it would not be visible otherwise.
    pub fn scroll(&mut self, lines: isize) {
        let last = self.rows.total().saturating_sub(self.height);
        self.top = self.top.saturating_add_signed(lines).min(last);
        let bottom = (self.top + self.height).saturating_sub(1);
        let to = self.cursor.clamp(self.top, bottom);
        self.move_to(to);
    }

    /// Opens the branches of the row, or closes the branch that the row is in. `None` if the row is in no branch that
    /// can be closed.
    pub fn toggle_fold(&mut self) -> Option<Vec<Effect>> {
        let row = self.selected()?;
        if row.is_folded() {
            return Some(self.open_selected());
        }
        let indent = row.indent;
        let mut at = self.cursor;
        loop {
            let row = self.rows.get(at)?;
            if row.heads_branch() && row.indent == indent {
                break;
            }
            at = at.checked_sub(1)?;
        }
        let head = self
            .rows
            .get(at)
            .filter(|row| !row.expanded_by.is_empty())?;
        let ids = head.expanded_by.clone();
        self.move_to(at);
        Some(self.close(&ids))
    }

    /// Opens the branch of a folded row. If the row stands for several branches, lists them.
    pub(super) fn open_selected(&mut self) -> Vec<Effect> {
        let Some(row) = self.selected().filter(|row| row.is_folded()) else {
            return Vec::new();
        };
        let (id, branches) = (row.id.clone(), row.branches);
        match branches {
            1 => self.folds.expand.push(id),
            _ => self.folds.each.push(id),
        }
        self.anchor = None;
        self.reload()
    }

    /// Closes the branches that are open because of these ids.
    pub(super) fn close(&mut self, ids: &[String]) -> Vec<Effect> {
        self.folds.expand.retain(|id| !ids.contains(id));
        self.anchor = None;
        self.reload()
    }

    /// Folds the branches of a fork into one row again.
    pub(super) fn unlist(&mut self, ids: &[String]) -> Vec<Effect> {
        self.folds.each.retain(|id| !ids.contains(id));
        self.anchor = None;
        self.reload()
    }

    /// Opens all branches, or folds the branches that the leaf has left.
    pub fn toggle_all(&mut self) -> Vec<Effect> {
        self.folds = Folds {
            open_all: !self.folds.open_all,
            ..Folds::default()
        };
        self.reload()
    }

    /// Shows archived branches, or hides them.
    pub fn toggle_archived(&mut self) -> Vec<Effect> {
        self.archived = !self.archived;
        self.reload()
    }

    // Search and filter.

    pub fn set_filter(&mut self, filter: Filter) -> Vec<Effect> {
        self.filter = filter;
        self.reload()
    }

    /// Sets the filter. If it is set already, sets the default filter.
    pub fn toggle_filter(&mut self, filter: Filter) -> Vec<Effect> {
        let same = self.filter == filter;
        self.set_filter(if same { Filter::Default } else { filter })
    }

    /// Searches again after the text of the search has changed.
    pub fn searched(&mut self) -> Vec<Effect> {
        if self.anchor.is_none() {
            self.anchor = self.cursor_id.clone();
        }
        self.reload()
    }

    /// Ends the search; `None` if there is none.
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

    /// Marks the entry of the cursor, or removes its mark. A third mark replaces the first one.
    pub fn toggle_mark(&mut self) {
        let Some(row) = self.rows.get(self.cursor) else {
            return;
        };
        let before = self.marks.len();
        self.marks.retain(|(id, _)| *id != row.id);
        if self.marks.len() < before {
            return;
        }
        self.marks.push((row.id.clone(), row.preview.clone()));
    }

    /// Returns the reason why the tree is empty; `None` if it is not empty.
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
                _ => "No messages yet.".to_owned(),
            },
        })
    }
}

impl Filter {
    /// Returns the name in the protocol and in the status line.
    pub const fn name(self) -> &'static str {
        match self {
            Filter::Default => "default",
            Filter::NoTools => "no-tools",
            Filter::UserOnly => "user-only",
            Filter::Labeled => "labeled-only",
            Filter::All => "all",
        }
    }

    /// Returns the next filter in the cycle.
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
