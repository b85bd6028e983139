//! Changes by other programs, and the end of the daemon.

use crate::harness::{Screen, opened, row};
use crate::tree::tour;
use treelined_tui::message::Row;
use treelined_tui::message::{Daemon, Effect, End, Event, Failure, NewerBranch, Session};

/// Another client appends; the cursor stays on its entry and on its line.
#[test]
fn entries_of_others_appear_and_the_cursor_stays() {
    let mut screen = Screen::tree(80, 20, tour());
    screen.keys("home down down down");
    let line = screen.model.tree.cursor - screen.model.tree.top;
    let new = Row {
        parent: Some("a1".into()),
        children: 0,
        ..row("x1", "├─ ", "I was here too.")
    };
    screen.rows.insert(3, new);
    screen.revision += 1;
    screen.daemon(Daemon::Event(Event::Appended {
        by_others: true,
        count: 1,
        others_at: Some("x1".into()),
        first_message: None,
    }));
    screen.check("live");
    assert_eq!(screen.model.tree.selected().unwrap().id, "q2");
    assert_eq!(screen.model.tree.cursor - screen.model.tree.top, line);
    screen.keys("O");
    assert_eq!(screen.model.tree.selected().unwrap().id, "x1");
}

/// The arrow of another program disappears when the user has gone to its leaf, or the daemon was restarted.
#[test]
fn the_arrow_for_others_goes_away_when_the_leaf_is_there() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.daemon(Daemon::Event(Event::Appended {
        by_others: true,
        count: 1,
        others_at: Some("a1".into()),
        first_message: None,
    }));
    assert!(screen.text().contains("1 new by others (O)"));
    for row in &mut screen.rows {
        row.is_leaf = row.id == "a1";
    }
    screen.leaf = Some("a1".into());
    screen.revision += 1;
    screen.daemon(Daemon::Event(Event::Moved));
    assert!(!screen.text().contains("others"), "{}", screen.text());
    screen.keys("O");
    assert!(
        screen
            .text()
            .contains("No other program is at another entry")
    );
}

/// The state entry of an outdated process once made a session open on an old branch, and nothing showed where the
/// newest turns are.
#[test]
fn a_session_that_opens_beside_its_newest_entries_says_so() {
    let mut screen = Screen::tree(100, 24, tour());
    for (turns, said) in [
        (12, "12 newer turns are on another branch: O goes there."),
        (1, "1 newer turn is on another branch: O goes there."),
    ] {
        let tip = "a1".into();
        screen.daemon(Daemon::Opened(Ok(Session {
            newer: Some(NewerBranch { tip, turns }),
            ..opened(&format!("with {turns}"))
        })));
        assert!(screen.text().contains(said), "{}", screen.text());
        screen.keys("O");
        assert_eq!(screen.model.tree.selected().unwrap().id, "a1");
    }
}

/// The filter once hid the entries of other programs, so no row had the arrow.
#[test]
fn a_hidden_leaf_of_others_is_shown_at_the_row_above() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.stand_in.insert("hidden".into(), "a2".into());
    let others_at = |id: &str| {
        Daemon::Event(Event::Appended {
            by_others: true,
            count: 1,
            others_at: Some(id.into()),
            first_message: None,
        })
    };
    screen.daemon(others_at("hidden"));
    assert!(screen.text().contains("I clear it now ← others"));
    screen.keys("O");
    screen.stand_in.insert("after".into(), "q3".into());
    screen.daemon(others_at("after"));
    assert!(screen.text().contains("Add the import. ← active, others"));
}

/// Other programs wrote to the file after an undo. A restarted daemon takes its leaf from the file. Once the user did
/// not learn that the undone position was lost.
#[test]
fn a_restart_that_changes_the_leaf_is_reported() {
    let restart = |screen: &mut Screen| {
        screen.daemon(Daemon::Lost(End::default()));
        screen.keys("R");
        screen.connect();
    };
    let mut screen = Screen::tree(80, 24, tour());
    restart(&mut screen);
    assert!(
        !screen.text().contains("at another entry"),
        "{}",
        screen.text()
    );
    for row in &mut screen.rows {
        row.is_leaf = row.id == "a1";
    }
    screen.leaf = Some("a1".into());
    screen.revision += 1;
    restart(&mut screen);
    let text = screen.text();
    let said = "The leaf is at another entry now: it was at “Add the import.”.";
    assert!(text.contains(said), "{text}");
    // The message is shown once.
    restart(&mut screen);
    assert!(
        !screen.text().contains("at another entry"),
        "{}",
        screen.text()
    );
    // A label changes the leaf but not its row.
    screen.leaf = Some("l1".into());
    restart(&mut screen);
    assert!(
        !screen.text().contains("at another entry"),
        "{}",
        screen.text()
    );
}

