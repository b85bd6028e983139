//! The `llm` summarizer against servers of our own on this machine: what is sent, what counts as an
//! answer, time limits, retries, aborts, and that keys stay where they belong. semantics.md §3.3.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::config::file;
use crate::harness::*;

const KEY: &str = "sk-canary-0123456789";
const TEXT: &str = "## Goal\nwhät was ünderstood\n\n## Next Steps\n1. end";

/// A request as it arrived.
struct Request {
    /// `POST /path HTTP/1.1` and the header lines.
    head: String,
    body: Json,
}

/// A server that hands each connection, its request read, to `serve`.
struct Server {
    port: u16,
    requests: Receiver<Request>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    fn start(serve: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, requests) = channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let (serve, count) = (Arc::new(serve), connections.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (serve, tell, count) = (serve.clone(), tell.clone(), count.clone());
                thread::spawn(move || {
                    if let Some(request) = read_request(&mut stream) {
                        let number = count.fetch_add(1, Ordering::SeqCst);
                        let _ = tell.send(request);
                        serve(number, &mut stream);
                    }
                });
            }
        });
        Server {
            port,
            requests,
            connections,
        }
    }

    /// The same bytes for everyone, then the end.
    fn says(bytes: Vec<u8>) -> Server {
        Server::start(move |_, stream| {
            let _ = stream.write_all(&bytes);
        })
    }

    fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap();
    Some(Request { head, body })
}

/// A stream with its length given, so that a cut shows; or without, so that it does not.
fn stream_response(body: &str, with_length: bool) -> Vec<u8> {
    let length = match with_length {
        true => format!("content-length: {}\r\n", body.len()),
        false => "connection: close\r\n".to_owned(),
    };
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{length}\r\n{body}").into_bytes()
}

fn status_response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(7)
        .map(|piece| piece.iter().collect())
        .collect()
}

fn anthropic_events(text: &str, stop: &str) -> String {
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": {
            "input_tokens": 10, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4, "output_tokens": 1,
        }}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "something_new"}),
    ];
    for piece in pieces(text) {
        let delta = json!({"type": "text_delta", "text": piece});
        events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    }
    events.push(json!({"type": "content_block_stop", "index": 0}));
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}}));
    events.push(json!({"type": "message_stop"}));
    let event = |event: &Json| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    };
    events.iter().map(event).collect()
}

fn openai_events(text: &str, finish: &str) -> String {
    let mut chunks = vec![json!({"choices": [{"delta": {"role": "assistant", "content": ""}}]})];
    for piece in pieces(text) {
        chunks.push(json!({"choices": [{"delta": {"content": piece}, "finish_reason": null}]}));
    }
    chunks.push(json!({"choices": [{"delta": {}, "finish_reason": finish}]}));
    chunks.push(json!({"choices": [], "usage": {
        "prompt_tokens": 17, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 7},
    }}));
    let mut text: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    text.push_str("data: [DONE]\n\n");
    text
}

/// The configuration for a provider `prov` at `port`, whose models the conversation uses.
/// With times that no busy machine needs.
fn configured(api: &str, port: u16, more: &str) -> String {
    timed(api, port, (60_000, 60_000), more)
}

/// With these idle and total timeouts, in milliseconds.
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

// --- well ---

#[test]
fn anthropic_is_asked_as_its_api_says_and_the_text_comes_piece_by_piece() {
    let server = Server::says(stream_response(&anthropic_events(TEXT, "end_turn"), true));
    let mut d = asking(&configured("anthropic", server.port, ""));
    let entry = succeeds(&mut d);
    assert_eq!(entry["usage"]["input"], 10);
    assert_eq!(entry["usage"]["output"], 20);
    assert_eq!(entry["usage"]["cacheRead"], 3);
    assert_eq!(entry["usage"]["cacheWrite"], 4);
    assert_eq!(entry["usage"]["totalTokens"], 37);
    assert!(entry.get("fromHook").is_none());
    let mut told = String::new();
    while told.len() < entry["summary"].as_str().unwrap().len() {
        told.push_str(d.notification("summary_delta")["delta"].as_str().unwrap());
    }
    assert_eq!(told, entry["summary"].as_str().unwrap());

    let request = server.requests.recv().unwrap();
    assert!(
        request.head.starts_with("POST /v1/messages HTTP/1.1\r\n"),
        "{}",
        request.head
    );
    assert!(
        request.head.contains(&format!("x-api-key: {KEY}\r\n")),
        "{}",
        request.head
    );
    assert!(request.head.contains("anthropic-version: 2023-06-01\r\n"));
    assert_eq!(request.body["model"], "mod");
    assert_eq!(request.body["stream"], true);
    assert_eq!(request.body["max_tokens"], 8192);
    let prompt = request.body["messages"][0]["content"].as_str().unwrap();
    assert!(
        prompt.contains("[User]: text of u2\n\n[Assistant]: text of a2"),
        "{prompt}"
    );
    assert!(!prompt.contains("text of u1"), "only the branch: {prompt}");
}

