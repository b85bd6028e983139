//! Finds nodes of different members that are the same node.
//!
//! Two nodes are the same if they have the same key in the same native session. For tools whose copies keep ids, the
//! session may differ. Nodes are also the same if their contents are equal, in order. Contents are compared only
//! where a tool names the parent of a copy, or where members have a common project.

use super::forest::{MemberNumber, Rules};
use crate::member::{Base, Member, Node, NodeKind, Parent};
use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};
use std::hash::{BuildHasher, Hash};
use treelined_core::timestamp::Millis;

/// The number of a node, which may be in several members.
pub(super) type NodeNumber = usize;

/// The nodes of all members. A node that several members have is here once.
#[derive(Default)]
pub(super) struct Nodes {
    /// For each node: the first member that has it, and its index in that member.
    pub(super) owners: Vec<(MemberNumber, usize)>,
    /// For each member: its nodes, in their order in the member.
    pub(super) of: Vec<Vec<NodeNumber>>,
    /// The nodes by native session and key.
    by_session_key: Index,
    /// The nodes by key, if copies in other sessions keep this key.
    by_key: Index,
    /// The aliases by native session and id.
    by_session_alias: Index,
    /// The aliases by id, for tools whose copies keep ids.
    by_alias: Index,
    aliases: Vec<Alias>,
    /// The number of each native session.
    sessions: HashMap<String, usize>,
    /// For each member, the number of its native session.
    session_of: Vec<usize>,
    /// The members that were joined because of equal content alone.
    pub(super) heuristic: HashSet<MemberNumber>,
    copies: Copies,
}

/// The id of a record that has no node.
struct Alias {
    member: MemberNumber,
    /// The index in the aliases of the member.
    at: usize,
    /// The node that is the parent of the record's children.
    node: NodeNumber,
}

/// Finds numbers by names. The names themselves are stored elsewhere, so a number may belong to another name with the
/// same hash.
#[derive(Default)]
struct Index {
    numbers: HashTable<(u32, u32)>,
    hasher: DefaultHashBuilder,
}

impl Index {
    /// A part of the hash is enough, and it keeps the table small.
    #[expect(clippy::cast_possible_truncation, reason = "a hash")]
    fn hash(&self, name: impl Hash) -> u32 {
        self.hasher.hash_one(name) as u32
    }

    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn insert(&mut self, name: impl Hash, number: usize) {
        let hash = self.hash(name);
        if let Ok(number) = u32::try_from(number) {
            let entry = (hash, number);
            let rehash = |(hash, _): &(u32, u32)| Self::spread(*hash);
            self.numbers
                .insert_unique(Self::spread(hash), entry, rehash);
        }
    }

    /// The first number that was added under this name and for which `is` is true.
    fn first(&self, name: impl Hash, is: impl Fn(usize) -> bool) -> Option<usize> {
        let hash = self.hash(name);
        let same = self.numbers.iter_hash(Self::spread(hash));
        let same = same.filter(|(stored, _)| *stored == hash);
        let same = same.filter_map(|(_, number)| usize::try_from(*number).ok());
        same.filter(|number| is(*number)).min()
    }
}

/// The position below which copies are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Anchor {
    /// Before the first node of a native session.
    Session(usize),
    /// Before the first node of any session of a project.
    Project(usize),
    Node(NodeNumber),
}

/// A node is found by three things: the nearest node above it that has a fingerprint, its own fingerprint, and its
/// time if the times of copies must be equal.
type Key = (Anchor, u64, Option<Millis>);

#[derive(Default)]
struct Copies {
    children: HashMap<Key, Vec<NodeNumber>>,
    /// The first nodes that are already listed. A copy has the same first node, which must not be listed again.
    roots: HashSet<(Anchor, Option<Millis>, NodeNumber)>,
    projects: HashMap<String, usize>,
}

impl Nodes {
    /// The node that this key names for a member of `native_id`.
    pub(super) fn with_key(
        &self,
        members: &[Member],
        native_id: &str,
        key: &str,
    ) -> Option<NodeNumber> {
        let session = self.sessions.get(native_id).copied();
        let own = session.and_then(|session| self.own(members, session, key, |_| true));
        let foreign = || self.foreign(members, key, |_| true);
        let own_alias = || session.and_then(|session| self.own_alias(members, session, key));
        own.or_else(foreign)
            .or_else(own_alias)
            .or_else(|| self.alias(members, key))
    }

    /// Frees the memory that only [`Self::with_key`] needs.
    pub(super) fn forget_names(&mut self) {
        self.by_session_key = Index::default();
        self.by_key = Index::default();
        self.by_session_alias = Index::default();
        self.by_alias = Index::default();
        self.aliases = Vec::new();
        self.copies = Copies::default();
    }

