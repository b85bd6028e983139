//! The default keys of each context.

use super::Action;

/// The keys of each action of a context.
pub type Table = &'static [(Action, &'static [&'static str])];

// The keys of the key set `letters`. The set `typing` lacks the small letters that it does not list in `TYPING`.

pub const TREE: Table = &[
    (Action::Up, &["up", "k"]),
    (Action::Down, &["down", "j"]),
    (Action::PageUp, &["pageup", "left"]),
    (Action::PageDown, &["pagedown", "right"]),
    (Action::First, &["home", "g"]),
    (Action::Last, &["end", "G"]),
    (Action::Accept, &["enter"]),
    (Action::Back, &["esc"]),
    (Action::Search, &["/"]),
    (Action::FoldOrUp, &["ctrl+left", "alt+left", "h"]),
    (Action::UnfoldOrDown, &["ctrl+right", "alt+right", "l"]),
    (Action::ToggleFold, &["space"]),
    (Action::OpenAll, &["*"]),
    (Action::PreviousPrompt, &["["]),
    (Action::NextPrompt, &["]"]),
    (Action::ToActive, &["A", "a"]),
    (Action::ToNews, &["O", "o"]),
    (Action::NextHit, &["n", "f3"]),
    (Action::PreviousHit, &["N", "shift+f3"]),
    (Action::FilterDefault, &["ctrl+d"]),
    (Action::FilterNoTools, &["ctrl+t"]),
    (Action::FilterUserOnly, &["ctrl+u"]),
    (Action::FilterLabeled, &["ctrl+l"]),
    (Action::FilterAll, &["ctrl+a"]),
    (Action::NextFilter, &["ctrl+o"]),
    (Action::Label, &["L"]),
    (Action::LabelTimes, &["T"]),
    (Action::Columns, &["t", "ctrl+e"]),
    (Action::Undo, &["u"]),
    (Action::Redo, &["ctrl+r"]),
    (Action::Copy, &["y"]),
    (Action::Compose, &["I", "i"]),
    (Action::Rewind, &["E", "e"]),
    (Action::Fork, &["f", "ctrl+g"]),
    (Action::CherryPick, &["P", "p"]),
    (Action::Merge, &["W", "w"]),
    (Action::Compact, &["K"]),
    (Action::Branches, &["b", "B"]),
    (Action::Continue, &["H"]),
    (Action::Export, &["x", "X"]),
    (Action::Mark, &["M", "m"]),
    (Action::Compare, &["C", "c"]),
    (Action::ToggleTools, &["V", "v"]),
    (Action::ToggleThinking, &["Z", "z"]),
    (Action::TogglePreview, &["F"]),
    (Action::LargerPreview, &["+", "="]),
    (Action::SmallerPreview, &["-", "_"]),
    (Action::FocusPreview, &["tab"]),
    (Action::Sessions, &["S", "s"]),
    (Action::SearchAll, &["ctrl+f"]),
    (Action::Reconnect, &["R", "r"]),
    (Action::Help, &["?", "f1"]),
    (Action::Suspend, &["ctrl+z"]),
    (Action::Command, &[":"]),
    (Action::Answer, &["ctrl+q"]),
    (Action::Quit, &["q", "Q", "ctrl+c"]),
];

pub const SESSIONS: Table = &[
    (Action::Up, &["up", "k", "ctrl+p"]),
    (Action::Down, &["down", "j", "ctrl+n"]),
    (Action::PageUp, &["pageup", "left"]),
    (Action::PageDown, &["pagedown", "right"]),
    (Action::First, &["home", "g"]),
    (Action::Last, &["end", "G"]),
    (Action::Accept, &["enter"]),
    (Action::Back, &["esc"]),
    (Action::Search, &["/"]),
    (Action::SearchAll, &["ctrl+f"]),
    (Action::Scope, &["tab"]),
    (Action::NextSort, &["ctrl+s", "o"]),
    (Action::NamedOnly, &["ctrl+o"]),
    (Action::Create, &["n", "N"]),
    (Action::Import, &["i", "I"]),
    (Action::Rename, &["R", "r", "f2"]),
    (Action::Trash, &["D", "d", "delete"]),
    (Action::Restore, &["T", "t"]),
    (Action::Help, &["?", "f1"]),
    (Action::Suspend, &["ctrl+z"]),
    (Action::Command, &[":"]),
    (Action::Answer, &["ctrl+q"]),
    (Action::Quit, &["q", "Q", "ctrl+c"]),
];

/// The small letters that are commands in the key set `typing`; all others begin a search.
pub const TYPING: &[char] = &['j', 'k', 'u', 'y'];

// Letters go into the query, and so do the keys that move in a line.
pub const SEARCH: Table = &[
    (Action::Up, &["up", "ctrl+p"]),
    (Action::Down, &["down", "ctrl+n"]),
    (Action::PageUp, &["pageup"]),
    (Action::PageDown, &["pagedown"]),
    (Action::Accept, &["enter"]),
    (Action::Back, &["esc"]),
    (Action::Scope, &["tab"]),
    (Action::Help, &["f1"]),
    (Action::Suspend, &["ctrl+z"]),
    (Action::Answer, &["ctrl+q"]),
    (Action::Quit, &["ctrl+c"]),
];

pub const PREVIEW: Table = &[
    (Action::Up, &["up", "k"]),
    (Action::Down, &["down", "j"]),
    (Action::PageUp, &["pageup", "left", "ctrl+b"]),
    (Action::PageDown, &["pagedown", "right", "space", "ctrl+f"]),
    (Action::First, &["home", "g"]),
    (Action::Last, &["end", "G"]),
    (Action::Copy, &["y"]),
    (Action::FocusPreview, &["tab", "esc"]),
    (Action::ToggleTools, &["V", "v"]),
    (Action::ToggleThinking, &["Z", "z"]),
    (Action::TogglePreview, &["F"]),
    (Action::Help, &["?"]),
    (Action::Suspend, &["ctrl+z"]),
    (Action::Command, &[":"]),
    (Action::Answer, &["ctrl+q"]),
    (Action::Quit, &["q", "Q", "ctrl+c"]),
];

pub const COMPARE: Table = &[
    (Action::Up, &["up", "k"]),
    (Action::Down, &["down", "j"]),
    (Action::PageUp, &["pageup", "left"]),
    (Action::PageDown, &["pagedown", "right", "space"]),
    (Action::First, &["home", "g"]),
    (Action::Last, &["end", "G"]),
    (Action::Back, &["esc", "C"]),
    (Action::Help, &["?"]),
    (Action::Suspend, &["ctrl+z"]),
    (Action::Answer, &["ctrl+q"]),
    (Action::Quit, &["q", "Q", "ctrl+c"]),
];

pub const EDITOR: Table = &[
    (Action::Send, &["enter", "ctrl+s"]),
    (Action::Newline, &["alt+enter", "ctrl+j", "shift+enter"]),
    (Action::Copy, &["ctrl+y"]),
    (Action::Back, &["esc"]),
    (Action::Answer, &["ctrl+q"]),
    (Action::Quit, &["ctrl+c"]),
];
