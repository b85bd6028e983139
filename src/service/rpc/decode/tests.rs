use super::decode;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use treelined_core::error::{Error, Kind};
use treelined_wire::*;

/// Decodes the params, and panics with the error if the params are refused.
#[track_caller]
fn accepted<T: DeserializeOwned>(params: &str) -> T {
    match decode(Some(params)) {
        Ok(decoded) => decoded,
        Err(error) => panic!("{params}: {error}"),
    }
}

/// Returns the error of refused params, which must be an `invalidParams` that names `field`.
#[track_caller]
fn refused<T: DeserializeOwned + Debug>(params: &str, field: &str) -> Error {
    let error = decode::<T>(Some(params)).expect_err(params);
    assert_eq!(error.kind, Kind::InvalidParams, "{params}");
    let details = error.details.clone().unwrap();
    assert_eq!(details["field"], field, "{params}: {error}");
    assert!(
        details["reason"]
            .as_str()
            .is_some_and(|reason| !reason.is_empty())
    );
    error
}

fn deep(open: &str, close: &str) -> String {
    let mut text = open.repeat(1_000_000);
    text.push_str(&close.repeat(1_000_000));
    text
}

#[test]
fn absent_null_and_empty_all_mean_none() {
    assert!(decode::<GetLeafParams>(None).is_ok());
    for params in ["null", "{}", "[]", " [ \t\r\n] ", " { } ", "\nnull\r"] {
        let params: GetLeafParams = accepted(params);
        assert_eq!(params.session_id, None);
    }
}

