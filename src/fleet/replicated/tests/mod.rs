//! One session file and its log. A session directory replaces the servers here; `tests/fleet` has these tests with
//! servers.

mod apart;
mod deletion;
mod looking_up;
#[cfg(feature = "team")]
mod waiting;

use super::*;
use crate::backend::LogParts;
use crate::files::SessionFiles;
use crate::tests::{ID, header, line};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use treelined_files::log::upstream::{PublishOutcome, Upstream};
use treelined_files::store::Store;

/// A session directory as a backend. A position is a number of bytes, and each line is a part.
struct FolderLog {
    store: Store,
    is_away: AtomicBool,
    /// Added to each position except the first.
    origin: AtomicU64,
    /// Called by the next append, while it waits for its answer.
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// Called by the next read.
    on_read: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl FolderLog {
    fn files(&self) -> SessionFiles<'_> {
        SessionFiles::of(&self.store)
    }
}

impl LogBackend for FolderLog {
    fn append(&self, session: &str, expected: Position, lines: &[u8]) -> Result<AppendOutcome> {
        let meanwhile = lock(&self.meanwhile).take();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        let origin = self.origin.load(Ordering::Relaxed);
        let at = Position(expected.0.saturating_sub(origin));
        let appended = self.files().append(session, at, lines)?;
        Ok(match appended {
            AppendOutcome::Appended(end) => AppendOutcome::Appended(Position(origin + end.0)),
            AppendOutcome::Conflict => AppendOutcome::Conflict,
        })
    }

    fn read<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>> {
        let on_read = lock(&self.on_read).take();
        if let Some(on_read) = on_read {
            on_read();
        }
        let origin = self.origin.load(Ordering::Relaxed);
        let from = Position(from.0.saturating_sub(origin));
        let mut end = Position(origin + from.0);
        let mut parts = Vec::new();
        for part in self.files().read(session, from)? {
            for line in part?.lines.split_inclusive(|byte| *byte == b'\n') {
                end = Position(end.0 + line.len() as u64);
                let lines = line.to_vec();
                parts.push(Ok(LogPart { lines, end }));
            }
        }
        Ok(Box::new(parts.into_iter()))
    }

    fn follow<'a>(&'a self, session: &str, from: Position) -> Result<LogParts<'a>> {
        self.read(session, from)
    }

    fn list_after(&self, after: Option<&str>) -> Result<Vec<String>> {
        self.files().list_after(after)
    }

    fn identity(&self, session: &str) -> Result<LogIdentity> {
        self.files().identity(session)
    }

    fn max_append(&self) -> usize {
        1 << 20
    }
}

/// A log whose server may be away.
struct Server(Arc<FolderLog>);

impl LogSource for Server {
    fn log(&self) -> Result<Arc<dyn LogBackend>> {
        match self.0.is_away.load(Ordering::Relaxed) {
            true => Err(Error::new(Kind::LogUnavailable, "away")),
            false => Ok(Arc::clone(&self.0) as Arc<dyn LogBackend>),
        }
    }
}

/// A log and the file of a session.
struct Setup {
    folder: TempDir,
    log: Arc<FolderLog>,
}

impl Setup {
    /// Makes a log and a file that both have the header and these lines.
    fn of(lines: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = Arc::new(FolderLog {
            store: Store::new(folder.path().join("log")),
            is_away: AtomicBool::new(false),
            origin: AtomicU64::new(0),
            meanwhile: Mutex::default(),
            on_read: Mutex::default(),
        });
        let setup = Self { folder, log };
        let text = [header(), lines.concat()].concat();
        setup.log_appends(&text);
        fs::write(setup.path(), text).unwrap();
        setup
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("s.jsonl")
    }

    /// The file, as another process sees it.
    fn replica(&self) -> Arc<ReplicatedFile> {
        let at = Location::of_path(&self.path()).unwrap();
        ReplicatedFile::new(Arc::new(Server(Arc::clone(&self.log))), ID, at, true)
    }

    fn settled(&self) -> Arc<ReplicatedFile> {
        let replica = self.replica();
        replica.settle_alone(TornLine::Close).unwrap();
        assert!(replica.is_equal());
        replica
    }

    fn log_text(&self) -> String {
        let at = self.log.files().find(ID).unwrap().unwrap();
        fs::read_to_string(at.path()).unwrap()
    }

    fn file_text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    /// Appends to the log, as another machine does.
    fn log_appends(&self, lines: &str) {
        let end = match self.log.files().find(ID).unwrap() {
            Some(at) => Position(at.status().unwrap().size),
            None => Position::START,
        };
        let appended = self.log.append(ID, end, lines.as_bytes()).unwrap();
        assert!(matches!(appended, AppendOutcome::Appended(_)));
    }

