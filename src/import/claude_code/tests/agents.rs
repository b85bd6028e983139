//! Subagents, in all places where their records may be.

use super::super::ClaudeCode;
use super::{all, main, part, record, result, said, user};
use crate::member::{Member, NodeKind, Spawner};
use crate::tests::testing::{read, shape};

fn task(uuid: &str, parent: &str, seconds: u32, id: &str, call: &str) -> String {
    let block =
        format!(r#"{{"type":"tool_use","id":"{call}","name":"Task","input":{{"prompt":"look"}}}}"#);
    part(uuid, parent, seconds, id, &block)
}

fn aside(line: &str, agent: &str) -> String {
    let members = match agent {
        "" => r#""isSidechain":true,"type""#.to_owned(),
        agent => format!(r#""isSidechain":true,"agentId":"{agent}","type""#),
    };
    line.replacen(r#""type""#, &members, 1)
}

#[track_caller]
fn check(members: &[Member], subagent: &str, call: Option<&str>) {
    let main = &members[0];
    let spawned = NodeKind::Subagent {
        native_id: subagent.into(),
    };
    let nodes = main.nodes.iter();
    assert_eq!(
        nodes.filter(|node| node.kind == spawned).count(),
        1,
        "{:?}",
        shape(main)
    );
    let sub = &members[1];
    assert_eq!(sub.native_id, subagent);
    assert_eq!(
        sub.spawned_by,
        Some(Spawner {
            native_id: "S".into(),
            tool_call_id: call.map(Into::into),
        })
    );
    assert_eq!(shape(sub), ["- su", "su N"]);
    assert_eq!(sub.leaf, Some(1));
}

fn session(between: &str, agent: &str) -> String {
    let told = match agent {
        "" => String::new(),
        agent => format!(r#","toolUseResult":{{"agentId":"{agent}"}}"#),
    };
    user("u", "-", 0, "go")
        + &task("a", "u", 1, "M", "c")
        + between
        + &result("r", "a", 5, "c", &told)
        + &said("b", "r", 6, "Z")
}

#[test]
fn sidechain_records_are_a_conversation_of_their_own() {
    let records = user("su", "-", 2, "look") + &said("sa", "su", 3, "N");
    let named: String = records
        .lines()
        .map(|line| aside(line, "x1") + "\n")
        .collect();
    let members = all(&session(&named, "x1"));
    check(&members, "S/agent-x1", Some("c"));
    assert_eq!(
        shape(&members[0]),
        ["- u", "u M", "M r/1", "r/1 r/r:c", "r/r:c Z"]
    );
    // In older versions the subagent is not named, but its first message is the prompt of the call.
    let unnamed: String = records.lines().map(|line| aside(line, "") + "\n").collect();
    check(&all(&session(&unnamed, "")), "S/agent-su", Some("c"));
}

#[test]
fn messages_in_progress_records_are_a_conversation_of_their_own() {
    let inner = |uuid: &str, message: &str| {
        let data = format!(
            r#""parentToolUseID":"c","data":{{"type":"agent_progress","agentId":"x1","message":{message}}}"#
        );
        record("progress", &format!("p{uuid}"), "a", 3, &data)
    };
    let asked = r#"{"type":"user","uuid":"su","message":{"role":"user","content":[{"type":"text","text":"look"}]}}"#;
    let answered = r#"{"type":"assistant","uuid":"sa","message":{"id":"N","model":"m","content":[{"type":"text","text":"seen"}]}}"#;
    let between = inner("1", asked) + &inner("2", answered);
    let members = all(&session(&between, "x1"));
    check(&members, "S/agent-x1", Some("c"));
    assert_eq!(
        members[0].origin_only.len(),
        0,
        "both records are entries of the subagent"
    );
    assert!(
        members[1].nodes.iter().all(|node| !node.is_open),
        "its call has a result"
    );
}

#[test]
fn the_file_of_a_subagent_is_its_conversation() {
    let source: String = (user("su", "-", 2, "look") + &said("sa", "su", 3, "N"))
        .lines()
        .map(|line| aside(line, "x1") + "\n")
        .collect();
    let meta = "{\"agentType\":\"Explore\",\"description\":\"Look\",\"toolUseId\":\"c\",\"spawnDepth\":1}\n";
    let source = source + meta;
    for path in [
        "p/S/subagents/agent-x1.jsonl",
        "p/S/subagents/workflows/w/agent-x1.jsonl",
        "p/agent-x1.jsonl",
    ] {
        let members = read(&ClaudeCode, path, source.as_bytes());
        assert_eq!(members.len(), 1);
        assert_eq!(members[0].native_id, "S/agent-x1");
        assert_eq!(members[0].title.as_deref(), Some("Look"));
        let spawner = members[0].spawned_by.as_ref().unwrap();
        assert_eq!(
            (&*spawner.native_id, spawner.tool_call_id.as_deref()),
            ("S", Some("c"))
        );
    }
}

/// In older versions the text of the result names the subagent.
#[test]
fn the_text_of_a_result_names_its_subagent() {
    let told = "agentId: a0853aa (for resuming to continue this agent's work if needed)";
    let source = session("", "").replace("done", told);
    let spawned = NodeKind::Subagent {
        native_id: "S/agent-a0853aa".into(),
    };
    assert_eq!(main(&source).nodes[2].kind, spawned);
    let other = session("", "").replace("done", "agentId: a0853aa");
    assert_eq!(main(&other).nodes[2].kind, NodeKind::ToolResult);
}

#[test]
fn subagents_of_subagents_are_read_at_any_depth() {
    let mut source = String::new();
    for depth in 0..79 {
        let (agent, next) = (format!("x{depth}"), format!("x{}", depth + 1));
        let records = user(&format!("u{depth}"), "-", 1, "go")
            + &task(
                &format!("a{depth}"),
                &format!("u{depth}"),
                2,
                &format!("M{depth}"),
                &format!("c{depth}"),
            )
            + &result(
                &format!("r{depth}"),
                &format!("a{depth}"),
                3,
                &format!("c{depth}"),
                &format!(r#","toolUseResult":{{"agentId":"{next}"}}"#),
            );
        for line in records.lines() {
            source += &if depth == 0 {
                line.to_owned()
            } else {
                aside(line, &agent)
            };
            source += "\n";
        }
    }
    let members = all(&source);
    assert_eq!(members.len(), 79);
    for (depth, member) in members.iter().enumerate() {
        let spawned = NodeKind::Subagent {
            native_id: format!("S/agent-x{}", depth + 1).into(),
        };
        assert_eq!(member.nodes[2].kind, spawned);
        let spawner = member.spawned_by.as_ref().map(|spawner| {
            let call = spawner.tool_call_id.as_deref().unwrap_or_default();
            format!("{} {call}", spawner.native_id)
        });
        let expected = match depth {
            0 => None,
            1 => Some("S c0".to_owned()),
            _ => Some(format!("S/agent-x{} c{}", depth - 1, depth - 1)),
        };
        assert_eq!(spawner, expected);
    }
}
