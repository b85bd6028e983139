use super::PiFormat;
use crate::member::{Base, NodeKind, Parent};
use crate::reader::Format;
use crate::tests::scanning::{self as testing, Source, fixture};
use proptest::prelude::*;
use serde_json::{Value, json};
use treelined_core::agent::Tool;
use treelined_core::test_support::time;

fn read(path: &str, bytes: &[u8]) -> Source {
    let source = testing::read(&PiFormat, path, bytes);
    source.check(&PiFormat);
    source
}

fn lines(lines: &[&str]) -> Source {
    read(
        "2026-01-01T00-00-00-000Z_s.jsonl",
        lines.join("\n").as_bytes(),
    )
}

fn shape(source: &Source) -> Vec<(&str, String)> {
    let nodes = source.member.nodes.iter();
    let parents = nodes.map(|node| {
        let parent = match &node.parent {
            Parent::Base => "-".to_owned(),
            Parent::Node(index) => source.member.nodes[*index as usize].key.to_string(),
            Parent::Key(key) => format!("?{key}"),
        };
        (&*node.key, parent)
    });
    parents.collect()
}

fn body(source: &Source, index: usize) -> String {
    let node = &source.member.nodes[index];
    let at = node.places[0].at as usize..(node.places[0].at + node.places[0].len) as usize;
    let body = PiFormat.body(&source.member, node, &[&source.bytes[at]]);
    format!("{} {}", body.kind, String::from_utf8(body.members).unwrap())
}

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}"#;

#[test]
fn the_members_of_an_entry_are_copied_byte_for_byte() {
    let source = lines(&[
        HEADER,
        r#"{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user", "content":"\ud83d  x"},"n":1.0,"k\u0065y":12345678901234567890}"#,
        r#"{"type":"label","id":"b","parentId":"a","timestamp":"t","targetId":"a","label":"L"}"#,
        r#"{"type":"compaction","id":"c","parentId":"b","timestamp":"t","summary":"S","firstKeptEntryId":"a","tokensBefore":5,"retainedTail":[1]}"#,
        r#"{"type":"compaction","id":"d","parentId":"c","timestamp":"t","summary":"S","firstKeptEntryId":"gone","tokensBefore":5}"#,
        r#"{"type":"org.example","id":"e","parentId":"d","timestamp":"t","x":1}"#,
        r#"{"type":"message","id":"f","parentId":"gone","timestamp":"t","message":{"role":"hookMessage","content":"x"}}"#,
    ]);
    assert_eq!(
        body(&source, 0),
        r#"message ,"message":{"role":"user", "content":"\ud83d  x"},"n":1.0,"k\u0065y":12345678901234567890"#
    );
    assert_eq!(body(&source, 1), r#"label ,"label":"L""#);
    assert_eq!(
        body(&source, 2),
        r#"compaction ,"summary":"S","tokensBefore":5,"retainedTail":[1]"#
    );
    assert!(
        body(&source, 4).starts_with(r#"custom ,"customType":"pi.org.example","data":{"type""#)
    );
    assert_eq!(
        body(&source, 5),
        r#"message ,"message":{"role":"custom","content":"x"}"#
    );
    let nodes = &source.member.nodes;
    assert_eq!(
        nodes[2].kind,
        NodeKind::Compaction {
            first_kept: Some(0)
        }
    );
    assert_eq!(nodes[3].kind, NodeKind::Compaction { first_kept: None });
    let label = br#"{"type":"label","targetId":"a"}"#;
    let named = PiFormat.references(&nodes[1], &[label]);
    assert_eq!(named, [("targetId", "a".to_owned())]);
    assert_eq!(source.member.leaf, Some(5));
    assert_eq!(shape(&source).last(), Some(&("f", "?gone".to_owned())));
}

#[test]
fn names_and_moves_of_the_leaf_are_not_entries() {
    let source = lines(&[
        r#"{"type":"title","title":"Old"}"#,
        HEADER,
        r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"x"}}"#,
        r#"{"type":"session_info","id":"b","parentId":"a","timestamp":"t","name":" New "}"#,
        r#"{"type":"message","id":"c","parentId":"b","timestamp":"t","message":{"role":"user","content":"y"}}"#,
        r#"{"type":"custom","customType":"treelined.leaf","id":"l","parentId":"b","timestamp":"t","data":{}}"#,
    ]);
    assert_eq!(source.member.title.as_deref(), Some("New"));
    assert_eq!(shape(&source), [("a", "-".into()), ("c", "a".into())]);
    assert_eq!(source.member.leaf, Some(0));
    assert_eq!(source.member.cwd.as_deref(), Some("/w"));
}

