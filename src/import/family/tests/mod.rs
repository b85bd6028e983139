//! Joins members into families, and finds the parent of each node.

use super::*;
use crate::family::forest::{EntryContent, Placement, SessionTree, TreeEntry};
use crate::ids::NodeId;
use crate::member::{Base, Node, NodeKind, Parent};
use treelined_core::agent::Tool;

mod random;

const TOOL: Tool = Tool::Codex;

/// A node with the fingerprint of its text, below the previous node.
fn node(key: &str, kind: NodeKind, text: &str) -> Node {
    let hash = text.bytes().fold(7u64, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    Node {
        key: key.into(),
        parent: Parent::Base,
        kind,
        time: Some(1),
        order: 0,
        places: Vec::new(),
        fingerprint: if text.is_empty() { 0 } else { hash },
        note: None,
        is_open: false,
    }
}

/// A member whose nodes form a chain; `u:` is a user's message, `c:` a custom entry, any other an assistant's. The text
/// after `=` is the fingerprint.
fn member(native_id: &str, started: i64, nodes: &[&str]) -> Member {
    let mut made = Vec::new();
    for (at, text) in nodes.iter().enumerate() {
        let (key, print) = text.split_once('=').unwrap_or((text, ""));
        let kind = match key.split_once(':').map(|(kind, _)| kind) {
            Some("u") => NodeKind::User,
            Some("c") => NodeKind::Custom,
            _ => NodeKind::Assistant,
        };
        let mut node = node(key, kind, print);
        node.order = at as u64;
        node.time = Some(1_001 + at as i64);
        if at > 0 {
            node.parent = Parent::Node(at as u32 - 1);
        }
        made.push(node);
    }
    Member {
        native_id: native_id.into(),
        part_id: native_id.into(),
        title: Some(native_id.into()),
        cwd: Some("/w".into()),
        started: Some(started),
        ended: Some(started + 10),
        leaf: (made.len() as u32).checked_sub(1),
        nodes: made,
        ..Member::default()
    }
}

fn joined(mut members: Vec<Member>, shared: bool, split: bool) -> Vec<String> {
    let placed = HashMap::new();
    let rules = Rules {
        tool: TOOL,
        has_shared_keys: shared,
        split,
        placed: &placed,
    };
    let forest = join(&mut members, &rules);
    shapes(&members, &forest)
}

/// Each session as `native: parent>key …`; `^` marks a copy, `!` a gap, `*` the leaf, `"…"` a label.
fn shapes(members: &[Member], forest: &Forest) -> Vec<String> {
    let name = |entry: &TreeEntry| match &entry.content {
        EntryContent::Node { member, node, .. } => members[*member].nodes[*node]
            .key
            .rsplit(':')
            .next()
            .unwrap()
            .to_owned(),
        EntryContent::Gap { expected_parent } => format!("!{expected_parent}"),
    };
    let shape = |tree: &SessionTree| {
        let mut out = format!("{}:", tree.native_id);
        for (at, entry) in tree.entries.iter().enumerate() {
            let parent = entry.parent.map(|parent| name(&tree.entries[parent]));
            out += &format!(" {}>{}", parent.unwrap_or_default(), name(entry));
            if entry.copied_from.is_some() {
                out += "^";
            }
            if tree.leaf == Some(at) {
                out += "*";
            }
            for label in tree.labels.iter().filter(|label| label.entry == at) {
                out += &format!("{:?}", label.text);
            }
        }
        if tree.recovered > 0 {
            out += &format!(" recovered {}", tree.recovered);
        }
        if tree.is_heuristic {
            out += " heuristic";
        }
        if tree.is_family_split {
            out += " split";
        }
        out
    };
    forest.sessions.iter().map(shape).collect()
}

#[test]
fn one_member_is_one_session() {
    assert_eq!(
        joined(vec![member("a", 1, &["u:1", "2"])], false, false),
        ["a: >1 1>2*"]
    );
}

/// Once the session whose name sorts first became the root, although it is the copy. Then the end of the original got a
/// label.
#[test]
fn the_parent_that_a_copy_names_is_the_root_even_if_both_began_at_one_time() {
    let copy = |native_id: &str, of: &str, nodes: &[&str]| Member {
        base: Base::CopyOf {
            native_id: of.into(),
        },
        ..member(native_id, 1, nodes)
    };
    let members = vec![
        copy("a", "b", &["u:1", "2", "5"]),
        copy("b", "z", &["u:1", "2", "4"]),
        member("z", 1, &["u:1", "2", "3"]),
    ];
    let sessions = joined(members, true, false);
    assert_eq!(sessions.len(), 1);
    assert!(sessions[0].starts_with("z: >1 1>2 2>3"), "{sessions:?}");
    // If two sessions name each other, both are still read.
    let members = vec![copy("a", "b", &["u:1", "2"]), copy("b", "a", &["u:1", "3"])];
    assert_eq!(joined(members, true, false).len(), 1);
}

#[test]
fn members_with_nothing_in_common_are_separate_sessions() {
    let members = vec![member("a", 1, &["u:1"]), member("b", 2, &["u:1"])];
    assert_eq!(joined(members, false, false), ["a: >1*", "b: >1*"]);
}

#[test]
fn shared_keys_make_a_fork_a_branch_with_a_label_at_its_first_own_entry() {
    let fork = || member("f", 5, &["u:1", "2", "u:5", "6"]);
    let root = || member("r", 1, &["u:1", "2", "u:3", "4"]);
    let expected = ["r: >1 1>2 2>3 3>4 2>5\"f\" 5>6*"];
    assert_eq!(joined(vec![root(), fork()], true, false), expected);
    assert_eq!(joined(vec![fork(), root()], true, false), expected);
}

/// Once the label was the UUID of the fork, which means nothing to the user.
#[test]
fn the_label_of_a_fork_without_a_title_is_a_word() {
    let mut fork = member("f", 5, &["u:1", "2", "u:5"]);
    fork.title = None;
    let root = member("r", 1, &["u:1", "2", "u:3"]);
    let expected = ["r: >1 1>2 2>3 2>5*\"fork\""];
    assert_eq!(joined(vec![root, fork], true, false), expected);
}

#[test]
fn a_shared_prefix_without_a_message_of_a_person_joins_nothing() {
    let members = vec![member("a", 1, &["1", "u:2"]), member("b", 2, &["1", "u:3"])];
    assert_eq!(joined(members, true, false), ["a: >1 1>2*", "b: >1 1>3*"]);
}

#[test]
fn keys_that_are_record_numbers_are_not_shared() {
    let members = vec![
        member("a", 1, &["u:x", "#1"]),
        member("b", 2, &["u:y", "#1"]),
    ];
    assert_eq!(joined(members, true, false), ["a: >x x>#1*", "b: >y y>#1*"]);
}

#[test]
fn an_edited_node_with_the_key_of_another_is_a_branch() {
    let members = vec![
        member("a", 1, &["u:1=x", "u:2=y"]),
        member("b", 2, &["u:1=x", "u:2=z"]),
    ];
    assert_eq!(joined(members, true, false), ["a: >1 1>2 1>2*\"b\""]);
}

/// Two files of one native session may differ in a node, if they are copies that continued separately. The ids of
/// labels are made from keys, so both files give the same label.
#[test]
fn files_of_one_fork_that_differ_have_one_label() {
    let mut members = vec![
        member("a", 1, &["u:1=x", "u:2=y"]),
        member("b", 2, &["u:1=x", "u:2=z"]),
        member("b", 3, &["u:1=x", "u:2=w"]),
    ];
    let placed = HashMap::new();
    let rules = Rules {
        tool: TOOL,
        has_shared_keys: true,
        split: false,
        placed: &placed,
    };
    let forest = join(&mut members, &rules);
    let labels: Vec<NodeId> = forest
        .sessions
        .iter()
        .flat_map(|tree| tree.labels.iter().map(|label| label.id))
        .collect();
    assert_eq!(labels.len(), 1, "{labels:?}");
}

#[test]
fn a_copy_whose_parent_is_named_is_recognized_by_content_in_order() {
    let root = member("r", 1, &["u:r1=a", "r2=b", "u:r3=c"]);
    let mut fork = member("f", 2, &["u:f1=a", "f2=b", "u:f3=d"]);
    let copy = || Base::CopyOf {
        native_id: "r".into(),
    };
    fork.base = copy();
    assert_eq!(
        joined(vec![root, fork], false, false),
        ["r: >r1 r1>r2 r2>r3 r2>f3*\"f\""]
    );
    // These are two copies of a session whose file is missing.
    let mut one = member("f", 2, &["u:f1=a", "f2=b"]);
    let mut two = member("g", 3, &["u:g1=a", "g2=c"]);
    (one.base, two.base) = (copy(), copy());
    assert_eq!(
        joined(vec![two, one], false, false),
        ["f: >f1 f1>f2 f1>g2*\"g\""]
    );
}

#[test]
fn equal_nodes_in_a_row_are_matched_one_by_one() {
    let root = member("r", 1, &["u:r1=a", "u:r2=a", "u:r3=a"]);
    let mut fork = member("f", 2, &["u:f1=a", "u:f2=a", "u:f3=a", "u:f4=a"]);
    fork.base = Base::CopyOf {
        native_id: "r".into(),
    };
    assert_eq!(
        joined(vec![root, fork], false, false),
        ["r: >r1 r1>r2 r2>r3 r3>f4*\"f\""]
    );
}

#[test]
fn nodes_without_a_fingerprint_inside_a_copied_prefix_are_skipped() {
    let root = member("r", 1, &["c:r0", "u:r1=a", "r2=b"]);
    let mut fork = member(
        "f",
        2,
        &["c:f0", "u:f1=a", "c:f2", "f3=b", "c:f4", "u:f5=c"],
    );
    fork.base = Base::CopyOf {
        native_id: "r".into(),
    };
    assert_eq!(
        joined(vec![root, fork], false, false),
        ["r: >r0 r0>r1 r1>r2 r2>f4\"f\" f4>f5*"]
    );
}

#[test]
fn members_of_one_project_are_joined_by_content_and_exact_time() {
    let with = |mut member: Member, project: &str| {
        member.project = Some(project.into());
        member
    };
    let root = || with(member("r", 1, &["u:r1=a", "r2=b"]), "p");
    let fork = || with(member("f", 2, &["u:f1=a", "f2=c"]), "p");
    assert_eq!(
        joined(vec![root(), fork()], false, false),
        ["r: >r1 r1>r2 r1>f2*\"f\" heuristic"]
    );
    let elsewhere = with(fork(), "q");
    assert_eq!(joined(vec![root(), elsewhere], false, false).len(), 2);
    let mut later = fork();
    later.nodes[0].time = Some(9_999);
    assert_eq!(joined(vec![root(), later], false, false).len(), 2);
}

/// Times in whole seconds may be equal by chance, so two messages of the user must be equal.
#[test]
fn times_in_seconds_need_two_messages_of_a_person() {
    let seconds = |native_id: &str, started: i64, nodes: &[&str]| {
        let mut member = member(native_id, started, nodes);
        member.project = Some("p".into());
        for node in &mut member.nodes {
            node.time = Some(5_000);
        }
        member
    };
    let one = vec![
        seconds("r", 1, &["u:1=a", "2=b"]),
        seconds("f", 2, &["u:3=a", "4=c"]),
    ];
    assert_eq!(joined(one, false, false).len(), 2);
    let two = vec![
        seconds("r", 1, &["u:1=a", "2=b", "u:3=c"]),
        seconds("f", 2, &["u:4=a", "5=b", "u:6=c", "7=d"]),
    ];
    assert_eq!(joined(two, false, false).len(), 1);
}

/// A fork of a conversation with one prompt was once a separate session if the time of the prompt was a whole second,
/// which happens to one of a thousand such forks.
#[test]
fn a_prompt_at_a_whole_second_joins_where_the_clock_is_finer() {
    let at_a_second = |native_id: &str, started: i64, nodes: &[&str]| {
        let mut member = member(native_id, started, nodes);
        member.project = Some("p".into());
        member.nodes[0].time = Some(5_000);
        member.nodes[1].time = Some(5_017);
        member
    };
    let members = vec![
        at_a_second("r", 1, &["u:r1=a", "r2=b"]),
        at_a_second("f", 2, &["u:f1=a", "f2=b", "u:f3=c"]),
    ];
    assert_eq!(joined(members, false, false).len(), 1);
}

/// A part of session `native_id` that continues another part.
fn part(native_id: &str, id: &str, base: Option<(&str, u64)>, nodes: &[&str]) -> Member {
    let mut member = member(native_id, id.len() as i64, nodes);
    member.part_id = id.into();
    if let Some((part_id, order)) = base {
        let part_id = part_id.into();
        member.base = Base::Before { part_id, order };
        for (at, node) in member.nodes.iter_mut().enumerate() {
            node.order = order + at as u64;
        }
    }
    member
}

#[test]
fn parts_hang_where_they_go_on_and_replaced_tails_are_recovered() {
    let members = || {
        vec![
            part("t", "a", None, &["u:1", "2", "u:3", "4"]),
            part("t", "bb", Some(("a", 2)), &["u:5", "6"]),
            part("t", "ccc", Some(("bb", 3)), &["u:7"]),
            // The base of this part has no node with such a low order, so the part continues the base of its base.
            part("t", "dddd", Some(("ccc", 1)), &["u:8"]),
        ]
    };
    let expected = ["t: >1 1>2 2>3 3>4 2>5 5>6 5>7 1>8* recovered 3"];
    assert_eq!(joined(members(), false, false), expected);
    let reversed = members().into_iter().rev().collect();
    assert_eq!(joined(reversed, false, false), expected);
}

#[test]
fn missing_parents_hang_below_one_gap() {
    let mut lost = member("a", 1, &["u:1", "u:2", "3"]);
    lost.nodes[1].parent = Parent::Key("gone".into());
    lost.nodes[2].parent = Parent::Key("gone".into());
    assert_eq!(
        joined(vec![lost], false, false),
        ["a: >1 1>!gone !gone>2 !gone>3* recovered 1"]
    );
    let missing = part("t", "b", Some(("x", 4)), &["u:1"]);
    assert_eq!(joined(vec![missing], false, false), ["t: >!x#4 !x#4>1*"]);
}

#[test]
fn a_parent_in_another_session_is_found_by_its_key() {
    let root = member("r", 1, &["u:1", "2"]);
    let mut next = member("s", 2, &["u:3"]);
    next.nodes[0].parent = Parent::Key("2".into());
    assert_eq!(
        joined(vec![next, root], true, false),
        ["r: >1 1>2 2>3*\"s\""]
    );
}

#[test]
fn circles_are_cut_by_a_gap() {
    let mut one = member("a", 1, &["u:1"]);
    let mut two = member("b", 2, &["u:2"]);
    one.nodes[0].parent = Parent::Key("u:2".into());
    two.nodes[0].parent = Parent::Key("u:1".into());
    let shapes = joined(vec![one, two], true, false);
    assert_eq!(shapes, ["a: >!u:2 !u:2>1 1>2*\"b\""]);
    let bases = vec![
        part("t", "a", Some(("bb", 9)), &["u:1"]),
        part("t", "bb", Some(("a", 9)), &["u:2"]),
    ];
    assert_eq!(joined(bases, false, false).len(), 1);
}

#[test]
fn a_fork_in_another_directory_is_a_session_with_a_copied_prefix() {
    let root = member("r", 1, &["u:1", "2"]);
    let mut fork = member("f", 2, &["u:1", "u:3"]);
    fork.cwd = Some("/elsewhere".into());
    let expected = ["r: >1 1>2*", "f: >1^ 1>3*\"f\""];
    let without_label = expected.map(|it| it.replace("\"f\"", ""));
    assert_eq!(joined(vec![root, fork], true, false), without_label);
}

#[test]
fn split_gives_each_native_session_its_own_with_the_prefix_copied() {
    let root = part("r", "a", None, &["u:1", "2", "u:3"]);
    let fork = part("f", "bb", Some(("a", 2)), &["u:4"]);
    let placed = HashMap::new();
    let rules = Rules {
        tool: TOOL,
        has_shared_keys: false,
        split: true,
        placed: &placed,
    };
    let mut members = vec![root, fork];
    let forest = join(&mut members, &rules);
    assert_eq!(
        shapes(&members, &forest),
        ["r: >1 1>2 2>3*", "f: >1^ 1>2^ 2>4*"]
    );
    let [root, fork] = &forest.sessions[..] else {
        panic!("two sessions");
    };
    assert_eq!(fork.parent_session.as_ref(), Some(&root.session_id));
    let ids = |tree: &SessionTree| {
        tree.entries
            .iter()
            .map(|entry| entry.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(fork)[..2], ids(root)[..2]);
}

fn placed(sessions: &[(&str, &str)]) -> HashMap<String, Placement> {
    let placement = |(rank, (native, session)): (usize, &(&str, &str))| {
        let session_id = (*session).to_owned();
        ((*native).to_owned(), Placement { session_id, rank })
    };
    sessions.iter().enumerate().map(placement).collect()
}

#[test]
fn a_root_that_turns_up_later_joins_the_tree_of_its_fork() {
    let placed = placed(&[("f", "S")]);
    let rules = Rules {
        tool: TOOL,
        has_shared_keys: true,
        split: false,
        placed: &placed,
    };
    let mut alone = vec![member("f", 5, &["u:1", "2"])];
    let before = join(&mut alone, &rules);
    let mut members = vec![
        member("r", 1, &["u:1", "u:3"]),
        member("f", 5, &["u:1", "2"]),
    ];
    let after = join(&mut members, &rules);
    assert_eq!(shapes(&members, &after), ["f: >1 1>2* 1>3\"r\""]);
    assert_eq!(after.sessions[0].session_id, "S");
    for (old, new) in before.sessions[0]
        .entries
        .iter()
        .zip(&after.sessions[0].entries)
    {
        assert_eq!(old.id, new.id);
    }
}

#[test]
fn two_trees_that_turn_out_to_be_one_family_stay_two() {
    let placed = placed(&[("r", "S"), ("f", "T")]);
    let rules = Rules {
        tool: TOOL,
        has_shared_keys: true,
        split: false,
        placed: &placed,
    };
    let mut members = vec![member("r", 1, &["u:1"]), member("f", 5, &["u:1", "2"])];
    let forest = join(&mut members, &rules);
    assert_eq!(
        shapes(&members, &forest),
        ["r: >1* split", "f: >1^ 1>2* split"]
    );
}

#[test]
fn the_longest_copy_of_one_native_session_gives_its_nodes() {
    let members = vec![member("a", 1, &["u:1"]), member("a", 1, &["u:1", "2"])];
    assert_eq!(joined(members, false, false), ["a: >1 1>2*"]);
}

#[test]
fn a_subagent_names_the_call_that_spawned_it() {
    let mut trunk = member("t", 1, &["u:1", "2", "3", "4"]);
    trunk.nodes[2].kind = NodeKind::Subagent {
        native_id: "s".into(),
    };
    let mut agent = member("s", 2, &["u:5"]);
    agent.spawned_by = Some(crate::member::Spawner {
        native_id: "t".into(),
        tool_call_id: Some("call".into()),
    });
    let placed = HashMap::new();
    let rules = Rules {
        tool: TOOL,
        has_shared_keys: false,
        split: false,
        placed: &placed,
    };
    let forest = join(&mut [trunk, agent], &rules);
    let spawn = forest.sessions[1].spawned_by.as_ref().unwrap();
    assert_eq!(spawn.session_id, forest.sessions[0].session_id);
    assert_eq!(spawn.entry, Some(NodeId::of(TOOL, "t", "2")));
    assert_eq!(
        forest.sessions[1].parent_session.as_ref(),
        Some(&spawn.session_id)
    );
}

#[test]
fn a_leaf_on_a_custom_entry_moves_up() {
    let members = vec![member("a", 1, &["u:1", "2", "c:3"])];
    assert_eq!(joined(members, false, false), ["a: >1 1>2* 2>3"]);
}

#[test]
fn a_revert_without_a_later_turn_moves_the_leaf_to_its_base() {
    let members = || {
        vec![
            part("t", "a", None, &["u:1", "2", "u:3"]),
            part("t", "bb", Some(("a", 2)), &[]),
        ]
    };
    assert_eq!(
        joined(members(), false, false),
        ["t: >1 1>2* 2>3 recovered 1"]
    );
}
