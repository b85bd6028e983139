//! The sessions of a team: a description of each session, and the machines that have it open.

use crate::error::{Kind, Result};
use crate::search::ask::Term;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A session as described by the machine that wrote to it last. Its texts are from that machine, so they are
/// untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamRow {
    pub session_id: String,
    pub name: Option<String>,
    /// The first message of the user, in the form for a row; empty if there is none, or if the machine did not send it.
    pub first_message: String,
    pub cwd: String,
    /// ISO 8601.
    pub created: String,
    /// The last activity, in ISO 8601.
    pub modified: String,
    /// The number of entries of the session, messages and others.
    pub entries: u64,
    /// The name of the machine.
    pub host: String,
    /// The number of the session's last message in the stream at the time of the description. Of two descriptions, the
    /// description with the greater number is newer.
    pub sequence: u64,
    pub is_trashed: bool,
}

/// A machine that has a session open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenElsewhere {
    /// The name of the machine.
    pub host: String,
    /// ISO 8601, by that machine's clock.
    pub since: String,
}

/// A session of the team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamSession {
    pub session_id: String,
    /// `None` if no machine has described the session.
    pub row: Option<TeamRow>,
    /// The other daemons that have the session open, sorted by host.
    pub open_on: Vec<OpenElsewhere>,
    /// The number of the description in the order in which the servers got the descriptions. The list then has this
    /// order. `None` if the servers keep no such order.
    pub place: Option<u64>,
}

/// The first character of a cursor that has a place.
const PLACE: char = '#';

/// The cursor for the page of the descriptions before this place.
pub fn cursor_before(place: u64) -> String {
    format!("{PLACE}{place}")
}

/// The place in a cursor; `None` if the cursor names a session by its time and its id.
pub fn place_of(cursor: &str) -> Option<u64> {
    cursor.strip_prefix(PLACE)?.parse().ok()
}

impl TeamSession {
    /// The cursor for the page after this session. It has the place of the session. If there is no place, it has the
    /// time of the last activity, which is empty for a session without a description, and the id.
    pub fn cursor(&self) -> String {
        match self.place {
            Some(place) => cursor_before(place),
            None => format!("{} {}", self.modified(), self.session_id),
        }
    }

    /// Whether the session comes after the session that a cursor names.
    pub fn is_after(&self, cursor: Option<&str>) -> bool {
        if let Some(before) = cursor.and_then(place_of) {
            return self.place.is_none_or(|place| place < before);
        }
        let Some((modified, id)) = cursor.and_then(|cursor| cursor.split_once(' ')) else {
            return true;
        };
        // Sessions without a place come after all sessions with a place.
        if self.place.is_some() {
            return false;
        }
        let order = modified.cmp(self.modified());
        order.then_with(|| (*self.session_id).cmp(id)).is_gt()
    }

    fn modified(&self) -> &str {
        self.row.as_ref().map_or("", |row| &*row.modified)
    }
}

/// The sessions of a team at one time.
#[derive(Debug, Clone, Default)]
pub struct TeamList {
    /// The name of the team's stream.
    pub stream: String,
    /// The session with the latest activity first, or with the latest place. Sessions without a description are at the
    /// end, sorted by id.
    pub sessions: Vec<TeamSession>,
    by_id: HashMap<String, usize>,
    /// The descriptions that are older than the present stream, in the part of the list that was read: the stream was
    /// created again after they were written. Some of these sessions may have been pushed to the present stream later.
    pub missing: Vec<TeamRow>,
    /// The ids of sessions that were erased recently.
    pub erased: HashSet<String>,
    /// The reason why the list may lack sessions or machines.
    pub incomplete: Option<(Kind, String)>,
    /// `None` if the list has all sessions of the team.
    pub page: Option<TeamPage>,
}

/// The part of a team's sessions that a list has in addition to the sessions with a file here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeamPage {
    /// The sessions without a file here that the query selects. If `is_at_least`, there are more.
    pub count: u64,
    pub is_at_least: bool,
    /// Names the last session of the page, if there are more.
    pub next: Option<String>,
    /// Differs from the mark of an earlier page if any session of the team has changed between the two.
    pub mark: u64,
}

/// The sessions that a list wants. A list may have more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeamQuery {
    /// The ids of the sessions with a file here. The list has each of these sessions that the team also has.
    pub here: Vec<String>,
    /// The directory, normalized.
    pub cwd: Option<String>,
    pub named: Option<bool>,
    /// Words in lower case that all occur in the name, the directory or the id.
    pub words: Vec<String>,
    /// Whether the list has the deleted sessions in place of the others.
    pub is_of_deleted: bool,
    /// The most sessions of the page.
    pub limit: usize,
    /// The `next` of the page before.
    pub after: Option<String>,
}

/// A question that is searched in the sessions of a team.
#[derive(Debug, Clone, Default)]
pub struct TeamQuestion {
    /// The terms of the question.
    pub terms: Vec<Term>,
    /// Only the session with this id.
    pub session: Option<String>,
    /// Only sessions in one of these directories, or below it; all if there are none.
    pub directories: Vec<String>,
}

