use super::*;
use crate::importer::databases::extraction;
use crate::tests::testing::{check_calls, read};
use crate::tests::{MappedMember, imported};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use treelined_core::agent::Tool;

const CLINE: &str = "cline/globalStorage/saoudrizwan.claude-dev/tasks/1757000000000";
const ROO: &str = "roo-code/rooveterinaryinc.roo-cline/tasks";
const KILO: &str = "kilo-code/kilocode.kilo-code/tasks/k-1";
const HISTORY: &str = "api_conversation_history.json";

fn fixture(path: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/import");
    data.join(path)
}

/// The lines of a task.
fn lines(tool: Tool, path: &Path) -> Vec<u8> {
    let mut lines = Vec::new();
    let written = extraction(tool)
        .unwrap()
        .write(path, "", 1 << 20, &mut lines);
    written.unwrap();
    lines
}

fn mapped(tool: Tool, path: &Path) -> MappedMember {
    of_lines(path.to_str().unwrap(), &lines(tool, path))
}

fn of_lines(path: &str, lines: &[u8]) -> MappedMember {
    read(&Cline, path, lines);
    let mut members = imported(&Cline, path, lines);
    assert_eq!(members.len(), 1);
    let member = members.remove(0);
    check_calls(&Cline, lines, &member.member);
    member
}

fn of_messages(messages: &[Value]) -> MappedMember {
    let lines = messages.iter().fold(String::new(), |mut all, message| {
        let _ = writeln!(all, "{}", json!({ "message": message }));
        all
    });
    of_lines(&format!("tasks/t/{HISTORY}"), lines.as_bytes())
}

/// Cline 3.0.65 has written this session.
#[test]
fn a_session_of_the_program_has_its_calls_results_and_thoughts() {
    let id = "1795932569318_ipsvm";
    let path = fixture(&format!("cline/data/sessions/{id}/{id}.messages.json"));
    let mapped = mapped(Tool::Cline, &path);
    let expected = [
        "0 - user Prompt two RUN it",
        r#"1 0 assistant (I shall run it.) Running it. run_commands{"commands":["echo hello","cat missing.txt"]}"#,
        "2 1 toolresult hello\n [Command exited with code 1]\n\n[stderr]\ncat: missing.txt: No such file or directory\n !",
        "3 2 assistant You said: Prompt two RUN it*",
    ];
    assert_eq!(mapped.drawn(), expected.join("\n"));
    let MappedMember { member, bodies } = mapped;
    assert_eq!(member.native_id, id);
    assert_eq!(member.cwd.as_deref(), Some("/tmp/project"));
    assert_eq!(member.title, None, "the title repeats the prompt");
    assert_eq!(bodies[1]["message"]["model"], "stub-1");
    assert_eq!(bodies[1]["message"]["provider"], "openai-compatible");
    assert_eq!(bodies[1]["message"]["usage"]["input"], 10);
    assert_eq!(bodies[2]["message"]["toolName"], "run_commands");
    assert_eq!(bodies[2]["message"]["toolCallId"], "call_2");
}

/// The texts of older versions stay texts. The words of the user are separated from the texts of the program.
#[test]
fn a_task_has_the_words_of_the_user_and_the_usage_of_its_requests() {
    let mapped = mapped(Tool::Cline, &fixture(CLINE).join(HISTORY));
    let expected = [
        "0 - user Say what main.rs does",
        "1 0 assistant I shall read it.\n\n<read_file>\n<path>src/main.rs</path>\n</read_file>",
        "2 1 scaffolding [read_file for 'src/main.rs'] Result: fn main() {}",
        "3 2 assistant <attempt_completion>\n<result>\nIt does nothing.\n</result>\n</attempt_completion>",
        "4 3 scaffolding [attempt_completion] Result: The user has provided feedback on the results.\n<feedback>\nMake it print hello\n</feedback>",
        "5 4 user Make it print hello",
        r#"6 5 assistant (An edit is needed.) I shall edit it. write_to_file{"path":"src/main.rs","content":"fn main() { println!(\"hello\") }"}"#,
        "7 6 toolresult The file was saved.",
        "8 7 assistant It prints hello now.*",
    ];
    assert_eq!(mapped.drawn(), expected.join("\n"));
    let MappedMember { member, bodies } = mapped;
    assert_eq!(member.native_id, "1757000000000");
    assert_eq!(member.cwd.as_deref(), Some("/home/ada/project"));
    assert_eq!(member.started, Some(1_757_000_000_000));
    let usage = &bodies[6]["message"]["usage"];
    assert_eq!(
        (&usage["input"], &usage["cacheRead"]),
        (&json!(102), &json!(300))
    );
    assert_eq!(usage["cost"]["total"], 0.0125);
    assert_eq!(bodies[1]["message"]["model"], "claude-sonnet-4-5");
    assert_eq!(bodies[7]["message"]["toolName"], "write_to_file");
    assert_eq!(member.nodes[5].time, Some(1_757_000_002_010));
}

