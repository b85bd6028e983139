//! Reads the entries of an export, with their secrets replaced.

use super::request::ExportOptions;
use crate::redact::{RedactEntry, Redactor};
use crate::renderers::{self, Renderers};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use treelined_core::author;
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::tree::{FilePlace, Node};
use treelined_core::view::{Caller, RowFacts, RowLook, Subject, ToolCall};
use treelined_files::log::body::{Bodies, BodyReader, Fetch};

/// The source of the entries of an export, and the redactor that replaces their secrets.
pub(super) struct ContentSource {
    pub bodies: Bodies,
    pub redactor: Arc<Redactor>,
    pub renderers: Arc<Renderers>,
}

/// An entry whose secrets were replaced.
pub(super) struct ReadEntry {
    pub json: Vec<u8>,
    /// The kind of each replaced secret.
    pub found: Vec<&'static str>,
}

/// Reads entries. Reading them in file order is fastest.
pub(super) struct EntryReader<'s> {
    source: &'s ContentSource,
    entries: BodyReader<'s>,
    /// A second reader, with its own window of the file, for the assistant messages that made the calls of results.
    callers: BodyReader<'s>,
    results: BodyReader<'s>,
    /// The calls of the assistant messages that were needed last; the most recent message is at the end.
    known: Vec<(Node, Calls)>,
}

/// Tool calls by id.
type Calls = HashMap<String, ToolCall<'static>>;

/// The most assistant messages whose calls are kept.
const KNOWN_CALLERS: usize = 8;

impl ContentSource {
    pub(super) fn new(
        bodies: Bodies,
        renderers: Arc<Renderers>,
        options: &ExportOptions,
    ) -> Result<Self> {
        Ok(Self {
            bodies,
            redactor: Arc::new(options.redactor()?),
            renderers,
        })
    }

    /// A source for another session. It replaces the same words.
    pub(super) fn beside(&self, bodies: Bodies) -> Self {
        Self {
            bodies,
            redactor: Arc::clone(&self.redactor),
            renderers: Arc::clone(&self.renderers),
        }
    }

    pub(super) fn reader(&self) -> EntryReader<'_> {
        EntryReader {
            source: self,
            entries: self.bodies.reader(),
            callers: self.bodies.reader(),
            results: self.bodies.reader(),
            known: Vec::new(),
        }
    }

    /// Replaces the secrets in `text`, which does not belong to an entry.
    pub(super) fn clean(&self, text: &str) -> String {
        self.redactor.text(text, &mut |_, _| {}).into_owned()
    }

    /// The look of the entry in a row.
    pub(super) fn look(&self, entry: &[u8], subject: Subject) -> RowLook {
        if !subject.is_custom() || self.renderers.is_empty() {
            return renderers::usual_look(subject);
        }
        match self.renderers.find(entry, subject).ok().flatten() {
            Some(renderer) => renderer.look(entry, subject),
            None => renderers::usual_look(subject),
        }
    }
}

impl EntryReader<'_> {
    pub(super) fn entry(&mut self, fetch: &Fetch) -> Result<ReadEntry> {
        let mut stored = Vec::with_capacity(fetch.place.len as usize);
        self.entries.push_entry(&mut stored, fetch)?;
        if let Cow::Owned(unsigned) = author::without(&stored) {
            stored = unsigned;
        }
        let mut found = Vec::new();
        let redacted = self
            .source
            .redactor
            .entry(&stored, &mut |kind, _| found.push(kind));
        let changed = match redacted {
            Cow::Borrowed(_) => None,
            Cow::Owned(changed) => Some(changed),
        };
        Ok(ReadEntry {
            json: changed.unwrap_or(stored),
            found,
        })
    }

    /// The id of the call that a tool result answers.
    pub(super) fn call_id_of_result(&mut self, place: FilePlace) -> Result<Option<String>> {
        let stored = self.results.stored(place, usize::MAX)?;
        Ok(answered_call(stored))
    }

    /// Keeps the calls of an assistant message, since their results usually follow it.
    pub(super) fn keep_calls(&mut self, node: Node, calls: Vec<ToolCall<'_>>) {
        let calls = calls.into_iter().map(ToolCall::into_owned);
        let calls = calls.map(|call| (call.id.to_string(), call)).collect();
        if self.known.len() >= KNOWN_CALLERS {
            self.known.remove(0);
        }
        self.known.push((node, calls));
    }

    /// The call with this id, from the nearest of `callers` that has it.
    pub(super) fn call<'c>(
        &mut self,
        id: &str,
        callers: impl Iterator<Item = &'c Caller>,
    ) -> Result<Option<ToolCall<'static>>> {
        for caller in callers {
            if !self.known.iter().any(|(node, _)| *node == caller.node) {
                self.read_calls(caller)?;
            }
            let calls = self.known.iter().find(|(node, _)| *node == caller.node);
            if let Some(call) = calls.and_then(|(_, calls)| calls.get(id)) {
                return Ok(Some(call.clone()));
            }
        }
        Ok(None)
    }

    fn read_calls(&mut self, caller: &Caller) -> Result<()> {
        let stored = self.callers.stored(caller.place(), usize::MAX)?;
        let entry = self.source.redactor.entry(stored, &mut |_, _| {});
        let facts = RowFacts::of_line(&entry, caller.subject());
        let calls = facts.calls.into_iter().map(ToolCall::into_owned).collect();
        self.keep_calls(caller.node, calls);
        Ok(())
    }
}

/// The id of the call that a tool result answers.
pub(super) fn answered_call(result: &[u8]) -> Option<String> {
    let id = json::get_path(result, &["message", "toolCallId"]);
    id.and_then(json::id).map(std::borrow::Cow::into_owned)
}
