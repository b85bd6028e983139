//! Sessions that are deleted and restored in the log.

use super::*;
use crate::closing as closing_lines;
use treelined_files::clock::SharedSource;
use treelined_files::log::upstream::InLog;

/// The record that another machine appends when it deletes the session.
fn deletion(leaf: &str) -> String {
    String::from_utf8(closing_lines::trashed(ID, Some(leaf), &SharedSource, None)).unwrap()
}

#[test]
fn a_deletion_ends_log_and_file_with_the_same_record_at_the_leaf() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    let closed = replica.close(&SharedSource, None).unwrap().unwrap();
    assert_eq!(closed.position, replica.position());
    let row = closed.description.unwrap().row;
    assert_eq!((&*row.session_id, row.entries), (ID, 1));
    let text = setup.file_text();
    assert_eq!(setup.log_text(), text);
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last["customType"], "treelined.trashed");
    assert_eq!(last["parentId"], "e1");
    // After the deletion, no process can append.
    for replica in [replica, setup.replica()] {
        let _known = replica.settle_alone(TornLine::Leave);
        let failed = replica.publish(line(2).as_bytes(), None).unwrap_err();
        assert_eq!(failed.kind, Kind::SessionDeleted);
    }
    assert_eq!(setup.log_text(), text);
}

/// Both machines find the same end of the log. The second machine finds the record of the first machine.
#[test]
fn a_session_that_two_machines_delete_has_one_record() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.log_appends(&deletion("e1"));
    let log = setup.log_text();
    let closed = replica.close(&SharedSource, None).unwrap().unwrap();
    assert!(closed.description.is_none());
    assert_eq!(setup.log_text(), log);
    assert_eq!(setup.file_text(), log);
    assert!(replica.close(&SharedSource, None).unwrap().is_some());
    assert_eq!(setup.log_text(), log);
}

#[test]
fn a_deletion_publishes_the_lines_that_wait_first() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.log_appends(&line(2));
    setup.file_appends(&line(3));
    replica.close(&SharedSource, None).unwrap().unwrap();
    let text = setup.log_text();
    assert!(text.starts_with(&[header(), line(1), line(2), line(3)].concat()));
    assert_eq!(setup.file_text(), text);
}

/// The deletion fails even if lines can be queued. It would move the file, but queued lines are published from the old
/// path of the file.
#[test]
fn a_deletion_without_the_log_fails_and_changes_nothing() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.log.is_away.store(true, Ordering::Relaxed);
    let failed = replica.close(&SharedSource, None).err().unwrap();
    assert_eq!(failed.kind, Kind::LogUnavailable);
    assert!(!replica.is_closing());
    assert_eq!(setup.file_text(), [header(), line(1)].concat());
    setup.log.is_away.store(false, Ordering::Relaxed);
    let published = replica.publish(line(2).as_bytes(), None).unwrap();
    assert_eq!(published, PublishOutcome::Published);
}

/// If the log does not have a session, the deletion needs no log, even if the log cannot be reached.
#[test]
fn a_deletion_of_a_session_that_the_log_has_not_makes_no_log() {
    let setup = Setup::of(&[line(1)]);
    let at = setup.log.files().find(ID).unwrap().unwrap();
    fs::remove_file(at.path()).unwrap();
    for is_away in [true, false] {
        setup.log.is_away.store(is_away, Ordering::Relaxed);
        assert!(
            setup
                .replica()
                .close(&SharedSource, None)
                .unwrap()
                .is_none()
        );
    }
    assert!(setup.log.files().find(ID).unwrap().is_none());
    assert_eq!(setup.file_text(), [header(), line(1)].concat());
}

