//! Pairs of a better and a worse answer to the same prompt, for preference training.
//!
//! [`alternatives`] finds the answers to the same prompt, and [`judgement`] decides which answer is better.

mod alternatives;
mod judgement;

use super::budget::too_large;
use super::chat::{CallForm, Message, Tools};
use super::json::{key, text, text_or_null};
use super::reading::DataReader;
use super::sft::{push_messages, push_tools};
use super::steps::{Step, Steps, is_setting};
use alternatives::Said;
use judgement::{Judged, Judgement, Origin, Pair, Remark};
use sha2::{Digest, Sha256};
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::tree::{Node, Tree};
use treelined_files::log::body::{Bodies, Fetch};

/// The labels and the notes of a session.
pub(super) struct Remarks {
    labels: Vec<LabelRemark>,
    /// The notes in file order, each with the step at or above it.
    notes: Vec<(Fetch, Option<Node>)>,
}

struct LabelRemark {
    entry: Node,
    entry_id: String,
    about: Node,
    text: String,
    is_good: bool,
}

impl Remarks {
    pub(super) fn take(tree: &Tree, bodies: &Bodies) -> Result<Self> {
        let mut labels = Vec::new();
        for (node, label) in tree.labels() {
            let about = tree.skip_bookkeeping(Some(node));
            if let (Some(is_good), Some(about)) = (judgement::verdict(&label.text), about) {
                labels.push(LabelRemark {
                    entry: label.entry,
                    entry_id: tree.id(label.entry).to_owned(),
                    about,
                    text: label.text.to_string(),
                    is_good,
                });
            }
        }
        let notes = tree.entries().filter(|node| tree.kind(*node) == Kind::Note);
        let notes = notes.map(|node| {
            let above = tree.skip_bookkeeping(Some(node));
            Ok((bodies.fetch(tree, node)?, above))
        });
        Ok(Self {
            labels,
            notes: notes.collect::<Result<_>>()?,
        })
    }
}

/// The judged pairs of the exported part, and the number of bytes of their paths.
pub(super) struct Pairs {
    pairs: Vec<FoundPair>,
    bytes: u64,
}

struct FoundPair {
    pair: Pair,
    /// The last message of each answer.
    ends: [Node; 2],
    bytes: u64,
}

impl Pairs {
    /// Finds the pairs. Fails if their paths together have more than `limit` bytes.
    pub(super) fn find(reader: &mut DataReader<'_>, remarks: &Remarks, limit: u64) -> Result<Self> {
        let steps = reader.steps;
        let groups = alternatives::find(steps, &mut |question| said(reader, question))?;
        let judged = Judged::new(steps, &groups);
        let mut found: Vec<Remark> = Vec::new();
        for label in &remarks.labels {
            found.push(Remark {
                entry: label.entry,
                about: label.about,
                is_good: label.is_good,
                chosen: None,
                judgement: Judgement {
                    origin: Origin::Label,
                    entry_id: Some(label.entry_id.clone()),
                    reason: Some(reader.clean(&label.text)),
                    by: None,
                },
            });
        }
        for (fetch, place) in &remarks.notes {
            let note = reader.look(fetch)?;
            let remark = judgement::of_note(steps, &judged, fetch.node, &note.json, *place);
            if remark.is_some() {
                reader.count(fetch.node, &note);
            }
            found.extend(remark);
        }
        let turns = Turns::new(steps);
        let mut pairs = Vec::new();
        for pair in judged.pairs(steps, found) {
            let ends = [turns.end(pair.chosen), turns.end(pair.rejected)];
            if let [Some(chosen), Some(rejected)] = ends {
                pairs.push(FoundPair {
                    pair,
                    ends: [chosen.node, rejected.node],
                    bytes: chosen.path_bytes + rejected.path_bytes,
                });
            }
        }
        let bytes = pairs.iter().map(|found| found.bytes).sum();
        if bytes > limit {
            return Err(too_large(&format!("{} pairs", pairs.len()), bytes, limit));
        }
        Ok(Self { pairs, bytes })
    }

    /// The number of bytes of all paths.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Passes each line to `take`, with the number of bytes of its paths. A pair has no line if the texts of its
    /// prompts differ, or if its answers are the same.
    pub(super) fn each(
        &self,
        reader: &mut DataReader<'_>,
        session_id: &str,
        take: &mut dyn FnMut(Option<Vec<u8>>, u64) -> Result<()>,
    ) -> Result<()> {
        let mut known: Option<(Node, Answered)> = None;
        for FoundPair { pair, ends, bytes } in &self.pairs {
            let [chosen_end, rejected_end] = ends;
            if known.as_ref().is_none_or(|(node, _)| *node != pair.chosen) {
                known = Some((
                    pair.chosen,
                    Answered::read(reader, pair.chosen, *chosen_end)?,
                ));
            }
            let rejected = Answered::read(reader, pair.rejected, *rejected_end)?;
            let chosen = known.as_ref().map(|(_, chosen)| chosen);
            let line =
                chosen.and_then(|chosen| line(session_id, &pair.judgement, chosen, &rejected));
            take(line, *bytes)?;
        }
        Ok(())
    }
}

