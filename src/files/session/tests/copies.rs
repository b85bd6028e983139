//! Tests of copies of a session: forks, subtrees, and the lines that can be read.

use super::super::fork::ForkContent;
use super::super::subtree::SubtreeContent;
use crate::cancel::Cancel;
use crate::clock::SystemSource;
use crate::log::Log;
use crate::log::header::Header;
use crate::log::readable::ReadableLines;
use crate::os::file::Location;
use crate::session::{Session, SessionGuard};
use proptest::prelude::*;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::entry::{Kind, Role};
use treelined_core::error::Kind as ErrorKind;
use treelined_core::flow::fork::{End, ForkSide, OpenCall};
use treelined_core::tree::{FilePlace, Node, Tree};

/// A line of a session: its kind, and the numbers of the entries that it names.
#[derive(Debug, Clone)]
struct Line {
    kind: usize,
    parent: prop::sample::Index,
    named: prop::sample::Index,
    is_apart: bool,
}

const TIME: &str = "2025-01-01T00:00:00.000Z";

fn text_of(lines: &[Line]) -> String {
    let mut text = format!("{}\n", super::HEADER);
    for (number, line) in lines.iter().enumerate() {
        let of = |index: &prop::sample::Index| format!("e{}", index.index(number.max(1)));
        // The parent of most entries is the entry before them.
        let parent = match line.is_apart {
            true => json!(of(&line.parent)),
            false if number == 0 => json!(null),
            false => json!(format!("e{}", number - 1)),
        };
        let named = of(&line.named);
        let mut entry = match line.kind {
            0 => json!({"type": "message", "message": {"role": "user", "content": "u"}}),
            1 => json!({"type": "label", "targetId": named, "label": "l"}),
            2 => {
                json!({"type": "compaction", "summary": "s", "firstKeptEntryId": named, "tokensBefore": 1})
            }
            3 => json!({"type": "custom", "customType": "c", "data": "x".repeat(number)}),
            4 => json!({"type": "session_info", "name": "n"}),
            5 => {
                text.push_str("{\"type\":\"mess\n \n");
                json!({"type": "message", "message": {"role": "toolResult", "content": []}})
            }
            _ => json!({"type": "message", "message": {"role": "assistant", "content": []}}),
        };
        entry["id"] = json!(format!("e{number}"));
        entry["parentId"] = parent;
        entry["timestamp"] = json!(TIME);
        text += &format!("{entry}\n");
    }
    text
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (
        0..8_usize,
        any::<(prop::sample::Index, prop::sample::Index)>(),
        0..4_u8,
    );
    let line = line.prop_map(|(kind, (parent, named), apart)| Line {
        kind,
        parent,
        named,
        is_apart: apart == 0,
    });
    prop::collection::vec(line, 1..40)
}

fn opened(path: &Path, text: &str) -> Arc<Session> {
    std::fs::write(path, text).unwrap();
    let opened = Log::open(Location::of_path(path).unwrap()).unwrap();
    Session::new(opened, false, Durability::Os)
}

fn guard(session: &Arc<Session>) -> SessionGuard {
    session.guard(Instant::now(), ()).unwrap()
}

/// An entry in the order of the file: its id, its parent, its kind, its role and its place.
type Row = (String, Option<String>, Kind, Role, FilePlace);

fn rows(tree: &Tree) -> Vec<Row> {
    let nodes = (0..tree.node_count()).filter_map(|number| tree.node(number));
    let row = |node: Node| {
        let parent = tree.parent(node).map(|parent| tree.id(parent).to_owned());
        let id = tree.id(node).to_owned();
        (
            id,
            parent,
            tree.kind(node),
            tree.role(node),
            tree.place(node),
        )
    };
    nodes.map(row).collect()
}

