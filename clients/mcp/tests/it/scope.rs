//! Which sessions a server opens, by their directories.

use crate::arguments::listening_daemon;
use crate::{Folders, Peer, fact, ids};
use serde_json::{Value, json};

#[test]
fn sessions_of_other_directories_need_all() {
    let folders = Folders::new();
    folders.conversation("here", &folders.path("work/below"));
    folders.conversation("away", &folders.path("elsewhere"));
    let mut server = folders.server(&[]);
    assert_eq!(listed(&mut server), ["here"]);
    let text = server.text("search_history", json!({"query": "zebra"}));
    assert!(
        !ids(&text, "entry").is_empty() && !text.contains("away"),
        "{text}"
    );
    let text = server.failure("read_branch", json!({"session": "away", "tip": "a2"}));
    assert!(text.contains("--all"), "{text}");
    // The server has closed the refused session, so this call opens another one.
    server.text("list_branches", json!({"session": "here"}));
    assert_eq!(listed(&mut folders.server(&["--all"])), ["away", "here"]);
}

fn listed(server: &mut Peer) -> Vec<String> {
    let text = server.text("list_sessions", json!({}));
    let mut ids: Vec<_> = ids(&text, "session")
        .into_iter()
        .map(str::to_owned)
        .collect();
    ids.sort();
    ids
}

/// A directory was once compared as text. So `work/../elsewhere`, and a link that leads out of the directory, were in
/// scope. A session was out of scope if its editor had named the directory by a link.
#[test]
fn the_scope_is_where_a_directory_leads() {
    let folders = Folders::new();
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(folders.path(to), folders.path(name)).unwrap();
    };
    link("elsewhere", "work/out");
    link("work", "link");
    folders.conversation("above", &folders.path("work/../elsewhere"));
    folders.conversation("out", &folders.path("work/out"));
    folders.conversation("in", &folders.path("link/below"));
    folders.conversation("own", &folders.path("link"));
    let mut server = folders.server(&[]);
    let instructions = server.hello["instructions"].as_str().unwrap();
    assert!(instructions.contains("about session own"), "{instructions}");
    assert_eq!(listed(&mut server), ["in", "own"]);
    let (mut sessions, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = json!({"query": "zebra", "every": true, "limit": 1, "cursor": cursor});
        let text = server.text("search_history", page);
        assert_eq!(fact(&text, "hits"), Some("4"), "{text}");
        let of = text.lines().filter_map(|line| line.strip_prefix("entry "));
        sessions.extend(of.map(|line| line.split([' ', ',']).nth(3).unwrap().to_owned()));
        cursor = fact(&text, "nextCursor").map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    sessions.sort();
    assert_eq!(sessions, ["in", "in", "own", "own"]);
    for session in ["above", "out"] {
        let text = server.failure("list_branches", json!({"session": session}));
        assert!(text.contains("--all"), "{text}");
    }
    let resources = server.request("resources/list", json!({})).to_string();
    assert!(resources.contains("session/in") && !resources.contains("session/out"));
    let refused = server.request("resources/read", json!({"uri": "treelined://session/out"}));
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("--all")
    );
}

#[test]
fn the_daemon_refuses_what_the_server_never_does() {
    for (args, may) in [([].as_slice(), "read"), (&["--allow-notes"], "append")] {
        let folders = Folders::new();
        folders.conversation("here", &folders.path("work"));
        let requests = folders.path("requests");
        let daemon = listening_daemon(&folders, &requests);
        let mut server = folders.server_with(&daemon, args);
        server.text("list_branches", json!({"session": "here"}));
        let requests = std::fs::read_to_string(requests).unwrap();
        let hello: Value = serde_json::from_str(requests.lines().next().unwrap()).unwrap();
        assert_eq!(
            hello["params"]["access"],
            json!({"may": may, "redact": false})
        );
    }
}
