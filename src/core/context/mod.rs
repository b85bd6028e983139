//! Makes a context, the messages that a model sees, from a path of the tree (semantics.md §1).
//!
//! This module decides which entries of a path count (the latest compaction, context edits, settings) and which bodies
//! are read. It is pure: the caller reads the bodies. `agent` makes the messages of one entry, `llm` converts them for
//! a provider, `calls` pairs calls with results, `content` reads the content of a message, `handed` makes the context
//! for another agent.

pub(crate) mod agent;
mod calls;
pub(crate) mod content;
pub mod handed;
pub(crate) mod llm;

#[cfg(test)]
mod tests;

use self::agent::AgentMessage;
use self::calls::OpenCalls;
use crate::entry::{Facts, Kind, Line, Role, scan};
use crate::error::{Error, Kind as ErrorKind};
use crate::json;
use crate::tree::Node;
use std::borrow::Cow;
use std::collections::HashMap;

/// One entry of the path from root to leaf, copied from the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathStep {
    pub node: Node,
    pub kind: Kind,
    pub role: Role,
}

/// The roles that messages may have (semantics.md §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As stored, with the roles `branchSummary`, `compactionSummary`, `custom`, `bashExecution` and
    /// unknown ones.
    Agent,
    /// Only `system`, `user`, `assistant` and `toolResult`.
    Llm,
}

/// A complete context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Each message is one JSON object. A stored message has the bytes of the file.
    pub messages: Vec<Vec<u8>>,
    /// The last level set on the path, else `off`.
    pub thinking_level: String,
    /// Provider and model id, as last used or set on the path.
    pub model: Option<(String, String)>,
    /// The entry of each message, in the same order: one id per message. The id of a compaction appears for its summary
    /// and for its system message. `None` for a result that `calls` has added, which has no entry.
    pub entry_ids: Vec<Option<String>>,
}

/// The settings at the end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathSettings {
    /// The last level set on the path, else `off`.
    pub thinking_level: String,
    /// Provider and model id, as last used or set on the path.
    pub model: Option<(String, String)>,
}

/// Context edits by target; the latest one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edits(HashMap<String, ContentEdit>);

/// The effect of a `context_edit` on its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContentEdit {
    LeaveOut,
    /// The new content, as raw JSON.
    Content(Vec<u8>),
}

/// The part of a path that is in the context: the whole path, or the entries that the latest compaction keeps and the
/// entries after this compaction.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// Index of the latest compaction.
    latest: Option<usize>,
    /// Index of the first entry that counts; the index of the compaction if the compaction keeps nothing.
    first: usize,
}

impl Kept {
    /// The part of `path` in the context. `body` reads the latest compaction, and its error is returned. `find` returns
    /// the node of an id, here of the compaction's `firstKeptEntryId`.
    pub fn of(
        path: &[PathStep],
        body: impl FnOnce(Node) -> Result<Vec<u8>, Error>,
        find: impl FnOnce(&str) -> Option<Node>,
    ) -> Result<Self, Error> {
        let latest = path.iter().rposition(|step| step.kind == Kind::Compaction);
        let mut first = 0;
        if let Some(latest) = latest
            && let Some((before, [compaction, ..])) = path.split_at_checked(latest)
        {
            let entry = body(compaction.node)?;
            let id = json::get(&entry, "firstKeptEntryId").and_then(json::string);
            let node = id.and_then(|id| find(&id));
            let kept = node.and_then(|node| before.iter().rposition(|step| step.node == node));
            first = kept.unwrap_or(latest);
        }
        Ok(Self { latest, first })
    }

    /// The latest compaction.
    pub(crate) fn compaction<'p>(&self, path: &'p [PathStep]) -> Option<&'p PathStep> {
        path.get(self.latest?)
    }

    /// The entries that the compaction keeps, which are before it; none without a compaction.
    pub(crate) fn before<'p>(&self, path: &'p [PathStep]) -> &'p [PathStep] {
        let end = self.latest.unwrap_or_default();
        path.get(self.first..end).unwrap_or_default()
    }

    /// The entries after the compaction; the whole path without a compaction.
    pub(crate) fn after<'p>(&self, path: &'p [PathStep]) -> &'p [PathStep] {
        let start = self.latest.map_or(0, |latest| latest + 1);
        path.get(start..).unwrap_or_default()
    }

    /// The steps of `path` that may be messages of the context, in the order of the context.
    fn contributing<'p>(
        &self,
        path: &'p [PathStep],
    ) -> impl DoubleEndedIterator<Item = PathStep> + use<'p> {
        let before = self.before(path).iter();
        let before = before.filter(|step| contributes(step) && step.role != Role::System);
        let after = self.after(path).iter().filter(|step| contributes(step));
        let compaction = self.compaction(path).into_iter();
        compaction.chain(before).chain(after).copied()
    }

    /// The nodes whose bodies [`build_within`] may read: the entries that count, the settings, and the nearest answer
    /// before the entries that count.
    pub fn nodes<'p>(&self, path: &'p [PathStep]) -> impl Iterator<Item = Node> + use<'p> {
        let (earlier, counting) = path.split_at_checked(self.first).unwrap_or_default();
        let answer = earlier.iter().rfind(|step| is_answer(step));
        let settings = earlier
            .iter()
            .filter(|step| matches!(step.kind, Kind::ThinkingLevelChange | Kind::ModelChange));
        let steps = settings.chain(answer).chain(counting);
        steps.map(|step| step.node)
    }
}

