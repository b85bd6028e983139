//! Reads contexts without secrets, for an export of data.

use super::super::content::{ContentSource, EntryReader, ReadEntry};
use super::super::tally::RedactionTally;
use super::chat::is_result;
use super::steps::Steps;
use std::collections::HashSet;
use treelined_core::context::{self, Context, Format, Kept, PathStep};
use treelined_core::error::{Error, Result};
use treelined_core::json;
use treelined_core::tree::Node;
use treelined_files::cancel::Cancel;
use treelined_files::log::body::Fetch;

/// The most bytes of the messages of one context.
const CONTEXT_BYTES: usize = 512 << 20;

/// Reads the entries of one session.
pub(super) struct DataReader<'s> {
    pub steps: &'s Steps,
    content: &'s ContentSource,
    entries: EntryReader<'s>,
    cancel: &'s Cancel,
    tally: RedactionTally,
    /// The entries whose secrets were counted already.
    counted: HashSet<Node>,
}

impl<'s> DataReader<'s> {
    pub(super) fn new(steps: &'s Steps, content: &'s ContentSource, cancel: &'s Cancel) -> Self {
        Self {
            steps,
            content,
            entries: content.reader(),
            cancel,
            tally: RedactionTally::default(),
            counted: HashSet::new(),
        }
    }

    /// Replaces the secrets in `text`, which does not belong to an entry.
    pub(super) fn clean(&self, text: &str) -> String {
        self.content.clean(text)
    }

    /// Reads the entry of a step and counts its secrets.
    pub(super) fn step(&mut self, node: Node) -> Result<Vec<u8>> {
        let Some(step) = self.steps.get(node) else {
            return Ok(Vec::new());
        };
        let read = self.look(&step.fetch)?;
        self.count(node, &read);
        Ok(read.json)
    }

    /// Reads an entry without counting its secrets, since the export may leave it out.
    pub(super) fn look(&mut self, fetch: &Fetch) -> Result<ReadEntry> {
        match self.cancel.is_cancelled() {
            true => Err(Error::cancelled()),
            false => self.entries.entry(fetch),
        }
    }

    /// Counts the secrets of an entry, unless they were counted before.
    pub(super) fn count(&mut self, node: Node, read: &ReadEntry) {
        if !read.found.is_empty() && self.counted.insert(node) {
            let id = json::get(&read.json, "id").and_then(json::id);
            self.tally.add(&id.unwrap_or_default(), &read.found);
        }
    }

    /// The context at the end of the path to a step (`format: "llm"`, semantics.md §1.5).
    pub(super) fn context(&mut self, end: Node) -> Result<Context> {
        let path = self.steps.path(end);
        let steps = self.steps;
        let kept = Kept::of(
            &path,
            |node| self.step(node),
            |id| steps.find(id).map(|step| step.node),
        )?;
        context::build_within(&path, kept, Format::Llm, CONTEXT_BYTES, &mut |node| {
            self.step(node)
        })
    }

    /// The messages of a step (`format: "agent"`, semantics.md §1.4).
    pub(super) fn messages(&mut self, node: Node) -> Result<Vec<Vec<u8>>> {
        let Some(step) = self.steps.get(node) else {
            return Ok(Vec::new());
        };
        let path = [PathStep {
            node,
            kind: step.kind,
            role: step.role,
        }];
        let kept = Kept::of(&path, |node| self.step(node), |_| None)?;
        let mut body = |node| self.step(node);
        let context = context::build_within(&path, kept, Format::Agent, CONTEXT_BYTES, &mut body)?;
        Ok(context.messages)
    }

    /// Whether the path to a step has a message that a model sees.
    pub(super) fn says_anything(&mut self, end: Node) -> Result<bool> {
        for at in self.steps.path(end) {
            let messages = self.messages(at.node)?;
            let is_shown =
                |message: &Vec<u8>| is_result(message) || context::for_model(message).is_some();
            if messages.iter().any(is_shown) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The id of a step.
    pub(super) fn id(&mut self, node: Node) -> Result<String> {
        let entry = self.step(node)?;
        let id = json::get(&entry, "id").and_then(json::id);
        Ok(id.unwrap_or_default().into_owned())
    }

    pub(super) fn into_tally(self) -> RedactionTally {
        self.tally
    }
}