#[test]
fn a_reference_to_a_record_without_an_entry_names_its_neighbour() {
    let source = lines(&[
        HEADER,
        r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"x"}}"#,
        r#"{"type":"session_info","id":"b","parentId":"a","timestamp":"t","name":"N"}"#,
        r#"{"type":"session_info","id":"c","parentId":"b","timestamp":"t","name":"M"}"#,
        r#"{"type":"message","id":"d","parentId":"c","timestamp":"t","message":{"role":"user","content":"y"}}"#,
        r#"{"type":"compaction","id":"e","parentId":"d","timestamp":"t","summary":"S","firstKeptEntryId":"b","tokensBefore":1}"#,
        r#"{"type":"branch_summary","id":"f","parentId":"a","timestamp":"t","summary":"S","fromId":"c"}"#,
    ]);
    let nodes = &source.member.nodes;
    let first_kept = Some(1);
    assert_eq!(nodes[2].kind, NodeKind::Compaction { first_kept });
    let summary = br#"{"type":"branch_summary","fromId":"c"}"#;
    let named = PiFormat.references(&nodes[3], &[summary]);
    assert_eq!(named, [("fromId", "a".to_owned())]);
}

#[test]
fn a_fork_names_its_parent_and_shares_its_ids() {
    for parent in [
        r#""parentSession":"/home/a/.pi/agent/sessions/--w--/2026-01-01T00-00-00-000Z_p.jsonl""#,
        r#""branchedFrom":"C:\\s\\2026-01-01T00-00-00-000Z_p.jsonl""#,
        r#""parentSession":"p""#,
    ] {
        let header = format!(r#"{{"type":"session","version":3,"id":"f",{parent}}}"#);
        let entry = r#"{"type":"message","id":"a","parentId":null,"timestamp":"1","message":{"role":"user","content":"x"}}"#;
        let fork = lines(&[&header, entry]);
        let native_id = "p".to_owned();
        assert_eq!(fork.member.base, Base::CopyOf { native_id });
        let own = lines(&[HEADER, &entry.replace("\"x\"", "\"rewritten\"")]);
        let later = lines(&[HEADER, &entry.replace("\"1\"", "\"2\"")]);
        let print = |source: &Source| source.member.nodes[0].fingerprint;
        assert_eq!(print(&fork), print(&own));
        assert_ne!(print(&fork), print(&later));
    }
    assert!(PiFormat.has_shared_keys());
}

#[test]
fn a_duplicate_is_kept_beside_the_first() {
    let first = r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"user","content":"x"}}"#;
    let other = first.replace("\"x\"", "\"y\"");
    let child = r#"{"type":"message","id":"b","parentId":"a","timestamp":"t","message":{"role":"user","content":"z"}}"#;
    let source = lines(&[HEADER, first, first, &other, child]);
    assert_eq!(source.member.duplicates, 1);
    assert_eq!(
        shape(&source),
        [("a", "-".into()), ("a/3", "a".into()), ("b", "a".into())]
    );
    assert!(
        body(&source, 1).starts_with(r#"custom ,"customType":"import.duplicate","data":{"type""#)
    );
}

#[test]
fn a_parent_that_comes_later_is_linked() {
    let entry = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":"{parent}","timestamp":"t","message":{{"role":"user","content":""}}}}"#
        )
    };
    let texts = [
        HEADER.to_owned(),
        entry("b", "a"),
        entry("c", "b"),
        entry("a", "gone"),
        entry("x", "y"),
        entry("y", "x"),
        entry("z", "z"),
    ];
    let source = lines(&texts.each_ref().map(String::as_str));
    let expected = [
        ("a", "?gone"),
        ("b", "a"),
        ("c", "b"),
        ("z", "-"),
        ("x", "-"),
        ("y", "x"),
    ];
    assert_eq!(
        shape(&source),
        expected.map(|(key, parent)| (key, parent.to_owned()))
    );
    assert_eq!(source.member.leaf, Some(3));
}

