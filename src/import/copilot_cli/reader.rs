//! Reads the events of a session and makes its nodes.

use crate::member::{Member, Node, NodeKind, Parent, Place, Record, Spawner};
use crate::message::elements;
use crate::order::{Above, Hanging};
use crate::reader::Reader;
use crate::value::{RecordTypes, boxed, instant, is_blank, literal, text};
use hashbrown::{HashMap, HashSet};
use treelined_core::json;
use treelined_core::timestamp::Millis;
use xxhash_rust::xxh3::xxh3_64;

/// The most conversations of subagents in one file. The events of further subagents are kept only in the origin.
const MOST_AGENTS: usize = 4096;

/// An event without its data.
struct Event {
    id: Box<str>,
    number: u64,
    time: Option<Millis>,
    /// The index of the conversation: 0 for the main one.
    agent: usize,
    kind: EventKind,
    places: Vec<Place>,
    note: Option<Box<str>>,
}

#[derive(Clone, PartialEq, Eq)]
enum EventKind {
    Entry(NodeKind),
    /// The conversation begins again.
    Cleared,
    /// A compaction begins. Later messages are kept beside its summary.
    CompactionStart,
    Other,
}

/// The parent of the nodes that are below an event.
#[derive(Clone, Copy)]
enum Tip {
    Base,
    Node(u32),
    /// The parent is missing. This event names the parent.
    Missing(usize),
}

/// Reads the events of a session.
pub(super) struct EventReader {
    /// The id of a session whose events do not name the session.
    fallback: String,
    /// The main conversation, and the conversations of subagents.
    members: Vec<Member>,
    agents: HashMap<Box<str>, usize>,
    events: Vec<Event>,
    parents: Vec<Option<Box<str>>>,
    hanging: Hanging,
    types: RecordTypes,
    seen: HashSet<u64>,
    /// For each call without a result, the name of its tool.
    calls: HashMap<Box<str>, Box<str>>,
    /// The records of usage whose messages have not come yet, by the ids of their requests.
    usage: HashMap<Box<str>, Place>,
}

impl EventReader {
    pub(super) fn new(path: &str) -> Self {
        let mut names = path.rsplit('/');
        let name = names.next().unwrap_or(path);
        let fallback = match name {
            "events.jsonl" => names.next().unwrap_or(name),
            name => name.strip_suffix(".jsonl").unwrap_or(name),
        };
        Self {
            fallback: fallback.to_owned(),
            members: vec![Member::default()],
            agents: HashMap::new(),
            events: Vec::new(),
            parents: Vec::new(),
            hanging: Hanging::default(),
            types: RecordTypes::default(),
            seen: HashSet::new(),
            calls: HashMap::new(),
            usage: HashMap::new(),
        }
    }

    fn event(&mut self, record: &Record<'_>) {
        let names = ["type", "data", "id", "parentId", "timestamp", "agentId"];
        let [kind, data, id, parent, time, agent] = json::get_each(record.bytes, names);
        let label = text(kind).map_or_else(|| "no type".to_owned(), |kind| kind.into_owned());
        let Some(id) = boxed(id).filter(|id| !id.is_empty()) else {
            self.types.add(record.at, &label);
            return;
        };
        let is_repeated = self.hanging.find(&id).is_some();
        if !self.seen.insert(xxh3_64(record.bytes)) && is_repeated {
            if let Some(main) = self.members.first_mut() {
                main.duplicates += 1;
            }
            return;
        }
        self.types.add(record.at, &label);
        let time = instant(time);
        let data = data.unwrap_or(b"{}");
        let called = || json::get(data, "parentToolCallId");
        let found = self.agent(text(agent).or_else(|| text(called())).as_deref());
        let agent = found.unwrap_or_default();
        self.facts(agent, &label, data, time);
        let mut event = Event {
            id,
            number: record.number,
            time,
            agent,
            kind: EventKind::Other,
            places: vec![Place {
                at: record.at,
                len: record.bytes.len() as u64,
            }],
            note: None,
        };
        match is_repeated {
            true => event.kind = EventKind::Entry(NodeKind::Custom),
            false if found.is_some() => self.content(&label, data, &mut event),
            false => {}
        }
        let mut parent = boxed(parent);
        // An older version notes that this event and all later events were removed.
        if label == "session.snapshot_rewind" {
            let removed = text(json::get(data, "upToEventId"));
            let removed = removed.and_then(|id| self.hanging.find(&id));
            let above = removed.and_then(|number| self.parents.get(number).cloned());
            parent = above.unwrap_or(parent);
        }
        self.hanging.add(&event.id, parent.as_deref());
        self.parents.push(parent);
        self.events.push(event);
    }

