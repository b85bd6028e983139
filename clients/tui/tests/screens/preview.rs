//! The preview.

use crate::harness::Screen;
use crate::tree::tour;
use crossterm::event::MouseEventKind;
use serde_json::json;
use treelined_tui::message::{Daemon, Effect, Message};

fn long() -> Screen {
    let mut screen = Screen::tree(70, 20, tour());
    let text = (1..40)
        .map(|at| format!("{at}. a line of the answer\n"))
        .collect::<String>();
    let content = json!([
        {"type": "text", "text": format!("# Why\nIt is the *cache*, which is wrapped since this line is longer than the pane.\n```rust\nfn main() {{ clear(); }}\n```\n{text}")},
        {"type": "image", "mimeType": "image/png", "data": "AAAA".repeat(1000)},
        {"type": "toolCall", "name": "bash", "arguments": {"command": "cargo clean"}},
    ]);
    let entry = json!({"type": "message", "id": "a1", "message": {"role": "assistant", "model": "opus", "content": content}});
    screen.entries.insert("a1".into(), entry);
    screen.keys("home down down");
    screen
}

#[test]
fn the_preview_shows_the_whole_entry_and_scrolls_independently() {
    let mut screen = long();
    screen.check("preview");
    let cursor = screen.model.tree.cursor;
    screen.keys("tab end");
    screen.check("preview-end");
    assert_eq!(screen.model.tree.cursor, cursor);
    screen.keys("tab down");
    assert_eq!(
        (screen.model.tree.cursor, screen.model.preview.top),
        (cursor + 1, 0)
    );
}

#[test]
fn markdown_is_rendered() {
    let mut screen = Screen::tree(80, 30, tour());
    let text = "## Two **reasons**\n1. a *stale* `cache`, which is a long item that is wrapped below its first word\n- [x] done\n> said\n\n| file | state |\n|---|---|\n| a.rs | **bad** |\n\n```sh\nls\n```\n[the page](https://example.com)";
    let entry =
        json!({"type": "message", "id": "q1", "message": {"role": "user", "content": text}});
    screen.entries.insert("q1".into(), entry);
    screen.keys("home");
    screen.check_styled("preview-markdown");
}

#[test]
fn the_size_of_the_preview_follows_the_screen_and_the_keys() {
    let rows = |screen: &Screen| screen.model.tree.height;
    let mut screen = Screen::tree(80, 24, tour());
    assert_eq!(rows(&screen), 14);
    screen.keys("+");
    assert_eq!(rows(&screen), 12);
    screen.keys("- -");
    assert_eq!(rows(&screen), 15);
    // Large screens have frames.
    screen.send(Message::Resize(120, 40));
    screen.check("framed");
    screen.send(Message::Resize(100, 40));
    screen.check("framed-below");
}

/// The tokens of the visible answers are requested, once.
#[test]
fn time_and_tokens_have_columns() {
    let mut rows = tour();
    for row in &mut rows {
        row.time = "11-21 19:07".into();
    }
    let mut screen = Screen::tree(80, 24, rows);
    screen.keys("t");
    let ids = ["a1", "a2"].map(str::to_owned).to_vec();
    assert_eq!(screen.asked.pop(), Some(Effect::GetTokens { ids }));
    let tokens = vec![("a1".to_owned(), Some(5_340)), ("a2".to_owned(), None)];
    screen.daemon(Daemon::Tokens(tokens));
    screen.keys("up");
    assert!(screen.asked.is_empty());
    screen.check("tree-columns");
}

#[test]
fn the_wheel_scrolls_the_pane_under_the_pointer() {
    let mut screen = long();
    screen.mouse(MouseEventKind::ScrollDown, 10, 15);
    assert_eq!(screen.model.preview.top, 3);
    assert_eq!(screen.model.tree.cursor, 2);
}

#[test]
fn a_new_width_wraps_the_text_again() {
    let mut screen = long();
    screen.keys("tab end");
    screen.send(Message::Resize(40, 40));
    assert!(screen.text().contains("cargo clean"));
    screen.send(Message::Resize(130, 20));
    screen.check("preview-beside");
}

/// One key opens and closes all calls, another key all thoughts, also in the entries that are shown next.
#[test]
fn calls_and_thoughts_are_opened_and_closed_by_a_key_each() {
    let mut screen = Screen::tree(80, 24, tour());
    let content = json!([
        {"type": "thinking", "thinking": "First the cache.\nThen the import."},
        {"type": "toolCall", "id": "1", "name": "bash", "arguments": {"command": "ls"}},
    ]);
    let message = json!({"role": "assistant", "content": content});
    for id in ["q1", "q3"] {
        let entry = json!({"type": "message", "id": id, "message": message});
        screen.entries.insert(id.into(), entry);
    }
    screen.keys("home z");
    let closed = "▸ thinking: First the cache.  (2 lines)";
    let text = screen.text();
    assert!(text.contains(closed), "{text}");
    assert!(
        text.contains("Thinking is closed in the preview. Z opens"),
        "{text}"
    );
    screen.keys("a tab V");
    let text = screen.text();
    assert!(
        text.contains(closed) && text.contains("▸ → bash(command: ls)"),
        "{text}"
    );
    screen.keys("Z v");
    assert!(!screen.text().contains('▸'), "{}", screen.text());
}
