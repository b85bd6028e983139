use super::CodexFormat;
use crate::member::{Base, Node, NodeKind, Parent};
use crate::reader::Format;
use crate::tests::scanning::{self as testing, Source, fixture, paths};
use std::collections::BTreeSet;
use treelined_core::agent::Tool;

mod hostile;
mod lines;

fn read(path: &str, bytes: &[u8]) -> Source {
    let source = testing::read(&CodexFormat, path, bytes);
    source.check(&CodexFormat);
    source
}

fn rollouts<const N: usize>(folder: &str, names: [&str; N]) -> Vec<Source> {
    let path = |name: &str| format!("codex/{folder}/rollout-2026-11-22T02-{name}.jsonl");
    let sources = names.map(path).map(|path| read(&path, &fixture(&path)));
    sources.into_iter().collect()
}

const FIRST: &str = "stub-1 > U:First question > A:";
const CALL: &str = "A:(**Thinking**) exec_command{\"cmd\":\"echo hello\"} > R:exec_command > A:";

/// The three conversations of the script that made the files: the first conversation, the same conversation after its
/// revert, and the fork of the first conversation.
fn expected(answers: [u32; 8]) -> [String; 3] {
    let [first, second, third, fork, again, after, ..] = answers;
    let before = format!(
        "{FIRST}Answer {first}. > U:RUN the tests > {CALL}Done with the tool, answer {second}."
    );
    [
        format!("{before} > U:Third question > A:Answer {third}."),
        format!(
            "{FIRST}Answer {first}. > U:In the fork: RUN other way > {CALL}Done with the tool, answer {fork}."
        ),
        format!(
            "{before} > U:Third question, asked otherwise > A:Answer {again}. > compaction > U:After the compaction > A:Answer {after}."
        ),
    ]
}

#[test]
fn a_revert_and_a_fork_of_a_paginated_thread_are_branches() {
    let sources = rollouts(
        "0.169-paginated",
        [
            "44-44-01a20124-4777-7de2-915b-ef7ddcee9bbf",
            "44-45-01a20124-4b01-7243-9571-436f573661a6",
            "44-46-01a20124-4777-7de2-915b-ef7ddcee9bbf_01a20124-4d64-7851-ba36-1181d73e9a08",
        ],
    );
    let found = paths(&CodexFormat, &sources);
    assert_eq!(found, expected([3, 5, 6, 8, 9, 11, 0, 0]).into());
    let [first, fork, revert] = [0, 1, 2].map(|index| &sources[index].member);
    let thread = "01a20124-4777-7de2-915b-ef7ddcee9bbf";
    assert_eq!((&*first.native_id, &*first.part_id), (thread, thread));
    assert_eq!(revert.native_id, thread);
    assert_eq!(revert.part_id, "01a20124-4d64-7851-ba36-1181d73e9a08");
    assert_eq!(fork.native_id, "01a20124-4b01-7243-9571-436f573661a6");
    let part_id = thread.to_owned();
    assert_eq!(fork.base, Base::Before { part_id, order: 14 });
    assert!(first.started < revert.started);
    assert_eq!(first.cwd.as_deref(), Some("/srv/wave2/proj"));
    assert_eq!(&*first.nodes[2].key, format!("{thread}#5"));
    assert!(first.nodes.iter().all(|node| !node.is_open));
    let names = super::thread_names(&fixture("codex/0.169-paginated/session_index.jsonl"));
    assert_eq!(names[thread], "My thread");
}

