//! A box that is drawn over the screen.

use crate::theme::Theme;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, BorderType, Clear, Paragraph};

/// Returns the outer area of a box with `lines` lines of `columns` columns, cut to the screen. The box is centred
/// horizontally. A third of the free rows is above it.
pub fn area(screen: Rect, columns: u16, lines: usize) -> Rect {
    let width = columns.saturating_add(4).min(screen.width);
    let height = u16::try_from(lines)
        .unwrap_or(u16::MAX)
        .saturating_add(2)
        .min(screen.height);
    Rect {
        x: screen.x + (screen.width - width) / 2,
        y: screen.y + (screen.height - height) / 3,
        width,
        height,
    }
}

/// Returns the area inside the border and the margins.
pub fn inner(area: Rect) -> Rect {
    Rect {
        x: area.x + 2.min(area.width),
        y: area.y + 1.min(area.height),
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    }
}

/// Returns the width of the text in a box: `wish` columns, or fewer on a narrow screen.
pub fn columns(screen: Rect, wish: u16) -> u16 {
    wish.min(screen.width.saturating_sub(4))
}

/// Returns the lines of a box: the body, an empty line, and the lines that explain the keys. If the screen is too low
/// for all of them, the empty line is left out; if that is not enough, `…` replaces the end of the body.
pub fn with_keys(
    screen: Rect,
    mut body: Vec<Line<'static>>,
    keys: Vec<Line<'static>>,
) -> Vec<Line<'static>> {
    let room = usize::from(screen.height).saturating_sub(2 + keys.len());
    if body.len() > room {
        body.truncate(room.saturating_sub(1));
        body.push(Line::from("…"));
    } else if body.len() < room {
        body.push(Line::default());
    }
    body.extend(keys);
    body
}

/// Returns the lines of a box whose body can be scrolled: as many lines of the body as fit, beginning with line `top`,
/// then the lines that explain the keys. `keys` is called with true if the body has more lines than fit.
pub fn scrolled(
    screen: Rect,
    body: Vec<Line<'static>>,
    top: usize,
    keys: impl Fn(bool) -> Vec<Line<'static>>,
) -> Vec<Line<'static>> {
    let all = keys(false);
    if body.len() + all.len() + 2 <= usize::from(screen.height) {
        return with_keys(screen, body, all);
    }
    let keys = keys(true);
    let room = usize::from(screen.height)
        .saturating_sub(2 + keys.len())
        .max(1);
    let top = top.min(body.len().saturating_sub(room));
    let mut lines: Vec<Line> = body.into_iter().skip(top).take(room).collect();
    lines.extend(keys);
    lines
}

/// Returns the greatest `top` to which the body can be scrolled in [`scrolled`].
pub fn last_top(screen: Rect, body: usize, keys: impl Fn(bool) -> Vec<Line<'static>>) -> usize {
    match body + keys(false).len() + 2 <= usize::from(screen.height) {
        true => 0,
        false => {
            let room = usize::from(screen.height)
                .saturating_sub(2 + keys(true).len())
                .max(1);
            body.saturating_sub(room)
        }
    }
}

/// Draws a line of text over the lower border of a box.
pub fn foot(frame: &mut Frame, area: Rect, line: Line) {
    let row = Rect {
        x: area.x + 2.min(area.width),
        y: area.bottom().saturating_sub(1),
        width: u16::try_from(line.width())
            .unwrap_or(u16::MAX)
            .min(area.width.saturating_sub(4)),
        height: 1.min(area.height),
    };
    frame.render_widget(Clear, row);
    frame.render_widget(Paragraph::new(line), row);
}

/// Draws the box and its lines. Returns the area of the lines.
pub fn draw(
    frame: &mut Frame,
    theme: &Theme,
    area: Rect,
    title: &str,
    border: Style,
    lines: Vec<Line>,
) -> Rect {
    // The screen around the box is dimmed, and one column on each side of the box stays empty, so that the text beside
    // the box does not seem to belong to it.
    let screen = frame.area();
    let behind = Style::reset().patch(theme.dim);
    frame.buffer_mut().set_style(screen, behind);
    let margin = Rect {
        x: area.x.saturating_sub(1),
        width: area.width + 2,
        ..area
    };
    frame.render_widget(Clear, margin.intersection(screen));
    let title = format!(
        " {} ",
        crate::text::cut(title, usize::from(area.width.saturating_sub(4)))
    );
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(border)
        .title(Line::styled(title, theme.heading));
    frame.render_widget(block, area);
    let inner = inner(area);
    frame.render_widget(Paragraph::new(lines), inner);
    inner
}
