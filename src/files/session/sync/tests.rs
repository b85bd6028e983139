use super::*;

fn entries(identity: Identity, span: Range<u64>) -> RepeatedEntries {
    RepeatedEntries {
        file: Arc::new(tempfile::tempfile().unwrap()),
        identity,
        spans: vec![span],
    }
}

/// If the sync of the folder failed at the first write, this sync was once never tried again. So later appends were
/// answered as durable although the name of the file was not on disk.
#[test]
fn a_folder_is_synced_until_that_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let file = File::create_new(&path).unwrap();
    let at = Location::of_path(&path).unwrap();
    let syncer = Syncer::new(Durability::Always, Some(at));
    let identity = file::status_of(&file).unwrap().identity;
    assert!(lock(&syncer.state).folder_to_sync(identity).is_some());
    let (sender, _receiver) = oneshot::channel();
    lock(&syncer.state).waiting.push(sender);
    lock(&syncer.state).running = true;
    let file = Arc::new(file);
    lock(&syncer.state).note(UnsyncedFile { file, folder: None });
    run(&syncer.state);
    assert!(lock(&syncer.state).folder_to_sync(identity).is_none());
}

/// A later sync that succeeds proves nothing about bytes whose sync failed.
#[test]
fn bytes_of_a_failed_sync_stay_lost() {
    let file = |inode| Identity { device: 1, inode };
    let mut record = SyncRecord::default();
    record.note(file(1), 100, true);
    record.note(file(1), 200, false);
    record.note(file(1), 300, true);
    let is = |record: &SyncRecord, of, span: Range<u64>| {
        let entries = entries(file(of), span);
        (record.is_synced(&entries), record.is_lost(&entries))
    };
    assert_eq!(is(&record, 1, 0..100), (true, false));
    assert_eq!(is(&record, 1, 150..180), (true, true));
    assert_eq!(is(&record, 1, 200..300), (true, false));
    assert_eq!(is(&record, 1, 200..301), (false, false));
    assert_eq!(is(&record, 2, 150..180), (false, false));
}

/// The record stays bounded on a disk that fails again and again.
#[test]
fn the_record_of_failures_is_bounded_and_forgets_none_of_this_file() {
    let file = Identity {
        device: 1,
        inode: 1,
    };
    let mut record = SyncRecord::default();
    for round in 0..10_000 {
        record.note(file, 10 * round + 5, true);
        record.note(file, 10 * round + 10, false);
    }
    assert!(record.lost.len() <= MAX_LOST);
    for round in 0..10_000 {
        assert!(record.is_lost(&entries(file, 10 * round + 6..10 * round + 9)));
    }
}

/// A session whose file is replaced has failed syncs of both files. The oldest ones are forgotten first.
#[test]
fn the_record_of_failures_has_those_of_both_files() {
    let file = |inode| Identity { device: 1, inode };
    let mut record = SyncRecord::default();
    for round in 0..MAX_LOST as u64 {
        record.lose(file(1), 10 * round..10 * round + 5);
    }
    record.lose(file(2), 0..5);
    assert_eq!(record.lost.len(), MAX_LOST);
    assert!(record.is_lost(&entries(file(2), 0..5)));
    assert!(!record.is_lost(&entries(file(1), 0..5)));
    assert!(record.is_lost(&entries(file(1), 10..15)));
}

/// An entry that is sent again waits for the sync of its first write, and fails if that sync has failed.
#[tokio::test]
async fn a_repeated_entry_is_as_durable_as_its_first_write() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    std::fs::write(&path, "x".repeat(100)).unwrap();
    let at = Location::of_path(&path).unwrap();
    let file = Arc::new(
        at.folder
            .file(&at.name, handle::HandleAccess::Append)
            .unwrap(),
    );
    let identity = file::status_of(&file).unwrap().identity;
    let syncer = Syncer::new(Durability::Always, Some(at));
    let repeated = |span: Range<u64>| RepeatedEntries {
        file: Arc::clone(&file),
        identity,
        spans: vec![span],
    };
    let late = || unreachable!("nothing fails after an answer");
    let again = |durability, span| syncer.after_repetition(durability, repeated(span), late);
    again(Durability::Os, 0..10).await.unwrap();
    assert!(lock(&syncer.state).record.synced.is_none(), "no sync");
    again(Durability::Always, 0..10).await.unwrap();
    assert_eq!(lock(&syncer.state).record.synced, Some((identity, 100)));
    lock(&syncer.state).record.lose(identity, 40..50);
    again(Durability::Always, 0..10).await.unwrap();
    let lost = again(Durability::Interval, 40..50).await.unwrap_err();
    assert_eq!(lost.kind, Kind::DurabilityUnknown);
}