/// The hash of the content of a user message. Different JSON for the same content has the same hash.
fn said(reader: &mut DataReader<'_>, question: &Step) -> Result<Said> {
    let entry = reader.look(&question.fetch)?.json;
    let mut chat = Vec::new();
    Message::of(json::get(&entry, "message").unwrap_or_default())
        .push(&mut chat, CallForm::Function);
    Ok(Sha256::digest(&chat).into())
}

/// Finds where the turns of assistants end.
struct Turns<'s> {
    steps: &'s Steps,
    /// For each node, by its number: the child step with which the conversation continues.
    next: Vec<Option<Node>>,
}

impl<'s> Turns<'s> {
    fn new(steps: &'s Steps) -> Self {
        let mut next: Vec<Option<Node>> = vec![None; steps.node_count()];
        let rank = |step: &Step| (step.is_active, !step.is_archived, step.node);
        for step in steps.in_order() {
            let begins_in_background = step.begins && step.is_background;
            let Some(above) = step.above.filter(|_| !begins_in_background) else {
                continue;
            };
            let Some(slot) = next.get_mut(above.number()) else {
                continue;
            };
            let former = slot.and_then(|node| steps.get(node));
            if former.is_none_or(|former| rank(former) < rank(step)) {
                *slot = Some(step.node);
            }
        }
        Self { steps, next }
    }

    /// The last whole message of the turn that begins with `answer`. The turn ends before the next user message. `None`
    /// if the turn broke off.
    fn end(&self, answer: Node) -> Option<&'s Step> {
        let mut at = self.steps.get(answer)?;
        let mut end = at;
        while let Some(next) = self.next.get(at.node.number()).copied().flatten() {
            at = self.steps.get(next)?;
            let is_turn =
                at.kind == Kind::Message && matches!(at.role, Role::Assistant | Role::ToolResult);
            if !is_turn && !is_setting(at.kind) {
                break;
            }
            if at.kind == Kind::Message && at.role == Role::Assistant {
                end = at;
            }
        }
        Some(end).filter(|end| end.is_answer())
    }
}

/// An answer together with its prompt.
struct Answered {
    id: String,
    prompt_id: Option<String>,
    messages: Vec<Vec<u8>>,
    /// The number of messages before the answer.
    prompt: usize,
}

impl Answered {
    fn read(reader: &mut DataReader<'_>, answer: Node, end: Node) -> Result<Self> {
        let entry = reader.step(answer)?;
        let id = json::get(&entry, "id")
            .and_then(json::id)
            .unwrap_or_default()
            .into_owned();
        let context = reader.context(end)?;
        let last = context.entry_ids.iter().rposition(Option::is_some);
        let mut messages = context.messages;
        messages.truncate(last.map_or(0, |last| last + 1));
        let is_it = |at: &Option<String>| at.as_deref() == Some(&*id);
        let prompt = context
            .entry_ids
            .iter()
            .position(is_it)
            .unwrap_or(messages.len());
        let before = context.entry_ids.get(..prompt).unwrap_or_default();
        Ok(Self {
            prompt_id: before.iter().rev().flatten().next().cloned(),
            id,
            messages,
            prompt,
        })
    }

    /// The messages of the prompt and of the answer, in the form for the export.
    fn written(&self) -> [Vec<u8>; 2] {
        let (prompt, answer) = self
            .messages
            .split_at_checked(self.prompt)
            .unwrap_or_default();
        [prompt, answer].map(|messages| {
            let mut out = Vec::new();
            push_messages(&mut out, messages);
            out
        })
    }

    fn says_anything(&self) -> bool {
        let answer = self.messages.get(self.prompt..).unwrap_or_default();
        answer.iter().any(|message| {
            let message = Message::of(message);
            message.role == "assistant" && message.says_anything()
        })
    }
}

fn line(
    session_id: &str,
    judgement: &Judgement,
    chosen: &Answered,
    rejected: &Answered,
) -> Option<Vec<u8>> {
    let [prompt, better] = chosen.written();
    let [same_prompt, worse] = rejected.written();
    if prompt != same_prompt || prompt == b"[]" || better == worse {
        return None;
    }
    if !chosen.says_anything() || !rejected.says_anything() {
        return None;
    }
    let mut out = vec![b'{'];
    for (name, messages) in [("prompt", prompt), ("chosen", better), ("rejected", worse)] {
        key(&mut out, name);
        out.extend_from_slice(&messages);
    }
    push_tools(&mut out, &Tools::of(&chosen.messages));
    key(&mut out, "judgement");
    out.push(b'{');
    text(&mut out, "origin", judgement.origin.name());
    text_or_null(&mut out, "entry_id", judgement.entry_id.as_deref());
    text_or_null(&mut out, "reason", judgement.reason.as_deref());
    text_or_null(&mut out, "by", judgement.by.as_deref());
    out.push(b'}');
    text(&mut out, "session_id", session_id);
    text_or_null(&mut out, "prompt_id", chosen.prompt_id.as_deref());
    text(&mut out, "chosen_id", &chosen.id);
    text(&mut out, "rejected_id", &rejected.id);
    out.extend_from_slice(b"}\n");
    Some(out)
}
