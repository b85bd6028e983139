//! Makes the nodes of a session from its messages and parts.

use super::super::member::{Node, NodeKind, Parent, Place};
use super::super::value::mixed;
use super::record::{Info, Part, PartKind, Role};
use super::replay::{Message, Messages, Replay};
use hashbrown::{HashMap, HashSet};
use treelined_core::timestamp::Millis;

/// The most model steps of one message that become entries. The limit is needed because each entry is made from the
/// whole message.
const MOST_STEPS: usize = 256;

/// A message, with its position in the tree.
#[derive(Debug)]
struct Step<'a> {
    message: &'a Message,
    info: &'a Info,
    /// The index of the message before it. It is smaller than the index of this message.
    before: Option<usize>,
    /// The index of the last listed message on the path to this one.
    anchor: Option<usize>,
}

/// The messages of a session: first the messages in opencode's list, in order, then the messages that were removed
/// from the list.
#[derive(Debug)]
pub(super) struct Steps<'a> {
    all: Vec<Step<'a>>,
    listed: usize,
    indexes: HashMap<&'a str, usize>,
}

impl<'a> Steps<'a> {
    /// `reverted` is the message at which a pending revert begins. When it is removed, opencode removes all later
    /// messages too.
    pub(super) fn new(tables: &'a Messages, replay: &'a Replay, reverted: Option<&str>) -> Self {
        let removing = reverted.filter(|id| replay.is_removed(id));
        let is_leaving = |id: &str| removing.is_some_and(|removed| replay.is_after(id, removed));
        let listed = ordered(tables, |id| !is_leaving(id));
        let is_stored = |id: &str| tables.get(id).is_some_and(|message| message.info.is_some());
        let removed = ordered(&replay.messages, |id| !is_stored(id) || is_leaving(id));
        let both = listed.iter().chain(&removed).enumerate();
        let indexes: HashMap<&str, usize> = both
            .map(|(index, (message, _))| (&*message.id, index))
            .collect();
        let mut all: Vec<Step<'_>> = Vec::with_capacity(listed.len() + removed.len());
        for (index, (message, info)) in listed.iter().enumerate() {
            let before = index.checked_sub(1);
            all.push(Step {
                message,
                info,
                before,
                anchor: Some(index),
            });
        }
        for (message, info) in &removed {
            let before = replay
                .before(&message.id)
                .and_then(|id| indexes.get(id).copied());
            // With damaged times, a message could come before its predecessor.
            let before = before.filter(|before| *before < all.len());
            let anchor = before.and_then(|before| all.get(before)?.anchor);
            all.push(Step {
                message,
                info,
                before,
                anchor,
            });
        }
        Self {
            all,
            listed: listed.len(),
            indexes,
        }
    }

    fn end(&self) -> Option<usize> {
        self.listed.checked_sub(1)
    }
}

/// The messages that are complete and whose ids are wanted, ordered by creation time and id.
fn ordered(messages: &Messages, is_wanted: impl Fn(&str) -> bool) -> Vec<(&Message, &Info)> {
    let whole = messages.all.iter();
    let whole = whole.filter_map(|message| Some((message, message.info.as_ref()?)));
    let mut ordered: Vec<_> = whole
        .filter(|(message, _)| is_wanted(&message.id))
        .collect();
    ordered.sort_by(|one, other| order(*one).cmp(&order(*other)));
    ordered
}

fn order<'a>((message, info): (&'a Message, &Info)) -> (Millis, &'a str) {
    (info.created.unwrap_or_default(), &message.id)
}

/// Makes the nodes.
pub(super) struct Thread<'a> {
    steps: &'a Steps<'a>,
    pub(super) nodes: Vec<Node>,
    /// For each message, its first and its last node. If a message has no nodes, its last node is the last node of the
    /// message before it.
    first: Vec<Option<u32>>,
    last: Vec<Option<u32>>,
    /// The index of the message that may still grow.
    open: Option<usize>,
    keys: HashSet<Box<str>>,
}

/// The facts of a node, without its parent and message.
struct Draft {
    key: Box<str>,
    kind: NodeKind,
    time: Option<Millis>,
    places: Vec<Place>,
    note: Option<Box<str>>,
}

impl<'a> Thread<'a> {
    pub(super) fn new(steps: &'a Steps<'a>, may_grow: bool) -> Self {
        let open = steps.end().filter(|end| {
            let is_closed = steps.all.get(*end).is_some_and(is_closed);
            may_grow && !is_closed
        });
        Self {
            steps,
            nodes: Vec::new(),
            first: vec![None; steps.all.len()],
            last: vec![None; steps.all.len()],
            open,
            keys: HashSet::new(),
        }
    }

