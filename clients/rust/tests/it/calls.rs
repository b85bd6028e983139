//! Calls: params, results, errors, and messages that are hard on framing.

use crate::fixture::{Fixture, conversation};
use treelined_client::{EntryBody, PROTOCOL_VERSION, SCHEMA_HASH, TreeRender};

#[tokio::test]
async fn the_daemon_introduces_itself() {
    let fixture = Fixture::new();
    let client = fixture
        .builder()
        .summarizer("outline")
        .spawn()
        .await
        .unwrap();
    let server = client.server();
    assert_eq!(server.protocol_version, PROTOCOL_VERSION);
    assert_eq!(server.server_info.name, "treelined");
    assert_eq!(server.capabilities.summarizer.as_deref(), Some("outline"));
    assert_eq!(server.schema_hash, SCHEMA_HASH);
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_conversation_is_written_read_and_walked() {
    let fixture = Fixture::new();
    let client = fixture.builder().spawn().await.unwrap();
    conversation(&client).await;

    let tree = client.get_tree().render(TreeRender::Unicode).await.unwrap();
    let previews: Vec<_> = tree.nodes.iter().map(|node| &*node.preview).collect();
    assert_eq!(previews, ["says u1", "says a1", "says u2", "says a2"]);
    let nested = client.get_tree().nested().await.unwrap();
    assert_eq!(nested.nodes[0].children[0].entry.id(), "a1");
    let path = client.get_path().entry_id("a1").await.unwrap().entries;
    let EntryBody::Message(first) = path[0].body().unwrap() else {
        panic!("{:?}", path[0]);
    };
    assert_eq!(first.message.role(), "user");
    assert_eq!(first.message.text(), "says u1");
    assert_eq!(path[1].parent_id(), Some("u1"));

    let moved = client.navigate_tree("u2").await.unwrap();
    assert_eq!(moved.editor_text.as_deref(), Some("says u2"));
    assert_eq!(moved.new_leaf_id.as_deref(), Some("a1"));
    let back = client.undo_navigation().await.unwrap();
    assert_eq!(back.new_leaf_id.as_deref(), Some("a2"));
    let dry = client.navigate_tree("a1").dry_run().await.unwrap();
    let entries = dry.preparation.entries_to_summarize.unwrap();
    let ids: Vec<_> = entries.iter().map(|entry| entry.id()).collect();
    assert_eq!(ids, ["u2", "a2"]);
    let listed = client.list_sessions().await.unwrap().sessions;
    assert_eq!(listed[0].message_count, 4);
    client.close().await.unwrap();
}
