//! A request and its response: the places of their parts in the source.

use super::invocation::{self, short};
use super::pieces::is_said;
use crate::member::{Place, Record};
use crate::message::elements;
use crate::value::{is_blank, literal, millis, text};
use std::collections::HashMap;
use treelined_core::json;
use treelined_core::timestamp::Millis;

/// A request that was in the list at some time.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) id: Box<str>,
    /// The index of the request that was before this one in the list.
    pub(super) parent: Option<usize>,
    /// The number of the record that added the request.
    pub(super) number: u64,
    pub(super) time: Option<Millis>,
    pub(super) message: Option<Place>,
    pub(super) files: Option<Place>,
    pub(super) model: Option<Box<str>>,
    pub(super) state: State,
    pub(super) ended: Option<Millis>,
    /// Whether the request is hidden, and the next message removes it.
    pub(super) is_removed: bool,
    /// Like `is_removed`, for files of older versions.
    pub(super) was_removed: bool,
    pub(super) response: Vec<Part>,
    pub(super) outcome: Outcome,
}

/// The state of a response.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Unknown,
    Complete,
    Cancelled,
}

/// A part of a response.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) place: Place,
    pub(super) kind: PartKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PartKind {
    /// An entry can show the part.
    Said,
    /// A call, with its id and the name of its tool.
    Call {
        id: Box<str>,
        name: Box<str>,
    },
    Other,
}

/// The result of a request.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Whether the request has a result.
    pub(super) is_there: bool,
    pub(super) rounds: Vec<Round>,
    /// The place of the error.
    pub(super) error: Option<Place>,
}

/// A message of the model.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) place: Place,
    pub(super) calls: Vec<Call>,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: Box<str>,
    pub(super) name: Box<str>,
    /// The place of the call's result.
    pub(super) result: Option<Place>,
}

impl Request {
    /// Reads all members of a request.
    pub(super) fn read(&mut self, record: &Record<'_>, request: &[u8]) {
        for name in [
            "message",
            "variableData",
            "timestamp",
            "modelId",
            "isHidden",
            "shouldBeRemovedOnSend",
            "isCanceled",
            "modelState",
            "response",
            "result",
        ] {
            self.set(record, name, json::get(request, name));
        }
    }

    /// Sets a member, or deletes it.
    pub(super) fn set(&mut self, record: &Record<'_>, name: &str, value: Option<&[u8]>) {
        let value = value.filter(|value| *value != b"null");
        let place = value.map(|value| place_of(record, value));
        match name {
            "message" => self.message = place,
            "variableData" => self.files = place,
            "timestamp" => self.time = millis(value),
            "modelId" => self.model = text(value).map(|model| (&*short(&model)).into()),
            "isHidden" => self.was_removed = value == Some(b"true"),
            "shouldBeRemovedOnSend" => {
                // If the object says where the removed part begins, only the end of the response is removed.
                let is_part = value.is_some_and(|it| json::get(it, "afterUndoStop").is_some());
                self.is_removed = value.is_some_and(|it| it != b"false") && !is_part;
            }
            "isCanceled" if value == Some(b"true") => self.state = State::Cancelled,
            "modelState" => {
                let state = value.and_then(|value| json::get(value, "value"));
                self.state = match state {
                    Some(b"1" | b"3") => State::Complete,
                    Some(b"2") => State::Cancelled,
                    Some(_) => State::Unknown,
                    None => self.state,
                };
                let ended = value.and_then(|value| json::get(value, "completedAt"));
                self.ended = millis(ended);
            }
            "response" => {
                self.response.clear();
                self.add(record, value.unwrap_or_default());
            }
            "result" => {
                self.outcome = value
                    .map(|value| Outcome::of(record, value))
                    .unwrap_or_default();
            }
            _ => {}
        }
    }

    /// Adds parts to the response.
    pub(super) fn add(&mut self, record: &Record<'_>, parts: &[u8]) {
        if parts.starts_with(b"[") {
            let parts = elements(parts).map(|part| Part::of(record, part));
            self.response.extend(parts);
        }
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.is_removed || self.was_removed
    }

    pub(super) fn is_complete(&self) -> bool {
        self.state != State::Unknown || self.outcome.is_there
    }
}

impl Part {
    pub(super) fn of(record: &Record<'_>, part: &[u8]) -> Self {
        let place = place_of(record, part);
        if let Some((id, name)) = invocation::head(part) {
            let id = id.map(|id| short(&id).into()).unwrap_or_default();
            let name = (&*short(&name)).into();
            let kind = PartKind::Call { id, name };
            return Self { place, kind };
        }
        let kind = match is_said(part) {
            true => PartKind::Said,
            false => PartKind::Other,
        };
        Self { place, kind }
    }
}

impl Outcome {
    fn of(record: &Record<'_>, result: &[u8]) -> Self {
        let [error, metadata] = json::get_each(result, ["errorDetails", "metadata"]);
        let metadata = metadata.unwrap_or(b"{}");
        let [rounds, results] = json::get_each(metadata, ["toolCallRounds", "toolCallResults"]);
        let mut places: HashMap<Box<str>, Place> = HashMap::new();
        if let Some(results) = results
            && let Ok(mut members) = json::Members::open(results, 0)
        {
            while let Ok(Some(member)) = members.next_member() {
                let id = member.name(results);
                let id = short(&String::from_utf8_lossy(&id)).into();
                let value = results.get(member.value.clone()).unwrap_or_default();
                places.entry(id).or_insert_with(|| place_of(record, value));
            }
        }
        let rounds = rounds.into_iter().flat_map(elements).filter_map(|round| {
            let [said, thought, calls] =
                json::get_each(round, ["response", "thinking", "toolCalls"]);
            let calls = calls.into_iter().flat_map(elements).map(|call| {
                let [id, name] = json::get_each(call, ["id", "name"]);
                let id: Box<str> = short(&text(id).unwrap_or_default()).into();
                let result = places.remove(&id);
                let name = (&*short(&text(name).unwrap_or_default())).into();
                Call { id, name, result }
            });
            let calls: Vec<Call> = calls.collect();
            let has_words = literal(said).is_some_and(|said| !is_blank(said));
            let says = has_words || thought.is_some() || !calls.is_empty();
            let place = place_of(record, round);
            says.then_some(Round { place, calls })
        });
        Self {
            is_there: true,
            rounds: rounds.collect(),
            error: error
                .filter(|error| json::get(error, "message").is_some())
                .map(|error| place_of(record, error)),
        }
    }
}

/// The place of a part of a record.
pub(super) fn place_of(record: &Record<'_>, part: &[u8]) -> Place {
    let at = part.as_ptr() as usize - record.bytes.as_ptr() as usize;
    Place {
        at: record.at + at as u64,
        len: part.len() as u64,
    }
}
