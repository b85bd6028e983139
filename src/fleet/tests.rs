//! The comparison and the copy of a session. Two session directories replace the servers here; `tests/fleet` has these
//! tests with servers.

use super::backend::{AppendOutcome, LogBackend, Position};
use super::closing::{reopen, trashed};
use super::files::SessionFiles;
use super::transfer::{pull, pull_on, push};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use treelined_core::error::{Error, Kind};
use treelined_files::clock::SharedSource;
use treelined_files::store::Store;

pub(super) const ID: &str = "s1";

pub(super) fn header() -> String {
    format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{ID}\",\"timestamp\":\"2026-01-02T03:04:05.000Z\",\"cwd\":\"/c\"}}\n"
    )
}

pub(super) fn line(number: usize) -> String {
    format!("{{\"type\":\"custom\",\"id\":\"e{number}\",\"parentId\":null,\"customType\":\"t\"}}\n")
}

/// Two session directories. One is used as the log.
struct Pair {
    _folder: TempDir,
    file: Store,
    log: Store,
}

impl Pair {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            file: Store::new(folder.path().join("file")),
            log: Store::new(folder.path().join("log")),
            _folder: folder,
        }
    }

    fn sides(&self) -> (SessionFiles<'_>, SessionFiles<'_>) {
        (SessionFiles::of(&self.file), SessionFiles::of(&self.log))
    }
}

fn path(of: &SessionFiles<'_>) -> PathBuf {
    of.find(ID).unwrap().unwrap().path()
}

fn text(of: &SessionFiles<'_>) -> String {
    fs::read_to_string(path(of)).unwrap()
}

/// Appends to the end, whatever the end is, like a program that does not know the log.
fn write(to: &SessionFiles<'_>, lines: &str) {
    let end = match to.find(ID).unwrap() {
        Some(at) => Position(at.status().unwrap().size),
        None => Position::START,
    };
    let outcome = to.append(ID, end, lines.as_bytes()).unwrap();
    assert!(matches!(outcome, AppendOutcome::Appended(_)));
}

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> Kind {
    result.unwrap_err().kind
}

#[test]
fn a_push_brings_the_lines_that_are_missing_and_a_second_one_none() {
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&file, &[header(), line(1), line(2)].concat());
    let first = push(&file, &log, ID).unwrap();
    assert_eq!((first.lines, first.is_behind), (3, false));
    assert_eq!(text(&log), text(&file));
    assert_eq!(push(&file, &log, ID).unwrap().lines, 0);
    write(&file, &line(3));
    assert_eq!(push(&file, &log, ID).unwrap().lines, 1);
    assert_eq!(text(&log), text(&file));
}

#[test]
fn a_pull_makes_the_file_again_byte_for_byte() {
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(
        &log,
        &[header(), line(1), "\n".to_owned(), "damaged\n".to_owned()].concat(),
    );
    assert_eq!(pull(&file, &log, ID).unwrap().lines, 4);
    assert_eq!(text(&file), text(&log));
    write(&log, &line(2));
    assert_eq!(pull(&file, &log, ID).unwrap().lines, 1);
    fs::remove_file(path(&file)).unwrap();
    assert_eq!(pull(&file, &log, ID).unwrap().lines, 5);
    assert_eq!(text(&file), text(&log));
}

/// Another machine has continued the session. A push and a pull must report this, and copy nothing in the wrong
/// direction.
#[test]
fn the_side_that_is_behind_is_named() {
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&file, &[header(), line(1)].concat());
    push(&file, &log, ID).unwrap();
    write(&log, &line(2));
    let pushed = push(&file, &log, ID).unwrap();
    assert_eq!((pushed.lines, pushed.is_behind), (0, true));
    assert_eq!(pull(&file, &log, ID).unwrap().lines, 1);
    write(&file, &line(3));
    let pulled = pull(&file, &log, ID).unwrap();
    assert_eq!((pulled.lines, pulled.is_behind), (0, true));
}

#[test]
fn two_sides_that_went_on_apart_are_left_alone() {
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&file, &[header(), line(1)].concat());
    push(&file, &log, ID).unwrap();
    write(&file, &line(2));
    write(&log, &line(3));
    let before = (text(&file), text(&log));
    assert_eq!(kind(push(&file, &log, ID)), Kind::LogDiverged);
    assert_eq!(kind(pull(&file, &log, ID)), Kind::LogDiverged);
    assert_eq!((text(&file), text(&log)), before);
}