    /// Makes the nodes of all messages, ordered by time. A message comes after its predecessor.
    pub(super) fn emit(&mut self) {
        let steps = self.steps;
        let mut by_time: Vec<usize> = (0..steps.all.len()).collect();
        by_time.sort_by_key(|index| {
            steps
                .all
                .get(*index)
                .map(|step| order((step.message, step.info)))
        });
        let mut is_done = vec![false; steps.all.len()];
        let is_ready = |is_done: &[bool], step: &Step<'_>| {
            let before = step.before.and_then(|before| is_done.get(before));
            step.before.is_none() || before == Some(&true)
        };
        for index in by_time.into_iter().chain(0..steps.all.len()) {
            let Some((step, done)) = steps.all.get(index).zip(is_done.get(index)) else {
                continue;
            };
            if !done && is_ready(&is_done, step) {
                self.message(index, step);
                if let Some(done) = is_done.get_mut(index) {
                    *done = true;
                }
            }
        }
    }

    /// Whether the last answer, which may still grow, says that it is complete. This alone does not close the answer:
    /// in a fork, opencode copies a completed message before its parts. An interrupted message is complete too, but
    /// it has no end of its last step.
    pub(super) fn has_end_mark(&self) -> bool {
        let open = self.open.and_then(|open| self.steps.all.get(open));
        open.is_some_and(|step| step.info.is_completed)
    }

    /// The node at which opencode continues.
    pub(super) fn end(&self) -> Option<u32> {
        self.last_of(self.steps.end())
    }

    /// The node at which opencode continues if a revert to a message, or to a part of it, is pending.
    pub(super) fn leaf_of_revert(&self, message: &str, keeps_part: bool) -> Option<u32> {
        let index = self.steps.indexes.get(message).copied();
        match index.and_then(|index| self.steps.all.get(index)) {
            None => self.end(),
            Some(_) if keeps_part => self.last_of(index),
            Some(step) => self.last_of(step.before),
        }
    }

    fn last_of(&self, step: Option<usize>) -> Option<u32> {
        self.last.get(step?).copied().flatten()
    }

    fn message(&mut self, index: usize, step: &Step<'_>) {
        let drafts = match step.info.role {
            Role::User => user(step),
            Role::Assistant if step.info.is_summary && has_text(step) => vec![self.summary(step)],
            Role::Assistant => assistant(step),
            Role::Other => vec![draft(step, NodeKind::Custom, [])],
        };
        let fingerprint = fingerprint(step);
        let mut last = self.last_of(step.before);
        for (number, draft) in drafts.into_iter().enumerate() {
            let parent = last.map_or(Parent::Base, Parent::Node);
            let node = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
            let key = self.unique(draft.key, step.info.number);
            self.nodes.push(Node {
                key,
                parent,
                kind: draft.kind,
                time: draft.time,
                order: step.info.number,
                places: draft.places,
                fingerprint: match fingerprint {
                    0 => 0,
                    hash => mixed(hash, u64::try_from(number).unwrap_or(u64::MAX)),
                },
                note: draft.note,
                is_open: self.open == Some(index),
            });
            last = Some(node);
            if let Some(first) = self.first.get_mut(index) {
                first.get_or_insert(node);
            }
        }
        if let Some(slot) = self.last.get_mut(index) {
            *slot = last;
        }
    }

    /// The key, or another key if a damaged source has the same key twice.
    fn unique(&mut self, key: Box<str>, number: u64) -> Box<str> {
        let key = match self.keys.contains(&key) {
            true => format!("{key}#{number}.{}", self.nodes.len()).into_boxed_str(),
            false => key,
        };
        self.keys.insert(key.clone());
        key
    }

    /// The draft of a compaction: the message that requested it, and its summary.
    fn summary(&self, step: &Step<'_>) -> Draft {
        let request = step.before.and_then(|before| self.steps.all.get(before));
        let request = request.filter(|request| compaction(request).is_some());
        let part = request.and_then(compaction);
        let first_kept = part.and_then(|part| match &part.kind {
            PartKind::Compaction { first_kept } => first_kept.as_deref(),
            _ => None,
        });
        let first_kept = first_kept.and_then(|id| self.steps.indexes.get(id).copied());
        // A compaction can only keep messages that are earlier.
        let limit = request
            .and_then(|request| request.before)
            .and_then(|before| self.steps.all.get(before)?.anchor);
        let first_kept = first_kept.filter(|kept| Some(*kept) <= limit);
        let first_kept = first_kept.and_then(|kept| self.first.get(kept).copied().flatten());
        let asked = request.into_iter().flat_map(|request| {
            [request.info.place]
                .into_iter()
                .chain(part.map(|part| part.place))
        });
        let texts = step
            .message
            .parts
            .values()
            .filter(|part| matches!(part.kind, PartKind::Text { .. }));
        Draft {
            places: asked
                .chain([step.info.place])
                .chain(texts.map(|part| part.place))
                .collect(),
            ..draft(step, NodeKind::Compaction { first_kept }, [])
        }
    }
}

/// Whether an answer has all its parts. When opencode forks a session, it copies a completed message before its
/// parts.
fn is_closed(step: &Step<'_>) -> bool {
    let last = step.message.parts.values().next_back();
    step.info.is_completed
        && last.is_some_and(
            |part| matches!(part.kind, PartKind::StepFinish(reason) if reason == step.info.finish),
        )
}

/// The part that makes a message a request for a compaction.
fn compaction<'a>(step: &Step<'a>) -> Option<&'a Part> {
    let mut parts = step.message.parts.values();
    parts.find(|part| {
        step.info.role == Role::User && matches!(part.kind, PartKind::Compaction { .. })
    })
}

