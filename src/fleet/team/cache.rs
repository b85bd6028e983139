//! The rows and the open sessions of a team, as far as this process has read them.

use super::presence;
use super::row::StoredRow;
use std::collections::HashMap;
use treelined_core::budget::TEAM_BYTES;
use treelined_core::error::Kind;
use treelined_core::team::{OpenElsewhere, TeamList, TeamSession};

/// The bytes of a row in memory, apart from its texts.
const ROW_BYTES: usize = 400;

/// The value of a key in a bucket at one revision. Empty if the value was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketValue {
    pub(crate) key: String,
    pub(crate) value: Vec<u8>,
    pub(crate) revision: u64,
}

/// The known rows of one stream. They grow with the team, up to [`TEAM_BYTES`].
pub(crate) struct TeamCache {
    stream: String,
    /// The time at which the stream was created.
    created: String,
    /// The rows by their keys, with their revisions; `None` for a damaged row.
    rows: HashMap<String, (u64, Option<StoredRow>)>,
    bytes: usize,
    /// The last message of the stream at the time when its sessions were read.
    last: u64,
    /// The ids of all sessions when they were last read. `subjects` is the number of subjects at that time.
    ids: Vec<String>,
    subjects: u64,
    /// Whether some rows or ids were left out for lack of room.
    is_cut: bool,
    open: Vec<(String, OpenElsewhere)>,
    damaged_presences: usize,
}

impl TeamCache {
    pub(crate) fn new(stream: &str, created: &str) -> Self {
        Self {
            stream: stream.to_owned(),
            created: created.to_owned(),
            rows: HashMap::new(),
            bytes: 0,
            last: 0,
            ids: Vec::new(),
            subjects: 0,
            is_cut: false,
            open: Vec::new(),
            damaged_presences: 0,
        }
    }

    /// Takes a value of the bucket of rows.
    pub(crate) fn take_row(&mut self, value: BucketValue) {
        let BucketValue {
            key,
            value,
            revision,
        } = value;
        if let Some((_, before)) = self.rows.remove(&key) {
            self.bytes -= bytes_of(&key, before.as_ref());
        }
        if value.is_empty() {
            return;
        }
        let row = StoredRow::decode(&key, &value);
        self.bytes += bytes_of(&key, row.as_ref());
        self.rows.insert(key, (revision, row));
        if self.bytes > TEAM_BYTES {
            self.drop_oldest();
        }
    }

    /// Drops the rows that were written first, until a quarter of the budget is free.
    fn drop_oldest(&mut self) {
        self.is_cut = true;
        let mut revisions: Vec<(u64, String)> = self
            .rows
            .iter()
            .map(|(key, (revision, _))| (*revision, key.clone()))
            .collect();
        revisions.sort_unstable();
        for (_, key) in revisions {
            if self.bytes <= TEAM_BYTES / 4 * 3 {
                return;
            }
            if let Some((_, row)) = self.rows.remove(&key) {
                self.bytes -= bytes_of(&key, row.as_ref());
            }
        }
    }

    /// Whether the ids must be read again, since the stream now has this many subjects.
    pub(crate) fn lacks_ids(&self, subjects: u64) -> bool {
        self.subjects != subjects
    }

    /// Takes the ids of all sessions of a stream with this many subjects.
    pub(crate) fn take_ids(&mut self, mut ids: Vec<String>, subjects: u64) {
        let bytes = |id: &String| id.len() + size_of::<String>();
        let mut left = TEAM_BYTES;
        let fits = ids.iter().position(|id| {
            let rest = left.checked_sub(bytes(id));
            left = rest.unwrap_or(0);
            rest.is_none()
        });
        if let Some(most) = fits {
            ids.truncate(most);
            self.is_cut = true;
        }
        self.ids = ids;
        self.subjects = subjects;
    }

    /// Leaves out the ids of a stream with this many subjects, since they are too many.
    pub(crate) fn leave_out_ids(&mut self, subjects: u64) {
        self.ids = Vec::new();
        self.subjects = subjects;
        self.is_cut = true;
    }

    /// Whether some rows or ids were left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(crate) fn take_last(&mut self, last: u64) {
        self.last = last;
    }

    /// Takes the rows of open sessions of all other daemons.
    pub(crate) fn take_presences<'t>(&mut self, rows: impl Iterator<Item = &'t [u8]>) {
        self.open.clear();
        self.damaged_presences = 0;
        let mut left = TEAM_BYTES;
        for text in rows {
            match (presence::decode(text), left.checked_sub(text.len())) {
                (Some(open), Some(rest)) => {
                    left = rest;
                    self.open.extend(open);
                }
                _ => self.damaged_presences += 1,
            }
        }
    }

    pub(crate) fn list(&self) -> TeamList {
        let mut open: HashMap<&str, Vec<OpenElsewhere>> = HashMap::new();
        for (id, by) in &self.open {
            open.entry(id).or_default().push(by.clone());
        }
        for by in open.values_mut() {
            by.sort_by(|a, b| (&a.host, &a.since).cmp(&(&b.host, &b.since)));
        }
        let mut damaged = self.damaged_presences;
        let mut sessions: HashMap<&str, TeamSession> = HashMap::new();
        let session = |id: &str, row| TeamSession {
            session_id: id.to_owned(),
            row,
            open_on: open.get(id).cloned().unwrap_or_default(),
        };
        for id in &self.ids {
            sessions.insert(id, session(id, None));
        }
        let mut before = Vec::new();
        for (_, row) in self.rows.values() {
            match row {
                Some(stored) if stored.stream_created != self.created => before.push(&stored.row),
                // A row that describes a message that the stream does not have comes from another program.
                Some(stored) if stored.row.sequence <= self.last => {
                    let id = &*stored.row.session_id;
                    sessions.insert(id, session(id, Some(stored.row.clone())));
                }
                _ => damaged += 1,
            }
        }
        before.retain(|row| !row.is_trashed && !sessions.contains_key(&*row.session_id));
        before.sort_by(|a, b| a.session_id.cmp(&b.session_id));
        let mut list = TeamList::new(self.stream.clone(), sessions.into_values().collect());
        // Without all ids, it is not known which sessions the stream lacks.
        if !self.is_cut {
            list.missing = before.into_iter().cloned().collect();
        }
        if damaged > 0 {
            let why = format!("rows of the list that are damaged or of other programs: {damaged}");
            list.incomplete = Some((Kind::LogForeign, why));
        } else if self.is_cut {
            let why = "the team has more sessions than the list keeps".to_owned();
            list.incomplete = Some((Kind::ResponseTooLarge, why));
        }
        list
    }
}