#[test]
fn a_summary_is_a_compaction_and_a_subtask_names_its_parent() {
    let parent = mapped(Tool::RooCode, &fixture(ROO).join("parent-1").join(HISTORY));
    let expected = [
        "0 - user Write a page",
        r#"1 0 assistant (A subtask does it.) I delegate it. new_task{"mode":"code","message":"Write README.md"}"#,
        "2 1 toolresult Subtask child-1 completed.\n\nResult:\nIt is written.",
        "3 2 assistant The page is there.",
        "4 3 compaction ## Conversation Summary\nA page was written by a subtask.",
        "5 4 user Add a heading",
        "6 5 assistant (A line is enough.) Done.*",
    ];
    assert_eq!(parent.drawn(), expected.join("\n"));
    assert_eq!(parent.bodies[4]["tokensBefore"], 900);
    // The third request was repeated. The last of the equal requests counts.
    let usage = [1, 3, 6].map(|at| parent.bodies[at]["message"]["usage"]["input"].clone());
    assert_eq!(usage, [json!(10), json!(20), json!(40)]);
    assert_eq!(parent.bodies[1]["message"]["model"], "claude-sonnet-4-5");
    let child = mapped(Tool::RooCode, &fixture(ROO).join("child-1").join(HISTORY));
    let spawner = child.member.spawned_by.unwrap();
    assert_eq!(spawner.native_id, "parent-1");
    let kilo = mapped(Tool::KiloCode, &fixture(KILO).join(HISTORY));
    assert_eq!(kilo.member.nodes.len(), 4);
    assert_eq!(kilo.member.cwd.as_deref(), Some("/home/ada/project"));
}

/// The tool has removed the messages after the first answer, and the task has continued with other messages.
#[test]
fn messages_keep_their_keys_when_others_are_removed() {
    let message = |role: &str, said: &str| json!({ "role": role, "content": said });
    let first = [message("user", "One?"), message("assistant", "First.")];
    let long = [
        &first[..],
        &[message("user", "Wrong"), message("assistant", "No.")],
    ]
    .concat();
    let other = [
        &first[..],
        &[message("user", "Right"), message("user", "Right")],
    ]
    .concat();
    let keys = |messages: &[Value]| {
        let nodes = of_messages(messages).member.nodes.into_iter();
        nodes.map(|node| node.key.to_string()).collect::<Vec<_>>()
    };
    let (long, other) = (keys(&long), keys(&other));
    assert_eq!(long[..2], other[..2]);
    assert_ne!(long[2], other[2]);
    assert_eq!(other[3], format!("{}/again2", other[2]));
}

/// Roo Code adds the tokens of an answer after it has written the answer.
#[test]
fn the_last_answer_waits_for_its_tokens() {
    let request = |said: &str| json!({ "ui": { "ts": 2, "say": "api_req_started", "text": said } });
    let source = |said: &str| {
        let question = json!({ "message": { "role": "user", "content": "a", "ts": 1 } });
        let answer = json!({ "message": { "role": "assistant", "content": "b", "ts": 3 } });
        format!("{question}\n{answer}\n{}\n", request(said))
    };
    let is_open = |said: &str| {
        let mapped = of_lines("t", source(said).as_bytes());
        mapped
            .member
            .nodes
            .iter()
            .map(|node| node.is_open)
            .collect::<Vec<_>>()
    };
    assert_eq!(is_open(r#"{"request":"…"}"#), [false, true]);
    assert_eq!(is_open(r#"{"tokensIn":1,"cost":0}"#), [false, false]);
}

#[test]
fn tags_in_the_words_of_the_user_are_kept() {
    let user = |said: &str| json!({ "role": "user", "content": said });
    let messages = [
        user("<user_input mode=\"act\">Is <b>\\n</b> a tag?\n</user_input>"),
        user("no tag at all <taskbar>"),
        user("<task>\n\\\\n ends it \\n\n</task>"),
        user("<task>never closed"),
        user("<environment_details>only</environment_details>"),
        user("[ERROR] You did not use a tool"),
    ];
    let expected = [
        "0 - user Is <b>\\n</b> a tag?",
        "1 0 user no tag at all <taskbar>",
        "2 1 user \\\\n ends it \\n",
        "3 2 user <task>never closed",
        "4 3 scaffolding [ERROR] You did not use a tool*",
    ];
    assert_eq!(of_messages(&messages).drawn(), expected.join("\n"));
}

/// A task is read as far as its files are JSON, wherever they end.
#[test]
fn torn_and_hostile_files_are_lines_too() {
    let folder = tempfile::tempdir().unwrap();
    let task = folder.path().join("tasks/t");
    std::fs::create_dir_all(&task).unwrap();
    let (history, screen) = (task.join(HISTORY), task.join("ui_messages.json"));
    let whole = std::fs::read(fixture(ROO).join("parent-1").join(HISTORY)).unwrap();
    let uis = std::fs::read(fixture(ROO).join("parent-1/ui_messages.json")).unwrap();
    for end in 0..whole.len() {
        std::fs::write(&history, &whole[..end]).unwrap();
        std::fs::write(&screen, &uis[..end.min(uis.len())]).unwrap();
        if end % 7 == 0 || end + 20 > whole.len() {
            let member = mapped(Tool::RooCode, &history).member;
            assert!(member.nodes.len() <= 7);
        }
    }
    let deep = "[".repeat(100_000);
    for text in [
        "null",
        "{}",
        "[1,\"a\",null,{}]",
        "[{\"role\":\"user\",\"content\":7}]",
        &deep,
    ] {
        std::fs::write(&history, text).unwrap();
        assert_eq!(mapped(Tool::Cline, &history).member.nodes.len(), 0);
        let session = task.join("t.messages.json");
        std::fs::write(&session, text).unwrap();
        assert_eq!(mapped(Tool::Cline, &session).member.nodes.len(), 0);
    }
    // The error says that the file is too long.
    std::fs::write(&history, vec![b' '; (1 << 20) + 1]).unwrap();
    let written = extraction(Tool::Cline)
        .unwrap()
        .write(&history, "", 1 << 20, &mut Vec::new());
    assert!(written.unwrap_err().to_string().contains("too long"));
}
