//! The facts about the session with which each export begins.

use super::content::ContentSource;
use super::request::Part;
use treelined_core::error::Result;
use treelined_core::timestamp::{self, Millis};
use treelined_core::tree::Node;
use treelined_core::view::{Outline, RowFacts, Subject};
use treelined_files::session::SessionState;

/// The most user messages that are read to find a title.
const TITLE_MESSAGES: usize = 16;

/// The facts about the session, or about the exported part of it, without secrets.
#[derive(Debug, Clone)]
pub(super) struct SessionHead {
    pub session_id: String,
    /// The name. If there is no name, the first user message of the part, on one line.
    pub title: String,
    pub name: Option<String>,
    pub cwd: String,
    pub created: Option<String>,
    pub exported_at: String,
}

impl SessionHead {
    /// `outline` has the entries in the scope of the exported part.
    pub(super) fn take(
        state: &SessionState,
        part: Part,
        outline: &Outline,
        content: &ContentSource,
        now: Millis,
    ) -> Result<Self> {
        let header = state.log.header();
        let name = part.name(state, outline)?;
        let name = name.map(|name| content.clean(&name));
        let title = match &name {
            Some(name) => name.clone(),
            None => {
                let messages = part.user_messages(&state.tree, outline, TITLE_MESSAGES);
                content.clean(&first_text(state, &messages, content)?)
            }
        };
        Ok(Self {
            session_id: header.map(|header| header.id.clone()).unwrap_or_default(),
            title,
            name,
            cwd: header
                .map(|header| content.clean(&header.cwd))
                .unwrap_or_default(),
            created: header.and_then(|header| header.timestamp.clone()),
            exported_at: timestamp::format(now),
        })
    }
}

/// The first text in these messages, on one line; empty if there is none.
fn first_text(state: &SessionState, messages: &[Node], content: &ContentSource) -> Result<String> {
    let tree = &state.tree;
    let mut reader = content.reader();
    for node in messages.iter().copied() {
        let entry = reader.entry(&content.bodies.fetch(tree, node)?)?;
        let subject = Subject {
            kind: tree.kind(node),
            role: tree.role(node),
            flags: tree.flags(node),
            calls: false,
        };
        let facts = RowFacts::of_line(&entry.json, subject);
        if let Some(prompt) = facts.prompt() {
            return Ok(prompt.to_owned());
        }
    }
    Ok(String::new())
}
