//! The comparison of two branches.

use crate::harness::Screen;
use crate::tree::tour;
use treelined_tui::message::Kind;
use treelined_tui::message::{BranchMessage, Comparison, Gap, Side};
use treelined_tui::message::{Daemon, Effect, Message};

fn compared() -> Comparison {
    let messages = |kind, text: &str| BranchMessage {
        kind,
        text: text.into(),
    };
    Comparison {
        ancestor: Some("A stale cache, or a missing import.".into()),
        left: Side {
            tip: "git status".into(),
            messages: vec![
                messages(Kind::User, "Clear the cache."),
                messages(
                    Kind::Assistant,
                    "I clear it now, and build once more to see whether that was it",
                ),
                messages(Kind::Bash, "$ git status"),
            ],
            gap: None,
            read: vec!["Cargo.toml".into()],
            modified: Vec::new(),
            cost: Some("~0.31 + ?".into()),
        },
        right: Side {
            tip: "Add the import.".into(),
            messages: vec![
                messages(Kind::Summary, "Clearing the cache did not help"),
                messages(Kind::User, "Add the import."),
            ],
            gap: None,
            read: Vec::new(),
            modified: vec!["src/main.rs".into()],
            cost: None,
        },
    }
}

#[test]
fn marked_entries_are_compared() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("M C");
    assert!(screen.text().contains("compare it with another"));
    screen.keys("home down down down down M");
    screen.check("marks");
    screen.keys("C");
    assert_eq!(
        screen.asked,
        [Effect::Compare {
            id: 1,
            left: "q3".into(),
            right: "a2".into()
        }]
    );
    answer(&mut screen, 1, compared());
    screen.check("compare");
    screen.send(Message::Resize(40, 10));
    screen.check("compare-tiny");
    screen.keys("end");
    assert!(screen.text().contains("Add the import."));
    screen.keys("esc");
    assert!(screen.model.compare.is_none());
    screen.keys("esc");
    assert!(
        screen.model.tree.marks.is_empty(),
        "Esc takes the marks away before it leaves"
    );
}

#[test]
fn one_mark_is_compared_with_the_cursor() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("M up C");
    assert_eq!(
        screen.asked,
        [Effect::Compare {
            id: 1,
            left: "q3".into(),
            right: "s1".into()
        }]
    );
}

fn answer(screen: &mut Screen, id: u64, comparison: Comparison) {
    let result = Ok(Box::new(comparison));
    screen.daemon(Daemon::Compared { id, result });
}

/// A long comparison once showed nothing, and the user could not stop it.
#[test]
fn a_long_comparison_shows_progress_and_esc_stops_it() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("M up C");
    assert!(!screen.text().contains('╭'), "most are over at once");
    assert!(screen.model.animates());
    screen.tick(2300);
    screen.daemon(Daemon::Comparing {
        id: 1,
        read: 12_000,
        most: 100_001,
    });
    screen.check("comparing");
    screen.asked.clear();
    screen.keys("u x esc");
    assert_eq!(screen.asked, [Effect::StopComparing]);
    assert!(screen.text().contains("Stopped comparing."));
    // An answer of the stopped comparison is ignored.
    answer(&mut screen, 1, compared());
    assert!(screen.model.compare.is_none());
    screen.keys("C");
    answer(&mut screen, 1, compared());
    assert!(screen.model.compare.is_none());
    answer(&mut screen, 2, compared());
    assert!(screen.model.compare.is_some());
}

/// Once every frame wrapped the whole text again.
#[test]
fn lines_are_laid_out_once_per_width() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("M up C");
    let many = |count| {
        let messages = |at: usize| BranchMessage {
            kind: Kind::User,
            text: format!("message {at}"),
        };
        (0..count).map(messages).collect()
    };
    let long = Side {
        messages: many(1000),
        gap: Some(Gap {
            after: 500,
            messages: 98_000,
        }),
        ..Side::default()
    };
    let comparison = Comparison {
        left: long,
        ..compared()
    };
    answer(&mut screen, 1, comparison);
    let lines = |screen: &Screen| screen.model.compare.as_ref().unwrap().lines().as_ptr();
    let before = lines(&screen);
    screen.keys("down pagedown end home");
    screen.send(Message::Resize(80, 30));
    assert_eq!(lines(&screen), before);
    assert!(screen.text().contains("99000 messages since"));
    screen.send(Message::Resize(100, 30));
    assert_ne!(lines(&screen), before);
    for _ in 0..500 / 27 {
        screen.keys("pagedown");
    }
    assert!(screen.text().contains("… 98000 more messages …"));
}
