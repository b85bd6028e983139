//! Streams of notifications.

use crate::fake_daemon::FakeDaemon;
use crate::fixture::{Fixture, conversation, soon};
use serde_json::json;
use std::future::IntoFuture;
use treelined_client::{Client, Json, Message, MoveCause, Notification, Notifications, Origin};

/// Returns the next notification.
async fn next(notifications: &mut Notifications) -> Notification {
    soon(notifications.next()).await.expect("a notification")
}

#[tokio::test]
async fn a_stream_holds_every_notification_sent_before_the_response() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    let session_id = conversation(&client).await;
    let mut notifications = client.notifications();
    client.set_leaf(Some("a1")).await.unwrap();
    client.close().await.unwrap();

    let Notification::SessionTree(moved) = next(&mut notifications).await else {
        panic!("no move");
    };
    assert_eq!(moved.session_id, session_id);
    assert_eq!(moved.old_leaf_id.as_deref(), Some("a2"));
    assert_eq!(moved.new_leaf_id.as_deref(), Some("a1"));
    assert_eq!(moved.cause, MoveCause::SetLeaf);
    while let Some(notification) = soon(notifications.next()).await {
        assert!(
            !matches!(notification, Notification::SessionTree(_)),
            "{notification:?}"
        );
    }
    let mut late = client.notifications();
    assert_eq!(soon(late.next()).await, None, "the connection has ended");
}

#[tokio::test]
async fn every_stream_gets_every_notification() {
    let fixture = Fixture::new();
    let client = fixture.spawn().await;
    let mut streams = [client.notifications(), client.notifications()];
    let session = client.create_session().await.unwrap().session;
    let message = Message::user("hear, hear");
    let appended = client.append_message(message).await.unwrap();
    for stream in &mut streams {
        let opened = next(stream).await;
        assert_eq!(opened.method(), Some("session_opened"));
        assert_eq!(opened.session_id(), Some(&*session.session_id));
        let Notification::EntriesAppended(notification) = next(stream).await else {
            panic!("nothing appended");
        };
        assert_eq!(notification.entry_ids, [&*appended.entry_id]);
        assert_eq!(notification.origin, Origin::Own);
    }
    client.close().await.unwrap();
}

#[tokio::test]
async fn an_unread_stream_reports_how_many_notifications_it_dropped() {
    let (client, mut daemon) = FakeDaemon::connect(Client::builder().capacity(4)).await;
    let mut unread = client.notifications();
    let call = tokio::spawn(client.call::<_, Json>("get_leaf", json!({})).into_future());
    let request = daemon.receive().await;
    for n in 0..10 {
        let notification = json!({ "jsonrpc": "2.0", "method": "number", "params": n });
        daemon.send(&notification.to_string()).await;
    }
    daemon.answer(&request, json!(null)).await;
    soon(call).await.unwrap().unwrap();
    assert_eq!(next(&mut unread).await, Notification::Missed { count: 6 });
    for n in 6..10 {
        let Notification::Unknown { params, .. } = next(&mut unread).await else {
            panic!("not a number");
        };
        assert_eq!(params.get(), n.to_string());
    }
}

#[tokio::test]
async fn unwanted_notifications_are_not_sent() {
    let fixture = Fixture::new();
    let client = fixture.builder().opt_out(["entries_appended"]);
    let client = client.spawn().await.unwrap();
    let mut notifications = client.notifications();
    conversation(&client).await;
    client.close().await.unwrap();
    let mut methods = Vec::new();
    while let Some(notification) = soon(notifications.next()).await {
        methods.push(notification.method().unwrap_or_default().to_owned());
    }
    assert!(
        methods.contains(&"session_opened".to_owned()),
        "{methods:?}"
    );
    assert!(!methods.contains(&"entries_appended".to_owned()));
}
