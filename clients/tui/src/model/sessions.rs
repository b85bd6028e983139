//! The list of sessions: the loaded rows, the search and the cursor.
//!
//! Further pages are loaded while the user looks at the first one. The daemon searches and sorts. Threads are
//! drawn by `parentSession`; the daemon lists a fork after the session from which it comes.

use super::groups::{Grouping, Period, group};
use super::input::Input;
use crate::message::{Effect, Session, SessionPage, SessionQuery, SessionRow, Sort};
use crate::operation::Agent;
use std::collections::HashMap;
use std::time::Duration;

/// The number of rows on the first page, and on the following pages.
const FIRST_PAGE: usize = 200;
const NEXT_PAGES: usize = 1000;

/// The most levels of a thread that are drawn.
const MAX_DEPTH: usize = 16;

/// The list of sessions.
#[derive(Debug)]
pub struct SessionList {
    /// The loaded sessions of this machine, then the sessions of other machines.
    loaded: Vec<SessionRow>,
    /// The number of loaded sessions of this machine.
    here_count: usize,
    /// The sessions that are shown, in their groups.
    rows: Vec<SessionRow>,
    /// The index of the first row of each group, and the name of the group.
    heads: Vec<(usize, String)>,
    /// The guides before each row.
    guides: Vec<String>,
    pub here: bool,
    pub named: bool,
    /// Whether archived sessions are listed too.
    pub archived: bool,
    /// The directory and the tool whose sessions are shown; `None` stands for all.
    pub project: Option<String>,
    pub tool: Option<Agent>,
    pub period: Period,
    pub grouping: Grouping,
    pub sort: Sort,
    pub search: Input,
    /// Whether letters go into the search.
    pub typing: bool,
    pub cursor: usize,
    /// The first visible line.
    pub top: usize,
    /// The height of the pane.
    pub height: usize,
    generation: u64,
    /// Whether a page is requested.
    pub loading: bool,
    /// The present time, since the program's start.
    pub now: Duration,
    /// The time of the program's start, in seconds since 1970.
    pub started: i64,
    /// The time of the open request, since the program's start.
    asked_at: Duration,
    /// Whether to request the list again after the answer to the open request.
    again: bool,
    /// Whether the next page replaces the rows. Until it arrives, the old rows stay on the screen.
    fresh: bool,
    /// The session to which the cursor moves when its row is loaded.
    wanted: Option<String>,
}

impl SessionList {
    pub fn new() -> Self {
        Self {
            loaded: Vec::new(),
            here_count: 0,
            rows: Vec::new(),
            heads: Vec::new(),
            guides: Vec::new(),
            here: true,
            named: false,
            archived: false,
            project: None,
            tool: None,
            period: Period::Ever,
            grouping: Grouping::None,
            sort: Sort::Threaded,
            search: Input::line(""),
            typing: false,
            cursor: 0,
            top: 0,
            height: 1,
            generation: 0,
            loading: false,
            now: Duration::ZERO,
            started: 0,
            asked_at: Duration::ZERO,
            again: false,
            fresh: true,
            wanted: None,
        }
    }

    pub fn rows(&self) -> &[SessionRow] {
        &self.rows
    }

    pub fn guide(&self, at: usize) -> &str {
        self.guides.get(at).map_or("", String::as_str)
    }

    pub fn selected(&self) -> Option<&SessionRow> {
        self.rows.get(self.cursor)
    }

    /// Loads the list again; the cursor stays on its session.
    pub fn reload(&mut self) -> Vec<Effect> {
        self.wanted = self.selected().map(|row| row.id.clone());
        self.ask_again()
    }

    /// Loads the list again after the search, the order or the scope has changed.
    pub fn restart(&mut self) -> Vec<Effect> {
        self.wanted = None;
        self.cursor = 0;
        self.top = 0;
        self.ask_again()
    }

    fn ask_again(&mut self) -> Vec<Effect> {
        self.generation += 1;
        self.fresh = true;
        if self.loading {
            self.again = true;
            return Vec::new();
        }
        vec![self.ask(None)]
    }

    fn ask(&mut self, cursor: Option<String>) -> Effect {
        if !std::mem::replace(&mut self.loading, true) {
            self.asked_at = self.now;
        }
        self.again = false;
        Effect::ListSessions(SessionQuery {
            generation: self.generation,
            here: self.here,
            named: self.named,
            archived: self.archived,
            project: self.project.clone(),
            tool: self.tool.map(|agent| agent.tool),
            query: self.search.text().to_owned(),
            sort: self.sort,
            limit: if cursor.is_none() {
                FIRST_PAGE
            } else {
                NEXT_PAGES
            },
            cursor,
        })
    }

