//! A member with the permissions in the first steps of schema/fleet.md: the calls that it can make, and those that it
//! cannot make.

use crate::daemon::Daemon;
use crate::first_steps::block;
use crate::single::Single;
use crate::support::{Machine, append};
use async_nats::jetstream::stream::StorageType;
use async_nats::jetstream::{self, stream};
use async_nats::{Client, ConnectOptions, HeaderMap};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const LARGE: usize = 3_000_000;
/// How long the test waits for an answer to a request that must not be answered. The server answers the requests after
/// it.
const SILENCE: Duration = Duration::from_millis(300);

/// The calls of JetStream that change something, with the bodies that they need.
fn hostile_calls() -> Vec<(String, Value)> {
    let mut calls = Vec::new();
    for stream in [
        "treelined",
        "OBJ_treelined-lines",
        "treelined-rows",
        "KV_treelined-presence",
    ] {
        let of = |verb: &str, body: Value| (format!("$JS.API.STREAM.{verb}.{stream}"), body);
        calls.extend([
            of("DELETE", json!({})),
            of("PURGE", json!({})),
            of("MSG.DELETE", json!({ "seq": 1 })),
            of("UPDATE", json!({ "name": stream, "max_msgs": 1 })),
            of("SNAPSHOT", json!({ "deliver_subject": "_INBOX.snapshot" })),
            of("RESTORE", json!({ "config": { "name": stream } })),
            of("LEADER.STEPDOWN", json!({})),
            of("PEER.REMOVE", json!({ "peer": "n1" })),
        ]);
    }
    let create = json!({ "name": "other", "subjects": ["treelined.s.>"] });
    calls.extend([
        ("$JS.API.STREAM.CREATE.other".to_owned(), create),
        ("$JS.API.STREAM.LIST".to_owned(), json!({})),
        ("$JS.API.STREAM.NAMES".to_owned(), json!({})),
        ("$JS.API.META.LEADER.STEPDOWN".to_owned(), json!({})),
        ("$JS.API.SERVER.REMOVE".to_owned(), json!({ "peer": "n1" })),
        ("$JS.API.ACCOUNT.PURGE.TEAM".to_owned(), json!({})),
        (
            "$JS.API.CONSUMER.DURABLE.CREATE.treelined.d".to_owned(),
            json!({ "stream_name": "treelined", "config": { "durable_name": "d" } }),
        ),
    ]);
    calls
}

struct Team {
    server: Single,
}

impl Team {
    /// A server with the document's list of permissions.
    fn start() -> Option<Self> {
        let config = block("jetstream {");
        let at = config.find("MEMBER = {").unwrap();
        let (member, _) = config[at..].split_once("accounts {").unwrap();
        let lines = format!(
            "{member}\naccounts {{ TEAM {{ jetstream: enabled, users: [\n\
             {{ user: admin, password: secret }}\n{{ user: alice, password: secret, permissions: $MEMBER }}\n] }} }}"
        );
        let server = Single::start(|_| lines)?;
        Some(Self { server })
    }

    fn machine(&self, user: &str) -> Machine {
        let port = self.server.port;
        Machine::configured(&format!(
            "[log.nats]\nreplicas = 1\nservers = [\"nats://{user}:secret@127.0.0.1:{port}\"]\n"
        ))
    }

    async fn connect(&self, user: &str) -> Client {
        let options = ConnectOptions::with_user_and_password(user.to_owned(), "secret".to_owned());
        let address = format!("127.0.0.1:{}", self.server.port);
        options.connect(address).await.unwrap()
    }