/// The context at the end of `path`; an empty path has no messages. `kept` is the result of [`Kept::of`] for `path`.
///
/// `body` returns an entry as delivered: one JSON object, version 3, references resolved. It is called for some of
/// [`Kept::nodes`]: the entries of the context, and one or two settings. Before the kept part, `body` is called for at
/// most one message: the nearest answer, if no later entry names a model. Fails with the errors of `body`, and with
/// `responseTooLarge` as soon as the messages together have more than `max_bytes`, so that memory stays bounded.
pub fn build_within(
    path: &[PathStep],
    kept: Kept,
    format: Format,
    max_bytes: usize,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<Context, Error> {
    let edits = Edits::of(path, kept, body)?;
    let mut collected = MessageCollector::new(format);
    let (mut left, mut counted) = (max_bytes, 0);
    let mut fits = |collected: &MessageCollector| {
        let new = collected.messages.get(counted..).unwrap_or_default();
        let size = new.iter().map(Vec::len).sum();
        counted = collected.messages.len();
        left = left.checked_sub(size).ok_or_else(|| too_large(max_bytes))?;
        Ok::<_, Error>(())
    };
    for step in kept.contributing(path) {
        collected.push(&step, body(step.node)?, &edits);
        fits(&collected)?;
    }
    collected.close_calls();
    fits(&collected)?;
    let above = path.iter().enumerate().rev();
    let above = above.map(|(at, step)| (at >= kept.first, *step));
    Ok(Context {
        thinking_level: thinking_level(path, body)?,
        model: model(above, &collected, body)?,
        messages: collected.messages,
        entry_ids: collected.entry_ids,
    })
}

/// [`build_within`] without a limit.
#[cfg(test)]
pub(crate) fn build(
    path: &[PathStep],
    kept: Kept,
    format: Format,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<Context, Error> {
    build_within(path, kept, format, usize::MAX, body)
}

/// The entries of a context, in order: the latest compaction, the entries that it keeps (without system messages), then
/// the entries after it. Edits, settings and labels are included (semantics.md §1).
pub fn entries(path: &[PathStep], kept: Kept) -> impl Iterator<Item = &PathStep> {
    let before = kept.before(path).iter();
    let before = before.filter(|step| step.role != Role::System);
    let compaction = kept.compaction(path).into_iter();
    compaction.chain(before).chain(kept.after(path))
}

/// Thinking level and model at the end of `path`, as in [`build_within`].
pub fn settings(
    path: &[PathStep],
    kept: Kept,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<PathSettings, Error> {
    let above = path.iter().enumerate().rev();
    let above = above.map(|(at, step)| (at >= kept.first, *step));
    Ok(PathSettings {
        thinking_level: thinking_level(path, body)?,
        model: model(above, &MessageCollector::new(Format::Agent), body)?,
    })
}

/// The size of the context at the end of a path, in tokens: the provider's last count plus an estimate of later entries
/// (⌈characters/4⌉, 1,200 for an image). A count of another context is ignored: a count from before a compaction or an
/// edit, or a count copied from another branch. Bodies are read one at a time, from the end, and no more than needed.
pub fn tokens(
    path: &[PathStep],
    kept: Kept,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<u64, Error> {
    let edits = Edits::of(path, kept, body)?;
    let mut since = 0;
    let mut is_believed = true;
    let mut add = |step: &PathStep, entry: Vec<u8>, is_believed: bool| -> Option<u64> {
        let entry = edits.apply(step.kind, step.role, entry)?;
        let messages = agent::messages(step.kind, step.role, &entry);
        for message in messages.iter().rev() {
            if is_believed && let Some(counted) = counted_tokens(&message.json) {
                return Some(counted + since);
            }
            since += content::estimated_tokens(message);
        }
        None
    };
    for step in kept.after(path).iter().rev() {
        if contributes(step) {
            let entry = body(step.node)?;
            is_believed &= json::get(&entry, "copiedFrom").is_none();
            if let Some(total) = add(step, entry, is_believed) {
                return Ok(total);
            }
        }
        is_believed &= step.kind != Kind::ContextEdit;
    }
    let before = kept.contributing(path).rev();
    for step in before.skip(
        kept.after(path)
            .iter()
            .filter(|step| contributes(step))
            .count(),
    ) {
        add(&step, body(step.node)?, false);
    }
    Ok(since)
}

/// Converts a message of [`Format::Agent`] to [`Format::Llm`]; `None` if no model sees it.
pub fn for_model(message: &[u8]) -> Option<Vec<u8>> {
    llm::convert(agent_message(message)).map(|message| message.json)
}

fn agent_message(message: &[u8]) -> AgentMessage {
    let role = json::get(message, "role").and_then(json::string);
    AgentMessage {
        role: role.map_or(Role::None, |role| Role::of(&role)),
        json: message.to_vec(),
    }
}

/// The tokens that the provider counted for an assistant message; `None` if the message failed or was aborted.
fn counted_tokens(message: &[u8]) -> Option<u64> {
    let text = |name: &str| json::get(message, name).and_then(json::string);
    if text("role").as_deref() != Some("assistant")
        || matches!(text("stopReason").as_deref(), Some("aborted" | "error"))
    {
        return None;
    }
    let usage = json::get(message, "usage")?;
    let number = |name: &str| json::get(usage, name).map_or(0, crate::stats::whole);
    let total = match number("totalTokens") {
        0 => number("input") + number("output") + number("cacheRead") + number("cacheWrite"),
        total => total,
    };
    (total > 0).then_some(total)
}

/// The system messages of the context at the end of a path, in order. Reads only their bodies.
pub fn system_messages(
    path: &[PathStep],
    kept: Kept,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<Vec<Vec<u8>>, Error> {
    let edits = Edits::of(path, kept, body)?;
    let mut collected = MessageCollector::new(Format::Agent);
    for step in kept.contributing(path) {
        if step.role == Role::System || step.kind == Kind::Compaction {
            collected.push(&step, body(step.node)?, &edits);
        }
    }
    Ok(collected.messages)
}

fn too_large(max_bytes: usize) -> Error {
    Error::new(
        ErrorKind::ResponseTooLarge,
        format!(
            "the context has more than the {max_bytes} bytes the client takes: read it in pages \
             with get_entries, or compact it"
        ),
    )
}

/// Kind and role of a delivered entry, for callers without a [`PathStep`]; `None` if it is not an entry.
pub(crate) fn kind_and_role(entry: &[u8]) -> Option<(Kind, Role)> {
    let Ok(Line::Entry(envelope)) = scan::scan_line(entry) else {
        return None;
    };
    let role = match envelope.facts {
        Facts::Message { role, .. } => role,
        _ => Role::None,
    };
    Some((envelope.kind, role))
}

impl Edits {
    /// The edits in the part of a path that counts.
    pub(crate) fn of(
        path: &[PathStep],
        kept: Kept,
        body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
    ) -> Result<Self, Error> {
        let mut edits = Self::default();
        for step in kept.before(path).iter().chain(kept.after(path)) {
            if step.kind == Kind::ContextEdit {
                edits.note(&body(step.node)?);
            }
        }
        Ok(edits)
    }

    /// Adds a `context_edit` entry. The entry has no effect without a target, or if its replacement is neither null nor
    /// an object with a content.
    pub fn note(&mut self, entry: &[u8]) {
        let Some(target) = json::get(entry, "targetId").and_then(json::string) else {
            return;
        };
        let edit = match json::get(entry, "replacement") {
            Some(b"null") => ContentEdit::LeaveOut,
            Some(replacement) => match json::get(replacement, "content") {
                Some(content) => ContentEdit::Content(content.to_vec()),
                None => return,
            },
            None => return,
        };
        self.0.insert(target.into_owned(), edit);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is an edit of `entry`.
    pub(crate) fn concerns(&self, entry: &[u8]) -> bool {
        !self.is_empty() && entry_id(entry).is_some_and(|id| self.0.contains_key(&*id))
    }

    /// `entry` after its edit, with all other bytes unchanged; `None` if the edit leaves it out. Content is
    /// replaced for the roles user, assistant, toolResult and custom only.
    pub(crate) fn apply(&self, kind: Kind, role: Role, entry: Vec<u8>) -> Option<Vec<u8>> {
        if self.is_empty() {
            return Some(entry);
        }
        let edit = entry_id(&entry).and_then(|id| self.0.get(&*id));
        match edit {
            None => Some(entry),
            Some(ContentEdit::LeaveOut) => None,
            Some(ContentEdit::Content(content)) => {
                Some(agent::with_content(kind, role, entry, content))
            }
        }
    }
}

/// Collects the messages, in order.
struct MessageCollector {
    format: Format,
    messages: Vec<Vec<u8>>,
    entry_ids: Vec<Option<String>>,
    /// With [`Format::Llm`], the calls that still need a result.
    open_calls: OpenCalls,
    /// The answers among the messages, each with the number of its message.
    answers: Vec<(Node, usize)>,
}

impl MessageCollector {
    fn new(format: Format) -> Self {
        Self {
            format,
            messages: Vec::new(),
            entry_ids: Vec::new(),
            open_calls: OpenCalls::default(),
            answers: Vec::new(),
        }
    }

    fn push(&mut self, step: &PathStep, entry: Vec<u8>, edits: &Edits) {
        let Some(entry) = edits.apply(step.kind, step.role, entry) else {
            return;
        };
        for message in agent::messages(step.kind, step.role, &entry) {
            let message = match self.format {
                Format::Agent => Some(message),
                Format::Llm => llm::convert(message).filter(|message| self.pair(message)),
            };
            if let Some(message) = message {
                if is_answer(step) {
                    self.answers.push((step.node, self.messages.len()));
                }
                self.messages.push(message.json);
                let id = entry_id(&entry).unwrap_or_default();
                self.entry_ids.push(Some(id.into_owned()));
            }
        }
    }

    /// Pairs calls with results up to `message`. Returns whether the message belongs to the context: a result without a
    /// call does not.
    fn pair(&mut self, message: &AgentMessage) -> bool {
        if calls::ends_calls(message.role) {
            self.close_calls();
        }
        match message.role {
            Role::Assistant => self.open_calls.open(&message.json),
            Role::ToolResult => return self.open_calls.answer(&message.json),
            _ => {}
        }
        true
    }

    /// Adds results for the calls that have none, before the next message or at the end of the context.
    fn close_calls(&mut self) {
        self.messages.extend(self.open_calls.close());
        self.entry_ids.resize(self.messages.len(), None);
    }
}

/// Whether an entry of this kind can be a message at this position of the path. Of several compactions, only the latest
/// compaction can be a message; the caller handles this compaction.
fn contributes(step: &PathStep) -> bool {
    matches!(
        step.kind,
        Kind::Message | Kind::CustomMessage | Kind::BranchSummary
    )
}

fn entry_id(entry: &[u8]) -> Option<Cow<'_, str>> {
    json::get(entry, "id").and_then(json::string)
}

fn thinking_level(
    path: &[PathStep],
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<String, Error> {
    for step in path.iter().rev() {
        if step.kind == Kind::ThinkingLevelChange {
            let entry = body(step.node)?;
            if let Some(level) = json::get(&entry, "thinkingLevel").and_then(json::string) {
                return Ok(level.into_owned());
            }
        }
    }
    Ok("off".to_owned())
}

/// Provider and model id as last used or set at or above a leaf, without building the context. `above`
/// leads from the leaf to the root and is read only as far as needed.
pub fn current_model(
    above: impl Iterator<Item = PathStep>,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<Option<(String, String)>, Error> {
    let above = above.map(|step| (true, step));
    model(above, &MessageCollector::new(Format::Agent), body)
}

/// The model last used or set. `above` leads to the root, and says for each step whether the step is in the context.
/// Entries that name no model are skipped. Of the answers before the context only the nearest one is read.
fn model(
    above: impl Iterator<Item = (bool, PathStep)>,
    collected: &MessageCollector,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<Option<(String, String)>, Error> {
    let mut answers = collected.answers.iter().rev().peekable();
    let mut asked = false;
    for (is_inside, step) in above {
        let model = if let Some((_, at)) = answers.next_if(|(node, _)| *node == step.node) {
            let message = collected.messages.get(*at);
            message.and_then(|message| named_model(message, "model"))
        } else if step.kind == Kind::ModelChange {
            named_model(&body(step.node)?, "modelId")
        } else if is_answer(&step) && (is_inside || !asked) {
            asked |= !is_inside;
            let entry = body(step.node)?;
            json::get(&entry, "message").and_then(|message| named_model(message, "model"))
        } else {
            None
        };
        if model.is_some() {
            return Ok(model);
        }
    }
    Ok(None)
}

fn is_answer(step: &PathStep) -> bool {
    step.kind == Kind::Message && step.role == Role::Assistant
}

/// The members `provider` and `model`.
fn named_model(object: &[u8], model: &str) -> Option<(String, String)> {
    let text = |name| Some(json::string(json::get(object, name)?)?.into_owned());
    Some((text("provider")?, text(model)?))
}