    /// Adds a page. Returns the next requests.
    pub fn arrived(&mut self, generation: u64, page: SessionPage) -> Vec<Effect> {
        self.loading = false;
        if self.again || generation != self.generation {
            return vec![self.ask(None)];
        }
        let mut team = match std::mem::take(&mut self.fresh) {
            true => {
                self.loaded.clear();
                // The cursor must not stay on a row of the old list.
                self.rows.clear();
                page.team
            }
            false => self.loaded.split_off(self.here_count),
        };
        self.loaded.extend(page.rows);
        self.here_count = self.loaded.len();
        self.loaded.append(&mut team);
        self.regroup();
        let found = |id: &String| self.rows.iter().position(|row| row.id == *id);
        if let Some(at) = self.wanted.as_ref().and_then(found) {
            self.cursor = at;
            self.wanted = None;
        }
        self.show_cursor();
        let next = page.next.map(|cursor| self.ask(Some(cursor)));
        next.into_iter().collect()
    }

    /// Chooses which rows are shown, and puts them into groups. The cursor stays on its session.
    pub fn regroup(&mut self) {
        let selected = self.selected().map(|row| row.id.clone());
        let now = self.started + i64::try_from(self.now.as_secs()).unwrap_or(0);
        let shown = self.loaded.iter();
        let shown = shown.filter(|row| self.period.has(row.modified, now));
        self.rows = shown.cloned().collect();
        self.heads = group(&mut self.rows, self.grouping, now);
        self.guides = match self.sort {
            Sort::Threaded => self.guides_of_groups(),
            _ => Vec::new(),
        };
        let at = selected.and_then(|id| self.rows.iter().position(|row| row.id == id));
        self.cursor = at.unwrap_or(self.cursor);
        self.show_cursor();
    }

    /// Returns the guides. A thread does not continue in the next group.
    fn guides_of_groups(&self) -> Vec<String> {
        let begins = self.heads.iter().map(|(at, _)| *at).skip(1);
        let ends = begins.chain([self.rows.len()]);
        let mut begin = 0;
        let mut out = Vec::with_capacity(self.rows.len());
        for end in ends {
            out.extend(guides(self.rows.get(begin..end).unwrap_or_default()));
            begin = end;
        }
        out
    }

    /// Returns the lines of the list: headings of groups, and indexes of rows.
    pub fn lines(&self) -> impl Iterator<Item = ListLine<'_>> {
        let mut heads = self.heads.iter().peekable();
        (0..self.rows.len()).flat_map(move |row| {
            let head = heads.next_if(|(at, _)| *at == row);
            let head = head.map(|(_, name)| ListLine::Head(name));
            head.into_iter().chain([ListLine::Row(row)])
        })
    }

    /// Returns the line of a row.
    fn line_of(&self, row: usize) -> usize {
        row + self.heads.partition_point(|(at, _)| *at <= row)
    }

    /// Returns the row at a visible line; `None` for the heading of a group.
    pub fn row_at(&self, line: usize) -> Option<usize> {
        match self.lines().nth(self.top + line) {
            Some(ListLine::Row(row)) => Some(row),
            _ => None,
        }
    }

    /// Shows the sessions of the next tool.
    pub fn next_tool(&mut self) -> Vec<Effect> {
        let mut tools = Agent::origins();
        self.tool = match self.tool {
            None => tools.next(),
            Some(tool) => tools.skip_while(|it| *it != tool).nth(1),
        };
        self.restart()
    }

    /// Shows only the sessions of the selected session's directory, or all sessions again.
    pub fn toggle_project(&mut self) -> Vec<Effect> {
        self.project = match self.project {
            Some(_) => None,
            None => self.selected().map(|row| row.cwd.clone()),
        };
        self.restart()
    }

    /// Returns the active filters and the grouping in words, without the directory.
    pub fn filters(&self) -> Vec<&'static str> {
        let named = self.named.then_some("named");
        let tool = self.tool.map(|agent| agent.name);
        let period = Some(self.period).filter(|period| *period != Period::Ever);
        let grouping = Some(self.grouping.about()).filter(|about| !about.is_empty());
        let archived = self.archived.then_some("archived ones too");
        let all = [named, tool, period.map(Period::about), archived, grouping];
        all.into_iter().flatten().collect()
    }

    /// Call this if the open request will get no answer.
    pub fn failed(&mut self) {
        self.loading = false;
        self.again = false;
    }

    pub fn move_to(&mut self, to: usize) {
        self.cursor = to;
        self.show_cursor();
        // If the list will be replaced, its rows are used only to find which session is selected.
        let meant = self.selected().filter(|_| self.fresh);
        self.wanted = meant.map(|row| row.id.clone());
    }

    /// Keeps the cursor inside the list and visible.
    pub fn show_cursor(&mut self) {
        self.cursor = self.cursor.min(self.rows.len().saturating_sub(1));
        let line = self.line_of(self.cursor);
        let total = self.rows.len() + self.heads.len();
        self.top = super::scrolled(self.top, line, self.height, total);
        // The heading of a group is visible together with the first row of the group.
        let has_head = self.heads.iter().any(|(at, _)| *at == self.cursor);
        if has_head && self.height > 1 {
            self.top = self.top.min(line.saturating_sub(1));
        }
    }

    /// Returns whether the daemon is still reading the files of all sessions and no row is loaded.
    pub fn is_first_read(&self) -> bool {
        self.loading && self.rows.is_empty()
    }

    /// Returns the reason why the list is empty; `None` if it is not empty.
    pub fn emptiness(&self) -> Option<String> {
        if !self.rows.is_empty() {
            return None;
        }
        if self.loading {
            let seconds = self.now.saturating_sub(self.asked_at).as_secs();
            return Some(match seconds {
                0 => "Reading the sessions…".to_owned(),
                _ => format!("Reading the sessions… {seconds} s (only the first time)"),
            });
        }
        let place = match (&self.project, self.here) {
            (Some(project), _) => format!(" of {project}"),
            (None, true) => " of this directory".to_owned(),
            (None, false) => String::new(),
        };
        let filters = self.filters();
        let kind = match &*filters {
            [] => "session".to_owned(),
            filters => format!("session ({})", filters.join(", ")),
        };
        Some(if self.search.is_empty() {
            format!("There is no {kind}{place}.")
        } else {
            format!(
                "No {kind}{place} matches “{}”.",
                crate::text::line(self.search.text())
            )
        })
    }
}

