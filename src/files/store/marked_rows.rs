//! The rows of sessions together with their marks.

use super::catalogue::{CatalogueRow, Rows};
use super::marks::Marks;
use crate::lock::lock;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The rows of the last list, with the marks of their sessions. A row is used again while its file and its marks stay
/// the same.
#[derive(Default)]
pub(super) struct MarkedRows(Mutex<Option<LastMarked>>);

struct LastMarked {
    rows: Rows,
    marks: Arc<Marks>,
    /// For each session with marks, by its path: the row without marks, and the row with marks.
    made: HashMap<PathBuf, (Arc<CatalogueRow>, Arc<CatalogueRow>)>,
    marked: Rows,
}

impl MarkedRows {
    pub(super) fn of(&self, rows: Rows, marks: Arc<Marks>) -> Rows {
        let mut last = lock(&self.0);
        if marks.sessions.is_empty() {
            *last = None;
            return rows;
        }
        if let Some(last) = &*last
            && Arc::ptr_eq(&last.rows, &rows)
            && Arc::ptr_eq(&last.marks, &marks)
        {
            return Arc::clone(&last.marked);
        }
        let before = last.take().map(|last| last.made).unwrap_or_default();
        let (mut made, mut marked) = (HashMap::new(), rows.to_vec());
        for row in &mut marked {
            let header = row.listing.header.as_ref();
            let Some(of) = header.and_then(|header| marks.of(&header.id)) else {
                continue;
            };
            let same = before.get(&row.listing.path);
            let same = same.filter(|(base, same)| Arc::ptr_eq(base, row) && same.marks == *of);
            let with_marks = match same {
                Some((_, same)) => Arc::clone(same),
                None => Arc::new(row.with_marks(of)),
            };
            let base = std::mem::replace(row, Arc::clone(&with_marks));
            made.insert(base.listing.path.clone(), (base, with_marks));
        }
        let marked = Arc::new(marked);
        *last = Some(LastMarked {
            rows,
            marks,
            made,
            marked: Arc::clone(&marked),
        });
        marked
    }
}