    /// Appends to the file, as a program that does not know the log does.
    fn file_appends(&self, lines: &str) {
        self.open().write_all(lines.as_bytes()).unwrap();
    }

    /// During the next append to the log, appends to the file with the file's lock. Fails if the lock is held.
    fn file_appends_meanwhile(&self, lines: String) {
        let path = self.path();
        *lock(&self.log.meanwhile) = Some(Box::new(move || {
            let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
            file.try_lock().unwrap();
            file.write_all(lines.as_bytes()).unwrap();
        }));
    }

    fn open(&self) -> File {
        fs::OpenOptions::new()
            .append(true)
            .open(self.path())
            .unwrap()
    }
}

#[test]
fn a_published_line_is_settled_once_the_file_has_it() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    let file = setup.open();
    let published = replica.publish(line(2).as_bytes(), None).unwrap();
    assert_eq!(published, PublishOutcome::Published);
    setup.file_appends(&line(2));
    assert!(!replica.is_settled(&file));
    replica.written(&file);
    assert!(replica.is_settled(&file));
    assert_eq!(setup.log_text(), setup.file_text());
}

/// The process dies after the acknowledgement and before the write to the file.
#[test]
fn a_published_line_that_the_file_has_not_is_there_after_the_next_opening() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    replica.publish(line(2).as_bytes(), None).unwrap();
    drop(replica);
    setup.settled();
    assert_eq!(setup.file_text(), [header(), line(1), line(2)].concat());
}

#[test]
fn a_file_that_was_deleted_is_not_made_again_by_its_follower() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    fs::remove_file(setup.path()).unwrap();
    setup.log_appends(&line(2));
    replica.settle_alone(TornLine::Leave).unwrap();
    assert!(!setup.path().exists());
}

#[test]
fn a_publish_behind_the_lines_of_others_is_a_conflict_until_they_are_in_the_file() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    let file = setup.open();
    setup.log_appends(&line(2));
    let outcome = replica.publish(line(3).as_bytes(), None).unwrap();
    assert_eq!(outcome, PublishOutcome::Conflict);
    assert!(!replica.is_settled(&file), "the log has more");
    replica.settle(&file, None).unwrap();
    assert_eq!(setup.file_text(), [header(), line(1), line(2)].concat());
    let outcome = replica.publish(line(3).as_bytes(), None).unwrap();
    assert_eq!(outcome, PublishOutcome::Published);
}

#[test]
fn lines_of_programs_that_know_no_log_are_published() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.file_appends(&[line(2), "\n".to_owned(), line(3)].concat());
    assert!(!replica.is_equal());
    replica.settle_alone(TornLine::Leave).unwrap();
    assert_eq!(setup.log_text(), setup.file_text());
    assert!(replica.is_equal());
}

/// File and log both have new lines. The file must get the order of the log, with its own lines at the end, and no line
/// may be lost.
#[test]
fn a_file_and_a_log_that_both_went_on_have_the_order_of_the_log() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.log_appends(&[line(2), line(3)].concat());
    setup.file_appends(&[line(4), "{\"torn\n".to_owned(), line(5)].concat());
    replica.settle_alone(TornLine::Close).unwrap();
    let ordered = [header(), line(1), line(2), line(3), line(4), line(5)].concat();
    assert_eq!(setup.file_text(), ordered);
    assert_eq!(setup.log_text(), ordered);
    let foreign = setup.path().with_file_name("s.jsonl.foreign");
    assert_eq!(fs::read_to_string(foreign).unwrap(), "{\"torn\n");
    assert!(replica.is_equal());
    // A process that does not know of this must not publish the file's own lines again.
    setup.settled();
    assert_eq!(setup.log_text(), ordered);
}

/// The process dies after the file's own lines were published and before the file was made again.
#[test]
fn a_rebuild_that_was_cut_off_publishes_no_line_twice() {
    let setup = Setup::of(&[line(1)]);
    setup.settled().save().unwrap();
    setup.log_appends(&[line(2), line(3)].concat());
    setup.file_appends(&line(3));
    setup.settled();
    let ordered = [header(), line(1), line(2), line(3)].concat();
    assert_eq!(setup.file_text(), ordered);
    assert_eq!(setup.log_text(), ordered);
}

#[test]
fn two_histories_under_one_id_stay_as_they_are() {
    let setup = Setup::of(&[line(1)]);
    let other = [header(), line(7)].concat();
    fs::write(setup.path(), &other).unwrap();
    let failed = setup.replica().settle_alone(TornLine::Close).unwrap_err();
    assert_eq!(failed.kind, Kind::LogDiverged);
    assert_eq!(setup.file_text(), other);
    assert_eq!(setup.log_text(), [header(), line(1)].concat());
}

