//! Limited connections: `[access.NAME]` and `access` of `initialize`. protocol.md §10.7.

mod search;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use crate::harness::*;

const ALL: [&str; 8] = [
    "own", "read", "raw", "append", "answer", "offer", "person", "all",
];
const TOKEN: &str = "ghp_0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R";

/// A daemon with two limited sockets for the directory `work/in`: clients of one may read, and clients of the other may
/// append.
struct Limited {
    shared: SharedDaemon,
}

impl Limited {
    #[track_caller]
    fn start() -> Limited {
        let home = Home::new();
        for folder in ["in", "out"] {
            fs::create_dir(home.cwd().join(folder)).unwrap();
        }
        symlink(home.cwd().join("out"), home.cwd().join("in/link")).unwrap();
        let path = configure(&home);
        let path = path.display().to_string();
        let shared = SharedDaemon::start_in(&home, &["--config", &path], &[]);
        // The daemon answers when it listens on all sockets.
        drop(shared.client("first", json!({})));
        Limited { shared }
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.shared.home.files().join(format!("{name}.sock"))
    }

    /// A limited client that has not introduced itself.
    fn connect(&self, name: &str) -> Daemon {
        let mut client = Daemon::connected(&self.shared.home, &self.socket(name));
        client.ignore_bookkeeping();
        client.ignore("session_before_fork");
        client
    }

    fn directory(&self, name: &str) -> String {
        self.shared.home.cwd().join(name).display().to_string()
    }

    /// Makes a session with one message in a directory, by a client that may do everything.
    #[track_caller]
    fn session(&self, all: &mut Daemon, folder: &str, text: &str) -> String {
        let made = all.ok("create_session", json!({"cwd": self.directory(folder)}));
        let id = made["session"]["sessionId"].as_str().unwrap().to_owned();
        let message = json!({"sessionId": id, "entryId": "u1", "message": user(text)});
        all.ok("append_message", message);
        id
    }
}

/// Writes a configuration with both sockets, and with a word that redaction replaces.
fn configure(home: &Arc<Home>) -> PathBuf {
    let section = |name: &str| {
        let socket = home.files().join(format!("{name}.sock"));
        let inside = home.cwd().join("in");
        format!(
            "[access.{name}]\nsocket = {socket:?}\ndirectories = [{inside:?}]\nmay = {name:?}\n"
        )
    };
    let words = "[redact]\nwords = [\"acme-internal\"]\n";
    let text = section("read") + &section("append") + words;
    home.file("config.toml", text.as_bytes())
}

pub(crate) fn table() -> Vec<Json> {
    let list: Json = serde_json::from_str(include_str!("../../../schema/methods.json")).unwrap();
    list["methods"].as_array().unwrap().clone()
}

pub(crate) fn ids(list: &Json) -> BTreeSet<String> {
    let id = |row: &Json| row["sessionId"].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(id).collect()
}

#[test]
fn each_method_is_refused_or_served_by_its_right() {
    let limited = Limited::start();
    for (may, rights) in [
        ("read", vec!["own", "read"]),
        ("append", vec!["own", "read", "append"]),
        ("read, with secrets", vec!["own", "read", "raw"]),
        ("all", ALL.to_vec()),
    ] {
        let mut client = match may {
            "all" => limited.shared.connect(),
            "read, with secrets" => {
                let mut client = limited.shared.connect();
                client.initialize(json!({"protocolVersion": 1, "access": {"redact": false}}));
                client
            }
            may => limited.connect(may),
        };
        check_methods(&mut client, &rights, may);
    }
}

