//! Reads small sessions that the tests write, and real ones.

mod agents;
mod bodies;
mod families;
mod trees;

use super::ClaudeCode;
use crate::member::Member;
use crate::tests::testing::{Outline, check_calls, entry, outline, read, real_files, records};

/// A record: type, uuid, parent (`-` for none), seconds, and further members.
fn record(kind: &str, uuid: &str, parent: &str, seconds: u32, members: &str) -> String {
    let parent = match parent {
        "-" => "null".to_owned(),
        parent => format!("{parent:?}"),
    };
    format!(
        r#"{{"type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"sessionId":"S","cwd":"/w","timestamp":"2026-01-01T00:{:02}:{:02}.000Z",{members}}}"#,
        seconds / 60,
        seconds % 60,
    ) + "\n"
}

fn user(uuid: &str, parent: &str, seconds: u32, text: &str) -> String {
    let message = format!(r#""message":{{"role":"user","content":"{text}"}}"#);
    record("user", uuid, parent, seconds, &message)
}

/// A record with one block of the model message `id`.
fn part(uuid: &str, parent: &str, seconds: u32, id: &str, block: &str) -> String {
    let message = format!(
        r#""message":{{"id":"{id}","model":"m","content":[{block}],"usage":{{"input_tokens":3,"output_tokens":{seconds}}}}}"#
    );
    record("assistant", uuid, parent, seconds, &message)
}

fn said(uuid: &str, parent: &str, seconds: u32, id: &str) -> String {
    part(
        uuid,
        parent,
        seconds,
        id,
        &format!(r#"{{"type":"text","text":"{uuid}"}}"#),
    )
}

fn called(uuid: &str, parent: &str, seconds: u32, id: &str, call: &str) -> String {
    let block =
        format!(r#"{{"type":"tool_use","id":"{call}","name":"Bash","input":{{"command":"ls"}}}}"#);
    part(uuid, parent, seconds, id, &block)
}

fn result(uuid: &str, parent: &str, seconds: u32, call: &str, members: &str) -> String {
    let message = format!(
        r#""message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{call}","content":"done"}}]}}{members}"#
    );
    record("user", uuid, parent, seconds, &message)
}

#[track_caller]
fn all(source: &str) -> Vec<Member> {
    let members = read(&ClaudeCode, "projects/-w/S.jsonl", source.as_bytes());
    for member in &members {
        check_calls(&ClaudeCode, source.as_bytes(), member);
    }
    members
}

#[track_caller]
fn main(source: &str) -> Member {
    all(source).remove(0)
}

fn text(source: &str, member: &Member, node: usize) -> String {
    entry(&ClaudeCode, source.as_bytes(), member, &member.nodes[node])
}

#[track_caller]
fn main_unchecked(source: &str) -> Member {
    read(&ClaudeCode, "S.jsonl", source.as_bytes()).remove(0)
}

/// No record of a real file is lost. The expected numbers come from another program.
#[test]
fn real_files_have_the_tree_that_another_program_found() {
    let files = real_files("claude-code");
    for path in &files {
        let source = std::fs::read(path).unwrap();
        read(&ClaudeCode, path.to_str().unwrap(), &source);
    }
    let Some(table) = files.iter().find(|path| path.ends_with("expect.tsv")) else {
        return;
    };
    for line in std::fs::read_to_string(table).unwrap().lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let path = table.with_file_name(columns[0]);
        let source = std::fs::read(&path).unwrap();
        let members = read(&ClaudeCode, path.to_str().unwrap(), &source);
        let number = |at: usize| columns[at].parse::<usize>().unwrap();
        let expected = Outline {
            messages: number(3),
            forks: number(4),
            roots: number(5),
            gaps: number(6),
            compactions: number(7),
        };
        assert_eq!(outline(&members[0]), expected, "{}", columns[0]);
        assert_eq!(records(&source).1, number(8), "{}", columns[0]);
        for member in &members {
            check_calls(&ClaudeCode, &source, member);
        }
    }
}

#[test]
fn the_real_session_of_the_repository_has_its_tree() {
    let files = real_files("claude-code");
    let path = files
        .iter()
        .find(|path| path.ends_with("claude-code/6c-3e73767733-0.jsonl"));
    let source = std::fs::read(path.expect("a file of the repository")).unwrap();
    let members = read(&ClaudeCode, "6c.jsonl", &source);
    let expected = Outline {
        messages: 6,
        roots: 1,
        ..Outline::default()
    };
    assert_eq!(outline(&members[0]), expected);
    assert_eq!(members[0].native_id, "68d61609-708d-431d-b552-dc582ffc947b");
    check_calls(&ClaudeCode, &source, &members[0]);
}
