//! The messages that a provider takes.

use super::*;

#[test]
fn summaries_become_user_messages() {
    let text = |text: &str| json!([{"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 7000}]);
    check_llm(
        compaction("c\n", "e0"),
        text(
            "The conversation history before this point was compacted into the following summary:\n\n<summary>\nc\n\n</summary>",
        ),
    );
    check_llm(
        json!({"type": "branch_summary", "fromId": "f", "summary": "b"}),
        text(
            "The following is a summary of a branch that this conversation came back from:\n\n<summary>\nb</summary>",
        ),
    );
    check_llm(
        json!({"type": "custom_message", "customType": "t", "content": "c", "display": true}),
        text("c"),
    );
    check_llm(
        json!({"type": "custom_message", "customType": "t", "content": [{"type": "image"}]}),
        json!([{"role": "user", "content": [{"type": "image"}], "timestamp": 7000}]),
    );
}

#[test]
fn commands_become_user_messages() {
    let ran = |message: Value, expect: &str| {
        let mut message = message;
        message["role"] = json!("bashExecution");
        message["command"] = json!("ls");
        message["timestamp"] = json!(3);
        check_llm(
            json!({"type": "message", "message": message}),
            json!([{"role": "user", "content": [{"type": "text", "text": expect}], "timestamp": 3}]),
        );
    };
    ran(
        json!({"output": "a\nb", "exitCode": 0}),
        "Ran `ls`\n```\na\nb\n```",
    );
    ran(json!({"output": ""}), "Ran `ls`\n(no output)");
    ran(json!({"exitCode": null}), "Ran `ls`\n(no output)");
    ran(
        json!({"output": "o", "exitCode": 2}),
        "Ran `ls`\n```\no\n```\n\nCommand exited with code 2",
    );
    ran(
        json!({"output": "o", "exitCode": -1.0}),
        "Ran `ls`\n```\no\n```\n\nCommand exited with code -1",
    );
    ran(
        json!({"output": "o", "exitCode": 2, "cancelled": true}),
        "Ran `ls`\n```\no\n```\n\n(command cancelled)",
    );
    ran(
        json!({"output": "o", "truncated": true, "fullOutputPath": "/p"}),
        "Ran `ls`\n```\no\n```\n\n[Output truncated. Full output: /p]",
    );
    ran(
        json!({"output": "o", "truncated": true}),
        "Ran `ls`\n```\no\n```",
    );
    ran(
        json!({"output": "o", "truncated": false, "fullOutputPath": "/p"}),
        "Ran `ls`\n```\no\n```",
    );
}

#[test]
fn the_model_does_not_see_unknown_roles_and_excluded_commands() {
    let excluded =
        json!({"role": "bashExecution", "command": "x", "output": "", "excludeFromContext": true});
    for message in [
        excluded,
        json!({"role": "strange", "content": "x"}),
        json!({"content": "x"}),
    ] {
        let entry = json!({"type": "message", "message": message});
        check_llm(entry.clone(), json!([]));
        assert_eq!(
            ChainFixture::new(&[entry])
                .context(Format::Agent)
                .messages
                .len(),
            1
        );
    }
}

#[test]
fn lone_surrogates_reach_the_model_unchanged() {
    let entry = br#"{"type":"branch_summary","id":"a","summary":"x\ud800\n"}"#;
    let chain = ChainFixture::raw(vec![entry.to_vec()]);
    let [message] = &chain.context(Format::Llm).messages[..] else {
        panic!("one message");
    };
    let text = String::from_utf8_lossy(message);
    assert!(
        text.contains(r#"<summary>\nx\ud800\n</summary>""#),
        "{text}"
    );
}

#[test]
fn deep_content_causes_no_recursion() {
    for (open, close) in [("[", "]"), ("{\"content\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        for role in ["user", "assistant", "bashExecution", "strange"] {
            let message = format!(r#"{{"role":"{role}","content":{deep}}}"#);
            let edit = format!(
                r#"{{"type":"context_edit","id":"b","targetId":"a","replacement":{{"content":{deep}}}}}"#
            );
            let chain = ChainFixture::raw(vec![
                format!(r#"{{"type":"message","id":"a","message":{message}}}"#).into_bytes(),
                edit.into_bytes(),
            ]);
            let messages = chain.context(Format::Agent).messages;
            assert_eq!(messages, [message.as_bytes()]);
        }
    }
}
