//! The preview.

use crate::harness::Screen;
use crate::tree::tour;
use crossterm::event::MouseEventKind;
use serde_json::json;
use treelined_tui::message::Message;

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
