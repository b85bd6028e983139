//! The rights of the page, and of tokens of accesses. protocol.md §10.7.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::access::{check_methods, ids, table};
use crate::harness::*;

/// Once, a page that a script of another program had taken over could delete every session, and import files.
#[test]
fn the_page_has_the_rights_that_it_needs() {
    let rights = ["own", "read", "raw", "append", "answer", "person"];
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    let token = d.ok("open_web", json!({}))["token"].clone();
    let port = port(&mut d);
    let mut page = Daemon::over_web_socket(&home, port, token.as_str().unwrap());
    check_methods(&mut page, &rights, "the page");
    // The page calls no other methods, and some of each right.
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/web/src");
    let mut called = BTreeSet::new();
    let mut folders = vec![PathBuf::from(source)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            for row in table() {
                if text.contains(&format!("'{}'", row["name"].as_str().unwrap())) {
                    called.insert(row["right"].as_str().unwrap().to_owned());
                }
            }
        }
    }
    assert_eq!(called, rights.map(str::to_owned).into());
}

#[test]
fn status_shows_who_may_do_what() {
    let home = Home::new();
    let text = "[[extensions]]\nname = \"guard\"\nargv = [\"/bin/cat\"]\n";
    let path = home.file("config.toml", text.as_bytes());
    let path = path.display().to_string();
    let shared = SharedDaemon::start_in(&home, &["--config", &path, "--listen", "ws"], &[]);
    drop(shared.client("first", json!({})));
    let main = shared.socket.display().to_string();
    let status = home.run(&["status", "--socket", &main], &[], "").text();
    for line in [
        "page         may own, read, raw, append, answer, person\n",
        "extension    guard: append\n",
    ] {
        assert!(status.contains(line), "{status}");
    }
}

/// A daemon with a page, and the access `read` by a token alone. Also returns the file of the token.
fn with_token(before: impl FnOnce(&Path)) -> (SharedDaemon, PathBuf) {
    let home = Home::new();
    fs::create_dir(home.cwd().join("in")).unwrap();
    let inside = home.cwd().join("in");
    let text = format!("[access.read]\ntoken_file = \"read.token\"\ndirectories = [{inside:?}]\n");
    let path = home.file("config.toml", text.as_bytes());
    let file = path.with_file_name("read.token");
    before(&file);
    let path = path.display().to_string();
    let shared = SharedDaemon::start_in(&home, &["--config", &path], &[]);
    (shared, file)
}

fn port(all: &mut Daemon) -> u16 {
    let web = all.ok("open_web", json!({}));
    let address = web["webSocket"].as_str().unwrap();
    let port = address.split([':', '/']).find_map(|part| part.parse().ok());
    port.unwrap()
}

/// A program behind the WebSocket once had to get the token of the page, which reads and changes every session.
#[test]
fn a_token_gives_its_access_alone() {
    let (shared, file) = with_token(|_| ());
    let mut all = shared.client("all", json!({}));
    let port = port(&mut all);
    let is_private = fs::metadata(&file).unwrap().permissions().mode() & 0o777 == 0o600;
    assert!(is_private);
    let token = fs::read_to_string(&file).unwrap();
    let mut client = Daemon::over_web_socket(&shared.home, port, token.trim());
    check_methods(&mut client, &["own", "read"], "the token");
    let made = |all: &mut Daemon, folder: &str| {
        let cwd = shared.home.cwd().join(folder);
        let made = all.ok("create_session", json!({"cwd": cwd, "write": "now"}));
        made["session"]["sessionId"].as_str().unwrap().to_owned()
    };
    let (inside, outside) = (made(&mut all, "in"), made(&mut all, "."));
    let listed = client.ok("list_sessions", json!({}));
    assert_eq!(ids(&listed["sessions"]), BTreeSet::from([inside]));
    client.err_kind(
        "open_session",
        json!({"sessionId": outside}),
        "sessionNotFound",
    );
    let main = shared.socket.display().to_string();
    let status = shared
        .home
        .run(&["status", "--socket", &main], &[], "")
        .text();
    assert!(status.contains(", with the token in "), "{status}");
    assert!(!status.contains(token.trim()), "{status}");
}

#[test]
fn a_token_file_that_others_can_read_is_not_used() {
    let token = "0".repeat(64);
    let (mut shared, file) = with_token(|file| {
        fs::write(file, &token).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    });
    shared.may_warn = true;
    let port = port(&mut shared.client("all", json!({})));
    let mut refused = WebSocket::with_token(port, &token);
    assert_eq!(refused.close_code(), Some(1008));
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        token,
        "it stays as it is"
    );
}
