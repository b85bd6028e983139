//! Reads the messages of the role `user`. Such a message is from the user, or from the harness, which is the program
//! around the model.

use super::state::{Item, RolloutReader};
use crate::codex::record::{self, hash};
use crate::member::NodeKind;
use std::borrow::Cow;
use treelined_core::json::{self, Elements};

/// The author of a message that has the role `user`.
enum Author {
    Person,
    Harness,
    /// The record does not say the author. This is the likely kind.
    Likely(NodeKind),
}

/// The beginnings of texts that the harness writes in the role `user`.
const HARNESS: &[&str] = &[
    "<environment_context",
    "<user_instructions",
    "<permissions",
    "<skill",
    "<turn_aborted",
    "<user_shell_command",
    "<subagent_notification",
    "<model_switch",
    "<collaboration_mode",
    "<apps_instructions",
    "<plugins_instructions",
    "<personality",
    "<multi_agent",
    "<INSTRUCTIONS",
    "# AGENTS.md instructions",
];

impl RolloutReader {
    pub(super) fn message(&mut self, item: &Item<'_>, role: &str) {
        self.close_response();
        let payload = item.line.payload;
        let author = match role {
            "user" => author(payload),
            _ => Author::Harness,
        };
        self.doubtful = None;
        match author {
            Author::Person => self.push_turn(item),
            Author::Harness => self.push_scaffolding(item),
            Author::Likely(kind) => {
                let text = hash(first_text(payload).unwrap_or_default().as_bytes());
                match kind {
                    NodeKind::User => self.push_turn(item),
                    _ => self.push_scaffolding(item),
                }
                self.newest = self.tip;
                self.doubtful = self.tip.map(|tip| (tip, text));
            }
        }
    }

    fn push_turn(&mut self, item: &Item<'_>) {
        let index = self.push(NodeKind::User, item);
        self.turns.push(index);
    }

    fn push_scaffolding(&mut self, item: &Item<'_>) {
        if self.member.cwd.is_none() {
            self.member.cwd = first_text(item.line.payload).and_then(|text| directory(&text));
        }
        self.push(NodeKind::Scaffolding, item);
    }

    /// Reads an event that shows a message of the user. If the latest message of unknown author has the same text, it
    /// is from the user.
    pub(super) fn confirm(&mut self, text: Option<Cow<'_, str>>) {
        let (Some((index, expected)), Some(text)) = (self.doubtful, text) else {
            return;
        };
        if hash(text.as_bytes()) != expected {
            return;
        }
        self.doubtful = None;
        let node = self.node(index);
        let guessed = node.filter(|node| node.kind == NodeKind::Scaffolding);
        if let Some(node) = guessed {
            node.kind = NodeKind::User;
            self.turns.push(index);
        }
    }
}

fn author(payload: &[u8]) -> Author {
    let path = [
        "internal_chat_message_metadata_passthrough",
        "content_item_kinds",
    ];
    let kinds = json::get_path(payload, &path).unwrap_or_default();
    let mut is_known = false;
    for kind in elements(kinds).filter_map(json::string) {
        match &*kind {
            kind if kind.starts_with("user.") => return Author::Person,
            "unknown" => {}
            _ => is_known = true,
        }
    }
    if is_known {
        return Author::Harness;
    }
    let text = first_text(payload).unwrap_or_default();
    let text = text.trim_start();
    match HARNESS.iter().any(|beginning| text.starts_with(beginning)) {
        true => Author::Likely(NodeKind::Scaffolding),
        false => Author::Likely(NodeKind::User),
    }
}

/// The text of the first item of `content`.
pub(super) fn first_text(payload: &[u8]) -> Option<Cow<'_, str>> {
    let content = json::get(payload, "content")?;
    match json::string(content) {
        Some(text) => Some(text),
        None => elements(content).find_map(|piece| record::text(piece, "text")),
    }
}

fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut elements = Elements::open(array, 0).ok();
    std::iter::from_fn(move || array.get(elements.as_mut()?.next_value().ok()??))
}

/// The directory in the description of the environment. It is used for files whose first line does not have it.
fn directory(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<cwd>")?;
    let (directory, _) = rest.split_once("</cwd>")?;
    Some(directory.to_owned())
}
