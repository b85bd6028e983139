//! Reads the stream of rows backwards from its end, one part after another. The newest rows stay in memory.

use super::selection::{Found, KnownRows, Selection, look_at_window};
use super::values::{Value, Values};
use super::window::{PlacedRow, RowWindow};
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;
use treelined_core::error::Result;
use treelined_core::team::{cursor_before, place_of};

/// About how many rows are read at a time.
const PART: u64 = 4096;
/// The first page counts this many of the newest rows, which are usually one part.
const COUNTED: u64 = 4000;
/// If more messages than this were written since the last read, the reader drops its rows and begins again at the end
/// of the stream.
const MOST_BEHIND: u64 = 100_000;

/// The state of the reads of one stream of rows.
pub(super) struct RowReader {
    pub(super) window: RowWindow,
    pub(super) known: KnownRows,
    /// The rows of sessions with a file here that the window lacks, by their keys.
    pub(super) here: HashMap<String, Option<PlacedRow>>,
    /// The time at which the stream of rows was created.
    created: String,
    /// The first message of the stream.
    first: u64,
    /// The part that was read last, if the window has no room for it.
    part: Option<Part>,
    depth: Depth,
}

/// The rows after `from`, up to `until`.
struct Part {
    from: u64,
    until: u64,
    rows: BTreeMap<u64, PlacedRow>,
}

/// How the next part is read.
#[derive(Default)]
struct Depth {
    /// The place before which the next part ends.
    at: u64,
    /// The number of places in the next part. A session that changes often leaves many places without a row.
    width: u64,
    /// The number of rows after `at`, if it is known.
    after: Option<u64>,
}

/// A page of rows.
pub(super) struct RowPage {
    pub(super) found: Found,
    /// The cursor of the next page; `None` if no older row follows.
    pub(super) next: Option<String>,
    /// Whether all rows up to the first one of the stream were looked at.
    pub(super) is_end: bool,
    /// Whether the read stopped at `until` before the page was full.
    pub(super) is_cut: bool,
}

/// A request for a page.
pub(super) struct Wanted<'q> {
    pub(super) selection: Selection<'q>,
    pub(super) after: Option<&'q str>,
    pub(super) limit: usize,
    /// When the read stops, even if the page is not full.
    pub(super) until: Option<Instant>,
}

impl RowReader {
    pub(super) fn new() -> Self {
        Self {
            window: RowWindow::after(0),
            known: KnownRows::default(),
            here: HashMap::new(),
            created: String::new(),
            first: 0,
            part: None,
            depth: Depth::default(),
        }
    }

    /// Reads the rows that were written since the last call. Returns the number of keys, and a mark that changes with
    /// the rows.
    pub(super) async fn refresh(&mut self, values: &Values) -> Result<(u64, (String, u64))> {
        let info = values.info().await?;
        let last = info.state.last_seq;
        let is_behind = last.saturating_sub(self.window.until()) > MOST_BEHIND;
        if info.created != self.created || last < self.window.until() || is_behind {
            *self = Self {
                window: RowWindow::after(last),
                created: info.created.clone(),
                ..Self::new()
            };
        }
        self.first = info.state.first_seq;
        let known = self.window.until();
        if last > known {
            let opened = values.open(known).await?;
            let mut new = Vec::new();
            let mut take = |value| new.push(placed(value));
            values.read(opened, last, &mut take).await?;
            for row in &new {
                self.here.remove(&row.key);
            }
            self.window.extend_up(new, last);
        }
        Ok((info.state.num_subjects, (info.created, last)))
    }

    /// The time at which the stream of rows was created.
    pub(super) fn created(&self) -> &str {
        &self.created
    }

    /// Whether the window has all rows of the stream.
    pub(super) fn has_all(&self) -> bool {
        self.is_begin(self.window.from())
    }

    /// Whether no row is at this place or before it.
    fn is_begin(&self, at: u64) -> bool {
        at < self.first.max(1)
    }

