//! Text with control characters, and text whose width differs from its number of characters.

use crate::harness::{Screen, row, session};
use serde_json::json;
use treelined_tui::message::Row;
use treelined_tui::message::{Daemon, End, Event, SessionRow};
use treelined_tui::text::{is_control, line};

const NASTY: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}txt.exe\u{2066}\r\n\t\u{7f}";

fn harmless(screen: &Screen) {
    let text = screen.text();
    assert!(!text.replace('\n', "").contains(is_control), "{text:?}");
}

/// Text from the daemon is sanitized when it arrives; typed and streamed text is sanitized when it is drawn.
#[test]
fn no_control_reaches_the_screen() {
    let nasty = line(NASTY);
    let rows = vec![Row {
        label: Some(nasty.clone()),
        is_leaf: true,
        ..row("a", "", &nasty)
    }];
    let mut screen = Screen::tree(80, 24, rows);
    let entry = json!({"type": "message", "id": NASTY, "timestamp": NASTY, "message": {"role": NASTY, "model": NASTY, "content": [
        {"type": "text", "text": NASTY}, {"type": "thinking", "thinking": NASTY},
        {"type": "image", "mimeType": NASTY}, {"type": "toolCall", "name": NASTY, "arguments": {NASTY: NASTY}},
        {"type": NASTY, NASTY: NASTY}]}});
    screen.entries.insert("a".into(), entry);
    screen.daemon(Daemon::Event(Event::Missed));
    harmless(&screen);
    for keys in ["L", "esc", "I", "/"] {
        screen.keys(keys);
        screen.send(treelined_tui::message::Message::Paste(NASTY.into()));
        harmless(&screen);
        screen.keys("esc");
    }
    screen.daemon(Daemon::Lost(End {
        reason: nasty.clone(),
        last_words: vec![nasty.clone()],
    }));
    harmless(&screen);
    let mut list = Screen::list(
        80,
        8,
        vec![SessionRow {
            cwd: nasty.clone(),
            ..session("a", &nasty, None, 0)
        }],
    );
    harmless(&list);
    list.keys("tab D");
    harmless(&list);
}

#[test]
fn wide_combining_and_right_to_left_text_keeps_its_place() {
    let said = [
        "漢字かな交じり文で書かれた長い質問文がここにあります、はい",
        "e\u{301}a\u{308}o\u{302} combining, क्षि, 👩🏽\u{200d}💻 and 🇩🇪",
        "שלום עולם، مرحبا بالعالم",
        "plain",
    ];
    let rows = said.iter().enumerate().map(|(at, text)| Row {
        is_leaf: at == 0,
        on_active_path: true,
        ..row(&format!("e{at}"), "", &line(text))
    });
    let mut screen = Screen::tree(50, 16, rows.collect());
    screen.check("wide");
    for columns in 8..50 {
        screen.send(treelined_tui::message::Message::Resize(columns, 12));
        for line in screen.text().lines() {
            assert!(
                treelined_tui::text::width(line) <= usize::from(columns),
                "{line:?}"
            );
        }
    }
}
