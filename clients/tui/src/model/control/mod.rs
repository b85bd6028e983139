//! Keys, the mouse and pasted text. An input goes to the first part of this list that is present: a lost
//! connection, a question, a running operation, a dialog, the `:` line, the editor, a comparison, the screen.

mod branches;
mod command;
mod dialogs;
mod handoff;
mod mouse;
mod operations;
mod panes;
mod picker;
mod questions;
mod search;
mod sessions;
mod sorting;
mod tree;

use super::dialog::Dialog;
use super::{Connection, Model, Screen};
use crate::keys::{Action, Context, Key};
use crate::message::Effect;
use crossterm::event::{KeyCode, KeyEvent};

impl Model {
    pub(super) fn key(&mut self, event: KeyEvent) -> Vec<Effect> {
        let key = Key::from(event);
        self.remove_notice();
        if key.is_ctrl('c') {
            return vec![Effect::Quit];
        }
        if let Connection::Down { .. } = self.link {
            return self.key_when_down(key);
        }
        if self.withdraw_unread() {
            return Vec::new();
        }
        if matches!(self.dialog, Some(Dialog::Question(_))) {
            return self.key_in_question(key);
        }
        if !self.is_ready() {
            return self.key_while_waiting(key);
        }
        if self.navigating.is_some() {
            return self.key_while_navigating(key);
        }
        if self.comparing.is_some() {
            return self.key_while_comparing(key);
        }
        if self.running.is_some() {
            return self.key_while_running(key);
        }
        if self.dialog.is_some() {
            return self.key_in_dialog(key);
        }
        if self.command_line.is_some() {
            return self.key_in_command_line(key);
        }
        if self.editor.is_some() {
            return self.key_in_editor(key);
        }
        if self.compare.is_some() {
            return self.key_in_comparison(key);
        }
        match self.screen {
            Screen::Sessions => self.key_in_sessions(key),
            Screen::Search => self.key_in_search(key),
            Screen::Tree if self.preview_focused => self.key_in_preview(key),
            Screen::Tree => self.key_in_tree(key),
        }
    }

    fn action(&self, context: Context, key: Key) -> Option<Action> {
        self.settings.keymap.action(context, key)
    }

    /// Handles a key without a daemon. The loaded part of the tree can still be read.
    fn key_when_down(&mut self, key: Key) -> Vec<Effect> {
        match self.action(Context::Tree, key) {
            Some(Action::Quit) => vec![Effect::Quit],
            Some(Action::Reconnect | Action::Accept) => {
                self.link = Connection::Connecting;
                vec![Effect::Connect]
            }
            Some(action) if self.screen == Screen::Tree => {
                self.move_cursor(action);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Handles a key while a session is being opened. Keys whose requests would be lost are ignored.
    fn key_while_waiting(&mut self, key: Key) -> Vec<Effect> {
        // The user can continue to write a draft; only sending it needs the session.
        let sends = self.action(Context::Editor, key) == Some(Action::Send);
        if self.editor.is_some() && self.dialog.is_none() && !sends {
            return self.key_in_editor(key);
        }
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

    fn key_while_comparing(&mut self, key: Key) -> Vec<Effect> {
        if !key.is(KeyCode::Esc) {
            return Vec::new();
        }
        self.comparing = None;
        self.say("Stopped comparing.");
        vec![Effect::StopComparing]
    }

    /// Handles Esc if nothing is left to close. Esc does not quit, since people easily press it once too often.
    fn is_at_the_top(&mut self) -> Vec<Effect> {
        let context = match self.screen {
            Screen::Sessions | Screen::Search => Context::Sessions,
            Screen::Tree => Context::Tree,
        };
        let hint = |action| self.settings.keymap.hint(context, action);
        let quit = format!("{} quits", hint(Action::Quit));
        self.say(match self.screen {
            Screen::Sessions | Screen::Search => format!("{quit}."),
            Screen::Tree => format!("{quit}, {} shows the sessions.", hint(Action::Sessions)),
        });
        Vec::new()
    }
}
