//! The rows of a stream of rows that a query selects.

use super::window::{Content, PlacedRow, RowWindow};
use crate::subject;
use std::collections::{BTreeMap, HashSet};
use treelined_core::name;
use treelined_core::team::{TeamQuery, TeamRow};

/// The most keys without a usable row that are remembered.
const MOST_UNUSABLE: usize = 100_000;

/// Why a row describes no session of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusable {
    Removed,
    /// The row is damaged, or it describes a message that the stream does not have. Such a row is from another program.
    Damaged,
    /// The session was in the stream before the stream was created again.
    Earlier,
}

/// A query, and the facts by which rows are judged.
pub(super) struct Selection<'q> {
    query: &'q TeamQuery,
    here: HashSet<&'q str>,
    /// The time at which the stream was created.
    created: &'q str,
    /// The last message of the stream.
    last: u64,
}

impl<'q> Selection<'q> {
    pub(super) fn new(query: &'q TeamQuery, created: &'q str, last: u64) -> Self {
        Self {
            query,
            here: query.here.iter().map(String::as_str).collect(),
            created,
            last,
        }
    }

    /// The description of a session in a row.
    pub(super) fn described<'r>(&self, row: &'r PlacedRow) -> Result<&'r TeamRow, Unusable> {
        match &row.content {
            Content::Removed => Err(Unusable::Removed),
            Content::Damaged => Err(Unusable::Damaged),
            Content::Row(stored) if stored.stream_created != self.created => Err(Unusable::Earlier),
            Content::Row(stored) if stored.row.sequence > self.last => Err(Unusable::Damaged),
            Content::Row(stored) => Ok(&stored.row),
        }
    }

    /// Whether the query selects a session without a file here.
    fn has(&self, row: &TeamRow) -> bool {
        let query = self.query;
        row.is_trashed == query.is_of_deleted
            && !self.here.contains(&*row.session_id)
            && query
                .cwd
                .as_ref()
                .is_none_or(|cwd| name::directory(&row.cwd) == *cwd)
            && query.named.is_none_or(|named| row.name.is_some() == named)
            && self.has_words(&[
                row.name.as_deref().unwrap_or_default(),
                &row.first_message,
                &row.cwd,
                &row.session_id,
            ])
    }

    /// Whether the query selects a session that no row describes.
    pub(super) fn has_bare(&self, session: &str) -> bool {
        let query = self.query;
        !query.is_of_deleted
            && !self.here.contains(session)
            && query.cwd.is_none()
            && query.named.is_none()
            && self.has_words(&[session])
    }

    fn has_words(&self, texts: &[&str]) -> bool {
        let words = &self.query.words;
        if words.is_empty() {
            return true;
        }
        let text = texts.join("\n").to_lowercase();
        words.iter().all(|word| text.contains(word.as_str()))
    }
}

/// The rows that were read for a page.
pub(super) struct Found {
    /// The selected rows, the newest first.
    pub(super) rows: Vec<PlacedRow>,
    /// The most rows that are kept: one more than the page has. The additional row shows that another page follows.
    most: usize,
    /// The number of selected rows.
    pub(super) count: u64,
    /// The number of rows that were looked at.
    pub(super) looked_at: u64,
    /// Rows of sessions that the stream had before it was created again.
    pub(super) earlier: Vec<TeamRow>,
}

impl Found {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            rows: Vec::new(),
            most: limit + 1,
            count: 0,
            looked_at: 0,
            earlier: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= self.most
    }

    /// Looks at a row. Rows must come in their order, the newest first.
    pub(super) fn look_at(
        &mut self,
        row: &PlacedRow,
        selection: &Selection<'_>,
        known: &mut KnownRows,
    ) {
        self.looked_at += 1;
        let described = selection.described(row);
        known.note(row, described.err());
        match described {
            Ok(described) if selection.has(described) => {
                self.count += 1;
                if !self.is_full() {
                    self.rows.push(row.clone());
                }
            }
            Err(Unusable::Earlier) => {
                if let Content::Row(stored) = &row.content
                    && !stored.row.is_trashed
                {
                    self.earlier.push(stored.row.clone());
                }
            }
            Ok(_) | Err(_) => {}
        }
    }
}