/// Only the record of the file shows that the log had more lines.
#[test]
fn a_log_that_lost_messages_is_reported_by_a_pull_and_filled_again_by_a_push() {
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&file, &[header(), line(1)].concat());
    push(&file, &log, ID).unwrap();
    write(&file, &line(2));
    push(&file, &log, ID).unwrap();
    let shorter = [header(), line(1)].concat();
    fs::write(path(&log), &shorter).unwrap();
    assert_eq!(kind(pull(&file, &log, ID)), Kind::LogRewound);
    assert_eq!(text(&log), shorter);
    let pushed = push(&file, &log, ID).unwrap();
    assert_eq!((pushed.lines, pushed.is_refilled), (1, true));
    assert_eq!(text(&log), text(&file));
    let again = push(&file, &log, ID).unwrap();
    assert_eq!((again.lines, again.is_refilled), (0, false));
}

/// The log has other lines than the file after the same position, so a push cannot append the lines of the file.
#[test]
fn a_log_that_lost_messages_and_got_others_is_left_alone() {
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&file, &[header(), line(1), line(2)].concat());
    push(&file, &log, ID).unwrap();
    let other = [header(), line(1), line(3)].concat();
    fs::write(path(&log), &other).unwrap();
    assert_eq!(kind(pull(&file, &log, ID)), Kind::LogRewound);
    assert_eq!(kind(push(&file, &log, ID)), Kind::LogDiverged);
    assert_eq!(text(&log), other);
}

/// The log was made again, and other machines have filled it: nothing is lost.
#[test]
fn a_log_that_was_made_anew_and_has_all_again_is_gone_on_with() {
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&file, &[header(), line(1), line(2)].concat());
    push(&file, &log, ID).unwrap();
    let record = PathBuf::from(format!("{}.replica", path(&file).display()));
    let before = fs::read_to_string(&record).unwrap();
    let of_old = before.replace("\"streamCreated\":\"\"", "\"streamCreated\":\"earlier\"");
    assert_ne!(before, of_old);
    fs::write(&record, &of_old).unwrap();
    write(&log, &line(3));
    assert_eq!(pull(&file, &log, ID).unwrap().lines, 1);
    assert_eq!(text(&file), text(&log));
    // The new log has one line less than the file has from the old log.
    fs::write(&record, of_old).unwrap();
    fs::write(path(&log), [header(), line(1)].concat()).unwrap();
    assert_eq!(kind(pull(&file, &log, ID)), Kind::LogRewound);
}

#[test]
fn a_replica_of_another_log_is_refused() {
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&file, &header());
    push(&file, &log, ID).unwrap();
    let other = Pair::new();
    assert_eq!(kind(push(&file, &other.sides().1, ID)), Kind::LogDiverged);
}

/// Without its record, a replica must be compared from the start.
#[test]
fn a_lost_or_damaged_record_costs_only_time() {
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&file, &[header(), line(1)].concat());
    push(&file, &log, ID).unwrap();
    let record = PathBuf::from(format!("{}.replica", path(&file).display()));
    write(&file, &line(2));
    fs::write(&record, "{").unwrap();
    assert_eq!(push(&file, &log, ID).unwrap().lines, 1);
    fs::remove_file(&record).unwrap();
    assert_eq!(push(&file, &log, ID).unwrap().lines, 0);
    assert!(record.exists());
}

/// A crash may leave a file that ends in its header, or in the middle of a line.
#[test]
fn a_file_that_a_crash_cut_off_is_completed_by_a_pull() {
    let whole = [header(), line(1), line(2)].concat();
    for left in [0, 20, header().len(), whole.len() - 10, whole.len() - 1] {
        let pair = Pair::new();
        let (file, log) = pair.sides();
        write(&log, &whole);
        pull(&file, &log, ID).unwrap();
        let at = path(&file);
        fs::write(&at, &whole[..left]).unwrap();
        let again = pull(&file, &log, ID).unwrap_or_else(|error| panic!("{left}: {error}"));
        assert!(!again.is_behind, "{left}");
        assert_eq!(fs::read_to_string(&at).unwrap(), whole, "{left}");
    }
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&log, &whole);
    pull(&file, &log, ID).unwrap();
    fs::write(path(&log), [whole, line(3)].concat()).unwrap();
    let at = path(&file);
    fs::write(&at, "no header, and not empty").unwrap();
    assert_eq!(kind(pull(&file, &log, ID)), Kind::HeaderMissing);
    assert_eq!(fs::read_to_string(&at).unwrap(), "no header, and not empty");
}

