//! The limits of the number of clients.

use super::*;
use std::io::Read;

#[test]
fn one_client_more_than_64_is_told_to_come_again() {
    let daemon = WebDaemon::that_refuses();
    let mut clients: Vec<WebSocket> = (0..64).map(|_| daemon.socket()).collect();
    for client in &mut clients {
        client.frame(TEXT, LIST);
        assert_eq!(client.message()["id"], 1);
    }
    assert_eq!(daemon.socket().close_code(), Some(1013));
    let mut wrong = WebSocket::with_token(daemon.port, &"0".repeat(64));
    assert_eq!(
        wrong.close_code(),
        Some(1008),
        "without the token it learns nothing"
    );
    // Clients of the Unix socket have their own limit.
    let mut script = daemon.shared.connect();
    script.ok("list_sessions", json!({}));
    let mut leaving = clients.pop().unwrap();
    leaving.frame(CLOSE, &1000_u16.to_be_bytes());
    assert_eq!(leaving.close_code(), Some(1000));
    eventually("the next client is served", || {
        let mut next = daemon.socket();
        next.frame(TEXT, LIST);
        matches!(next.receive(), Some((TEXT, _)))
    });
    for client in &mut clients {
        client.frame(TEXT, LIST);
        assert_eq!(client.message()["id"], 1);
    }
}

/// Connections that have not sent a token do not use the slots of clients. Once 64 silent connections blocked the page
/// for everyone. Now, if there are too many, the oldest is closed, so that the next client is served at once.
#[test]
fn connections_without_a_token_hold_up_no_client() {
    let daemon = WebDaemon::that_refuses();
    let mut page = daemon.client("page", json!({}));
    let mut guests = Vec::new();
    // The page is served before the deadlines of the silent connections.
    takes_at_most(Duration::from_secs(5), || {
        guests = (0..700).map(|_| connect(daemon.port)).collect();
        page.ok("list_sessions", json!({}));
        let begun = Instant::now();
        daemon.check_serves();
        let request = format!("GET / HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", daemon.port);
        assert!(http(daemon.port, &request).contains("200 OK"));
        begun.elapsed()
    });
    for guest in &mut guests[..100] {
        assert_eq!(
            guest.read(&mut [0; 1]).unwrap_or(0),
            0,
            "the oldest are closed"
        );
    }
    page.ok("list_sessions", json!({}));
    daemon.check_serves();
}