/// The results of all reads together.
#[derive(Default)]
pub(super) struct KnownRows {
    /// The keys without a usable row.
    unusable: BTreeMap<String, Unusable>,
    /// The number of usable rows that were counted since the first page: the rows at the place `lowest` and later.
    usable: u64,
    lowest: u64,
}

impl KnownRows {
    /// Begins to count usable rows again, at the end of the stream.
    pub(super) fn begin(&mut self) {
        (self.usable, self.lowest) = (0, u64::MAX);
    }

    fn note(&mut self, row: &PlacedRow, unusable: Option<Unusable>) {
        // A page may look again at rows of the page before it.
        let is_new = row.place < self.lowest;
        self.lowest = self.lowest.min(row.place);
        match unusable {
            None => {
                self.usable += u64::from(is_new);
                self.unusable.remove(&row.key);
            }
            Some(why) if self.unusable.len() < MOST_UNUSABLE => {
                self.unusable.insert(row.key.clone(), why);
            }
            Some(_) => {}
        }
    }

    pub(super) fn usable(&self) -> u64 {
        self.usable
    }

    pub(super) fn damaged(&self) -> usize {
        let all = self.unusable.values();
        all.filter(|why| **why == Unusable::Damaged).count()
    }

    /// Whether a key is known to have no usable row.
    pub(super) fn is_unusable(&self, key: &str) -> bool {
        self.unusable.contains_key(key)
    }
}

/// The sessions that no row describes, sorted: the sessions of `ids` without a row (`has_key`), and the sessions with
/// an unusable row.
pub(super) fn bare(
    ids: impl Iterator<Item = String>,
    has_key: impl Fn(&str) -> bool,
    known: &KnownRows,
) -> Vec<String> {
    let is_bare = |id: &String| {
        let key = subject::key(id);
        !has_key(&key) || known.is_unusable(&key)
    };
    let mut bare: Vec<String> = ids.filter(is_bare).collect();
    bare.sort_unstable();
    bare
}