    /// The messages and the settings of each stream.
    async fn streams(&self) -> Vec<(u64, stream::Config)> {
        let context = jetstream::new(self.connect("admin").await);
        let mut streams = Vec::new();
        for name in ["treelined", "OBJ_treelined-lines", "treelined-rows"] {
            let mut stream = context.get_stream(name).await.unwrap();
            let info = stream.info().await.unwrap();
            streams.push((info.state.messages, info.config.clone()));
        }
        streams
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

#[test]
fn a_member_does_all_that_commands_and_daemons_do() {
    let Some(team) = Team::start() else { return };
    let [admin, alice, other] = ["admin", "alice", "alice"].map(|user| team.machine(user));
    admin.until_sound(&["doctor", "--cluster", "--create"]);
    let checked = alice.run(&["doctor", "--cluster"]);
    assert!(checked.status.success(), "{checked:?}");
    // Other users must not read the password in this file.
    let file = alice
        .sessions()
        .with_file_name(".config/treelined/config.toml");
    let permit = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    permit(0o644);
    let warned = alice.run(&["doctor", "--cluster"]);
    let said = String::from_utf8(warned.stdout).unwrap();
    assert_eq!(warned.status.code(), Some(1), "{said}");
    assert!(said.contains("chmod 600"), "{said}");
    permit(0o600);

    let path = alice.make("s", 3, 10);
    append(&path, 3..4, LARGE);
    // With this number of entries, they are read through a consumer.
    for entry in 4..50 {
        append(&path, entry..entry + 1, 10);
        if entry % 2 == 0 {
            alice.done(&["push", "s", "--json"]);
        }
    }
    alice.done(&["push", "s", "--json"]);
    other.done(&["pull", "s", "--json"]);
    assert_eq!(other.text("s"), alice.text("s"));
    let listed = other.done(&["pull", "--list", "--json"]);
    assert_eq!((listed.len(), &listed[0]["entries"]), (1, &json!(50)));

    let [mut here, mut there] = [Daemon::start(&alice), Daemon::start(&other)];
    let by_id = json!({ "sessionId": "s" });
    here.done("open_session", by_id.clone());
    there.done("open_session", by_id.clone());
    let said = here.say("s", "from here");
    assert_eq!(said["durability"], "replicated");
    there.hears_of(said["entryId"].as_str().unwrap());
    let team = there.done("list_sessions", json!({}));
    assert!(team.get("incomplete").is_none(), "{team}");
    there.done("delete_session", by_id.clone());
    there.done("restore_session", by_id.clone());
    there.done("open_session", by_id);
    assert_eq!(there.say("s", "back")["durability"], "replicated");
    here.end();
    there.end();
}

/// Any member could once delete the stream, and could empty its buckets by a rollup.
#[test]
fn a_member_removes_and_changes_nothing() {
    let Some(team) = Team::start() else { return };
    let [admin, alice] = ["admin", "alice"].map(|user| team.machine(user));
    admin.until_sound(&["doctor", "--cluster", "--create"]);
    let path = alice.make("s", 3, 10);
    append(&path, 3..4, LARGE);
    alice.done(&["push", "s", "--json"]);

    runtime().block_on(async {
        let before = team.streams().await;
        assert!(
            before.iter().all(|(messages, _)| *messages > 0),
            "{before:?}"
        );
        let member = team.connect("alice").await;
        let mut asked = Vec::new();
        for (subject, body) in hostile_calls() {
            let request = member.request(subject.clone(), body.to_string().into());
            asked.push((subject, tokio::time::timeout(SILENCE, request).await));
        }
        for (subject, answer) in asked {
            // Without a permission the server does not pass the request on, so there is no answer.
            assert!(!matches!(answer, Ok(Ok(_))), "{subject}: {answer:?}");
        }
        let mut refused = 0;
        for subject in [
            "treelined.s.s",
            "treelined.r.s",
            "$O.treelined-lines.M.x",
            "$O.treelined-lines.C.x",
        ] {
            for rollup in ["all", "sub"] {
                let mut headers = HeaderMap::new();
                headers.insert("Nats-Rollup", rollup);
                let context = jetstream::new(member.clone());
                let published = context
                    .publish_with_headers(subject, headers, "x".into())
                    .await;
                refused += usize::from(published.unwrap().await.is_err());
            }
        }
        assert_eq!(refused, 8);
        let after = team.streams().await;
        for ((had, config), (has, now)) in before.iter().zip(&after) {
            assert!(has >= had, "{} of {had} messages are left", has);
            assert_eq!(config, now);
        }
    });
    let other = team.machine("alice");
    other.done(&["pull", "s", "--json"]);
    assert_eq!(other.text("s"), alice.text("s"));
}

/// The buckets of earlier versions allowed rollups.
#[test]
fn a_bucket_that_a_member_could_empty_is_named_and_mended() {
    let Some(team) = Team::start() else { return };
    let admin = team.machine("admin");
    runtime().block_on(async {
        let context = jetstream::new(team.connect("admin").await);
        let config = jetstream::object_store::Config {
            bucket: "treelined-lines".to_owned(),
            storage: StorageType::File,
            ..Default::default()
        };
        context.create_object_store(config).await.unwrap();
        let config = stream::Config {
            name: "treelined".to_owned(),
            subjects: vec!["treelined.s.*".to_owned()],
            discard: stream::DiscardPolicy::New,
            deny_delete: true,
            deny_purge: true,
            duplicate_window: Duration::from_secs(120),
            ..Default::default()
        };
        context.create_stream(config).await.unwrap();
    });
    let checked = admin.run(&["doctor", "--cluster"]);
    let said = String::from_utf8(checked.stdout).unwrap();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(
        said.contains("a member can remove what OBJ_treelined-lines has"),
        "{said}"
    );
    admin.until_sound(&["doctor", "--cluster", "--create"]);
    admin.until_sound(&["doctor", "--cluster"]);
    let machines = [team.machine("alice"), team.machine("alice")];
    append(&machines[0].make("s", 3, 10), 3..4, LARGE);
    machines[0].done(&["push", "s", "--json"]);
    machines[1].done(&["pull", "s", "--json"]);
    assert_eq!(machines[0].text("s"), machines[1].text("s"));
}
