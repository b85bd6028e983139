//! The search over all sessions: the query, the hits by session, and the cursor.
//!
//! Each change of the query starts a new search, which stops the running one. Hits appear when they are found; the
//! answer at the end has all of them in order. Until the first hit or the answer arrives, the old hits stay on the
//! screen.

use super::input::Input;
use crate::marked::MarkedText;
use crate::message::{
    CompletionQuery, Effect, Failure, Hit, HitPage, NearWord, QueryCompletion, SearchMode,
    SearchQuery,
};
use std::collections::HashMap;

/// The number of hits on a page.
const PAGE: usize = 200;

/// The search over all sessions.
#[derive(Debug)]
pub struct SearchView {
    pub input: Input,
    /// Whether only sessions of the working directory are searched.
    pub here: bool,
    pub mode: SearchMode,
    /// The id and the name of the only session that is searched; `None` if all sessions are searched.
    pub within: Option<(String, String)>,
    groups: Vec<HitGroup>,
    near: Vec<NearWord>,
    /// The texts that can complete the word at the cursor of the query.
    pub completion: QueryCompletion,
    /// The cursor: an index into the lines that can be chosen.
    pub cursor: usize,
    /// The first visible line.
    pub top: usize,
    /// The height of the pane.
    pub height: usize,
    /// Whether a search is running.
    pub searching: bool,
    /// The number of hits on all pages. It is known at the end of the search.
    pub total: usize,
    /// The number of sessions with hits.
    pub sessions: usize,
    /// Whether there may be more hits and sessions than were counted.
    pub at_least: bool,
    /// The number of files that could not be searched.
    pub unread: usize,
    /// The reason why the query cannot be searched.
    pub failure: Option<String>,
    /// The number of characters of the query before its fault. White space at the start of the query is not counted.
    pub fault: Option<usize>,
    next: Option<String>,
    generation: u64,
    /// Whether the hits belong to an older query.
    stale: bool,
    /// Whether the running search is for the next page.
    paging: bool,
    /// Whether the user has moved the cursor since the query changed.
    moved: bool,
    /// Whether the ranking of the hits must be requested again.
    expired: bool,
}

/// The hits in one session.
#[derive(Debug)]
struct HitGroup {
    session_id: String,
    session_name: String,
    hits: Vec<Hit>,
    /// The number of entries in the session that have words of the question and are not among the hits.
    more: u64,
}

