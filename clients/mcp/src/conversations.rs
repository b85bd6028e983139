//! Sessions of one conversation: its record and its import can be two sessions (protocol.md §3.4).

use std::collections::HashMap;
use treelined_client::{SearchHit, SessionRow};

/// For each session that has the same conversation as another session: a name that all these sessions share.
#[derive(Clone, Default)]
pub struct Conversations(HashMap<String, String>);

impl Conversations {
    pub fn add(&mut self, row: &SessionRow) {
        let others = row.same_conversation.iter().flatten();
        if let Some(first) = others.min() {
            let first = first.min(&row.session_id).clone();
            self.0.insert(row.session_id.clone(), first);
        }
    }

    /// The name of the conversation of a session.
    pub fn of<'s>(&'s self, session: &'s str) -> &'s str {
        self.0.get(session).map_or(session, String::as_str)
    }

    /// Removes a hit if an earlier hit in another session of the same conversation has the same text.
    pub fn remove_copies(&self, hits: &mut Vec<SearchHit>) {
        let mut seen: HashMap<(&str, String), String> = HashMap::new();
        hits.retain(|hit| {
            let Some(conversation) = self.0.get(&hit.session_id) else {
                return true;
            };
            let text = (conversation.as_str(), hit.snippet.clone());
            let session = seen.entry(text).or_insert_with(|| hit.session_id.clone());
            *session == hit.session_id
        });
    }
}
