//! The editor of a user message.

use crate::harness::Screen;
use crate::tree::tour;
use treelined_tui::message::{Daemon, Draft, Effect, Failure, Message};

fn open() -> Screen {
    let mut screen = Screen::tree(60, 20, tour());
    screen.keys("I");
    screen
}

#[test]
fn a_message_is_written_and_sent() {
    let mut screen = open();
    screen
        .typed("Try it again")
        .keys("alt+enter")
        .typed("with 漢字 and j, k, u");
    screen.check("editor");
    screen.keys("enter");
    let draft = Draft {
        text: "Try it again\nwith 漢字 and j, k, u".into(),
        images: Vec::new(),
        expected_leaf: Some("q3".into()),
    };
    assert_eq!(screen.asked, [Effect::Send(draft)]);
    screen.daemon(Daemon::Sent(Ok(())));
    assert!(screen.model.editor.is_none());
}

/// The message was written below the active entry, and nothing said so while the cursor was elsewhere.
#[test]
fn a_message_away_from_the_active_entry_says_where_it_goes() {
    let mut screen = open();
    assert!(!screen.text().contains("comes below the active entry"));
    screen.keys("esc home I");
    assert!(screen.text().contains("comes below the active entry"));
}

#[test]
fn an_unsent_draft_is_kept() {
    let mut screen = open();
    screen.typed("precious").keys("enter");
    let failure = Failure {
        kind: "leafMoved".into(),
        message: "the leaf is at another entry".into(),
    };
    screen.daemon(Daemon::Sent(Err(failure)));
    screen.keys("esc esc");
    assert!(screen.text().contains("I opens it again"));
    screen.keys("I");
    assert!(screen.text().contains("precious"));
}

#[test]
fn copying_a_draft_keeps_it_unchanged() {
    let mut screen = open();
    screen.send(Message::Paste("a\ttab\r\nand ❤\u{fe0f}".into()));
    screen.keys("ctrl+y");
    assert_eq!(screen.asked, [Effect::Copy("a\ttab\nand ❤\u{fe0f}".into())]);
}

#[test]
fn an_empty_message_is_not_sent() {
    let mut screen = open();
    screen.typed("  ").keys("enter");
    assert!(screen.asked.is_empty());
}

#[test]
fn a_long_message_scrolls_with_its_cursor() {
    let mut screen = open();
    for line in 0..30 {
        screen.typed(&format!("line {line}")).keys("alt+enter");
    }
    assert!(screen.text().contains("line 29"));
    screen.keys(&"up ".repeat(30));
    assert!(screen.text().contains("line 0\n"));
}