#[test]
fn an_append_behind_a_deletion_of_another_machine_is_refused() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.log_appends(&deletion("e1"));
    let outcome = replica.publish(line(2).as_bytes(), None).unwrap();
    assert_eq!(outcome, PublishOutcome::Conflict);
    let failed = replica.settle(&setup.open(), None).unwrap_err();
    assert_eq!(failed.kind, Kind::SessionDeleted);
    assert_eq!(setup.log_text(), setup.file_text());
    let failed = replica.remake().unwrap_err();
    assert_eq!(failed.kind, Kind::SessionDeleted);
}

/// A follower reads the record as a part. After that, the file is known to be closed.
#[test]
fn a_follower_is_told_of_a_deletion() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    let before = replica.position();
    setup.log_appends(&deletion("e1"));
    let part = setup.log.last(ID).unwrap().unwrap();
    let failed = replica.take(before, &part).unwrap_err();
    assert_eq!(failed.kind, Kind::SessionDeleted);
    assert!(replica.is_closed());
    assert_eq!(setup.file_text(), setup.log_text());
}

/// Lines that only this machine has go to the trash with the file. They are published after the session is restored.
#[test]
fn lines_that_wait_at_a_deletion_are_published_once_the_session_is_restored() {
    let setup = Setup::of(&[line(1)]);
    setup.settled();
    setup.file_appends(&line(2));
    setup.log_appends(&deletion("e1"));
    let (file, log) = (setup.file_text(), setup.log_text());
    for _ in 0..2 {
        let failed = setup.replica().settle_alone(TornLine::Close).unwrap_err();
        assert_eq!(failed.kind, Kind::SessionDeleted);
        assert_eq!(
            (setup.file_text(), setup.log_text()),
            (file.clone(), log.clone())
        );
    }
    let reopened = closing_lines::reopen(&*setup.log, ID, &SharedSource, None).unwrap();
    assert_eq!(reopened, InLog::Deleted);
    let again = closing_lines::reopen(&*setup.log, ID, &SharedSource, None).unwrap();
    assert_eq!(again, InLog::Open);
    let reopened = setup.log_text();
    setup.settled();
    assert_eq!(setup.log_text(), format!("{reopened}{}", line(2)));
    assert_eq!(setup.file_text(), setup.log_text());
    let missing = closing_lines::reopen(&*setup.log, "other", &SharedSource, None).unwrap();
    assert_eq!(missing, InLog::Missing);
}

/// A deleted session is restored from the trash, and its file is then pushed to a new stream.
#[test]
fn a_restored_file_that_no_log_has_makes_an_open_one() {
    let setup = Setup::of(&[line(1), deletion("e1")]);
    let at = setup.log.files().find(ID).unwrap().unwrap();
    fs::remove_file(at.path()).unwrap();
    let replica = setup.replica();
    replica.open_alone(&SharedSource, None).unwrap();
    replica.open_alone(&SharedSource, None).unwrap();
    replica.settle_alone(TornLine::Close).unwrap();
    assert_eq!(setup.log_text(), setup.file_text());
    assert_eq!(setup.file_text().lines().count(), 4);
}

/// A log whose file goes to the trash during a call of the log.
struct Mover(Arc<FolderLog>, PathBuf);

impl LogSource for Mover {
    fn log(&self) -> Result<Arc<dyn LogBackend>> {
        // At the second call, the file has already been moved.
        let _gone = fs::rename(&self.1, self.1.with_extension("gone"));
        Ok(Arc::clone(&self.0) as Arc<dyn LogBackend>)
    }
}

/// An append once met the follower that moved the file to the trash, and failed with `storageIo`.
#[test]
fn a_file_that_goes_to_the_trash_while_it_is_compared_is_not_a_failure_of_the_disk() {
    let setup = Setup::of(&[line(1)]);
    let at = Location::of_path(&setup.path()).unwrap();
    let file = setup.open();
    let mover = Mover(Arc::clone(&setup.log), setup.path());
    let replica = ReplicatedFile::new(Arc::new(mover), ID, at, false);
    replica.settle(&file, None).unwrap();
    assert!(!setup.path().exists());
}
