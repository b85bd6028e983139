//! The facts about the session that each export begins with.

use super::content::ContentSource;
use crate::entry::{Kind, Role};
use crate::error::Result;
use crate::session::SessionState;
use crate::timestamp::{self, Millis};
use crate::view::{RowFacts, Subject};

/// User messages that are read for the title.
const TITLE_MESSAGES: usize = 16;

/// The session, without secrets.
#[derive(Debug, Clone)]
pub(super) struct SessionHead {
    pub session_id: String,
    /// The name, else the first user message on one line.
    pub title: String,
    pub name: Option<String>,
    pub cwd: String,
    pub created: Option<String>,
    pub entry_count: usize,
    pub exported_at: String,
}

impl SessionHead {
    pub(super) fn take(core: &SessionState, content: &ContentSource, now: Millis) -> Result<Self> {
        let header = core.log.header();
        let name = core.tree.name().map(|name| content.clean(name));
        let title = match &name {
            Some(name) => name.clone(),
            None => content.clean(&first_message(core, content)?),
        };
        Ok(Self {
            session_id: header.map(|header| header.id.clone()).unwrap_or_default(),
            title,
            name,
            cwd: header
                .map(|header| content.clean(&header.cwd))
                .unwrap_or_default(),
            created: header.and_then(|header| header.timestamp.clone()),
            entry_count: core.tree.entry_count(),
            exported_at: timestamp::format(now),
        })
    }
}

/// The first user message with text, on one line; empty if there is none.
fn first_message(core: &SessionState, content: &ContentSource) -> Result<String> {
    let tree = &core.tree;
    let is_user = |node: &_| tree.kind(*node) == Kind::Message && tree.role(*node) == Role::User;
    let mut reader = content.reader();
    for node in tree.entries().filter(is_user).take(TITLE_MESSAGES) {
        let entry = reader.entry(&content.bodies.fetch(tree, node)?)?;
        let subject = Subject {
            kind: tree.kind(node),
            role: tree.role(node),
            flags: tree.flags(node),
            calls: false,
        };
        let preview = RowFacts::of_line(&entry.json, subject).preview.into_owned();
        if !preview.trim().is_empty() {
            return Ok(preview);
        }
    }
    Ok(String::new())
}
