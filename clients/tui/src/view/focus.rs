//! Draws the editor of the focus of a compaction or of a merge.

use super::dialog::{COLUMNS, key_line, put_cursor, wrapped};
use super::popup;
use crate::keys::{Action, Context};
use crate::model::Model;
use crate::model::dialog::FocusOf;
use crate::model::input::Input;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

/// Rows of the text: at least, and at most.
const ROWS: (usize, usize) = (3, 10);

/// Rows of the dialog besides the text.
const OTHER_ROWS: usize = 7;

pub fn draw(model: &Model, frame: &mut Frame, focus_of: &FocusOf, input: &Input) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let (title, verb) = match focus_of {
        FocusOf::Compaction => ("Compact", "compacts"),
        FocusOf::Merge(_) => ("Merge the branch", "merges"),
    };
    let spare = usize::from(screen.height).saturating_sub(OTHER_ROWS);
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
    let about = "What the summary keeps in particular; it may be empty.";
    let mut lines: Vec<Line> = wrapped(about, columns, theme.dim).collect();
    let first = lines.len();
    lines.extend(text);
    lines.push(Line::default());
    let newline = model.settings.keymap.hint(Context::Editor, Action::Newline);
    let keys = [("enter", verb), (&*newline, "new line"), ("esc", "cancels")];
    lines.push(key_line(model, &keys, usize::from(columns)));
    let area = popup::area(screen, columns, lines.len());
    let inner = popup::draw(frame, theme, area, title, theme.active, lines);
    put_cursor(frame, inner, first + row - top, column);
}
