//! The search over all sessions: the query, the hits by session, and the cursor.
//!
//! Each change of the query starts a new search, which stops the running one. Hits appear as they are found; the
//! answer then brings them in order. Until the first hit or the answer, the old hits stay on the screen.

use super::input::Input;
use crate::marked::MarkedText;
use crate::message::{Effect, Failure, Hit, HitPage, SearchQuery};
use std::collections::HashMap;

/// Hits of a page.
const PAGE: usize = 200;

/// The search over all sessions.
#[derive(Debug)]
pub struct SearchView {
    pub input: Input,
    /// Whether only sessions of the working directory are searched.
    pub here: bool,
    groups: Vec<HitGroup>,
    /// The cursor's hit, counted over all groups.
    pub cursor: usize,
    /// The first visible line.
    pub top: usize,
    /// The height of the pane.
    pub height: usize,
    /// Whether a search is running.
    pub searching: bool,
    /// The number of hits of all pages, known at the end of the search.
    pub total: usize,
    /// The number of sessions with hits.
    pub sessions: usize,
    /// Whether there may be more hits and sessions than counted.
    pub at_least: bool,
    /// The number of files that could not be searched.
    pub unread: usize,
    /// The reason why the query cannot be searched.
    pub failure: Option<String>,
    next: Option<String>,
    generation: u64,
    /// Whether the hits are those of an older query.
    stale: bool,
    /// Whether the running search is for the next page.
    paging: bool,
    /// Whether the user has moved the cursor since the query has changed.
    moved: bool,
}

/// The hits of a session.
#[derive(Debug)]
struct HitGroup {
    session_id: String,
    session_name: String,
    hits: Vec<Hit>,
}

