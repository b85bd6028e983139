//! Makes members from turns: the nodes of each turn, and the subagents of the source.

use super::map::{DUPLICATE, result_note};
use super::record::{CallResult, Role};
use super::source::{self, Parentage, Source, Thread, TreeRecord};
use super::turn::{Anchor, Turn, TurnKind, TurnResult};
use crate::member::{Member, Node, NodeKind, Parent, Place, Spawner};
use hashbrown::{HashMap, HashSet};

/// The members of a source: the main conversation, and then the conversations of subagents. Without a main
/// conversation, the first member is the conversation of the first subagent.
pub(super) fn members(source: &Source, turns: &[Turn], anchors: &[Anchor]) -> Vec<Member> {
    let by_prompt = prompts(source);
    let mut writer = Writer {
        source,
        agents: agents(source, &by_prompt),
        members: source
            .threads
            .iter()
            .map(|_| MemberWriter::default())
            .collect(),
        spawners: HashMap::new(),
        ends: vec![None; turns.len()],
        firsts: vec![None; turns.len()],
    };
    for (at, turn) in turns.iter().enumerate() {
        writer.turn(at, turn);
    }
    writer.name_aliases(anchors);
    writer.find_leaves(anchors);
    let spawners = writer.spawners;
    let written = writer.members.into_iter().zip(&source.threads).enumerate();
    let members = written.map(|(index, (written, thread))| {
        let mut member = written.member;
        describe(source, index, &mut member);
        if index > 0 {
            let call = spawning_call(thread, &by_prompt).or(source.agent_call.as_deref());
            let known = thread.agent.as_ref().and_then(|agent| spawners.get(agent));
            let trunk = (0, call.map(Into::into));
            let (parent, tool_call_id) = known.cloned().unwrap_or(trunk);
            member.spawned_by = Some(Spawner {
                native_id: native_id(source, parent),
                tool_call_id,
            });
        }
        member
    });
    let mut members: Vec<Member> = members
        .enumerate()
        .filter(|(index, member)| *index == 0 || !member.nodes.is_empty())
        .map(|(_, member)| member)
        .collect();
    if members.len() > 1 && members.first().is_some_and(|main| main.nodes.is_empty()) {
        members.remove(0);
    }
    members
}

/// The ids of the calls that spawn subagents, by the hashes of their prompts.
fn prompts(source: &Source) -> HashMap<u64, &str> {
    let mut by_prompt = HashMap::new();
    for record in source.records.iter().filter(|record| record.thread == 0) {
        if let Role::Assistant { calls, .. } = &record.role {
            let prompted = calls
                .iter()
                .filter_map(|call| Some((call.prompt?, &*call.id)));
            by_prompt.extend(prompted);
        }
    }
    by_prompt
}

/// For each call, by its id: the subagents that it has spawned.
fn agents<'a>(
    source: &'a Source,
    by_prompt: &HashMap<u64, &'a str>,
) -> HashMap<&'a str, Vec<&'a str>> {
    let mut agents: HashMap<&'a str, Vec<&'a str>> = HashMap::new();
    for thread in source.threads.iter().skip(1) {
        let call = spawning_call(thread, by_prompt);
        if let (Some(call), Some(agent)) = (call, &thread.agent) {
            agents.entry(call).or_default().push(agent);
        }
    }
    agents
}

fn spawning_call<'a>(thread: &'a Thread, by_prompt: &HashMap<u64, &'a str>) -> Option<&'a str> {
    let prompted = || by_prompt.get(&thread.prompt?).copied();
    thread.call.as_deref().or_else(prompted)
}

fn native_id(source: &Source, thread: usize) -> String {
    let session = &source.session;
    let agent = source
        .threads
        .get(thread)
        .and_then(|thread| thread.agent.as_ref());
    match agent {
        Some(agent) => format!("{session}/agent-{agent}"),
        None => session.to_string(),
    }
}

/// Sets the id, the directory, the title and the times of a member.
fn describe(source: &Source, index: usize, member: &mut Member) {
    member.native_id = native_id(source, index);
    member.part_id = member.native_id.clone();
    member.cwd = source.cwd.clone();
    member.git.branch.clone_from(&source.git_branch);
    if index == 0 {
        member.base = source::base(source);
        member.title = source.title.clone();
        member.started = source.started;
        member.ended = source.ended;
        return;
    }
    let times = || member.nodes.iter().filter_map(|node| node.time);
    (member.started, member.ended) = (times().min(), times().max());
    member.title = source.agent_title.clone();
}