    /// The first node of a native session that has this key and for which `is` is true.
    fn own(
        &self,
        members: &[Member],
        session: usize,
        key: &str,
        is: impl Fn(&Node) -> bool,
    ) -> Option<NodeNumber> {
        self.by_session_key.first((session, key), |shared| {
            let owner = self.owners.get(shared).map(|(member, _)| *member);
            let found = owner.and_then(|owner| self.session_of.get(owner));
            let node = node_of(self, members, shared);
            found == Some(&session) && node.is_some_and(|node| *node.key == *key && is(node))
        })
    }

    /// The first node of any session that has this key and for which `is` is true. Only keys that copies keep are
    /// found.
    fn foreign(
        &self,
        members: &[Member],
        key: &str,
        is: impl Fn(&Node) -> bool,
    ) -> Option<NodeNumber> {
        self.by_key.first(key, |shared| {
            let node = node_of(self, members, shared);
            node.is_some_and(|node| *node.key == *key && is(node))
        })
    }

    fn own_alias(&self, members: &[Member], session: usize, id: &str) -> Option<NodeNumber> {
        let found = self.by_session_alias.first((session, id), |number| {
            let alias = self.aliases.get(number);
            let found = alias.and_then(|alias| self.session_of.get(alias.member));
            found == Some(&session) && self.is_alias(members, number, id)
        });
        Some(self.aliases.get(found?)?.node)
    }

    fn alias(&self, members: &[Member], id: &str) -> Option<NodeNumber> {
        let is = |number: usize| self.is_alias(members, number, id);
        Some(self.aliases.get(self.by_alias.first(id, is)?)?.node)
    }

    fn is_alias(&self, members: &[Member], number: usize, id: &str) -> bool {
        let alias = self.aliases.get(number);
        let found = alias.and_then(|alias| members.get(alias.member)?.aliases.get(alias.at));
        found.is_some_and(|(found, _)| **found == *id)
    }

    fn add_aliases(&mut self, number: MemberNumber, member: &Member, rules: &Rules<'_>) {
        let session = self.session_of.get(number).copied().unwrap_or_default();
        for (at, (id, node)) in member.aliases.iter().enumerate() {
            let node = usize::try_from(*node).ok();
            let of = self.of.get(number);
            let Some(node) = node.and_then(|node| of?.get(node).copied()) else {
                continue;
            };
            let alias = self.aliases.len();
            self.aliases.push(Alias {
                member: number,
                at,
                node,
            });
            self.by_session_alias.insert((session, &**id), alias);
            if rules.has_shared_keys {
                self.by_alias.insert(&**id, alias);
            }
        }
    }

    fn number_of_session(&mut self, native_id: &str) -> usize {
        number(&mut self.sessions, native_id)
    }
}

fn number(names: &mut HashMap<String, usize>, name: &str) -> usize {
    if let Some(number) = names.get(name) {
        return *number;
    }
    let next = names.len();
    names.insert(name.to_owned(), next);
    next
}

/// Whether a key is the tool's own id, which copies keep.
fn is_native(key: &str) -> bool {
    !key.starts_with('#')
}

pub(super) fn find(members: &[Member], order: &[MemberNumber], rules: &Rules<'_>) -> Nodes {
    let count = members.iter().map(|member| member.nodes.len()).sum();
    let mut nodes = Nodes {
        owners: Vec::with_capacity(count),
        of: vec![Vec::new(); members.len()],
        ..Nodes::default()
    };
    for member in members {
        let session = nodes.number_of_session(&member.native_id);
        nodes.session_of.push(session);
    }
    for number in order {
        if let Some(member) = members.get(*number) {
            add(&mut nodes, members, *number, member, rules);
        }
    }
    nodes
}

fn add(
    nodes: &mut Nodes,
    members: &[Member],
    number: MemberNumber,
    member: &Member,
    rules: &Rules<'_>,
) {
    let session = nodes.session_of.get(number).copied().unwrap_or_default();
    let mut known = by_key(nodes, members, session, member, rules);
    let (anchors, by_content) = copied(nodes, members, session, member, rules);
    for (known, copied) in known.iter_mut().zip(by_content.found) {
        *known = known.or(copied);
    }
    if by_content.is_heuristic {
        nodes.heuristic.insert(number);
    }
    let mut own: HashMap<&str, NodeNumber> = HashMap::new();
    let mut of = Vec::with_capacity(member.nodes.len());
    for (at, (node, known)) in member.nodes.iter().zip(known).enumerate() {
        let repeated = own.get(&*node.key).copied();
        let shared = known.or(repeated).unwrap_or_else(|| {
            nodes.owners.push((number, at));
            let shared = nodes.owners.len() - 1;
            nodes.by_session_key.insert((session, &*node.key), shared);
            if rules.has_shared_keys && is_native(&node.key) {
                nodes.by_key.insert(&*node.key, shared);
            }
            shared
        });
        own.entry(&node.key).or_insert(shared);
        of.push(shared);
    }
    let owners = &nodes.owners;
    let is_own = |at: usize, shared: NodeNumber| owners.get(shared) == Some(&(number, at));
    nodes.copies.add(member, &of, &anchors, is_own);
    if let Some(slot) = nodes.of.get_mut(number) {
        *slot = of;
    }
    nodes.add_aliases(number, member, rules);
}

