//! Draws the dialogs.

use super::parts::{COLUMNS, esc_hint, input_line, key_lines, moving_title, put_cursor, wrapped};
use super::{command, focus, handoff, help, picker, popup, question};
use crate::keys::{Action, Context};
use crate::message::End;
use crate::model::Model;
use crate::model::compare::RunningComparison;
use crate::model::dialog::{Dialog, FailureDialog, NavigationChoice, RunningNavigation};
use crate::model::input::Input;
use crate::text;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

/// The number of visible rows of the focus of a summary.
const FOCUS_ROWS: usize = 5;

pub fn draw(model: &Model, frame: &mut Frame) {
    match &model.dialog {
        None => {}
        Some(Dialog::Choose(choose)) => draw_choose(model, frame, choose),
        Some(Dialog::Label { input, .. }) => {
            let hints = [("enter", "sets it; empty removes it"), ("esc", "cancels")];
            prompt(model, frame, "Label", input, &hints);
        }
        Some(Dialog::Rename { input, .. }) => {
            let hints = [
                ("enter", "renames; empty removes the name"),
                ("esc", "cancels"),
            ];
            prompt(model, frame, "Rename", input, &hints);
        }
        Some(Dialog::NameBranch { input, .. }) => {
            let hints = [
                ("enter", "names it; empty removes the name"),
                ("esc", "cancels"),
            ];
            prompt(model, frame, "Name of the branch", input, &hints);
        }
        Some(Dialog::Tags { input, .. }) => {
            let hints = [("enter", "tags it; -word removes"), ("esc", "cancels")];
            prompt(model, frame, "Tags", input, &hints);
        }
        Some(Dialog::Reason { input, .. }) => {
            let hints = [("enter", "chooses; the others keep it"), ("esc", "cancels")];
            prompt(model, frame, "Why this one?", input, &hints);
        }
        Some(Dialog::Aside { input }) => {
            let hints = [("enter", "asks; nobody's leaf moves"), ("esc", "cancels")];
            prompt(model, frame, "By the way", input, &hints);
        }
        Some(Dialog::Create { input }) => {
            let hints = [
                ("enter", "creates it; a name is optional"),
                ("esc", "cancels"),
            ];
            prompt(model, frame, "New session", input, &hints);
        }
        Some(Dialog::Focus { focus_of, input }) => focus::draw(model, frame, focus_of, input),
        Some(Dialog::Picker(list)) => picker::draw(model, frame, list),
        Some(Dialog::Trash { title, .. }) => confirm(model, frame, title, &TO_THE_TRASH),
        Some(Dialog::Copy { entries, title }) => {
            let title = match entries.len() {
                0 | 1 => title.clone(),
                count => format!("{title} and {} more", count - 1),
            };
            confirm(model, frame, &title, &TO_THE_LEAF);
        }
        Some(Dialog::Archive { title, .. }) => confirm(model, frame, title, &OUT_OF_THE_BRANCH),
        Some(Dialog::Handoff(shown)) => handoff::draw(model, frame, shown),
        Some(Dialog::Failed(failed)) => draw_failed(model, frame, failed),
        // A question is drawn over running operations too.
        Some(Dialog::Question(question)) => question::draw(model, frame, question),
        Some(Dialog::Pager { title, text, top }) => command::pager(model, frame, title, text, *top),
        Some(Dialog::Help { top }) => help::draw(model, frame, *top),
    }
}

// Choices of a navigation.

/// Returns the lines above the choices. `below` is the number of rows from the choices down,
/// including the border.
fn choose_head(
    model: &Model,
    choose: &NavigationChoice,
    columns: u16,
    below: usize,
) -> Vec<Line<'static>> {
    let theme = &model.settings.theme;
    let mut lines = vec![Line::styled(
        text::cut(&choose.preview, usize::from(columns)),
        theme.user,
    )];
    let left = match choose.abandoned {
        None => "…".to_owned(),
        Some(0) => "Nothing is left behind.".to_owned(),
        Some(1) => "1 entry is left behind; it stays in the tree.".to_owned(),
        Some(count) => format!("{count} entries are left behind; they stay in the tree."),
    };
    lines.extend(wrapped(&left, columns, theme.dim));
    if choose.is_user {
        lines.extend(wrapped("Its text opens in the editor.", columns, theme.dim));
    }
    // On a low screen, the choices are more important than the lines above them.
    let spare = usize::from(model.size.1).saturating_sub(below);
    lines.truncate(spare);
    if spare > lines.len() {
        lines.push(Line::default());
    }
    lines
}

