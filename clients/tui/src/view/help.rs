//! Draws the help: all keys by topic, from the current key tables, in as many columns as fit on the
//! screen.

use super::popup;
use crate::keys::{Action, Context, Key};
use crate::model::{Model, Screen};
use crate::text;
use crate::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// The preferred width of a column of the help.
const COLUMN: usize = 48;

/// The number of terminal columns between two columns of the help.
const GAP: usize = 3;

/// The most terminal columns for the names of keys.
const KEYS: usize = 25;

/// The topics in their order.
const TOPICS: [&str; 8] = [
    "Moving",
    "Finding",
    "Going and changing",
    "Branches",
    "Looks",
    "Sessions",
    "Writing",
    "Program",
];

const fn topic(action: Action) -> &'static str {
    use Action as A;
    match action {
        A::Up | A::Down | A::PageUp | A::PageDown | A::First | A::Last | A::FoldOrUp => "Moving",
        A::UnfoldOrDown | A::ToggleFold | A::OpenAll | A::ToActive | A::ToNews => "Moving",
        A::PreviousPrompt | A::NextPrompt => "Moving",
        A::Search | A::SearchAll | A::NextHit | A::PreviousHit => "Finding",
        A::FilterDefault | A::FilterNoTools => "Finding",
        A::NextMode => "Finding",
        A::FilterUserOnly | A::FilterLabeled | A::FilterAll | A::NextFilter => "Finding",
        A::Accept | A::Back | A::Label | A::Undo | A::Redo | A::Copy => "Going and changing",
        A::Compose | A::Rewind | A::Compact | A::Export => "Going and changing",
        A::Continue => "Going and changing",
        A::Fork | A::CherryPick | A::Merge | A::Branches | A::Mark | A::Compare => "Branches",
        A::NameBranch | A::Archive | A::ShowArchived | A::Candidates => "Branches",
        A::Aside | A::KeepAside => "Branches",
        A::LabelTimes | A::Columns | A::TogglePreview | A::LargerPreview => "Looks",
        A::SmallerPreview | A::FocusPreview | A::ToggleTools | A::ToggleThinking => "Looks",
        A::Sessions | A::Scope | A::NextSort | A::NamedOnly | A::Rename | A::Trash => "Sessions",
        A::Create | A::Import | A::Restore | A::Family | A::Tags | A::Pin => "Sessions",
        A::ArchiveSession | A::ArchivedSessions => "Sessions",
        A::FilterTool | A::FilterProject | A::FilterDate | A::NextGroup => "Sessions",
        A::Send | A::Newline => "Writing",
        A::Command | A::Answer | A::Reconnect | A::Help | A::Suspend | A::Quit => "Program",
    }
}

