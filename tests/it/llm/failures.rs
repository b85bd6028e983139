//! Responses that are not summaries: refused, cut, endless or invalid. Also retries, and keys in a provider's
//! responses.

use super::*;

#[test]
fn a_response_that_is_not_a_summary_is_a_failure() {
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
    let (_nobody, port) = refusing_port();
    fails(&configured("openai", port, "retries = 0"), "connect");
}

#[test]
fn an_endless_response_is_cut_off() {
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
    let stride = if is_long_run() { 1 } else { 23 };
    for (api, events) in [
        ("anthropic", anthropic_events(TEXT, "end_turn")),
        ("openai", openai_events(TEXT, "stop")),
    ] {
        for with_length in [true, false] {
            let response = stream_response(&events, with_length);
            let length = response.len();
            // The last cut is after the end of the response, so it removes nothing.
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
                whole >= 1 && failures > length / stride * 3 / 4,
                "{api}: {whole} whole, {failures} failures"
            );
        }
    }
}

#[test]
fn temporary_failures_are_retried_a_few_times() {
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

/// A `Retry-After` that was too large to parse was once ignored, and the daemon retried half a second later.
#[test]
fn a_retry_after_too_large_to_parse_is_not_ignored() {
    for after in ["99999999999999999999", "Fri, 31 Dec 99999 23:59:59 GMT"] {
        let headers = format!("retry-after: {after}\r\n");
        let server = Server::says(status_response("429 Slow Down", &headers, ""));
        let error = fails(&configured("openai", server.port, ""), "rateLimited");
        assert!(error.data.get("retryAfterMs").is_none(), "{error:?}");
        assert_eq!(server.count(), 1, "{after}");
    }
}

#[test]
fn a_key_appears_in_no_output_and_no_file() {
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