/// For each node of a member, the known node with the same key. Nodes of another session count only if the user has
/// typed at least one of them.
fn by_key(
    nodes: &Nodes,
    members: &[Member],
    session: usize,
    member: &Member,
    rules: &Rules<'_>,
) -> Vec<Option<NodeNumber>> {
    let same = |node: &Node, other: &Node| {
        node.fingerprint == other.fingerprint || node.fingerprint == 0 || other.fingerprint == 0
    };
    let own = |node: &Node| nodes.own(members, session, &node.key, |other| same(node, other));
    let foreign = |node: &Node| {
        let is_shared = rules.has_shared_keys && is_native(&node.key);
        let found = || nodes.foreign(members, &node.key, |other| same(node, other));
        is_shared.then(found).flatten()
    };
    let has_user = member
        .nodes
        .iter()
        .any(|node| node.kind == NodeKind::User && foreign(node).is_some());
    let known = |node: &Node| own(node).or_else(|| foreign(node).filter(|_| has_user));
    member.nodes.iter().map(known).collect()
}

pub(super) fn node_of<'a>(
    nodes: &Nodes,
    members: &'a [Member],
    shared: NodeNumber,
) -> Option<&'a Node> {
    let (member, at) = nodes.owners.get(shared)?;
    members.get(*member)?.nodes.get(*at)
}

/// The positions at which the copies in a member may begin, for its sessions and its projects.
struct Anchors {
    sessions: Vec<usize>,
    project: Option<usize>,
}

#[derive(Default)]
struct Matches {
    /// For each node of the member, the original of which the node is a copy.
    found: Vec<Option<NodeNumber>>,
    is_heuristic: bool,
}

/// The nodes of a member that are copies, by their content.
fn copied(
    nodes: &mut Nodes,
    members: &[Member],
    session: usize,
    member: &Member,
    rules: &Rules<'_>,
) -> (Anchors, Matches) {
    let mut anchors = Anchors {
        sessions: vec![session],
        project: None,
    };
    match &member.base {
        Base::CopyOf { native_id } => anchors.sessions.push(nodes.number_of_session(native_id)),
        Base::None if !rules.has_shared_keys => {
            let project = member.project.as_deref();
            anchors.project = project.map(|name| number(&mut nodes.copies.projects, name));
        }
        Base::None | Base::Before { .. } => {}
    }
    let nothing = vec![None; member.nodes.len()];
    for root in anchors.sessions.iter().rev() {
        let found = nodes.copies.matching(member, Anchor::Session(*root), false);
        if users(member, &found).next().is_some() {
            let is_heuristic = false;
            return (
                anchors,
                Matches {
                    found,
                    is_heuristic,
                },
            );
        }
    }
    if let Some(project) = anchors.project {
        let found = nodes
            .copies
            .matching(member, Anchor::Project(project), true);
        let users = users(member, &found).filter(|node| node.time.is_some());
        let users = users.count();
        if users > 1 || (users == 1 && is_timed_in_millis(member)) {
            // If two members belong to one native session, it is not a heuristic to join them by content.
            let is_other = |shared: &NodeNumber| {
                let owner = nodes
                    .owners
                    .get(*shared)
                    .and_then(|(at, _)| members.get(*at));
                owner.is_some_and(|owner| owner.native_id != member.native_id)
            };
            let is_heuristic = found.iter().flatten().any(is_other);
            return (
                anchors,
                Matches {
                    found,
                    is_heuristic,
                },
            );
        }
    }
    let is_heuristic = false;
    let found = nothing;
    (
        anchors,
        Matches {
            found,
            is_heuristic,
        },
    )
}

/// Whether the times of a member are finer than seconds. A single message may by chance be at a whole second.
fn is_timed_in_millis(member: &Member) -> bool {
    let mut times = member.nodes.iter().filter_map(|node| node.time);
    times.any(|at| at.rem_euclid(1000) != 0)
}

/// The found nodes that the user has typed.
fn users<'a>(
    member: &'a Member,
    found: &'a [Option<NodeNumber>],
) -> impl Iterator<Item = &'a Node> {
    let pairs = member.nodes.iter().zip(found);
    let is_user = |(node, found): &(&Node, &Option<NodeNumber>)| {
        found.is_some() && node.kind == NodeKind::User
    };
    pairs.filter(is_user).map(|(node, _)| node)
}