#[test]
fn openai_is_asked_as_its_api_says() {
    let server = Server::says(stream_response(&openai_events(TEXT, "stop"), false));
    let mut d = asking(&configured("openai", server.port, ""));
    let usage = succeeds(&mut d)["usage"].clone();
    assert_eq!(
        (&usage["input"], &usage["cacheRead"]),
        (&json!(10), &json!(7))
    );
    assert_eq!(usage["output"], 20);
    let request = server.requests.recv().unwrap();
    assert!(
        request
            .head
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
        "{}",
        request.head
    );
    assert!(
        request
            .head
            .contains(&format!("authorization: Bearer {KEY}\r\n"))
    );
    assert_eq!(request.body["messages"][0]["role"], "system");
    assert_eq!(request.body["stream_options"]["include_usage"], true);
}

#[test]
fn a_server_of_ones_own_needs_no_key() {
    let server = Server::says(stream_response(&openai_events(TEXT, "stop"), true));
    let config = configured("openai", server.port, "").replace("TEST_KEY", "");
    succeeds(&mut asking(&config));
    let request = server.requests.recv().unwrap();
    assert!(
        !request.head.to_lowercase().contains("authorization"),
        "{}",
        request.head
    );
}

#[test]
fn a_compaction_records_what_both_summaries_took_and_shows_progress() {
    let server = Server::says(stream_response(&anthropic_events(TEXT, "end_turn"), true));
    let mut d = asking(&configured("anthropic", server.port, ""));
    d.ignore("session_before_compact");
    let params = json!({"keepRecentTokens": 1, "customInstructions": "mind this"});
    let id = d.send("compact", params);
    let entry = d.response(&id).unwrap()["compactionEntry"].clone();
    d.notification("session_compact");
    assert_eq!(entry["usage"]["input"], 20);
    assert_eq!(entry["usage"]["output"], 40);
    assert_eq!(entry["summary"].as_str().unwrap().matches(TEXT).count(), 2);
    // Over both summaries it only grows.
    let mut before = 0.0;
    for progress in d.heard("progress") {
        assert_eq!(progress["token"], id);
        let now = progress["progress"].as_f64().unwrap();
        assert!(now > before, "{now} after {before}");
        before = now;
    }
    assert!(before > 0.0);
    for _ in 0..2 {
        let request = server.requests.recv().unwrap();
        let prompt = request.body["messages"][0]["content"].as_str().unwrap();
        assert!(prompt.ends_with("Additional focus: mind this"), "{prompt}");
    }
}

/// A proxy was asked to reach a server on this machine, which it cannot, and was told what was meant for it.
#[test]
fn a_server_on_this_machine_is_asked_without_a_proxy_and_others_through_it() {
    let proxy = Server::says(stream_response(&openai_events(TEXT, "stop"), true));
    let server = Server::says(stream_response(&openai_events(TEXT, "stop"), true));
    let address = format!("http://127.0.0.1:{}", proxy.port);
    let environment = [
        ("TEST_KEY", KEY),
        ("NO_PROXY", ""),
        ("no_proxy", ""),
        ("HTTP_PROXY", &address),
        ("http_proxy", &address),
        ("ALL_PROXY", &address),
    ];
    let config = configured("openai", server.port, "");
    for host in ["127.0.0.1", "localhost"] {
        succeeds(&mut asking_in(
            &config.replace("127.0.0.1", host),
            &environment,
        ));
    }
    assert_eq!((server.count(), proxy.count()), (2, 0));

    let elsewhere = config.replace("127.0.0.1", "model.invalid");
    succeeds(&mut asking_in(&elsewhere, &environment));
    assert_eq!((server.count(), proxy.count()), (2, 1));
    let head = proxy.requests.recv().unwrap().head;
    assert!(head.starts_with("POST http://model.invalid:"), "{head}");
}