    /// The conversation of an agent; `None` if there are too many.
    fn agent(&mut self, id: Option<&str>) -> Option<usize> {
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return Some(0);
        };
        if let Some(known) = self.agents.get(id) {
            return Some(*known);
        }
        if self.members.len() > MOST_AGENTS {
            return None;
        }
        let number = self.members.len();
        self.agents.insert(id.into(), number);
        self.members.push(Member {
            part_id: id.to_owned(),
            spawned_by: Some(Spawner::default()),
            ..Member::default()
        });
        Some(number)
    }

    /// Adds the facts that an event has about its conversation.
    fn facts(&mut self, agent: usize, label: &str, data: &[u8], time: Option<Millis>) {
        let names = ["sessionId", "context", "toolCallId", "agentDisplayName"];
        let [session, context, call, name] = json::get_each(data, names);
        if let Some(main) = self.members.first_mut()
            && label == "session.start"
            && let (true, Some(session)) = (main.native_id.is_empty(), text(session))
        {
            main.native_id = session.into_owned();
        }
        let Some(member) = self.members.get_mut(agent) else {
            return;
        };
        member.started = member.started.or(time);
        member.ended = member.ended.max(time);
        if let ("subagent.started", Some(spawner)) = (label, &mut member.spawned_by) {
            spawner.tool_call_id = text(call).map(|call| call.into_owned());
            member.title = text(name).map(|name| name.into_owned());
        }
        let place = match label {
            "session.start" | "session.resume" => context,
            "session.context_changed" => Some(data),
            _ => None,
        };
        let Some(place) = place else {
            return;
        };
        let owned = |raw: Option<&[u8]>| {
            let text = text(raw).filter(|text| !text.is_empty());
            text.map(|text| text.into_owned())
        };
        let [cwd, branch] = json::get_each(place, ["cwd", "branch"]);
        member.cwd = member.cwd.take().or_else(|| owned(cwd));
        member.git.branch = owned(branch).or(member.git.branch.take());
    }

    /// Sets the kind of an event, and the data that its entry needs.
    fn content(&mut self, label: &str, data: &[u8], event: &mut Event) {
        event.kind = match label {
            "user.message" if has_words(data, "content") || has_files(data) => {
                EventKind::Entry(match is_typed(data, event.agent > 0) {
                    true => NodeKind::User,
                    false => NodeKind::Scaffolding,
                })
            }
            "assistant.message" => self.answer(data, event),
            "tool.execution_complete" => {
                let call = boxed(json::get(data, "toolCallId")).unwrap_or_default();
                event.note = self.calls.remove(&call);
                EventKind::Entry(match event.note {
                    Some(_) => NodeKind::ToolResult,
                    None => NodeKind::Scaffolding,
                })
            }
            "system.notification" if has_words(data, "content") => {
                EventKind::Entry(NodeKind::Scaffolding)
            }
            "session.compaction_start" => EventKind::CompactionStart,
            "session.compaction_complete" if has_words(data, "summaryContent") => {
                EventKind::Entry(NodeKind::Compaction { first_kept: None })
            }
            "session.context_cleared" => EventKind::Cleared,
            "session.model_change" if has_words(data, "newModel") => {
                EventKind::Entry(NodeKind::ModelChange)
            }
            "session.error" | "abort" => EventKind::Entry(NodeKind::Custom),
            "session.usage_record" => {
                let request = json::get_path(data, &["usage", "apiCallId"]);
                let place = event.places.first().copied();
                if let (Some(request), Some(place)) = (boxed(request), place) {
                    self.usage.insert(request, place);
                }
                EventKind::Other
            }
            _ => EventKind::Other,
        };
    }

    fn answer(&mut self, data: &[u8], event: &mut Event) -> EventKind {
        let [calls, request] = json::get_each(data, ["toolRequests", "apiCallId"]);
        let mut has_calls = false;
        for call in calls.into_iter().flat_map(elements) {
            let [id, name] = json::get_each(call, ["toolCallId", "name"]);
            has_calls = true;
            let name = boxed(name).unwrap_or_default();
            self.calls.insert(boxed(id).unwrap_or_default(), name);
        }
        if !has_calls && !has_words(data, "content") && !has_words(data, "reasoningText") {
            return EventKind::Other;
        }
        let usage = text(request).and_then(|request| self.usage.remove(&*request));
        event.places.extend(usage);
        EventKind::Entry(NodeKind::Assistant)
    }

    /// Makes the nodes of all conversations. Returns, for each event, the parent of the nodes that are below the event.
    fn emit(&mut self) -> Vec<Tip> {
        let mut tips = vec![Tip::Base; self.events.len()];
        // The last node of each conversation of a subagent. The events of a subagent follow each other.
        let mut last: Vec<Tip> = vec![Tip::Base; self.members.len()];
        // For each conversation, the number of nodes when a compaction began.
        let mut compacting: Vec<Option<usize>> = vec![None; self.members.len()];
        for (number, above) in self.hanging.order() {
            let above = match above {
                Above::Nothing => Tip::Base,
                Above::Missing => Tip::Missing(number),
                Above::Record(parent) => tips.get(parent).copied().unwrap_or(Tip::Base),
            };
            let Some(event) = self.events.get(number) else {
                continue;
            };
            let (agent, kind) = (event.agent, event.kind.clone());
            let from = match agent {
                0 => above,
                agent => last.get(agent).copied().unwrap_or(Tip::Base),
            };
            let start = compacting.get_mut(agent);
            let tip = match kind {
                EventKind::Entry(_) => self.node(number, from, start),
                EventKind::Cleared => Tip::Base,
                EventKind::CompactionStart => {
                    if let Some(start) = start {
                        *start = self.members.get(agent).map(|member| member.nodes.len());
                    }
                    from
                }
                EventKind::Other => from,
            };
            if let Some(slot) = last.get_mut(agent) {
                *slot = tip;
            }
            if let Some(slot) = tips.get_mut(number) {
                *slot = if agent == 0 { tip } else { above };
            }
        }
        for (member, tip) in self.members.iter_mut().zip(last).skip(1) {
            if let Tip::Node(leaf) = tip {
                member.leaf = Some(leaf);
            }
        }
        tips
    }

    /// Adds the node of an event below `from`.
    fn node(&mut self, number: usize, from: Tip, compacting: Option<&mut Option<usize>>) -> Tip {
        let Some(event) = self.events.get_mut(number) else {
            return from;
        };
        let EventKind::Entry(mut kind) = event.kind.clone() else {
            return from;
        };
        let Some(member) = self.members.get_mut(event.agent) else {
            return from;
        };
        let Ok(at) = u32::try_from(member.nodes.len()) else {
            return from;
        };
        if let NodeKind::Compaction { first_kept } = &mut kind {
            let start = compacting.and_then(Option::take);
            *first_kept = start.and_then(|start| first_since(start, from, &member.nodes));
        }
        // A later event with the same id has a separate entry.
        let key = match self.hanging.find(&event.id) {
            Some(first) if first != number => format!("{}/{number}", event.id).into(),
            _ => event.id.clone(),
        };
        let parent = match from {
            Tip::Base => Parent::Base,
            Tip::Node(at) => Parent::Node(at),
            Tip::Missing(number) => {
                let parent = self.parents.get(number).cloned().flatten();
                parent.map_or(Parent::Base, Parent::Key)
            }
        };
        let node = Node {
            key,
            parent,
            kind,
            time: event.time,
            order: event.number,
            places: std::mem::take(&mut event.places),
            fingerprint: 0,
            note: event.note.take(),
            is_open: false,
        };
        member.nodes.push(node);
        Tip::Node(at)
    }
}

