//! Unexpected messages of the daemon. None of them may end the connection, or be treated as a
//! response.
//!
//! The client of jsonrpsee alone would end the connection at each of them.

use crate::fake_daemon::FakeDaemon;
use crate::fixture::soon;
use serde_json::json;
use std::future::IntoFuture;
use std::time::Duration;
use treelined_client::{Client, ErrorKind, Json, Notification};

#[tokio::test]
async fn invalid_lines_are_ignored() {
    let (client, mut daemon) = FakeDaemon::connect(Client::builder()).await;
    let call = tokio::spawn(client.call::<_, Json>("get_leaf", json!({})).into_future());
    let request = daemon.receive().await;
    for line in [
        "",
        "  \t ",
        "Segmentation fault",
        "42",
        "null",
        "[]",
        "{}",
        r#"{"jsonrpc":"1.0","id":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":2}"#,
        r#"{"jsonrpc":"2.0","id":2,"error":7}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":1,"error":{"code":1,"message":"both"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#,
        r#"{"jsonrpc":"2.0","id":777,"result":"never asked"}"#,
        r#"{"jsonrpc":"2.0","id":"2","result":"of another type"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":"answered already"}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"a_request","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"x","params":{"subscription":1,"result":2}}"#,
        r#"{"jsonrpc":"2.0","method":"x","params":{"subscription":1,"error":2}}"#,
        r#"[{"jsonrpc":"2.0","id":2,"result":"a batch"}]"#,
    ] {
        daemon.send(line).await;
    }
    daemon.answer(&request, json!("the answer")).await;
    let answer = soon(call).await.unwrap().unwrap();
    assert_eq!(answer.get(), r#""the answer""#);
}

#[tokio::test]
async fn unknown_notifications_keep_their_params() {
    let (client, mut daemon) = FakeDaemon::connect(Client::builder()).await;
    let mut notifications = client.notifications();
    let notification = r#"{"jsonrpc":"2.0","method":"of_the_future","params":{"z":1,"a":1.50}}"#;
    daemon.send(notification).await;
    let Some(Notification::Unknown { method, params }) = soon(notifications.next()).await else {
        panic!("not unknown");
    };
    assert_eq!(method, "of_the_future");
    assert_eq!(params.get(), r#"{"z":1,"a":1.50}"#);
    // The name is known, but the params have another shape.
    let notification = r#"{"jsonrpc":"2.0","method":"session_tree","params":{"sessionId":7}}"#;
    daemon.send(notification).await;
    let strange = soon(notifications.next()).await.unwrap();
    assert!(
        matches!(strange, Notification::Unknown { .. }),
        "{strange:?}"
    );
    daemon.send(r#"{"jsonrpc":"2.0","method":"bare"}"#).await;
    let bare = soon(notifications.next()).await.unwrap();
    assert_eq!(bare.method(), Some("bare"));
}

#[tokio::test]
async fn unknown_enum_values_are_not_errors() {
    let (client, mut daemon) = FakeDaemon::connect(Client::builder()).await;
    let call = tokio::spawn(client.set_leaf(None).into_future());
    let request = daemon.receive().await;
    assert_eq!(request["params"], json!({ "leafId": null }));
    let result = json!({
        "oldLeafId": "a", "newLeafId": null, "durability": "engraved", "more": [1],
    });
    daemon.answer(&request, result).await;
    let moved = soon(call).await.unwrap().unwrap();
    assert_eq!(moved.durability.as_str(), "engraved");

    let call = tokio::spawn(client.get_leaf().into_future());
    let id = &daemon.receive().await["id"];
    let error =
        json!({ "code": 9999, "message": "no", "data": { "kind": "tired", "retryable": true } });
    daemon
        .send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
        .await;
    let error = soon(call).await.unwrap().unwrap_err();
    assert!(error.is(ErrorKind::Unknown("tired".into())) && error.is_retryable());

    let call = tokio::spawn(client.get_leaf().into_future());
    let id = &daemon.receive().await["id"];
    let error = json!({ "code": -32603, "message": "no data" });
    daemon
        .send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
        .await;
    let error = soon(call).await.unwrap().unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -32603);
}

#[tokio::test]
async fn a_response_after_the_timeout_is_ignored() {
    let (client, mut daemon) = FakeDaemon::connect(Client::builder()).await;
    let late = client.get_leaf().timeout(Duration::from_millis(30));
    let late = tokio::spawn(late.into_future());
    let request = daemon.receive().await;
    let error = soon(late).await.unwrap().unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!(error.to_string(), "get_leaf: no answer within 30ms");
    let cancel = daemon.receive().await;
    assert_eq!(cancel["method"], "$/cancel_request");
    assert_eq!(cancel["params"]["requestId"], request["id"]);
    assert_eq!(cancel.get("id"), None, "a notification");
    daemon.answer(&request, json!("late")).await;
    daemon.answer(&request, json!("twice")).await;
    let next = tokio::spawn(client.call::<_, Json>("get_leaf", json!({})).into_future());
    let request = daemon.receive().await;
    daemon.answer(&request, json!("in time")).await;
    assert_eq!(soon(next).await.unwrap().unwrap().get(), r#""in time""#);
}

/// The pipe is full; calls must still end at their deadlines, and the client after its grace time.
#[tokio::test]
async fn a_daemon_that_does_not_read_blocks_neither_calls_nor_close() {
    let builder = Client::builder().grace(Duration::from_millis(200));
    let (client, daemon) = FakeDaemon::connect(builder).await;
    let large = json!({ "much": "x".repeat(100_000) });
    let call = client.call::<_, Json>("stuck", large);
    let error = soon(call.timeout(Duration::from_millis(50)))
        .await
        .unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let waiting = tokio::spawn(client.get_leaf().into_future());
    let error = soon(client.close()).await.unwrap_err();
    assert_eq!(error.to_string(), "the daemon did not end");
    assert!(soon(waiting).await.unwrap().is_err());
    drop(daemon);
}