#[test]
fn params_go_by_name() {
    for params in ["[null]", "[{}]", "7", "\"x\"", "true", "[[]]"] {
        refused::<GetLeafParams>(params, "");
    }
    refused::<BranchParams>(r#"{"entryId":"a","summary":["text",null]}"#, "summary");
}

#[test]
fn a_wrong_member_is_named_by_its_path() {
    refused::<GetLeafParams>(r#"{"sesionId":"x"}"#, "sesionId");
    refused::<GetLeafParams>(r#"{"sessionId":5}"#, "sessionId");
    refused::<DiscoverParams>(r#"{"x":1}"#, "x");
    refused::<NavigateTreeParams>("{}", "targetId");
    refused::<NavigateTreeParams>(r#"{"targetId":null}"#, "targetId");
    refused::<NavigateTreeParams>(r#"{"targetId":"a","onNoAnswer":"maybe"}"#, "onNoAnswer");
    refused::<NavigateTreeParams>(r#"{"targetId":"a","targetId":"b"}"#, "targetId");
    refused::<BranchParams>(
        r#"{"entryId":"a","summary":{"details":1}}"#,
        "summary.summary",
    );
    refused::<BranchParams>(
        r#"{"entryId":"a","summary":{"summary":"s","detail":1}}"#,
        "summary.detail",
    );
    refused::<GetTreeParams>(r#"{"fold":["a",7]}"#, "fold[1]");
    refused::<GetTreeParams>(r#"{"fold":"right"}"#, "fold");
    refused::<GetTreeParams>(r#"{"fold":7}"#, "fold");
    refused::<AppendMessageParams>(r#"{"message":"hello"}"#, "message");
    refused::<AppendEntriesParams>(r#"{"entries":[]}"#, "entries");
    refused::<AnswerEventParams>(
        r#"{"eventId":"e","result":{"summary":{"sumary":"x"}}}"#,
        "result.summary.sumary",
    );
    refused::<AnswerEventParams>(
        r#"{"eventId":"e","result":{"cancle":true}}"#,
        "result.cancle",
    );
    refused::<InitializeParams>(
        r#"{"protocolVersion":1,"capabilities":{"answers":{"session_before_tree":true}}}"#,
        "capabilities.answers.session_before_tree",
    );
    refused::<GetLeafParams>(r#"{"sessionId":"\ud800"}"#, "sessionId");
}

/// A refusal must not carry megabytes of the request back.
#[test]
fn refusals_repeat_only_the_beginning_of_what_was_sent() {
    let long = "ä".repeat(100_000);
    let error = decode::<GetLeafParams>(Some(&format!(r#"{{"{long}":1}}"#))).unwrap_err();
    assert!(error.to_string().len() < 1000);
    let error =
        decode::<NavigateTreeParams>(Some(&format!(r#"{{"targetId":"a","rewind":"{long}"}}"#)))
            .unwrap_err();
    assert!(error.to_string().len() < 1000);
    assert_eq!(error.details.unwrap()["field"], "rewind");
}

#[test]
fn required_members_may_be_null_where_null_says_something() {
    assert_eq!(
        accepted::<SetLeafParams>(r#"{"leafId":null}"#).leaf_id,
        None
    );
    refused::<SetLeafParams>("{}", "leafId");
    assert_eq!(
        accepted::<GetChildrenParams>(r#"{"entryId":null}"#).entry_id,
        None
    );
    refused::<GetChildrenParams>("[]", "entryId");
    assert_eq!(
        accepted::<BranchParams>(r#"{"entryId":null}"#).entry_id,
        None
    );
    refused::<BranchParams>("{}", "entryId");
}

#[test]
fn counts_are_whole_and_at_most_2_to_the_53_less_1() {
    for (text, value) in [
        ("0", 0),
        ("30000", 30_000),
        ("3e4", 30_000),
        ("1.0", 1),
        ("-0", 0),
    ] {
        let params: GetEntriesParams = accepted(&format!(r#"{{"limit":{text}}}"#));
        assert_eq!(params.limit, Some(value), "{text}");
    }
    let params: GetEntriesParams = accepted(r#"{"limit":9007199254740991}"#);
    assert_eq!(params.limit, Some((1 << 53) - 1));
    for text in [
        "-1",
        "1.5",
        "9007199254740992",
        "9007199254740993",
        "18446744073709551616",
        "1e30",
        "1e400",
        "-1e400",
        "1e-3",
        "\"1\"",
        "true",
        "[]",
        "{}",
        "[[1]]",
    ] {
        refused::<GetEntriesParams>(&format!(r#"{{"limit":{text}}}"#), "limit");
    }
}

#[test]
fn deep_values_pass_raw_and_overflow_nothing() {
    let array = deep("[", "]");
    let object = format!(
        r#"{}1{}"#,
        r#"{"a":"#.repeat(1_000_000),
        "}".repeat(1_000_000)
    );
    let params: AppendMessageParams = accepted(&format!(r#"{{"message":{object}}}"#));
    assert_eq!(params.message.get(), object);
    let params: BranchParams = accepted(&format!(
        r#"{{"entryId":"a","summary":{{"summary":"s","details":{array}}}}}"#
    ));
    assert_eq!(params.summary.unwrap().details.unwrap().get(), array);

    let _: InitializeParams = accepted(&format!(r#"{{"protocolVersion":1,"new":{array}}}"#));
    for value in [&array, &object] {
        refused::<NavigateTreeParams>(&format!(r#"{{"targetId":{value}}}"#), "targetId");
        refused::<GetTreeParams>(&format!(r#"{{"limit":{value}}}"#), "limit");
        refused::<GetTreeParams>(&format!(r#"{{"unknown":{value}}}"#), "unknown");
        refused::<OpenSessionParams>(&format!(r#"{{"path":"a","mode":{value}}}"#), "mode");
        refused::<CancelRequestParams>(&format!(r#"{{"requestId":{value}}}"#), "requestId");
        refused::<BranchParams>(&format!(r#"{{"entryId":{value}}}"#), "entryId");
    }
    refused::<AnswerEventParams>(&format!(r#"{{"eventId":"e","result":{array}}}"#), "result");
    refused::<BranchParams>(&array, "");
}

#[test]
fn every_spelling_of_an_empty_object_declares_a_capability() {
    for empty in ["{}", "[]", "null", r#"{"later":1}"#] {
        let params: InitializeParams = accepted(&format!(
            r#"{{"protocolVersion":1,"capabilities":{{"answers":{{"session_before_tree":{empty}}},
                "summaryDeltas":{empty},"unknown":7}}}}"#
        ));
        assert!(
            params.capabilities.answers.session_before_tree.is_some(),
            "{empty}"
        );
        assert!(
            params.capabilities.answers.session_before_fork.is_none(),
            "{empty}"
        );
        assert!(params.capabilities.summary_deltas, "{empty}");
        assert!(!params.capabilities.progress, "{empty}");
    }
    for empty in ["{}", "[]", "null"] {
        for params in [
            format!(r#"{{"protocolVersion":1,"capabilities":{empty}}}"#),
            format!(r#"{{"protocolVersion":1,"capabilities":{{"answers":{empty}}}}}"#),
        ] {
            let params: InitializeParams = accepted(&params);
            assert_eq!(params.capabilities.answers, Answers::default());
        }
    }
    for wrong in ["true", "1", "\"\"", "[1]"] {
        refused::<InitializeParams>(
            &format!(r#"{{"protocolVersion":1,"capabilities":{{"progress":{wrong}}}}}"#),
            "capabilities.progress",
        );
    }
}

#[test]
fn initialize_ignores_what_it_does_not_know() {
    let params: InitializeParams = accepted(
        r#"{"protocolVersion":7,"clientInfo":{"name":"x","title":"y"},"rootUri":null,"processId":null}"#,
    );
    assert_eq!(params.protocol_version, 7);
    assert_eq!(params.process_id, None);
    refused::<InitializeParams>(r#"{"protocolVersion":1,"processId":-1}"#, "processId");
    refused::<InitializeParams>("null", "protocolVersion");
}

#[test]
fn request_ids_are_strings_or_whole_numbers() {
    let id = |params: &str| accepted::<CancelRequestParams>(params).request_id;
    assert_eq!(id(r#"{"requestId":"a\n"}"#), RequestId::Text("a\n".into()));
    assert_eq!(id(r#"{"requestId":9}"#), RequestId::Number(9));
    for wrong in ["-1", "1.5", "null", "9007199254740992", "[1]"] {
        refused::<CancelRequestParams>(&format!(r#"{{"requestId":{wrong}}}"#), "requestId");
    }
    let params: LspCancelRequestParams = accepted(r#"{"id":4}"#);
    assert_eq!(params.id, RequestId::Number(4));
}
