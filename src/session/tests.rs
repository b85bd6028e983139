//! The work that runs inline, and the work that runs on a blocking thread.

use super::*;
use crate::flow::PlannedLines;
use crate::os::file::Location;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}"#;

/// Lines of about `bytes` bytes.
fn entries(name: &str, bytes: u64) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() as u64 >= bytes {
            break;
        }
        text += &format!(
            r#"{{"type":"custom","id":"{name}{number}","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z","customType":"c"}}"#
        );
        text.push('\n');
    }
    text
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn session(path: &Path) -> Arc<Session> {
    std::fs::write(path, format!("{HEADER}\n{}", entries("a", 1))).unwrap();
    let opened = Log::open(Location::of_path(path).unwrap()).unwrap();
    Session::new(opened, false, Durability::Os)
}

/// The result if the work ends at its first poll; `None` if it continues on another thread.
fn polled<T>(work: &mut Pin<Box<impl Future<Output = T>>>) -> Option<T> {
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

fn run(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.build().unwrap().block_on(test);
}

/// Up to a megabyte of others' entries was read on the reader thread. That took many milliseconds if they
/// were leaf records, duplicates or damaged.
#[test]
fn large_appends_of_others_are_read_on_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let session = session(&path);
    run(async {
        let turn = session.guard(Instant::now(), ()).unwrap();
        append(&path, &entries("little", INLINE_BYTES / 2));
        let mut little = Box::pin(turn.refreshed());
        let (turn, changes) = polled(&mut little).expect("read at once").unwrap();
        assert!(changes.others.len() > 100);
        append(&path, &entries("much", 2 * INLINE_BYTES));
        let mut much = Box::pin(turn.refreshed());
        assert!(polled(&mut much).is_none(), "read on the reader thread");
        let (_, changes) = much.await.unwrap();
        assert!(changes.others.len() > 500);
    });
}

/// A writer without the lock can append between our refresh and our write. Any amount of its lines is read on a
/// blocking thread.
#[test]
fn a_large_append_between_refresh_and_write_is_read_on_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let session = session(&path);
    let ours = |id: &str| {
        let line = entries(id, 1);
        PlannedLines {
            lines: vec![line.trim_end().as_bytes().to_vec()],
            entry_ids: vec![EntryId::new(format!("{id}0"))],
            ends: Vec::new(),
        }
    };
    run(async {
        for (name, bytes, is_at_once) in [
            ("little", INLINE_BYTES / 2, true),
            ("much", 2 * INLINE_BYTES, false),
        ] {
            let turn = session.guard(Instant::now(), ()).unwrap();
            let (path, planned) = (path.clone(), ours(&format!("our{name}")));
            let plan = move |_: &SessionState| {
                append(&path, &entries(name, bytes));
                Ok(planned)
            };
            let cancel = Cancel::new();
            let mut commit = Box::pin(turn.commit(&cancel, plan));
            let at_once = polled(&mut commit);
            assert_eq!(at_once.is_some(), is_at_once, "{name}");
            let (turn, changes, committed) = match at_once {
                Some(done) => done,
                None => commit.await,
            };
            assert!(committed.unwrap().wrote);
            assert_eq!((changes.own.len(), changes.others.len() > 100), (1, true));
            let leaf = format!("our{name}0");
            assert_eq!(turn.unwrap().leaf_id(), Some(leaf.as_str()));
        }
    });
}

/// Each request read an incomplete long line again from its beginning.
#[test]
fn a_line_in_flight_is_not_read_again_before_it_has_grown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let session = session(&path);
    let line = entries("late", 1).replace(r#""c""#, &format!("{:?}", "x".repeat(9000)));
    run(async {
        let mut turn = session.guard(Instant::now(), ()).unwrap();
        for piece in line.as_bytes().chunks(1000) {
            assert!(turn.find("late0").is_err());
            append(&path, std::str::from_utf8(piece).unwrap());
            assert!(matches!(turn.log.standing().unwrap(), Standing::Grown(_)));
            (turn, _) = turn.refreshed().await.unwrap();
            assert_eq!(turn.log.standing().unwrap(), Standing::Unchanged);
        }
        assert!(turn.find("late0").is_ok());
        // A fragment that another program replaces by whole lines, longer or shorter, is read again.
        for (name, fragment) in [("longer", "{"), ("shorter", &"{".repeat(5000))] {
            let size = std::fs::metadata(&path).unwrap().len();
            append(&path, fragment);
            (turn, _) = turn.refreshed().await.unwrap();
            assert_eq!(turn.log.standing().unwrap(), Standing::Unchanged);
            OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(size)
                .unwrap();
            append(&path, &entries(name, 1));
            (turn, _) = turn.refreshed().await.unwrap();
            assert!(turn.find(&format!("{name}0")).is_ok(), "{name}");
        }
        // Our own append begins a line of its own after a fragment.
        append(&path, "{\"type\":");
        (turn, _) = turn.refreshed().await.unwrap();
        let planned = PlannedLines {
            lines: vec![entries("ours", 1).trim_end().as_bytes().to_vec()],
            entry_ids: vec![EntryId::new("ours0")],
            ends: Vec::new(),
        };
        let cancel = Cancel::new();
        let (turn, _, committed) = turn
            .commit(&cancel, move |_: &SessionState| Ok(planned))
            .await;
        assert!(committed.unwrap().wrote);
        let turn = turn.unwrap();
        assert_eq!(turn.leaf_id(), Some("ours0"));
        assert_eq!(turn.log.standing().unwrap(), Standing::Unchanged);
    });
}
