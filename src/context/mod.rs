//! What the model sees: a path of the tree → the messages of its context (semantics.md §1).
//!
//! Owns which entries of a path count (the latest compaction, context edits, settings) and which
//! bodies are asked for. Pure: bodies come from the caller. How one entry becomes messages is in
//! [`agent`], how those become messages a provider takes in [`llm`], and what a message's content
//! says in [`content`]. It does not know which position a client asked for.

pub mod agent;
pub mod content;
pub mod llm;

#[cfg(test)]
mod tests;

use crate::entry::{Facts, Kind, Line, Role, scan};
use crate::error::{Error, Kind as ErrorKind};
use crate::json;
use crate::tree::Node;
use std::borrow::Cow;
use std::collections::HashMap;

/// One entry of the path, root to leaf, snapshotted from the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    pub node: Node,
    pub kind: Kind,
    pub role: Role,
}

/// Which roles the messages may have (semantics.md §1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As stored, with the roles `branchSummary`, `compactionSummary`, `custom`, `bashExecution`
    /// and any unknown one.
    Agent,
    /// `system`, `user`, `assistant` and `toolResult` only.
    Llm,
}

/// A context, ready to be handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// One JSON object each, stored ones byte for byte.
    pub messages: Vec<Vec<u8>>,
    /// The last one set on the path, else `off`.
    pub thinking_level: String,
    /// Provider and model id, as last used or set on the path.
    pub model: Option<(String, String)>,
    /// The entries the messages come from: one id per message, same order. A compaction's stands
    /// for its summary and for its system message.
    pub entry_ids: Vec<String>,
}

/// What is set where a path ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The last one set on the path, else `off`.
    pub thinking_level: String,
    /// Provider and model id, as last used or set on the path.
    pub model: Option<(String, String)>,
}

/// Context edits by target; the latest one noted wins.
#[derive(Debug, Default)]
pub struct Edits(HashMap<String, Edit>);

/// What a `context_edit` does to its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    LeaveOut,
    /// The new content, as raw JSON.
    Content(Vec<u8>),
}

/// Which part of a path counts: all of it, or what its latest compaction has kept and what has
/// come after that.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// Index of the latest compaction.
    latest: Option<usize>,
    /// Index of the first entry that counts; the compaction's own if nothing before it does.
    first: usize,
}

impl Kept {
    /// `body` is asked for the latest compaction, and fails this if it fails; `find` for the node
    /// of its `firstKeptEntryId`.
    pub fn of(
        path: &[Step],
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
    pub fn compaction<'p>(&self, path: &'p [Step]) -> Option<&'p Step> {
        path.get(self.latest?)
    }

    /// What counts of what stands before the compaction; nothing if there is none.
    pub fn before<'p>(&self, path: &'p [Step]) -> &'p [Step] {
        let end = self.latest.unwrap_or_default();
        path.get(self.first..end).unwrap_or_default()
    }

    /// What stands behind the compaction; the whole path if there is none.
    pub fn after<'p>(&self, path: &'p [Step]) -> &'p [Step] {
        let start = self.latest.map_or(0, |latest| latest + 1);
        path.get(start..).unwrap_or_default()
    }

    /// The steps that may be messages of the context, in its order.
    fn contributing<'p>(
        &self,
        path: &'p [Step],
    ) -> impl DoubleEndedIterator<Item = Step> + use<'p> {
        let before = self.before(path).iter();
        let before = before.filter(|step| contributes(step) && step.role != Role::System);
        let after = self.after(path).iter().filter(|step| contributes(step));
        let compaction = self.compaction(path).into_iter();
        compaction.chain(before).chain(after).copied()
    }

    /// The nodes whose bodies [`build`] may ask for: those that count, settings, and the nearest
    /// answer before.
    pub fn nodes<'p>(&self, path: &'p [Step]) -> impl Iterator<Item = Node> + use<'p> {
        let (earlier, counting) = path.split_at_checked(self.first).unwrap_or_default();
        let answer = earlier.iter().rfind(|step| is_answer(step));
        let settings = earlier
            .iter()
            .filter(|step| matches!(step.kind, Kind::ThinkingLevelChange | Kind::ModelChange));
        let steps = settings.chain(answer).chain(counting);
        steps.map(|step| step.node)
    }
}

