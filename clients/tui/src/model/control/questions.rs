//! Questions and messages of other clients to the user.
//!
//! A question takes the focus by itself only if the user is not typing. If a key comes too soon after that to be an
//! answer, the question gives the focus back.

use crate::keys::{Action, Context, Key};
use crate::message::{Effect, Event, Failure};
use crate::model::dialog::Dialog;
use crate::model::question::{AnswerField, Question, UserAnswer};
use crate::model::{Model, Screen};
use crossterm::event::KeyCode;
use std::time::Duration;

/// If no key was pressed for this time, the user is not typing.
const QUIET: Duration = Duration::from_secs(2);

/// For this time after a question took the focus by itself, it counts as unread.
const UNREAD: Duration = Duration::from_millis(700);

/// For this time, keys do not remove a message of another client.
const NOTICED: Duration = Duration::from_secs(3);

impl Model {
    pub(in crate::model) fn person_event(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Asked(question) if self.is_quiet() => self.open_question(*question, true),
            Event::Asked(question) => self.waiting.push_back(*question),
            Event::Resolved { event_id, how } => self.resolved(&event_id, how),
            Event::Notified { level, text } => self.notify(text, level, self.now + NOTICED),
            _ => {}
        }
        Vec::new()
    }

    /// Returns whether a question may take the focus: if nothing is open and the user is not typing.
    fn is_quiet(&self) -> bool {
        let is_typing = match self.screen {
            Screen::Sessions => self.sessions.typing,
            Screen::Search => true,
            Screen::Tree => self.tree.typing,
        };
        let is_open = self.dialog.is_some()
            || self.editor.is_some()
            || self.compare.is_some()
            || self.command_line.is_some();
        let rested = |then| self.now.saturating_sub(then) >= QUIET;
        // A running operation needs no keys, and it often waits for the answer to this question.
        self.is_busy() && self.dialog.is_none()
            || !is_open && !is_typing && self.held.is_empty() && self.last_key.is_none_or(rested)
    }

    fn open_question(&mut self, mut question: Question, by_itself: bool) {
        question.appeared = by_itself.then_some(self.now);
        self.dialog = Some(Dialog::Question(Box::new(question)));
    }

    /// Opens the question that has waited longest.
    pub(super) fn answer_waiting(&mut self) -> Vec<Effect> {
        match self.waiting.pop_front() {
            Some(question) => self.open_question(question, false),
            None => self.say("No question waits."),
        }
        Vec::new()
    }

    /// Handles the arrival of a key or a paste while a question that took the focus is unread. The input was not
    /// meant for the question, so the question waits again. Returns whether the input must be ignored, because
    /// nothing else can use it.
    pub(super) fn withdraw_unread(&mut self) -> bool {
        let last = self.last_key.replace(self.now);
        let Some(Dialog::Question(question)) = &mut self.dialog else {
            return false;
        };
        let Some(appeared) = question.appeared else {
            return false;
        };
        if self.now.saturating_sub(appeared) >= UNREAD
            && last.is_none_or(|last| self.now.saturating_sub(last) >= UNREAD || last < appeared)
        {
            question.appeared = None;
            return false;
        }
        if self.navigating.is_some() || self.comparing.is_some() || self.running.is_some() {
            return true;
        }
        if let Some(Dialog::Question(question)) = self.dialog.take() {
            self.waiting.push_front(*question);
        }
        false
    }

    fn resolved(&mut self, event_id: &str, how: String) {
        let before = self.waiting.len();
        self.waiting.retain(|it| it.event_id != event_id);
        let is_open = matches!(&self.dialog, Some(Dialog::Question(it)) if it.event_id == event_id);
        if is_open {
            self.dialog = None;
        }
        if is_open || self.waiting.len() < before {
            self.say(how);
        }
    }

    /// Applies the daemon's response to an answer.
    pub(in crate::model) fn answered(&mut self, result: Result<(), Failure>) -> Vec<Effect> {
        match result {
            Ok(()) => Vec::new(),
            Err(failure) if failure.kind == "eventNotPending" => {
                self.say("The question was over already.");
                Vec::new()
            }
            Err(failure) => self.fail("The answer was not taken", failure),
        }
    }

    pub(super) fn key_in_question(&mut self, key: Key) -> Vec<Effect> {
        let Some(Dialog::Question(question)) = &mut self.dialog else {
            return Vec::new();
        };
        let keymap = &self.settings.keymap;
        let columns = crate::view::question_columns(self.size);
        let answer = match &mut question.field {
            _ if key.is(KeyCode::Esc) => Some(UserAnswer::Dismissed),
            AnswerField::Choice { choices, selected } => {
                let letter = key.text().unwrap_or(' ');
                let number = letter
                    .to_digit(10)
                    .and_then(|digit| (digit as usize).checked_sub(1));
                let is_confirm = choices
                    .first()
                    .is_some_and(|it| it.answer == UserAnswer::Choice(true));
                let direct = match letter {
                    'y' if is_confirm => Some(0),
                    'n' if is_confirm => Some(1),
                    _ => number.filter(|at| *at < choices.len()),
                };
                let last = choices.len().saturating_sub(1);
                match keymap.action(Context::Tree, key) {
                    _ if direct.is_some() => *selected = direct.unwrap_or(*selected),
                    Some(Action::Up) => *selected = selected.checked_sub(1).unwrap_or(last),
                    Some(Action::Down) if *selected == last => *selected = 0,
                    Some(Action::Down) => *selected += 1,
                    Some(Action::PageUp) => *selected = selected.saturating_sub(8),
                    Some(Action::PageDown) => *selected = (*selected + 8).min(last),
                    Some(Action::First) => *selected = 0,
                    Some(Action::Last) => *selected = last,
                    _ => {}
                }
                let chosen = direct.is_some() || key.is(KeyCode::Enter);
                chosen.then(|| question.field.answer()).flatten()
            }
            AnswerField::Line(_) if key.is(KeyCode::Enter) => question.field.answer(),
            AnswerField::Line(input) => {
                input.key(key);
                None
            }
            AnswerField::Text(input) => match keymap.action(Context::Editor, key) {
                Some(Action::Send) => question.field.answer(),
                Some(Action::Newline) => {
                    input.insert("\n");
                    None
                }
                _ if matches!(key.code(), KeyCode::Up | KeyCode::Down) => {
                    input.vertical(columns, key.is(KeyCode::Down));
                    None
                }
                _ => {
                    input.key(key);
                    None
                }
            },
        };
        let Some(answer) = answer else {
            return Vec::new();
        };
        let effect = Effect::AnswerUser {
            event_id: question.event_id.clone(),
            answer,
        };
        self.dialog = None;
        vec![effect]
    }
}
