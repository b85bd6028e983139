//! Tests of the originals that migrations keep.

use super::{entries, run};
use crate::cancel::Cancel;
use crate::log::Log;
use crate::os::file::Location;
use crate::session::{Session, SessionState};
use std::path::Path;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::flow::PlannedLines;
use treelined_core::id::EntryId;

const OLD: &str = concat!(
    r#"{"type":"session","version":2,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}"#,
    "\n",
    r#"{"type":"custom","id":"a","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z","customType":"c"}"#,
    "\n",
);

/// Appends an entry to the old file, which migrates it.
fn migrate(path: &Path) {
    std::fs::write(path, OLD).unwrap();
    let opened = Log::open(Location::of_path(path).unwrap()).unwrap();
    let session = Session::new(opened, false, Durability::Os);
    let line = entries("b", 1);
    let planned = move |_: &SessionState| {
        Ok(PlannedLines {
            lines: vec![line.trim_end().as_bytes().to_vec()],
            entry_ids: vec![EntryId::new("b0")],
            ..PlannedLines::default()
        })
    };
    run(async {
        let guard = session.guard(Instant::now(), ()).unwrap();
        guard.commit(&Cancel::new(), planned).await.2.unwrap();
    });
    let new = std::fs::read_to_string(path).unwrap();
    assert!(
        new.contains(r#""version":3"#) && new.contains("b0"),
        "{new}"
    );
}

#[test]
fn an_original_takes_the_place_of_no_other_file() {
    for (kept, is_second) in [
        (OLD.to_owned(), false),
        (OLD.replace("/\"", "\\\""), true),
        (OLD.replace("\"c\"", "\"d\""), true),
        (String::new(), true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let first = folder.path().join("s.jsonl.v2.bak");
        let second = folder.path().join("s.jsonl.v2.bak.2");
        std::fs::write(&first, &kept).unwrap();
        migrate(&folder.path().join("s.jsonl"));
        assert_eq!(std::fs::read_to_string(&first).unwrap(), kept);
        assert_eq!(second.exists(), is_second);
        if is_second {
            assert_eq!(std::fs::read_to_string(&second).unwrap(), OLD);
        }
    }
}