/// Each response has its own usage. In 0.169 it comes from records, in 0.130 from the difference of two totals.
#[test]
fn usage_is_that_of_each_response() {
    let first = "47-32-01a20126-d5a1-7780-b7c1-2668a09993de";
    let [legacy] = &rollouts("0.169-legacy", [first])[..] else {
        panic!()
    };
    let old = "58-01-01a20130-6fe2-74f2-ab32-1ba913fb223d";
    let [rollback] = &rollouts("0.130-rollback", [old])[..] else {
        panic!()
    };
    let totals = |source: &Source| -> Vec<u64> {
        let nodes = source.member.nodes.iter();
        let answers = nodes.filter(|node| node.kind == NodeKind::Assistant);
        let entries = answers.map(|node| source.entry(&CodexFormat, node));
        let totals = entries.map(|entry| entry["message"]["usage"]["totalTokens"].as_u64());
        totals.map(Option::unwrap).collect()
    };
    assert_eq!(totals(legacy), [122, 123, 124, 125, 128, 130]);
    assert_eq!(totals(rollback), [113, 114, 115, 116, 119, 121]);
    for (source, tokens) in [(legacy, 129), (rollback, 120)] {
        let mut nodes = source.member.nodes.iter();
        let is_compaction = |kind: &NodeKind| matches!(kind, NodeKind::Compaction { .. });
        let compaction = nodes.find(|node| is_compaction(&node.kind)).unwrap();
        let entry = source.entry(&CodexFormat, compaction);
        assert_eq!(entry["usage"]["totalTokens"], tokens);
        assert_eq!(entry["tokensBefore"], tokens);
        // Once the tokens had no price, because these members were missing.
        let last = source
            .member
            .nodes
            .iter()
            .find(|node| node.kind == NodeKind::Assistant);
        let answer = source.entry(&CodexFormat, last.unwrap());
        for name in ["provider", "model"] {
            assert!(entry[name].is_string(), "{entry}");
            assert_eq!(entry[name], answer["message"][name]);
        }
        assert!(entry["summary"].as_str().unwrap().contains("Answer 1"));
    }
}

#[test]
fn a_legacy_fork_repeats_its_parent() {
    let sources = rollouts(
        "0.169-legacy",
        [
            "47-32-01a20126-d5a1-7780-b7c1-2668a09993de",
            "47-32-01a20126-d84d-7e30-8bb8-c82a25e866fc",
        ],
    );
    // Codex of this version cannot revert a legacy thread.
    let third = "U:Third question > A:Answer 15. > U:Third question, asked otherwise";
    let [_, fork, after] = expected([12, 14, 15, 17, 18, 20, 0, 0]);
    let after = after.replace("U:Third question, asked otherwise", third);
    assert_eq!(paths(&CodexFormat, &sources), [fork, after].into());
    let native_id = sources[0].member.native_id.clone();
    assert_eq!(sources[1].member.base, Base::CopyOf { native_id });
}

#[test]
fn turns_that_were_rolled_back_stay_as_a_branch() {
    let sources = rollouts(
        "0.130-rollback",
        [
            "58-01-01a20130-6fe2-74f2-ab32-1ba913fb223d",
            "58-02-01a20130-7291-7800-8e5b-78c4ddb0cd64",
        ],
    );
    let [third, _, after] = expected([3, 5, 6, 8, 9, 11, 0, 0]);
    // In this version, a fork copies the whole session.
    let fork =
        format!("{third} > U:In the fork: RUN other way > {CALL}Done with the tool, answer 8.");
    assert_eq!(paths(&CodexFormat, &sources), [fork, after].into());
}

#[test]
fn a_compressed_rollout_is_read_like_another() {
    let name = "rollout-2026-11-22T02-41-15-01a20121-18bc-7232-aae0-6c12131d324c.jsonl.zst";
    let path = format!("codex/0.169-exec-zst/{name}");
    let bytes = zstd::decode_all(&fixture(&path)[..]).unwrap();
    let source = read(&path, &bytes);
    let one = paths(&CodexFormat, std::slice::from_ref(&source));
    let said = format!("stub-1 > U:RUN the build > {CALL}Done with the tool, answer 2.");
    assert_eq!(one, [said].into());
    let result = source.member.nodes.iter();
    let mut results = result.filter(|node| node.kind == NodeKind::ToolResult);
    let entry = source.entry(&CodexFormat, results.next().unwrap());
    let details = &entry["message"]["details"];
    assert_eq!(details["exit_code"], 0);
    assert_eq!(details["aggregated_output"], "hello\n");
    assert_eq!(entry["message"]["isError"], false);
}

#[test]
fn real_rollouts_are_read_whole() {
    for path in testing::real_files(Tool::Codex) {
        let name = path.to_str().unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        if name.ends_with(".zst") {
            bytes = zstd::decode_all(&bytes[..]).unwrap();
        }
        if name.ends_with("session_index.jsonl") || name.ends_with(".sqlite") {
            continue;
        }
        let source = read(name, &bytes);
        assert!(!source.member.nodes.is_empty(), "{name}");
    }
}
