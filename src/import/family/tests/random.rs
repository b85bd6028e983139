//! Random members.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

prop_compose! {
    fn any_node(keys: u32)(key in 0..keys, parent in 0..8u32, above in 0..9u32, kind in 0..4u8, print in 0..4u64)
        -> (u32, u32, u32, u8, u64) { (key, parent, above, kind, print) }
}

prop_compose! {
    fn any_member()(native in 0..4u8, part in 0..5u8, base in 0..4u8, of in 0..5u8, order in 0..9u64,
                    nodes in proptest::collection::vec(any_node(9), 0..9), cwd in 0..3u8, placed in any::<bool>())
        -> Member {
        let mut made: Vec<Node> = Vec::new();
        for (at, (key, parent, above, kind, print)) in nodes.into_iter().enumerate() {
            let kind = match kind { 0 => NodeKind::User, 1 => NodeKind::Assistant, 2 => NodeKind::Custom,
                _ => NodeKind::Compaction { first_kept: Some(above) } };
            let mut node = node(&format!("{}{key}", if key > 6 { "#" } else { "k" }), kind, "");
            node.fingerprint = print;
            node.order = at as u64;
            node.parent = match parent { 0 => Parent::Base, 1..=5 => Parent::Node(above), _ => Parent::Key(format!("k{above}").into()) };
            made.push(node);
        }
        Member {
            native_id: format!("n{native}"),
            part_id: format!("p{part}"),
            base: match base { 0 => Base::Before { part_id: format!("p{of}"), order }, 1 => Base::CopyOf { native_id: format!("n{of}") }, _ => Base::None },
            cwd: Some(cwd).filter(|cwd| *cwd > 0).map(|cwd| format!("/{cwd}")),
            project: placed.then(|| "p".to_owned()),
            started: Some(i64::from(part)),
            leaf: Some(u32::from(of)),
            nodes: made,
            ..Member::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    /// For random members: every node has an entry in the session of its member, each entry is unique, and its parent
    /// is an earlier entry.
    #[test]
    fn every_node_has_one_place_below_earlier_ones(
        mut members in proptest::collection::vec(any_member(), 1..7), shared in any::<bool>(), split in any::<bool>()
    ) {
        let known = placed(&[("n0", "S"), ("n1", "T"), ("n2", "S")]);
        let none = HashMap::new();
        let placed = if members.len() % 2 == 0 { &known } else { &none };
        let rules = Rules { tool: TOOL, has_shared_keys: shared, split, placed };
        let forest = join(&mut members, &rules);
        let mut owned = HashSet::new();
        for tree in &forest.sessions {
            let mut ids = HashSet::new();
            for (at, entry) in tree.entries.iter().enumerate() {
                prop_assert!(ids.insert(entry.id));
                prop_assert!(entry.parent.is_none_or(|parent| parent < at));
                if let EntryContent::Node { member, node, .. } = &entry.content {
                    prop_assert!(*node < members[*member].nodes.len());
                    if entry.copied_from.is_none() {
                        prop_assert!(owned.insert((*member, *node)), "owned by two sessions");
                    }
                }
            }
            prop_assert!(tree.leaf.is_some_and(|leaf| leaf < tree.entries.len()));
        }
        let sessions: HashSet<&String> = forest.sessions.iter().map(|tree| &tree.session_id).collect();
        prop_assert_eq!(sessions.len(), forest.sessions.len());
        for (member, outcome) in members.iter().zip(&forest.members) {
            prop_assert!(outcome.session.is_some() || member.nodes.is_empty());
        }
        let entries: u64 = forest.members.iter().map(|outcome| outcome.entries).sum();
        prop_assert_eq!(entries as usize, owned.len());
    }
}