fn bytes_of(key: &str, row: Option<&StoredRow>) -> usize {
    let texts = row.map_or(0, |stored| {
        let row = &stored.row;
        let name = row.name.as_ref().map_or(0, String::len);
        row.session_id.len() + name + row.cwd.len() + row.host.len() + stored.stream_created.len()
    });
    ROW_BYTES + key.len() + texts
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::stored;
    use super::*;

    const CREATED: &str = "2026-01-01T00:00:00Z";

    fn cache() -> TeamCache {
        let mut cache = TeamCache::new("s", CREATED);
        cache.take_last(100);
        cache
    }

    fn value(key: &str, revision: u64, value: &[u8]) -> BucketValue {
        BucketValue {
            key: key.to_owned(),
            value: value.to_vec(),
            revision,
        }
    }

    fn row(id: &str, sequence: u64) -> BucketValue {
        value(id, sequence, &stored(id, sequence, CREATED).encode())
    }

    fn ids(list: &TeamList) -> Vec<&str> {
        list.sessions.iter().map(|of| &*of.session_id).collect()
    }

    #[test]
    fn sessions_without_a_row_are_listed_by_their_ids() {
        let mut cache = cache();
        cache.take_row(row("a", 5));
        cache.take_row(row("b", 9));
        assert!(cache.lacks_ids(3));
        cache.take_ids(["a", "b", "c"].map(str::to_owned).to_vec(), 3);
        assert!(!cache.lacks_ids(3));
        let list = cache.list();
        assert_eq!(ids(&list), ["b", "a", "c"]);
        assert!(list.find("c").unwrap().row.is_none() && list.incomplete.is_none());
        cache.take_row(value("b", 10, b""));
        assert_eq!(ids(&cache.list()), ["a", "b", "c"], "a removed row");
    }

    #[test]
    fn damaged_rows_leave_the_session_and_make_the_list_incomplete() {
        for bad in [value("a", 3, b"{"), row("a", 101)] {
            let mut cache = cache();
            cache.take_ids(vec!["a".to_owned()], 1);
            cache.take_row(bad);
            let list = cache.list();
            assert_eq!(ids(&list), ["a"]);
            assert!(list.sessions[0].row.is_none());
            assert_eq!(list.incomplete.unwrap().0, Kind::LogForeign);
            // The machine of the session writes the row again.
            cache.take_row(row("a", 50));
            assert!(cache.list().incomplete.is_none());
        }
    }

    /// A stream that is deleted and made again counts from 1, so the rows of the old stream have greater sequences.
    #[test]
    fn rows_of_a_stream_that_was_made_before_are_ignored() {
        let mut cache = cache();
        let old = stored("a", 4000, "2025-01-01T00:00:00Z");
        cache.take_row(value("a", 1, &old.encode()));
        let lacking = stored("b", 4001, "2025-01-01T00:00:00Z");
        cache.take_row(value("b", 2, &lacking.encode()));
        cache.take_ids(vec!["a".to_owned()], 1);
        let list = cache.list();
        assert!(list.sessions[0].row.is_none() && list.incomplete.is_none());
        assert_eq!(ids(&list), ["a"]);
        assert_eq!(list.missing, [lacking.row]);
        cache.take_row(row("b", 3));
        assert!(cache.list().missing.is_empty());
    }

    #[test]
    fn each_open_session_names_the_daemons_that_have_it_open() {
        let mut cache = cache();
        cache.take_row(row("a", 5));
        let laptop = presence::encode("laptop", "d1", vec![("a".to_owned(), 1000)]);
        let server = presence::encode(
            "build",
            "d2",
            vec![("a".to_owned(), 2000), ("x".to_owned(), 0)],
        );
        cache.take_presences([&*laptop, &server].into_iter());
        let list = cache.list();
        let hosts: Vec<&str> = list.sessions[0]
            .open_on
            .iter()
            .map(|by| &*by.host)
            .collect();
        assert_eq!(hosts, ["build", "laptop"]);
        assert_eq!(
            list.sessions[0].open_on[1].since,
            "1970-01-01T00:00:01.000Z"
        );
        cache.take_presences([&*laptop, b"?"].into_iter());
        let list = cache.list();
        assert_eq!(list.sessions[0].open_on.len(), 1);
        assert_eq!(list.incomplete.unwrap().0, Kind::LogForeign);
    }

    #[test]
    fn more_rows_than_the_budget_drop_those_that_were_written_first() {
        let mut cache = cache();
        cache.take_last(u64::MAX);
        for n in 0..60_000_u64 {
            cache.take_row(row(&format!("s{n}"), n + 1));
        }
        assert!(cache.bytes <= TEAM_BYTES);
        let list = cache.list();
        assert!(list.find("s59999").is_some() && list.find("s0").is_none());
        assert_eq!(list.incomplete.unwrap().0, Kind::ResponseTooLarge);
    }
}