#[derive(Default)]
struct MemberWriter {
    member: Member,
    keys: HashSet<Box<str>>,
    /// The subagents that have a node already.
    agents: HashSet<Box<str>>,
}

struct Writer<'a> {
    source: &'a Source,
    agents: HashMap<&'a str, Vec<&'a str>>,
    members: Vec<MemberWriter>,
    /// For each subagent, the conversation that has spawned it, and the call.
    spawners: HashMap<Box<str>, (usize, Option<String>)>,
    /// For each turn, its last node, which is the parent of the turn's children.
    ends: Vec<Option<u32>>,
    firsts: Vec<Option<u32>>,
}

impl<'a> Writer<'a> {
    fn turn(&mut self, at: usize, turn: &'a Turn) {
        let first = turn
            .records
            .first()
            .and_then(|at| self.source.records.get(*at));
        let Some(first) = first.filter(|_| !turn.is_idle) else {
            return;
        };
        if let Some(written) = self.members.get_mut(turn.thread) {
            written.member.has_end_mark |= turn.has_end_mark;
        }
        let mut parent = self.parent(turn.parent);
        if let Some(kind) = self.kind(turn) {
            let key = match &first.role {
                Role::Assistant {
                    group: Some(group), ..
                } => group.clone(),
                Role::Duplicate => format!("{}#{}", key(first), first.number).into(),
                Role::Results { .. } => format!("{}/text", key(first)).into(),
                _ => key(first),
            };
            let is_duplicate = matches!(first.role, Role::Duplicate);
            let index = self.push(
                turn,
                first,
                Node {
                    key,
                    parent: parent.clone(),
                    kind,
                    places: self.places(&turn.records),
                    note: is_duplicate.then(|| DUPLICATE.into()),
                    ..node(turn, first)
                },
            );
            parent = Parent::Node(index);
            self.note_first(at, index);
        }
        for result in &turn.results {
            parent = self.result(turn, result, parent);
            if let Parent::Node(index) = parent {
                self.note_first(at, index);
            }
        }
        if let (Some(end), Parent::Node(index)) = (self.ends.get_mut(at), parent) {
            *end = Some(index);
        }
    }

    fn note_first(&mut self, turn: usize, index: u32) {
        if let Some(first) = self.firsts.get_mut(turn) {
            first.get_or_insert(index);
        }
    }

    fn parent(&self, anchor: Anchor) -> Parent {
        match anchor {
            Anchor::Unknown | Anchor::Root => Parent::Base,
            Anchor::Turn(turn) => {
                let end = self.ends.get(turn).copied().flatten();
                end.map_or(Parent::Base, Parent::Node)
            }
            Anchor::Missing(at) => match self.source.records.get(at).map(|record| &record.parent) {
                Some(Parentage::Of(key)) => Parent::Key(key.clone()),
                _ => Parent::Base,
            },
        }
    }

    fn kind(&self, turn: &Turn) -> Option<NodeKind> {
        Some(match turn.kind {
            TurnKind::Assistant => NodeKind::Assistant,
            TurnKind::User => NodeKind::User,
            TurnKind::Scaffolding => NodeKind::Scaffolding,
            TurnKind::Results => return None,
            TurnKind::Event => NodeKind::Custom,
            TurnKind::Compaction => NodeKind::Compaction {
                first_kept: turn
                    .first_kept
                    .and_then(|kept| self.firsts.get(kept).copied().flatten()),
            },
        })
    }

    /// Adds the results of one call, below the subagents that the call has spawned.
    fn result(&mut self, turn: &Turn, result: &TurnResult, mut parent: Parent) -> Parent {
        let Some(record) = self.source.records.get(result.record) else {
            return parent;
        };
        let Role::Results { results, has_text } = &record.role else {
            return parent;
        };
        let Some(found) = results.get(result.result) else {
            return parent;
        };
        let key = key(record);
        let places = self.places(&[result.record]);
        for (number, agent) in self.spawned(turn.thread, found).into_iter().enumerate() {
            let number = result.result + number + 1;
            let call = (turn.thread, Some(found.call.to_string()));
            self.spawners.entry(agent.clone()).or_insert(call);
            let index = self.push(
                turn,
                record,
                Node {
                    key: format!("{key}/{number}").into(),
                    parent,
                    kind: NodeKind::Subagent {
                        native_id: format!("{}/agent-{agent}", self.source.session).into(),
                    },
                    places: places.clone(),
                    ..node(turn, record)
                },
            );
            parent = Parent::Node(index);
        }
        let takes_rest = !has_text && result.result + 1 == results.len();
        let name = self.tool_name(result.call);
        let index = self.push(
            turn,
            record,
            Node {
                key: format!("{key}/r:{}", found.call).into(),
                parent,
                kind: NodeKind::ToolResult,
                places,
                note: Some(result_note(found.block, takes_rest, name)),
                ..node(turn, record)
            },
        );
        Parent::Node(index)
    }

