//! What the daemon says unasked.

use crate::fixture::{Fixture, conversation, soon};
use crate::impostor::Impostor;
use serde_json::json;
use std::future::IntoFuture;
use treelined_client::{Client, Json, Message, MoveCause, Notification, Notifications, Origin};

/// The next one, which has to come.
async fn next(notifications: &mut Notifications) -> Notification {
    soon(notifications.next()).await.expect("something is said")
}

#[tokio::test]
async fn what_happened_before_a_call_returned_has_been_said() {
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
    while let Some(said) = soon(notifications.next()).await {
        assert!(!matches!(said, Notification::SessionTree(_)), "{said:?}");
    }
    let mut late = client.notifications();
    assert_eq!(soon(late.next()).await, None, "it is all over");
}

#[tokio::test]
async fn every_stream_has_all_of_them() {
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
        let Notification::EntriesAppended(said) = next(stream).await else {
            panic!("nothing appended");
        };
        assert_eq!(said.entry_ids, [&*appended.entry_id]);
        assert_eq!(said.origin, Origin::Own);
    }
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_stream_that_is_not_read_says_how_many_it_lost() {
    let (client, mut daemon) = Impostor::deceive(Client::builder().capacity(4)).await;
    let mut unread = client.notifications();
    let call = tokio::spawn(client.call::<_, Json>("get_leaf", json!({})).into_future());
    let asked = daemon.hear().await;
    for n in 0..10 {
        let said = json!({ "jsonrpc": "2.0", "method": "number", "params": n });
        daemon.say(&said.to_string()).await;
    }
    daemon.answer(&asked, json!(null)).await;
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
    while let Some(said) = soon(notifications.next()).await {
        methods.push(said.method().unwrap_or_default().to_owned());
    }
    assert!(
        methods.contains(&"session_opened".to_owned()),
        "{methods:?}"
    );
    assert!(!methods.contains(&"entries_appended".to_owned()));
}