/// A line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListLine<'l> {
    /// The heading of a group.
    Head(&'l str),
    /// The index of a row.
    Row(usize),
}

impl Default for SessionList {
    fn default() -> Self {
        Self::new()
    }
}

impl Sort {
    /// Returns the name in the protocol and in the list.
    pub const fn name(self) -> &'static str {
        match self {
            Sort::Threaded => "threaded",
            Sort::Recent => "recent",
            Sort::Created => "created",
            Sort::Name => "name",
        }
    }

    pub const fn next(self) -> Self {
        match self {
            Sort::Threaded => Sort::Recent,
            Sort::Recent => Sort::Created,
            Sort::Created => Sort::Name,
            Sort::Name => Sort::Threaded,
        }
    }
}

impl Session {
    /// Returns the session's name, else its first message, else its id.
    pub fn title(&self) -> &str {
        match (&self.name, self.first_message.is_empty()) {
            (Some(name), _) => name,
            (None, false) => &self.first_message,
            (None, true) => &self.id,
        }
    }
}

impl SessionRow {
    /// Returns the session's name, or else its first message.
    pub fn title(&self) -> &str {
        match (&self.name, self.first_message.is_empty()) {
            (Some(name), _) => name,
            (None, false) => &self.first_message,
            // The stream of the team has only the id of this session.
            (None, true) if self.host.is_some() => &self.id,
            (None, true) => "(empty)",
        }
    }
}