    /// The subagents of a call that have no node yet.
    fn spawned(&mut self, thread: usize, result: &CallResult) -> Vec<Box<str>> {
        let by_call = self.agents.get(&*result.call).into_iter().flatten();
        let all = result.agent.as_deref().into_iter().chain(by_call.copied());
        let Some(writer) = self.members.get_mut(thread) else {
            return Vec::new();
        };
        all.filter(|agent| writer.agents.insert((*agent).into()))
            .map(Into::into)
            .collect()
    }

    fn tool_name(&self, call: Option<(usize, usize)>) -> &'a str {
        let Some((record, index)) = call else {
            return "";
        };
        match self.source.records.get(record).map(|record| &record.role) {
            Some(Role::Assistant { calls, .. }) => calls.get(index).map_or("", |call| &call.name),
            _ => "",
        }
    }

    fn places(&self, records: &[usize]) -> Vec<Place> {
        let records = records.iter().filter_map(|at| self.source.records.get(*at));
        records
            .map(|record| Place {
                at: record.at,
                len: record.len,
            })
            .collect()
    }

    /// Adds a node and returns its index. If its key is not unique, the number of the record is added to the key.
    fn push(&mut self, turn: &Turn, record: &TreeRecord, mut node: Node) -> u32 {
        let Some(writer) = self.members.get_mut(turn.thread) else {
            return 0;
        };
        while !writer.keys.insert(node.key.clone()) {
            node.key = format!("{}#{}", node.key, record.number).into();
        }
        let index = writer.member.nodes.len();
        writer.member.nodes.push(node);
        u32::try_from(index).unwrap_or(u32::MAX)
    }

    /// Sets the leaf of each member: the node of the last message, or of the record that the source names.
    fn find_leaves(&mut self, anchors: &[Anchor]) {
        let named = self.source.leaf.as_ref();
        let named_at = named.map_or(0, |(_, at)| *at);
        let named = named.and_then(|(leaf, _)| self.source.by_uuid.get(leaf));
        let named = named.and_then(|leaf| self.end_of(anchors, *leaf));
        for (at, record) in self.source.records.iter().enumerate() {
            let is_message = !matches!(record.role, Role::Link | Role::Event | Role::Duplicate);
            let end = self.end_of(anchors, at).filter(|_| is_message);
            if let (Some(end), Some(writer)) = (end, self.members.get_mut(record.thread)) {
                match named {
                    Some(_) if record.thread == 0 && at < named_at => {}
                    _ => writer.member.leaf = Some(end),
                }
            }
        }
        if let (Some(named), Some(main)) = (named, self.members.first_mut()) {
            main.member.leaf.get_or_insert(named);
        }
    }

    fn end_of(&self, anchors: &[Anchor], record: usize) -> Option<u32> {
        let Some(Anchor::Turn(turn)) = anchors.get(record) else {
            return None;
        };
        self.ends.get(*turn).copied().flatten()
    }

    /// Adds an alias for each record without a node, because another file that continues this one may name it as a
    /// parent.
    fn name_aliases(&mut self, anchors: &[Anchor]) {
        for (at, record) in self.source.records.iter().enumerate() {
            let is_again = matches!(record.parent, Parentage::Again { .. })
                || matches!(record.role, Role::Duplicate);
            let end = self.end_of(anchors, at).filter(|_| !is_again);
            let (Some(end), Some(uuid)) = (end, &record.uuid) else {
                continue;
            };
            if let Some(writer) = self.members.get_mut(record.thread)
                && !writer.keys.contains(uuid)
            {
                writer.member.aliases.push((uuid.clone(), end));
            }
        }
    }
}

/// The key of a record's node.
fn key(record: &TreeRecord) -> Box<str> {
    let named = record.original.clone().or_else(|| record.uuid.clone());
    named.unwrap_or_else(|| format!("#{}", record.number).into())
}

/// A node with the facts that do not depend on its kind.
fn node(turn: &Turn, record: &TreeRecord) -> Node {
    Node {
        key: Box::default(),
        parent: Parent::Base,
        kind: NodeKind::Custom,
        time: record.time,
        order: record.number,
        places: Vec::new(),
        fingerprint: 0,
        note: None,
        is_open: turn.is_open,
    }
}