/// If the right of a method were too low, a reader could write.
#[test]
fn no_right_is_lower_than_what_its_method_does() {
    for row in table() {
        let (name, right) = (
            row["name"].as_str().unwrap(),
            row["right"].as_str().unwrap(),
        );
        let changes =
            ["session.append", "session.release"].contains(&row["scope"].as_str().unwrap());
        assert!(
            !changes || ["append", "person", "all"].contains(&right),
            "{name}: {right}"
        );
    }
    let rights = table();
    let right = |name: &str| {
        let row = rights.iter().find(|row| row["name"] == name);
        row.unwrap()["right"].as_str().unwrap()
    };
    for (expected, names) in [
        (
            "all",
            "delete_session restore_session erase_session list_trash import_sessions open_web",
        ),
        (
            "person",
            "mark_session export_session continue_session get_usage run_command list_commands",
        ),
        (
            "offer",
            "ask_user notify_user register_command unregister_command register_renderer",
        ),
        ("answer", "answer_event"),
    ] {
        let of_table = rights.iter().filter(|row| row["right"] == expected);
        let of_table = of_table.map(|row| row["name"].as_str().unwrap());
        assert_eq!(
            of_table.collect::<BTreeSet<_>>(),
            names.split(' ').collect(),
            "{expected}"
        );
    }
    assert_eq!(right("create_session"), "append");
}

/// A method outside of the rights is refused before its params are read.
#[track_caller]
pub(crate) fn check_methods(client: &mut Daemon, rights: &[&str], of: &str) {
    let mut served = BTreeSet::new();
    for row in table() {
        let name = row["name"].as_str().unwrap();
        let is_allowed = rights.contains(&row["right"].as_str().unwrap());
        let wrong = json!({"thereIsNoSuchMember": true, "protocolVersion": "one"});
        let error = client.err(name, wrong);
        let expected = match is_allowed {
            true => "invalidParams",
            false => "methodNotFound",
        };
        assert_eq!(error.kind, expected, "{of}: {name}: {}", error.message);
        if is_allowed {
            served.insert(name.to_owned());
        }
    }
    let document = client.ok("rpc.discover", json!({}));
    let methods = document["methods"].as_array().unwrap().iter();
    let shown = methods.map(|method| method["name"].as_str().unwrap().to_owned());
    assert_eq!(shown.collect::<BTreeSet<_>>(), served, "{of}");
}

