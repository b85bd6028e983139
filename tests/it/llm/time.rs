//! Time limits, aborts, and the end of the daemon while a summary is written.

use super::*;

#[test]
fn a_silent_provider_fails_at_the_idle_timeout() {
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
fn an_endless_response_fails_at_the_total_timeout() {
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
fn an_abort_takes_100_ms_and_closes_the_connection() {
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

/// Aborts a request after the server has sent these bytes. Returns the time until the daemon has answered the request
/// and closed the connection to the server.
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
fn a_running_summary_is_finished_after_the_end_of_stdin() {
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
