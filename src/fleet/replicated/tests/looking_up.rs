//! Compares lines of a file with lines of the log.

use super::*;
use treelined_files::log::upstream::{FileLine, LineState};

impl Setup {
    /// The line of the file with this number.
    fn file_line(&self, number: usize) -> FileLine {
        let text = self.file_text();
        let mut lines = text.split_inclusive('\n');
        let before: usize = lines.by_ref().take(number - 1).map(str::len).sum();
        let line = lines.next().unwrap();
        FileLine {
            number: number as u64,
            bytes: line.as_bytes().to_vec(),
            end: (before + line.len()) as u64,
            file: file::status_of(&self.open()).unwrap().identity,
        }
    }
}

#[test]
fn a_line_is_equal_to_that_of_the_log_waits_or_differs() {
    let setup = Setup::of(&[line(1), line(2)]);
    let replica = setup.settled();
    let state = |number| {
        let found = replica.look_up(&setup.file_line(number)).unwrap();
        assert_eq!(found.account, None, "a folder names no accounts");
        found.state
    };
    assert_eq!([1, 2, 3].map(state), [LineState::Equal; 3]);

    // Another machine appends a line at the position of a line that waits here.
    setup.file_appends(&line(3));
    assert_eq!(state(4), LineState::Queued);
    setup.log_appends(&line(4));
    assert_eq!(state(4), LineState::Queued);

    let at = setup.log.files().find(ID).unwrap().unwrap();
    let other = line(2).replace("custom", "CUSTOM");
    assert_ne!(other, line(2));
    fs::write(at.path(), [header(), line(1), other].concat()).unwrap();
    assert_eq!(
        [1, 2, 3].map(state),
        [LineState::Equal, LineState::Equal, LineState::Differs]
    );
}

#[test]
fn a_lookup_says_that_servers_are_away_or_have_lost_the_line() {
    let setup = Setup::of(&[line(1), line(2)]);
    let replica = setup.settled();
    let kind = |of: &FileLine| replica.look_up(of).unwrap_err().kind;
    let last = setup.file_line(3);
    setup.log.is_away.store(true, Ordering::Relaxed);
    assert_eq!(kind(&last), Kind::LogUnavailable);
    setup.log.is_away.store(false, Ordering::Relaxed);
    let at = setup.log.files().find(ID).unwrap().unwrap();
    fs::write(at.path(), [header(), line(1)].concat()).unwrap();
    assert_eq!(kind(&last), Kind::LogRewound);
}

/// The new file at the path may have the line at another position, and the log has the order of the new file.
#[test]
fn a_line_of_a_file_that_was_made_again_is_not_called_different() {
    let setup = Setup::of(&[line(1)]);
    let replica = setup.settled();
    setup.file_appends(&line(2));
    let waiting = setup.file_line(3);
    let old = setup.open();
    setup.log_appends(&line(3));
    replica.settle_alone(TornLine::Leave).unwrap();
    let failed = replica.look_up(&waiting).unwrap_err();
    assert_eq!(failed.kind, Kind::SessionReplaced);
    assert_eq!(
        replica.look_up(&setup.file_line(4)).unwrap().state,
        LineState::Equal
    );
    drop(old);
}
