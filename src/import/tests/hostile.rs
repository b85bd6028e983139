//! Sources that no tool has written: cut, random and large sources. [`crate::tests::testing`] has the checks.

use crate::claude_code::ClaudeCode;
use crate::cline::Cline;
use crate::copilot_cli::CopilotCli;
use crate::gemini::Gemini;
use crate::member::{Member, NodeKind, Parent, Place};
use crate::reader::Format;
use crate::tests::testing::{bytes, entry, outline, read, read_records, real_files, records};
use crate::vscode_chat::VscodeChat;
use std::collections::HashMap;
use std::fmt::Write as _;
use treelined_core::test_support::{random, sample};

const FORMATS: [(&dyn Format, &str); 4] = [
    (&ClaudeCode, "claude-code"),
    (&Gemini, "gemini"),
    (&CopilotCli, "copilot-cli"),
    (&VscodeChat, "vscode-chat"),
];

/// The whole file is read for each cut. So the test cuts at a sample of the positions, or at all of them in a long run.
#[test]
fn files_cut_at_any_byte_are_read() {
    let mut random = random::Random(sample::seed(sample::of_the_clock()));
    let mut is_taken = || sample::is_long_run() || random.below(100) == 0;
    for (format, folder) in FORMATS {
        for path in real_files(folder) {
            let source = std::fs::read(&path).unwrap();
            let mut before = usize::MAX;
            let ends = source.len().saturating_sub(4096)..source.len();
            for end in ends.filter(|_| is_taken()) {
                let (places, _) = records(&source[..end]);
                if places.len() != before {
                    before = places.len();
                    read_records(format, path.to_str().unwrap(), &source[..end], &places);
                }
            }
        }
    }
}

/// A written entry never changes: a closed entry has the same parent and body however the source continues.
#[test]
fn closed_entries_stay_as_the_source_grows() {
    for (format, folder) in FORMATS {
        for path in real_files(folder) {
            let is_grown = path.extension().is_some_and(|kind| kind == "jsonl");
            let is_real = !path.to_string_lossy().contains("shapes");
            if is_grown && is_real {
                check_growth(format, path.to_str().unwrap());
            }
        }
    }
}

fn check_growth(format: &dyn Format, path: &str) {
    let source = std::fs::read(path).unwrap();
    let (places, _) = records(&source);
    let whole = read_records(format, path, &source, &places);
    let mut bodies = HashMap::new();
    for member in &whole {
        for node in &member.nodes {
            let named = (&*member.native_id, &*node.key);
            let body = entry(format, &source, member, node);
            bodies.insert(named, (parent_key(member, &node.parent), body));
        }
    }
    let step = (places.len() / 40).max(1);
    for count in (0..places.len()).step_by(step) {
        let mut reader = format.reader(path);
        for (number, place) in places.iter().take(count).enumerate() {
            reader.record(crate::member::Record {
                at: place.at,
                number: number as u64,
                bytes: bytes(&source, *place),
            });
        }
        for member in reader.finish() {
            for node in member.nodes.iter().filter(|node| !node.is_open) {
                let now = (
                    parent_key(&member, &node.parent),
                    entry(format, &source, &member, node),
                );
                let later = bodies.get(&(&*member.native_id, &*node.key));
                assert_eq!(later, Some(&now), "{path} after {count} records");
            }
        }
    }
}

fn parent_key(member: &Member, parent: &Parent) -> String {
    match parent {
        Parent::Base => String::new(),
        Parent::Node(at) => member.nodes[*at as usize].key.to_string(),
        Parent::Key(key) => format!("?{key}"),
    }
}

