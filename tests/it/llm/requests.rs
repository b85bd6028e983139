//! Requests to a provider: their form, and which provider and model are used.

use super::*;

#[test]
fn a_request_to_anthropic_follows_its_api_and_the_text_arrives_in_pieces() {
    let server = Server::says(stream_response(&anthropic_events(TEXT, "end_turn"), true));
    let mut d = asking(&configured("anthropic", server.port, ""));
    let entry = succeeds(&mut d);
    assert_eq!(entry["usage"]["input"], 10);
    assert_eq!(entry["usage"]["output"], 20);
    assert_eq!(entry["usage"]["cacheRead"], 3);
    assert_eq!(entry["usage"]["cacheWrite"], 4);
    assert_eq!(entry["usage"]["totalTokens"], 37);
    assert!(entry.get("fromHook").is_none());
    let mut found = String::new();
    while found.len() < entry["summary"].as_str().unwrap().len() {
        found.push_str(d.notification("summary_delta")["delta"].as_str().unwrap());
    }
    assert_eq!(found, entry["summary"].as_str().unwrap());

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
fn a_request_to_openai_follows_its_api() {
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
fn a_provider_without_key_env_gets_no_key() {
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
fn a_compaction_records_the_usage_of_both_summaries_and_reports_progress() {
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
    // The progress never decreases, over both summaries.
    let mut before = 0.0;
    for progress in d.received("progress") {
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

/// The daemon once used a proxy for a server on this machine. A proxy cannot reach this server, and it got the
/// conversation.
#[test]
fn a_server_on_this_machine_is_reached_without_the_proxy_and_others_through_it() {
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

/// The path of the API was once appended to the query of the URL.
#[test]
fn the_query_of_a_base_url_is_kept() {
    let server = Server::says(stream_response(&openai_events(TEXT, "stop"), true));
    let config =
        configured("openai", server.port, "").replace("/v1/\"", "/v1/?api-version=1&x=%2F\"");
    succeeds(&mut asking(&config));
    let head = server.requests.recv().unwrap().head;
    let expect = "POST /v1/chat/completions?api-version=1&x=%2F HTTP/1.1\r\n";
    assert!(head.starts_with(expect), "{head}");
}

#[test]
fn the_configured_model_is_used_if_preferred_or_if_the_conversations_own_is_not_configured() {
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
fn without_a_usable_model_the_summarizer_is_unavailable() {
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
    // The budget is 20,000 - 16,384 = 3,616 tokens, which is three messages of 1,001 tokens.
    assert!(prompt.contains("7:x") && !prompt.contains("6:x"));
}