#[tokio::test]
async fn a_flush_syncs_what_waits_and_a_late_failure_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    std::fs::write(&path, "x").unwrap();
    let at = Location::of_path(&path).unwrap();
    let open = || {
        Arc::new(
            at.folder
                .file(&at.name, handle::HandleAccess::Append)
                .unwrap(),
        )
    };
    let syncer = Syncer::new(Durability::Interval, Some(at.clone()));
    syncer.flush().await.unwrap();
    assert!(lock(&syncer.state).record.synced.is_none(), "nothing waits");
    syncer
        .after_write(Durability::Interval, open(), || {})
        .await
        .unwrap();
    syncer.flush().await.unwrap();
    assert!(lock(&syncer.state).record.synced.is_some());
    syncer.failed_late(failed(&io::Error::other("x")));
    assert!(syncer.check().is_err() && syncer.check().is_ok());
    syncer.set_durability(Durability::Always);
    syncer.failed_late(failed(&io::Error::other("x")));
    syncer
        .check()
        .expect("its appends were not answered before");
    let replica = Syncer::new(Durability::Replicated, Some(at.clone()));
    replica.set_durability(Durability::Os);
    assert_eq!(replica.durability(), Durability::Replicated);
}

/// The header of a file whose first sync failed is written again. Nothing is written to another file that has its name
/// now, or to a file that has lost its beginning.
#[test]
fn the_beginning_of_a_file_is_written_again_only_in_this_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    std::fs::write(&path, "header").unwrap();
    let at = Location::of_path(&path).unwrap();
    let syncer = Syncer::new(Durability::Always, Some(at));
    let identity = |path| {
        file::status_of(&File::open(path).unwrap())
            .unwrap()
            .identity
    };
    let first = identity(&path);
    let write = |of| write_beginning(&syncer.state, Some(of));
    lock(&syncer.state).record.note(first, 6, false);
    write(first).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"header");
    std::fs::write(&path, [0; 6]).unwrap();
    assert!(write(first).is_err(), "the header is lost");
    let other = folder.path().join("other");
    std::fs::write(&other, [0; 6]).unwrap();
    std::fs::rename(&other, &path).unwrap();
    write(first).expect("another file has the name");
    write(identity(&path)).expect("its sync has not failed");
}

/// A fork once got its name before it was synced. After its sync had failed, its header was written again but not
/// synced. Another process then appended and synced, although the header was not on disk. A power cut lost the whole
/// session.
#[test]
fn a_header_whose_sync_has_failed_is_synced_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    std::fs::write(&path, "header").unwrap();
    let at = Location::of_path(&path).unwrap();
    let file = at
        .folder
        .file(&at.name, handle::HandleAccess::Append)
        .unwrap();
    let status = file::status_of(&file).unwrap();
    let headless = |syncer: &Syncer| lock(&syncer.state).record.headless;
    let syncer = Syncer::new(Durability::Os, Some(at.clone()));
    restore_beginning(&syncer.state, &file, &status);
    assert_eq!(headless(&syncer), None);
    assert_eq!(lock(&syncer.state).record.lost, [(status.identity, 0..6)]);
    // A header that cannot be written stays in doubt.
    std::fs::write(&path, [0; 6]).unwrap();
    let syncer = Syncer::new(Durability::Os, Some(at));
    restore_beginning(&syncer.state, &file, &status);
    assert_eq!(headless(&syncer), Some(status.identity));
}
