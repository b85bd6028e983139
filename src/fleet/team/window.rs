//! The newest rows of a stream of rows, as far as this process has read them.

use super::row::StoredRow;
use std::collections::{BTreeMap, HashMap};
use treelined_core::budget::TEAM_BYTES;

/// The bytes of a row in memory, apart from its texts.
const ROW_BYTES: usize = 400;

/// The value of a key in a stream of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Row(Box<StoredRow>),
    /// The row was removed with a tool of the servers.
    Removed,
    Damaged,
}

/// A row at its place in the stream. Later writes have greater places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlacedRow {
    pub(super) key: String,
    pub(super) place: u64,
    pub(super) content: Content,
}

impl PlacedRow {
    /// Reads a message of the stream.
    pub(super) fn of(key: String, place: u64, value: &[u8]) -> Self {
        let content = match value.is_empty() {
            true => Content::Removed,
            false => StoredRow::decode(&key, value)
                .map_or(Content::Damaged, |row| Content::Row(Box::new(row))),
        };
        Self {
            key,
            place,
            content,
        }
    }

    fn bytes(&self) -> usize {
        let texts = match &self.content {
            Content::Removed | Content::Damaged => 0,
            Content::Row(stored) => {
                let row = &stored.row;
                let name = row.name.as_ref().map_or(0, String::len);
                let texts = [&row.session_id, &row.first_message, &row.cwd, &row.host];
                let texts: usize = texts.into_iter().map(String::len).sum();
                texts + name + stored.stream_created.len()
            }
        };
        // Both maps have the key.
        ROW_BYTES + 2 * self.key.len() + texts
    }
}

/// All rows of the stream from one place to its end.
pub(super) struct RowWindow {
    rows: BTreeMap<u64, PlacedRow>,
    /// The place of each row, by its key.
    places: HashMap<String, u64>,
    /// The window has the rows after this place, up to `until`.
    from: u64,
    until: u64,
    bytes: usize,
}

impl RowWindow {
    /// A window that begins after this place, and has no rows.
    pub(super) fn after(place: u64) -> Self {
        Self {
            rows: BTreeMap::new(),
            places: HashMap::new(),
            from: place,
            until: place,
            bytes: 0,
        }
    }

    pub(super) fn from(&self) -> u64 {
        self.from
    }

    pub(super) fn until(&self) -> u64 {
        self.until
    }

    pub(super) fn get(&self, key: &str) -> Option<&PlacedRow> {
        self.rows.get(self.places.get(key)?)
    }

    /// Whether the stream has replaced a row by a newer one, which is in the window.
    pub(super) fn has_newer(&self, row: &PlacedRow) -> bool {
        self.places
            .get(&row.key)
            .is_some_and(|place| *place > row.place)
    }

    /// The rows before a place, the newest first.
    pub(super) fn before(&self, place: u64) -> impl Iterator<Item = &PlacedRow> {
        self.rows.range(..place).rev().map(|(_, row)| row)
    }

    /// Takes rows that were written since the last read. The window then ends at `until`.
    pub(super) fn extend_up(&mut self, rows: Vec<PlacedRow>, until: u64) {
        for row in rows {
            self.add(row);
        }
        self.until = until;
        if self.bytes > TEAM_BYTES {
            self.drop_oldest();
        }
    }

    /// Takes the rows before the window. The window then begins after `from`.
    pub(super) fn extend_down(&mut self, rows: Vec<PlacedRow>, from: u64) {
        for row in rows {
            if !self.has_newer(&row) {
                self.add(row);
            }
        }
        self.from = from;
    }

    /// Whether there is room for older rows.
    pub(super) fn has_room(&self) -> bool {
        self.bytes < TEAM_BYTES / 2
    }

    fn add(&mut self, row: PlacedRow) {
        if let Some(before) = self.places.insert(row.key.clone(), row.place)
            && let Some(before) = self.rows.remove(&before)
        {
            self.bytes -= before.bytes();
        }
        self.bytes += row.bytes();
        self.rows.insert(row.place, row);
    }

    /// Drops the rows that were written first, until a quarter of the budget is free.
    fn drop_oldest(&mut self) {
        while self.bytes > TEAM_BYTES / 4 * 3
            && let Some((place, row)) = self.rows.pop_first()
        {
            self.bytes -= row.bytes();
            self.places.remove(&row.key);
            self.from = place;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::stored;
    use super::*;

    const CREATED: &str = "2026-01-01T00:00:00Z";

    fn row(id: &str, place: u64) -> PlacedRow {
        let text = stored(id, place, CREATED).encode();
        PlacedRow::of(id.to_owned(), place, &text)
    }

    fn places(window: &RowWindow, before: u64) -> Vec<u64> {
        window.before(before).map(|row| row.place).collect()
    }

    #[test]
    fn the_newest_row_of_each_session_is_kept() {
        let mut window = RowWindow::after(10);
        window.extend_down(vec![row("a", 8), row("b", 9), row("c", 10)], 7);
        assert_eq!((window.from(), window.until()), (7, 10));
        window.extend_up(vec![row("a", 12), row("d", 13)], 14);
        assert_eq!(places(&window, u64::MAX), [13, 12, 10, 9]);
        assert_eq!(places(&window, 12), [10, 9]);
        assert_eq!(window.get("a").unwrap().place, 12);
        assert!(window.has_newer(&row("a", 3)) && !window.has_newer(&row("e", 3)));
        // This part was read before the row of the session was written again.
        window.extend_down(vec![row("a", 5), row("e", 6)], 4);
        assert_eq!(places(&window, 10), [9, 6]);
    }

    #[test]
    fn rows_beyond_the_budget_are_the_oldest() {
        let mut window = RowWindow::after(0);
        let mut place = 0;
        while window.from() == 0 {
            let rows = (0..1000).map(|n| row(&format!("s{}", place + n), place + n + 1));
            let rows = rows.collect();
            place += 1000;
            window.extend_up(rows, place);
            assert!(place < 100_000);
        }
        assert!(window.bytes <= TEAM_BYTES);
        let kept = places(&window, u64::MAX);
        let all: Vec<u64> = (window.from() + 1..=place).rev().collect();
        assert_eq!(kept, all);
        assert_eq!(window.places.len(), kept.len());
        let counted: usize = window.rows.values().map(PlacedRow::bytes).sum();
        assert_eq!(window.bytes, counted);
    }

    #[test]
    fn a_message_is_a_row_or_says_why_not() {
        let text = stored("a", 1, CREATED).encode();
        let of = |key: &str, value: &[u8]| PlacedRow::of(key.to_owned(), 1, value).content;
        assert!(matches!(of("a", &text), Content::Row(_)));
        assert_eq!(of("b", &text), Content::Damaged);
        assert_eq!(of("a", b"{"), Content::Damaged);
        assert_eq!(of("a", b""), Content::Removed);
    }
}