#[test]
fn a_log_that_lost_lines_is_named_and_the_file_keeps_them() {
    let setup = Setup::of(&[line(1), line(2)]);
    let replica = setup.settled();
    let at = setup.log.files().find(ID).unwrap().unwrap();
    fs::write(at.path(), [header(), line(1)].concat()).unwrap();
    setup.file_appends(&line(3));
    let failed = replica.settle_alone(TornLine::Close).unwrap_err();
    assert_eq!(failed.kind, Kind::LogRewound);
    let whole = [header(), line(1), line(2), line(3)].concat();
    assert_eq!(setup.file_text(), whole);
    assert_eq!(setup.log_text(), [header(), line(1)].concat());
    // Another machine appends the lost line again.
    setup.log_appends(&line(2));
    replica.settle_alone(TornLine::Close).unwrap();
    assert_eq!(setup.log_text(), whole);
    assert!(replica.is_equal());
}

/// A log that was made anew has the same lines at other positions.
#[test]
fn an_open_file_goes_on_with_a_log_that_was_made_anew_and_filled_again() {
    let setup = Setup::of(&[line(1), line(2)]);
    let replica = setup.settled();
    let at = setup.log.files().find(ID).unwrap().unwrap();
    let text = setup.log_text();
    fs::write(at.path(), &text[..header().len()]).unwrap();
    setup.log.origin.store(1_000, Ordering::Relaxed);
    let failed = replica.settle_alone(TornLine::Leave).unwrap_err();
    assert_eq!(failed.kind, Kind::LogRewound);
    let kept = Position(header().len() as u64);
    let given_back = &text.as_bytes()[header().len()..];
    let appended = setup.log.files().append(ID, kept, given_back).unwrap();
    assert!(matches!(appended, AppendOutcome::Appended(_)));
    replica.settle_alone(TornLine::Leave).unwrap();
    assert!(replica.is_equal());
    assert_eq!(replica.position(), Position(1_000 + text.len() as u64));
    let published = replica.publish(line(3).as_bytes(), None).unwrap();
    assert_eq!(published, PublishOutcome::Published);
}

/// A push adds the lines that only the file has as a branch, after the lines of others, and adds them once.
#[test]
fn a_log_that_lost_lines_and_got_others_takes_those_of_the_file_as_a_branch() {
    let setup = Setup::of(&[line(1), line(2)]);
    setup.settled();
    let at = setup.log.files().find(ID).unwrap().unwrap();
    fs::write(at.path(), [header(), line(1), line(4)].concat()).unwrap();
    setup.file_appends(&line(3));
    let store = Store::new(setup.folder.path().join("none"));
    let at = Location::of_path(&setup.path()).unwrap();
    let (files, session) = SessionFiles::with_file(&store, at).unwrap();
    let log = Arc::clone(&setup.log) as Arc<dyn LogBackend>;
    let failed = transfer::push(&files, &*log, &session).unwrap_err();
    assert_eq!(failed.kind, Kind::LogDiverged);
    let pushed = branch::push_branch(&files, &log, &session).unwrap();
    assert_eq!((pushed.lines, pushed.is_branch), (2, true));
    let whole = [header(), line(1), line(4), line(2), line(3)].concat();
    assert_eq!(setup.log_text(), whole);
    assert_eq!(setup.file_text(), whole);
    let again = branch::push_branch(&files, &log, &session).unwrap();
    assert_eq!((again.lines, again.is_branch), (0, false));
}

/// Another program may still be writing the line. A follower leaves the line as it is. An append ends the line with a
/// line break, as it does without a log.
#[test]
fn an_incomplete_line_is_left_by_a_follower_and_closed_before_an_append() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.file_appends(line(2).trim_end());
    replica.settle_alone(TornLine::Leave).unwrap();
    assert_eq!(setup.log_text(), [header(), line(1)].concat());
    replica.settle(&setup.open(), None).unwrap();
    assert_eq!(setup.log_text(), [header(), line(1), line(2)].concat());
    assert_eq!(setup.log_text(), setup.file_text());
}

#[test]
fn a_follower_writes_each_part_once() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    let before = replica.position();
    setup.log_appends(&line(2));
    let parts: Vec<LogPart> = setup
        .log
        .read(ID, before)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for _ in 0..2 {
        for part in &parts {
            replica.take(before, part).unwrap();
        }
    }
    assert_eq!(setup.file_text(), [header(), line(1), line(2)].concat());
    // If there is a gap before a part, the follower reads the log.
    setup.log_appends(&line(3));
    let gap = replica.position();
    setup.log_appends(&line(4));
    let late = LogPart {
        lines: line(4).into_bytes(),
        end: Position(gap.0 + (line(3).len() + line(4).len()) as u64),
    };
    replica
        .take(Position(gap.0 + line(3).len() as u64), &late)
        .unwrap();
    assert_eq!(setup.file_text(), setup.log_text());
}

