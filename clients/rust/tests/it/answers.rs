//! Questions of the daemon, and calls that wait for the answer.

use crate::fixture::{Fixture, conversation, soon};
use serde_json::json;
use std::future::{IntoFuture, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use treelined_client::{
    Client, EntryBody, ErrorKind, EventAnswer, EventOutcome, GivenCompaction, GivenSummary, Json,
    NavigationReason, Notification, OnFailure, OnNoAnswer, Question,
};

#[tokio::test]
async fn an_answerer_can_cancel() {
    let fixture = Fixture::new();
    let builder = fixture.builder().answer_tree(|event, _| async move {
        match event.preparation.target_id.as_str() {
            "a1" => EventAnswer::cancel(),
            _ => EventAnswer::none(),
        }
    });
    let client = builder.spawn().await.unwrap();
    conversation(&client).await;
    let vetoed = client.navigate_tree("a1").await.unwrap();
    assert!(vetoed.cancelled);
    assert_eq!(vetoed.reason, Some(NavigationReason::CancelledByClient));
    let leaf = client.get_leaf().await.unwrap().leaf_id;
    assert_eq!(leaf.as_deref(), Some("a2"));
    assert!(!client.navigate_tree("u1").await.unwrap().cancelled);
    client.close().await.unwrap();
}

#[tokio::test]
async fn an_answerer_can_summarize() {
    let fixture = Fixture::new();
    let builder = fixture.builder().answer_tree(|event, _| async move {
        let preparation = event.preparation;
        assert!(preparation.user_wants_summary);
        let left = preparation.entries_to_summarize.unwrap_or_default();
        let ids: Vec<_> = left.iter().map(|entry| entry.id()).collect();
        EventAnswer::summary(GivenSummary {
            summary: format!("went through {}", ids.join(",")),
            details: Some(json!({ "by": "a test" }).into()),
            usage: None,
        })
    });
    let client = builder.spawn().await.unwrap();
    conversation(&client).await;
    let moved = client.navigate_tree("a1").summarize(true).label("left");
    let moved = moved.await.unwrap();
    assert_eq!(moved.from_hook, Some(true));
    let entry = moved.summary_entry.unwrap();
    let EntryBody::BranchSummary(summary) = entry.body().unwrap() else {
        panic!("{entry:?}");
    };
    assert_eq!(summary.summary, "went through u2,a2");
    assert_eq!(summary.details.unwrap().get(), r#"{"by":"a test"}"#);
    let label = client.get_label(entry.id()).await.unwrap().label;
    assert_eq!(label.as_deref(), Some("left"));
    client.close().await.unwrap();
}

#[tokio::test]
async fn forks_and_compactions_are_answered_too() {
    let fixture = Fixture::new();
    let builder = fixture
        .builder()
        .answer_fork(|_, _| async { EventAnswer::cancel() })
        .answer_compact(|event, _| async move {
            EventAnswer::compaction(GivenCompaction {
                summary: format!("all before {}", event.preparation.first_kept_entry_id),
                ..GivenCompaction::default()
            })
        });
    let client = builder.spawn().await.unwrap();
    conversation(&client).await;
    assert!(client.fork_session().await.unwrap().cancelled);
    let compacted = client.compact().keep_recent_tokens(1).await.unwrap();
    let entry = compacted.compaction_entry.unwrap();
    let EntryBody::Compaction(compaction) = entry.body().unwrap() else {
        panic!("{entry:?}");
    };
    assert!(compaction.summary.starts_with("all before "), "{entry:?}");
    client.close().await.unwrap();
}

/// A guard that panicked once counted as a guard without an opinion. So the move happened that the guard should have
/// prevented.
#[tokio::test]
async fn an_answerer_that_panics_cancels() {
    let fixture = Fixture::new();
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let builder = fixture.builder().answer_tree(move |_, _| {
        // The first call panics before it returns a future, the second inside of it.
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        assert!(!first, "an intended panic before the future");
        async { panic!("an intended panic in the future") }
    });
    let client = builder.spawn().await.unwrap();
    conversation(&client).await;
    for why in ["before the future", "in the future"] {
        let moved = soon(client.navigate_tree("a1")).await.unwrap();
        assert!(moved.cancelled);
        let message = moved.message.unwrap();
        assert_eq!(message, format!("an intended panic {why}"));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    client.close().await.unwrap();
}

#[tokio::test]
async fn an_answerer_that_panics_lets_operations_proceed_if_the_client_says_so() {
    let fixture = Fixture::new();
    let builder = fixture.builder().on_failure(OnFailure::Proceed);
    let builder = builder.answer_tree(|_, _| async { panic!("an intended panic") });
    let client = builder.spawn().await.unwrap();
    conversation(&client).await;
    let moved = soon(client.navigate_tree("a1")).await.unwrap();
    assert_eq!(moved.new_leaf_id.as_deref(), Some("a1"));
    client.close().await.unwrap();
}

/// A cancel with an invalid member beside it was once refused, and the move happened.
#[tokio::test]
async fn a_cancel_that_is_refused_is_sent_again_as_the_bare_cancel() {
    let fixture = Fixture::new();
    let builder = fixture.builder().answer_tree(|_, _| async {
        EventAnswer {
            output: Some("a member of another event".into()),
            ..EventAnswer::cancel_because(&"x".repeat(501))
        }
    });
    let client = builder.spawn().await.unwrap();
    conversation(&client).await;
    let moved = soon(client.navigate_tree("a1")).await.unwrap();
    assert!(moved.cancelled);
    assert_eq!(moved.message, None);
    client.close().await.unwrap();
}

#[tokio::test]
async fn without_an_answerer_the_daemon_does_not_wait() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    conversation(&client).await;
    let mut notifications = client.notifications();
    client.navigate_tree("a1").await.unwrap();
    let told = soon(notifications.next()).await;
    let Some(Notification::SessionBeforeTree(told)) = told else {
        panic!("{told:?}");
    };
    assert_eq!(told.timeout_ms, 0);
    client.close().await.unwrap();
}

/// Receives each question with the id of its navigation.
type QuestionReceiver = mpsc::UnboundedReceiver<(String, Question)>;

/// Starts a daemon with a conversation and an answerer that never answers.
async fn unanswered(fixture: &Fixture) -> (Client, QuestionReceiver) {
    let (sender, questions) = mpsc::unbounded_channel();
    let builder = fixture.builder().answer_tree(move |event, question| {
        let _ = sender.send((event.navigation_id, question));
        pending()
    });
    let client = builder.spawn().await.unwrap();
    conversation(&client).await;
    (client, questions)
}

#[tokio::test]
async fn a_question_is_over_for_its_answerer_after_the_timeout() {
    let fixture = Fixture::new();
    let (client, mut questions) = unanswered(&fixture).await;
    let mut notifications = client.notifications();
    let moved = client
        .navigate_tree("a1")
        .answer_timeout_ms(100)
        .on_no_answer(OnNoAnswer::Cancel)
        .await
        .unwrap();
    assert_eq!(moved.reason, Some(NavigationReason::NoAnswer));
    let (_, question) = questions.recv().await.unwrap();
    soon(question.over()).await;
    assert!(question.is_over());
    let late = question.extend(Duration::from_secs(1)).await.unwrap_err();
    assert!(late.is(ErrorKind::EventNotPending), "{late}");
    let outcome = loop {
        if let Some(Notification::EventResolved(end)) = soon(notifications.next()).await {
            assert_eq!(end.event_id, question.event_id());
            break end.outcome;
        }
    };
    assert_eq!(outcome, EventOutcome::Timeout);
    client.close().await.unwrap();
}

#[tokio::test]
async fn an_answerer_can_ask_for_more_time() {
    let fixture = Fixture::new();
    let builder = fixture.builder().answer_tree(|_, question| async move {
        let granted = question.extend(Duration::from_secs(60)).await.unwrap();
        assert!(granted > Duration::from_secs(50), "{granted:?}");
        // Longer than the timeout of the navigation.
        let over = tokio::time::timeout(Duration::from_millis(2300), question.over()).await;
        assert!(over.is_err(), "there is time");
        EventAnswer::cancel()
    });
    let client = builder.spawn().await.unwrap();
    conversation(&client).await;
    let moved = client.navigate_tree("a1").answer_timeout_ms(2000);
    let reason = moved.await.unwrap().reason;
    assert_eq!(reason, Some(NavigationReason::CancelledByClient));
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_cancelled_navigation_returns_the_reason_aborted() {
    let fixture = Fixture::new();
    let (client, mut questions) = unanswered(&fixture).await;
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let moving = client
        .navigate_tree("a1")
        .cancel_on(async move { stopped.notified().await })
        .into_future();
    let moving = tokio::spawn(moving);
    let (_, question) = soon(questions.recv()).await.unwrap();
    stop.notify_one();
    let moved = soon(moving).await.unwrap().unwrap();
    assert!(moved.cancelled);
    assert_eq!(moved.reason, Some(NavigationReason::Aborted));
    soon(question.over()).await;
    let leaf = client.get_leaf().await.unwrap().leaf_id;
    assert_eq!(leaf.as_deref(), Some("a2"));
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_navigation_whose_future_is_dropped_is_cancelled() {
    let fixture = Fixture::new();
    let (client, mut questions) = unanswered(&fixture).await;
    let moving = tokio::spawn(client.navigate_tree("a1").into_future());
    let (_, question) = soon(questions.recv()).await.unwrap();
    moving.abort();
    soon(question.over()).await;
    // The connection still works.
    let leaf = client.get_leaf().await.unwrap().leaf_id;
    assert_eq!(leaf.as_deref(), Some("a2"));
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_waiting_navigation_is_aborted_by_its_id() {
    let fixture = Fixture::new();
    let (client, mut questions) = unanswered(&fixture).await;
    let moving = tokio::spawn(client.navigate_tree("a1").into_future());
    let (navigation_id, _) = soon(questions.recv()).await.unwrap();
    let aborted = client.abort_navigation().navigation_id(navigation_id);
    assert!(aborted.await.unwrap().aborted);
    let moved = soon(moving).await.unwrap().unwrap();
    assert_eq!(moved.reason, Some(NavigationReason::Aborted));
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_waiting_fork_fails_with_the_kind_cancelled() {
    let fixture = Fixture::new();
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let builder = fixture.builder().answer_fork(move |_, _| {
        stop.notify_one();
        pending()
    });
    let client = builder.spawn().await.unwrap();
    conversation(&client).await;
    let forking = client
        .fork_session()
        .cancel_on(async move { stopped.notified().await });
    let error = soon(forking).await.unwrap_err();
    assert!(error.is(ErrorKind::Cancelled), "{error}");
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_late_cancel_leaves_the_usual_result() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    conversation(&client).await;
    let moved = client.set_leaf(Some("a1")).cancel_on(async {});
    assert_eq!(moved.await.unwrap().new_leaf_id.as_deref(), Some("a1"));
    client.close().await.unwrap();
}

#[tokio::test]
async fn answer_event_can_be_called_directly() {
    let fixture = Fixture::new();
    let (client, mut questions) = unanswered(&fixture).await;
    let moving = tokio::spawn(client.navigate_tree("a1").into_future());
    let (_, question) = soon(questions.recv()).await.unwrap();
    let given = client.answer_event(question.event_id());
    let given = given.result(EventAnswer::cancel()).await.unwrap();
    assert!(given.accepted);
    assert!(soon(moving).await.unwrap().unwrap().cancelled);
    soon(question.over()).await;
    let twice: Result<Json, _> = client
        .call(
            "answer_event",
            json!({ "eventId": question.event_id(), "result": { "cancel": false } }),
        )
        .await;
    assert!(twice.unwrap_err().is(ErrorKind::EventNotPending));
    client.close().await.unwrap();
}
