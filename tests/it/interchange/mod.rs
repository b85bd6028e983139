//! pi's own SessionManager reads sessions of the daemon, and the daemon reads sessions of pi. Entries, order, labels,
//! name, context and leaf are equal. session-file.md §1, §4 and §5, semantics.md §1.
//!
//! `tests/interchange/install` installs pi. Without pi these tests are skipped, or fail if TREELINED_INTERCHANGE is
//! `required`.

mod alternating;
mod born;
mod exports;
mod forks;
mod lists;
mod migration;
mod pi;
mod shed;
mod written;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::harness::*;
use pi::{Manager, Pi, View};

/// One session file with pi, a daemon that keeps it open, and a daemon that reopens it for each comparison.
struct Both {
    pi: Pi,
    home: Arc<Home>,
    live: Daemon,
    reader: Daemon,
    session: String,
    path: PathBuf,
}

impl Both {
    /// Creates the session with the daemon. `None` if pi is not installed.
    fn created_here() -> Option<Both> {
        let pi = Pi::start()?;
        let home = Home::new();
        let mut live = daemon(&home);
        let made = live.ok("create_session", json!({"sessionId": "both"}));
        let path = PathBuf::from(made["session"]["path"].as_str().unwrap());
        Some(Both {
            pi,
            reader: daemon(&home),
            home,
            live,
            session: "both".to_owned(),
            path,
        })
    }

    /// Creates the session with pi, which writes the file with this first message.
    fn created_there() -> Option<(Both, Manager)> {
        let mut pi = Pi::start()?;
        let home = Home::new();
        let made = pi.make("create", json!([home.cwd(), home.sessions()]));
        pi.ok(&made, "appendMessage", json!([user("first")]));
        let mut live = daemon(&home);
        let opened = live.open(&made.file);
        assert_eq!(opened["diagnostics"], json!([]));
        assert_eq!(opened["session"]["sessionId"], made.session);
        let both = Both {
            pi,
            reader: daemon(&home),
            home,
            live,
            session: made.session.clone(),
            path: made.file.clone(),
        };
        Some((both, made))
    }

    #[track_caller]
    fn call(&mut self, method: &str, mut params: Json) -> Result<Json, RpcError> {
        params["sessionId"] = json!(self.session);
        self.live.call(method, params)
    }

    #[track_caller]
    fn ok(&mut self, method: &str, params: Json) -> Json {
        self.call(method, params.clone())
            .unwrap_or_else(|e| panic!("{method} {params}: {e:?}"))
    }

    /// Appends one entry with `append_entries` and returns its id.
    #[track_caller]
    fn append(&mut self, entry: Json) -> String {
        let made = self.ok("append_entries", json!({"entries": [entry]}));
        made["leafId"].as_str().unwrap().to_owned()
    }

    /// Checks that pi and a daemon that reopens the file read the same session, and that the open daemon has the same
    /// entries.
    #[track_caller]
    fn agree(&mut self, after: &str) -> View {
        let there = self.pi.view(&self.path);
        let (here, diagnostics) = reopened(&mut self.reader, &self.path);
        // pi writes no moves into the file, so after a move its bookkeeping is beside the newest step.
        for found in diagnostics.as_array().unwrap() {
            assert_eq!(found["kind"], "leafBesideNewest", "{after}");
        }
        there.assert_same(&here, after);
        let live = View::of_daemon(&mut self.live, &self.session);
        there.assert_same_entries(&live, &format!("{after}, in the open daemon"));
        live
    }

    /// Like [`Both::agree`]; also checks that the open daemon has the same leaf.
    #[track_caller]
    fn agree_on_the_leaf(&mut self, after: &str) {
        let live = self.agree(after);
        let there = self.pi.view(&self.path);
        there.assert_same(&live, &format!("{after}, in the open daemon"));
    }
}

/// The session as a daemon reads it that has just opened the file. There must be no diagnostics.
#[track_caller]
fn fresh(d: &mut Daemon, path: &Path) -> View {
    let (view, diagnostics) = reopened(d, path);
    assert_eq!(diagnostics, json!([]), "{}", path.display());
    view
}

/// Like [`fresh`], and also returns the diagnostics.
#[track_caller]
fn reopened(d: &mut Daemon, path: &Path) -> (View, Json) {
    let mut opened = d.ok("open_session", json!({"path": path, "mode": "read"}));
    let session = opened["session"]["sessionId"].as_str().unwrap().to_owned();
    let view = View::of_daemon(d, &session);
    assert_eq!(opened["session"]["leafId"], view.leaf);
    let name = opened["session"].get("name").cloned();
    assert_eq!(name.unwrap_or_default(), view.name);
    d.ok("close_session", json!({"sessionId": session}));
    (view, opened["diagnostics"].take())
}

fn daemon(home: &Arc<Home>) -> Daemon {
    let mut d = Daemon::start_in(home, &["--summarizer", "outline"], &[]);
    d.ignore_bookkeeping();
    for name in ["session_before_fork", "session_fork"] {
        d.ignore(name);
    }
    d
}

fn system(text: &str) -> Json {
    json!({
        "role": "system", "content": text, "sections": {"preamble": "You help", "gone": null},
        "toolsAdded": [{"name": "read", "description": "reads", "parameters": {}}], "timestamp": 5
    })
}

fn bash(command: &str, exit: u8, excluded: bool) -> Json {
    let mut message = json!({
        "role": "bashExecution", "command": command, "output": "a\nb", "exitCode": exit, "cancelled": false,
        "truncated": exit > 0, "fullOutputPath": "/tmp/full", "timestamp": 6
    });
    if excluded {
        message["excludeFromContext"] = json!(true);
    }
    message
}

fn usage() -> Json {
    assistant("")["usage"].clone()
}