/// The session can still be read, and its lines wait in the file.
#[test]
fn lines_that_were_written_while_the_log_was_away_are_published_later() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.log.is_away.store(true, Ordering::Relaxed);
    let failed = replica.publish(line(2).as_bytes(), None).unwrap_err();
    assert_eq!(failed.kind, Kind::LogUnavailable);
    setup.file_appends(&line(2));
    let failed = replica.settle(&setup.open(), None).unwrap_err();
    assert_eq!(failed.kind, Kind::LogUnavailable);
    setup.log.is_away.store(false, Ordering::Relaxed);
    replica.settle_alone(TornLine::Leave).unwrap();
    assert_eq!(setup.log_text(), [header(), line(1), line(2)].concat());
}

/// The part of the file that is also in the log is damaged, for example by a disk that lost bytes or by a manual
/// change.
#[test]
fn a_damaged_replica_is_made_again_from_the_log() {
    let setup = Setup::of(&[line(1), line(2)]);
    setup.settled();
    let damaged = [header(), line(1).replace('t', "?"), line(2), line(3)].concat();
    fs::write(setup.path(), damaged).unwrap();
    let replica = setup.replica();
    replica.remake().unwrap();
    let whole = [header(), line(1), line(2), line(3)].concat();
    assert_eq!(setup.file_text(), whole);
    assert_eq!(setup.log_text(), whole);
    let foreign = setup.path().with_file_name("s.jsonl.foreign");
    assert_eq!(
        fs::read_to_string(foreign).unwrap(),
        line(1).replace('t', "?")
    );
}

/// A line that a disk or a person has changed has the id of another line. Readers take the last body of an id, so if
/// the line was published, the entry would change on every machine.
#[test]
fn a_damaged_copy_of_an_entry_is_kept_aside_and_never_published() {
    let setup = Setup::of(&[line(1), line(2)]);
    setup.settled();
    let changed = line(1).replace("\"t\"", "\"u\"");
    let damaged = [header(), changed.clone(), line(2)].concat();
    fs::write(setup.path(), damaged).unwrap();
    setup.replica().remake().unwrap();
    let whole = [header(), line(1), line(2)].concat();
    assert_eq!(setup.log_text(), whole);
    assert_eq!(setup.file_text(), whole);
    let foreign = setup.path().with_file_name("s.jsonl.foreign");
    assert_eq!(fs::read_to_string(foreign).unwrap(), changed);
}

/// The record is synced and the file is not, so after the death of the machine the record may be ahead of the file.
#[test]
fn a_file_that_lost_its_end_in_a_crash_gets_it_from_the_log() {
    let whole = [header(), line(1), line(2), line(3)].concat();
    let kept = whole.len() - line(3).len();
    for lost_to in [kept, kept - 10, kept + 10, header().len()] {
        for zeros in [0, whole.len() - lost_to] {
            let setup = Setup::of(&[line(1), line(2), line(3)]);
            setup.settled();
            let mut left = whole.clone().into_bytes();
            left.truncate(lost_to);
            left.resize(lost_to + zeros, 0);
            fs::write(setup.path(), left).unwrap();
            let replica = setup.replica();
            replica.settle(&setup.open(), None).unwrap();
            // If the file was replaced, its session opens it again.
            replica.settle(&setup.open(), None).unwrap();
            assert_eq!(setup.file_text(), whole, "{lost_to} and {zeros} zeros");
            assert_eq!(setup.log_text(), whole, "{lost_to} and {zeros} zeros");
        }
    }
}

/// A record that is JSON but wrong must not make the file longer than the log.
#[test]
fn a_record_that_does_not_fit_the_file_counts_as_none() {
    let whole = [header(), line(1), line(2)].concat();
    for (member, value) in [
        ("length", 0),
        ("length", 5),
        ("offset", 1 << 40),
        ("offset", whole.len() as u64 - 1),
        ("previous", 0),
    ] {
        let setup = Setup::of(&[line(1), line(2)]);
        setup.settled();
        let beside = setup.path().with_file_name("s.jsonl.replica");
        let text = fs::read_to_string(&beside).unwrap();
        let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
        record[member] = value.into();
        if member == "previous" {
            record["length"] = 0.into();
        }
        fs::write(&beside, record.to_string()).unwrap();
        setup.settled();
        assert_eq!(setup.file_text(), whole, "{member} {value}");
        assert_eq!(setup.log_text(), whole, "{member} {value}");
    }
}
