//! Puts a list together: sessions with their descriptions, and the daemons that have them open.

use super::presence;
use std::collections::HashMap;
use treelined_core::budget::TEAM_BYTES;
use treelined_core::error::Kind;
use treelined_core::team::{OpenElsewhere, TeamList, TeamRow, TeamSession};

/// The parts of a list.
#[derive(Default)]
pub(crate) struct ListParts {
    /// The sessions by their ids, each with the place of its description and the description.
    sessions: HashMap<String, (Option<u64>, Option<TeamRow>)>,
    open: Vec<(String, OpenElsewhere)>,
    /// The number of rows that are damaged or of other programs.
    damaged: usize,
}

impl ListParts {
    /// Adds a session. Without `row`, a session that was added before keeps its description.
    pub(crate) fn add(&mut self, session: String, place: Option<u64>, row: Option<TeamRow>) {
        let known = self.sessions.entry(session).or_default();
        if row.is_some() {
            *known = (place, row);
        }
    }

    pub(crate) fn add_damaged(&mut self, count: usize) {
        self.damaged += count;
    }

    /// Adds the rows of open sessions of other daemons.
    pub(crate) fn add_presences<'t>(&mut self, rows: impl Iterator<Item = &'t [u8]>) {
        let mut left = TEAM_BYTES;
        for text in rows {
            match (presence::decode(text), left.checked_sub(text.len())) {
                (Some(open), Some(rest)) => {
                    left = rest;
                    self.open.extend(open);
                }
                _ => self.damaged += 1,
            }
        }
    }

    /// The list of the team with this name.
    pub(crate) fn list(self, stream: &str) -> TeamList {
        let mut open: HashMap<String, Vec<OpenElsewhere>> = HashMap::new();
        for (id, by) in self.open {
            if self.sessions.contains_key(&id) {
                open.entry(id).or_default().push(by);
            }
        }
        for by in open.values_mut() {
            by.sort_by(|a, b| (&a.host, &a.since).cmp(&(&b.host, &b.since)));
        }
        let sessions = self.sessions.into_iter();
        let sessions = sessions.map(|(session_id, (place, row))| TeamSession {
            open_on: open.remove(&session_id).unwrap_or_default(),
            session_id,
            row,
            place,
        });
        let mut list = TeamList::new(stream.to_owned(), sessions.collect());
        if self.damaged > 0 {
            let why = format!(
                "rows of the list that are damaged or of other programs: {}",
                self.damaged
            );
            list.incomplete = Some((Kind::LogForeign, why));
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    fn ids(list: &TeamList) -> Vec<&str> {
        list.sessions.iter().map(|of| &*of.session_id).collect()
    }

    #[test]
    fn sessions_without_a_row_are_at_the_end() {
        let mut parts = ListParts::default();
        parts.add("c".to_owned(), None, None);
        parts.add("a".to_owned(), Some(5), Some(row("a", 5)));
        parts.add("b".to_owned(), Some(9), Some(row("b", 9)));
        parts.add("b".to_owned(), None, None);
        let list = parts.list("s");
        assert_eq!(ids(&list), ["b", "a", "c"]);
        assert!(list.find("c").unwrap().row.is_none() && list.incomplete.is_none());
    }

    #[test]
    fn each_open_session_names_the_daemons_that_have_it_open() {
        let laptop = presence::encode("laptop", "d1", vec![("a".to_owned(), 1000)]);
        let server = presence::encode(
            "build",
            "d2",
            vec![("a".to_owned(), 2000), ("x".to_owned(), 0)],
        );
        let list = |rows: [&[u8]; 2]| {
            let mut parts = ListParts::default();
            parts.add("a".to_owned(), Some(1), Some(row("a", 5)));
            parts.add_presences(rows.into_iter());
            parts.list("s")
        };
        let both = list([&laptop, &server]);
        assert_eq!(ids(&both), ["a"]);
        let open = &both.sessions[0].open_on;
        let hosts: Vec<&str> = open.iter().map(|by| &*by.host).collect();
        assert_eq!(hosts, ["build", "laptop"]);
        assert_eq!(open[1].since, "1970-01-01T00:00:01.000Z");
        let damaged = list([&laptop, b"?"]);
        assert_eq!(damaged.sessions[0].open_on.len(), 1);
        assert_eq!(damaged.incomplete.unwrap().0, Kind::LogForeign);
    }
}
