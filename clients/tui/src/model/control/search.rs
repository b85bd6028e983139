//! The keys of the search over all sessions.

use crate::keys::{Action, Context, Key};
use crate::message::{Effect, Target};
use crate::model::search::HitLine;
use crate::model::{Model, Screen};

impl Model {
    /// Shows the search over all sessions. The search starts with the query of the list or of the tree.
    pub(super) fn search_all(&mut self) -> Vec<Effect> {
        let begun = match self.screen {
            Screen::Sessions => &mut self.sessions.search,
            _ => &mut self.tree.search,
        };
        let begun = begun.clone();
        self.screen = Screen::Search;
        if !begun.text().trim().is_empty() {
            self.search.input = begun;
        }
        self.search.within = None;
        self.search.changed()
    }

    pub(super) fn key_in_search(&mut self, key: Key) -> Vec<Effect> {
        let search = &mut self.search;
        let action = self.settings.keymap.action(Context::Search, key);
        let (cursor, page) = (search.cursor, search.height.saturating_sub(1).max(1));
        let to = match action {
            Some(Action::Up) => Some(cursor.saturating_sub(1)),
            Some(Action::Down) => Some(cursor + 1),
            Some(Action::PageUp) => Some(cursor.saturating_sub(page)),
            Some(Action::PageDown) => Some(cursor + page),
            _ => None,
        };
        if let Some(to) = to {
            search.move_to(to);
            return Vec::new();
        }
        match action {
            Some(Action::Accept) => self.accept_line(),
            Some(Action::Back) if search.within.is_some() => search.search_within(None),
            Some(Action::Back) => {
                let mut effects = search.stop();
                effects.extend(self.show_sessions());
                effects
            }
            Some(Action::Scope) if search.take_completion() => search.changed(),
            Some(Action::NextMode) => {
                search.mode = search.mode.next();
                search.changed()
            }
            Some(Action::Scope) => {
                search.here = !search.here;
                search.changed()
            }
            Some(Action::Answer) => self.answer_waiting(),
            Some(Action::Help) => self.help(),
            Some(Action::Suspend) => vec![Effect::Suspend],
            Some(Action::Quit) => vec![Effect::Quit],
            Some(_) => Vec::new(),
            None => {
                let before = search.input.text().to_owned();
                search.input.key(key);
                match search.input.text() == before {
                    true => Vec::new(),
                    false => search.changed(),
                }
            }
        }
    }

    /// Opens the hit at the cursor, shows more hits of its session, or uses a similar word.
    pub(super) fn accept_line(&mut self) -> Vec<Effect> {
        match self.search.chosen() {
            Some(HitLine::Near(near)) => {
                let (word, near) = (near.word.clone(), near.near.clone());
                near.map_or_else(Vec::new, |near| self.search.take_near(&word, &near))
            }
            Some(HitLine::More(id, name, _)) => {
                let session = (id.to_owned(), name.to_owned());
                self.search.search_within(Some(session))
            }
            _ => self.open_hit(),
        }
    }

    /// Opens the session of the hit at the cursor, at the entry of the hit.
    pub(super) fn open_hit(&mut self) -> Vec<Effect> {
        let Some((session_id, hit)) = self.search.opening() else {
            return Vec::new();
        };
        let mut effects = self.search.stop();
        self.opening_hit = Some(hit);
        self.back = Some(Screen::Search);
        self.say("Opening…");
        effects.push(self.open(Target::Id(session_id)));
        effects
    }
}
