//! Calls: params, results, errors, large messages, and messages with unusual line separators.

use crate::fixture::{Fixture, conversation, soon};
use serde_json::json;
use std::future::{Future, IntoFuture};
use std::time::Duration;
use treelined_client::{
    AskKind, Content, EntryBody, EntryNotFoundDetails, Error, ErrorKind, EventAnswer,
    InvalidParamsDetails, Json, LeafMovedDetails, Message, Notification, NotifyLevel,
    PROTOCOL_VERSION, Refusal, SCHEMA_HASH, TreeFilter, TreeRender,
};

#[tokio::test]
async fn initialize_returns_version_name_and_schema_hash() {
    let fixture = Fixture::new();
    let client = fixture
        .builder()
        .summarizer("outline")
        .client_info("a test", "1")
        .spawn()
        .await
        .unwrap();
    let server = client.server();
    assert_eq!(server.protocol_version, PROTOCOL_VERSION);
    assert_eq!(server.server_info.name, "treelined");
    assert_eq!(server.capabilities.summarizer.as_deref(), Some("outline"));
    assert_eq!(server.schema_hash, SCHEMA_HASH, "types of the same schema");
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_conversation_can_be_written_read_and_navigated() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    conversation(&client).await;

    let tree = client.get_tree().render(TreeRender::Unicode).await.unwrap();
    let previews: Vec<_> = tree.nodes.iter().map(|node| &*node.preview).collect();
    assert_eq!(previews, ["says u1", "says a1", "says u2", "says a2"]);
    assert!(tree.nodes[3].is_leaf);
    let users = client.get_tree().filter(TreeFilter::UserOnly).limit(1);
    let users = users.await.unwrap();
    assert_eq!((users.total, users.nodes.len()), (2, 1));
    let nested = client.get_tree().nested().await.unwrap();
    assert_eq!(nested.nodes[0].children[0].entry.id(), "a1");

    let path = client.get_path().entry_id("a1").await.unwrap().entries;
    let EntryBody::Message(first) = path[0].body().unwrap() else {
        panic!("{:?}", path[0]);
    };
    assert_eq!(first.message.role(), "user");
    assert_eq!(first.message.text(), "says u1");
    assert_eq!(path[1].parent_id(), Some("u1"));
    assert_eq!(path[1].r#type(), "message");

    let moved = client.navigate_tree("u2").await.unwrap();
    assert_eq!(moved.editor_text.as_deref(), Some("says u2"));
    assert_eq!(moved.new_leaf_id.as_deref(), Some("a1"));
    let back = client.undo_navigation().await.unwrap();
    assert_eq!(back.new_leaf_id.as_deref(), Some("a2"));
    let dry = client.navigate_tree("a1").dry_run().await.unwrap();
    let entries = dry.preparation.unwrap().entries_to_summarize.unwrap();
    let ids: Vec<_> = entries.iter().map(|entry| entry.id()).collect();
    assert_eq!(ids, ["u2", "a2"]);

    let stats = client.get_stats().await.unwrap();
    assert_eq!(stats.messages["user"], 2);
    let listed = client.list_sessions().await.unwrap().sessions;
    assert_eq!(listed[0].message_count, 4);
    client.close().await.unwrap();
}

/// The result of a dry run to the leaf itself was once mistaken for the answer of another protocol version.
#[tokio::test]
async fn a_dry_run_to_the_leaf_itself_has_no_preparation() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    conversation(&client).await;
    let dry = client.navigate_tree("a2").dry_run().await.unwrap();
    assert_eq!(dry.preparation, None);
    client.append_label("a2").label(Some("here")).await.unwrap();
    let dry = client.navigate_tree("a2").dry_run().await.unwrap();
    assert_eq!(dry.preparation, None);
    let dry = client.navigate_tree("u1").dry_run().await.unwrap();
    assert!(dry.preparation.is_some());
    client.close().await.unwrap();
}