/// A line of the list of hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HitLine<'a> {
    /// A word that occurs in no entry, and a similar word. The line can be chosen.
    Near(&'a NearWord),
    /// The session of the hits below: its name, and the number of these hits.
    Session(&'a str, usize),
    /// A hit. The line can be chosen.
    Hit(&'a Hit),
    /// Why the branch of the hit above was left, or what was tried instead.
    Left(&'a Hit),
    /// A session with more entries: its id, its name, and their number. The line can be chosen.
    More(&'a str, &'a str, u64),
}

impl HitLine<'_> {
    const fn can_be_chosen(&self) -> bool {
        match self {
            Self::Near(near) => near.near.is_some(),
            _ => matches!(self, Self::Hit(_) | Self::More(..)),
        }
    }
}

/// The hit at which a session is opened.
#[derive(Debug)]
pub struct OpeningHit {
    pub entry_id: String,
    /// The matches in the session, by entry.
    pub found: HashMap<String, MarkedText>,
}

impl SearchView {
    pub fn new() -> Self {
        Self {
            input: Input::line(""),
            here: false,
            mode: SearchMode::Ask,
            within: None,
            groups: Vec::new(),
            near: Vec::new(),
            completion: QueryCompletion::default(),
            cursor: 0,
            top: 0,
            height: 1,
            searching: false,
            total: 0,
            sessions: 0,
            at_least: false,
            unread: 0,
            failure: None,
            fault: None,
            next: None,
            generation: 0,
            stale: false,
            paging: false,
            moved: false,
            expired: false,
        }
    }

    /// Returns the lines of the list: similar words, then each session with its hits. A line that can be chosen has its
    /// index among these lines.
    pub fn lines(&self) -> impl Iterator<Item = (Option<usize>, HitLine<'_>)> {
        let near = self.near.iter();
        let near = near.map(HitLine::Near);
        let groups = self.groups.iter().flat_map(|group| {
            let hits = group.hits.iter().flat_map(|hit| {
                let story = hit.reason.is_some() || hit.instead.is_some();
                let left = story || hit.left_here.is_some();
                std::iter::once(HitLine::Hit(hit)).chain(left.then_some(HitLine::Left(hit)))
            });
            let (id, name) = (&group.session_id, &group.session_name);
            let more = (group.more > 0).then_some(HitLine::More(id, name, group.more));
            std::iter::once(HitLine::Session(name, group.hits.len()))
                .chain(hits)
                .chain(more)
        });
        let mut place = 0;
        near.chain(groups).map(move |line| {
            let at = line.can_be_chosen().then_some(place);
            place += usize::from(at.is_some());
            (at, line)
        })
    }

    /// Returns the lines that can be chosen.
    fn choices(&self) -> impl Iterator<Item = HitLine<'_>> {
        let lines = self.lines().filter(|(at, _)| at.is_some());
        lines.map(|(_, line)| line)
    }

    /// Returns the line at the cursor.
    pub fn chosen(&self) -> Option<HitLine<'_>> {
        self.choices().nth(self.cursor)
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

    /// Returns the hit at the cursor.
    pub fn selected(&self) -> Option<&Hit> {
        match self.chosen()? {
            HitLine::Hit(hit) => Some(hit),
            _ => None,
        }
    }

    /// Returns the number of the hit at the cursor, or of the last hit before it. The first hit has the number 1.
    pub fn position(&self) -> usize {
        let up_to = self.choices().take(self.cursor + 1);
        up_to.filter(|line| matches!(line, HitLine::Hit(_))).count()
    }

    /// Returns the entry of the hit at the cursor, and the matches in its session.
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

    /// Starts a new search after the query or the scope has changed.
    pub fn changed(&mut self) -> Vec<Effect> {
        self.generation += 1;
        (self.failure, self.fault) = (None, None);
        self.moved = false;
        self.completion = QueryCompletion::default();
        if self.input.text().trim().is_empty() {
            self.clear();
            return self.stop();
        }
        self.stale = true;
        let mut effects = vec![self.ask(None)];
        effects.extend(self.complete());
        effects
    }

    /// Requests completions, if the query is in the language of filters and the cursor is at the end of a word.
    fn complete(&self) -> Option<Effect> {
        let query = self.input.text();
        let before = query.get(..self.input.cursor()).unwrap_or_default();
        let in_word = !before.ends_with(char::is_whitespace) && !before.is_empty();
        (self.mode.has_filters() && in_word).then(|| {
            Effect::CompleteQuery(CompletionQuery {
                generation: self.generation,
                query: query.to_owned(),
                position: before.chars().count(),
            })
        })
    }

    /// Stores the completions.
    pub fn completed(&mut self, generation: u64, completion: QueryCompletion) {
        if generation == self.generation {
            self.completion = completion;
        }
    }

    /// Replaces the word before the cursor with the first completion. Returns whether there is a completion.
    pub fn take_completion(&mut self) -> bool {
        let QueryCompletion { start, items } = std::mem::take(&mut self.completion);
        let Some((text, _)) = items.first() else {
            return false;
        };
        self.input.replace_before(start, text);
        true
    }

    /// Replaces a word that occurs in no entry with a similar word.
    pub fn take_near(&mut self, word: &str, near: &str) -> Vec<Effect> {
        let query = self.input.text();
        // The daemon ignores the case of words, so the word may be written differently in the query.
        let at = (query.to_lowercase().find(word)).filter(|_| query.is_ascii());
        let query = match at.and_then(|at| Some((query.get(..at)?, query.get(at + word.len()..)?)))
        {
            Some((before, behind)) => format!("{before}{near}{behind}"),
            None => query.replace(word, near),
        };
        self.input = Input::line(&query);
        self.changed()
    }

    /// From now on, searches only one session, or all sessions.
    pub fn search_within(&mut self, session: Option<(String, String)>) -> Vec<Effect> {
        self.within = session;
        self.changed()
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

    /// Call this if the running search will get no answer.
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
            mode: self.mode,
            session_id: self.within.as_ref().map(|(id, _)| id.clone()),
            here: self.here,
            cursor,
            limit: PAGE,
        })
    }

    fn clear(&mut self) {
        self.groups.clear();
        self.near.clear();
        self.stale = false;
        self.next = None;
        (self.cursor, self.top) = (0, 0);
        (self.total, self.sessions, self.unread) = (0, 0, 0);
    }

    /// Adds a hit of the running search. The hits of further pages are ignored here, since the answer has them.
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

    /// Handles the end of a search. The error is for the user.
    pub fn ended(
        &mut self,
        generation: u64,
        result: Result<HitPage, Failure>,
        fault: Option<usize>,
    ) -> Result<(), Failure> {
        if generation != self.generation {
            return Ok(());
        }
        self.searching = false;
        let page = match result {
            Ok(page) => page,
            // The daemon does not keep this ranking any more, so the first page is requested again.
            Err(failure) if failure.kind == "cursorExpired" => {
                self.expired = true;
                return Ok(());
            }
            Err(failure) => {
                self.clear();
                if failure.kind != "invalidParams" {
                    return Err(failure);
                }
                (self.failure, self.fault) = (Some(failure.message), fault);
                return Ok(());
            }
        };
        let place = self.cursor_place();
        // The hits of further pages are less relevant. They come after the hits of earlier pages, even if their session
        // is in the list already.
        let mut first = self.groups.len();
        if !self.paging {
            if self.stale {
                self.clear();
            }
            self.groups.clear();
            self.near = page.near;
            first = 0;
        }
        for hit in page.hits {
            add(&mut self.groups, first, hit);
        }
        for (session_id, count) in page.more {
            let mut groups = self.groups.iter_mut();
            if let Some(group) = groups.find(|group| group.session_id == session_id) {
                group.more = count;
            }
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

    /// Returns the hit at the cursor, if the user has moved the cursor there.
    fn cursor_place(&self) -> Option<(String, String)> {
        let hit = self.selected().filter(|_| self.moved && !self.stale)?;
        Some((hit.session_id.clone(), hit.entry_id.clone()))
    }

    fn restore(&mut self, place: Option<(String, String)>) {
        let is_it = |line: HitLine| match (line, &place) {
            (HitLine::Hit(hit), Some((session_id, entry_id))) => {
                hit.session_id == *session_id && hit.entry_id == *entry_id
            }
            // If the user has not moved the cursor, the cursor is on the first hit, and not on a similar word above the
            // hits.
            (HitLine::Hit(_), None) => !self.moved,
            _ => false,
        };
        let at = self.choices().position(is_it);
        self.cursor = at.unwrap_or(self.cursor);
        self.show_cursor();
    }

    pub fn move_to(&mut self, to: usize) {
        self.cursor = to;
        self.moved = true;
        self.show_cursor();
    }

    /// Requests more hits if the cursor is close to the last one.
    pub fn fill(&mut self) -> Vec<Effect> {
        if std::mem::take(&mut self.expired) {
            return self.changed();
        }
        let is_close = self.position() + self.height >= self.count();
        let next = self.next.take_if(|_| is_close && !self.searching);
        next.map(|cursor| self.ask(Some(cursor)))
            .into_iter()
            .collect()
    }

    /// Moves the cursor to the hit on a line of the pane. Returns whether the line is a hit.
    pub fn click(&mut self, line: usize) -> bool {
        let Some((Some(at), _)) = self.lines().nth(self.top + line) else {
            return false;
        };
        self.cursor = at;
        self.moved = true;
        true
    }

    /// Keeps the cursor within the list and visible. If it is on the first hit of a session, the line of the session is
    /// visible too.
    pub fn show_cursor(&mut self) {
        self.cursor = self.cursor.min(self.choices().count().saturating_sub(1));
        let is_cursor = |(at, _): (Option<usize>, HitLine)| at == Some(self.cursor);
        let line = self.lines().position(is_cursor).unwrap_or(0);
        let total = self.lines().count();
        self.top = super::scrolled(self.top, line, self.height, total);
        let begins = line
            .checked_sub(1)
            .and_then(|above| self.lines().nth(above));
        if matches!(begins, Some((_, HitLine::Session(..)))) && self.height > 1 {
            self.top = self.top.min(line - 1);
        }
    }

    /// Returns the reason why the list is empty; `None` if it is not empty.
    pub fn emptiness(&self) -> Option<String> {
        if !self.groups.is_empty() {
            return None;
        }
        if !self.near.is_empty() && self.failure.is_none() {
            return None;
        }
        Some(match (&self.failure, self.searching) {
            (Some(failure), _) => format!("This cannot be searched: {failure}"),
            (None, true) => "Searching…".to_owned(),
            (None, false) if self.input.text().trim().is_empty() => self.invitation().to_owned(),
            (None, false) => {
                let place = match (&self.within, self.here) {
                    (Some(_), _) => "this session",
                    (None, true) => "the sessions of this directory",
                    (None, false) => "the sessions",
                };
                let query = crate::text::line(self.input.text().trim());
                format!("Nothing in {place} matches “{query}”.")
            }
        })
    }

    /// Returns the words that say what can be typed in this mode.
    const fn invitation(&self) -> &'static str {
        match self.mode {
            SearchMode::Ask => {
                "Ask all sessions in your own words; \"…\" is a phrase, /…/ a regular expression, role:user a filter."
            }
            SearchMode::Words => {
                "Type words that an entry has all of; \"…\" is a phrase, /…/ a regular expression, role:user a filter."
            }
            SearchMode::Literal => "Type a text as it stands in an entry.",
            SearchMode::Regex => "Type a regular expression.",
        }
    }
}

impl Default for SearchView {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds a hit to the group of its session. Only the groups from `first` on are searched.
fn add(groups: &mut Vec<HitGroup>, first: usize, hit: Hit) {
    let mut later = groups.iter_mut().skip(first);
    match later.find(|group| group.session_id == hit.session_id) {
        Some(group) => group.hits.push(hit),
        None => groups.push(HitGroup {
            session_id: hit.session_id.clone(),
            session_name: hit.session_name.clone(),
            hits: vec![hit],
            more: 0,
        }),
    }
}
