//! Holds a prompt until its session is open. avante sends a prompt before `session/load` is answered, and agents refuse
//! a prompt in a session that they have not opened yet. Pure.

use super::message::MAX_KEPT;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};

/// The most bytes of prompts that are held.
const MAX_HELD: usize = 48 << 20;

#[derive(Default)]
pub(crate) struct Held {
    /// The editor sessions that are being opened.
    opening: HashSet<String>,
    /// The prompt that waits in each of these sessions: its id, and its line.
    prompts: HashMap<String, (Box<RawValue>, Vec<u8>)>,
}

impl Held {
    /// Notes that the editor opens a session.
    pub(crate) fn opens(&mut self, session: &str) {
        if self.opening.len() < MAX_KEPT {
            self.opening.insert(session.to_owned());
        }
    }

    /// Holds a prompt if its session is being opened. False if the prompt is not held and must pass.
    pub(crate) fn holds(&mut self, session: &str, id: &RawValue, line: &[u8]) -> bool {
        let held: usize = self.prompts.values().map(|(_, line)| line.len()).sum();
        let holds = self.opening.contains(session)
            && !self.prompts.contains_key(session)
            && held + line.len() <= MAX_HELD;
        if holds {
            let prompt = (id.to_owned(), line.to_vec());
            self.prompts.insert(session.to_owned(), prompt);
        }
        holds
    }

    /// Notes that a session is open, or could not be opened. Returns the line of the prompt that waited.
    pub(crate) fn opened(&mut self, session: &str) -> Option<Vec<u8>> {
        self.opening.remove(session);
        self.prompts.remove(session).map(|(_, line)| line)
    }

    /// Removes the prompt that waits in a session, because the editor cancels it. Returns its id.
    pub(crate) fn cancel(&mut self, session: &str) -> Option<Box<RawValue>> {
        self.prompts.remove(session).map(|(id, _)| id)
    }
}
