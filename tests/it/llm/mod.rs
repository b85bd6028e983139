//! The `llm` summarizer against servers that these tests start on this machine: requests, accepted answers,
//! time limits, retries, aborts, and secret keys. semantics.md §3.3.

mod failures;
mod requests;
mod server;
mod time;

use std::fs;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use self::server::*;
use crate::config::file;
use crate::harness::*;

const KEY: &str = "sk-canary-0123456789";

const TEXT: &str = "## Goal\nwhät was ünderstood\n\n## Next Steps\n1. end";

/// A configuration with a provider `prov` at `port`, whose models the conversation uses. Its timeouts are longer than
/// any request takes on a busy machine.
fn configured(api: &str, port: u16, more: &str) -> String {
    timed(api, port, (60_000, 60_000), more)
}

/// Like `configured`, with these idle and total timeouts in milliseconds.
fn timed(api: &str, port: u16, (idle, total): (u64, u64), more: &str) -> String {
    let base = match api {
        "openai" => "/v1",
        _ => "",
    };
    format!(
        "[summarizer]\nuse = \"llm\"\n[summarizer.llm]\nidle_timeout_ms = {idle}\ntotal_timeout_ms = {total}\n{more}\n\
         [summarizer.llm.providers.prov]\napi = \"{api}\"\nbase_url = \"http://127.0.0.1:{port}{base}/\"\nkey_env = \"TEST_KEY\"\n"
    )
}

const ENVIRONMENT: [(&str, &str); 2] = [("TEST_KEY", KEY), ("NO_PROXY", "127.0.0.1")];

fn asking(config: &str) -> Daemon {
    asking_in(config, &ENVIRONMENT)
}

fn asking_in(config: &str, environment: &[(&str, &str)]) -> Daemon {
    let home = Home::new();
    let path = file(&home, config);
    let mut d = Daemon::start_in(&home, &["--config", &path], environment);
    d.ignore_bookkeeping();
    d.ignore("summary_delta");
    d.ignore("progress");
    d.init(json!({"summaryDeltas": {}, "progress": {}}));
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    d
}

fn go(d: &mut Daemon) -> Result<Json, RpcError> {
    d.call(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    )
}

#[track_caller]
fn fails(config: &str, cause: &str) -> RpcError {
    let mut d = asking(config);
    let before = fs::read(d.home.only_file()).unwrap();
    let error = go(&mut d).unwrap_err();
    assert_eq!(error.kind, "summarizerFailed", "{error:?}");
    assert_eq!(error.details("cause"), cause, "{error:?}");
    assert_eq!(d.leaf(), "a2");
    assert_eq!(fs::read(d.home.only_file()).unwrap(), before);
    error
}

#[track_caller]
fn succeeds(d: &mut Daemon) -> Json {
    let result = go(d).unwrap();
    let summary = result["summaryEntry"]["summary"].as_str().unwrap();
    assert!(summary.ends_with(&format!("\n\n{TEXT}")), "{summary}");
    result["summaryEntry"].clone()
}

/// A script that creates a session, appends, navigates with a summary, and compacts.
fn scripted() -> String {
    let append = |id: u64, entry: &str, message: Json| {
        let params = json!({"message": message, "entryId": entry});
        request(&json!(id), "append_message", &params)
    };
    let lines = [
        request(&json!(1), "create_session", &json!({})),
        append(2, "u1", user("one")),
        append(3, "a1", assistant("two")),
        append(4, "u2", user("three")),
        request(
            &json!(5),
            "navigate_tree",
            &json!({"targetId": "a1", "summarize": true}),
        ),
        request(&json!(6), "compact", &json!({"keepRecentTokens": 1})),
    ];
    lines.join("\n")
}
