//! The header, the search line and the status line.

use super::{command, put};
use crate::keys::{Action, Context};
use crate::message::Level;
use crate::model::{Connection, Model, Screen, layout};
use crate::text;
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

pub fn header(model: &Model, frame: &mut Frame, area: Rect) {
    let theme = &model.settings.theme;
    let columns = usize::from(area.width);
    let right = match &model.link {
        Connection::Connecting => "starting the daemon…".to_owned(),
        Connection::Down { .. } => "no daemon".to_owned(),
        Connection::Up(_) => match (&model.session, model.screen) {
            (Some(session), Screen::Tree) if session.read_only => "read-only".to_owned(),
            _ => String::new(),
        },
    };
    let room = columns.saturating_sub(text::width(&right) + 1);
    let (name, place) = match (&model.session, model.screen) {
        (Some(session), Screen::Tree) => (session.title().to_owned(), session.cwd.clone()),
        (None, Screen::Tree) => ("treelined".to_owned(), String::new()),
        (_, Screen::Search) => {
            let scope = match model.search.here {
                true => model.settings.cwd.clone(),
                false => "all directories".to_owned(),
            };
            match &model.search.within {
                Some((_, name)) => ("Search in one session".to_owned(), name.clone()),
                None => ("Search".to_owned(), scope),
            }
        }
        (_, Screen::Sessions) => {
            let list = &model.sessions;
            let scope = match &list.project {
                Some(project) => project.clone(),
                None if list.here => model.settings.cwd.clone(),
                None => "all directories".to_owned(),
            };
            let more: String = list.filters().iter().map(|it| format!("{it}, ")).collect();
            (
                "Sessions".to_owned(),
                format!("{scope} · {more}{}", list.sort.name()),
            )
        }
    };
    let name = text::cut(&name, room);
    let left = room.saturating_sub(text::width(&name) + 3);
    let place = if left >= 8 && !place.is_empty() {
        format!(" · {}", text::cut_front(&place, left))
    } else {
        String::new()
    };
    let used = text::width(&name) + text::width(&place);
    let gap = " ".repeat(columns.saturating_sub(used + text::width(&right)));
    let right_style = match model.link {
        Connection::Down { .. } => theme.error,
        _ => theme.dim,
    };
    let line = Line::from(vec![
        Span::styled(name, theme.heading),
        Span::styled(place, theme.dim),
        Span::raw(gap),
        Span::styled(right, right_style),
    ]);
    put(frame, area, 0, line);
}

pub fn search(model: &Model, frame: &mut Frame, area: Rect) {
    if area.height == 0 {
        return;
    }
    if let Some(line) = &model.command_line {
        command::draw_line(model, frame, area, line);
        return;
    }
    let theme = &model.settings.theme;
    let (input, typing, busy) = match model.screen {
        Screen::Sessions => (
            &model.sessions.search,
            model.sessions.typing,
            model.sessions.loading,
        ),
        Screen::Search => (&model.search.input, true, model.search.searching),
        Screen::Tree => (&model.tree.search, model.tree.typing, model.tree.reloading),
    };
    // The prompt is not `/` here, since a `/` in the query begins a regular expression.
    let prompt = match model.screen {
        Screen::Search => format!("{}: ", model.search.mode.name()),
        _ => "/".to_owned(),
    };
    let begin = text::width(&prompt);
    // If the text is too long, its end is shown, since the cursor is there.
    let (rows, (_, column)) = input.layout(usize::MAX);
    let shown = rows.first().map_or("", |row| &row.text);
    let columns = usize::from(area.width);
    let room = columns.saturating_sub(begin + 2 + if busy { 2 } else { 0 });
    let visible = text::cut_front(shown, room);
    let cut = text::width(shown).saturating_sub(text::width(&visible));
    let mut spans = vec![Span::styled(prompt, theme.key)];
    match fault(model, &visible) {
        Some([before, faulty, behind]) => {
            spans.push(Span::raw(before));
            let style = theme.error.add_modifier(Modifier::UNDERLINED);
            spans.push(Span::styled(faulty, style));
            spans.push(Span::raw(behind));
        }
        None => spans.push(Span::raw(visible)),
    }
    if busy {
        spans.push(Span::styled(" …", theme.dim));
    }
    put(frame, area, 0, Line::from(spans));
    if typing && model.dialog.is_none() && model.editor.is_none() {
        let x = u16::try_from(begin + column.saturating_sub(cut)).unwrap_or(area.width);
        frame.set_cursor_position(Position::new(
            area.x + x.min(area.width.saturating_sub(1)),
            area.y,
        ));
    }
}