#[tokio::test]
async fn none_is_sent_as_null_where_null_is_a_position() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    conversation(&client).await;
    assert_eq!(client.set_leaf(None).await.unwrap().new_leaf_id, None);
    let root = client
        .append_message(Message::user("another root"))
        .parent_id(None)
        .expected_leaf_id(None)
        .await
        .unwrap();
    let roots = client.get_children(None).await.unwrap().entries;
    let ids: Vec<_> = roots.iter().map(|entry| entry.id()).collect();
    assert_eq!(ids, ["u1", &root.entry_id]);
    client
        .append_label("u1")
        .label(Some("start"))
        .await
        .unwrap();
    assert_eq!(
        client.get_label("u1").await.unwrap().label.as_deref(),
        Some("start")
    );
    client.append_label("u1").await.unwrap();
    assert_eq!(client.get_label("u1").await.unwrap().label, None);
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_session_can_be_named_once_for_many_calls() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    let one = client.with_session(&conversation(&client).await);
    let other = client.with_session(&conversation(&client).await);
    one.set_leaf(Some("u1")).await.unwrap();
    assert_eq!(one.get_leaf().await.unwrap().leaf_id.as_deref(), Some("u1"));
    let leaf = other.get_leaf().await.unwrap();
    assert_eq!(leaf.leaf_id.as_deref(), Some("a2"));
    let ambiguous = refusal(client.get_leaf()).await;
    assert_eq!(ambiguous.kind, ErrorKind::InvalidParams);
    client.close().await.unwrap();
}

/// Commands, questions and messages of a client with a session once did not name the session.
#[tokio::test]
async fn commands_questions_and_messages_are_about_the_session_that_is_named_once() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    let id = conversation(&client).await;
    client.register_command("todo").await.unwrap();
    let mut heard = client.notifications();
    let running = async { client.with_session(&id).run_command("todo").await };
    let answering = async {
        loop {
            if let Some(Notification::CommandInvoked(invoked)) = heard.next().await {
                let answer = EventAnswer::output(invoked.session_id.unwrap());
                break client.answer_event(invoked.event_id).result(answer).await;
            }
        }
    };
    let (run, answered) = soon(async { tokio::join!(running, answering) }).await;
    answered.unwrap();
    assert_eq!(run.unwrap().output.as_deref(), Some(id.as_str()));
    let closed = client.with_session("elsewhere");
    let question = refusal(closed.ask_user(AskKind::Confirm, "Go?")).await;
    assert_eq!(question.kind, ErrorKind::SessionNotFound);
    let message = refusal(closed.notify_user("Done.", NotifyLevel::Info)).await;
    assert_eq!(message.kind, ErrorKind::SessionNotFound);
    client.close().await.unwrap();
}

#[tokio::test]
async fn several_entries_of_any_type_are_appended_at_once() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    conversation(&client).await;
    let entries = [
        json!({ "type": "custom", "id": "c1", "customType": "note", "data": { "n": 1 } }),
        json!({ "type": "of_the_future", "id": "f1", "number": 1 }),
    ];
    let appended = client.append_entries(entries).await.unwrap();
    assert_eq!(appended.entry_ids, ["c1", "f1"]);
    let custom = client.get_entry("c1").await.unwrap().entry;
    let EntryBody::Custom(custom) = custom.body().unwrap() else {
        panic!("{custom:?}");
    };
    assert_eq!(custom.data.unwrap().get(), r#"{"n":1}"#);
    let strange = client.get_entry("f1").await.unwrap().entry;
    assert!(matches!(strange.body().unwrap(), EntryBody::Other(_)));
    assert_eq!(strange.r#type(), "of_the_future");

    let sent = client
        .send_message("note", "in passing", true)
        .details(json!([1]))
        .await
        .unwrap();
    let entry = client
        .get_entry(sent.entry_id.unwrap())
        .await
        .unwrap()
        .entry;
    let EntryBody::CustomMessage(notification) = entry.body().unwrap() else {
        panic!("{entry:?}");
    };
    assert_eq!(notification.content.text(), "in passing");
    client.close().await.unwrap();
}

#[tokio::test]
async fn entries_keep_every_byte() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    client.create_session().await.unwrap();
    let text = r#"{"role":"user","z":1.50,"content":"","a":123456789012345678901234567890}"#;
    let message = Message::from(serde_json::from_str::<Json>(text).unwrap());
    client.append_message(message).entry_id("m").await.unwrap();
    let entry = client.get_entry("m").await.unwrap().entry;
    assert!(entry.json().get().contains(text), "{entry:?}");
    let EntryBody::Message(body) = entry.body().unwrap() else {
        panic!("{entry:?}");
    };
    assert_eq!(body.message.json().get(), text);
    client.close().await.unwrap();
}

