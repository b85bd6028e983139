//! The keys of the list of sessions.

use crate::keys::{Action, Context, Key};
use crate::message::{Effect, Target};
use crate::model::dialog::Dialog;
use crate::model::input::Input;
use crate::model::picker::PickerKind;
use crate::model::{Model, Screen};
use crossterm::event::KeyCode;

impl Model {
    pub(super) fn key_in_sessions(&mut self, key: Key) -> Vec<Effect> {
        let action = self.settings.keymap.action(Context::Sessions, key);
        if let Some(effects) = self.type_in_session_search(key, action) {
            return effects;
        }
        match (action, key.text()) {
            (Some(action), _) if self.move_in_sessions(action) => Vec::new(),
            (Some(action), _) => self.act_in_sessions(action),
            (None, Some(letter)) if letter != ' ' => {
                self.say_no_action(Context::Sessions, letter);
                Vec::new()
            }
            (None, _) => Vec::new(),
        }
    }

    /// Handles a key that is for the search, or that begins a search. `None` if the key has its
    /// usual action.
    fn type_in_session_search(&mut self, key: Key, action: Option<Action>) -> Option<Vec<Effect>> {
        let by_letters = self.settings.keymap.searches_by_letters;
        let list = &mut self.sessions;
        let is_letter = action.is_none() && key.text().is_some_and(|c| c != ' ');
        let starts = by_letters && !list.typing && is_letter;
        let is_edit = key.text().is_some() || key.is(KeyCode::Backspace) || key.is_ctrl('w');
        if !(starts || list.typing && is_edit) {
            return None;
        }
        list.typing = true;
        if key.is(KeyCode::Backspace) && list.search.is_empty() {
            list.typing = false;
            return Some(Vec::new());
        }
        list.search.key(key);
        Some(list.restart())
    }

    /// Moves the cursor. Returns false if the action is not a move.
    fn move_in_sessions(&mut self, action: Action) -> bool {
        let list = &mut self.sessions;
        let page = list.height.saturating_sub(1).max(1);
        let cursor = list.cursor;
        let to = match action {
            Action::Up => cursor.saturating_sub(1),
            Action::Down => cursor + 1,
            Action::PageUp => cursor.saturating_sub(page),
            Action::PageDown => cursor + page,
            Action::First => 0,
            Action::Last => usize::MAX - 1,
            _ => return false,
        };
        list.typing = false;
        list.move_to(to);
        true
    }

    fn act_in_sessions(&mut self, action: Action) -> Vec<Effect> {
        let list = &mut self.sessions;
        match action {
            Action::Accept => self.open_selected(),
            Action::SearchAll => self.search_all(),
            Action::Search => {
                list.typing = true;
                Vec::new()
            }
            Action::Back => {
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
            Action::Scope => {
                // While another directory is shown, the key returns to this directory.
                list.here = list.project.take().is_some() || !list.here;
                list.restart()
            }
            Action::FilterTool => list.next_tool(),
            Action::FilterProject => list.toggle_project(),
            Action::FilterDate => {
                list.period = list.period.next();
                list.regroup();
                Vec::new()
            }
            Action::NextGroup => {
                list.grouping = list.grouping.next();
                list.regroup();
                Vec::new()
            }
            Action::NamedOnly => {
                list.named = !list.named;
                list.restart()
            }
            Action::NextSort => {
                list.sort = list.sort.next();
                list.restart()
            }
            Action::Rename => {
                if let Some(row) = list.selected().filter(|row| row.damage.is_none()) {
                    self.dialog = Some(Dialog::Rename {
                        session_id: row.id.clone(),
                        input: Input::line(row.name.as_deref().unwrap_or_default()),
                    });
                }
                Vec::new()
            }
            Action::Trash => {
                if let Some(row) = list
                    .selected()
                    .filter(|row| !row.id.is_empty() && row.host.is_none())
                {
                    self.dialog = Some(Dialog::Trash {
                        session_id: row.id.clone(),
                        title: row.title().to_owned(),
                    });
                }
                Vec::new()
            }
            Action::Tags => self.ask_tags(),
            Action::Pin => self.pin(),
            Action::ArchiveSession => self.archive_session(),
            Action::ArchivedSessions => {
                list.archived = !list.archived;
                list.restart()
            }
            Action::Create => self.ask_name_of_new(),
            Action::Import => self.pick(PickerKind::Import),
            Action::Restore => self.pick(PickerKind::Trash),
            Action::Command => self.begin_command(),
            Action::Answer => self.answer_waiting(),
            Action::Help => self.help(),
            Action::Suspend => vec![Effect::Suspend],
            Action::Quit => vec![Effect::Quit],
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
        let target = match row.host {
            Some(_) => Target::Id(row.id.clone()),
            None => Target::Path(row.path.clone()),
        };
        self.back = Some(Screen::Sessions);
        self.say("Opening…");
        vec![self.open(target)]
    }
}