/// Looks at the rows of a window before a place. Stops when the page is full, unless all rows must be counted.
pub(super) fn look_at_window(
    window: &RowWindow,
    before: u64,
    counts_all: bool,
    found: &mut Found,
    selection: &Selection<'_>,
    known: &mut KnownRows,
) {
    for row in window.before(before) {
        if found.is_full() && !counts_all {
            return;
        }
        found.look_at(row, selection, known);
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::StoredRow;
    use super::super::row::tests::stored;
    use super::*;

    const CREATED: &str = "2026-01-01T00:00:00Z";

    fn placed(place: u64, stored: &StoredRow) -> PlacedRow {
        let key = subject::key(&stored.row.session_id);
        PlacedRow::of(key, place, &stored.encode())
    }

    fn window(rows: Vec<PlacedRow>) -> RowWindow {
        let mut window = RowWindow::after(0);
        let until = rows.last().map_or(0, |row| row.place);
        window.extend_up(rows, until);
        window
    }

    /// The ids of the sessions that a query selects, and the results of the read.
    fn found(rows: Vec<PlacedRow>, query: &TeamQuery) -> (Vec<String>, Found, KnownRows) {
        let (mut found, mut known) = (Found::new(query.limit), KnownRows::default());
        known.begin();
        let selection = Selection::new(query, CREATED, 100);
        look_at_window(
            &window(rows),
            u64::MAX,
            true,
            &mut found,
            &selection,
            &mut known,
        );
        let keys = found.rows.iter().map(|row| row.key.clone());
        (keys.collect(), found, known)
    }

    fn all() -> TeamQuery {
        TeamQuery {
            limit: 100,
            ..TeamQuery::default()
        }
    }

    #[test]
    fn a_query_selects_by_directory_name_words_and_deletion() {
        let mut rows = vec![stored("a", 1, CREATED), stored("b", 2, CREATED)];
        rows[1].row.cwd = "/srv/0/".to_owned();
        rows[1].row.name = None;
        let mut deleted = stored("c", 3, CREATED);
        deleted.row.is_trashed = true;
        rows.push(deleted);
        let rows: Vec<PlacedRow> = (1..).zip(&rows).map(|(at, row)| placed(at, row)).collect();
        for (query, expected) in [
            (all(), &["b", "a"][..]),
            (
                TeamQuery {
                    cwd: Some("/srv/0".to_owned()),
                    ..all()
                },
                &["b"],
            ),
            (
                TeamQuery {
                    named: Some(true),
                    ..all()
                },
                &["a"],
            ),
            (
                TeamQuery {
                    named: Some(false),
                    ..all()
                },
                &["b"],
            ),
            (
                TeamQuery {
                    words: vec!["name".to_owned(), "/c".to_owned()],
                    ..all()
                },
                &["a"],
            ),
            (
                TeamQuery {
                    words: vec!["message".to_owned(), "1".to_owned()],
                    ..all()
                },
                &["a"],
            ),
            (
                TeamQuery {
                    words: vec!["100%".to_owned()],
                    ..all()
                },
                &[],
            ),
            (
                TeamQuery {
                    is_of_deleted: true,
                    ..all()
                },
                &["c"],
            ),
            (
                TeamQuery {
                    here: vec!["b".to_owned()],
                    ..all()
                },
                &["a"],
            ),
        ] {
            let (ids, found, _) = found(rows.clone(), &query);
            assert_eq!(ids, expected, "{query:?}");
            assert_eq!((found.count, found.looked_at), (ids.len() as u64, 3));
        }
    }

    #[test]
    fn a_page_keeps_one_row_more_than_it_has_and_counts_all() {
        let rows = (1..=9).map(|n| placed(n, &stored(&format!("s{n}"), n, CREATED)));
        let query = TeamQuery { limit: 2, ..all() };
        let (ids, found, known) = found(rows.collect(), &query);
        assert_eq!(ids, ["s9", "s8", "s7"]);
        assert!(found.is_full());
        assert_eq!((found.count, known.usable()), (9, 9));
    }

    /// A stream that is deleted and made again counts from 1, so the rows of the old stream have greater sequences.
    #[test]
    fn rows_that_describe_no_session_of_the_stream_leave_it_bare() {
        let earlier = stored("old", 4000, "2025-01-01T00:00:00Z");
        let rows = vec![
            placed(1, &stored("a", 1, CREATED)),
            placed(2, &earlier),
            placed(3, &stored("foreign", 101, CREATED)),
            PlacedRow::of("removed".to_owned(), 4, b""),
            PlacedRow::of("damaged".to_owned(), 5, b"{"),
            PlacedRow::of("strange".to_owned(), 6, b"null"),
        ];
        let (ids, found, mut known) = found(rows, &all());
        assert_eq!(ids, ["a"]);
        assert_eq!(found.earlier, [earlier.row]);
        assert_eq!((known.damaged(), known.usable()), (3, 1));
        let ids = ["a", "old", "foreign", "removed", "damaged", "without"].map(str::to_owned);
        let has_key = |key: &str| key != "without";
        let bare_now = |known: &KnownRows| bare(ids.iter().cloned(), has_key, known);
        assert_eq!(
            bare_now(&known),
            ["damaged", "foreign", "old", "removed", "without"]
        );
        // The machine of the session writes the row again.
        let (mut later, query) = (Found::new(9), all());
        let selection = Selection::new(&query, CREATED, 100);
        let row = placed(7, &stored("damaged", 50, CREATED));
        later.look_at(&row, &selection, &mut known);
        assert_eq!(known.damaged(), 2);
        assert_eq!(bare_now(&known), ["foreign", "old", "removed", "without"]);
        assert_eq!(known.usable(), 1, "newer rows belong to the next count");
    }
}
