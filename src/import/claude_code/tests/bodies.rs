//! The entries of records.

use super::{called, main, part, record, result, said, text, user};

#[test]
fn blocks_of_a_model_keep_their_bytes() {
    let blocks = [
        r#"{"type":"thinking","thinking":"hm \ud83d","signature":"sig=="}"#,
        r#"{"type":"redacted_thinking","data":"ENC"}"#,
        r#"{"type":"text","text":"a\u2028b \ud800"}"#,
        r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"n":1.0}}"#,
        r#"{"type":"tool_use","id":"c","name":"Bash","input":{"n":12345678901234567890,"t":1.0}}"#,
    ];
    let mut source = user("u", "-", 0, "go");
    for (at, block) in blocks.into_iter().enumerate() {
        source += &part(&format!("a{at}"), "u", 1, "M", block);
    }
    let said = text(&source, &main(&source), 1);
    let expected = concat!(
        r#""content":[{"type":"thinking","thinking":"hm \ud83d","thinkingSignature":"sig=="},"#,
        r#"{"type":"thinking","thinking":"","thinkingSignature":"ENC","redacted":true},"#,
        r#"{"type":"text","text":"a\u2028b \ud800"},"#,
        r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"n":1.0}},"#,
        r#"{"type":"toolCall","id":"c","name":"Bash","arguments":{"n":12345678901234567890,"t":1.0}}],"#,
        r#""api":"anthropic-messages","provider":"anthropic","model":"m","#,
    );
    assert!(said.contains(expected), "{said}");
    assert!(
        said.ends_with(r#""stopReason":"toolUse","timestamp":1767225601000}}"#),
        "{said}"
    );
}

#[test]
fn reasons_to_stop_are_those_of_the_format() {
    let reason = |stop: &str| {
        let source = said("a", "-", 1, "M").replace(
            r#""model":"m""#,
            &format!(r#""model":"m","stop_reason":{stop}"#),
        );
        let said = text(&source, &main(&source), 0);
        let (_, rest) = said.split_once(r#""stopReason":""#).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    assert_eq!(reason("null"), "stop");
    assert_eq!(reason(r#""end_turn""#), "stop");
    assert_eq!(reason(r#""max_tokens""#), "length");
    assert_eq!(reason(r#""refusal""#), "error");
    let aborted =
        said("a", "-", 1, "M").replace(r#""uuid""#, r#""isAbortedMidStream":true,"uuid""#);
    assert!(text(&aborted, &main(&aborted), 0).contains(r#""stopReason":"aborted""#));
}

#[test]
fn results_have_their_texts_images_and_errors() {
    let image =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#;
    let content = format!(
        r#""message":{{"content":[{{"type":"tool_result","tool_use_id":"c","is_error":true,"content":[{{"type":"text","text":"x"}},{image}]}},{{"type":"text","text":"[Request interrupted by user]"}}]}}"#
    );
    let source = user("u", "-", 0, "go")
        + &called("a", "u", 1, "M", "c")
        + &record("user", "r", "a", 2, &content);
    let member = main(&source);
    assert_eq!(
        member.nodes.len(),
        3,
        "what the harness says beside a result joins it"
    );
    let said = text(&source, &member, 2);
    let expected = concat!(
        r#""toolCallId":"c","toolName":"Bash","content":[{"type":"text","text":"x"},"#,
        r#"{"type":"image","data":"AAAA","mimeType":"image/png"},"#,
        r#"{"type":"text","text":"[Request interrupted by user]"}],"isError":true,"#,
    );
    assert!(said.contains(expected), "{said}");
}

#[test]
fn the_stub_of_a_long_output_stays_as_it_is() {
    let stub = r"<persisted-output>\nOutput too large (162.5KB). Full output saved to: /x/tool-results/c.txt";
    let source = user("u", "-", 0, "go")
        + &called("a", "u", 1, "M", "c")
        + &result("r", "a", 2, "c", "").replace("done", stub);
    let member = main(&source);
    assert!(text(&source, &member, 2).contains(&format!(r#""text":"{stub}""#)));
}

#[test]
fn only_the_first_result_of_a_call_counts() {
    let source = user("u", "-", 0, "go")
        + &called("a", "u", 1, "M", "c")
        + &result("r", "a", 2, "c", "")
        + &result("s", "a", 3, "c", "");
    let member = main(&source);
    assert_eq!(member.nodes.len(), 3);
    assert_eq!(member.origin_only.get("user"), Some(&1));
}

#[test]
fn a_user_message_of_blocks_has_texts_and_images() {
    let content = r#""message":{"content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"image","source":{"type":"url","url":"http://x"}},{"type":"text"},{"type":7},7]}"#;
    let source = record("user", "u", "-", 0, content);
    let said = text(&source, &main(&source), 0);
    let expected = r#""content":[{"type":"text","text":"see"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"timestamp""#;
    assert!(said.contains(expected), "{said}");
}
