//! Draws the dialog that continues a conversation in another agent.

use super::parts::{key_lines, wrapped};
use super::popup;
use crate::message::HandoffPreview;
use crate::model::Model;
use crate::model::advice;
use crate::model::handoff::{Handoff, HandoffSize, HandoffState};
use crate::{shell, text, time};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// The preferred width in columns. With this width most commands fit on two lines.
const COLUMNS: u16 = 76;

pub fn draw(model: &Model, frame: &mut Frame, handoff: &Handoff) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let keys = |more| keys(model, handoff, columns, more);
    let lines = popup::scrolled(screen, body(model, handoff, columns), handoff.top, keys);
    let area = popup::area(screen, columns, lines.len());
    let title = match handoff.is_text() {
        true => "Continue in another agent".to_owned(),
        false => format!("Continue in {}", handoff.agent.name),
    };
    popup::draw(frame, theme, area, &title, theme.active, lines);
}

/// Returns the greatest first visible line to which the dialog can be scrolled.
pub fn last_top(model: &Model, handoff: &Handoff) -> usize {
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let keys = |more| keys(model, handoff, columns, more);
    popup::last_top(screen, body(model, handoff, columns).len(), keys)
}

/// Returns the lines above the keys. The losses come first, since a small screen shows only the first lines.
fn body(model: &Model, handoff: &Handoff, columns: u16) -> Vec<Line<'static>> {
    let theme = &model.settings.theme;
    let about = text::cut(&handoff.about, usize::from(columns));
    let mut lines = vec![Line::styled(about, theme.user)];
    lines.extend(outcome(model, handoff, columns));
    if !handoff.is_text() {
        let command = shell::command_line(&handoff.command(&model.settings.program));
        let folded = text::fold(&text::line(&command), usize::from(columns));
        let styled = folded.into_iter();
        lines.extend(styled.map(|line| Line::styled(line, theme.code)));
    }
    lines.extend(options(model, handoff, columns));
    lines
}

/// Returns lines about the size and the losses of the handoff, or the reason why they are unknown.
fn outcome(model: &Model, handoff: &Handoff, columns: u16) -> Vec<Line<'static>> {
    let theme = &model.settings.theme;
    match &handoff.preview {
        HandoffState::Asked => {
            wrapped("Looking at what is handed over…", columns, theme.dim).collect()
        }
        HandoffState::Unknown => {
            let about = "A summary of the earlier turns is written when the command runs.";
            wrapped(about, columns, theme.text).collect()
        }
        HandoffState::Failed(failure) => {
            let mut lines: Vec<Line> = wrapped(&failure.message, columns, theme.error).collect();
            if !handoff.is_too_large() {
                let advice = advice::of(&failure.kind, model.summarizer());
                lines.extend(wrapped(advice, columns, theme.text));
            }
            lines
        }
        HandoffState::Known(preview) => known(model, preview, columns),
    }
}

fn known(model: &Model, preview: &HandoffPreview, columns: u16) -> Vec<Line<'static>> {
    let theme = &model.settings.theme;
    let noun = match preview.messages {
        1 => "message",
        _ => "messages",
    };
    let tokens = time::tokens(preview.tokens);
    let size = format!("{} {noun}, about {tokens} tokens", preview.messages);
    let mut lines: Vec<Line> = wrapped(&size, columns, theme.text).collect();
    if preview.losses.is_empty() {
        lines.extend(wrapped("Nothing is lost.", columns, theme.dim));
    }
    for loss in &preview.losses {
        lines.extend(wrapped(&format!("lost: {loss}"), columns, theme.dim));
    }
    for program in &preview.missing {
        let about = format!("{program} is not on the PATH: install it, or choose another agent.");
        lines.extend(wrapped(&about, columns, theme.error));
    }
    lines
}

/// Returns the options with their keys. The chosen options are marked.
fn options(model: &Model, handoff: &Handoff, columns: u16) -> Vec<Line<'static>> {
    let theme = &model.settings.theme;
    let mut options = vec![(
        "l",
        handoff.learned,
        "begin with what the branch that is left has taught",
    )];
    if handoff.is_too_large() || handoff.size != HandoffSize::Limited {
        if !handoff.is_text() {
            let is_chosen = handoff.size == HandoffSize::Compacted;
            options.push(("c", is_chosen, "a summary in place of the earlier turns"));
        }
        let is_chosen = handoff.size == HandoffSize::Whole;
        options.push(("0", is_chosen, "all of it, whatever its size"));
    }
    let lines = options.into_iter().map(|(key, is_chosen, about)| {
        let mark = if is_chosen { "[x] " } else { "[ ] " };
        let about = text::cut(about, usize::from(columns).saturating_sub(6));
        Line::from(vec![
            Span::styled(mark, theme.text),
            Span::styled(key, theme.key),
            Span::styled(format!(" {about}"), theme.text),
        ])
    });
    lines.collect()
}

/// Returns the lines that explain the keys. `more` says whether the body can be scrolled.
fn keys(model: &Model, handoff: &Handoff, columns: u16, more: bool) -> Vec<Line<'static>> {
    let mut keys = match (handoff.can_run(), handoff.is_text()) {
        (true, true) => vec![("enter", "shows it"), ("y", "copies it")],
        (true, false) => vec![("enter", "runs it"), ("y", "copies the command")],
        (false, _) => Vec::new(),
    };
    if more {
        keys.push(("↑↓", "more"));
    }
    keys.push(("esc", "cancels"));
    key_lines(model, &keys, usize::from(columns))
}