/// A generator of random numbers: xorshift.
struct Random(pub u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const KEYS: &[&str] = &[
    "type",
    "subtype",
    "uuid",
    "parentUuid",
    "logicalParentUuid",
    "sessionId",
    "timestamp",
    "cwd",
    "message",
    "data",
    "attachment",
    "content",
    "operation",
    "agentId",
    "isSidechain",
    "isMeta",
    "isCompactSummary",
    "isApiErrorMessage",
    "forkedFrom",
    "compactMetadata",
    "toolUseResult",
    "sourceToolUseID",
    "parentToolUseID",
    "hookErrors",
    "leafUuid",
    "summary",
    "customTitle",
    "mode",
    "agentType",
    "toolUseId",
    "id",
    "role",
    "model",
    "usage",
    "stop_reason",
    "name",
    "input",
    "tool_use_id",
    "is_error",
    "text",
    "thinking",
    "signature",
    "source",
    "preservedSegment",
    "headUuid",
    "tailUuid",
    "preservedMessages",
    "uuids",
    "messageUuid",
    "prompt",
    "commandMode",
    "preTokens",
    "output_tokens",
    "$set",
    "$rewindTo",
    "messages",
    "history",
    "parts",
    "thoughts",
    "tokens",
    "toolCalls",
    "args",
    "result",
    "status",
    "functionResponse",
    "functionCall",
    "response",
    "output",
    "inlineData",
    "mimeType",
    "resultDisplay",
    "ts",
    "startTime",
    "directories",
    "subject",
    "description",
    "cached",
];

const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1e999",
    "12345678901234567890",
    "\"\"",
    "\"a\"",
    "\"b\"",
    "\"c\"",
    "\"d\"",
    "\"\\ud83d\"",
    "\"\\u0000\"",
    "\"user\"",
    "\"assistant\"",
    "\"gemini\"",
    "\"system\"",
    "\"attachment\"",
    "\"progress\"",
    "\"agent_progress\"",
    "\"compact_boundary\"",
    "\"queued_command\"",
    "\"queue-operation\"",
    "\"remove\"",
    "\"summary\"",
    "\"last-prompt\"",
    "\"tool_use\"",
    "\"tool_result\"",
    "\"text\"",
    "\"image\"",
    "\"thinking\"",
    "\"toolCall\"",
    "\"info\"",
    "\"success\"",
    "\"error\"",
    "\"<synthetic>\"",
    "\"Task\"",
    "\"2026-01-01T00:00:00.000Z\"",
    "\"<session_context>\"",
    "\"<command-name>\"",
    "[]",
    "{}",
];

fn value(random: &mut Random, depth: usize, out: &mut String) {
    match random.below(10) {
        0..4 if depth > 0 => {
            out.push('{');
            for at in 0..random.below(7) {
                out.push_str(if at > 0 { "," } else { "" });
                let _ = write!(out, "{:?}:", random.of(KEYS));
                value(random, depth - 1, out);
            }
            out.push('}');
        }
        4 | 5 if depth > 0 => {
            out.push('[');
            for at in 0..random.below(4) {
                out.push_str(if at > 0 { "," } else { "" });
                value(random, depth - 1, out);
            }
            out.push(']');
        }
        _ => out.push_str(random.of(VALUES)),
    }
}

/// Records with the members of real records. Some members have a value of any type.
const LIKELY: &[&str] = &[
    r#"{"type":"user","uuid":U,"parentUuid":U,"message":{"content":V}}"#,
    r#"{"type":"user","uuid":U,"parentUuid":U,"timestamp":V,"message":{"content":"x"},"isSidechain":V,"agentId":U}"#,
    r#"{"type":"assistant","uuid":U,"parentUuid":U,"message":{"id":U,"content":[{"type":"tool_use","id":U,"name":V,"input":V}]}}"#,
    r#"{"type":"user","uuid":U,"parentUuid":U,"message":{"content":[{"type":"tool_result","tool_use_id":U,"content":V}]},"toolUseResult":{"agentId":U}}"#,
    r#"{"type":"system","subtype":"compact_boundary","uuid":U,"logicalParentUuid":U,"compactMetadata":{"preservedMessages":{"uuids":[U,U]}}}"#,
    r#"{"type":"user","isCompactSummary":true,"uuid":U,"parentUuid":U,"message":{"content":V}}"#,
    r#"{"type":"system","subtype":"api_error","uuid":U,"parentUuid":U,"error":V}"#,
    r#"{"type":"queue-operation","operation":"remove","content":V}"#,
    r#"{"type":"progress","uuid":U,"parentUuid":U,"data":{"type":"agent_progress","agentId":U,"message":{"type":"assistant","uuid":U,"message":{"id":U,"content":V}}}}"#,
    r#"{"type":"last-prompt","leafUuid":U}"#,
    r#"{"id":U,"type":"user","content":V}"#,
    r#"{"id":U,"type":"gemini","content":V,"toolCalls":[{"id":U,"name":V,"args":V,"result":V,"status":"success"}]}"#,
    r#"{"id":U,"type":"user","content":[{"functionResponse":{"id":U,"name":V,"response":V}}]}"#,
    r#"{"$rewindTo":U}"#,
    r#"{"$set":{"messages":[{"id":U,"type":"user","content":V},{"id":U,"type":"gemini","content":V}]}}"#,
    r#"{"id":U,"type":"info","content":"x"}"#,
    r#"{"message":{"id":U,"role":"user","content":[{"type":"tool_result","tool_use_id":U,"content":V},{"type":"text","text":V}]}}"#,
    r#"{"message":{"ts":V,"role":"assistant","isSummary":V,"content":[{"type":"tool_use","id":U,"name":V,"input":V},V]}}"#,
    r#"{"ui":{"ts":V,"say":"api_req_started","text":V,"conversationHistoryIndex":V}}"#,
    r#"{"file":V,"row":{"parentTaskId":U,"workspace":V,"model_usage":[{"ts":V,"model_id":V}],"metadata":V}}"#,
    r#"{"type":"user.message","id":U,"parentId":U,"agentId":U,"data":{"content":V,"source":V,"attachments":V}}"#,
    r#"{"type":"assistant.message","id":U,"parentId":U,"data":{"content":V,"apiCallId":U,"toolRequests":[{"toolCallId":U,"name":V,"arguments":V}]}}"#,
    r#"{"type":"tool.execution_complete","id":U,"parentId":U,"data":{"toolCallId":U,"success":V,"result":{"content":V}}}"#,
    r#"{"type":"session.compaction_start","id":U,"parentId":U,"data":{}}"#,
    r#"{"type":"session.compaction_complete","id":U,"parentId":U,"data":{"summaryContent":"x"}}"#,
    r#"{"type":"session.snapshot_rewind","id":U,"parentId":U,"data":{"upToEventId":U}}"#,
    r#"{"kind":0,"v":{"sessionId":U,"requests":[{"requestId":U,"message":V,"response":[V,{"value":"x"}]}]}}"#,
    r#"{"kind":2,"k":["requests"],"i":1,"v":[{"requestId":U,"message":{"text":"x"},"modelState":{"value":1}},V]}"#,
    r#"{"kind":2,"k":["requests",0,"response"],"i":0,"v":[{"kind":"toolInvocationSerialized","toolCallId":U,"toolId":V},V]}"#,
    r#"{"kind":1,"k":["requests",1,"result"],"v":{"errorDetails":V,"metadata":{"toolCallRounds":[{"response":V,"toolCalls":[{"id":U,"arguments":V}]}],"toolCallResults":{"a":{"content":[{"value":V}]},"b":V}}}}"#,
    r#"{"kind":1,"k":["requests",0,V],"v":V}"#,
    "V",
];