/// A session from another machine could once have put its file into any folder.
#[test]
fn a_log_without_a_proper_header_makes_no_file() {
    let hostile = |id: &str, stamp: &str| {
        format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"{stamp}\",\"cwd\":\"/c\"}}\n"
        )
    };
    let good = "2026-01-02T03:04:05.000Z";
    for first in [
        "not json\n".to_owned(),
        line(1),
        hostile("other", good),
        // The first append would rewrite a file of another version, and then file and log would differ.
        hostile(ID, good).replace("\"version\":3", "\"version\":2"),
        hostile(ID, good).replace("\"version\":3,", ""),
        hostile(ID, "../../../tmp/x"),
    ] {
        let pair = Pair::new();
        let (file, _) = pair.sides();
        let made = file.append(ID, Position::START, first.as_bytes());
        assert_eq!(kind(made), Kind::LogForeign, "{first}");
        assert!(file.list_after(None).unwrap().is_empty());
    }
    let pair = Pair::new();
    let id = "../x";
    let made = pair
        .sides()
        .0
        .append(id, Position::START, hostile(id, good).as_bytes());
    assert_eq!(kind(made), Kind::LogForeign);
}

#[test]
fn an_append_of_a_file_compares_and_sets() {
    let pair = Pair::new();
    let (file, _) = pair.sides();
    let first = header();
    write(&file, &first);
    let wrong = Position(first.len() as u64 - 1);
    let conflict = file.append(ID, wrong, line(1).as_bytes()).unwrap();
    assert_eq!(conflict, AppendOutcome::Conflict);
    let again = file.append(ID, Position::START, first.as_bytes()).unwrap();
    assert_eq!(again, AppendOutcome::Conflict);
    assert_eq!(text(&file), first);
}

#[test]
fn a_follower_gets_what_is_appended_later() {
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&log, &[header(), line(1)].concat());
    let mut written = Vec::new();
    let ended = pull_on(&file, &log, ID, &mut |done| {
        written.push(done.lines);
        match written.len() {
            3 => Err(Error::cancelled()),
            count => {
                write(&log, &line(count + 1));
                Ok(())
            }
        }
    });
    assert_eq!(kind(ended), Kind::Cancelled);
    assert_eq!(written, [2, 1, 1]);
    assert_eq!(text(&file), text(&log));
}

/// A deleted session must not be restored by a pull, and gets no lines by a push.
#[test]
fn a_deleted_session_is_neither_pulled_nor_pushed() {
    let deletion = trashed(ID, Some("e1"), &SharedSource, None);
    let deletion = String::from_utf8(deletion).unwrap();
    let pair = Pair::new();
    let (file, log) = pair.sides();
    write(&log, &[header(), line(1), deletion.clone()].concat());
    assert_eq!(kind(pull(&file, &log, ID)), Kind::SessionDeleted);
    assert!(file.list_after(None).unwrap().is_empty());
    // The files of three machines: one has not seen the deletion, one has seen it, and one has written after it.
    for lines in [
        [header(), line(1)].concat(),
        [header(), line(1), deletion.clone()].concat(),
        [header(), line(1), deletion.clone(), line(2)].concat(),
    ] {
        let other = Pair::new();
        let (file, _) = other.sides();
        write(&file, &lines);
        let before = text(&log);
        assert_eq!(kind(push(&file, &log, ID)), Kind::SessionDeleted);
        assert_eq!(kind(pull(&file, &log, ID)), Kind::SessionDeleted);
        assert_eq!((text(&log), text(&file)), (before, lines));
    }
    reopen(&log, ID, &SharedSource, None).unwrap();
    assert_eq!(pull(&file, &log, ID).unwrap().lines, 4);
    assert_eq!(text(&file), text(&log));
}
