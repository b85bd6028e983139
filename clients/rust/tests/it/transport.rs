//! What the other end may say that is no answer: nothing of it may end the connection or be mistaken.
//!
//! jsonrpsee's client ends at each of these when left alone with it.

use crate::fixture::soon;
use crate::impostor::Impostor;
use serde_json::json;
use std::future::IntoFuture;
use std::time::Duration;
use treelined_client::{Client, ErrorKind, Json, Notification};

#[tokio::test]
async fn strange_lines_are_passed_over() {
    let (client, mut daemon) = Impostor::deceive(Client::builder()).await;
    let call = tokio::spawn(client.call::<_, Json>("get_leaf", json!({})).into_future());
    let asked = daemon.hear().await;
    for strange in [
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
        daemon.say(strange).await;
    }
    daemon.answer(&asked, json!("the answer")).await;
    let answer = soon(call).await.unwrap().unwrap();
    assert_eq!(answer.get(), r#""the answer""#);
}

#[tokio::test]
async fn notifications_that_are_not_known_come_as_they_are() {
    let (client, mut daemon) = Impostor::deceive(Client::builder()).await;
    let mut notifications = client.notifications();
    let said = r#"{"jsonrpc":"2.0","method":"of_the_future","params":{"z":1,"a":1.50}}"#;
    daemon.say(said).await;
    let Some(Notification::Unknown { method, params }) = soon(notifications.next()).await else {
        panic!("not unknown");
    };
    assert_eq!(method, "of_the_future");
    assert_eq!(params.get(), r#"{"z":1,"a":1.50}"#);
    // Known by name, but not the shape.
    let said = r#"{"jsonrpc":"2.0","method":"session_tree","params":{"sessionId":7}}"#;
    daemon.say(said).await;
    let strange = soon(notifications.next()).await.unwrap();
    assert!(
        matches!(strange, Notification::Unknown { .. }),
        "{strange:?}"
    );
    daemon.say(r#"{"jsonrpc":"2.0","method":"bare"}"#).await;
    let bare = soon(notifications.next()).await.unwrap();
    assert_eq!(bare.method(), Some("bare"));
}

#[tokio::test]
async fn values_that_are_not_known_are_no_errors() {
    let (client, mut daemon) = Impostor::deceive(Client::builder()).await;
    let call = tokio::spawn(client.set_leaf(None).into_future());
    let asked = daemon.hear().await;
    assert_eq!(asked["params"], json!({ "leafId": null }));
    let result = json!({
        "oldLeafId": "a", "newLeafId": null, "durability": "engraved", "more": [1],
    });
    daemon.answer(&asked, result).await;
    let moved = soon(call).await.unwrap().unwrap();
    assert_eq!(moved.durability.as_str(), "engraved");

    let call = tokio::spawn(client.get_leaf().into_future());
    let id = &daemon.hear().await["id"];
    let error =
        json!({ "code": 9999, "message": "no", "data": { "kind": "tired", "retryable": true } });
    daemon
        .say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
        .await;
    let error = soon(call).await.unwrap().unwrap_err();
    assert!(error.is(ErrorKind::Unknown("tired".into())) && error.is_retryable());

    let call = tokio::spawn(client.get_leaf().into_future());
    let id = &daemon.hear().await["id"];
    let error = json!({ "code": -32603, "message": "no data" });
    daemon
        .say(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
        .await;
    let error = soon(call).await.unwrap().unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -32603);
}

#[tokio::test]
async fn an_answer_that_comes_too_late_is_passed_over() {
    let (client, mut daemon) = Impostor::deceive(Client::builder()).await;
    let late = client.get_leaf().timeout(Duration::from_millis(30));
    let late = tokio::spawn(late.into_future());
    let asked = daemon.hear().await;
    let error = soon(late).await.unwrap().unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!(error.to_string(), "get_leaf: no answer within 30ms");
    let cancel = daemon.hear().await;
    assert_eq!(cancel["method"], "$/cancel_request");
    assert_eq!(cancel["params"]["requestId"], asked["id"]);
    assert_eq!(cancel.get("id"), None, "a notification");
    daemon.answer(&asked, json!("late")).await;
    daemon.answer(&asked, json!("twice")).await;
    let next = tokio::spawn(client.call::<_, Json>("get_leaf", json!({})).into_future());
    let asked = daemon.hear().await;
    daemon.answer(&asked, json!("in time")).await;
    assert_eq!(soon(next).await.unwrap().unwrap().get(), r#""in time""#);
}

/// A daemon that neither reads nor answers fills the pipe: calls end by their deadlines all the same, and so
/// does the client.
#[tokio::test]
async fn a_daemon_that_does_not_read_holds_nothing_up() {
    let builder = Client::builder().grace(Duration::from_millis(200));
    let (client, daemon) = Impostor::deceive(builder).await;
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