#[test]
fn random_records_are_read() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let sources = if sample::is_long_run() { 15_000 } else { 500 };
    for _ in 0..sources {
        let mut source = String::new();
        for _ in 0..random.below(40) {
            let template = random.of(LIKELY);
            for char in template.chars() {
                match char {
                    'U' => source.push_str(
                        random.of(&["\"a\"", "\"b\"", "\"c\"", "\"d\"", "\"e\"", "null", "7"]),
                    ),
                    'V' => value(&mut random, 5, &mut source),
                    char => source.push(char),
                }
            }
            source.push('\n');
        }
        let formats = FORMATS.map(|(format, _)| format);
        for format in formats.into_iter().chain([&Cline as &dyn Format]) {
            read(format, "S/subagents/agent-a.jsonl", source.as_bytes());
        }
    }
}

#[track_caller]
fn large(format: &dyn Format, lines: impl Iterator<Item = String>) -> Member {
    let source = lines.fold(String::new(), |all, line| all + &line + "\n");
    read(format, "S.jsonl", source.as_bytes()).remove(0)
}

const LARGE: usize = 100_000;
const MANY: usize = 20_000;

fn claude_user(at: usize, parent: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"u{at}","parentUuid":{parent},"message":{{"content":"x{at}"}}}}"#
    )
}

