//! What keys, the mouse and pasted text do, by what has them: a lost connection first, then a navigation
//! under way, a dialog, the editor, a comparison, and at last the screen.

use super::dialog::{CHOICES, Choose, Dialog, Navigating};
use super::editor::Editor;
use super::input::Input;
use super::{Link, Model, Screen, layout};
use crate::keys::{Action, Context, Key};
use crate::message::{Draft, Effect, Filter, Navigate, Place, Sort};
use crossterm::event::{KeyCode, KeyEvent, MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};
use std::time::Duration;

/// Lines of one step of the wheel.
const WHEEL: isize = 3;

/// Two clicks within are a double one.
const DOUBLE_CLICK: Duration = Duration::from_millis(400);

impl Model {
    pub(super) fn key(&mut self, event: KeyEvent) -> Vec<Effect> {
        let key = Key::from(event);
        self.notice = None;
        if key.is_ctrl('c') {
            return vec![Effect::Quit];
        }
        if let Link::Down(_) = self.link {
            return self.key_when_down(key);
        }
        if !self.is_ready() {
            return self.key_while_waiting(key);
        }
        if self.navigating.is_some() {
            return self.key_while_navigating(key);
        }
        if self.dialog.is_some() {
            return self.key_in_dialog(key);
        }
        if self.editor.is_some() {
            return self.key_in_editor(key);
        }
        if self.compare.is_some() {
            return self.key_in_comparison(key);
        }
        match self.screen {
            Screen::Sessions => self.key_in_sessions(key),
            Screen::Tree if self.preview_focused => self.key_in_preview(key),
            Screen::Tree => self.key_in_tree(key),
        }
    }

    fn action(&self, context: Context, key: Key) -> Option<Action> {
        self.settings.keymap.action(context, key)
    }

