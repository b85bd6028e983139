//! The report of the follower that no lines wait in the file any more.

use super::*;
use crate::follower;
use std::sync::atomic::AtomicUsize;
use treelined_files::log::upstream::{LogHook, LogNews};

/// One look of the follower. Returns how often it has reported that no lines wait.
fn look(replica: &Arc<ReplicatedFile>) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let news: LogHook = Arc::new(move |news| {
        assert_eq!(news, LogNews::Published);
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let looked = runtime.block_on(follower::look(replica, false, &news));
    looked.unwrap();
    count.load(Ordering::Relaxed)
}

/// A session was once shown as queued forever. An append had left its lines to the follower, and the log received them
/// late. The follower began to look before the lines were in the file, and then found them in the log. So the follower
/// did not see that lines waited, and published no lines itself.
#[test]
fn lines_that_arrive_late_in_the_log_are_reported() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    // The publish gets no answer in time. The lines are in the log, and not yet in the file.
    lock(&replica.state).is_behind = true;
    setup.log_appends(&line(2));
    let (path, observed) = (setup.path(), Arc::clone(&replica));
    *lock(&setup.log.on_read) = Some(Box::new(move || {
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(line(2).as_bytes()).unwrap();
        // The commit tells the client that its entry waits.
        assert!(observed.waits());
    }));
    assert_eq!(look(&replica), 1);
    assert!(!replica.waits());
    assert_eq!(setup.log_text(), setup.file_text());
    assert_eq!(look(&replica), 0, "nothing is reported twice");
}

/// A session was once shown as queued forever if a client opened it, and the opening published the lines that waited in
/// its file.
#[test]
fn lines_that_an_opening_has_published_are_reported() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.file_appends(&line(2));
    assert!(replica.waits());
    replica.settle_alone(TornLine::Leave).unwrap();
    assert_eq!(setup.log_text(), setup.file_text());
    assert_eq!(look(&replica), 1);
    assert_eq!(look(&replica), 0, "nothing is reported twice");
}

#[test]
fn a_file_in_which_no_lines_have_waited_has_no_report() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    assert_eq!(look(&replica), 0);
    // Another program writes between two looks, so no caller has learned that lines wait.
    setup.file_appends(&line(2));
    assert_eq!(look(&replica), 1);
    setup.log_appends(&line(3));
    replica.settle_alone(TornLine::Leave).unwrap();
    assert_eq!(look(&replica), 0, "lines of others do not wait here");
}