/// A line of the list of hits.
#[derive(Debug)]
pub enum HitLine<'a> {
    /// The session of the following hits: its name and the number of hits.
    Session(&'a str, usize),
    /// A hit, with its index.
    Hit(usize, &'a Hit),
}

/// The hit at which a session is opened.
#[derive(Debug)]
pub struct OpeningHit {
    pub entry_id: String,
    /// By entry, all that was found in the session.
    pub found: HashMap<String, MarkedText>,
}

impl SearchView {
    pub fn new() -> Self {
        Self {
            input: Input::line(""),
            here: false,
            groups: Vec::new(),
            cursor: 0,
            top: 0,
            height: 1,
            searching: false,
            total: 0,
            sessions: 0,
            at_least: false,
            unread: 0,
            failure: None,
            next: None,
            generation: 0,
            stale: false,
            paging: false,
            moved: false,
        }
    }

    /// Returns the lines of the list: each session, then its hits.
    pub fn lines(&self) -> impl Iterator<Item = HitLine<'_>> {
        let mut first = 0;
        self.groups.iter().flat_map(move |group| {
            let begin = first;
            first += group.hits.len();
            let hits = group.hits.iter().enumerate();
            let hits = hits.map(move |(at, hit)| HitLine::Hit(begin + at, hit));
            let session = HitLine::Session(&group.session_name, group.hits.len());
            std::iter::once(session).chain(hits)
        })
    }

    fn hits(&self) -> impl Iterator<Item = &Hit> {
        self.groups.iter().flat_map(|group| &group.hits)
    }

    /// Returns whether there are hits that are not loaded.
    pub fn has_more(&self) -> bool {
        self.total > self.count()
    }

    /// Returns the number of loaded hits.
    pub fn count(&self) -> usize {
        self.groups.iter().map(|group| group.hits.len()).sum()
    }

    pub fn selected(&self) -> Option<&Hit> {
        self.hits().nth(self.cursor)
    }

    /// Returns the cursor's hit, and what was found in its session.
    pub fn opening(&self) -> Option<(String, OpeningHit)> {
        let hit = self.selected()?;
        let same = self
            .hits()
            .filter(|other| other.session_id == hit.session_id);
        let found = same.map(|other| (other.entry_id.clone(), other.excerpt.clone()));
        let opening = OpeningHit {
            entry_id: hit.entry_id.clone(),
            found: found.collect(),
        };
        Some((hit.session_id.clone(), opening))
    }

    /// The query or the scope has changed.
    pub fn changed(&mut self) -> Vec<Effect> {
        self.generation += 1;
        self.failure = None;
        self.moved = false;
        if self.input.text().trim().is_empty() {
            self.clear();
            return self.stop();
        }
        self.stale = true;
        vec![self.ask(None)]
    }

    /// Stops the running search.
    pub fn stop(&mut self) -> Vec<Effect> {
        self.generation += 1;
        let was_searching = std::mem::take(&mut self.searching);
        was_searching
            .then_some(Effect::StopSearch)
            .into_iter()
            .collect()
    }

    /// The running search gets no answer.
    pub fn abandon(&mut self) {
        self.generation += 1;
        self.searching = false;
    }

    fn ask(&mut self, cursor: Option<String>) -> Effect {
        self.searching = true;
        self.paging = cursor.is_some();
        self.next = None;
        Effect::Search(SearchQuery {
            generation: self.generation,
            query: self.input.text().trim().to_owned(),
            here: self.here,
            cursor,
            limit: PAGE,
        })
    }

    fn clear(&mut self) {
        self.groups.clear();
        self.stale = false;
        self.next = None;
        (self.cursor, self.top) = (0, 0);
        (self.total, self.sessions, self.unread) = (0, 0, 0);
    }

    /// Takes a hit of the running search. Those of a further page are in its answer.
    pub fn hit(&mut self, generation: u64, hit: Hit) {
        if generation != self.generation || self.paging {
            return;
        }
        if self.stale {
            self.clear();
        }
        let place = self.cursor_place();
        add(&mut self.groups, 0, hit);
        self.sessions = self.groups.len();
        self.at_least = false;
        self.restore(place);
    }

    /// Takes the end of a search. The error is for the user.
    pub fn ended(
        &mut self,
        generation: u64,
        result: Result<HitPage, Failure>,
    ) -> Result<(), Failure> {
        if generation != self.generation {
            return Ok(());
        }
        self.searching = false;
        let page = match result {
            Ok(page) => page,
            Err(failure) => {
                self.clear();
                if failure.kind != "invalidParams" {
                    return Err(failure);
                }
                self.failure = Some(failure.message);
                return Ok(());
            }
        };
        let place = self.cursor_place();
        // The hits of further pages are less relevant: they follow, even if their session is there already.
        let mut first = self.groups.len();
        if !self.paging {
            if self.stale {
                self.clear();
            }
            self.groups.clear();
            first = 0;
        }
        for hit in page.hits {
            add(&mut self.groups, first, hit);
        }
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        self.total = count(page.total);
        self.sessions = count(page.sessions);
        self.at_least = page.at_least;
        self.unread = page.unread;
        self.next = page.next;
        self.restore(place);
        Ok(())
    }

    /// Returns the cursor's hit if the user has chosen it.
    fn cursor_place(&self) -> Option<(String, String)> {
        let hit = self.selected().filter(|_| self.moved && !self.stale)?;
        Some((hit.session_id.clone(), hit.entry_id.clone()))
    }

    fn restore(&mut self, place: Option<(String, String)>) {
        if let Some((session_id, entry_id)) = place {
            let is_it = |hit: &Hit| hit.session_id == session_id && hit.entry_id == entry_id;
            let at = self.hits().position(is_it);
            self.cursor = at.unwrap_or(self.cursor);
        }
        self.show_cursor();
    }

    pub fn move_to(&mut self, to: usize) {
        self.cursor = to;
        self.moved = true;
        self.show_cursor();
    }

    /// Requests more hits if the cursor is close to the last one.
    pub fn fill(&mut self) -> Vec<Effect> {
        let is_close = self.cursor + self.height >= self.count();
        let next = self.next.take_if(|_| is_close && !self.searching);
        next.map(|cursor| self.ask(Some(cursor)))
            .into_iter()
            .collect()
    }

    /// Moves the cursor to the hit on a line of the pane. Returns whether there is one.
    pub fn click(&mut self, line: usize) -> bool {
        let hit = match self.lines().nth(self.top + line) {
            Some(HitLine::Hit(at, _)) => at,
            _ => return false,
        };
        self.cursor = hit;
        self.moved = true;
        true
    }

    /// Keeps the cursor inside the list and visible, together with the session above the first hit.
    pub fn show_cursor(&mut self) {
        self.cursor = self.cursor.min(self.count().saturating_sub(1));
        let is_cursor = |line: HitLine| matches!(line, HitLine::Hit(at, _) if at == self.cursor);
        let line = self.lines().position(is_cursor).unwrap_or(0);
        let total = self.groups.len() + self.count();
        self.top = super::scrolled(self.top, line, self.height, total);
        let begins = line
            .checked_sub(1)
            .and_then(|above| self.lines().nth(above));
        if matches!(begins, Some(HitLine::Session(..))) && self.height > 1 {
            self.top = self.top.min(line - 1);
        }
    }

    /// Returns why the list is empty; `None` if it is not.
    pub fn emptiness(&self) -> Option<String> {
        if !self.groups.is_empty() {
            return None;
        }
        Some(match (&self.failure, self.searching) {
            (Some(_), _) => "This cannot be searched.".to_owned(),
            (None, true) => "Searching…".to_owned(),
            (None, false) if self.input.text().trim().is_empty() => {
                "Type words to find in all sessions; \"…\" is a phrase, /…/ a regular expression."
                    .to_owned()
            }
            (None, false) => {
                let place = if self.here { "of this directory " } else { "" };
                let query = crate::text::line(self.input.text().trim());
                format!("Nothing in the sessions {place}matches “{query}”.")
            }
        })
    }
}

impl Default for SearchView {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds a hit to the group of its session among the groups from `first` on.
fn add(groups: &mut Vec<HitGroup>, first: usize, hit: Hit) {
    let mut later = groups.iter_mut().skip(first);
    match later.find(|group| group.session_id == hit.session_id) {
        Some(group) => group.hits.push(hit),
        None => groups.push(HitGroup {
            session_id: hit.session_id.clone(),
            session_name: hit.session_name.clone(),
            hits: vec![hit],
        }),
    }
}