/// A heading, and the keys below it.
struct Block {
    heading: String,
    /// The keys, each with its effect.
    rows: Vec<(String, &'static str)>,
}

/// Returns the greatest first visible line to which the help can be scrolled.
pub fn last_top(model: &Model) -> usize {
    lines(model).len().saturating_sub(height(model.size))
}

/// Returns the number of visible lines of the help.
fn height(size: (u16, u16)) -> usize {
    usize::from(size.1).saturating_sub(3).max(1)
}

pub fn draw(model: &Model, frame: &mut Frame, top: usize) {
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let theme = &model.settings.theme;
    let lines = lines(model);
    let shown = height(model.size).min(lines.len());
    let more = lines.len() - shown;
    let columns = lines.iter().map(Line::width).max().unwrap_or(0);
    let columns = popup::columns(screen, u16::try_from(columns).unwrap_or(u16::MAX));
    let mut visible: Vec<Line> = lines.into_iter().skip(top).take(shown).collect();
    let mut keys = vec![("esc", "closes")];
    if more > 0 {
        keys.insert(0, ("↑↓", if top < more { "more" } else { "back" }));
    }
    visible.extend(super::parts::key_lines(model, &keys, usize::from(columns)));
    let area = popup::area(screen, columns, visible.len());
    popup::draw(frame, theme, area, "Keys", theme.active, visible);
}

fn context(model: &Model) -> Context {
    match (model.screen, &model.compare, model.preview_focused) {
        (_, Some(_), _) => Context::Compare,
        (Screen::Sessions, ..) => Context::Sessions,
        (Screen::Search, ..) => Context::Search,
        (Screen::Tree, None, true) => Context::Preview,
        (Screen::Tree, None, false) => Context::Tree,
    }
}

/// Returns the keys of the focused part by topic, then the keys of the other parts for actions whose keys differ there.
fn blocks(model: &Model) -> Vec<Block> {
    let keymap = &model.settings.keymap;
    let first = context(model);
    let row = |action: Action, keys: &[Key]| {
        let keys: Vec<String> = keys.iter().map(Key::to_string).collect();
        (keys.join(" "), action.about())
    };
    let mut blocks: Vec<Block> = TOPICS
        .iter()
        .map(|name| Block {
            heading: (*name).to_owned(),
            rows: keymap
                .bound(first)
                .filter(|(action, _)| topic(*action) == *name)
                .map(|(action, keys)| row(action, keys))
                .collect(),
        })
        .collect();
    for other in Context::ALL.into_iter().filter(|context| *context != first) {
        let differing = keymap.bound(other).filter(|(action, keys)| {
            topic(*action) != "Moving" && keymap.keys(first, *action) != *keys
        });
        blocks.push(Block {
            heading: format!("In the {}", other.about()),
            rows: differing.map(|(action, keys)| row(action, keys)).collect(),
        });
    }
    blocks.retain(|block| !block.rows.is_empty());
    blocks
}

fn lines(model: &Model) -> Vec<Line<'static>> {
    let theme = &model.settings.theme;
    let room = usize::from(model.size.0).saturating_sub(6).max(1);
    let count = ((room + GAP) / (COLUMN + GAP)).clamp(1, 3);
    let wide = ((room + GAP) / count - GAP).min(COLUMN + 16);
    let blocks = blocks(model);
    let high = |block: &Block| block.rows.len() + 2;
    let total: usize = blocks.iter().map(high).sum();
    let mut columns: Vec<Vec<Block>> = vec![Vec::new()];
    for block in blocks {
        // The blocks are in reading order. The next column begins when this one has its share of the
        // lines.
        let is_full = columns.last().is_some_and(|column| {
            let filled: usize = column.iter().map(high).sum();
            filled + block.rows.len() / 2 > total / count && !column.is_empty()
        });
        if is_full && columns.len() < count {
            columns.push(Vec::new());
        }
        if let Some(column) = columns.last_mut() {
            column.push(block);
        }
    }
    let columns = columns.into_iter();
    let columns: Vec<Vec<Line>> = columns
        .map(|blocks| column_lines(blocks, wide, theme))
        .collect();
    let high = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut rows = Vec::with_capacity(high);
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    for _ in 0..high {
        let mut spans: Vec<Span> = Vec::new();
        let last = columns.len() - 1;
        for (at, column) in columns.iter_mut().enumerate() {
            let line = column.next().unwrap_or_default();
            let gap = (wide + GAP).saturating_sub(line.width());
            spans.extend(line.spans);
            if at < last {
                spans.push(Span::raw(" ".repeat(gap)));
            }
        }
        rows.push(Line::from(spans));
    }
    rows
}

/// Returns the lines of a column of the help. The names of keys get the width that they need, and
/// their effects the rest.
fn column_lines(blocks: Vec<Block>, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let keys = blocks.iter().flat_map(|block| &block.rows);
    let needed = keys.map(|(keys, _)| text::width(keys) + 2).max();
    let keys_wide = needed.unwrap_or(0).min(KEYS).min(wide / 2);
    let mut lines = Vec::new();
    for block in blocks {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(block_lines(block, wide, keys_wide, theme));
    }
    lines
}

fn block_lines(block: Block, wide: usize, keys_wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = vec![Line::from(Span::styled(block.heading, theme.heading))];
    let keys_room = keys_wide.saturating_sub(1).max(1);
    let room = wide.saturating_sub(keys_wide + 1).max(1);
    for (keys, about) in block.rows {
        let (keys, words) = (text::wrap(&keys, keys_room), text::wrap(about, room));
        for at in 0..keys.len().max(words.len()) {
            let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_default();
            let (keys, words) = (line(&keys), line(&words));
            let gap = " ".repeat(keys_wide.saturating_sub(text::width(&keys)));
            out.push(Line::from(vec![
                Span::raw(" "),
                Span::styled(keys, theme.key),
                Span::raw(gap),
                Span::styled(words, theme.text),
            ]));
        }
    }
    out
}
