//! Draws the help: all keys, from the current key tables.

use super::popup;
use crate::config::Settings;
use crate::keys::{Context, Key};
use crate::model::{Model, Screen};
use crate::text;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

const COLUMNS: u16 = 64;

/// Columns of the keys.
const KEYS: usize = 26;

/// Returns the number of lines of the help.
pub fn lines_of(settings: &Settings) -> usize {
    lines(settings, Context::Tree, usize::from(COLUMNS)).len()
}

/// Returns the number of visible lines.
pub fn height(size: (u16, u16)) -> usize {
    usize::from(size.1).saturating_sub(2).max(1)
}

pub fn draw(model: &Model, frame: &mut Frame, top: usize) {
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let first = match (model.screen, &model.compare, model.preview_focused) {
        (_, Some(_), _) => Context::Compare,
        (Screen::Sessions, ..) => Context::Sessions,
        (Screen::Search, ..) => Context::Search,
        (Screen::Tree, None, true) => Context::Preview,
        (Screen::Tree, None, false) => Context::Tree,
    };
    let lines = lines(&model.settings, first, usize::from(columns));
    let shown = height(model.size).min(lines.len());
    let area = popup::area(screen, columns, shown);
    let more = lines.len() > shown;
    let title = if more {
        "Keys (↓ more, esc closes)"
    } else {
        "Keys (esc closes)"
    };
    let visible = lines.into_iter().skip(top).take(shown).collect();
    popup::draw(
        frame,
        &model.settings.theme,
        area,
        title,
        model.settings.theme.active,
        visible,
    );
}

/// Returns the lines of all contexts; those of `first` come first.
fn lines(settings: &Settings, first: Context, columns: usize) -> Vec<Line<'static>> {
    let theme = &settings.theme;
    let wide = KEYS.min(columns / 2);
    let mut out = Vec::new();
    let mut contexts = Context::ALL;
    contexts.sort_by_key(|context| *context != first);
    for context in contexts {
        if !out.is_empty() {
            out.push(Line::default());
        }
        out.push(Line::styled(context.name(), theme.heading));
        for (action, keys) in settings.keymap.bound(context) {
            let keys: Vec<String> = keys.iter().map(Key::to_string).collect();
            let keys = text::cut(&keys.join(" "), wide.saturating_sub(2));
            let gap = " ".repeat(wide.saturating_sub(text::width(&keys) + 1));
            let room = columns.saturating_sub(wide + 1);
            out.push(Line::from(vec![
                Span::raw(" "),
                Span::styled(keys, theme.key),
                Span::raw(gap),
                Span::styled(text::cut(action.about(), room), theme.text),
            ]));
        }
    }
    out
}