impl Reader for EventReader {
    fn record(&mut self, record: Record<'_>) {
        self.event(&record);
    }

    fn finish(mut self: Box<Self>) -> Vec<Member> {
        let tips = self.emit();
        let Self {
            fallback,
            mut members,
            events,
            hanging,
            types,
            ..
        } = *self;
        let Some((main, agents)) = members.split_first_mut() else {
            return Vec::new();
        };
        if let Some(Tip::Node(leaf)) = tips.last() {
            main.leaf = Some(*leaf);
        }
        if main.native_id.is_empty() {
            main.native_id = fallback;
        }
        main.part_id.clone_from(&main.native_id);
        let names = events.iter().zip(&tips).enumerate();
        let aliases = names.filter_map(|(number, (event, tip))| match tip {
            Tip::Node(at)
                if !matches!(event.kind, EventKind::Entry(_))
                    && event.agent == 0
                    && hanging.find(&event.id) == Some(number) =>
            {
                Some((event.id.clone(), *at))
            }
            _ => None,
        });
        main.aliases = aliases.collect();
        for member in agents.iter_mut() {
            // The id of an agent is unique only within its session.
            member.native_id = format!("{}/{}", main.native_id, member.part_id);
            member.part_id.clone_from(&member.native_id);
            member.cwd.clone_from(&main.cwd);
            if let Some(spawner) = &mut member.spawned_by {
                spawner.native_id.clone_from(&main.native_id);
            }
        }
        let nodes = members.iter().flat_map(|member| &member.nodes);
        let used = nodes.flat_map(|node| node.places.iter().map(|place| place.at));
        let unused = types.unused(used.collect());
        if let Some(main) = members.first_mut() {
            main.origin_only = unused;
        }
        let mut is_main = true;
        members.retain(|member| std::mem::take(&mut is_main) || !member.nodes.is_empty());
        members
    }
}