/// Returns the width of the focus in the dialog of a navigation, in columns.
pub fn focus_columns(size: (u16, u16)) -> usize {
    let columns = popup::columns(Rect::new(0, 0, size.0, size.1), COLUMNS);
    usize::from(columns).saturating_sub(4)
}

/// Returns the last rows of the focus, and the row and the column of the cursor in these rows.
fn focus_rows(
    model: &Model,
    choose: &NavigationChoice,
    columns: u16,
) -> Option<(Vec<String>, (usize, usize))> {
    let focus = choose.focus.as_ref()?;
    let (rows, (row, column)) = focus.layout(usize::from(columns).saturating_sub(4));
    // The choices, two lines of keys and the border need the other rows.
    let spare = usize::from(model.size.1).saturating_sub(choose.choices().len() + 4);
    let most = spare.clamp(1, FOCUS_ROWS);
    let first = (row + 1).saturating_sub(most);
    let shown = rows.into_iter().skip(first).take(most);
    Some((shown.map(|row| row.text).collect(), (row - first, column)))
}

fn choose_keys(model: &Model, choose: &NavigationChoice, columns: u16) -> Vec<Line<'static>> {
    let columns = usize::from(columns);
    let newline = model.settings.keymap.hint(Context::Editor, Action::Newline);
    let keys = match choose.focus {
        Some(_) => [
            ("enter", "summarizes"),
            (&*newline, "new line"),
            ("esc", "back"),
        ],
        None if choose.can_summarize => [
            ("enter", "goes there"),
            ("1 2 3", "go now"),
            ("esc", "cancels"),
        ],
        None => {
            return key_lines(
                model,
                &[("enter", "goes there"), ("esc", "cancels")],
                columns,
            );
        }
    };
    key_lines(model, &keys, columns)
}

/// Returns the area of the box, the lines above the choices, and the lines of the keys.
fn choose_area(
    model: &Model,
    choose: &NavigationChoice,
) -> (Rect, Vec<Line<'static>>, Vec<Line<'static>>) {
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let keys = choose_keys(model, choose, columns);
    let focus = focus_rows(model, choose, columns).map_or(0, |(rows, _)| rows.len());
    let below = choose.choices().len() + focus + keys.len() + 2;
    let head = choose_head(model, choose, columns, below);
    let body = head.len() + choose.choices().len() + focus;
    let lines = popup::with_keys(screen, vec![Line::default(); body], keys.clone()).len();
    (popup::area(screen, columns, lines), head, keys)
}

fn draw_choose(model: &Model, frame: &mut Frame, choose: &NavigationChoice) {
    let theme = &model.settings.theme;
    let (area, mut lines, keys) = choose_area(model, choose);
    let columns = usize::from(area.width.saturating_sub(4));
    for (at, choice) in choose.choices().iter().enumerate() {
        let selected = at == choose.selected;
        let pointer = if selected { "›" } else { " " };
        let text = format!("{pointer} {} {choice}", at + 1);
        let padding = " ".repeat(columns.saturating_sub(text::width(&text)));
        let style = if selected && choose.focus.is_none() {
            theme.selected
        } else {
            theme.text
        };
        lines.push(Line::styled(format!("{text}{padding}"), style));
    }
    let focus = focus_rows(model, choose, u16::try_from(columns).unwrap_or(u16::MAX));
    let cursor = focus.map(|(rows, (row, column))| {
        let first = lines.len();
        for (at, text) in rows.into_iter().enumerate() {
            let pointer = if at == 0 { "  › " } else { "    " };
            lines.push(Line::from(vec![
                Span::styled(pointer, theme.key),
                Span::styled(text, theme.text),
            ]));
        }
        (first + row, column + 4)
    });
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let lines = popup::with_keys(screen, lines, keys);
    let inner = popup::draw(frame, theme, area, "Go to", theme.active, lines);
    if let Some((row, column)) = cursor {
        put_cursor(frame, inner, row, column);
    }
}