/// Divides the visible part of a query into the text before the faulty word, this word, and the text after it. `None`
/// if no fault is visible.
fn fault(model: &Model, visible: &str) -> Option<[String; 3]> {
    let search = &model.search;
    let fault = search.fault.filter(|_| model.screen == Screen::Search)?;
    let query = search.input.text();
    let start = query.len() - query.trim_start().len();
    let behind = query.get(start..)?.chars().skip(fault).collect::<String>();
    // If the fault is at the end of the query, something is missing there; then the last character is marked.
    let behind = match behind.is_empty() {
        true => query.chars().next_back()?.to_string(),
        false => behind,
    };
    let tail = text::line(&behind);
    let before = visible.strip_suffix(&*tail)?;
    let end = tail.find(char::is_whitespace).unwrap_or(tail.len());
    let (faulty, behind) = tail.split_at(end);
    Some([before, faulty, behind].map(str::to_owned))
}

pub fn status(model: &Model, frame: &mut Frame, area: Rect) {
    let theme = &model.settings.theme;
    let columns = usize::from(area.width);
    if let Some(notice) = &model.notice {
        let style = match notice.level {
            Level::Info => theme.text,
            Level::Warning => theme.warning,
            Level::Error => theme.error,
        };
        put(
            frame,
            area,
            0,
            Line::styled(text::cut(&notice.text, columns), style),
        );
        return;
    }
    let parts = if let Some(question) = model.waiting.front() {
        let more = match model.waiting.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let answer = hint(model, Action::Answer);
        let text = format!(
            "{} asks: {}{more} ({answer} opens it)",
            question.by, question.title
        );
        put(
            frame,
            area,
            0,
            Line::styled(text::cut(&text, columns), theme.mark),
        );
        return;
    } else if model.compare.is_some() {
        vec![format!("comparing{}", compared(model))]
    } else if model.comparing.is_some() {
        vec!["Comparing…".to_owned()]
    } else {
        match model.screen {
            Screen::Sessions => sessions_status(model),
            Screen::Search => search_status(model),
            Screen::Tree => tree_status(model),
        }
    };
    let mut left = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let joined = if left.is_empty() {
            part.clone()
        } else {
            format!("{left} · {part}")
        };
        if text::width(&joined) > columns {
            break;
        }
        left = joined;
    }
    let hints = hints(model);
    let room = columns.saturating_sub(text::width(&left) + 2);
    let mut spans = vec![Span::styled(left.clone(), theme.dim)];
    let mut right: Vec<Span> = Vec::new();
    let mut used = 0;
    for (key, about) in hints {
        let wide = text::width(&key) + 1 + text::width(about) + if used > 0 { 2 } else { 0 };
        if used + wide > room {
            break;
        }
        if used > 0 {
            right.push(Span::raw("  "));
        }
        used += wide;
        right.push(Span::styled(key, theme.key));
        right.push(Span::styled(format!(" {about}"), theme.dim));
    }
    spans.push(Span::raw(
        " ".repeat(columns.saturating_sub(text::width(&left) + used)),
    ));
    spans.extend(right);
    put(frame, area, 0, Line::from(spans));
}

fn compared(model: &Model) -> &'static str {
    let view = model.compare.as_ref();
    view.map_or("", |view| beyond(view.top, view.height, view.lines().len()))
}

/// Arrows that say whether there are lines above and below the visible lines. The help has the same arrows.
pub(super) fn beyond(top: usize, height: usize, total: usize) -> &'static str {
    match (top > 0, top + height < total) {
        (false, false) => "",
        (true, false) => " ↑",
        (false, true) => " ↓",
        (true, true) => " ↑↓",
    }
}

fn tree_status(model: &Model) -> Vec<String> {
    let tree = &model.tree;
    let total = tree.rows.total();
    let position = match total {
        0 => "0/0".to_owned(),
        _ => {
            // On a small screen the preview or the editor covers the tree.
            let more = match layout::panes(model).tree.height {
                0 => "",
                height => beyond(tree.top, usize::from(height), total),
            };
            format!("{}/{total}{more}", tree.cursor + 1)
        }
    };
    let hidden = match tree.rows.hidden() {
        0 => String::new(),
        hidden => format!("{hidden} hidden"),
    };
    let news = match (tree.news, tree.others()) {
        (_, None) => String::new(),
        (0, Some(_)) => format!(
            "others are at another entry ({})",
            hint(model, Action::ToNews)
        ),
        (count, Some(_)) => format!("{count} new by others ({})", hint(model, Action::ToNews)),
    };
    let seeking = if tree.is_seeking() { "looking…" } else { "" };
    let folded = match tree.folds.open_all {
        true => "all branches open",
        false => "",
    };
    let archived = match tree.rows.archived_branches() {
        0 => String::new(),
        count => {
            let noun = if count == 1 { "branch" } else { "branches" };
            let verb = if tree.archived { "hides" } else { "shows" };
            let show = hint(model, Action::ShowArchived);
            format!("{count} archived {noun} ({show} {verb})")
        }
    };
    let shed = match tree.rows.shed_branches() {
        0 => String::new(),
        1 => "1 shed branch (treelined unshed)".to_owned(),
        count => format!("{count} shed branches (treelined unshed)"),
    };
    let marks = match tree.marks.len() {
        0 => String::new(),
        marks => format!("{marks} marked"),
    };
    let elsewhere = match model.session.as_ref().map(|session| &*session.open_on) {
        None | Some([]) => String::new(),
        Some(hosts) => format!("also open on {}", hosts.join(", ")),
    };
    let queued = match model.session.as_ref().is_some_and(|session| session.queued) {
        true => "waits for the team",
        false => "",
    };
    vec![
        position,
        queued.to_owned(),
        elsewhere,
        archived,
        shed,
        tree.filter.name().to_owned(),
        hidden,
        seeking.to_owned(),
        news,
        marks,
        folded.to_owned(),
    ]
}

