//! Draws the list of sessions.

use super::{put, put_emptiness};
use crate::message::SessionRow;
use crate::model::{Connection, Model};
use crate::text;
use crate::time;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Minimum width for the column of directories.
const WIDE: usize = 72;

pub fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let list = &model.sessions;
    if let Some(mut why) = list.emptiness() {
        if let Connection::Connecting = model.link {
            why = "Starting the daemon…".to_owned();
        } else if list.here && !list.loading {
            let key = model
                .settings
                .keymap
                .hint(crate::keys::Context::Sessions, crate::keys::Action::Scope);
            why.push_str(&format!(" {key} shows those of all directories."));
        }
        if !list.search.is_empty() && !list.loading {
            let keymap = &model.settings.keymap;
            let key = keymap.hint(
                crate::keys::Context::Sessions,
                crate::keys::Action::SearchAll,
            );
            why.push_str(&format!(" {key} searches the text of all sessions."));
        }
        put_emptiness(model, frame, area, &why);
        return;
    }
    let rows = list.rows().iter().enumerate().skip(list.top);
    for (line, (at, row)) in rows.take(usize::from(area.height)).enumerate() {
        put(
            frame,
            area,
            line,
            row_line(model, row, at, usize::from(area.width)),
        );
    }
}

fn row_line(model: &Model, row: &SessionRow, at: usize, columns: usize) -> Line<'static> {
    let theme = &model.settings.theme;
    let selected = at == model.sessions.cursor;
    let open = model.session.as_ref().is_some_and(|open| open.id == row.id);
    let now = model.started + i64::try_from(model.now.as_secs()).unwrap_or(0);
    let pointer = if selected { "› " } else { "  " };
    let guide = text::cut_front(model.sessions.guide(at), columns / 4);
    let mut tail = format!(" {:>5}  {:>4}", row.messages, time::ago(row.modified, now));
    if !model.sessions.here && columns >= WIDE {
        tail = format!("  {}{tail}", text::cut_front(&row.cwd, columns / 4));
    }
    let mut title_style = if row.name.is_some() {
        theme.user
    } else {
        theme.text
    };
    let mut title = row.title().to_owned();
    if let Some(damage) = &row.damage {
        title_style = theme.error;
        title = format!("! {damage}");
    }
    let active = if open { " ← open" } else { "" };
    let used =
        text::width(pointer) + text::width(&guide) + text::width(&tail) + text::width(active);
    let title = text::cut(&title, columns.saturating_sub(used));
    let gap = " ".repeat(columns.saturating_sub(used + text::width(&title)));
    if selected {
        let line = format!("{pointer}{guide}{title}{active}{gap}{tail}");
        return Line::styled(line, theme.selected);
    }
    Line::from(vec![
        Span::raw(pointer),
        Span::styled(guide, theme.guide),
        Span::styled(title, title_style),
        Span::styled(active, theme.active),
        Span::raw(gap),
        Span::styled(tail, theme.dim),
    ])
}
