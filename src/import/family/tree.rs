//! Lays out the entries of each session in the order in which they are written.

use super::forest::{
    Adopted, EntryContent, Forest, ForkLabel, MemberNumber, MemberOutcome, SessionTree, SpawnPoint,
    TreeEntry, may_be_leaf,
};
use super::identity::{NodeNumber, Nodes, node_of};
use super::links::{GapNumber, Link, Links};
use super::sessions::{Group, Sessions};
use crate::ids::NodeId;
use crate::member::{Member, Node, NodeKind};
use hashbrown::{HashMap, HashSet};
use treelined_core::agent::Tool;
use treelined_core::timestamp::Millis;

struct Context<'a> {
    members: &'a [Member],
    nodes: &'a Nodes,
    links: &'a Links,
    sessions: &'a Sessions,
    /// For each node, its id, which is the same in all sessions.
    ids: Vec<NodeId>,
    gap_ids: Vec<NodeId>,
    tool: Tool,
    /// For each subagent's session, the node that stands for it.
    spawned: HashMap<&'a str, NodeNumber>,
    /// For each native session, its first member.
    natives: HashMap<&'a str, MemberNumber>,
}

pub(super) fn lay_out(
    members: &[Member],
    nodes: &Nodes,
    links: &Links,
    sessions: &Sessions,
    tool: Tool,
) -> Forest {
    let (ids, gap_ids) = ids(members, nodes, links, tool);
    let mut spawned = HashMap::new();
    for (shared, (member, at)) in nodes.owners.iter().enumerate() {
        let node = members
            .get(*member)
            .and_then(|member| member.nodes.get(*at));
        if let Some(NodeKind::Subagent { native_id }) = node.map(|node| &node.kind) {
            spawned.entry(&**native_id).or_insert(shared);
        }
    }
    let mut natives = HashMap::new();
    for (number, member) in members.iter().enumerate() {
        natives.entry(member.native_id.as_str()).or_insert(number);
    }
    let context = Context {
        members,
        nodes,
        links,
        sessions,
        ids,
        gap_ids,
        tool,
        spawned,
        natives,
    };
    let mut outcomes: Vec<MemberOutcome> = Vec::new();
    outcomes.resize_with(members.len(), MemberOutcome::default);
    let sessions = sessions.groups.iter().enumerate();
    let sessions = sessions
        .map(|(at, group)| context.session(at, group, &mut outcomes))
        .collect();
    for (number, outcome) in outcomes.iter_mut().enumerate() {
        context.note_shared(number, outcome);
    }
    let node_ids = context.node_ids();
    Forest {
        sessions,
        members: outcomes,
        node_ids,
    }
}

/// The ids of all nodes and gaps. If different nodes have equal keys, a number is added for the later ones.
fn ids(members: &[Member], nodes: &Nodes, links: &Links, tool: Tool) -> (Vec<NodeId>, Vec<NodeId>) {
    let mut taken: HashSet<NodeId> = HashSet::new();
    let mut unused: HashMap<NodeId, u64> = HashMap::new();
    let mut make = |member: MemberNumber, key: &str| {
        let native_id = members.get(member).map_or("", |member| &*member.native_id);
        let plain = NodeId::of(tool, native_id, key);
        if taken.insert(plain) {
            return plain;
        }
        let number = unused.entry(plain).or_insert(2);
        loop {
            let id = NodeId::of(tool, native_id, &format!("{key}/again{number}"));
            *number += 1;
            if taken.insert(id) {
                return id;
            }
        }
    };
    let of_node = |(shared, (member, _)): (usize, &(MemberNumber, usize))| {
        let key = node_of(nodes, members, shared).map_or("", |node| &*node.key);
        make(*member, key)
    };
    let ids = nodes.owners.iter().enumerate().map(of_node).collect();
    let of_gap = |gap: &super::links::Gap| make(gap.member, &format!("{}/gap", gap.expected));
    let gap_ids = links.gaps.iter().map(of_gap).collect();
    (ids, gap_ids)
}

/// The entries of one session while they are laid out.
#[derive(Default)]
struct Layout {
    entries: Vec<TreeEntry>,
    nodes: HashMap<NodeNumber, usize>,
    gaps: HashMap<GapNumber, usize>,
    copied_from: Option<String>,
}

impl Layout {
    fn note_copied(&mut self, entry: &TreeEntry) {
        if self.copied_from.is_none() {
            self.copied_from.clone_from(&entry.copied_from);
        }
    }
}

/// A node or a gap, which becomes an entry.
#[derive(Clone, Copy)]
enum Item {
    Node(NodeNumber),
    Gap(GapNumber),
}