fn sessions_status(model: &Model) -> Vec<String> {
    let list = &model.sessions;
    let total = list.rows().len();
    let position = if total == 0 { 0 } else { list.cursor + 1 };
    let more = beyond(list.top, list.height, list.lines().count());
    if !list.loading {
        vec![format!("{position}/{total}{more}")]
    } else if total == 0 {
        vec!["reading…".to_owned()]
    } else {
        vec![format!("{position}/{total}+{more}"), "reading…".to_owned()]
    }
}

fn search_status(model: &Model) -> Vec<String> {
    let search = &model.search;
    let count = search.count();
    let position = search.position();
    let total = search.total.max(count);
    let more = beyond(search.top, search.height, search.lines().count());
    let position = match search.at_least {
        true => format!("{position}/{total}+{more}"),
        false => format!("{position}/{total}{more}"),
    };
    let searching = if search.searching { "searching…" } else { "" };
    let sessions = match search.sessions {
        0 => String::new(),
        1 if search.at_least => "1+ sessions".to_owned(),
        sessions if search.at_least => format!("{sessions}+ sessions"),
        1 => "1 session".to_owned(),
        sessions => format!("{sessions} sessions"),
    };
    let unread = match search.unread {
        0 => String::new(),
        1 => "1 file not searched".to_owned(),
        unread => format!("{unread} files not searched"),
    };
    vec![position, sessions, searching.to_owned(), unread]
}

fn hint(model: &Model, action: Action) -> String {
    model.settings.keymap.hint(Context::Tree, action)
}

/// Returns the hints for the status line. The most useful hint comes first.
fn hints(model: &Model) -> Vec<(String, &'static str)> {
    if model.command_line.is_some() {
        let keys = [("enter", "run"), ("tab", "complete"), ("esc", "close")];
        return keys.map(|(key, about)| (key.to_owned(), about)).into();
    }
    let (context, actions): (Context, &[(Action, &'static str)]) = if model.editor.is_some() {
        let actions = &[
            (Action::Send, "send"),
            (Action::Newline, "new line"),
            (Action::Copy, "copy"),
            (Action::Back, "put away"),
        ];
        (Context::Editor, actions)
    } else if model.compare.is_some() {
        (Context::Compare, &[(Action::Back, "back")])
    } else if model.screen == Screen::Sessions {
        let actions = &[
            (Action::Help, "help"),
            (Action::Accept, "open"),
            (Action::Create, "new"),
            (Action::Scope, "here/all"),
            (Action::SearchAll, "search all"),
            (Action::Import, "import"),
            (Action::Trash, "trash"),
            (Action::Rename, "rename"),
            (Action::NextSort, "sort"),
            (Action::Quit, "quit"),
        ];
        (Context::Sessions, actions)
    } else if model.screen == Screen::Search {
        let scope = match model.search.completion.items.is_empty() {
            true => "here/all",
            false => "complete",
        };
        let actions = [
            (Action::Accept, "open"),
            (Action::NextMode, "exact"),
            (Action::Scope, scope),
            (Action::Back, "back"),
            (Action::Help, "help"),
        ];
        return bound(model, Context::Search, &actions);
    } else if model.preview_focused {
        let actions = &[(Action::FocusPreview, "back"), (Action::Copy, "copy")];
        (Context::Preview, actions)
    } else if model.tree.typing {
        (
            Context::Tree,
            &[(Action::Accept, "done"), (Action::Back, "clear")],
        )
    } else if !model.tree.search.is_empty() {
        let actions = &[
            (Action::Accept, "go"),
            (Action::NextHit, "next"),
            (Action::PreviousHit, "before"),
            (Action::Back, "clear"),
        ];
        (Context::Tree, actions)
    } else {
        let actions = &[
            (Action::Help, "help"),
            (Action::Accept, "go"),
            (Action::Search, "search"),
            (Action::Command, "commands"),
            (Action::Undo, "undo"),
            (Action::NextFilter, "filter"),
            (Action::Label, "label"),
            (Action::Fork, "fork"),
            (Action::Quit, "quit"),
        ];
        (Context::Tree, actions)
    };
    bound(model, context, actions)
}

fn bound(
    model: &Model,
    context: Context,
    actions: &[(Action, &'static str)],
) -> Vec<(String, &'static str)> {
    let keymap = &model.settings.keymap;
    let bound = actions
        .iter()
        .filter(|(action, _)| !keymap.keys(context, *action).is_empty());
    bound
        .map(|(action, about)| (keymap.hint(context, *action), *about))
        .collect()
}