    /// A page of rows.
    pub(super) async fn page(&mut self, values: &Values, wanted: &Wanted<'_>) -> Result<RowPage> {
        let mut found = Found::new(wanted.limit);
        let before = match wanted.after {
            None => u64::MAX,
            // A cursor without a place names a session that has no row.
            Some(cursor) => place_of(cursor).unwrap_or(0),
        };
        let is_first = wanted.after.is_none();
        if is_first {
            self.known.begin();
        }
        look_at_window(
            &self.window,
            before,
            is_first,
            &mut found,
            &wanted.selection,
            &mut self.known,
        );
        let mut at = before.saturating_sub(1).min(self.window.from());
        let mut is_cut = false;
        while !self.is_begin(at) && (!found.is_full() || (is_first && found.looked_at < COUNTED)) {
            if !self.has_part_at(at) {
                // At least one part is read, so that each page reaches further than the page before.
                is_cut = found.looked_at > 0
                    && wanted.until.is_some_and(|until| Instant::now() >= until);
                if is_cut {
                    break;
                }
                self.read_part(values, at).await?;
            }
            at = self.look_at_part(at, &mut found, &wanted.selection);
        }
        let next = match found.is_full() {
            true => {
                found.rows.truncate(wanted.limit);
                found.rows.last().map(|row| cursor_before(row.place))
            }
            false if self.is_begin(at) => None,
            false => Some(cursor_before(at + 1)),
        };
        Ok(RowPage {
            is_end: self.is_begin(at),
            is_cut: is_cut && !found.is_full(),
            found,
            next,
        })
    }

    fn has_part_at(&self, at: u64) -> bool {
        let has = |part: &Part| part.from < at && at <= part.until;
        self.part.as_ref().is_some_and(has)
    }

    /// Looks at the rows of the part up to `at`. Returns the place before these rows. If the window begins where the
    /// part ends and has room, moves the rows of the part to the window.
    fn look_at_part(&mut self, at: u64, found: &mut Found, selection: &Selection<'_>) -> u64 {
        let Some(part) = self.part.take() else {
            return at;
        };
        for (_, row) in part.rows.range(..=at).rev() {
            if !self.window.has_newer(row) {
                found.look_at(row, selection, &mut self.known);
            }
        }
        let from = part.from;
        if part.until == self.window.from() && self.window.has_room() {
            let rows = part.rows.into_values().collect();
            self.window.extend_down(rows, from);
        } else {
            self.part = Some(part);
        }
        from
    }

    /// Reads the part that ends at `at`.
    async fn read_part(&mut self, values: &Values, at: u64) -> Result<()> {
        if self.depth.at != at {
            self.depth = Depth {
                at,
                width: PART,
                after: None,
            };
        }
        loop {
            let depth = &mut self.depth;
            let from = at
                .saturating_sub(depth.width)
                .max(self.first.saturating_sub(1));
            let opened = values.open(from).await?;
            let many = depth.after.map(|after| opened.count.saturating_sub(after));
            if many.is_some_and(|many| many > 4 * PART) && depth.width > PART {
                values.close(opened).await;
                depth.width = (depth.width / 4).max(PART);
                continue;
            }
            let after = Some(opened.count);
            let mut rows = BTreeMap::new();
            let mut take = |value: Value| {
                rows.insert(value.revision, placed(value));
            };
            values.read(opened, at, &mut take).await?;
            // Each part costs a consumer, so the parts become wider where there are few rows.
            let width = match rows.len() as u64 {
                many if many < PART / 16 => depth.width * 8,
                many if many < PART / 2 => depth.width * 2,
                _ => PART,
            };
            *depth = Depth {
                at: from,
                width,
                after,
            };
            self.part = Some(Part {
                from,
                until: at,
                rows,
            });
            return Ok(());
        }
    }
}

pub(super) fn placed(value: Value) -> PlacedRow {
    PlacedRow::of(value.key, value.revision, &value.value)
}
