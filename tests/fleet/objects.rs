//! Lines that are larger than a message are stored in a bucket beside the stream.

use crate::support::{Fleet, Machine, append};
use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::ObjectStore;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use futures_util::StreamExt;
use serde_json::json;
use sha2::{Digest, Sha256};
use treelined_fleet::backend::AppendOutcome;
use treelined_fleet::backend::LogBackend;
use treelined_fleet::backend::Position;

const LARGE: usize = 3_000_000;

async fn bucket(context: &Context) -> ObjectStore {
    let bucket = context.get_object_store("treelined-lines").await;
    bucket.unwrap()
}

async fn names(bucket: &ObjectStore) -> Vec<String> {
    let objects = bucket.list().await.unwrap();
    objects.map(|object| object.unwrap().name).collect().await
}

#[test]
fn a_line_that_is_larger_than_a_message_reaches_another_machine() {
    let Some(fleet) = Fleet::get(15) else { return };
    let fleet = fleet.with_stream();
    let (laptop, server) = (Machine::new(&fleet), Machine::new(&fleet));
    let path = laptop.make("s", 3, 10);
    append(&path, 3..4, LARGE);
    append(&path, 4..5, 10_000_000);
    append(&path, 5..7, 100);
    assert_eq!(laptop.done(&["push", "s", "--json"])[0]["lines"], 8);
    assert_eq!(server.done(&["pull", "s", "--json"])[0]["lines"], 8);
    assert_eq!(server.text("s"), laptop.text("s"));
    // The same line in another session is the same object.
    let other = laptop.make("other", 3, 10);
    append(&other, 3..4, LARGE);
    assert_eq!(laptop.done(&["push", "other", "--json"])[0]["lines"], 5);
    let objects = fleet.with(async |context| names(&bucket(&context).await).await);
    assert_eq!(objects.len(), 2);
}

/// The bytes of an object are not in the stream, so the servers can lose or change them without a change of the stream.
#[test]
fn an_object_that_is_lost_or_changed_is_named_and_changes_no_file() {
    let Some(fleet) = Fleet::get(16) else { return };
    let fleet = fleet.with_stream();
    let laptop = Machine::new(&fleet);
    append(&laptop.make("s", 3, 10), 3..4, LARGE);
    laptop.done(&["push", "s", "--json"]);
    let before = laptop.text("s");
    let name = fleet.with(async |context| names(&bucket(&context).await).await.remove(0));

    // Another object gets its name. This is done by hand, since clients remove the old object when they replace it, and
    // the bucket does not allow that.
    fleet.with(async |context| {
        let other = "x".repeat(LARGE).into_bytes();
        let chunk = context.publish("$O.treelined-lines.C.other", other[..500_000].to_vec().into());
        chunk.await.unwrap().await.unwrap();
        let digest = URL_SAFE.encode(Sha256::digest(&other[..500_000]));
        let info = json!({
            "name": name, "bucket": "treelined-lines", "nuid": "other", "size": 500_000, "chunks": 1,
            "digest": format!("SHA-256={digest}"), "deleted": false,
        });
        let subject = format!("$O.treelined-lines.M.{}", URL_SAFE.encode(&name));
        let sent = context.publish(subject, info.to_string().into());
        sent.await.unwrap().await.unwrap();
    });
    let server = Machine::new(&fleet);
    assert_eq!(server.kind(&["pull", "s", "--json"]), "logForeign");
    assert_eq!(laptop.kind(&["push", "s", "--json"]), "logForeign");

    // A missing object is not an error for ever, since a server that is behind may get it later.
    fleet.with(async |context| {
        let deleted = context.delete_object_store("treelined-lines").await;
        deleted.unwrap();
    });
    laptop.until_sound(&["doctor", "--cluster", "--create"]);
    assert_eq!(server.kind(&["pull", "s", "--json"]), "logUnavailable");
    assert_eq!(laptop.kind(&["push", "s", "--json"]), "logUnavailable");
    assert_eq!(laptop.text("s"), before);
}

/// Several entries are appended together or not at all, whatever their total size is.
#[test]
fn an_append_that_is_larger_than_a_message_is_one_message() {
    let Some(fleet) = Fleet::get(17) else { return };
    let fleet = fleet.with_stream();
    let log = fleet.open();
    let line = format!("{{\"id\":\"{}\"}}\n", "x".repeat(400_000));
    let lines = line.repeat(5);
    let appended = log.append("s", Position::START, lines.as_bytes()).unwrap();
    let AppendOutcome::Appended(end) = appended else {
        panic!("{appended:?}");
    };
    // The same append, sent again, is recognized.
    let again = log.append("s", Position::START, lines.as_bytes()).unwrap();
    assert_eq!(again, appended);
    let parts: Vec<_> = log.read("s", Position::START).unwrap().collect();
    assert_eq!(parts.len(), 1);
    let part = parts[0].as_ref().unwrap();
    assert_eq!((part.end, &part.lines[..]), (end, lines.as_bytes()));
}

/// The account may not make the bucket, or the bucket was never made.
#[test]
fn without_a_bucket_a_line_that_is_too_large_is_refused_before_anything_is_written() {
    let Some(fleet) = Fleet::get(12) else { return };
    let fleet = fleet.with_stream();
    let machine = Machine::new(&fleet);
    let path = machine.make("small", 30, 90_000);
    machine.done(&["push", "small", "--json"]);
    fleet.with(async |context| {
        let deleted = context.delete_object_store("treelined-lines").await;
        deleted.unwrap();
    });
    append(&path, 30..31, LARGE);
    let before = machine.text("small");
    assert_eq!(
        machine.kind(&["push", "small", "--json"]),
        "payloadTooLarge"
    );
    assert_eq!(machine.text("small"), before);
    machine.until_sound(&["doctor", "--cluster", "--create"]);
    assert_eq!(machine.done(&["push", "small", "--json"])[0]["lines"], 1);

    let path = machine.make("s", 30, 90_000);
    append(&path, 30..31, 65 << 20);
    assert_eq!(machine.kind(&["push", "s", "--json"]), "payloadTooLarge");
    let listed = machine.run(&["pull", "--list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.starts_with("small "), "{listed}");
    assert_eq!(listed.lines().count(), 1, "{listed}");
}
