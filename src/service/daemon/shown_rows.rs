//! The JSON of the rows that lists have shown last. A client asks for the same page again and again, and making the
//! JSON takes most of the time of an answer.

use super::session_row::shown_row;
use hashbrown::HashMap;
use std::sync::{Arc, Mutex};
use treelined_core::budget::SHOWN_ROWS_BYTES;
use treelined_core::error::Result;
use treelined_files::lock::lock;
use treelined_files::store::catalogue::{CatalogueRow, ROW_BYTES};

/// The JSON of rows, of at most [`SHOWN_ROWS_BYTES`].
#[derive(Default)]
pub(crate) struct ShownRows(Mutex<KeptRows>);

#[derive(Default)]
struct KeptRows {
    bytes: usize,
    /// By the address of the row. No other row has this address, since the row is kept too.
    rows: HashMap<usize, (Arc<CatalogueRow>, Arc<[u8]>)>,
}

impl ShownRows {
    /// The JSON of a row.
    pub(crate) fn json(&self, row: &Arc<CatalogueRow>) -> Result<Arc<[u8]>> {
        let address = Arc::as_ptr(row).addr();
        if let Some((_, json)) = lock(&self.0).rows.get(&address) {
            return Ok(Arc::clone(json));
        }
        let json: Arc<[u8]> = shown_row(row)?.into();
        let bytes = json.len() + ROW_BYTES;
        let mut kept = lock(&self.0);
        if kept.bytes + bytes > SHOWN_ROWS_BYTES {
            *kept = KeptRows::default();
        }
        if bytes <= SHOWN_ROWS_BYTES {
            let new = (Arc::clone(row), Arc::clone(&json));
            // Another thread may have kept the same row already.
            if kept.rows.insert(address, new).is_none() {
                kept.bytes += bytes;
            }
        }
        Ok(json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treelined_files::os::file::{Identity, Status};
    use treelined_files::store::listing::Listing;

    fn row(text: &str) -> Arc<CatalogueRow> {
        let identity = Identity {
            device: 1,
            inode: 2,
        };
        let status = Status {
            identity,
            size: 3,
            modified: (4, 5),
            changed: (4, 5),
        };
        let listing = Listing {
            path: "/a.jsonl".into(),
            first_message: text.to_owned(),
            ..Listing::default()
        };
        Arc::new(CatalogueRow::new(status, listing))
    }

    #[test]
    fn a_row_that_was_shown_is_made_once_and_the_bytes_are_bounded() {
        let shown = ShownRows::default();
        let first = row("first");
        let json = shown.json(&first).unwrap();
        assert!(json.windows(5).any(|part| part == b"first"));
        assert!(Arc::ptr_eq(&json, &shown.json(&first).unwrap()));
        let text = "x".repeat(9 << 10);
        let many: Vec<_> = (0..1000).map(|_| row(&text)).collect();
        for row in &many {
            assert!(shown.json(row).unwrap().len() > text.len());
            let kept = lock(&shown.0);
            let held: usize = kept.rows.values().map(|(_, json)| json.len()).sum();
            assert!(held <= kept.bytes && kept.bytes <= SHOWN_ROWS_BYTES);
        }
        assert!(lock(&shown.0).rows.len() > 100);
        assert!(!Arc::ptr_eq(&json, &shown.json(&first).unwrap()));
        let kept = lock(&shown.0).bytes;
        let huge = row(&"x".repeat(SHOWN_ROWS_BYTES));
        assert!(shown.json(&huge).unwrap().len() > SHOWN_ROWS_BYTES);
        assert!(lock(&shown.0).bytes <= kept, "a huge row is not kept");
    }
}
