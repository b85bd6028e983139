use super::*;
use serde::de::DeserializeOwned;
use treelined_core::error::Kind;
use treelined_core::id::{EntryId, ExpectedLeaf};

/// Decodes the params, and panics with the error if they do not decode.
#[track_caller]
fn accepted<T: DeserializeOwned>(params: &str) -> T {
    match serde_json::from_str(params) {
        Ok(decoded) => decoded,
        Err(error) => panic!("{params}: {error}"),
    }
}

#[test]
fn null_is_absent_for_ordinary_members() {
    let params: NavigateTreeParams = accepted(
        r#"{"sessionId":null,"targetId":"a","summarize":null,"label":null,"answerTimeoutMs":null,
            "onNoAnswer":null,"rewind":null}"#,
    );
    assert_eq!(params.session_id(), None);
    assert_eq!(params.label, None);
    assert_eq!(params.answer_timeout_ms, None);
    assert_eq!(params.on_no_answer, None);
    let params: BranchParams = accepted(r#"{"entryId":"a","summary":null}"#);
    assert!(params.summary.is_none());
}

#[test]
fn absent_differs_from_null_where_null_is_a_position() {
    let none: AppendMessageParams = accepted(r#"{"message":{}}"#);
    assert_eq!(
        (none.parent_id.clone(), none.expected_leaf().clone()),
        (GivenPosition::Leaf, ExpectedLeaf::Any)
    );
    let null: AppendMessageParams =
        accepted(r#"{"message":{},"parentId":null,"expectedLeafId":null}"#);
    assert_eq!(
        (null.parent_id.clone(), null.expected_leaf().clone()),
        (GivenPosition::Empty, ExpectedLeaf::Empty)
    );
    let some: AppendMessageParams =
        accepted(r#"{"message":{},"parentId":"a","expectedLeafId":"b"}"#);
    assert_eq!(some.parent_id, GivenPosition::At("a".to_owned()));
    assert_eq!(*some.expected_leaf(), ExpectedLeaf::At(EntryId::new("b")));

    assert_eq!(
        accepted::<GetContextParams>("{}").leaf_id,
        GivenPosition::Leaf
    );
    assert_eq!(
        accepted::<GetContextParams>(r#"{"leafId":null}"#).leaf_id,
        GivenPosition::Empty
    );
}

#[test]
fn raw_members_keep_their_bytes() {
    let message =
        "{ \"role\":\"user\", \"n\":1.0,\"n\":12345678901234567890,\n\"t\":\"\\ud800\\u00e4\" }";
    let params: AppendMessageParams = accepted(&format!(r#"{{"message": {message} }}"#));
    assert_eq!(params.message.get(), message);
    let params: AppendEntriesParams = accepted(&format!(r#"{{"entries":[{message}, 7 ]}}"#));
    assert_eq!(params.entries[0].get(), message);
    assert_eq!(params.entries[1].get(), "7");
    let params: BranchParams = accepted(&format!(
        r#"{{"entryId":"a","summary":{{"summary":"s","details":{message}}}}}"#
    ));
    assert_eq!(params.summary.unwrap().details.unwrap().get(), message);
    let params: AnswerEventParams = accepted(&format!(
        r#"{{"eventId":"e","result":{{"summary":{{"summary":"s","details":{message}}}}}}}"#
    ));
    assert_eq!(
        params
            .result
            .unwrap()
            .summary
            .unwrap()
            .details
            .unwrap()
            .get(),
        message
    );
}

#[test]
fn an_empty_answer_is_not_an_opinion() {
    for empty in ["{}", "[]", "null"] {
        let params: AnswerEventParams = accepted(&format!(r#"{{"eventId":"e","result":{empty}}}"#));
        let (event_id, reply) = params.reply().unwrap();
        assert_eq!(event_id, "e");
        let EventReply::Answer(answer) = reply else {
            panic!("{empty}: {reply:?}")
        };
        assert_eq!(answer.cancel, None);
        assert!(answer.summary.is_none());
    }
}

#[test]
fn an_answer_has_either_a_result_an_error_or_an_extension() {
    let params: AnswerEventParams = accepted(r#"{"eventId":"e","extendMs":60000}"#);
    let (_, reply) = params.reply().unwrap();
    let EventReply::Extend(extend_ms) = reply else {
        panic!("{reply:?}")
    };
    assert_eq!(extend_ms, 60_000);
    for (params, field) in [
        (r#"{"eventId":"e"}"#, "result"),
        (r#"{"eventId":"e","result":{},"extendMs":1}"#, "extendMs"),
        (r#"{"eventId":"e","result":{},"error":"x"}"#, "error"),
        (r#"{"eventId":"e","error":"x","extendMs":1}"#, "extendMs"),
    ] {
        let error = accepted::<AnswerEventParams>(params).reply().unwrap_err();
        assert_eq!(error.details.unwrap()["field"], field);
    }
}

#[test]
fn a_session_opens_by_id_or_by_path() {
    for params in ["{}", r#"{"sessionId":"a","path":"b"}"#] {
        let error = accepted::<OpenSessionParams>(params).target().unwrap_err();
        assert_eq!(error.kind, Kind::InvalidParams);
    }
    let params: OpenSessionParams = accepted(r#"{"path":"b"}"#);
    assert_eq!(params.target().unwrap(), OpenTarget::Path("b"));
}

#[test]
fn enums_have_the_documented_spelling() {
    let tree = |member: &str| accepted::<GetTreeParams>(&format!("{{{member}}}"));
    assert_eq!(
        tree(r#""filter":"no-tools""#).filter,
        Some(TreeFilter::NoTools)
    );
    assert_eq!(
        tree(r#""filter":"user-only""#).filter,
        Some(TreeFilter::UserOnly)
    );
    assert_eq!(
        tree(r#""filter":"labeled-only""#).filter,
        Some(TreeFilter::LabeledOnly)
    );
    assert_eq!(
        tree(r#""order":"active-first""#).order,
        Some(TreeOrder::ActiveFirst)
    );
    assert_eq!(
        tree(r#""format":"nested""#).format,
        Some(TreeFormat::Nested)
    );
    assert_eq!(tree(r#""render":"ascii""#).render, Some(TreeRender::Ascii));
    let spelled = |value: &dyn erased::Spelled| value.spelled();
    for (value, name) in [
        (
            &NavigationReason::CancelledByClient as &dyn erased::Spelled,
            "cancelledByClient",
        ),
        (&NavigationReason::NothingToSummarize, "nothingToSummarize"),
        (&MoveCause::SetLeaf, "set_leaf"),
        (&MoveCause::NavigateTree, "navigate_tree"),
        (&EventOutcome::Timeout, "timeout"),
        (&BeforeEvent::SessionBeforeTree, "session_before_tree"),
        (&notification::Origin::This, "self"),
        (&Disposition::TurnRequested, "turnRequested"),
        (&Durability::Interval, "interval"),
        (&DiagnosticKind::InvalidUtf8, "invalidUtf8"),
        (&DiagnosticKind::TornTail, "tornTail"),
    ] {
        assert_eq!(spelled(value), name);
    }
}

/// `Serialize` is not dyn-compatible; the trait of this module is.
mod erased {
    pub(super) trait Spelled {
        fn spelled(&self) -> String;
    }

    impl<T: serde::Serialize> Spelled for T {
        fn spelled(&self) -> String {
            serde_json::to_value(self)
                .unwrap()
                .as_str()
                .unwrap()
                .to_owned()
        }
    }
}

#[test]
fn absent_members_are_left_out_of_results_and_null_positions_are_not() {
    let result = NavigateTreeResult::Navigation(Box::new(Navigation {
        cancelled: true,
        reason: Some(NavigationReason::Aborted),
        by: None,
        message: None,
        editor_text: None,
        editor_images: None,
        old_leaf_id: Some("a".into()),
        new_leaf_id: None,
        summary_entry: None,
        label_entry: None,
        from_hook: None,
        durability: Durability::None,
    }));
    assert_eq!(
        serde_json::to_string(&result).unwrap(),
        r#"{"cancelled":true,"reason":"aborted","oldLeafId":"a","newLeafId":null,"durability":"none"}"#
    );
    assert_eq!(serde_json::to_string(&ShutdownResult {}).unwrap(), "{}");
}

/// Checks the examples of protocol.md.
#[test]
fn the_examples_of_the_protocol_decode() {
    let params: InitializeParams = accepted(
        r#"{"protocolVersion":1,
      "clientInfo":{"name":"x","version":"1"},"processId":4242,
      "capabilities":{"answers":{"session_before_tree":{}},"summaryDeltas":{}}}"#,
    );
    assert!(params.capabilities.answers.session_before_tree.is_some());
    assert_eq!(params.process_id, Some(4242));

    let answer = |params: &str| {
        let (_, reply) = accepted::<AnswerEventParams>(params).reply().unwrap();
        let EventReply::Answer(answer) = reply else {
            panic!("{reply:?}")
        };
        answer
    };
    let cancel = answer(r#"{"eventId":"…","result":{"cancel":true}}"#);
    assert_eq!(cancel.cancel, Some(true));
    let summary = answer(r#"{"eventId":"…","result":{"summary":{"summary":"…","details":{}}}}"#);
    assert_eq!(summary.summary.unwrap().summary, "…");
    let overrides = answer(
        r#"{"eventId":"…","result":{"customInstructions":"…","replaceInstructions":true,"label":"…"}}"#,
    );
    assert_eq!(overrides.replace_instructions, Some(true));
    let compaction = answer(
        r#"{"eventId":"…","result":{"compaction":{"summary":"…","firstKeptEntryId":"a","details":{}}}}"#,
    );
    assert_eq!(
        compaction.compaction.unwrap().first_kept_entry_id,
        KeptFrom::Entry("a".to_owned())
    );

    let preparation = TreePreparation {
        target_id: "…".into(),
        from_session_id: None,
        old_leaf_id: Some("…".into()),
        common_ancestor_id: None,
        abandoned_count: 3,
        previous_summary: Some("…".into()),
        kept_entries: Some(Vec::new()),
        kept_entry_ids: None,
        entries_to_summarize: Some(Vec::new()),
        entry_ids: None,
        truncated: None,
        user_wants_summary: true,
        model: Some(Model {
            provider: "…".into(),
            model_id: "…".into(),
        }),
        custom_instructions: Some("…".into()),
        replace_instructions: Some(false),
        label: Some("…".into()),
    };
    let event = notification::SessionBeforeTree {
        session_id: "…".into(),
        seq: 41,
        event_id: "…".into(),
        navigation_id: "…".into(),
        timeout_ms: 30_000,
        preparation,
    };
    assert_eq!(
        serde_json::to_string(&event).unwrap(),
        r#"{"sessionId":"…","seq":41,"eventId":"…","navigationId":"…","timeoutMs":30000,"preparation":{"targetId":"…","oldLeafId":"…","commonAncestorId":null,"abandonedCount":3,"previousSummary":"…","keptEntries":[],"entriesToSummarize":[],"userWantsSummary":true,"model":{"provider":"…","modelId":"…"},"customInstructions":"…","replaceInstructions":false,"label":"…"}}"#
    );
}