/// Returns the guides (`├─ └─ │`) before each row of a list with threads.
fn guides(rows: &[SessionRow]) -> Vec<String> {
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    let mut depths: Vec<usize> = Vec::with_capacity(rows.len());
    for row in rows {
        let parent = row.parent.as_deref().and_then(|parent| by_name.get(parent));
        depths.push(parent.map_or(0, |depth| depth + 1));
        let depth = depths.last().copied().unwrap_or_default();
        by_name.insert(&row.id, depth);
        by_name.insert(&row.path, depth);
    }
    // The rows are read in reverse order, to know at which levels a later sibling follows.
    let mut follows = [false; MAX_DEPTH + 1];
    let mut out: Vec<String> = Vec::with_capacity(rows.len());
    for depth in depths.into_iter().rev() {
        let depth = depth.min(MAX_DEPTH);
        let mut guide = String::new();
        for level in follows.iter().take(depth).skip(1) {
            guide.push_str(if *level { "│  " } else { "   " });
        }
        if depth > 0 {
            let later = follows.get(depth).copied().unwrap_or_default();
            guide.push_str(if later { "├─ " } else { "└─ " });
        }
        for (level, follows) in follows.iter_mut().enumerate() {
            *follows = match level.cmp(&depth) {
                std::cmp::Ordering::Less => *follows,
                std::cmp::Ordering::Equal => true,
                std::cmp::Ordering::Greater => false,
            };
        }
        out.push(guide);
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, parent: Option<&str>) -> SessionRow {
        SessionRow {
            id: id.into(),
            path: format!("/s/{id}.jsonl"),
            cwd: "/p".into(),
            name: None,
            modified: 0,
            messages: 1,
            first_message: String::new(),
            source: None,
            parent: parent.map(Into::into),
            damage: None,
            host: None,
            open_on: Vec::new(),
            queued: false,
            marks: Vec::new(),
        }
    }

    #[test]
    fn threads_are_drawn() {
        let rows = [
            row("a", None),
            row("b", Some("/s/a.jsonl")),
            row("c", Some("/s/b.jsonl")),
            row("d", Some("a")),
            row("e", Some("gone")),
            row("f", Some("e")),
        ];
        assert_eq!(guides(&rows), ["", "├─ ", "│  └─ ", "└─ ", "", "└─ "]);
    }

    #[test]
    fn a_loop_of_parents_does_not_hang() {
        let rows = [
            row("a", Some("b")),
            row("b", Some("a")),
            row("a", Some("a")),
        ];
        assert_eq!(guides(&rows), ["", "├─ ", "└─ "]);
    }

    fn page(ids: &[&str], next: Option<&str>) -> SessionPage {
        SessionPage {
            rows: ids.iter().map(|id| row(id, None)).collect(),
            team: Vec::new(),
            next: next.map(Into::into),
        }
    }

    #[test]
    fn pages_are_added_and_the_cursor_stays_on_its_session() {
        let mut list = SessionList::new();
        let effects = list.restart();
        assert!(matches!(&*effects, [Effect::ListSessions(query)] if query.cursor.is_none()));
        let effects = list.arrived(1, page(&["a", "b"], Some("2")));
        assert!(
            matches!(&*effects, [Effect::ListSessions(query)] if query.cursor.as_deref() == Some("2"))
        );
        assert!(list.arrived(1, page(&["c"], None)).is_empty());
        list.height = 5;
        list.move_to(2);
        assert_eq!(list.reload().len(), 1);
        list.arrived(2, page(&["x", "c", "a"], None));
        assert_eq!(list.selected().map(|row| &*row.id), Some("c"));
    }

    #[test]
    fn another_order_begins_at_its_first_row() {
        let mut list = SessionList::new();
        list.height = 5;
        list.restart();
        list.arrived(1, page(&["a", "b", "c"], None));
        list.move_to(2);
        list.restart();
        list.arrived(2, page(&["c", "b", "a"], None));
        assert_eq!(list.selected().map(|row| &*row.id), Some("c"));
        list.restart();
        list.arrived(3, page(&["a", "b", "c"], None));
        assert_eq!(list.selected().map(|row| &*row.id), Some("a"));
        // If the cursor is moved before the rows come, it stays on the session to which it was moved.
        list.restart();
        list.move_to(1);
        list.arrived(4, page(&["c", "a", "b"], None));
        assert_eq!(list.selected().map(|row| &*row.id), Some("b"));
    }

    #[test]
    fn sessions_of_other_machines_are_behind_all_pages() {
        let mut list = SessionList::new();
        list.restart();
        let elsewhere = SessionRow {
            host: Some("build-7".into()),
            ..row("t", None)
        };
        let first = SessionPage {
            team: vec![elsewhere],
            ..page(&["a"], Some("2"))
        };
        let ids = |list: &SessionList| -> Vec<String> {
            list.rows().iter().map(|row| row.id.clone()).collect()
        };
        list.arrived(1, first);
        assert_eq!(ids(&list), ["a", "t"]);
        list.arrived(1, page(&["b"], None));
        assert_eq!(ids(&list), ["a", "b", "t"]);
        list.reload();
        list.arrived(2, page(&["a"], None));
        assert_eq!(ids(&list), ["a"]);
    }

    #[test]
    fn fast_typing_causes_one_more_request_at_the_end() {
        let mut list = SessionList::new();
        assert_eq!(list.restart().len(), 1);
        for char in ["a", "b", "c"] {
            list.search.insert(char);
            assert!(list.restart().is_empty());
        }
        let effects = list.arrived(1, page(&["old"], None));
        assert!(matches!(&*effects, [Effect::ListSessions(query)] if query.query == "abc"));
        assert!(list.rows().is_empty());
        list.arrived(4, page(&["new"], None));
        assert_eq!(list.rows().len(), 1);
    }
}