/// For each node, the index of the nearest node above it that has a fingerprint.
fn anchors_above(member: &Member) -> Vec<Option<usize>> {
    let mut above: Vec<Option<usize>> = Vec::with_capacity(member.nodes.len());
    for (at, node) in member.nodes.iter().enumerate() {
        let parent = match node.parent {
            Parent::Node(parent) => usize::try_from(parent).ok().filter(|parent| *parent < at),
            Parent::Base | Parent::Key(_) => None,
        };
        let has_fingerprint = |parent: &usize| {
            let parent = member.nodes.get(*parent);
            parent.is_some_and(|parent| parent.fingerprint != 0)
        };
        let inherited = || parent.and_then(|parent| above.get(parent).copied().flatten());
        above.push(parent.filter(has_fingerprint).or_else(inherited));
    }
    above
}

impl Copies {
    /// For each node of the member: the original below `root` of which the node is a copy. Fingerprints must be equal
    /// in order, beginning with the first. A node without a fingerprint is a copy if a node below it is a copy.
    fn matching(&self, member: &Member, root: Anchor, is_timed: bool) -> Vec<Option<NodeNumber>> {
        let above = anchors_above(member);
        let mut found: Vec<Option<NodeNumber>> = Vec::with_capacity(member.nodes.len());
        let mut taken: HashMap<Key, usize> = HashMap::new();
        for (node, above) in member.nodes.iter().zip(&above) {
            let anchor = match above {
                None => Some(root),
                Some(above) => found.get(*above).copied().flatten().map(Anchor::Node),
            };
            let copied = anchor.filter(|_| node.fingerprint != 0).and_then(|anchor| {
                let key = (anchor, node.fingerprint, node.time.filter(|_| is_timed));
                let next = taken.entry(key).or_default();
                *next += 1;
                self.children.get(&key)?.get(*next - 1).copied()
            });
            found.push(copied);
        }
        self.pass_over(member, &mut found);
        found
    }

    /// Finds the originals of nodes without a fingerprint that are above a copy. The original is the nearest copied
    /// node above, or, if there is none, the nearest one below.
    fn pass_over(&self, member: &Member, found: &mut [Option<NodeNumber>]) {
        let parent = |at: usize| match member.nodes.get(at)?.parent {
            Parent::Node(parent) => usize::try_from(parent).ok().filter(|parent| *parent < at),
            Parent::Base | Parent::Key(_) => None,
        };
        let mut below: Vec<Option<NodeNumber>> = vec![None; found.len()];
        for at in (0..found.len()).rev() {
            let copied = found.get(at).copied().flatten();
            let copied = copied.or_else(|| below.get(at).copied().flatten());
            if let Some(slot) = parent(at).and_then(|parent| below.get_mut(parent)) {
                *slot = copied.or(*slot);
            }
        }
        for at in 0..found.len() {
            let below = below.get(at).copied().flatten();
            if below.is_none() || found.get(at).copied().flatten().is_some() {
                continue;
            }
            let inherited = parent(at).and_then(|parent| found.get(parent).copied().flatten());
            if let Some(slot) = found.get_mut(at) {
                *slot = inherited.or(below);
            }
        }
    }

    /// Adds the nodes of a member, so that they are found for later members. `is_own` marks the nodes that no earlier
    /// member has.
    fn add(
        &mut self,
        member: &Member,
        of: &[NodeNumber],
        anchors: &Anchors,
        is_own: impl Fn(usize, NodeNumber) -> bool,
    ) {
        let above = anchors_above(member);
        for (at, (node, shared)) in member.nodes.iter().zip(of).enumerate() {
            if node.fingerprint == 0 {
                continue;
            }
            let above = above.get(at).copied().flatten();
            match above.and_then(|above| of.get(above)) {
                Some(above) if is_own(at, *shared) => {
                    self.list((Anchor::Node(*above), node.fingerprint, None), *shared);
                    if anchors.project.is_some() {
                        self.list((Anchor::Node(*above), node.fingerprint, node.time), *shared);
                    }
                }
                Some(_) => {}
                None => {
                    let sessions = anchors.sessions.iter();
                    let sessions = sessions.map(|session| (Anchor::Session(*session), None));
                    let project = anchors
                        .project
                        .map(|name| (Anchor::Project(name), node.time));
                    for (root, time) in sessions.chain(project) {
                        if self.roots.insert((root, time, *shared)) {
                            self.list((root, node.fingerprint, time), *shared);
                        }
                    }
                }
            }
        }
    }

    fn list(&mut self, key: Key, shared: NodeNumber) {
        self.children.entry(key).or_default().push(shared);
    }
}