/// The path of the API was put behind the query.
#[test]
fn the_query_of_a_base_url_goes_along() {
    let server = Server::says(stream_response(&openai_events(TEXT, "stop"), true));
    let config =
        configured("openai", server.port, "").replace("/v1/\"", "/v1/?api-version=1&x=%2F\"");
    succeeds(&mut asking(&config));
    let head = server.requests.recv().unwrap().head;
    let expect = "POST /v1/chat/completions?api-version=1&x=%2F HTTP/1.1\r\n";
    assert!(head.starts_with(expect), "{head}");
}

/// A `Retry-After` too large to be read was taken for none: the server was asked again half a second later.
#[test]
fn a_pause_too_long_to_be_read_is_not_cut_short() {
    for after in ["99999999999999999999", "Fri, 31 Dec 99999 23:59:59 GMT"] {
        let headers = format!("retry-after: {after}\r\n");
        let server = Server::says(status_response("429 Slow Down", &headers, ""));
        let error = fails(&configured("openai", server.port, ""), "rateLimited");
        assert!(error.data.get("retryAfterMs").is_none(), "{error:?}");
        assert_eq!(server.count(), 1, "{after}");
    }
}

// --- which model ---

#[test]
fn the_configured_model_is_asked_where_the_conversations_own_cannot_be_or_if_preferred() {
    let server = Server::says(stream_response(&openai_events(TEXT, "stop"), true));
    let other = |more: &str| {
        configured("openai", server.port, more)
            .replace("providers.prov", "providers.other")
            .replace(
                "[summarizer.llm]\n",
                "[summarizer.llm]\nprovider = \"other\"\nmodel = \"cheap\"\n",
            )
    };
    succeeds(&mut asking(&other("")));
    assert_eq!(server.requests.recv().unwrap().body["model"], "cheap");
    let both = other("prefer_configured = true")
        + "[summarizer.llm.providers.prov]\napi = \"openai\"\nbase_url = \"http://127.0.0.1:9\"\nkey_env = \"\"\n";
    succeeds(&mut asking(&both));
    assert_eq!(server.requests.recv().unwrap().body["model"], "cheap");
}

#[test]
fn without_a_model_that_can_be_asked_it_is_unavailable() {
    for (from, to, why) in [
        ("TEST_KEY", "OTHER_KEY", "OTHER_KEY is not set"),
        (
            "providers.prov",
            "providers.other",
            "\"prov\" is not configured",
        ),
    ] {
        let mut d = asking(&configured("openai", 9, "").replace(from, to));
        let error = go(&mut d).unwrap_err();
        assert_eq!(error.kind, "summarizerUnavailable");
        assert!(error.message.contains(why), "{}", error.message);
    }
}

#[test]
fn the_conversation_is_cut_to_the_models_window() {
    let server = Server::says(stream_response(&openai_events(TEXT, "stop"), true));
    let config =
        configured("openai", server.port, "") + "[summarizer.llm.context_windows]\nmod = 20000\n";
    let mut d = asking(&config);
    for n in 0..10 {
        d.user(&format!("long{n}"), &format!("{n}:{}", "x".repeat(4000)));
    }
    succeeds(&mut d);
    let request = server.requests.recv().unwrap();
    let prompt = request.body["messages"][1]["content"].as_str().unwrap();
    // 20,000 less 16,384 are 3,616: three messages of 1,001.
    assert!(prompt.contains("7:x") && !prompt.contains("6:x"));
}

// --- no summary ---

