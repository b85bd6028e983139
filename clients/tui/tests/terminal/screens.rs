//! Every screen at three sizes, with its colours.

use crate::TOUR;
use crate::tmux::{Tmux, is_missing};

/// A screen: its name, the keys that lead to it from the previous screen, text to type, and text that the screen
/// contains.
type Step = (&'static str, &'static str, &'static str, &'static str);

/// From the list of sessions through the tree and its dialogs. Esc closes each dialog.
const STEPS: [Step; 19] = [
    ("sessions", "", "", "› Why does the build"),
    ("new-session", "n", "Plans", "Plans"),
    ("import", "Escape i", "", "Import"),
    ("trash", "Escape T", "", "The trash is empty."),
    ("tree", "Escape Enter", "", "← active"),
    ("columns", "* Home t", "", "19:00"),
    ("choose", "t Down Down Enter", "", "3 Summ"),
    ("choose-focus", "3", "why it failed", "why it failed"),
    ("label", "Escape Escape L", "tried", "Label"),
    ("fork", "Escape f", "", "Clear the cache."),
    ("branches", "Escape b", "", "shows its tip"),
    ("export", "Escape x", "", "jsonl"),
    ("focus", "Escape K", "the build", "the build"),
    ("command-line", "Escape :", "co", "compact"),
    ("help", "Escape ?", "", "Moving"),
    ("found", "Escape /", "cache", "/cache"),
    ("preview", "Escape Tab", "", "Clear the cache."),
    ("compare", "Tab M G M C", "", "Common ancestor"),
    ("search", "Escape Escape C-f", "build", "ask: build"),
];

fn walk(columns: u16, rows: u16) {
    if is_missing() {
        return;
    }
    let tmux = Tmux::new(columns, rows);
    tmux.session("tour", TOUR);
    tmux.start("--background dark");
    let folder = format!("{columns}x{rows}");
    for (name, keys, typed, text) in STEPS {
        for key in keys.split(' ').filter(|key| !key.is_empty()) {
            match key {
                "Escape" => tmux.escape(),
                key => tmux.keys(key),
            }
        }
        if !typed.is_empty() {
            tmux.typed(typed);
        }
        tmux.check_coloured(&folder, name, text);
    }
    tmux.keys("C-c");
    tmux.is_restored();
}

#[test]
fn a_usual_terminal() {
    walk(80, 24);
}

#[test]
fn a_large_terminal() {
    walk(120, 40);
}

#[test]
fn a_tiny_terminal() {
    walk(40, 10);
}

/// A directory without sessions offers what to do next.
#[test]
fn an_empty_directory() {
    if is_missing() {
        return;
    }
    for (columns, rows) in [(80, 24), (40, 10)] {
        let tmux = Tmux::new(columns, rows);
        tmux.start("--background dark");
        let folder = format!("{columns}x{rows}");
        tmux.check_coloured(&folder, "empty", "create a session");
        tmux.keys("n");
        tmux.wait_for("New session");
        tmux.typed("Plans");
        tmux.keys("Enter");
        tmux.wait_for("This is the new session");
        tmux.check_coloured(&folder, "new", "Plans");
        tmux.keys("q");
        tmux.is_restored();
    }
}

/// The themes differ in their colours only.
#[test]
fn every_theme() {
    if is_missing() {
        return;
    }
    for theme in ["light", "high-contrast", "true-color", "terminal", "plain"] {
        let tmux = Tmux::new(80, 24);
        tmux.session("tour", TOUR);
        tmux.start(&format!("--background dark --theme {theme} tour"));
        tmux.check_coloured("themes", theme, "← active");
        tmux.keys("q");
        tmux.is_restored();
    }
}