#[test]
fn sessions_of_other_directories_do_not_exist() {
    let limited = Limited::start();
    let mut all = limited.shared.client("all", json!({}));
    all.ignore("session_fork");
    all.ignore("session_before_fork");
    let inside = limited.session(&mut all, "in", "a needle inside");
    let outside = limited.session(&mut all, "out", "a needle outside");
    let linked = limited.session(&mut all, "in/link", "a needle behind a link");
    let fork = json!({"sessionId": inside, "entryId": "u1", "position": "at", "cwd": limited.directory("out")});
    let fork = all.ok("fork_session", fork)["session"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    let closed = limited.session(&mut all, "out", "a needle in a closed one");
    all.ok("close_session", json!({"sessionId": closed}));
    let mut client = limited.connect("append");
    assert_eq!(
        ids(&client.ok("list_sessions", json!({}))["sessions"]),
        BTreeSet::from([inside.clone()])
    );
    let hits = client.ok("search", json!({"query": "needle"}));
    assert_eq!(ids(&hits["hits"]), BTreeSet::from([inside.clone()]));
    assert_eq!(hits["totals"]["sessions"], 1);
    client.ok("open_session", json!({"sessionId": inside}));
    let family = all.ok("get_family", json!({"sessionId": inside}));
    assert!(ids(&family["sessions"]).contains(&fork), "{family}");
    let family = client.ok("get_family", json!({"sessionId": inside}));
    assert_eq!(ids(&family["sessions"]), BTreeSet::from([inside.clone()]));
    let tree = json!({"sessionId": inside, "sessions": true});
    assert!(all.ok("get_tree", tree.clone()).to_string().contains(&fork));
    assert!(!client.ok("get_tree", tree).to_string().contains(&fork));

    // The answer is the same as for a session that does not exist.
    let none = "0198c1f0-5e00-7000-8000-00000000ffff";
    for (method, params) in [
        ("open_session", json!({})),
        ("get_family", json!({})),
        ("search", json!({"query": "needle"})),
        ("get_leaf", json!({})),
        ("close_session", json!({})),
        ("append_message", json!({"message": user("no")})),
        ("fork_session", json!({})),
    ] {
        let mut answer = |id: &str| {
            let mut params = params.clone();
            params["sessionId"] = json!(id);
            let error = client.err_kind(method, params, "sessionNotFound");
            error.message.replace(id, "ID")
        };
        let expected = answer(none);
        for id in [&outside, &linked, &fork, &closed] {
            assert_eq!(answer(id), expected, "{method}");
        }
    }
    for id in [&outside, &closed, none] {
        let pick = json!({"sessionId": inside, "entryIds": ["u1"], "fromSessionId": id});
        client.err_kind("cherry_pick", pick, "sessionNotFound");
        let merge = json!({"sessionId": inside, "fromSessionId": id});
        client.err_kind("merge_branch", merge, "sessionNotFound");
    }
    let row = all.ok("list_sessions", json!({}))["sessions"]
        .as_array()
        .unwrap()
        .clone();
    let path = row
        .iter()
        .find(|row| row["sessionId"] == json!(outside))
        .unwrap()["path"]
        .clone();
    let error = client.err_kind("open_session", json!({"path": path}), "invalidParams");
    assert_eq!(error.details("field"), "path");
    let error = client.err_kind(
        "search",
        json!({"query": "needle", "mode": "ask"}),
        "invalidParams",
    );
    assert_eq!(error.details("field"), "mode");
}

#[test]
fn new_sessions_are_in_the_directories_and_choose_no_id() {
    let limited = Limited::start();
    let mut all = limited.shared.client("all", json!({}));
    let outside = limited.session(&mut all, "out", "elsewhere");
    let mut client = limited.connect("append");
    let inside = limited.directory("in/below");
    for id in [&*outside, "free"] {
        let params = json!({"sessionId": id, "cwd": inside});
        let error = client.err_kind("create_session", params, "invalidParams");
        assert_eq!(error.details("field"), "sessionId");
    }
    for folder in ["out", "in/link", "in/../out", ""] {
        let params = json!({"cwd": limited.directory(folder)});
        let error = client.err_kind("create_session", params, "invalidParams");
        assert_eq!(error.details("field"), "cwd", "{folder}");
    }
    let made = client.ok("create_session", json!({"cwd": inside}));
    let id = made["session"]["sessionId"].as_str().unwrap();
    client.ok(
        "append_message",
        json!({"sessionId": id, "message": user("hello")}),
    );
    let fork = |more: Json| {
        let mut params = json!({"sessionId": id});
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        params
    };
    let fork_out = fork(json!({"cwd": limited.directory("out")}));
    client.err_kind("fork_session", fork_out, "invalidParams");
    client.err_kind(
        "fork_session",
        fork(json!({"newSessionId": outside})),
        "invalidParams",
    );
    client.err_kind(
        "create_session",
        json!({"cwd": inside, "durability": "loud"}),
        "invalidParams",
    );
    let durable = json!({"sessionId": id, "durability": "os"});
    client.err_kind("open_session", durable, "invalidParams");
}

#[test]
fn a_reader_opens_for_reading_only() {
    let limited = Limited::start();
    let mut all = limited.shared.client("all", json!({}));
    let id = limited.session(&mut all, "in", "hello");
    all.ok("close_session", json!({"sessionId": id}));
    let mut client = limited.connect("read");
    let opened = client.ok("open_session", json!({"sessionId": id, "mode": "write"}));
    assert_eq!(opened["session"]["readOnly"], true);
    assert_eq!(
        client.ok("get_leaf", json!({"sessionId": id}))["leafId"],
        "u1"
    );
}

#[test]
fn changes_of_other_directories_are_not_announced() {
    let limited = Limited::start();
    let mut client = limited.connect("read");
    client.ok("watch_sessions", json!({}));
    let mut other = limited.shared.client("other", json!({}));
    other.ok("watch_sessions", json!({}));
    other.ignore("sessions_changed");
    let outside = limited.session(&mut other, "out", "elsewhere");
    let inside = limited.session(&mut other, "in", "here");
    loop {
        let told = client.notification("sessions_changed");
        assert!(!told.to_string().contains(&outside), "{told}");
        if told["changed"]
            .as_array()
            .unwrap()
            .iter()
            .any(|row| row["sessionId"] == json!(inside))
        {
            break;
        }
    }
    client.ignore("sessions_changed");
}

#[test]
fn secrets_are_replaced_in_answers_errors_and_notifications() {
    let limited = Limited::start();
    let mut all = limited.shared.client("all", json!({}));
    let text = format!("the token is {TOKEN}, of acme-internal");
    let id = limited.session(&mut all, "in", &text);
    let mut client = Daemon::connected(&limited.shared.home, &limited.socket("append"));
    client.ignore("session_opened");
    client.ignore("entries_appended");
    client.ok("watch_sessions", json!({}));
    let named = json!({"sessionId": id});
    let mut seen = vec![client.ok("open_session", named.clone())];
    for method in [
        "get_entries",
        "get_tree",
        "get_context",
        "get_fork_messages",
        "get_path",
    ] {
        seen.push(client.ok(method, named.clone()));
    }
    seen.push(client.ok("get_entry", json!({"sessionId": id, "entryId": "u1"})));
    seen.push(client.ok("list_sessions", json!({})));
    seen.push(client.ok("search", json!({"query": "token"})));
    all.ok("set_session_name", json!({"sessionId": id, "name": text}));
    seen.push(client.notification("session_info_changed"));
    let about = json!({"sessionId": id, "entryId": TOKEN});
    let error = client.err_kind("get_entry", about, "entryNotFound");
    // The id is in the details as the client has sent it.
    seen.push(json!(error.message));
    for shown in &seen {
        let shown = shown.to_string();
        assert!(
            !shown.contains(TOKEN) && !shown.contains("acme-internal"),
            "{shown}"
        );
    }
    assert!(
        seen[1].to_string().contains("[redacted:github-token]"),
        "{}",
        seen[1]
    );
    assert!(all.ok("get_entries", named).to_string().contains(TOKEN));
    client.ignore("sessions_changed");
}

#[test]
fn a_client_can_lower_its_rights_and_not_raise_them() {
    let limited = Limited::start();
    let introduced = |access: Json| json!({"protocolVersion": 1, "access": access});
    let mut all = limited.shared.client("all", json!({}));
    let id = limited.session(&mut all, "in", TOKEN);
    let inside = limited.shared.home.cwd().canonicalize().unwrap().join("in");

    let mut client = limited.connect("read");
    let wanted = json!({"may": "append", "directories": ["/"], "redact": false});
    let result = client.initialize(introduced(wanted));
    assert_eq!(
        result["access"],
        json!({"may": "read", "directories": [inside], "redact": true})
    );
    client.err_kind("append_label", json!({"sessionId": id}), "methodNotFound");
    client.ok("open_session", json!({"sessionId": id}));
    assert!(
        !client
            .ok("get_entries", json!({"sessionId": id}))
            .to_string()
            .contains(TOKEN)
    );

    let mut client = limited.shared.connect();
    client.ignore_bookkeeping();
    assert_eq!(
        client.initialize(introduced(json!({})))["access"],
        json!({"may": "read", "redact": true})
    );
    client.err_kind("delete_session", json!({"sessionId": id}), "methodNotFound");

    let mut client = limited.shared.connect();
    let elsewhere =
        json!({"may": "append", "directories": [limited.directory("out")], "redact": false});
    let granted = client.initialize(introduced(elsewhere));
    assert_eq!(granted["access"]["may"], "append");
    assert_eq!(client.ok("list_sessions", json!({}))["sessions"], json!([]));
    client.err_kind("open_session", json!({"sessionId": id}), "sessionNotFound");

    let mut client = limited.shared.connect();
    for wrong in [
        json!({"may": "all"}),
        json!({"directory": "/"}),
        json!({"directories": []}),
        json!({"directories": ["work"]}),
        json!("read"),
    ] {
        client.err_kind("initialize", introduced(wrong), "invalidParams");
    }
    client.ok("list_sessions", json!({}));
    client.err_kind("initialize", introduced(json!({})), "invalidRequest");
    assert_eq!(
        client
            .initialize(json!({"protocolVersion": 1}))
            .get("access"),
        None
    );
}

#[test]
fn a_limited_client_is_asked_nothing() {
    let limited = Limited::start();
    let mut all = limited.shared.client("all", json!({}));
    let id = limited.session(&mut all, "in", "hello");
    let mut client = limited.connect("append");
    client.initialize(json!({"protocolVersion": 1, "capabilities": {
        "answers": {"session_before_tree": {}}, "ui": ["confirm"]}}));
    client.ok("open_session", json!({"sessionId": id}));
    // Neither request waits for an answer of the limited client.
    all.ok("navigate_tree", json!({"sessionId": id, "targetId": "u1"}));
    all.err_kind(
        "ask_user",
        json!({"kind": "confirm", "title": "Sure?"}),
        "noUser",
    );
}

#[test]
fn the_sockets_are_private_shown_and_without_the_token_of_the_page() {
    let limited = Limited::start();
    let home = &limited.shared.home;
    let mut all = limited.shared.client("all", json!({}));
    let token = all.ok("open_web", json!({}))["token"]
        .as_str()
        .unwrap()
        .to_owned();
    for name in ["read", "append"] {
        let socket = limited.socket(name);
        assert_eq!(
            fs::metadata(&socket).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let beside = fs::read_to_string(socket.with_extension("json")).unwrap();
        assert!(!beside.contains(&token), "{beside}");
    }
    let main = limited.shared.socket.display().to_string();
    let status = home
        .run(&["status", "--json", "--socket", &main], &[], "")
        .clean()
        .text();
    let status: Json = serde_json::from_str(&status).unwrap();
    let access = status["access"].as_array().unwrap();
    let may: Vec<&Json> = access.iter().map(|one| &one["may"]).collect();
    assert_eq!(may, ["append", "read"]);
    let text = home
        .run(&["status", "--socket", &main], &[], "")
        .clean()
        .text();
    assert!(text.contains("read: read in "), "{text}");
}

/// If a daemon without limits listened on the socket of an access, it would do everything for the clients of this
/// socket.
#[test]
fn a_daemon_for_everything_does_not_listen_on_the_socket_of_an_access() {
    let home = Home::new();
    let path = configure(&home).display().to_string();
    let socket = home.files().join("read.sock").display().to_string();
    let address = format!("unix:{socket}");
    for args in [
        vec!["--config", &path, "serve", "--listen", &address],
        vec![
            "--config", &path, "serve", "--listen", "unix", "--socket", &socket,
        ],
        vec!["--config", &path, "connect", "--start", "--socket", &socket],
    ] {
        let output = home.run(&args, &[], "");
        assert_ne!(output.code, Some(0), "{args:?}");
        assert!(output.stderr.contains("[access.read]"), "{}", output.stderr);
    }
}

#[test]
fn wrong_accesses_are_refused_by_name() {
    let home = Home::new();
    for (text, named) in [
        ("[access.a]\nsocket = \"a.sock\"\n", "directories"),
        ("[access.a]\ndirectories = [\"/\"]\n", "socket"),
        (
            "[access.a]\nsocket = \"a.sock\"\ndirectories = []\n",
            "access.a.directories",
        ),
        (
            "[access.a]\nsocket = \"a.sock\"\ndirectories = [\"/\"]\nmay = \"all\"\n",
            "access.a.may",
        ),
        (
            "[access.\"a b\"]\nsocket = \"a.sock\"\ndirectories = [\"/\"]\n",
            "name",
        ),
        (
            "[access.a]\nsocket = \"a.sock\"\ndirectories = [\"/\"]\ndelete = false\n",
            "delete",
        ),
        (
            "[access.a]\nsocket = \"a.sock\"\ndirectories = [\"/\"]\n[access.b]\nsocket = \"a.sock\"\ndirectories = [\"/\"]\n",
            "access.b.socket",
        ),
    ] {
        let path = home
            .file("wrong.toml", text.as_bytes())
            .display()
            .to_string();
        let output = home.run(&["--config", &path, "config"], &[], "");
        assert_ne!(output.code, Some(0), "{text}");
        assert!(output.stderr.contains(named), "{named}: {}", output.stderr);
    }
}
