//! The messages of a chat, as they were read.

use super::message::{Fields, is_scaffolding, response};
use crate::member::Place;
use std::collections::BTreeMap;
use treelined_core::json;
use treelined_core::timestamp::Millis;

/// A message with the places of all its records.
#[derive(Debug)]
pub(super) struct Message {
    /// The id; `None` if the record has none.
    pub(super) id: Option<Box<str>>,
    /// The number of the first record of the message.
    pub(super) number: u64,
    /// The number of messages that come before this one in the same record.
    pub(super) index: usize,
    pub(super) parent: Option<usize>,
    pub(super) kind: MessageKind,
    pub(super) time: Option<Millis>,
    pub(super) places: Vec<Place>,
    /// For each place, the number of its record.
    pub(super) records: Vec<u64>,
    /// The calls, in the order of the last record that has calls.
    pub(super) calls: Vec<MessageCall>,
    /// The parts of a user's message that have results.
    pub(super) answers: Vec<(usize, Box<str>)>,
    /// The index of the first message that a compression keeps.
    pub(super) first_kept: Option<usize>,
    /// The hash of the last record.
    pub(super) hash: u64,
    /// The hash of the text.
    pub(super) text: u64,
    pub(super) label: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    User,
    Scaffolding,
    Model,
    /// A message whose parts are results of unknown calls.
    Answers,
    Compaction {
        has_summary: bool,
    },
    Event,
}

#[derive(Debug)]
pub(super) struct MessageCall {
    pub(super) id: Box<str>,
    /// The index in `toolCalls`, and the place of the record, if the record has the result.
    pub(super) result: Option<(usize, Place)>,
    pub(super) agent: Option<Box<str>>,
}

impl Message {
    /// Whether checkpoints repeat messages of this kind.
    pub(super) fn is_in_checkpoints(&self) -> bool {
        matches!(self.kind, MessageKind::User | MessageKind::Model)
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }
}

/// Counts a record that only the origin keeps. Above the limit, all further types share one count.
pub(super) fn count(counts: &mut BTreeMap<String, u64>, label: &str) {
    let is_known = counts.contains_key(label) || counts.len() < 256;
    let label = if is_known { label } else { "other" };
    *counts.entry(label.to_owned()).or_default() += 1;
}

/// The kind of a message; `None` if the record is not a message.
pub(super) fn kind(fields: &Fields<'_>) -> Option<MessageKind> {
    let has_answers = || fields.parts().any(|part| response(part).is_some());
    match &*json::string(fields.kind?)? {
        "user" if has_answers() => Some(MessageKind::Answers),
        "user" => Some(match is_scaffolding(&fields.text()) {
            true => MessageKind::Scaffolding,
            false => MessageKind::User,
        }),
        "gemini" | "model" | "assistant" => Some(MessageKind::Model),
        "info" | "error" | "warning" if !fields.text().trim().is_empty() => {
            Some(MessageKind::Event)
        }
        _ => None,
    }
}