/// The first node above `from` whose index is at least `start`.
fn first_since(start: usize, from: Tip, nodes: &[Node]) -> Option<u32> {
    let mut first = None;
    let mut tip = from;
    while let Tip::Node(at) = tip {
        let number = usize::try_from(at).ok().filter(|number| *number >= start)?;
        first = Some(at);
        tip = match nodes.get(number).map(|node| &node.parent) {
            Some(Parent::Node(parent)) if (*parent as usize) >= start => Tip::Node(*parent),
            _ => break,
        };
    }
    first
}

/// Whether a member is a text that an entry can show.
fn has_words(data: &[u8], name: &str) -> bool {
    literal(json::get(data, name)).is_some_and(|raw| !is_blank(raw))
}

fn has_files(data: &[u8]) -> bool {
    let files = json::get(data, "attachments");
    files.is_some_and(|files| elements(files).next().is_some())
}

/// Whether the user has typed a message. In a subagent, the text from the call that spawned it counts as typed.
fn is_typed(data: &[u8], is_subagent: bool) -> bool {
    let [source, is_continuation] = json::get_each(data, ["source", "isAutopilotContinuation"]);
    let source = text(source);
    is_continuation != Some(b"true")
        && match source.as_deref() {
            None | Some("" | "user") => true,
            Some(source) => is_subagent && source.starts_with("agent-"),
        }
}