#[test]
fn version_1_is_a_chain() {
    let source = lines(&[
        r#"{"type":"session","id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w"}"#,
        r#"{"type":"message","timestamp":"t","message":{"role":"user","content":"x"}}"#,
        r#"{"type":"message","timestamp":"t","message":{"role":"assistant","content":[]}}"#,
        r#"{"type":"compaction","timestamp":"t","summary":"S","firstKeptEntryIndex":2,"tokensBefore":1}"#,
        r#"{"type":"compaction","timestamp":"t","summary":"S","firstKeptEntryIndex":0,"tokensBefore":1}"#,
    ]);
    let expected = [("#1", "-"), ("#2", "#1"), ("#3", "#2"), ("#4", "#3")];
    assert_eq!(
        shape(&source),
        expected.map(|(key, parent)| (key, parent.to_owned()))
    );
    let nodes = &source.member.nodes;
    assert_eq!(
        nodes[2].kind,
        NodeKind::Compaction {
            first_kept: Some(1)
        }
    );
    assert_eq!(nodes[3].kind, NodeKind::Compaction { first_kept: None });
}

#[test]
fn real_files_are_read_whole() {
    for path in testing::real_files(Tool::Pi) {
        let source = read(path.to_str().unwrap(), &std::fs::read(&path).unwrap());
        assert!(source.member.nodes.len() > 5, "{}", path.display());
        assert!(source.member.leaf.is_some());
    }
    let source = read("x.jsonl", &fixture("pi/agentsview-session.jsonl"));
    assert_eq!(source.member.nodes.len(), 9);
    let native_id = "parent-uuid".to_owned();
    assert_eq!(source.member.base, Base::CopyOf { native_id });
}

fn values() -> impl Strategy<Value = Value> {
    let words = vec![
        "session",
        "message",
        "compaction",
        "label",
        "custom",
        "title",
        "session_info",
        "a",
        "b",
        "c",
        "treelined.leaf",
        "user",
        "branch_summary",
        "leaf",
        "",
        "org.x",
        "2026-01-01T00:00:00.000Z",
    ];
    let keys = vec![
        "type",
        "id",
        "parentId",
        "timestamp",
        "message",
        "role",
        "content",
        "firstKeptEntryId",
        "version",
        "firstKeptEntryIndex",
        "targetId",
        "fromId",
        "customType",
        "name",
        "title",
        "parentSession",
        "cwd",
    ];
    let leaf = prop_oneof![
        5 => prop::sample::select(words).prop_map(Value::from),
        1 => Just(Value::Null),
        1 => (0_u64..9).prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 16, 8, move |inner| {
        let member = (prop::sample::select(keys.clone()), inner);
        prop::collection::vec(member, 0..8).prop_map(|members| {
            let members = members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value));
            Value::Object(members.collect())
        })
    })
}

proptest! {
    /// Messages of pi are copied, so the tests check only the reader and the form of entries.
    #[test]
    fn any_value_in_any_place_is_read(values in prop::collection::vec(values(), 0..20), keyed in any::<bool>()) {
        let header = if keyed { HEADER } else { r#"{"type":"session"}"# };
        let texts: Vec<String> = values.iter().map(Value::to_string).collect();
        let all: Vec<&str> = [header].into_iter().chain(texts.iter().map(String::as_str)).collect();
        let source = testing::read(&PiFormat, "x.jsonl", all.join("\n").as_bytes());
        for (index, node) in source.member.nodes.iter().enumerate() {
            prop_assert!(!matches!(node.parent, Parent::Node(parent) if parent as usize >= index));
            let body = body(&source, index);
            prop_assert!(body.contains(" "));
        }
    }
}

/// Each entry names the next one as its parent.
#[test]
fn time_is_linear_in_the_number_of_entries() {
    let bytes = |size: usize| {
        let entries = (0..size).map(|at| {
            let parent = (at + 1).to_string();
            let entry = json!({"type": "custom", "id": at.to_string(), "parentId": parent});
            format!("\n{entry}")
        });
        [HEADER.to_owned()]
            .into_iter()
            .chain(entries)
            .collect::<String>()
    };
    time::check_linear("entries", [500, 16_000], |size| {
        let text = bytes(size);
        time::processor_time(|| {
            let source = testing::read(&PiFormat, "x.jsonl", text.as_bytes());
            let last = source.member.nodes.len() - 1;
            assert_eq!(*source.member.nodes[0].key, *last.to_string());
        })
    });
}
