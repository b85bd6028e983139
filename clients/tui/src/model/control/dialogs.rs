//! The keys in dialogs, and the start of a navigation.

use crate::keys::{Action, Context, Key};
use crate::message::{Effect, NavigationRequest};
use crate::model::Model;
use crate::model::dialog::{Dialog, RunningNavigation};
use crate::model::input::Input;
use crate::operation::Operation;
use crossterm::event::KeyCode;

/// Scrolls a text, whose first visible line is `top`. Returns whether the action is one that
/// scrolls.
pub(super) fn scroll(action: Option<Action>, top: &mut usize, last: usize, rows: u16) -> bool {
    let page = usize::from(rows / 2).max(1);
    let to = match action {
        Some(Action::Up) => top.saturating_sub(1),
        Some(Action::Down) => *top + 1,
        Some(Action::PageUp) => top.saturating_sub(page),
        Some(Action::PageDown) => *top + page,
        Some(Action::First) => 0,
        Some(Action::Last) => last,
        _ => return false,
    };
    *top = to.min(last);
    true
}

impl Model {
    pub(super) fn help(&mut self) -> Vec<Effect> {
        self.dialog = Some(Dialog::Help { top: 0 });
        Vec::new()
    }

    pub(super) fn key_in_dialog(&mut self, key: Key) -> Vec<Effect> {
        let is_esc = key.is(KeyCode::Esc);
        let is_enter = key.is(KeyCode::Enter);
        let last = crate::view::dialog_last(self);
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
            Some(Dialog::NameBranch { entry, input }) => {
                if is_enter {
                    let (entry, name) = (entry.clone(), input.text().trim().to_owned());
                    self.dialog = None;
                    return self.operate(Operation::NameBranch { entry, name });
                }
                if !is_esc {
                    input.key(key);
                    return Vec::new();
                }
            }
            Some(Dialog::Tags { session_id, input }) => {
                if is_enter {
                    let (session_id, tags) = (session_id.clone(), input.text().trim().to_owned());
                    self.dialog = None;
                    return self.operate(Operation::Tag { session_id, tags });
                }
                if !is_esc {
                    input.key(key);
                    return Vec::new();
                }
            }
            Some(Dialog::Reason { tip, input }) => {
                if is_enter {
                    let (tip, reason) = (tip.clone(), input.text().trim().to_owned());
                    self.dialog = None;
                    return self.operate(Operation::Choose { tip, reason });
                }
                if !is_esc {
                    input.key(key);
                    return Vec::new();
                }
            }
            Some(Dialog::Aside { input }) => {
                if is_enter {
                    let question = input.text().trim().to_owned();
                    self.dialog = None;
                    return self.ask_beside(question);
                }
                if !is_esc {
                    input.key(key);
                    return Vec::new();
                }
            }
            Some(Dialog::Create { input }) => {
                if is_enter {
                    let name = input.text().trim().to_owned();
                    self.dialog = None;
                    return self.operate(Operation::Create { name });
                }
                if !is_esc {
                    input.key(key);
                    return Vec::new();
                }
            }
            Some(Dialog::Focus { .. }) => return self.key_in_focus(key),
            Some(Dialog::Picker(_)) => return self.key_in_picker(key),
            Some(Dialog::Handoff(_)) => return self.key_in_handoff(key),
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
            Some(Dialog::Copy { entries, .. }) => {
                if key.text() == Some('y') {
                    let entries = std::mem::take(entries);
                    self.dialog = None;
                    return self.operate(Operation::CherryPick { entries });
                }
                if !is_esc && key.text() != Some('n') && !is_enter {
                    return Vec::new();
                }
            }
            Some(Dialog::Archive { entry, .. }) => {
                if key.text() == Some('y') {
                    let entry = std::mem::take(entry);
                    self.dialog = None;
                    return self.operate(Operation::Archive { entry });
                }
                if !is_esc && key.text() != Some('n') && !is_enter {
                    return Vec::new();
                }
            }
            Some(Dialog::Help { top }) => {
                let action = self.settings.keymap.action(Context::Preview, key);
                if scroll(action, top, last, self.size.1) {
                    return Vec::new();
                }
            }
            Some(Dialog::Pager { text, top, .. }) => {
                let action = self.settings.keymap.action(Context::Preview, key);
                if action == Some(Action::Copy) {
                    return vec![Effect::Copy(text.clone())];
                }
                if scroll(action, top, last, self.size.1) || !is_esc && key.text() != Some('q') {
                    return Vec::new();
                }
            }
            // The key may have been meant for the part of the screen that the failure covers, so it
            // does not close the dialog.
            Some(Dialog::Failed(failed)) if !is_esc && key.text() != Some('q') => {
                let action = self.settings.keymap.action(Context::Preview, key);
                scroll(action, &mut failed.top, last, self.size.1);
                return Vec::new();
            }
            Some(Dialog::Failed(_) | Dialog::Question(_)) | None => {}
        }
        self.dialog = None;
        Vec::new()
    }

    pub(super) fn key_in_choice(&mut self, key: Key) -> Vec<Effect> {
        let columns = crate::view::focus_columns(self.size);
        let action = self.settings.keymap.action(Context::Editor, key);
        let Some(Dialog::Choose(choose)) = &mut self.dialog else {
            return Vec::new();
        };
        if let Some(focus) = &mut choose.focus {
            if key.is(KeyCode::Esc) {
                choose.focus = None;
            } else if action == Some(Action::Send) {
                return self.start_navigation();
            } else {
                super::operations::edit(focus, key, action, columns);
            }
            return Vec::new();
        }
        let last = choose.choices().len() - 1;
        let action = self.settings.keymap.action(Context::Tree, key);
        match (key.text(), action) {
            (Some('1'), _) => choose.selected = 0,
            (Some('2'), _) if last > 0 => choose.selected = 1,
            (Some('3'), _) if last > 0 => choose.selected = 2,
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

    /// Carries out the selected choice.
    pub(super) fn choose(&mut self) -> Vec<Effect> {
        match &mut self.dialog {
            Some(Dialog::Choose(choose)) if choose.selected == 2 => {
                choose.focus = Some(Input::lines(""));
                Vec::new()
            }
            Some(Dialog::Choose(_)) => self.start_navigation(),
            _ => Vec::new(),
        }
    }

    pub(super) fn start_navigation(&mut self) -> Vec<Effect> {
        let Some(Dialog::Choose(choose)) = self.dialog.take() else {
            return Vec::new();
        };
        self.navigations += 1;
        let navigation_id = format!("tui-{}-{}", self.started, self.navigations);
        let summarize = choose.selected > 0;
        let focus = choose.focus.map(|focus| focus.text().trim().to_owned());
        self.navigating = Some(RunningNavigation {
            navigation_id: navigation_id.clone(),
            summarize,
            began: self.now,
            summary: String::new(),
            progress: None,
            aborting: false,
        });
        vec![Effect::Navigate(NavigationRequest {
            navigation_id,
            target: choose.target,
            summarize,
            focus: focus.filter(|focus| !focus.is_empty()),
            rewind: choose.rewind,
        })]
    }
}