impl Context<'_> {
    fn session(&self, at: usize, group: &Group, outcomes: &mut [MemberOutcome]) -> SessionTree {
        let of = group.members.iter().filter_map(|at| self.nodes.of.get(*at));
        let count = of.map(Vec::len).sum();
        let mut layout = Layout {
            entries: Vec::with_capacity(count),
            nodes: HashMap::with_capacity(count),
            ..Layout::default()
        };
        for number in &group.members {
            for shared in self.nodes.of.get(*number).into_iter().flatten() {
                self.place(&mut layout, at, *shared, outcomes);
            }
            if let Some(outcome) = outcomes.get_mut(*number) {
                outcome.session = Some(at);
            }
        }
        let members = || group.members.iter().filter_map(|at| self.members.get(*at));
        let first = members().next();
        let spawned_by = first.and_then(|member| self.spawn_point(member));
        let named = members().filter(|member| member.native_id == group.native_id);
        let title = named.filter_map(|member| member.title.as_ref()).next_back();
        let in_git = members().filter(|member| !member.git.is_empty());
        let git = in_git.max_by_key(|member| member.ended);
        let spawner = spawned_by.as_ref().map(|spawn| spawn.session_id.clone());
        SessionTree {
            session_id: group.session_id.clone(),
            native_id: group.native_id.clone(),
            cwd: members().find_map(|member| member.cwd.clone()),
            git: git.map(|member| member.git.clone()).unwrap_or_default(),
            name: title.cloned(),
            started: members().filter_map(|member| member.started).min(),
            ended: members().filter_map(|member| member.ended).max(),
            members: group.members.clone(),
            leaf: self.leaf(group, &layout),
            labels: self.labels(group, &layout),
            parent_session: spawner.or(layout.copied_from.take()),
            spawned_by,
            recovered: self.recovered(group, &layout),
            is_heuristic: group.is_heuristic,
            is_family_split: group.is_family_split,
            adopted: Adopted::default(),
            entries: layout.entries,
        }
    }

    /// Adds a node below its parent.
    fn place(
        &self,
        layout: &mut Layout,
        session: usize,
        shared: NodeNumber,
        outcomes: &mut [MemberOutcome],
    ) {
        let mut waiting = Vec::new();
        let mut next = Some(Item::Node(shared));
        while let Some(item) = next {
            let is_placed = match item {
                Item::Node(shared) => layout.nodes.contains_key(&shared),
                Item::Gap(gap) => layout.gaps.contains_key(&gap),
            };
            if is_placed {
                break;
            }
            waiting.push(item);
            next = self.above(item);
        }
        for item in waiting.into_iter().rev() {
            let parent = match self.above(item) {
                None => None,
                Some(Item::Node(shared)) => layout.nodes.get(&shared).copied(),
                Some(Item::Gap(gap)) => layout.gaps.get(&gap).copied(),
            };
            let entry = match item {
                Item::Node(shared) => self.entry(layout, session, shared, parent),
                Item::Gap(gap) => self.gap(layout, session, gap, parent),
            };
            let owner = match item {
                Item::Node(shared) => self.owner(shared),
                Item::Gap(gap) => self.links.gaps.get(gap).map(|gap| gap.member),
            };
            let outcome = owner.and_then(|owner| outcomes.get_mut(owner));
            if let Some(outcome) = outcome.filter(|_| entry.copied_from.is_none()) {
                match item {
                    Item::Node(_) => outcome.entries += 1,
                    Item::Gap(_) => outcome.gaps += 1,
                }
            }
            let index = layout.entries.len();
            layout.entries.push(entry);
            match item {
                Item::Node(shared) => layout.nodes.insert(shared, index),
                Item::Gap(gap) => layout.gaps.insert(gap, index),
            };
        }
    }

    fn above(&self, item: Item) -> Option<Item> {
        match item {
            Item::Node(shared) => match self.links.of(shared) {
                Link::Root => None,
                Link::Node(above) => Some(Item::Node(above)),
                Link::Gap(gap) => Some(Item::Gap(gap)),
            },
            Item::Gap(gap) => self.links.gaps.get(gap)?.after.map(Item::Node),
        }
    }

    fn owner(&self, shared: NodeNumber) -> Option<MemberNumber> {
        self.nodes.owners.get(shared).map(|(member, _)| *member)
    }

    fn entry(
        &self,
        layout: &mut Layout,
        session: usize,
        shared: NodeNumber,
        parent: Option<usize>,
    ) -> TreeEntry {
        let (member, at) = self.nodes.owners.get(shared).copied().unwrap_or_default();
        let owner = self.members.get(member);
        let node = owner.and_then(|owner| owner.nodes.get(at));
        let first_kept = match node.map(|node| &node.kind) {
            Some(NodeKind::Compaction {
                first_kept: Some(kept),
            }) => {
                let kept = usize::try_from(*kept).ok();
                let of = self.nodes.of.get(member);
                kept.and_then(|kept| of?.get(kept))
                    .and_then(|kept| self.ids.get(*kept).copied())
            }
            _ => None,
        };
        let content = EntryContent::Node {
            member,
            node: at,
            first_kept,
        };
        let entry = TreeEntry {
            id: self.id_of(self.ids.get(shared)),
            parent,
            time: self.time(layout, member, parent, node.and_then(|node| node.time)),
            content,
            copied_from: self.copied_from(session, member),
        };
        layout.note_copied(&entry);
        entry
    }

    fn gap(
        &self,
        layout: &mut Layout,
        session: usize,
        gap: GapNumber,
        parent: Option<usize>,
    ) -> TreeEntry {
        let id = self.id_of(self.gap_ids.get(gap));
        let gap = self.links.gaps.get(gap);
        let expected_parent = gap.map(|gap| gap.expected.clone()).unwrap_or_default();
        let member = gap.map_or(0, |gap| gap.member);
        let entry = TreeEntry {
            id,
            parent,
            time: self.time(layout, member, parent, None),
            content: EntryContent::Gap { expected_parent },
            copied_from: self.copied_from(session, member),
        };
        layout.note_copied(&entry);
        entry
    }

    fn id_of(&self, id: Option<&NodeId>) -> NodeId {
        debug_assert!(id.is_some(), "a node without an id");
        id.copied().unwrap_or_else(|| NodeId::of(self.tool, "", ""))
    }

    /// The time of an entry. Without a time, the time of its parent; without a parent, the start of the member.
    fn time(
        &self,
        layout: &Layout,
        member: MemberNumber,
        parent: Option<usize>,
        own: Option<Millis>,
    ) -> Millis {
        let parent = parent.and_then(|parent| layout.entries.get(parent));
        let started = self.members.get(member).and_then(|member| member.started);
        let inherited = parent.map(|parent| parent.time).or(started);
        own.or(inherited).unwrap_or_default()
    }

    /// The session that has the original of a node of this member, if it is another session.
    fn copied_from(&self, session: usize, member: MemberNumber) -> Option<String> {
        let home = self.sessions.of.get(member).copied().flatten();
        let home = home.filter(|home| *home != session)?;
        Some(self.sessions.groups.get(home)?.session_id.clone())
    }

    fn node_at(&self, entry: &TreeEntry) -> Option<&Node> {
        match &entry.content {
            EntryContent::Node { member, node, .. } => self.members.get(*member)?.nodes.get(*node),
            EntryContent::Gap { .. } => None,
        }
    }

    /// The nearest entry at or above an entry that may be the leaf.
    fn conversation(&self, layout: &Layout, mut at: usize) -> Option<usize> {
        loop {
            let entry = layout.entries.get(at)?;
            if self
                .node_at(entry)
                .is_some_and(|node| may_be_leaf(&node.kind))
            {
                return Some(at);
            }
            at = entry.parent?;
        }
    }

    fn leaf_of(&self, number: MemberNumber, layout: &Layout) -> Option<usize> {
        let member = self.members.get(number)?;
        if let Some(base) = self.links.beginnings.get(&number) {
            return self.conversation(layout, *layout.nodes.get(base)?);
        }
        let leaf = match member.leaf {
            Some(leaf) => usize::try_from(leaf).ok(),
            None => member.nodes.len().checked_sub(1),
        };
        let shared = leaf.and_then(|leaf| self.nodes.of.get(number)?.get(leaf))?;
        self.conversation(layout, *layout.nodes.get(shared)?)
    }

    /// The leaf of the member that the tool wrote last.
    fn leaf(&self, group: &Group, layout: &Layout) -> Option<usize> {
        let shown = group.members.iter().filter(|number| {
            let member = self.members.get(**number);
            member.is_some_and(|member| !member.is_superseded)
        });
        let newest = shown.max_by_key(|number| {
            let member = self.members.get(**number);
            member.map(|member| (member.ended, member.nodes.len()))
        });
        let leaf = newest.and_then(|number| self.leaf_of(*number, layout));
        // If no entry may be the leaf, the last entry is.
        leaf.or_else(|| layout.entries.len().checked_sub(1))
    }

    /// The labels of forks. Each is at the first entry that the fork does not share.
    fn labels(&self, group: &Group, layout: &Layout) -> Vec<ForkLabel> {
        let mut labels = Vec::new();
        for number in &group.members {
            let Some(member) = self.members.get(*number) else {
                continue;
            };
            if member.native_id == group.native_id {
                continue;
            }
            let of = self.nodes.of.get(*number).into_iter().flatten();
            let own = of
                .copied()
                .find(|shared| self.owner(*shared) == Some(*number));
            let Some(own) = own else { continue };
            let above = self
                .links
                .node_above(own)
                .and_then(|above| self.owner(above));
            let is_fork = above.and_then(|above| self.members.get(above));
            if is_fork.is_none_or(|above| above.native_id == member.native_id) {
                continue;
            }
            let (Some(entry), Some((_, at))) = (layout.nodes.get(&own), self.nodes.owners.get(own))
            else {
                continue;
            };
            let key = member.nodes.get(*at).map_or("", |node| &*node.key);
            let id = NodeId::of(self.tool, &member.native_id, &format!("{key}/label"));
            // Two files may have the same native session, with different nodes of the same key.
            if labels.iter().any(|label: &ForkLabel| label.id == id) {
                continue;
            }
            labels.push(ForkLabel {
                entry: *entry,
                id,
                text: member.title.as_deref().unwrap_or("fork").to_owned(),
            });
        }
        labels
    }

    /// The number of tips that the tool does not show: no member has the tip as its leaf, or only superseded members
    /// have it.
    fn recovered(&self, group: &Group, layout: &Layout) -> u64 {
        let mut is_shown = vec![false; layout.entries.len()];
        for number in &group.members {
            let member = self.members.get(*number);
            if member.is_none_or(|member| member.is_superseded) {
                continue;
            }
            let mut at = self.leaf_of(*number, layout);
            while let Some(slot) = at.and_then(|at| is_shown.get_mut(at))
                && !std::mem::replace(slot, true)
            {
                at = at.and_then(|at| layout.entries.get(at)?.parent);
            }
        }
        let mut has_children = vec![false; layout.entries.len()];
        for entry in &layout.entries {
            if let Some(slot) = entry.parent.and_then(|parent| has_children.get_mut(parent)) {
                *slot = true;
            }
        }
        let tips = (0..layout.entries.len()).filter(|at| has_children.get(*at) == Some(&false));
        let hidden = tips.filter(|tip| {
            let tip = self.conversation(layout, *tip).unwrap_or(*tip);
            is_shown.get(tip) == Some(&false)
        });
        hidden.count() as u64
    }

    fn spawn_point(&self, member: &Member) -> Option<SpawnPoint> {
        let spawner = member.spawned_by.as_ref()?;
        let at = self.spawned.get(member.native_id.as_str()).copied();
        let home = |number: MemberNumber| {
            let home = self.sessions.of.get(number).copied().flatten()?;
            Some(self.sessions.groups.get(home)?.session_id.clone())
        };
        let by_node = at.and_then(|at| home(self.owner(at)?));
        let by_name = || {
            self.natives
                .get(spawner.native_id.as_str())
                .copied()
                .and_then(home)
        };
        let unknown = || crate::ids::session_id(self.tool, &spawner.native_id);
        let mut above = at;
        while let Some(shared) = above {
            let node = node_of(self.nodes, self.members, shared);
            if node.is_some_and(|node| node.kind == NodeKind::Assistant) {
                break;
            }
            above = self.links.node_above(shared);
        }
        Some(SpawnPoint {
            session_id: by_node.or_else(by_name).unwrap_or_else(unknown),
            entry: above.or(at).and_then(|at| self.ids.get(at).copied()),
            tool_call_id: spawner.tool_call_id.clone(),
        })
    }

    fn node_ids(&self) -> Vec<Vec<NodeId>> {
        let of = self.nodes.of.iter();
        let ids =
            |of: &Vec<NodeNumber>| of.iter().map(|at| self.id_of(self.ids.get(*at))).collect();
        of.map(ids).collect()
    }

    /// Counts the records of a member that are shared: all their nodes belong to other members.
    fn note_shared(&self, number: MemberNumber, outcome: &mut MemberOutcome) {
        let Some(member) = self.members.get(number) else {
            return;
        };
        let of = self.nodes.of.get(number).into_iter().flatten();
        let (mut own, mut shared) = (HashSet::new(), HashSet::new());
        for (node, owner) in member.nodes.iter().zip(of.map(|at| self.owner(*at))) {
            let records = node.places.iter().map(|place| place.at);
            let owner = owner.filter(|owner| *owner != number);
            let Some(owner) = owner.and_then(|owner| self.members.get(owner)) else {
                own.extend(records);
                continue;
            };
            shared.extend(records);
            if outcome.prefix_shared_with.is_none() && owner.native_id != member.native_id {
                outcome.prefix_shared_with = Some(owner.native_id.clone());
            }
        }
        outcome.shared = shared.difference(&own).count() as u64;
    }
}