/// serde_json parses at most 128 levels; the daemon stores 256.
#[tokio::test]
async fn messages_nested_deeper_than_128_levels_are_read() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    client.create_session().await.unwrap();
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let call = format!(r#"{{"type":"toolCall","id":"t","name":"f","arguments":{deep}}}"#);
    let text = format!(r#"[{{"type":"text","text":"a"}},{call},{{"type":"text","text":"b"}}]"#);
    let message = format!(r#"{{"role":"assistant","content":{text},"more":{deep}}}"#);
    let message = Message::from(serde_json::from_str::<Json>(&message).unwrap());
    assert_eq!(
        (message.role().as_str(), message.text().as_str()),
        ("assistant", "ab")
    );
    client.append_message(message.clone()).await.unwrap();
    let leaf = client.get_leaf().await.unwrap().entry.unwrap();
    let EntryBody::Message(body) = leaf.body().unwrap() else {
        panic!("not a message");
    };
    assert_eq!(body.message, message);
    client.close().await.unwrap();
}

async fn refusal<T: std::fmt::Debug>(call: impl IntoFuture<Output = Result<T, Error>>) -> Refusal {
    let error = call.await.unwrap_err();
    error.refusal().unwrap_or_else(|| panic!("{error}")).clone()
}

#[tokio::test]
async fn errors_have_a_kind_details_and_retryable() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    let none = client.get_tree().session_id("nowhere").await.unwrap_err();
    assert!(none.is(ErrorKind::SessionNotFound), "{none}");
    assert_eq!(none.refusal().unwrap().code, 1100);
    assert!(none.to_string().starts_with("get_tree: "), "{none}");

    conversation(&client).await;
    let missing = refusal(client.get_entry("nothing")).await;
    assert_eq!(missing.kind, ErrorKind::EntryNotFound);
    let details: EntryNotFoundDetails = missing.details().unwrap();
    assert_eq!(details.entry_id, "nothing");

    let moved = refusal(client.set_leaf(Some("u1")).expected_leaf_id(Some("a1"))).await;
    assert_eq!(moved.kind, ErrorKind::LeafMoved);
    let details: LeafMovedDetails = moved.details().unwrap();
    assert_eq!(details.leaf_id.as_deref(), Some("a2"));
    assert_eq!(details.entries.len(), 2);

    let wrong = client.call::<_, Json>("get_entry", json!({ "entry": "a1" }));
    let wrong = wrong.await.unwrap_err();
    assert!(wrong.is(ErrorKind::InvalidParams) && !wrong.is_retryable());
    let details: InvalidParamsDetails = wrong.refusal().unwrap().details().unwrap();
    assert_eq!(details.field, "entry");

    let unknown = refusal(client.call::<_, Json>("get_rich", json!({}))).await;
    assert_eq!(unknown.kind, ErrorKind::MethodNotFound);

    client.begin_turn().await.unwrap();
    let busy = client.navigate_tree("a1").await.unwrap_err();
    assert!(busy.is(ErrorKind::SessionBusy) && busy.is_retryable());
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_and_the_connection_continues() {
    let fixture = Fixture::new();
    let builder = fixture.builder().args(["--max-frame-bytes", "70000"]);
    let client = builder.spawn().await.unwrap();
    let large = Message::user("x".repeat(80_000));
    let refused = refusal(client.append_message(large)).await;
    assert_eq!(refused.kind, ErrorKind::RequestTooLarge);
    assert!(client.list_sessions().await.unwrap().sessions.is_empty());
    client.close().await.unwrap();
}

#[tokio::test]
async fn params_that_cannot_be_serialized_are_an_error() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    let params = std::collections::BTreeMap::from([((1, 2), 3)]);
    let failed = client.call::<_, Json>("get_leaf", params).await;
    assert!(
        matches!(failed, Err(Error::InvalidCall { .. })),
        "{failed:?}"
    );
    let failed = client.call::<_, u8>("list_sessions", json!({})).await;
    assert!(
        matches!(failed, Err(Error::Unexpected { .. })),
        "{failed:?}"
    );
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_message_of_twenty_megabytes_is_written_and_read() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    client.create_session().await.unwrap();
    let text = "päckchen\n".repeat(2_000_000);
    let message = Message::user(text.clone());
    let appended = client.append_message(message).await.unwrap();
    let entry = client.get_entry(appended.entry_id).await.unwrap().entry;
    let EntryBody::Message(body) = entry.body().unwrap() else {
        panic!("not a message");
    };
    assert!(body.message.text() == text, "byte for byte");
    client.close().await.unwrap();
}

#[tokio::test]
async fn line_separators_other_than_line_feeds_stay_inside_messages() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    let session = client.create_session().await.unwrap().session;
    let text = "a\u{2028}b\u{2029}c\u{85}d\re\r\nf\u{b}g\u{c}h\ni\u{1e}\u{feff}😀";
    let appended = client.append_message(Message::user(text)).await.unwrap();
    let entry = client.get_entry(appended.entry_id).await.unwrap().entry;
    let EntryBody::Message(body) = entry.body().unwrap() else {
        panic!("{entry:?}");
    };
    assert_eq!(body.message.text(), text);
    let file = std::fs::read_to_string(session.path.unwrap()).unwrap();
    assert_eq!(file.trim_end().split('\n').count(), 2, "header and entry");
    client.close().await.unwrap();
}

