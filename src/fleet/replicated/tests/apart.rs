//! Appends to a file while the file is made equal to its log.

use super::*;
use crate::patience;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

/// The lock of the file was once held while servers were awaited, and appends waited for it.
#[test]
fn a_file_takes_appends_while_its_lines_are_published() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.file_appends(&line(2));
    setup.file_appends_meanwhile(line(3));
    replica.settle_alone(TornLine::Leave).unwrap();
    let all = [header(), line(1), line(2), line(3)].concat();
    assert_eq!((setup.file_text(), setup.log_text()), (all.clone(), all));
    assert!(replica.is_equal());
}

#[test]
fn a_file_that_is_made_again_keeps_what_was_appended_meanwhile() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.log_appends(&line(2));
    setup.file_appends(&line(3));
    setup.file_appends_meanwhile(line(4));
    replica.settle_alone(TornLine::Leave).unwrap();
    let all = [header(), line(1), line(2), line(3), line(4)].concat();
    assert_eq!((setup.file_text(), setup.log_text()), (all.clone(), all));
    assert!(replica.is_equal());
}

/// An incomplete line belongs to a writer that has not finished it, so it is not a line of the log yet.
#[test]
fn a_line_that_is_being_written_stays_as_it_is_behind_a_file_that_is_made_again() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.log_appends(&line(2));
    setup.file_appends(&line(3));
    let (begun, rest) = {
        let whole = line(4);
        let (begun, rest) = whole.split_at(9);
        (begun.to_owned(), rest.to_owned())
    };
    setup.file_appends_meanwhile(begun.clone());
    replica.settle_alone(TornLine::Leave).unwrap();
    let whole = [header(), line(1), line(2), line(3)].concat();
    assert_eq!(setup.log_text(), whole);
    assert_eq!(setup.file_text(), format!("{whole}{begun}"));
    setup.file_appends(&rest);
    replica.settle_alone(TornLine::Leave).unwrap();
    assert_eq!(setup.log_text(), format!("{whole}{}", line(4)));
    assert_eq!(setup.log_text(), setup.file_text());
}

/// A log whose answers are late. The number counts the calls.
struct LateLog(Arc<FolderLog>, AtomicUsize);

impl LogSource for LateLog {
    fn log(&self) -> Result<Arc<dyn LogBackend>> {
        if let Some(until) = patience::until() {
            self.1.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            return Err(patience::over());
        }
        Ok(Arc::clone(&self.0) as Arc<dyn LogBackend>)
    }
}

#[test]
fn lines_that_an_append_has_left_behind_are_not_waited_for_again() {
    let setup = Setup::of(&[line(1)]);
    setup.settled();
    let at = Location::of_path(&setup.path()).unwrap();
    let source = Arc::new(LateLog(Arc::clone(&setup.log), AtomicUsize::new(0)));
    let asked = Arc::clone(&source);
    let asked = || asked.1.load(Ordering::Relaxed);
    let replica = ReplicatedFile::new(source, ID, at, true);
    let file = setup.open();
    let soon = || Some(Instant::now() + Duration::from_millis(30));
    let failed = replica.publish(line(2).as_bytes(), soon()).unwrap_err();
    assert_eq!(failed.kind, Kind::LogUnavailable);
    setup.file_appends(&line(2));
    assert_eq!(asked(), 1);
    let failed = replica.settle(&file, soon()).unwrap_err();
    assert_eq!((failed.kind, asked()), (Kind::LogUnavailable, 1));
    // The follower has its own deadline. After it, appends wait for servers again.
    replica.settle_alone(TornLine::Leave).unwrap();
    assert_eq!(setup.log_text(), setup.file_text());
    replica.settle(&file, soon()).unwrap_err();
    assert_eq!(asked(), 2);
}
