//! Context edits.

use super::*;

#[test]
fn the_latest_edit_wins_and_null_leaves_out() {
    check(
        &[
            user("a"),
            user("b"),
            edit("e0", json!({"content": "1"})),
            edit("e1", json!({"content": "1"})),
            edit("e0", json!(null)),
            edit("e1", json!({"content": "2"})),
        ],
        &["2"],
    );
    check(
        &[
            user("a"),
            edit("e0", json!(null)),
            edit("e0", json!({"content": "2"})),
        ],
        &["2"],
    );
}

#[test]
fn an_edit_before_the_compaction_counts_if_its_target_is_kept() {
    let chain = check(
        &[
            user("a"),
            edit("e0", json!(null)),
            user("b"),
            edit("e2", json!({"content": "B"})),
            compaction("s", "e2"),
            edit("e0", json!({"content": "A"})),
        ],
        &["<s>", "B"],
    );
    assert_eq!(chain.read(), [2, 3, 4, 5]);
}

#[test]
fn an_edit_replaces_nothing_but_the_content() {
    let message = r#"{"role":"assistant", "content":[1] ,"big":9007199254740993}"#;
    let chain = ChainFixture::raw(vec![
        format!(r#"{{"type":"message","id":"a","message":{message}}}"#).into_bytes(),
        br#"{"type":"context_edit","id":"b","targetId":"a","replacement":{"content":"x\u00e9"}}"#
            .to_vec(),
    ]);
    let expect = r#"{"role":"assistant", "content":[{"type":"text","text":"x\u00e9"}] ,"big":9007199254740993}"#;
    for format in [Format::Agent, Format::Llm] {
        assert_eq!(chain.context(format).messages, [expect.as_bytes()]);
    }
}

#[test]
fn edits_reach_the_four_roles_with_content_and_leave_the_others() {
    let replacement = || json!({"content": "new"});
    for role in ["user", "assistant", "toolResult", "custom"] {
        let entry = json!({"type": "message", "message": {"role": role, "content": "old"}});
        check(&[entry, edit("e0", replacement())], &["new"]);
    }
    let entry = json!({"type": "custom_message", "customType": "t", "content": "old"});
    check(&[entry, edit("e0", replacement())], &["new"]);
    let summary = json!({"type": "branch_summary", "fromId": "f", "summary": "b"});
    check(&[summary.clone(), edit("e0", replacement())], &["<b>"]);
    check(&[summary, edit("e0", json!(null))], &[]);
    check(&[system("s"), edit("e0", replacement())], &["s"]);
    check(
        &[user("a"), compaction("c", "e0"), edit("e1", replacement())],
        &["<c>", "a"],
    );
}

#[test]
fn an_edit_without_a_replacement_to_speak_of_is_none() {
    for replacement in [json!(5), json!({}), json!([]), json!("x")] {
        check(&[user("a"), edit("e0", replacement)], &["a"]);
    }
    check(
        &[user("a"), json!({"type": "context_edit", "targetId": "e0"})],
        &["a"],
    );
    check(
        &[
            user("a"),
            json!({"type": "context_edit", "targetId": 7, "replacement": null}),
        ],
        &["a"],
    );
    let broken = json!({"type": "message", "message": 5});
    check(&[broken, edit("e0", json!({"content": "x"}))], &[]);
}