#[test]
fn a_move_of_the_leaf_by_another_client_appears() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("home");
    for row in &mut screen.rows {
        row.is_leaf = row.id == "a1";
        row.on_active_path = ["q1", "c1", "a1"].contains(&&*row.id);
    }
    screen.leaf = Some("a1".into());
    screen.revision += 1;
    screen.daemon(Daemon::Event(Event::Moved));
    let text = screen.text();
    let active = text.lines().find(|line| line.contains("← active")).unwrap();
    assert!(active.contains("A stale cache"), "{active}");
    assert_eq!(screen.model.tree.cursor, 0);
}

/// While entries stream in, each notification requests the page around the cursor again. A key that was pressed before
/// the answer once had no effect, since the answer moved the cursor back.
#[test]
fn cursor_movements_during_a_reload_are_kept() {
    for (keys, id) in [
        ("down", "c1"),
        ("down down end up", "s1"),
        ("pagedown", "q3"),
    ] {
        let mut screen = Screen::tree(80, 30, tour());
        screen.keys("home");
        screen.silent = true;
        let event = || Event::Appended {
            by_others: true,
            count: 1,
            others_at: None,
            first_message: None,
        };
        screen.daemon(Daemon::Event(event()));
        screen.keys(keys);
        screen.revision += 1;
        screen.rows.insert(1, row("x1", "", "new"));
        screen.silent = false;
        for effect in std::mem::take(&mut screen.asked) {
            screen.ask(effect);
        }
        assert_eq!(screen.model.tree.selected().unwrap().id, id, "{keys}");
        assert!(!screen.model.tree.reloading);
    }
}

#[test]
fn a_burst_of_notifications_causes_at_most_two_requests() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.silent = true;
    for _ in 0..100 {
        screen.daemon(Daemon::Event(Event::Appended {
            by_others: false,
            count: 1,
            others_at: None,
            first_message: None,
        }));
    }
    assert_eq!(screen.asked.len(), 1);
}

#[test]
fn the_end_of_the_daemon_shows_a_dialog_that_can_restart_it() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("home down");
    screen.daemon(Daemon::Lost(End {
        reason: "the daemon has ended (signal: 9 (SIGKILL))".into(),
        last_words: vec!["WARN the catalogue cannot be written: permission denied".into()],
    }));
    // The failure of an open request does not add another dialog.
    let failure = Failure {
        kind: "disconnected".into(),
        message: "the daemon has ended".into(),
    };
    screen.daemon(Daemon::Entry {
        id: "c1".into(),
        result: Err(failure.clone()),
    });
    screen.daemon(Daemon::Labelled(Err(failure)));
    screen.check("lost");
    screen.keys("x R");
    assert_eq!(screen.asked, [Effect::Connect]);
    screen.asked.clear();
    // Until the session is open again, requests would be lost, so none are made.
    screen.keys("L enter");
    assert!(screen.model.dialog.is_none());
    screen.connect();
    assert_eq!(screen.model.tree.cursor, 1);
    assert!(!screen.text().contains("has ended"));
}

/// If a key is pressed before the daemon is connected, its request must not stay open for ever.
#[test]
fn requests_to_a_dead_daemon_are_repeated() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.silent = true;
    screen.keys("ctrl+u S");
    screen.daemon(Daemon::Lost(End::default()));
    screen.keys("R");
    screen.silent = false;
    screen.connect();
    assert!(!screen.model.tree.reloading);
    assert!(!screen.model.sessions.loading);
}

#[test]
fn a_daemon_that_cannot_be_started_shows_a_dialog() {
    let mut screen = Screen::unconnected(60, 14);
    screen.daemon(Daemon::Lost(End {
        reason: "cannot start treelined: No such file or directory".into(),
        last_words: Vec::new(),
    }));
    screen.check("no-daemon");
    screen.keys("R");
    assert_eq!(screen.asked, [Effect::Connect]);
}