#[test]
fn what_is_no_summary_is_a_failure() {
    let anthropic = |events: String| ("anthropic", stream_response(&events, true));
    let openai = |events: String| ("openai", stream_response(&events, true));
    let tool =
        json!({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "x"}});
    let call = json!({"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]});
    let refusal = json!({"choices": [{"delta": {"refusal": "no"}}]});
    let error = json!({"type": "error", "error": {"type": "api_error", "message": KEY}});
    for ((api, response), cause) in [
        (anthropic(anthropic_events(TEXT, "max_tokens")), "truncated"),
        (anthropic(anthropic_events(TEXT, "refusal")), "refused"),
        (anthropic(anthropic_events(TEXT, "tool_use")), "toolCall"),
        (anthropic(anthropic_events("", "end_turn")), "empty"),
        (anthropic(anthropic_events(" \n", "end_turn")), "empty"),
        (anthropic(format!("data: {tool}\n\n")), "toolCall"),
        (anthropic(format!("data: {error}\n\n")), "provider"),
        (anthropic("data: nonsense\n\n".into()), "badResponse"),
        (openai(openai_events(TEXT, "length")), "truncated"),
        (openai(openai_events(TEXT, "content_filter")), "refused"),
        (openai(openai_events(TEXT, "tool_calls")), "toolCall"),
        (openai(openai_events("", "stop")), "empty"),
        (openai(format!("data: {call}\n\n")), "toolCall"),
        (openai(format!("data: {refusal}\n\n")), "refused"),
        (
            openai("data: {\"error\":{\"type\":\"x\"}}\n\n".into()),
            "provider",
        ),
        (openai("data: [DONE]\n\n".into()), "cut"),
        (openai("<html>garbage</html>".into()), "cut"),
        (
            (
                "openai",
                status_response(
                    "200 OK",
                    "content-type: text/html\r\n",
                    "<html>garbage</html>",
                ),
            ),
            "badResponse",
        ),
        (("openai", stream_response("", false)), "cut"),
        (("openai", b"garbage\r\n\r\n".to_vec()), "connect"),
        (("openai", Vec::new()), "connect"),
        (
            (
                "openai",
                status_response(
                    "404 Not Found",
                    "",
                    "{\"error\":{\"type\":\"not_found_error\"}}",
                ),
            ),
            "http",
        ),
        (
            ("openai", status_response("401 Unauthorized", "", KEY)),
            "unauthorized",
        ),
        (
            (
                "openai",
                status_response("307 Moved", "location: http://127.0.0.1:9/\r\n", ""),
            ),
            "http",
        ),
    ] {
        let server = Server::says(response);
        let error = fails(&configured(api, server.port, "retries = 0"), cause);
        assert!(!format!("{error:?}").contains(KEY), "{error:?}");
        assert_eq!(server.count(), 1);
    }
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    fails(
        &configured("openai", nobody.port(), "retries = 0"),
        "connect",
    );
}

#[test]
fn an_endless_answer_is_cut_off_whatever_it_is() {
    for (head, block) in [
        (stream_response("", false), "x".repeat(1 << 16)),
        (
            stream_response("", false),
            format!("data: {{\"x\":\"{}\"}}\n\n", "x".repeat(1 << 16)),
        ),
        (
            b"HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n".to_vec(),
            "x".repeat(1 << 16),
        ),
    ] {
        let sent = Arc::new(AtomicUsize::new(0));
        let counted = sent.clone();
        let is_failure = head.starts_with(b"HTTP/1.1 500");
        let server = Server::start(move |_, stream| {
            let _ = stream.write_all(&head);
            while counted.load(Ordering::SeqCst) < 1 << 30
                && stream.write_all(block.as_bytes()).is_ok()
            {
                counted.fetch_add(block.len(), Ordering::SeqCst);
            }
        });
        let config = configured("openai", server.port, "retries = 0");
        fails(&config, if is_failure { "http" } else { "tooLong" });
        let sent = sent.load(Ordering::SeqCst);
        assert!(sent < 64 << 20, "{sent} bytes were taken");
    }
}

#[test]
fn a_stream_cut_at_any_byte_is_a_failure_or_the_whole_text() {
    let stride = if is_long_run() { 1 } else { 3 };
    for (api, events) in [
        ("anthropic", anthropic_events(TEXT, "end_turn")),
        ("openai", openai_events(TEXT, "stop")),
    ] {
        for with_length in [true, false] {
            let response = stream_response(&events, with_length);
            let length = response.len();
            // The last cut is none.
            let server = Server::start(move |number, stream| {
                let _ = stream.write_all(&response[..(number * stride).min(length)]);
            });
            let mut d = asking(&configured(api, server.port, "retries = 0"));
            let (mut failures, mut whole) = (0, 0);
            for number in 0..=length.div_ceil(stride) {
                match go(&mut d) {
                    Ok(result) => {
                        let summary = result["summaryEntry"]["summary"].as_str().unwrap();
                        assert!(
                            summary.ends_with(&format!("\n\n{TEXT}")),
                            "cut at {}: {summary}",
                            number * stride
                        );
                        whole += 1;
                        d.set_leaf(Some("a2"));
                    }
                    Err(error) => {
                        assert_eq!(error.kind, "summarizerFailed");
                        let cause = error.details("cause").as_str().unwrap();
                        assert!(
                            ["cut", "connect"].contains(&cause),
                            "cut at {}: {error:?}",
                            number * stride
                        );
                        failures += 1;
                    }
                }
                assert_eq!(d.leaf(), "a2");
            }
            assert!(
                whole >= 1 && failures > length / (stride + 1),
                "{api}: {whole} whole, {failures} failures"
            );
        }
    }
}

// --- time ---

#[test]
fn silence_is_waited_for_only_so_long() {
    for said in [
        Vec::new(),
        stream_response("", false),
        stream_response(
            "data: {\"choices\":[{\"delta\":{\"content\":\"begun\"}}]}\n\n",
            false,
        ),
    ] {
        let server = Server::start(move |_, stream| {
            let _ = stream.write_all(&said);
            let mut byte = [0];
            let _until_it_is_given_up = stream.read(&mut byte);
        });
        let config = timed("openai", server.port, (400, 60_000), "retries = 0");
        let error = fails(&config, "timeout");
        assert!(error.message.contains("idle"), "{}", error.message);
    }
}

#[test]
fn an_answer_that_never_ends_is_over_at_the_total_timeout() {
    let server = Server::start(|_, stream| {
        let _ = stream.write_all(&stream_response("", false));
        let chunk = b"data: {\"choices\":[{\"delta\":{\"content\":\"more \"}}]}\n\n";
        while stream.write_all(chunk).is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    let config = timed("openai", server.port, (60_000, 700), "");
    let error = fails(&config, "timeout");
    assert!(error.message.contains("total"), "{}", error.message);
}

#[test]
fn passing_failures_are_tried_again_and_not_for_ever() {
    let good = stream_response(&openai_events(TEXT, "stop"), true);
    let server = Server::start(move |number, stream| {
        let response = match number {
            0 => status_response("429 Too Many Requests", "retry-after: 1\r\n", ""),
            1 => status_response("529 Overloaded", "retry-after: 0\r\n", "garbage"),
            _ => good.clone(),
        };
        let _ = stream.write_all(&response);
    });
    let before = Instant::now();
    succeeds(&mut asking(&configured("openai", server.port, "")));
    assert!(
        before.elapsed() >= Duration::from_secs(1),
        "Retry-After is kept"
    );
    assert_eq!(server.count(), 3);

    let server = Server::says(status_response("500 Oops", "retry-after: 0\r\n", ""));
    let error = fails(&configured("openai", server.port, "retries = 2"), "http");
    assert_eq!(error.details("status"), 500);
    assert_eq!(server.count(), 3, "two after the first");

    let server = Server::says(status_response(
        "429 Slow Down",
        "retry-after: 3600\r\n",
        "",
    ));
    let error = fails(&configured("openai", server.port, ""), "rateLimited");
    assert_eq!(error.data["retryAfterMs"], 3_600_000, "{error:?}");
    assert_eq!(server.count(), 1, "that long nobody waits");

    let server = Server::says(status_response("400 Bad Request", "", ""));
    fails(&configured("openai", server.port, ""), "http");
    assert_eq!(server.count(), 1, "asking again would not help");
}

#[test]
fn an_abort_ends_it_within_100_ms_and_closes_the_connection() {
    for said in [
        Vec::new(),
        stream_response(
            "data: {\"choices\":[{\"delta\":{\"content\":\"begun\"}}]}\n\n",
            false,
        ),
    ] {
        takes_at_most(Duration::from_millis(100), || abort_takes(said.clone()));
    }
}

/// Aborts while a server that has said this is waited for: until it is answered and the connection closed.
fn abort_takes(said: Vec<u8>) -> Duration {
    let (tell, closed) = channel();
    let has_text = !said.is_empty();
    let server = Server::start(move |_, stream| {
        let _ = stream.write_all(&said);
        let mut byte = [0];
        let _ended = stream.read(&mut byte);
        let _ = tell.send(Instant::now());
    });
    let mut d = asking(&configured("openai", server.port, ""));
    let id = d.send(
        "navigate_tree",
        json!({"targetId": "a1", "summarize": true}),
    );
    server
        .requests
        .recv_timeout(Duration::from_secs(60))
        .unwrap();
    if has_text {
        d.notification("summary_delta");
    }
    let before = Instant::now();
    assert_eq!(d.ok("abort_navigation", json!({}))["aborted"], true);
    let result = d.response(&id).unwrap();
    let answered = before.elapsed();
    assert_eq!(
        (&result["cancelled"], &result["reason"]),
        (&json!(true), &json!("aborted"))
    );
    let closed = closed.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(d.leaf(), "a2");
    answered.max(closed.saturating_duration_since(before))
}

#[test]
fn a_summary_that_runs_when_stdin_ends_is_waited_for() {
    let server = Server::start(|_, stream| {
        thread::sleep(Duration::from_millis(250));
        let _ = stream.write_all(&stream_response(&openai_events(TEXT, "stop"), true));
    });
    let home = Home::new();
    let output = home.run(
        &[
            "--config",
            &file(&home, &configured("openai", server.port, "")),
        ],
        &ENVIRONMENT,
        scripted(),
    );
    let answer = output.clean().responses()["5"].clone();
    let summary = answer["result"]["summaryEntry"]["summary"]
        .as_str()
        .unwrap();
    assert!(summary.ends_with(TEXT), "{summary}");
}

/// Creates, appends, navigates with a summary, and compacts.
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

// --- keys ---

#[test]
fn a_key_appears_nowhere_whatever_a_server_says() {
    let echo = json!({"type": "error", "error": {"type": KEY, "message": KEY}}).to_string();
    let error = json!({"error": {"type": KEY, "code": KEY, "message": KEY}}).to_string();
    let leaked = format!("it is {KEY}, as was said");
    for (api, response) in [
        (
            "anthropic",
            stream_response(&anthropic_events(TEXT, "end_turn"), true),
        ),
        (
            "anthropic",
            stream_response(&anthropic_events(&leaked, "end_turn"), true),
        ),
        (
            "openai",
            stream_response(&openai_events(&leaked, "stop"), true),
        ),
        (
            "anthropic",
            stream_response(&format!("data: {echo}\n\n"), true),
        ),
        (
            "anthropic",
            stream_response(&anthropic_events(TEXT, KEY), true),
        ),
        (
            "openai",
            stream_response(&openai_events(TEXT, "stop"), true),
        ),
        ("openai", stream_response(&format!("data: {KEY}\n\n"), true)),
        ("openai", status_response("401 Unauthorized", "", &error)),
        ("openai", status_response(&format!("400 {KEY}"), "", &error)),
        ("openai", format!("HTTP/9 {KEY}\r\n\r\n").into_bytes()),
        ("openai", Vec::new()),
    ] {
        let server = Server::says(response);
        let home = Home::new();
        let path = file(&home, &configured(api, server.port, "retries = 0"));
        let env = [&ENVIRONMENT[..], &[("TREELINED_LOG", "trace")]].concat();
        let output = home.run(&["--config", &path], &env, scripted());
        assert!(server.count() > 0);
        let mut places = vec![
            ("stdout".to_owned(), output.text()),
            ("stderr".to_owned(), output.stderr),
        ];
        let mut folders = vec![home.files(), home.sessions(), home.cwd()];
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(folder).unwrap() {
                let path = item.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => places.push((
                        path.display().to_string(),
                        String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
                    )),
                }
            }
        }
        let described = home.run(&["--config", &path, "config"], &env, "");
        places.push(("config".into(), described.text() + &described.stderr));
        for (place, text) in places {
            assert!(!text.contains("canary"), "{place}: {text}");
        }
    }
}
