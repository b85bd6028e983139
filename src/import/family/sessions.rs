//! Groups members into sessions.

use super::forest::{MemberNumber, Rules};
use super::identity::{NodeNumber, Nodes};
use super::links::{Link, Links};
use crate::ids;
use crate::member::Member;
use hashbrown::HashMap;

/// Members grouped by session.
pub(super) struct Sessions {
    /// The groups in the order of their first members. In a group, an earlier member owns the nodes that it shares
    /// with a later one.
    pub(super) groups: Vec<Group>,
    /// For each member, the index of its group. `None` if the member has no nodes and no base.
    pub(super) of: Vec<Option<usize>>,
}

pub(super) struct Group {
    pub(super) session_id: String,
    pub(super) native_id: String,
    pub(super) members: Vec<MemberNumber>,
    pub(super) is_heuristic: bool,
    pub(super) is_family_split: bool,
}

/// Sets of members. One member of each set is the leader, which identifies the set.
struct Sets {
    leader: Vec<MemberNumber>,
    /// For each leader: the session in which earlier imports put a member of the set.
    placed: Vec<Option<String>>,
    cwd: Vec<Option<String>>,
    is_heuristic: Vec<bool>,
    is_family_split: Vec<bool>,
}

pub(super) fn group(
    members: &[Member],
    order: &[MemberNumber],
    nodes: &Nodes,
    links: &Links,
    rules: &Rules<'_>,
) -> Sessions {
    let mut sets = Sets::of(members, rules);
    let mut first: HashMap<&str, MemberNumber> = HashMap::new();
    let mut first_placed: HashMap<&str, MemberNumber> = HashMap::new();
    for number in order {
        let Some(member) = members.get(*number) else {
            continue;
        };
        let same = *first.entry(&member.native_id).or_insert(*number);
        sets.join(same, *number);
        if let Some(placed) = rules.placed.get(&member.native_id) {
            let same = *first_placed.entry(&placed.session_id).or_insert(*number);
            sets.join(same, *number);
        }
    }
    if !rules.split {
        for number in order {
            join_relatives(&mut sets, nodes, links, *number);
        }
    }
    sets.into_groups(members, order, rules)
}

/// Joins a member with the members that have its nodes, or the parents of its nodes.
fn join_relatives(sets: &mut Sets, nodes: &Nodes, links: &Links, number: MemberNumber) {
    let owner = |shared: NodeNumber| nodes.owners.get(shared).map(|(member, _)| *member);
    let is_heuristic = nodes.heuristic.contains(&number);
    let beginning = links.beginnings.get(&number).copied().and_then(owner);
    if let Some(base) = beginning.filter(|base| *base != number) {
        sets.join_if_one_family(base, number, false);
    }
    for shared in nodes.of.get(number).into_iter().flatten() {
        let above = match links.of(*shared) {
            Link::Node(above) => owner(above),
            Link::Root | Link::Gap(_) => None,
        };
        let own = owner(*shared);
        let above = above.filter(|_| own == Some(number));
        for relative in own.into_iter().chain(above) {
            if relative != number {
                sets.join_if_one_family(relative, number, is_heuristic);
            }
        }
    }
}

impl Sets {
    fn of(members: &[Member], rules: &Rules<'_>) -> Self {
        let placed = |member: &Member| {
            let placed = rules.placed.get(&member.native_id);
            placed.map(|placed| placed.session_id.clone())
        };
        Self {
            leader: (0..members.len()).collect(),
            placed: members.iter().map(placed).collect(),
            cwd: members.iter().map(|member| member.cwd.clone()).collect(),
            is_heuristic: vec![false; members.len()],
            is_family_split: vec![false; members.len()],
        }
    }

    fn leader(&mut self, mut of: MemberNumber) -> MemberNumber {
        while let Some(above) = self.leader.get(of).copied().filter(|above| *above != of) {
            let higher = self.leader.get(above).copied().unwrap_or(above);
            if let Some(slot) = self.leader.get_mut(of) {
                *slot = higher;
            }
            of = above;
        }
        of
    }

    /// Joins the sets of two members, even if their directories differ.
    fn join(&mut self, a: MemberNumber, b: MemberNumber) {
        let (a, b) = (self.leader(a), self.leader(b));
        if a == b {
            return;
        }
        if let Some(slot) = self.leader.get_mut(b) {
            *slot = a;
        }
        fn take<T: Clone>(values: &mut [Option<T>], a: usize, b: usize) {
            let other = values.get(b).cloned().flatten();
            if let Some(slot) = values.get_mut(a) {
                *slot = slot.take().or(other);
            }
        }
        take(&mut self.placed, a, b);
        take(&mut self.cwd, a, b);
        for flags in [&mut self.is_heuristic, &mut self.is_family_split] {
            let other = flags.get(b).copied().unwrap_or_default();
            if let Some(flag) = flags.get_mut(a) {
                *flag |= other;
            }
        }
    }

    /// Joins the sets of two relatives if both have the same directory and earlier imports did not put them into two
    /// sessions.
    fn join_if_one_family(&mut self, a: MemberNumber, b: MemberNumber, is_heuristic: bool) {
        let (a, b) = (self.leader(a), self.leader(b));
        if a == b {
            return;
        }
        fn differ<T: PartialEq>(values: &[Option<T>], a: usize, b: usize) -> bool {
            match (values.get(a), values.get(b)) {
                (Some(Some(a)), Some(Some(b))) => a != b,
                _ => false,
            }
        }
        if differ(&self.cwd, a, b) {
            return;
        }
        if differ(&self.placed, a, b) {
            for set in [a, b] {
                if let Some(flag) = self.is_family_split.get_mut(set) {
                    *flag = true;
                }
            }
            return;
        }
        self.join(a, b);
        if let Some(flag) = self.is_heuristic.get_mut(a) {
            *flag |= is_heuristic;
        }
    }

    fn into_groups(
        mut self,
        members: &[Member],
        order: &[MemberNumber],
        rules: &Rules<'_>,
    ) -> Sessions {
        let mut groups: Vec<Group> = Vec::new();
        let mut of = vec![None; members.len()];
        let mut by_leader: HashMap<MemberNumber, usize> = HashMap::new();
        for number in order {
            let Some(member) = members.get(*number).filter(|it| !it.nodes.is_empty()) else {
                continue;
            };
            let leader = self.leader(*number);
            let at = *by_leader.entry(leader).or_insert_with(|| {
                let placed = self.placed.get(leader).cloned().flatten();
                let new = || ids::session_id(rules.tool, &member.native_id);
                groups.push(Group {
                    session_id: placed.unwrap_or_else(new),
                    native_id: member.native_id.clone(),
                    members: Vec::new(),
                    is_heuristic: self.is_heuristic.get(leader).copied().unwrap_or_default(),
                    is_family_split: self
                        .is_family_split
                        .get(leader)
                        .copied()
                        .unwrap_or_default(),
                });
                groups.len() - 1
            });
            if let (Some(group), Some(slot)) = (groups.get_mut(at), of.get_mut(*number)) {
                group.members.push(*number);
                *slot = Some(at);
            }
        }
        // A member that has a base and no nodes moves the leaf to its base.
        for number in order {
            let is_empty = members.get(*number).is_some_and(|it| it.nodes.is_empty());
            let leader = self.leader(*number);
            if let Some(at) = by_leader.get(&leader).copied().filter(|_| is_empty)
                && let (Some(group), Some(slot)) = (groups.get_mut(at), of.get_mut(*number))
            {
                group.members.push(*number);
                *slot = Some(at);
            }
        }
        Sessions { groups, of }
    }
}
