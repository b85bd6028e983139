//! Draws the list of sessions.

use super::{MOST_BELOW_EMPTINESS, first_line_of_emptiness, put, put_emptiness};
use crate::keys::{Action, Context};
use crate::message::SessionRow;
use crate::model::groups::Grouping;
use crate::model::sessions::ListLine;
use crate::model::{Connection, Model};
use crate::text;
use crate::time;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

/// The smallest width that has a column of directories, and the smallest width at which this column is wider.
const WIDE: usize = 72;
const VERY_WIDE: usize = 120;

/// The name of the first column.
const NAME: &str = "  session";

/// The widths of the columns with the number of messages and with the time.
const MESSAGES: usize = 9;
const WHEN: usize = 4;

/// The most columns for the names of machines, and the most columns for tags and marks. On a wide screen, each may have
/// a quarter of the width.
const MOST_ELSEWHERE: usize = 32;
const MOST_MARKS: usize = 28;

pub fn draw(model: &Model, frame: &mut Frame, head: Rect, area: Rect) {
    let list = &model.sessions;
    if let Some(mut why) = list.emptiness() {
        if let Connection::Connecting = model.link {
            why = "Starting the daemon…".to_owned();
        } else if list.here && !list.loading && !list.search.is_empty() {
            let key = model.settings.keymap.hint(Context::Sessions, Action::Scope);
            why.push_str(&format!(" {key} shows those of all directories."));
        }
        if !list.search.is_empty() && !list.loading {
            let keymap = &model.settings.keymap;
            let key = keymap.hint(Context::Sessions, Action::SearchAll);
            why.push_str(&format!(" {key} searches the text of all sessions."));
        }
        put_emptiness(model, frame, area, &why);
        if !list.loading && list.search.is_empty() && matches!(model.link, Connection::Up(_)) {
            put_offers(model, frame, area);
        }
        return;
    }
    put(frame, head, 0, head_line(model, usize::from(area.width)));
    let columns = usize::from(area.width);
    let lines = list.lines().skip(list.top);
    for (line, shown) in lines.take(usize::from(area.height)).enumerate() {
        let drawn = match shown {
            ListLine::Head(name) => {
                let name = text::cut_front(&text::line(name), columns);
                Line::styled(name, model.settings.theme.heading)
            }
            ListLine::Row(at) => match list.rows().get(at) {
                Some(row) => row_line(model, row, at, columns),
                None => continue,
            },
        };
        put(frame, area, line, drawn);
    }
}

/// The actions that are offered in a directory without sessions.
const OFFERS: [Action; 5] = [
    Action::Create,
    Action::Import,
    Action::Scope,
    Action::Restore,
    Action::Help,
];

/// Draws the actions that are offered in a directory without sessions. They are below the reason for the empty list.
fn put_offers(model: &Model, frame: &mut Frame, area: Rect) {
    let theme = &model.settings.theme;
    let first = first_line_of_emptiness(area, MOST_BELOW_EMPTINESS) + 2;
    let keymap = &model.settings.keymap;
    let rows: Vec<(String, &str)> = OFFERS
        .iter()
        .map(|action| {
            let about = match action {
                Action::Scope if model.sessions.here => "the sessions of all directories",
                Action::Scope => "the sessions of this directory",
                action => action.about(),
            };
            (keymap.hint(Context::Sessions, *action), about)
        })
        .collect();
    let wide = rows
        .iter()
        .map(|(key, about)| key.len().max(4) + about.len() + 2);
    let indent = usize::from(area.width).saturating_sub(wide.max().unwrap_or(0)) / 2;
    for (at, (key, about)) in rows.into_iter().enumerate() {
        let line = Line::from(vec![
            Span::raw(" ".repeat(indent)),
            Span::styled(format!("{key:>4}"), theme.key),
            Span::styled(format!("  {about}"), theme.text),
        ]);
        put(frame, area, first + at, line);
    }
}

/// Returns the headings of the columns.
fn head_line(model: &Model, columns: usize) -> Line<'static> {
    let theme = &model.settings.theme;
    let mut tail = format!("{:>MESSAGES$}  {:>WHEN$}", "messages", "when");
    if let Some(wide) = directory(model, columns) {
        tail = format!("  {:<wide$} {tail}", "directory");
    }
    let gap = columns.saturating_sub(text::width(&tail) + text::width(NAME));
    Line::styled(format!("{NAME}{}{tail}", " ".repeat(gap)), theme.dim)
}

/// Returns the width of the column of directories; `None` if it is not shown.
fn directory(model: &Model, columns: usize) -> Option<usize> {
    let list = &model.sessions;
    let has_one = list.here || list.project.is_some() || list.grouping == Grouping::Project;
    let part = if columns < VERY_WIDE { 4 } else { 3 };
    (!has_one && columns >= WIDE).then_some(columns / part)
}

/// Returns the machine of a session that has no file here, whether entries wait for the team's stream, and the other
/// machines that have the session open.
fn elsewhere(row: &SessionRow, columns: usize) -> String {
    let host = row.host.as_ref().filter(|host| !host.is_empty());
    let mut about = host.map_or_else(String::new, |host| format!(" · {host}"));
    if row.queued {
        about += " · waits for the team";
    }
    if !row.open_on.is_empty() {
        about += &format!(" · open on {}", row.open_on.join(", "));
    }
    text::cut(&about, MOST_ELSEWHERE.max(columns / 4))
}

/// Returns the tags, the marks and the git branch of a session, which are shown after its title.
fn marks(row: &SessionRow, columns: usize) -> String {
    let marks = row.marks.iter().map(|mark| format!("  {mark}"));
    text::cut(&marks.collect::<String>(), MOST_MARKS.max(columns / 4))
}

fn row_line(model: &Model, row: &SessionRow, at: usize, columns: usize) -> Line<'static> {
    let theme = &model.settings.theme;
    let selected = at == model.sessions.cursor;
    let open = model.session.as_ref().is_some_and(|open| open.id == row.id);
    let now = model.started + i64::try_from(model.now.as_secs()).unwrap_or(0);
    let pointer = if selected { "› " } else { "  " };
    let guide = text::cut_front(model.sessions.guide(at), columns / 4);
    let when = time::ago(row.modified, now);
    let mut tail = format!("{:>MESSAGES$}  {when:>WHEN$}", row.messages);
    if let Some(wide) = directory(model, columns) {
        let cwd = text::cut_front(&row.cwd, wide);
        let gap = " ".repeat(wide.saturating_sub(text::width(&cwd)));
        tail = format!("  {cwd}{gap} {tail}");
    }
    let mut title_style = match row.name {
        _ if row.host.is_some() => theme.dim,
        Some(_) => theme.text.add_modifier(Modifier::BOLD),
        None => theme.text,
    };
    let mut title = row.title().to_owned();
    if let Some(damage) = &row.damage {
        title_style = theme.error;
        title = format!("! {damage}");
    }
    let active = if open { " ← open" } else { "" };
    let active = format!("{active}{}{}", elsewhere(row, columns), marks(row, columns));
    let used = text::width(pointer) + text::width(&guide) + text::width(&tail);
    // The title has at least half of the room: without it, a row says nothing.
    let room = columns.saturating_sub(used);
    let least = text::width(&title).min(room.div_ceil(2));
    let active = text::cut(&active, room - least);
    let used = used + text::width(&active);
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
