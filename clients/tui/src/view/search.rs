//! Draws the hits of the search over all sessions.

use super::{marked, put, put_emptiness};
use crate::message::Hit;
use crate::model::Model;
use crate::model::search::HitLine;
use crate::text;
use crate::theme::Theme;
use crate::time;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

/// The width of the column with the kind of field that matches.
const FIELD: usize = 8;

/// The smallest width at which the kind of field and the entry where a branch was left are shown too.
const WIDE: usize = 72;

/// The most completions that are shown.
const COMPLETIONS: usize = 8;

/// The width of the column with the id of the entry where a branch was left.
const ID: usize = 12;

pub fn draw(model: &Model, frame: &mut Frame, area: Rect) {
    let search = &model.search;
    if let Some(why) = search.emptiness() {
        put_emptiness(model, frame, area, &why);
        return;
    }
    let columns = usize::from(area.width);
    let lines = search
        .lines()
        .skip(search.top)
        .take(usize::from(area.height));
    for (at, (place, line)) in lines.enumerate() {
        let selected = place == Some(search.cursor);
        let line = match line {
            HitLine::Near(near) => {
                let instead = match (near.is_taken, &near.near) {
                    (true, _) => "The hits are of ",
                    (false, Some(_)) => "Did you mean ",
                    (false, None) => "",
                };
                let about = format!("No entry has “{}”. {instead}", near.word);
                let near = near.near.as_deref().unwrap_or_default();
                choice_line(model, &about, near, selected, columns)
            }
            HitLine::Session(name, hits) => session_line(model, name, hits, columns),
            HitLine::Hit(hit) => hit_line(model, hit, selected, columns),
            HitLine::Left(hit) => left_line(model, hit, columns),
            HitLine::More(_, _, count) => {
                let more = format!("{count} more in this session");
                choice_line(model, "… ", &more, selected, columns)
            }
        };
        put(frame, area, at, line);
    }
}

/// Returns a line that is not a hit and can be chosen.
fn choice_line(
    model: &Model,
    about: &str,
    choice: &str,
    selected: bool,
    columns: usize,
) -> Line<'static> {
    let theme = &model.settings.theme;
    let pointer = if selected { "›  " } else { "   " };
    let room = columns.saturating_sub(text::width(pointer));
    // If there is too little room, `about` is cut first.
    let about = text::cut(about, room.saturating_sub(text::width(choice)));
    let room = room.saturating_sub(text::width(&about));
    let spans = vec![
        Span::styled(pointer, theme.active),
        Span::styled(about, theme.dim),
        Span::styled(text::cut(choice, room), theme.key),
    ];
    restyled(theme, spans, selected, columns)
}

/// Returns the line below a hit. It says why the branch of the hit was left and what was tried instead, or what was
/// left in the turn of the hit. On a narrow screen it has only the first of these texts.
fn left_line(model: &Model, hit: &Hit, columns: usize) -> Line<'static> {
    let theme = &model.settings.theme;
    let indent = if columns < WIDE { 3 } else { 3 + FIELD + 1 };
    let mut spans = vec![Span::raw(" ".repeat(indent))];
    let parts = [
        ("left: ", &hit.reason),
        ("instead: ", &hit.instead),
        ("left here: ", &hit.left_here),
    ];
    let mut parts: Vec<_> = parts
        .iter()
        .filter_map(|(about, text)| Some((*about, text.as_ref()?)))
        .collect();
    let room = columns.saturating_sub(indent);
    let wanted: usize = parts
        .iter()
        .map(|(about, said)| text::width(about) + text::width(said) + 2)
        .sum();
    // Half a line would be too short for either text.
    if columns < WIDE && wanted > room {
        parts.truncate(1);
    }
    // The first text gets at most half of the room, and the second text gets the rest.
    let mut used = 0;
    for (at, (about, said)) in parts.iter().enumerate() {
        let gap = if at == 0 { "" } else { "  " };
        let rest = parts.len() - at;
        let share = room.saturating_sub(used) / rest;
        let said = text::cut(said, share.saturating_sub(text::width(about) + gap.len()));
        used += gap.len() + text::width(about) + text::width(&said);
        spans.push(Span::styled(format!("{gap}{about}"), theme.label));
        spans.push(Span::styled(said, theme.dim));
    }
    Line::from(spans)
}