/// Returns the choice drawn at `at`.
pub fn choice_at(model: &Model, at: Position) -> Option<usize> {
    let Some(Dialog::Choose(choose)) = &model.dialog else {
        return None;
    };
    let (area, head, _) = choose_area(model, choose);
    let inner = popup::inner(area);
    let row = inner.contains(at).then(|| usize::from(at.y - inner.y))?;
    row.checked_sub(head.len())
        .filter(|choice| *choice < choose.choices().len())
}

pub fn navigating(model: &Model, frame: &mut Frame, navigating: &RunningNavigation) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, 76);
    let what = match (navigating.aborting, navigating.summarize) {
        (true, _) => "Aborting",
        (false, true) => "Summarizing",
        (false, false) => "Moving",
    };
    let title = moving_title(what, model.now.saturating_sub(navigating.began));
    let most = usize::from(screen.height).saturating_sub(4).clamp(2, 18);
    let mut summary: Vec<Line> = text::lines(&navigating.summary)
        .flat_map(|line| text::wrap(&line, usize::from(columns)))
        .map(|line| Line::styled(line, theme.summary))
        .collect();
    if navigating.summary.is_empty() {
        let waiting = navigating
            .progress
            .as_deref()
            .unwrap_or("Waiting for the first words…");
        summary = wrapped(waiting, columns, theme.dim).collect();
    }
    // The end is shown, since it is the newest text.
    let mut lines = summary.split_off(summary.len().saturating_sub(most - 1));
    lines.resize(lines.len().max(4.min(most - 1)), Line::default());
    lines.push(if navigating.aborting {
        Line::default()
    } else {
        esc_hint(model, "aborts; the leaf stays")
    });
    let area = popup::area(screen, columns, lines.len());
    popup::draw(frame, theme, area, &title, theme.active, lines);
}

pub fn comparing(model: &Model, frame: &mut Frame, comparing: &RunningComparison) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let title = moving_title("Comparing", model.now.saturating_sub(comparing.began));
    let read = match comparing.read {
        0 => "Looking for the entries…".to_owned(),
        read => format!("{read} entries read, of {} at most.", comparing.most),
    };
    let mut lines: Vec<Line> = wrapped(&read, columns, theme.text).collect();
    lines.push(Line::default());
    lines.push(esc_hint(model, "stops it"));
    let area = popup::area(screen, columns, lines.len());
    popup::draw(frame, theme, area, &title, theme.active, lines);
}

// Prompts.

fn prompt(model: &Model, frame: &mut Frame, title: &str, input: &Input, hints: &[(&str, &str)]) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let (line, column) = input_line(input, usize::from(columns).saturating_sub(1));
    let keys = key_lines(model, hints, usize::from(columns));
    let lines = popup::with_keys(screen, vec![Line::styled(line, theme.text)], keys);
    let area = popup::area(screen, columns, lines.len());
    let inner = popup::draw(frame, theme, area, title, theme.active, lines);
    put_cursor(frame, inner, 0, column);
}

/// The words of a question before something is done.
struct Confirmation {
    title: &'static str,
    about: &'static str,
    yes: &'static str,
    is_danger: bool,
}

const TO_THE_TRASH: Confirmation = Confirmation {
    title: "To the trash?",
    about: "Its file goes to the trash folder of the session directory.",
    yes: "moves it there",
    is_danger: true,
};

const TO_THE_LEAF: Confirmation = Confirmation {
    title: "Copy to the leaf?",
    about: "A copy is appended at the leaf. The original stays where it is.",
    yes: "copies",
    is_danger: false,
};

const OUT_OF_THE_BRANCH: Confirmation = Confirmation {
    title: "Archive this branch?",
    about: "The leaf is in it and moves to the fork above. Undo takes the leaf back, and the branch with it.",
    yes: "archives it",
    is_danger: false,
};

