//! Draws the editor for the focus of a compaction or merge. The focus says what the summary must keep.

use super::parts::{COLUMNS, key_lines, put_cursor, wrapped};
use super::popup;
use crate::keys::{Action, Context};
use crate::model::Model;
use crate::model::dialog::FocusOf;
use crate::model::input::Input;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// The fewest and the most rows of the text.
const ROWS: (usize, usize) = (3, 10);

pub fn draw(model: &Model, frame: &mut Frame, focus_of: &FocusOf, input: &Input) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let (title, verb) = match focus_of {
        FocusOf::Compaction => ("Compact", "compacts"),
        FocusOf::Merge(_) => ("Merge the branch", "merges"),
    };
    let newline = model.settings.keymap.hint(Context::Editor, Action::Newline);
    let keys = [("enter", verb), (&*newline, "new line"), ("esc", "cancels")];
    let keys = key_lines(model, &keys, usize::from(columns));
    let about = "What the summary keeps in particular; it may be empty.";
    let mut lines: Vec<Line> = wrapped(about, columns, theme.dim).collect();
    // Three more rows are needed: an empty line between the text and the keys, and the two lines of
    // the border.
    let spare = usize::from(screen.height).saturating_sub(lines.len() + keys.len() + 3);
    let most = spare.clamp(1, ROWS.1);
    let (rows, (row, column)) = input.layout(usize::from(columns));
    let top = (row + 1).saturating_sub(most);
    let mut text: Vec<Line> = rows
        .into_iter()
        .skip(top)
        .take(most)
        .map(|row| Line::styled(row.text, theme.text))
        .collect();
    text.resize(text.len().max(ROWS.0.min(most)), Line::default());
    let first = lines.len();
    lines.extend(text);
    let lines = popup::with_keys(screen, lines, keys);
    let area = popup::area(screen, columns, lines.len());
    let inner = popup::draw(frame, theme, area, title, theme.active, lines);
    put_cursor(frame, inner, first + row - top, column);
}
