//! The keys of the list of sessions.

use crate::keys::{Action, Context, Key};
use crate::message::{Effect, Target};
use crate::model::dialog::Dialog;
use crate::model::input::Input;
use crate::model::{Model, Screen};
use crossterm::event::KeyCode;

impl Model {
    pub(super) fn key_in_sessions(&mut self, key: Key) -> Vec<Effect> {
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
            Some(Action::SearchAll) => self.search_all(),
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
                self.is_at_the_top()
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
            Some(Action::Command) => self.begin_command(),
            Some(Action::Answer) => self.answer_waiting(),
            Some(Action::Help) => self.help(),
            Some(Action::Suspend) => vec![Effect::Suspend],
            Some(Action::Quit) => vec![Effect::Quit],
            _ => Vec::new(),
        }
    }

    pub(super) fn open_selected(&mut self) -> Vec<Effect> {
        let Some(row) = self.sessions.selected() else {
            return Vec::new();
        };
        if let Some(damage) = &row.damage {
            let damage = damage.clone();
            self.say_error(damage);
            return Vec::new();
        }
        let path = row.path.clone();
        self.back = Some(Screen::Sessions);
        self.say("Opening…");
        vec![self.open(Target::Path(path))]
    }
}