fn confirm(model: &Model, frame: &mut Frame, title: &str, words: &Confirmation) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let mut lines = vec![Line::styled(
        text::cut(title, usize::from(columns)),
        theme.user,
    )];
    lines.extend(wrapped(words.about, columns, theme.dim));
    let keys = [("y", words.yes), ("n", "cancels")];
    let keys = key_lines(model, &keys, usize::from(columns));
    let lines = popup::with_keys(screen, lines, keys);
    let area = popup::area(screen, columns, lines.len());
    let border = match words.is_danger {
        true => theme.error,
        false => theme.active,
    };
    popup::draw(frame, theme, area, words.title, border, lines);
}

// Failures.

fn draw_failed(model: &Model, frame: &mut Frame, failed: &FailureDialog) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let keys = |more| failed_keys(model, columns, more);
    let lines = popup::scrolled(
        screen,
        failed_body(model, failed, columns),
        failed.top,
        keys,
    );
    let area = popup::area(screen, columns, lines.len());
    popup::draw(frame, theme, area, &failed.what, theme.error, lines);
}

fn failed_body(model: &Model, failed: &FailureDialog, columns: u16) -> Vec<Line<'static>> {
    let theme = &model.settings.theme;
    let mut lines: Vec<Line> = wrapped(&failed.failure.message, columns, theme.text).collect();
    lines.push(Line::styled(failed.failure.kind.clone(), theme.error));
    lines.push(Line::default());
    let advice = failed.advice(model.summarizer());
    lines.extend(wrapped(advice, columns, theme.text));
    lines
}

fn failed_keys(model: &Model, columns: u16, more: bool) -> Vec<Line<'static>> {
    let keys: &[_] = match more {
        true => &[("↑↓", "more"), ("esc", "closes")],
        false => &[("esc", "closes")],
    };
    key_lines(model, keys, usize::from(columns))
}

/// Returns the greatest first visible line to which the open dialog can be scrolled.
pub fn last_top(model: &Model) -> usize {
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    match &model.dialog {
        Some(Dialog::Help { .. }) => help::last_top(model),
        Some(Dialog::Pager { text, .. }) => command::pager_last(model.size, text),
        Some(Dialog::Handoff(handoff)) => handoff::last_top(model, handoff),
        Some(Dialog::Failed(failed)) => {
            let columns = popup::columns(screen, COLUMNS);
            let body = failed_body(model, failed, columns).len();
            popup::last_top(screen, body, |more| failed_keys(model, columns, more))
        }
        _ => 0,
    }
}

/// Draws the dialog for a daemon that has ended or could not be started.
pub fn lost(model: &Model, frame: &mut Frame, end: &End, was_up: bool) {
    let theme = &model.settings.theme;
    let screen = Rect::new(0, 0, model.size.0, model.size.1);
    let columns = popup::columns(screen, COLUMNS);
    let hint = |action| model.settings.keymap.hint(Context::Tree, action);
    let mut lines: Vec<Line> = wrapped(&end.reason, columns, theme.text).collect();
    if !end.last_words.is_empty() {
        // The last lines may have nothing to do with the end.
        lines.push(Line::default());
        lines.extend(wrapped("Last lines of its log:", columns, theme.dim));
        for line in &end.last_words {
            lines.extend(wrapped(&format!("  {line}"), columns, theme.text));
        }
        lines.push(Line::default());
    }
    let (title, advice, again) = if was_up {
        let advice = "Everything it answered is in the session's file.";
        ("The daemon has ended", advice, "starts it again")
    } else {
        let advice =
            "--daemon or TREELINED_BIN names its program; else it is looked for on the PATH.";
        ("No daemon", advice, "tries again")
    };
    lines.extend(wrapped(advice, columns, theme.dim));
    let (reconnect, quit) = (hint(Action::Reconnect), hint(Action::Quit));
    let keys = [(&*reconnect, again), (&*quit, "quits")];
    let keys = key_lines(model, &keys, usize::from(columns));
    let lines = popup::with_keys(screen, lines, keys);
    let area = popup::area(screen, columns, lines.len());
    popup::draw(frame, theme, area, title, theme.error, lines);
}