fn has_text(step: &Step<'_>) -> bool {
    let mut parts = step.message.parts.values();
    parts.any(|part| matches!(part.kind, PartKind::Text { .. }))
}

/// A draft with the id of its message as key. It is made from the message and some of its parts.
fn draft<'p>(step: &Step<'_>, kind: NodeKind, parts: impl IntoIterator<Item = &'p Part>) -> Draft {
    let places = parts.into_iter().map(|part| part.place);
    Draft {
        key: step.message.id.clone(),
        kind,
        time: step.info.created,
        places: [step.info.place].into_iter().chain(places).collect(),
        note: None,
    }
}

/// The drafts for a user's message: the text that the user has typed, and the text that opencode has added. The
/// request for a compaction has no draft, because its records belong to the draft of the summary.
fn user(step: &Step<'_>) -> Vec<Draft> {
    if compaction(step).is_some() {
        return Vec::new();
    }
    let parts = || step.message.parts.values();
    let typed = parts().filter(|part| {
        matches!(
            part.kind,
            PartKind::Text {
                is_synthetic: false
            } | PartKind::Image
                | PartKind::Subtask
        )
    });
    let added = parts().filter(|part| matches!(part.kind, PartKind::Text { is_synthetic: true }));
    let (typed, added): (Vec<_>, Vec<_>) = (typed.collect(), added.collect());
    match (typed.is_empty(), added.is_empty()) {
        (true, false) => vec![draft(step, NodeKind::Scaffolding, added)],
        (_, true) => vec![draft(step, NodeKind::User, typed)],
        (false, false) => {
            let key = format!("{}/1", step.message.id).into_boxed_str();
            let added = Draft {
                key,
                ..draft(step, NodeKind::Scaffolding, added)
            };
            vec![draft(step, NodeKind::User, typed), added]
        }
    }
}

/// The drafts for an answer. Each step of the model becomes a message with its calls, followed by the results.
fn assistant(step: &Step<'_>) -> Vec<Draft> {
    let mut drafts = Vec::new();
    let retries = step
        .message
        .parts
        .values()
        .filter(|part| matches!(part.kind, PartKind::Retry));
    drafts.extend(retries.map(|part| Draft {
        key: part.id.clone(),
        places: vec![part.place],
        ..draft(step, NodeKind::Custom, [])
    }));
    let segments = segments(step.message);
    let count = segments.len();
    for (number, segment) in segments.into_iter().enumerate() {
        let mut answer = draft(step, NodeKind::Assistant, segment.iter().copied());
        if number > 0 {
            answer.key = format!("{}/{number}", step.message.id).into_boxed_str();
        }
        answer.note = (number + 1 < count).then(|| "step".into());
        drafts.push(answer);
        for part in &segment {
            drafts.extend(spawned(step, part));
        }
        for part in segment {
            drafts.extend(result(step, part));
        }
    }
    drafts
}

/// The parts of an answer that have content, divided by steps of the model. There is at least one step, which may be
/// empty.
fn segments(message: &Message) -> Vec<Vec<&Part>> {
    let mut segments = vec![Vec::new()];
    let mut is_new_step = false;
    for part in message.parts.values() {
        match part.kind {
            PartKind::StepStart => is_new_step = true,
            PartKind::Text { .. } | PartKind::Reasoning | PartKind::Tool(_) | PartKind::Image => {
                let is_new_step = std::mem::take(&mut is_new_step) && segments.len() < MOST_STEPS;
                if is_new_step && segments.last().is_some_and(|segment| !segment.is_empty()) {
                    segments.push(Vec::new());
                }
                segments
                    .last_mut()
                    .into_iter()
                    .for_each(|segment| segment.push(part));
            }
            _ => {}
        }
    }
    segments
}

fn spawned(step: &Step<'_>, part: &Part) -> Option<Draft> {
    let tool = part.tool()?;
    let native_id = tool.spawned.clone()?;
    Some(Draft {
        key: part.id.clone(),
        kind: NodeKind::Subagent { native_id },
        time: step.info.created,
        places: vec![part.place],
        note: Some(tool.call_id.clone()),
    })
}

fn result(step: &Step<'_>, part: &Part) -> Option<Draft> {
    let tool = part.tool().filter(|tool| tool.has_result)?;
    Some(Draft {
        key: format!("{}/r:{}", step.message.id, tool.call_id).into_boxed_str(),
        kind: NodeKind::ToolResult,
        time: tool.ended.or(step.info.created),
        places: vec![part.place],
        note: None,
    })
}

/// The hash of role, time, texts and tools; 0 without a time.
fn fingerprint(step: &Step<'_>) -> u64 {
    let Some(created) = step.info.created else {
        return 0;
    };
    let role = match step.info.role {
        Role::User => 1,
        Role::Assistant => 2,
        Role::Other => 3,
    };
    let parts = step.message.parts.values().map(|part| part.content);
    let parts = parts.filter(|content| *content != 0);
    parts
        .fold(mixed(created.cast_unsigned(), role), mixed)
        .max(1)
}