#[tokio::test]
async fn many_calls_at_once_take_effect_in_the_order_they_were_made() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    client.create_session().await.unwrap();
    let ids: Vec<String> = (0..500).map(|n| format!("m{n}")).collect();
    let calls: Vec<_> = ids
        .iter()
        .map(|id| client.append_message(Message::user(id)).entry_id(id))
        .map(IntoFuture::into_future)
        .collect();
    for (call, id) in all(calls).await.into_iter().zip(&ids) {
        assert_eq!(call.unwrap().entry_id, *id);
    }
    let entries = client.get_entries().await.unwrap().entries;
    let written: Vec<_> = entries.iter().map(|entry| entry.id()).collect();
    assert_eq!(written, ids);
    client.close().await.unwrap();
}

/// Polls all futures concurrently, in their order.
async fn all<T>(futures: Vec<std::pin::Pin<Box<dyn Future<Output = T> + Send>>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (future, None)).collect();
    std::future::poll_fn(|context| {
        let mut is_done = true;
        for (future, output) in &mut futures {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => is_done = false,
                }
            }
        }
        match is_done {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    futures
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}

#[tokio::test]
async fn rpc_discover_returns_the_openrpc_document() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    let document: serde_json::Value = client.discover().await.unwrap().parse().unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/openrpc.json");
    let checked_in = std::fs::read_to_string(path).unwrap();
    assert_eq!(
        document,
        serde_json::from_str::<serde_json::Value>(&checked_in).unwrap()
    );
    client.close().await.unwrap();
}

#[test]
fn messages_and_content_are_made_from_text_and_json() {
    let message = Message::assistant("By train?");
    assert_eq!(message.role(), "assistant");
    assert_eq!(message.text(), "By train?");
    assert_eq!(
        message.json().get(),
        r#"{"role":"assistant","content":[{"type":"text","text":"By train?"}]}"#
    );
    let blocks = json!([
        { "type": "text", "text": "a" },
        { "type": "image", "data": "…" },
        { "type": "text", "text": "b" },
    ]);
    assert_eq!(Message::new("user", blocks.clone()).text(), "ab");
    assert_eq!(Content::from(blocks).text(), "ab");
    assert_eq!(Message::from(json!({ "role": "user" })).text(), "");
    assert_eq!(Message::from(json!(7)).role(), "");
}

#[tokio::test]
async fn a_timeout_of_duration_max_does_not_overflow() {
    let fixture = Fixture::new();
    let client = fixture.builder().timeout(Duration::from_secs(20));
    let client = client.spawn().await.unwrap();
    let forever = client.list_sessions().timeout(Duration::MAX).await;
    assert!(forever.unwrap().sessions.is_empty());
    client.close().await.unwrap();
}
