//! The sessions that are open for an extension.

use super::*;

/// A shared daemon with an extension that writes the lines that it reads to the file.
fn shared(home: &Arc<Home>, settings: &str, body: &str) -> SharedDaemon {
    let path = configured(home, settings, body);
    SharedDaemon::start_in(home, &["--config", &path], &[])
}

/// The number of lines in the file with this method and this session.
fn count(heard: &PathBuf, method: &str, session: &str) -> usize {
    let lines = lines(heard).into_iter();
    let is_meant =
        |line: &String| line.contains(&format!("\"{method}\"")) && line.contains(session);
    lines.filter(is_meant).count()
}

#[test]
fn every_session_that_opens_is_open_for_an_extension_that_wants_all() {
    let home = Home::new();
    let heard = home.files().join("heard");
    let shared = shared(&home, "sessions = \"all\"", &listener(&heard));
    let (mut a, mut b) = (shared.client("a", json!({})), shared.client("b", json!({})));
    let session = a.create();
    b.ok("open_session", json!({"sessionId": session}));
    eventually("it hears the session", || {
        count(&heard, "session_opened", &session) == 1
    });
    a.user("u1", "hello");
    eventually("it hears the entry", || has(&heard, "\"u1\""));
    a.ok("close_session", json!({}));
    b.user("u2", "still open");
    eventually("it hears more", || has(&heard, "\"u2\""));
    assert_eq!(count(&heard, "session_closed", &session), 0);
    b.ok("close_session", json!({}));
    eventually("it hears the end", || {
        count(&heard, "session_closed", &session) == 1
    });
    a.ok("open_session", json!({"sessionId": session}));
    eventually("it is open again", || {
        count(&heard, "session_opened", &session) == 2
    });
    drop(a);
    eventually("its client is gone", || {
        count(&heard, "session_closed", &session) == 2
    });
    let forked = {
        b.ok("open_session", json!({"sessionId": session}));
        b.ignore("session_before_fork");
        b.ignore("session_fork");
        let forked = b.ok("fork_session", json!({"entryId": "u2", "position": "at"}));
        forked["session"]["sessionId"].as_str().unwrap().to_owned()
    };
    eventually("it hears of forks", || {
        count(&heard, "session_opened", &forked) == 1
    });
}

#[test]
fn sessions_that_are_open_before_an_extension_is_ready_are_opened_for_it() {
    let home = Home::new();
    let (heard, go) = (home.files().join("heard"), home.files().join("go"));
    let wait = format!("while [ ! -e {} ]; do sleep 0.02; done", go.display());
    let body = format!("{wait}; {}", listener(&heard));
    let mut d = started(&home, "sessions = \"all\"", &body);
    let session = d.create();
    d.user("u1", "early");
    fs::write(&go, "").unwrap();
    eventually("it hears the session", || {
        count(&heard, "session_opened", &session) == 1
    });
    d.user("u2", "late");
    eventually("it hears the entry", || has(&heard, "\"u2\""));
    assert!(!has(&heard, "\"u1\""));
}

#[test]
fn an_extension_hears_of_no_session_that_it_has_not_opened_unless_it_wants_all() {
    let home = Home::new();
    let heard = home.files().join("heard");
    let body = format!(
        "introduce '{{}}'; echo ready > {0}; cat >> {0}",
        heard.display()
    );
    let mut d = started(&home, "", &body);
    eventually("it is ready", || has(&heard, "ready"));
    d.create();
    d.user("u1", "hello");
    d.stop();
    assert_eq!(lines(&heard), ["ready"]);
}

/// An extension changes sessions that other clients have open.
#[test]
fn an_extension_appends_to_the_sessions_of_others() {
    let home = Home::new();
    let append = r#"introduce '{}'; while read -r line; do case $line in *'"entries_appended"'*u1*)
        printf '%s\n' '{"jsonrpc":"2.0","id":"l","method":"append_label","params":{"targetId":"u1","label":"seen"}}';;
      esac; done"#;
    let mut d = started(&home, "sessions = \"all\"\nmay = \"append\"", append);
    // The extension gets no events from before it is ready.
    eventually("a label", || {
        let session = d.create();
        d.user("u1", "hello");
        let params = json!({"sessionId": session, "entryId": "u1"});
        for _ in 0..20 {
            if d.ok("get_label", params.clone())["label"] == "seen" {
                return true;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        d.ok("close_session", json!({}));
        false
    });
}

#[test]
fn an_extension_that_opens_a_session_itself_keeps_it_open() {
    let home = Home::new();
    let heard = home.files().join("heard");
    let body = format!(
        r#"introduce '{{}}'
        while read -r line; do
          printf '%s\n' "$line" >> {}
          case $line in *'"session_opened"'*)
            printf '%s\n' "$line" | sed 's/.*"sessionId":"\([^"]*\)".*/{{"jsonrpc":"2.0","id":"o","method":"open_session","params":{{"sessionId":"\1"}}}}/';;
          esac
        done"#,
        heard.display()
    );
    let shared = shared(&home, "sessions = \"all\"", &body);
    let mut a = shared.client("a", json!({}));
    let session = a.create();
    a.user("u1", "hello");
    eventually("it has opened it", || has(&heard, "\"id\":\"o\""));
    assert_eq!(count(&heard, "session_opened", &session), 1);
    a.ok("close_session", json!({}));
    a.ok("list_sessions", json!({}));
    assert_eq!(count(&heard, "session_closed", &session), 0);
}

/// The turn of an extension must not keep a session open after the last other client has closed it.
#[test]
fn the_turn_of_an_extension_ends_with_the_last_close() {
    let home = Home::new();
    let heard = home.files().join("heard");
    let body = format!(
        r#"introduce '{{}}'
        while read -r line; do
          printf '%s\n' "$line" >> {}
          case $line in *'"session_opened"'*)
            printf '%s\n' '{{"jsonrpc":"2.0","id":"t","method":"begin_turn","params":{{}}}}';;
          esac
        done"#,
        heard.display()
    );
    let mut d = started(&home, "sessions = \"all\"\nmay = \"append\"", &body);
    let session = d.create();
    eventually("its turn has begun", || has(&heard, "\"id\":\"t\""));
    d.ok("close_session", json!({}));
    eventually("it hears the end", || {
        count(&heard, "session_closed", &session) == 1
    });
}