/// The context at the end of `path`; an empty one has no messages. `kept` is [`Kept::of`] it.
///
/// `body` returns an entry as delivered: one JSON object, version 3, references resolved. It is
/// asked for some of [`Kept::nodes`]: the entries of the context, and one or two settings; never
/// for a message before the kept range, save the nearest answer if nothing after it names a model.
/// Fails only with what `body` fails with.
pub fn build(
    path: &[Step],
    kept: Kept,
    format: Format,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<Context, Error> {
    build_within(path, kept, format, usize::MAX, body)
}

/// As [`build`], but fails with `responseTooLarge` as soon as the messages have more than `max_bytes`
/// together: no more than that is ever held.
pub fn build_within(
    path: &[Step],
    kept: Kept,
    format: Format,
    max_bytes: usize,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<Context, Error> {
    let edits = Edits::of(path, kept, body)?;
    let mut collected = Collected::new(format);
    let mut left = max_bytes;
    for step in kept.contributing(path) {
        let known = collected.messages.len();
        collected.push(&step, body(step.node)?, &edits);
        let new = collected.messages.get(known..).unwrap_or_default();
        let size = new.iter().map(Vec::len).sum();
        left = left.checked_sub(size).ok_or_else(|| too_large(max_bytes))?;
    }
    let above = path.iter().enumerate().rev();
    let above = above.map(|(at, step)| (at >= kept.first, *step));
    Ok(Context {
        thinking_level: thinking_level(path, body)?,
        model: model(above, &collected, body)?,
        messages: collected.messages,
        entry_ids: collected.entry_ids,
    })
}

/// The entries a context is made of, in its order: the latest compaction, what it keeps without system
/// messages, then what follows; edits, settings and labels included (semantics.md §1).
pub fn entries(path: &[Step], kept: Kept) -> impl Iterator<Item = &Step> {
    let before = kept.before(path).iter();
    let before = before.filter(|step| step.role != Role::System);
    let compaction = kept.compaction(path).into_iter();
    compaction.chain(before).chain(kept.after(path))
}

/// Thinking level and model at the end of `path`, as [`build`] has them.
pub fn settings(
    path: &[Step],
    kept: Kept,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<Settings, Error> {
    let above = path.iter().enumerate().rev();
    let above = above.map(|(at, step)| (at >= kept.first, *step));
    Ok(Settings {
        thinking_level: thinking_level(path, body)?,
        model: model(above, &Collected::new(Format::Agent), body)?,
    })
}

/// The size of the context at the end of a path in tokens: what the provider counted last, and an
/// estimate of what has come since (⌈characters/4⌉, an image as 1,200). What it counted before a
/// compaction, before an edit, or up to a copy from another branch, was another context and is not
/// believed. Asks for bodies one at a time, from the end, and for no more than it needs.
pub fn tokens(
    path: &[Step],
    kept: Kept,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<u64, Error> {
    let edits = Edits::of(path, kept, body)?;
    let mut since = 0;
    let mut is_believed = true;
    let mut add = |step: &Step, entry: Vec<u8>, is_believed: bool| -> Option<u64> {
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

/// What the provider counted with an assistant message that ended well.
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

/// The system messages of the context at the end of a path, in order. Asks for their bodies alone.
pub fn system_messages(
    path: &[Step],
    kept: Kept,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<Vec<Vec<u8>>, Error> {
    let edits = Edits::of(path, kept, body)?;
    let mut collected = Collected::new(Format::Agent);
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

/// Kind and role of a delivered entry, for those who have no [`Step`]; `None` if it is no entry.
pub fn kind_and_role(entry: &[u8]) -> Option<(Kind, Role)> {
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
    /// Those on the part of a path that counts.
    pub fn of(
        path: &[Step],
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

    /// Takes in a `context_edit` entry. One without a target, or whose replacement is neither null
    /// nor an object with a content, changes nothing.
    pub fn note(&mut self, entry: &[u8]) {
        let Some(target) = json::get(entry, "targetId").and_then(json::string) else {
            return;
        };
        let edit = match json::get(entry, "replacement") {
            Some(b"null") => Edit::LeaveOut,
            Some(replacement) => match json::get(replacement, "content") {
                Some(content) => Edit::Content(content.to_vec()),
                None => return,
            },
            None => return,
        };
        self.0.insert(target.into_owned(), edit);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `entry` after its edit, otherwise byte for byte; `None` if it is left out. Content is
    /// replaced where the role is user, assistant, toolResult or custom, and nowhere else.
    pub fn apply(&self, kind: Kind, role: Role, entry: Vec<u8>) -> Option<Vec<u8>> {
        if self.is_empty() {
            return Some(entry);
        }
        let edit = entry_id(&entry).and_then(|id| self.0.get(&*id));
        match edit {
            None => Some(entry),
            Some(Edit::LeaveOut) => None,
            Some(Edit::Content(content)) => Some(agent::with_content(kind, role, entry, content)),
        }
    }
}

/// The messages as they are gathered, in order.
struct Collected {
    format: Format,
    messages: Vec<Vec<u8>>,
    entry_ids: Vec<String>,
    /// The answers among the messages, and which message each one is.
    answers: Vec<(Node, usize)>,
}

impl Collected {
    fn new(format: Format) -> Self {
        Self {
            format,
            messages: Vec::new(),
            entry_ids: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn push(&mut self, step: &Step, entry: Vec<u8>, edits: &Edits) {
        let Some(entry) = edits.apply(step.kind, step.role, entry) else {
            return;
        };
        for message in agent::messages(step.kind, step.role, &entry) {
            let message = match self.format {
                Format::Agent => Some(message.json),
                Format::Llm => llm::convert(message),
            };
            if let Some(message) = message {
                if is_answer(step) {
                    self.answers.push((step.node, self.messages.len()));
                }
                self.messages.push(message);
                let id = entry_id(&entry).unwrap_or_default();
                self.entry_ids.push(id.into_owned());
            }
        }
    }
}

/// Whether an entry of this kind can be a message where it stands on the path. Of compactions only
/// the latest one is, and that is seen to apart.
fn contributes(step: &Step) -> bool {
    matches!(
        step.kind,
        Kind::Message | Kind::CustomMessage | Kind::BranchSummary
    )
}

fn entry_id(entry: &[u8]) -> Option<Cow<'_, str>> {
    json::get(entry, "id").and_then(json::string)
}

fn thinking_level(
    path: &[Step],
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

/// Provider and model id as last used or set at or above a leaf, without a context around it. `above` is
/// the way from the leaf to the root; it is not gone further than need be.
pub fn current_model(
    above: impl Iterator<Item = Step>,
    body: &mut dyn FnMut(Node) -> Result<Vec<u8>, Error>,
) -> Result<Option<(String, String)>, Error> {
    let above = above.map(|step| (true, step));
    model(above, &Collected::new(Format::Agent), body)
}

/// The model last used or set, `above` being the way to the root, and of each step whether it is in the
/// context. What names none is passed over; of the answers before the context only the nearest is asked.
fn model(
    above: impl Iterator<Item = (bool, Step)>,
    collected: &Collected,
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

fn is_answer(step: &Step) -> bool {
    step.kind == Kind::Message && step.role == Role::Assistant
}

/// The provider and the model, which is the member `model`.
fn named_model(object: &[u8], model: &str) -> Option<(String, String)> {
    let text = |name| Some(json::string(json::get(object, name)?)?.into_owned());
    Some((text("provider")?, text(model)?))
}
