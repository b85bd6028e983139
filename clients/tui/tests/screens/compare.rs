//! Two branches side by side.

use crate::harness::Screen;
use crate::tree::tour;
use treelined_tui::message::{Daemon, Effect, Message};
use treelined_tui::model::compare::{Comparison, Said, Side};
use treelined_tui::model::rows::Kind;

fn compared() -> Comparison {
    let said = |kind, text: &str| Said {
        kind,
        text: text.into(),
    };
    Comparison {
        ancestor: Some("A stale cache, or a missing import.".into()),
        left: Side {
            tip: "git status".into(),
            said: vec![
                said(Kind::User, "Clear the cache."),
                said(
                    Kind::Assistant,
                    "I clear it now, and build once more to see whether that was it",
                ),
                said(Kind::Bash, "$ git status"),
            ],
            read: vec!["Cargo.toml".into()],
            modified: Vec::new(),
        },
        right: Side {
            tip: "Add the import.".into(),
            said: vec![
                said(Kind::Summary, "Clearing the cache did not help"),
                said(Kind::User, "Add the import."),
            ],
            read: Vec::new(),
            modified: vec!["src/main.rs".into()],
        },
    }
}

#[test]
fn marked_entries_are_compared() {
    let mut screen = Screen::tree(80, 24, tour());
    screen.keys("M C");
    assert!(screen.text().contains("compare it with another"));
    screen.keys("down down M");
    screen.check("marks");
    screen.keys("C");
    assert_eq!(
        screen.asked,
        [Effect::Compare {
            left: "q3".into(),
            right: "a2".into()
        }]
    );
    screen.daemon(Daemon::Compared(Ok(Box::new(compared()))));
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
            left: "q3".into(),
            right: "s1".into()
        }]
    );
}