/// The lines that may answer a question, and the size of the searched sessions.
#[derive(Debug, Clone, Default)]
pub struct TeamFound {
    /// Sorted by id.
    pub sessions: Vec<FoundSession>,
    /// About how many lines and sessions the team has.
    pub entries: u64,
    pub all_sessions: u64,
    /// For each term, the part of all lines that have it; 0 for a rare term.
    pub shares: Vec<f64>,
    /// The number of sessions with lines that cannot be found yet.
    pub unread: u64,
}

/// Lines of a session.
#[derive(Debug, Clone, Default)]
pub struct FoundSession {
    pub session_id: String,
    pub name: Option<String>,
    /// In the order of their numbers.
    pub lines: Vec<FoundLine>,
}

/// A line of a session of the team.
#[derive(Debug, Clone, Default)]
pub struct FoundLine {
    /// The number of the line in its session.
    pub number: u64,
    pub line: Vec<u8>,
    /// The user of the database who wrote the line.
    pub author: String,
}

/// The sessions of a team, for a daemon that keeps its sessions in the team's stream.
pub trait TeamView: Send + Sync {
    /// The sessions of the team. Waits at most 2 s for the servers; the list says in `incomplete` why it may
    /// lack sessions.
    fn list(&self, query: &TeamQuery) -> Arc<TeamList>;

    /// The lines of all sessions that may answer a question. Waits for the servers. Fails with `invalidParams` if the
    /// servers cannot search.
    fn find(&self, question: &TeamQuestion) -> Result<TeamFound>;
}

impl TeamList {
    /// Sorts the sessions.
    pub fn new(stream: String, mut sessions: Vec<TeamSession>) -> Self {
        sessions.sort_by(|a, b| {
            let activity =
                |of: &TeamSession| (of.place, of.row.as_ref().map(|row| row.modified.clone()));
            activity(b)
                .cmp(&activity(a))
                .then_with(|| a.session_id.cmp(&b.session_id))
        });
        let ids = sessions.iter().enumerate();
        let by_id = ids.map(|(at, of)| (of.session_id.clone(), at)).collect();
        Self {
            stream,
            sessions,
            by_id,
            missing: Vec::new(),
            erased: HashSet::new(),
            incomplete: None,
            page: None,
        }
    }

    /// Whether this list has the same sessions and the same gaps as another list.
    pub fn has_same_sessions(&self, other: &Self) -> bool {
        let is_equal = match (&self.page, &other.page) {
            (Some(page), Some(other)) => page.mark == other.mark,
            (None, None) => self.sessions == other.sessions,
            _ => false,
        };
        is_equal && self.incomplete == other.incomplete
    }

    pub fn find(&self, session: &str) -> Option<&TeamSession> {
        self.sessions.get(*self.by_id.get(session)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, modified: Option<&str>) -> TeamSession {
        let row = modified.map(|modified| TeamRow {
            session_id: id.to_owned(),
            name: None,
            first_message: String::new(),
            cwd: String::new(),
            created: String::new(),
            modified: modified.to_owned(),
            entries: 0,
            host: String::new(),
            sequence: 1,
            is_trashed: false,
        });
        TeamSession {
            session_id: id.to_owned(),
            row,
            open_on: Vec::new(),
            place: None,
        }
    }

    #[test]
    fn sessions_are_sorted_by_activity_and_found_by_id() {
        let list = TeamList::new(
            "s".to_owned(),
            vec![
                session("bare2", None),
                session("old", Some("2026-01-01T00:00:00.000Z")),
                session("bare1", None),
                session("new", Some("2026-01-02T00:00:00.000Z")),
            ],
        );
        let ids: Vec<&str> = list.sessions.iter().map(|of| &*of.session_id).collect();
        assert_eq!(ids, ["new", "old", "bare1", "bare2"]);
        assert_eq!(list.find("old"), list.sessions.get(1));
        assert_eq!(list.find("other"), None);
    }

    #[test]
    fn a_page_goes_on_at_the_place_of_its_last_session() {
        let placed = |id: &str, place| TeamSession {
            place: Some(place),
            // The clocks of machines differ, so the places decide.
            ..session(id, Some("2026-01-01T00:00:00.000Z"))
        };
        let sessions = vec![session("bare", None), placed("a", 3), placed("b", 10)];
        let list = TeamList::new("s".to_owned(), sessions);
        let after = |cursor: &str| {
            let after = list.sessions.iter().filter(|of| of.is_after(Some(cursor)));
            after.map(|of| &*of.session_id).collect::<Vec<_>>()
        };
        let [first, second, last] = &list.sessions[..] else {
            panic!("{list:?}");
        };
        assert_eq!(after(&first.cursor()), ["a", "bare"]);
        assert_eq!(after(&second.cursor()), ["bare"]);
        assert_eq!(after(&cursor_before(3)), ["bare"]);
        assert!(after(&last.cursor()).is_empty());
    }
}