/// Returns the spans as a line. A selected line has the style of the selection over its whole width.
fn restyled(
    theme: &Theme,
    mut spans: Vec<Span<'static>>,
    selected: bool,
    columns: usize,
) -> Line<'static> {
    if !selected {
        return Line::from(spans);
    }
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" ".repeat(columns.saturating_sub(used))));
    let restyled = spans.into_iter().map(|span| {
        let on_selection = theme.on_selection(span.style, theme.selected);
        Span::styled(span.content, on_selection)
    });
    Line::from_iter(restyled)
}

/// Draws the completions of the word at the cursor, above the line of the query.
pub fn completion(model: &Model, frame: &mut Frame, line_area: Rect) {
    let items = &model.search.completion.items;
    if line_area.height == 0 || items.is_empty() || model.dialog.is_some() {
        return;
    }
    let theme = &model.settings.theme;
    let most = COMPLETIONS.min(usize::from(line_area.y.saturating_sub(1)));
    let columns = usize::from(line_area.width);
    let lines: Vec<Line> = items
        .iter()
        .take(most)
        .map(|(text, about)| {
            let text = format!(" {text:<10} ");
            let room = columns.saturating_sub(text::width(&text));
            Line::from(vec![
                Span::styled(text, theme.key),
                Span::styled(text::cut(about, room), theme.dim),
            ])
        })
        .collect();
    let Ok(height) = u16::try_from(lines.len()) else {
        return;
    };
    let area = Rect {
        y: line_area.y.saturating_sub(height),
        height,
        ..line_area
    };
    frame.render_widget(Clear, area);
    for (at, line) in lines.into_iter().enumerate() {
        put(frame, area, at, line);
    }
}

fn session_line(model: &Model, name: &str, hits: usize, columns: usize) -> Line<'static> {
    let theme = &model.settings.theme;
    let tail = match hits {
        // More hits of this session may not be loaded yet.
        _ if model.search.has_more() => String::new(),
        1 => " · 1 hit".to_owned(),
        hits => format!(" · {hits} hits"),
    };
    let name = if name.is_empty() { "(empty)" } else { name };
    let name = text::cut(name, columns.saturating_sub(text::width(&tail)));
    Line::from(vec![
        Span::styled(name, theme.heading),
        Span::styled(tail, theme.dim),
    ])
}

fn hit_line(model: &Model, hit: &Hit, selected: bool, columns: usize) -> Line<'static> {
    let theme = &model.settings.theme;
    let now = model.started + i64::try_from(model.now.as_secs()).unwrap_or(0);
    let pointer = if selected { "›" } else { " " };
    let path = if hit.on_active_path { "• " } else { "  " };
    let wide = columns >= WIDE;
    let field = match wide {
        true => format!("{:<FIELD$} ", hit.field),
        false => String::new(),
    };
    let left = match (&hit.left_at, hit.on_active_path) {
        (_, true) => String::new(),
        // The next line says why the branch was left.
        _ if hit.reason.is_some() || hit.instead.is_some() => " ← left".to_owned(),
        (Some(id), false) if wide => format!(" ← left at {}", text::cut(id, ID)),
        (None, false) if wide => " ← another root".to_owned(),
        _ => " ←".to_owned(),
    };
    let tail = format!("{left}  {:>4}", time::ago(hit.at, now));
    let used = text::width(pointer) + text::width(path) + text::width(&field) + text::width(&tail);
    let room = columns.saturating_sub(used);
    let mut spans = vec![
        Span::styled(pointer, theme.active),
        Span::styled(path, theme.active),
        Span::styled(field, theme.dim),
    ];
    let excerpt = marked(theme, &hit.excerpt, room, theme.text);
    let width: usize = excerpt.iter().map(Span::width).sum();
    spans.extend(excerpt);
    spans.push(Span::raw(" ".repeat(room.saturating_sub(width))));
    spans.push(Span::styled(tail, theme.dim));
    restyled(theme, spans, selected, columns)
}
