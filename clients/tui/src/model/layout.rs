//! Divides the screen into panes. Drawing, scrolling and the mouse use the result.

use super::{Model, Screen};
use ratatui::layout::Rect;

/// The panes. A pane that is not shown has the height 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Panes {
    pub header: Rect,
    /// The headings of the columns in the list of sessions.
    pub list_head: Rect,
    /// The rows of the list of sessions.
    pub list: Rect,
    /// The hits of the search over all sessions.
    pub hits: Rect,
    /// The rows of the tree.
    pub tree: Rect,
    /// The column to the left of the preview, if the preview is beside the tree.
    pub divider: Rect,
    /// The frames around the tree and the preview, on large screens.
    pub tree_frame: Rect,
    pub preview_frame: Rect,
    /// The line above the text of the preview.
    pub preview_title: Rect,
    /// The text of the preview.
    pub preview: Rect,
    /// The title of the editor.
    pub editor_title: Rect,
    pub editor: Rect,
    pub compare: Rect,
    pub search: Rect,
    pub status: Rect,
}

/// The smallest width and height for frames around the panes.
const FRAMED: (u16, u16) = (100, 30);

/// The smallest height for the headings of the columns.
const WITH_HEAD: u16 = 8;

/// The smallest width for a preview beside the tree.
const WIDE: u16 = 110;

/// The most steps by which the user can make the preview larger or smaller.
pub const MOST_STEPS: isize = 4;

/// From this width on, the preview gets more than half of the width, since the rest is enough for the tree.
const VERY_WIDE: u16 = 160;

/// The smallest height for both the tree and the preview.
const LOW: u16 = 14;

/// From this height on, the preview gets half of the height.
const HIGH: u16 = 36;

pub fn panes(model: &Model) -> Panes {
    let (columns, rows) = model.size;
    let area = Rect::new(0, 0, columns, rows);
    let mut panes = Panes::default();
    let (header, rest) = cut_top(area, 1);
    let (rest, status) = cut_bottom(rest, 1);
    panes.header = header;
    panes.status = status;
    if model.compare.is_some() {
        panes.compare = rest;
        return panes;
    }
    let searching = match model.screen {
        Screen::Sessions => model.sessions.typing || !model.sessions.search.is_empty(),
        Screen::Search => true,
        Screen::Tree => model.tree.typing || !model.tree.search.is_empty(),
    };
    let has_line = searching || model.command_line.is_some();
    let (mut rest, search) = cut_bottom(rest, u16::from(has_line));
    panes.search = search;
    if model.screen == Screen::Sessions {
        let has_head = rest.height >= WITH_HEAD && !model.sessions.rows().is_empty();
        (panes.list_head, panes.list) = cut_top(rest, u16::from(has_head));
        return panes;
    }
    if model.screen == Screen::Search {
        panes.hits = rest;
        return panes;
    }
    if model.editor.is_some() {
        let (above, editor) = cut_bottom(rest, (rest.height / 2).max(3).min(rest.height));
        (panes.editor_title, panes.editor) = cut_top(editor, 1);
        rest = above;
    }
    split(model, &mut panes, rest);
    if columns >= FRAMED.0 && rows >= FRAMED.1 && model.editor.is_none() {
        frame(&mut panes);
    }
    panes
}

/// Divides the space between header and status line between the tree and the preview.
fn split(model: &Model, panes: &mut Panes, rest: Rect) {
    let (columns, rows) = model.size;
    let alone = model.preview_focused && (rows < LOW || !model.half);
    if alone && model.editor.is_none() {
        (panes.preview_title, panes.preview) = cut_top(rest, 1);
    } else if !model.half || rest.height < LOW - 4 || model.editor.is_some() && columns < WIDE {
        panes.tree = rest;
    } else if columns >= WIDE {
        let width = beside_preview(model);
        panes.tree = Rect { width, ..rest };
        panes.divider = Rect {
            x: rest.x + width,
            width: 1,
            ..rest
        };
        let beside = Rect {
            x: rest.x + width + 1,
            width: rest.width - width - 1,
            ..rest
        };
        let (title, below) = cut_top(beside, 1);
        panes.preview_title = title;
        panes.preview = Rect {
            x: below.x + 1,
            width: below.width - 1,
            ..below
        };
    } else {
        let percent = if rows >= HIGH { 50 } else { 40 };
        let below = share(rest.height, percent, model);
        let (tree, below) = cut_top(rest, rest.height - below);
        panes.tree = tree;
        (panes.preview_title, panes.preview) = cut_top(below, 1);
    }
}

/// Returns the width of the tree if the preview is beside it.
fn beside_preview(model: &Model) -> u16 {
    let columns = model.size.0;
    let percent = if columns >= VERY_WIDE { 55 } else { 45 };
    columns - share(columns, percent, model)
}

/// Returns the width for which guides are drawn. It is the width of the tree, even while something else covers the
/// tree.
pub fn tree_columns(model: &Model) -> usize {
    let columns = match model.half && model.size.0 >= WIDE {
        true => beside_preview(model),
        false => model.size.0,
    };
    usize::from(columns)
}

/// Puts frames around the tree and the preview.
fn frame(panes: &mut Panes) {
    if panes.tree.height > 2 {
        panes.tree_frame = panes.tree;
        panes.tree = inside(panes.tree);
    }
    if panes.preview.height > 2 {
        let (title, below) = (panes.preview_title, panes.preview);
        let left = match panes.divider.height {
            0 => title.x,
            _ => panes.divider.x,
        };
        panes.preview_frame = Rect {
            x: left,
            y: title.y,
            width: below.x + below.width - left,
            height: below.height + 1,
        };
        let inside = inside(panes.preview_frame);
        panes.preview = Rect {
            x: inside.x + 1,
            width: inside.width.saturating_sub(2),
            ..inside
        };
        panes.preview_title = Rect {
            x: left + 1,
            width: panes.preview_frame.width.saturating_sub(2),
            ..title
        };
        panes.divider = Rect::default();
    }
}

fn inside(frame: Rect) -> Rect {
    Rect {
        x: frame.x + 1,
        y: frame.y + 1,
        width: frame.width.saturating_sub(2),
        height: frame.height.saturating_sub(2),
    }
}

/// Returns the size of the preview: `percent` of `whole`, and for each of the user's steps 8 percent more or less.
fn share(whole: u16, percent: u16, model: &Model) -> u16 {
    let steps = i16::try_from(model.preview_size).unwrap_or(0);
    let percent = u32::from(percent.saturating_add_signed(8 * steps).clamp(15, 85));
    u16::try_from(u32::from(whole) * percent / 100).unwrap_or(whole)
}

fn cut_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let top = Rect { height, ..area };
    let rest = Rect {
        y: area.y + height,
        height: area.height - height,
        ..area
    };
    (top, rest)
}

fn cut_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    let rest = Rect {
        height: area.height - height,
        ..area
    };
    let bottom = Rect {
        y: area.y + area.height - height,
        height,
        ..area
    };
    (rest, bottom)
}