fn header() -> Header {
    Header::new("copy", 0, "/", None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A fork has the tree of its file without reading the file again.
    #[test]
    fn a_fork_is_what_its_file_says(lines in lines(), tip in any::<prop::sample::Index>(), named in any::<bool>()) {
        let folder = tempfile::tempdir().unwrap();
        let source = opened(&folder.path().join("s.jsonl"), &text_of(&lines));
        let guard = guard(&source);
        let tip = guard.tree.node(tip.index(guard.tree.node_count()));
        let end = End { position: ForkSide::At, tip };
        let calls = [OpenCall { id: "c".to_owned(), name: "bash".to_owned() }];
        let calls = if named { &calls[..] } else { &[] };
        let fork = ForkContent::prepare(&guard, end, calls, named.then_some("n"), &SystemSource).unwrap();
        let path = folder.path().join("fork.jsonl");
        let at = Location::of_path(&path).unwrap();
        let made = fork.to_file(at.clone(), header().to_line(), named).unwrap().opened;
        let read = Log::open(at).unwrap();
        prop_assert_eq!(rows(&made.tree), rows(&read.tree));
        prop_assert_eq!(made.tree.file_leaf(), read.tree.file_leaf());
        prop_assert!(read.diagnostics.is_empty());
        let kept = guard.tree.path(tip).into_iter().filter(|node| guard.tree.kind(*node) != Kind::Label);
        let kept: Vec<&str> = kept.map(|node| guard.tree.id(node)).collect();
        let copied: Vec<Row> = rows(&read.tree);
        let ids: Vec<&str> = copied.iter().take(kept.len()).map(|(id, ..)| id.as_str()).collect();
        prop_assert_eq!(&ids, &kept);
        prop_assert_eq!(fork.is_empty(), kept.is_empty() && !named);
        prop_assert_eq!(copied.iter().filter(|(.., role, _)| *role == Role::ToolResult).count() >= calls.len(), true);
        let mut text = header().to_line();
        fork.each_line(&mut |line| {
            text.push(b'\n');
            text.extend_from_slice(line);
            Ok(())
        }).unwrap();
        text.push(b'\n');
        if !named {
            // If the fork has a name, the lines that it adds have new times.
            prop_assert_eq!(&std::fs::read(&path).unwrap(), &text);
        }
        let in_memory = fork.to_memory(header()).unwrap();
        let without_places = |rows: Vec<Row>| rows.into_iter().map(|(id, parent, kind, role, _)| (id, parent, kind, role)).collect::<Vec<_>>();
        prop_assert_eq!(without_places(rows(&in_memory.tree)), without_places(copied));
        let size = fork.size();
        prop_assert!(size <= text.len() as u64, "{} {}", size, text.len());
    }

    /// The copy has the entry and all entries below it. No entry of the copy has a parent outside the copy.
    #[test]
    fn a_subtree_is_complete_in_itself(lines in lines(), top in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let source = opened(&folder.path().join("s.jsonl"), &text_of(&lines));
        let guard = guard(&source);
        let tree = &guard.tree;
        let top = tree.node(top.index(tree.node_count())).unwrap();
        let subtree = SubtreeContent::prepare(&guard, top, &SystemSource).unwrap();
        let mut text = String::from_utf8(header().to_line()).unwrap() + "\n";
        subtree.each_line(&mut |line| {
            text += &format!("{}\n", str::from_utf8(line).unwrap());
            Ok(())
        }).unwrap();
        let path = folder.path().join("subtree.jsonl");
        std::fs::write(&path, text).unwrap();
        let copy = Log::open(Location::of_path(&path).unwrap()).unwrap();
        prop_assert!(copy.diagnostics.is_empty(), "{:?}", copy.diagnostics);
        let is_below = |node: Node| tree.ancestors(Some(node)).any(|above| above == top);
        let below = (0..tree.node_count()).filter_map(|number| tree.node(number)).filter(|node| is_below(*node));
        for node in below.filter(|node| tree.kind(*node) != Kind::Label) {
            prop_assert!(copy.tree.find(tree.id(node)).is_some(), "{}", tree.id(node));
        }
        prop_assert!(subtree.size() > 0 || tree.kind(top) == Kind::Label);
        let roots = rows(&copy.tree).into_iter().filter(|(_, parent, ..)| parent.is_none());
        // Labels are left out, so the entries below a label are all roots.
        prop_assert!(roots.count() <= 1 || tree.kind(top) == Kind::Label);
    }

    /// The lines that can be read make the same tree, and damaged ones are left out.
    #[test]
    fn readable_lines_make_the_same_tree(lines in lines()) {
        let folder = tempfile::tempdir().unwrap();
        let source = opened(&folder.path().join("s.jsonl"), &(text_of(&lines) + "{\"type\":\"torn"));
        let guard = guard(&source);
        let readable = ReadableLines::prepare(&guard.log, &guard.tree).unwrap();
        let mut text = String::new();
        readable.each(&Cancel::new(), &mut |line| {
            text += &format!("{}\n", str::from_utf8(line).unwrap());
            Ok(())
        }).unwrap();
        prop_assert!(text.len() as u64 <= readable.size());
        let path = folder.path().join("readable.jsonl");
        std::fs::write(&path, &text).unwrap();
        let copy = Log::open(Location::of_path(&path).unwrap()).unwrap();
        let ids = |rows: Vec<Row>| rows.into_iter().map(|(id, parent, ..)| (id, parent)).collect::<Vec<_>>();
        prop_assert_eq!(ids(rows(&copy.tree)), ids(rows(&guard.tree)));
        prop_assert!(!text.contains("\"mess\n") && !text.contains("torn"));
        let cancelled = Cancel::new();
        cancelled.cancel();
        let refused = readable.each(&cancelled, &mut |_| Ok(())).unwrap_err();
        prop_assert_eq!(refused.kind, ErrorKind::Cancelled);
    }
}

/// The lines of a session that is in memory are its header and its entries.
#[test]
fn a_session_in_memory_has_readable_lines() {
    let mut log = Log::ephemeral(header());
    let mut tree = Tree::new();
    let entry = json!({"type": "custom", "id": "a", "parentId": null, "timestamp": TIME, "customType": "c"});
    log.fill(&mut tree, vec![entry.to_string().into_bytes()])
        .unwrap();
    let readable = ReadableLines::prepare(&log, &tree).unwrap();
    let mut lines = Vec::new();
    let mut take = |line: &[u8]| {
        lines.push(line.to_vec());
        Ok(())
    };
    readable.each(&Cancel::new(), &mut take).unwrap();
    assert_eq!(lines, [header().to_line(), entry.to_string().into_bytes()]);
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    assert_eq!(readable.size(), bytes as u64);
}

/// A large fork is written in pieces by a separate thread; a line may be longer than a piece.
#[test]
fn a_large_fork_is_copied_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let mut text = format!("{}\n", super::HEADER);
    for number in 0..40_usize {
        let parent = number.checked_sub(1).map(|before| format!("e{before}"));
        let data = "x".repeat(if number == 20 { 3 << 20 } else { 100 << 10 });
        let entry = json!({"type": "custom", "id": format!("e{number}"), "parentId": parent, "timestamp": TIME,
            "customType": "c", "data": data});
        text += &format!("{entry}\n");
    }
    let source = opened(&path, &text);
    let guard = guard(&source);
    let end = End {
        position: ForkSide::At,
        tip: guard.tree.leaf(),
    };
    let fork = ForkContent::prepare(&guard, end, &[], None, &SystemSource).unwrap();
    let to = folder.path().join("fork.jsonl");
    let at = Location::of_path(&to).unwrap();
    let line = header().to_line();
    drop(fork.to_file(at, line.clone(), false).unwrap());
    let copy = std::fs::read_to_string(&to).unwrap();
    let entries = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert!(entries(&copy) == entries(&text), "the entries are the same");
    assert!(copy.as_bytes().starts_with(&line));
    // An entry is edited in place before the copy reads it.
    std::fs::write(&path, text.replace("\"id\":\"e7\"", "\"id\":\"f7\"")).unwrap();
    let other = folder.path().join("other.jsonl");
    let changed = fork.to_file(Location::of_path(&other).unwrap(), line, false);
    assert_eq!(
        changed.err().map(|error| error.kind),
        Some(ErrorKind::SessionReplaced)
    );
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        2,
        "no file stays"
    );
    let changed = fork.each_line(&mut |_| Ok(())).unwrap_err();
    assert_eq!(changed.kind, ErrorKind::SessionReplaced);
}