    /// The tree can still be looked at, as far as it is here.
    fn key_when_down(&mut self, key: Key) -> Vec<Effect> {
        match self.action(Context::Tree, key) {
            Some(Action::Quit) => vec![Effect::Quit],
            Some(Action::Reconnect | Action::Accept) => {
                self.link = Link::Connecting;
                vec![Effect::Connect]
            }
            Some(action) if self.screen == Screen::Tree => {
                self.move_cursor(action);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// What would be asked now would be lost.
    fn key_while_waiting(&mut self, key: Key) -> Vec<Effect> {
        match self.action(Context::Tree, key) {
            Some(Action::Quit) => return vec![Effect::Quit],
            Some(action) if self.screen == Screen::Tree && self.move_cursor(action) => {}
            _ => self.say("One moment: the session is not open yet."),
        }
        Vec::new()
    }

    fn key_while_navigating(&mut self, key: Key) -> Vec<Effect> {
        match &mut self.navigating {
            Some(navigating) if key.is(KeyCode::Esc) && !navigating.aborting => {
                navigating.aborting = true;
                let navigation_id = navigating.navigation_id.clone();
                vec![Effect::AbortNavigation { navigation_id }]
            }
            _ => Vec::new(),
        }
    }

    // The tree.

    fn key_in_tree(&mut self, key: Key) -> Vec<Effect> {
        if self.tree.typing {
            if let Some(effects) = self.type_in_tree_search(key) {
                return effects;
            }
        } else if self.action(Context::Tree, key).is_none() && key.text().is_some_and(|c| c != ' ')
        {
            self.tree.typing = true;
            self.tree.search.key(key);
            return self.tree.searched();
        }
        let Some(action) = self.action(Context::Tree, key) else {
            return Vec::new();
        };
        if self.move_cursor(action) {
            self.tree.typing = false;
            return Vec::new();
        }
        match action {
            Action::Accept => self.navigate_to_cursor(false),
            Action::Rewind => self.navigate_to_cursor(true),
            Action::Back => self.leave_tree(),
            Action::Search => {
                self.tree.typing = true;
                Vec::new()
            }
            Action::FoldOrUp => self.tree.fold_or_up(),
            Action::UnfoldOrDown => self.tree.unfold_or_down(),
            Action::ToggleFold => self.tree.toggle_fold(),
            Action::ToActive => self.tree.go_to(Place::Leaf),
            Action::ToNews => match self.tree.others_at.clone() {
                Some(id) => {
                    self.tree.news = 0;
                    self.tree.go_to(Place::Around(id))
                }
                None => {
                    self.say("Nobody else is elsewhere in this session.");
                    Vec::new()
                }
            },
            Action::FilterDefault => self.tree.set_filter(Filter::Default),
            Action::FilterNoTools => self.tree.toggle_filter(Filter::NoTools),
            Action::FilterUserOnly => self.tree.toggle_filter(Filter::UserOnly),
            Action::FilterLabeled => self.tree.toggle_filter(Filter::Labeled),
            Action::FilterAll => self.tree.toggle_filter(Filter::All),
            Action::NextFilter => self.tree.set_filter(self.tree.filter.next()),
            Action::Label => {
                if let Some(row) = self.tree.selected() {
                    self.dialog = Some(Dialog::Label {
                        id: row.id.clone(),
                        input: Input::line(row.label.as_deref().unwrap_or_default()),
                    });
                }
                Vec::new()
            }
            Action::LabelTimes => {
                self.tree.label_times = !self.tree.label_times;
                Vec::new()
            }
            Action::Undo => vec![Effect::Undo],
            Action::Redo => vec![Effect::Redo],
            Action::Copy => self.copy_selected(),
            Action::Compose => {
                let draft = self.kept_draft.take().unwrap_or_else(|| Draft {
                    expected_leaf: self.tree.leaf.clone(),
                    ..Draft::default()
                });
                self.editor = Some(Editor::new(draft));
                Vec::new()
            }
            Action::Mark => {
                self.tree.toggle_mark();
                Vec::new()
            }
            Action::Compare => self.compare_marked(),
            Action::TogglePreview => {
                self.half = !self.half;
                Vec::new()
            }
            Action::FocusPreview => {
                self.preview_focused = true;
                Vec::new()
            }
            Action::Sessions => self.show_sessions(),
            Action::Help => self.help(),
            Action::Suspend => vec![Effect::Suspend],
            Action::Quit => vec![Effect::Quit],
            _ => Vec::new(),
        }
    }

    /// `None`: the key is no text and does what it does in the tree.
    fn type_in_tree_search(&mut self, key: Key) -> Option<Vec<Effect>> {
        if key.is(KeyCode::Backspace) && self.tree.search.is_empty() {
            self.tree.typing = false;
            return Some(Vec::new());
        }
        if key.text().is_none()
            && !matches!(key.code(), KeyCode::Backspace | KeyCode::Delete)
            && !key.is_ctrl('w')
        {
            return None;
        }
        self.tree.search.key(key);
        Some(self.tree.searched())
    }

    /// Whether the action moves the cursor of the tree.
    fn move_cursor(&mut self, action: Action) -> bool {
        let cursor = self.tree.cursor;
        let page = self.tree.height.saturating_sub(1).max(1);
        let to = match action {
            Action::Up => cursor.saturating_sub(1),
            Action::Down => cursor + 1,
            Action::PageUp => cursor.saturating_sub(page),
            Action::PageDown => cursor + page,
            Action::First => 0,
            Action::Last => usize::MAX - 1,
            _ => return false,
        };
        self.tree.move_to(to);
        true
    }

    fn leave_tree(&mut self) -> Vec<Effect> {
        if self.tree.is_going() {
            self.held.clear();
            self.tree.stay();
            return Vec::new();
        }
        if let Some(effects) = self.tree.clear_search() {
            return effects;
        }
        if !self.tree.marks.is_empty() {
            self.tree.marks.clear();
            return Vec::new();
        }
        if self.came_from_list {
            self.show_sessions()
        } else {
            vec![Effect::Quit]
        }
    }

    fn show_sessions(&mut self) -> Vec<Effect> {
        self.screen = Screen::Sessions;
        self.came_from_list = true;
        self.sessions.reload()
    }

    fn copy_selected(&mut self) -> Vec<Effect> {
        let row = self.tree.selected();
        row.map(|row| Effect::GetText { id: row.id.clone() })
            .into_iter()
            .collect()
    }

    fn compare_marked(&mut self) -> Vec<Effect> {
        let cursor = self.tree.selected().map(|row| row.id.clone());
        let pair = match (&*self.tree.marks, cursor) {
            ([(left, _), (right, _)], _) => Some((left.clone(), right.clone())),
            ([(left, _)], Some(right)) if *left != right => Some((left.clone(), right)),
            _ => None,
        };
        let Some((left, right)) = pair else {
            let mark = self.hint(Action::Mark);
            self.say(format!(
                "Mark an entry with {mark}, then compare it with another."
            ));
            return Vec::new();
        };
        self.say("Comparing…");
        vec![Effect::Compare { left, right }]
    }

    fn navigate_to_cursor(&mut self, rewind: bool) -> Vec<Effect> {
        let Some(row) = self.tree.selected() else {
            return Vec::new();
        };
        let is_user = row.kind == super::rows::Kind::User;
        if rewind && !is_user {
            self.say("Only user messages can be taken back into the editor.");
            return Vec::new();
        }
        let (target, preview) = (row.id.clone(), row.preview.clone());
        if !rewind && self.tree.leaf.as_ref() == Some(&target) {
            self.already_there();
            return Vec::new();
        }
        self.dialog = Some(Dialog::Choose(Choose {
            target: target.clone(),
            preview,
            is_user,
            rewind,
            abandoned: None,
            selected: 0,
            focus: None,
        }));
        vec![Effect::Prepare { target, rewind }]
    }

    // Dialogs.

    fn help(&mut self) -> Vec<Effect> {
        self.dialog = Some(Dialog::Help { top: 0 });
        Vec::new()
    }

    fn key_in_dialog(&mut self, key: Key) -> Vec<Effect> {
        let is_esc = key.is(KeyCode::Esc);
        let is_enter = key.is(KeyCode::Enter);
        match &mut self.dialog {
            Some(Dialog::Choose(_)) => return self.key_in_choice(key),
            Some(Dialog::Label { id, input }) => {
                if is_enter {
                    let label = input.text().trim().to_owned();
                    let id = id.clone();
                    self.dialog = None;
                    return vec![Effect::Label { id, label }];
                }
                if !is_esc {
                    input.key(key);
                    return Vec::new();
                }
            }
            Some(Dialog::Rename { session_id, input }) => {
                if is_enter {
                    let name = input.text().trim().to_owned();
                    let session_id = session_id.clone();
                    self.dialog = None;
                    return vec![Effect::Rename { session_id, name }];
                }
                if !is_esc {
                    input.key(key);
                    return Vec::new();
                }
            }
            Some(Dialog::Trash { session_id, .. }) => {
                if key.text() == Some('y') {
                    let session_id = session_id.clone();
                    self.dialog = None;
                    return vec![Effect::Trash { session_id }];
                }
                if !is_esc && key.text() != Some('n') && !is_enter {
                    return Vec::new();
                }
            }
            Some(Dialog::Help { top }) => {
                let page = usize::from(self.size.1 / 2).max(1);
                let last = crate::view::help_lines(&self.settings)
                    .saturating_sub(crate::view::help_height(self.size));
                let to = match self.settings.keymap.action(Context::Preview, key) {
                    Some(Action::Up) => Some(top.saturating_sub(1)),
                    Some(Action::Down) => Some(*top + 1),
                    Some(Action::PageUp) => Some(top.saturating_sub(page)),
                    Some(Action::PageDown) => Some(*top + page),
                    Some(Action::First) => Some(0),
                    Some(Action::Last) => Some(last),
                    _ => None,
                };
                if let Some(to) = to {
                    *top = to.min(last);
                    return Vec::new();
                }
            }
            Some(Dialog::Failed(_)) | None => {}
        }
        self.dialog = None;
        Vec::new()
    }

    fn key_in_choice(&mut self, key: Key) -> Vec<Effect> {
        let Some(Dialog::Choose(choose)) = &mut self.dialog else {
            return Vec::new();
        };
        if let Some(focus) = &mut choose.focus {
            if key.is(KeyCode::Esc) {
                choose.focus = None;
            } else if key.is(KeyCode::Enter) {
                return self.start_navigation();
            } else {
                focus.key(key);
            }
            return Vec::new();
        }
        let last = CHOICES.len() - 1;
        let action = self.settings.keymap.action(Context::Tree, key);
        match (key.text(), action) {
            (Some('1'), _) => choose.selected = 0,
            (Some('2'), _) => choose.selected = 1,
            (Some('3'), _) => choose.selected = 2,
            (_, Some(Action::Up)) => {
                choose.selected = choose.selected.checked_sub(1).unwrap_or(last);
                return Vec::new();
            }
            (_, Some(Action::Down)) => {
                choose.selected = if choose.selected == last {
                    0
                } else {
                    choose.selected + 1
                };
                return Vec::new();
            }
            (_, Some(Action::Back | Action::Quit)) => {
                self.dialog = None;
                return Vec::new();
            }
            (_, Some(Action::Accept)) => {}
            _ => return Vec::new(),
        }
        self.choose()
    }

    /// What is selected is wanted.
    fn choose(&mut self) -> Vec<Effect> {
        match &mut self.dialog {
            Some(Dialog::Choose(choose)) if choose.selected == 2 => {
                choose.focus = Some(Input::line(""));
                Vec::new()
            }
            Some(Dialog::Choose(_)) => self.start_navigation(),
            _ => Vec::new(),
        }
    }

    fn start_navigation(&mut self) -> Vec<Effect> {
        let Some(Dialog::Choose(choose)) = self.dialog.take() else {
            return Vec::new();
        };
        self.navigations += 1;
        let navigation_id = format!("tui-{}-{}", self.started, self.navigations);
        let summarize = choose.selected > 0;
        let focus = choose.focus.map(|focus| focus.text().trim().to_owned());
        self.navigating = Some(Navigating {
            navigation_id: navigation_id.clone(),
            summarize,
            began: self.now,
            summary: String::new(),
            progress: None,
            aborting: false,
        });
        vec![Effect::Navigate(Navigate {
            navigation_id,
            target: choose.target,
            summarize,
            focus: focus.filter(|focus| !focus.is_empty()),
            rewind: choose.rewind,
        })]
    }

    // The other panes.

    fn key_in_preview(&mut self, key: Key) -> Vec<Effect> {
        let page = isize::try_from(self.preview.height).unwrap_or(1).max(2) - 1;
        match self.action(Context::Preview, key) {
            Some(Action::Up) => self.preview.scroll(-1),
            Some(Action::Down) => self.preview.scroll(1),
            Some(Action::PageUp) => self.preview.scroll(-page),
            Some(Action::PageDown) => self.preview.scroll(page),
            Some(Action::First) => self.preview.top = 0,
            Some(Action::Last) => self.preview.top = self.preview.last_top(),
            Some(Action::FocusPreview) => self.preview_focused = false,
            Some(Action::TogglePreview) => self.half = !self.half,
            Some(Action::Copy) => return self.copy_selected(),
            Some(Action::Help) => return self.help(),
            Some(Action::Suspend) => return vec![Effect::Suspend],
            Some(Action::Quit) => return vec![Effect::Quit],
            _ => {}
        }
        Vec::new()
    }

    fn key_in_comparison(&mut self, key: Key) -> Vec<Effect> {
        let action = self.action(Context::Compare, key);
        let Some(compare) = &mut self.compare else {
            return Vec::new();
        };
        let page = isize::try_from(compare.height).unwrap_or(1).max(2) - 1;
        match action {
            Some(Action::Up) => compare.scroll(-1),
            Some(Action::Down) => compare.scroll(1),
            Some(Action::PageUp) => compare.scroll(-page),
            Some(Action::PageDown) => compare.scroll(page),
            Some(Action::First) => compare.top = 0,
            Some(Action::Last) => compare.scroll(isize::MAX),
            Some(Action::Back) => self.compare = None,
            Some(Action::Help) => return self.help(),
            Some(Action::Suspend) => return vec![Effect::Suspend],
            Some(Action::Quit) => return vec![Effect::Quit],
            _ => {}
        }
        Vec::new()
    }

    fn key_in_editor(&mut self, key: Key) -> Vec<Effect> {
        let action = self.action(Context::Editor, key);
        let columns = usize::from(layout::panes(self).editor.width);
        let Some(editor) = self.editor.as_mut().filter(|editor| !editor.sending) else {
            return Vec::new();
        };
        match action {
            Some(Action::Send) if editor.is_empty() => self.say("There is nothing to send."),
            Some(Action::Send) => {
                editor.sending = true;
                return vec![Effect::Send(editor.draft())];
            }
            Some(Action::Newline) => editor.input.insert("\n"),
            Some(Action::Copy) => {
                let text = editor.input.text().to_owned();
                self.say(format!("Copied: {}", crate::time::bytes(text.len())));
                return vec![Effect::Copy(text)];
            }
            Some(Action::Back) => {
                let kept = (!editor.is_empty()).then(|| editor.draft());
                self.editor = None;
                if kept.is_some() {
                    let compose = self.hint(Action::Compose);
                    self.say(format!("The draft is kept: {compose} takes it up again."));
                }
                self.kept_draft = kept;
            }
            Some(Action::Quit) => return vec![Effect::Quit],
            _ => match key.code() {
                KeyCode::Up => editor.input.vertical(columns, false),
                KeyCode::Down => editor.input.vertical(columns, true),
                _ => {
                    editor.input.key(key);
                }
            },
        }
        Vec::new()
    }

    // The list of sessions.

    fn key_in_sessions(&mut self, key: Key) -> Vec<Effect> {
        let list = &mut self.sessions;
        let action = self.settings.keymap.action(Context::Sessions, key);
        let starts = !list.typing && action.is_none() && key.text().is_some_and(|c| c != ' ');
        let is_edit = key.text().is_some() || key.is(KeyCode::Backspace) || key.is_ctrl('w');
        if starts || list.typing && is_edit {
            list.typing = true;
            if key.is(KeyCode::Backspace) && list.search.is_empty() {
                list.typing = false;
                return Vec::new();
            }
            list.search.key(key);
            return list.restart();
        }
        let page = list.height.saturating_sub(1).max(1);
        let cursor = list.cursor;
        let to = match action {
            Some(Action::Up) => Some(cursor.saturating_sub(1)),
            Some(Action::Down) => Some(cursor + 1),
            Some(Action::PageUp) => Some(cursor.saturating_sub(page)),
            Some(Action::PageDown) => Some(cursor + page),
            Some(Action::First) => Some(0),
            Some(Action::Last) => Some(usize::MAX - 1),
            _ => None,
        };
        if let Some(to) = to {
            list.typing = false;
            list.move_to(to);
            return Vec::new();
        }
        match action {
            Some(Action::Accept) => self.open_selected(),
            Some(Action::Search) => {
                list.typing = true;
                Vec::new()
            }
            Some(Action::Back) => {
                let was_typing = std::mem::take(&mut list.typing);
                if !list.search.is_empty() {
                    list.search.clear();
                    return list.reload();
                }
                if was_typing {
                    return Vec::new();
                }
                if self.session.is_some() {
                    self.screen = Screen::Tree;
                    return Vec::new();
                }
                vec![Effect::Quit]
            }
            Some(Action::Scope) => {
                list.here = !list.here;
                list.restart()
            }
            Some(Action::NamedOnly) => {
                list.named = !list.named;
                list.restart()
            }
            Some(Action::NextSort) => {
                list.sort = list.sort.next();
                list.restart()
            }
            Some(Action::Rename) => {
                if let Some(row) = list.selected().filter(|row| row.damage.is_none()) {
                    self.dialog = Some(Dialog::Rename {
                        session_id: row.id.clone(),
                        input: Input::line(row.name.as_deref().unwrap_or_default()),
                    });
                }
                Vec::new()
            }
            Some(Action::Trash) => {
                if let Some(row) = list.selected().filter(|row| !row.id.is_empty()) {
                    self.dialog = Some(Dialog::Trash {
                        session_id: row.id.clone(),
                        title: row.title().to_owned(),
                    });
                }
                Vec::new()
            }
            Some(Action::Help) => self.help(),
            Some(Action::Suspend) => vec![Effect::Suspend],
            Some(Action::Quit) => vec![Effect::Quit],
            _ => Vec::new(),
        }
    }

    fn open_selected(&mut self) -> Vec<Effect> {
        let Some(row) = self.sessions.selected() else {
            return Vec::new();
        };
        if let Some(damage) = &row.damage {
            let damage = damage.clone();
            self.say_error(damage);
            return Vec::new();
        }
        let path = row.path.clone();
        self.came_from_list = true;
        self.say("Opening…");
        vec![self.open(crate::message::Target::Path(path))]
    }

    // Pasted text and the mouse.

    pub(super) fn paste(&mut self, text: &str) -> Vec<Effect> {
        if let Some(dialog) = &mut self.dialog {
            match dialog {
                Dialog::Label { input, .. } | Dialog::Rename { input, .. } => input.insert(text),
                Dialog::Choose(choose) => {
                    if let Some(focus) = &mut choose.focus {
                        focus.insert(text);
                    }
                }
                _ => {}
            }
        } else if let Some(editor) = &mut self.editor {
            editor.input.insert(text);
        } else if self.compare.is_none() && self.screen == Screen::Sessions {
            self.sessions.typing = true;
            self.sessions.search.insert(text);
            return self.sessions.restart();
        } else if self.compare.is_none() {
            self.tree.typing = true;
            self.tree.search.insert(text);
            return self.tree.searched();
        }
        Vec::new()
    }

    pub(super) fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.wheel(at, -WHEEL),
            MouseEventKind::ScrollDown => self.wheel(at, WHEEL),
            MouseEventKind::Down(MouseButton::Left) => return self.click(at),
            _ => {}
        }
        Vec::new()
    }

    fn wheel(&mut self, at: Position, lines: isize) {
        let panes = layout::panes(self);
        if let Some(Dialog::Help { top }) = &mut self.dialog {
            let last = crate::view::help_lines(&self.settings)
                .saturating_sub(crate::view::help_height(self.size));
            *top = top.saturating_add_signed(lines).min(last);
        } else if self.dialog.is_some() || self.navigating.is_some() {
        } else if let Some(compare) = &mut self.compare {
            compare.scroll(lines);
        } else if panes.preview.contains(at) {
            self.preview.scroll(lines);
        } else if panes.tree.contains(at) {
            self.tree.scroll(lines);
        } else if panes.list.contains(at) {
            let to = self.sessions.cursor.saturating_add_signed(lines);
            self.sessions.move_to(to);
        }
    }

    fn click(&mut self, at: Position) -> Vec<Effect> {
        if !self.is_ready() || self.navigating.is_some() {
            return Vec::new();
        }
        self.notice = None;
        let now = self.now;
        let double = self.last_click.take().is_some_and(|(column, row, then)| {
            (column, row) == (at.x, at.y) && now.saturating_sub(then) <= DOUBLE_CLICK
        });
        if !double {
            self.last_click = Some((at.x, at.y, now));
        }
        if self.dialog.is_some() {
            return self.click_in_dialog(at);
        }
        let panes = layout::panes(self);
        let line = |pane: Rect| pane.contains(at).then(|| usize::from(at.y - pane.y));
        if self.editor.is_some() || self.compare.is_some() {
            return Vec::new();
        }
        if let Some(line) = line(panes.list) {
            let row = self.sessions.top + line;
            if row >= self.sessions.rows().len() {
                return Vec::new();
            }
            self.sessions.move_to(row);
            return if double {
                self.open_selected()
            } else {
                Vec::new()
            };
        }
        if let Some(line) = line(panes.tree) {
            let row = self.tree.top + line;
            if row >= self.tree.rows.total() {
                return Vec::new();
            }
            self.preview_focused = false;
            self.tree.move_to(row);
            let on_mark = crate::view::fold_mark_columns(self)
                .is_some_and(|columns| columns.contains(&at.x.saturating_sub(panes.tree.x)));
            if on_mark {
                return self.tree.toggle_fold();
            }
            return if double {
                self.navigate_to_cursor(false)
            } else {
                Vec::new()
            };
        }
        if panes.preview.contains(at) {
            self.preview_focused = true;
        }
        Vec::new()
    }

    fn click_in_dialog(&mut self, at: Position) -> Vec<Effect> {
        let choice = crate::view::choice_at(self, at);
        match (&mut self.dialog, choice) {
            (Some(Dialog::Choose(choose)), Some(choice)) => {
                choose.selected = choice;
                self.choose()
            }
            (Some(Dialog::Failed(_) | Dialog::Help { .. }), _) => {
                self.dialog = None;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

impl Sort {
    /// As the protocol and the list call it.
    pub const fn name(self) -> &'static str {
        match self {
            Sort::Threaded => "threaded",
            Sort::Recent => "recent",
            Sort::Created => "created",
            Sort::Name => "name",
        }
    }

    const fn next(self) -> Self {
        match self {
            Sort::Threaded => Sort::Recent,
            Sort::Recent => Sort::Created,
            Sort::Created => Sort::Name,
            Sort::Name => Sort::Threaded,
        }
    }
}

impl crate::message::SessionRow {
    /// Its name, else how it begins.
    pub fn title(&self) -> &str {
        match (&self.name, self.first_message.is_empty()) {
            (Some(name), _) => name,
            (None, false) => &self.first_message,
            (None, true) => "(empty)",
        }
    }
}