/// If a part takes more than linear time, this test runs for minutes.
#[test]
fn large_sessions_of_claude_code_take_linear_time() {
    let above = |at: usize| match at {
        0 => "null".to_owned(),
        at => format!("\"u{}\"", at - 1),
    };
    let chain = large(
        &ClaudeCode,
        (0..LARGE).map(|at| claude_user(at, &above(at))),
    );
    assert_eq!(chain.nodes.len(), LARGE);
    let backwards = (0..MANY).rev().map(|at| claude_user(at, &above(at)));
    assert_eq!(large(&ClaudeCode, backwards).leaf, Some(0));
    let star = (0..LARGE).map(|at| claude_user(at, if at == 0 { "null" } else { "\"u0\"" }));
    assert_eq!(outline(&large(&ClaudeCode, star)).forks, 1);
    let links = (0..MANY).map(|at| {
        let parent = above(at);
        format!(r#"{{"type":"progress","uuid":"u{at}","parentUuid":{parent},"data":{{"type":"hook_progress"}}}}"#)
    });
    assert_eq!(large(&ClaudeCode, links).nodes.len(), 0);
    let group = (0..LARGE).map(|at| {
        let parent = above(at);
        format!(r#"{{"type":"assistant","uuid":"u{at}","parentUuid":{parent},"message":{{"id":"M","content":[{{"type":"text","text":"{at}"}}]}}}}"#)
    });
    assert_eq!(large(&ClaudeCode, group).nodes.len(), 1);
    let boundaries = (0..MANY).map(|at| {
        let parent = above(at);
        format!(r#"{{"type":"system","subtype":"compact_boundary","uuid":"u{at}","parentUuid":null,"logicalParentUuid":{parent},"compactMetadata":{{"preservedSegment":{{"headUuid":"u0","tailUuid":{parent}}}}}}}"#)
    });
    assert_eq!(large(&ClaudeCode, boundaries).nodes.len(), 0);
    let threads = (0..MANY).map(|at| {
        format!(r#"{{"type":"user","isSidechain":true,"uuid":"u{at}","parentUuid":null,"message":{{"content":"x"}}}}"#)
    });
    assert_eq!(large(&ClaudeCode, threads).nodes.len(), 1);
    let titles = (0..MANY).map(|at| format!(r#"{{"type":"t{at}","uuid":"u"}}"#));
    assert!(large(&ClaudeCode, titles).origin_only.len() < 300);
}

#[test]
fn many_calls_of_one_record_take_linear_time() {
    let calls: Vec<String> = (0..MANY)
        .map(|at| format!(r#"{{"type":"tool_use","id":"c{at}","name":"B","input":{{}}}}"#))
        .collect();
    let call = format!(
        r#"{{"type":"assistant","uuid":"a","parentUuid":null,"message":{{"id":"M","content":[{}]}}}}"#,
        calls.join(",")
    );
    let results = (0..MANY).map(|at| {
        format!(r#"{{"type":"user","uuid":"r{at}","parentUuid":"a","message":{{"content":[{{"type":"tool_result","tool_use_id":"c{at}","content":"x"}}]}}}}"#)
    });
    let member = large(&ClaudeCode, std::iter::once(call).chain(results));
    assert_eq!(member.nodes.len(), MANY + 1);
}

#[test]
fn large_tasks_of_cline_take_linear_time() {
    let message = |at: usize, role: &str, content: &str| {
        format!(r#"{{"message":{{"ts":{at},"role":"{role}","content":{content}}}}}"#)
    };
    let turn = |at: usize| {
        let request = format!(r#"{{"ui":{{"ts":{at},"say":"api_req_started","text":"x"}}}}"#);
        [
            message(at, "user", r#""a""#),
            message(at, "assistant", r#""b""#),
            request,
        ]
    };
    assert_eq!(
        large(&Cline, (0..MANY).flat_map(turn)).nodes.len(),
        2 * MANY
    );
    let equal = (0..MANY).map(|_| message(0, "user", r#""a""#));
    assert_eq!(large(&Cline, equal).nodes.len(), MANY);
    let results = |id: &str| {
        let result = format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"x"}}"#);
        message(0, "user", &format!("[{}]", vec![result; MANY].join(",")))
    };
    assert_eq!(large(&Cline, [results("a")].into_iter()).nodes.len(), MANY);
    let tags = format!(r#""{}""#, "<task><answer>".repeat(MANY));
    let tagged = large(&Cline, [message(0, "user", &tags)].into_iter());
    assert_eq!(tagged.nodes.len(), 1);
}

#[test]
fn large_chats_of_gemini_take_linear_time() {
    let message = |at: usize| format!(r#"{{"id":"m{at}","type":"user","content":"x"}}"#);
    let chain = large(&Gemini, (0..LARGE).map(message));
    assert_eq!(chain.nodes.len(), LARGE);
    let info = |at: usize| format!(r#"{{"id":"i{at}","type":"info","content":"x"}}"#);
    let empty = (0..MANY).flat_map(|at| [message(at), r#"{"$set":{"messages":[]}}"#.to_owned()]);
    let member = large(&Gemini, (0..MANY).map(info).chain(empty));
    assert!(
        member
            .nodes
            .iter()
            .filter(|node| node.kind == NodeKind::User)
            .count()
            == MANY
    );
    let updates = (0..MANY).map(|at| format!(r#"{{"id":"m","type":"gemini","content":"x{at}"}}"#));
    assert_eq!(large(&Gemini, updates).nodes.len(), 1);
    let rewinds = (0..MANY).flat_map(|at| [message(at), format!(r#"{{"$rewindTo":"m{at}"}}"#)]);
    let member = large(&Gemini, (0..MANY).map(info).chain(rewinds));
    assert!(member.leaf.is_some());
    let all: Vec<String> = (0..MANY).map(message).collect();
    let document = format!(r#"{{"sessionId":"S","messages":[{}]}}"#, all.join(","));
    let whole = [Place {
        at: 0,
        len: document.len() as u64,
    }];
    let members = read_records(&Gemini, "S.json", document.as_bytes(), &whole);
    assert_eq!(members[0].nodes.len(), MANY);
}