/// The context has the part of the path that the latest compaction keeps.
#[test]
fn a_path_has_its_steps_its_kept_part_and_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let entry = |id: &str, parent: Option<&str>, mut rest: serde_json::Value| {
        rest["id"] = json!(id);
        rest["parentId"] = json!(parent);
        rest["timestamp"] = json!(TIME);
        rest.to_string()
    };
    let message =
        |role: &str| json!({"type": "message", "message": {"role": role, "content": "x"}});
    let compaction =
        json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "b", "tokensBefore": 1});
    let lines = [
        entry("a", None, message("user")),
        entry("b", Some("a"), message("assistant")),
        entry("c", Some("b"), compaction),
        entry("d", Some("c"), message("user")),
    ];
    let text = format!("{}\n{}\n", super::HEADER, lines.join("\n"));
    let source = opened(&folder.path().join("s.jsonl"), &text);
    let guard = guard(&source);
    let steps = guard.steps(guard.tree.leaf());
    let shown: Vec<_> = steps.iter().map(|step| (step.kind, step.role)).collect();
    let (user, assistant) = (
        (Kind::Message, Role::User),
        (Kind::Message, Role::Assistant),
    );
    assert_eq!(
        shown,
        [user, assistant, (Kind::Compaction, Role::None), user]
    );
    let kept = guard.kept(&steps).unwrap();
    let kept: Vec<&str> = kept.nodes(&steps).map(|node| guard.tree.id(node)).collect();
    assert_eq!(kept, ["b", "c", "d"]);
    let nodes = || steps.iter().map(|step| step.node);
    let sizes = lines.iter().map(String::len);
    assert_eq!(
        guard.stored_bytes(nodes()),
        sizes.clone().sum::<usize>() as u64
    );
    assert_eq!(guard.longest_bytes(nodes()), sizes.max().unwrap() as u64);
    assert_eq!(guard.longest_bytes([]), 0);
}
