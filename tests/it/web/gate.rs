//! HTTP requests: for the page with its headers, and from other sites.

use super::*;

/// A response without its date, which is the only part that may differ.
fn dateless(response: &str) -> String {
    let lines = response.split_inclusive("\r\n");
    lines.filter(|line| !line.starts_with("date: ")).collect()
}

fn get(port: u16, path: &str, headers: &str) -> String {
    http(
        port,
        &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}\r\n"),
    )
}

#[test]
fn the_page_has_a_policy_that_runs_and_reaches_nothing_else() {
    let daemon = WebDaemon::start();
    let port = daemon.port;
    let response = get(port, "/", "");
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    for header in [
        "content-type: text/html; charset=utf-8",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-opener-policy: same-origin",
        "connection: close",
    ] {
        assert!(
            head.lines().any(|line| line == header),
            "{header} in {head}"
        );
    }
    assert!(
        !head.contains("access-control"),
        "no other site may read it"
    );
    let policy = head
        .lines()
        .find_map(|line| line.strip_prefix("content-security-policy: "));
    let policy: Vec<&str> = policy.unwrap().split("; ").collect();
    let hash = |tag: &str| {
        let (_, rest) = body.split_once(&format!("<{tag}>")).unwrap();
        let (content, _) = rest.split_once(&format!("</{tag}>")).unwrap();
        base64_of_sha256(content)
    };
    assert_eq!(
        policy,
        [
            "default-src 'none'",
            &format!("script-src 'sha256-{}'", hash("script")),
            &format!("style-src 'sha256-{}'", hash("style")),
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types treelined",
            &format!("connect-src ws://127.0.0.1:{port}"),
            "frame-ancestors 'none'",
        ]
    );
    assert!(body.contains("<meta name=\"treelined-live\" content=\"1\">"));
    assert!(
        !body.contains(&daemon.token),
        "the token is in the fragment only"
    );
    let local = http(
        port,
        &format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"),
    );
    assert!(local.contains(&format!("connect-src ws://localhost:{port};")));
}

fn base64_of_sha256(content: &str) -> String {
    use sha2::Digest;
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digest = sha2::Sha256::digest(content);
    let mut text = String::new();
    for bytes in digest.chunks(3) {
        let padded: Vec<u8> = bytes.iter().copied().chain([0, 0]).take(3).collect();
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= bytes.len() {
                digit as char
            } else {
                '='
            });
        }
    }
    text
}

/// With DNS rebinding, a browser believes that `evil.example` is at the loopback address.
#[test]
fn requests_that_name_another_host_or_come_from_another_page_learn_nothing() {
    let daemon = WebDaemon::that_refuses();
    let port = daemon.port;
    let mut answers = Vec::new();
    for headers in [
        "Host: evil.example\r\n".to_owned(),
        format!("Host: evil.example:{port}\r\n"),
        format!("Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n"),
        "Host: 127.0.0.1\r\n".to_owned(),
        format!("Host: 127.0.0.1:{}\r\n", port ^ 1),
        format!("Host: localhost.evil.example:{port}\r\n"),
        format!("Host: 0.0.0.0:{port}\r\n"),
        "Host:\r\n".to_owned(),
        String::new(),
        format!("Host: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\n"),
        format!("Host: 127.0.0.1:{port}\r\nOrigin: null\r\n"),
        format!("Host: 127.0.0.1:{port}\r\nOrigin: http://localhost:{port}\r\n"),
        format!("Host: 127.0.0.1:{port}\r\nOrigin: https://127.0.0.1:{port}\r\n"),
        format!("Host: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}.evil.example\r\n"),
    ] {
        for path in ["/", "/ws", "/x"] {
            let plain = format!("GET {path} HTTP/1.1\r\n{headers}\r\n");
            let upgrade = upgrade(port, "").replacen("GET /ws", &format!("GET {path}"), 1);
            let upgrade = upgrade.replacen(&format!("Host: 127.0.0.1:{port}\r\n"), &headers, 1);
            for request in [plain, upgrade] {
                let answer = dateless(&http(port, &request));
                assert!(
                    answer.starts_with("HTTP/1.1 403 Forbidden\r\n"),
                    "{request}{answer}"
                );
                assert!(answer.ends_with("\r\n\r\n"), "no body");
                answers.push(answer);
            }
        }
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    let own = upgrade(port, &format!("Origin: http://127.0.0.1:{port}\r\n"));
    let mut stream = connect(port);
    std::io::Write::write_all(&mut stream, own.as_bytes()).unwrap();
    let mut status = [0; 12];
    std::io::Read::read_exact(&mut stream, &mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 101", "the page itself");
    daemon.check_serves();
}

#[test]
fn other_paths_methods_and_upgrades_have_one_empty_answer() {
    let daemon = WebDaemon::start();
    let port = daemon.port;
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let mut requests = Vec::new();
    for path in [
        "/x",
        "/favicon.ico",
        "/../etc/passwd",
        "/index.html",
        "//",
        "/ws/",
        "/web.json",
        "/%2e%2e/",
    ] {
        requests.push(format!("GET {path} HTTP/1.1\r\n{host}\r\n"));
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"] {
        for path in ["/", "/ws"] {
            requests.push(format!("{method} {path} HTTP/1.1\r\n{host}\r\n"));
        }
    }
    let upgrade = upgrade(port, "");
    requests.push(format!("GET /ws HTTP/1.1\r\n{host}\r\n"));
    for (from, to) in [
        ("HTTP/1.1", "HTTP/1.0"),
        ("Version: 13", "Version: 8"),
        ("Upgrade: websocket", "Upgrade: h2c"),
        ("Connection: keep-alive, Upgrade", "Connection: keep-alive"),
        ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", ""),
        ("GET", "POST"),
    ] {
        requests.push(upgrade.replacen(from, to, 1));
    }
    for request in requests {
        let answer = http(port, &request);
        let status = answer.split("\r\n").next().unwrap();
        assert!(status.ends_with("404 Not Found"), "{request}{answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{request}{answer}");
        assert!(!answer.contains("allow:"), "{answer}");
    }
}

/// Any text was once accepted as a key, and a WebSocket that was opened at the page's path got the page.
#[test]
fn a_broken_handshake_is_a_bad_request() {
    let daemon = WebDaemon::start();
    let port = daemon.port;
    let upgrade = upgrade(port, "");
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let mut requests = vec![
        upgrade.replacen("GET /ws", "GET /", 1),
        upgrade.replacen(key, &format!("{key}{key}"), 1),
    ];
    for other in [
        "",
        "x",
        "dGhlIHNhbXBsZSBub25jZQ",
        "dGhlIHNhbXBsZSBub25jZQ= =",
        "dGhlIHNhbXBsZSBub25jZR==",
        "dGhlIHNhbXBsZSBub25jZXM=",
        "bm9uY2U=",
        "c29tZXRoaW5nIGxvbmdlciB0aGFuIDE2",
    ] {
        let other = format!("Sec-WebSocket-Key: {other}\r\n");
        requests.push(upgrade.replacen(key, &other, 1));
    }
    for request in requests {
        let answer = http(port, &request);
        assert!(
            answer.starts_with("HTTP/1.1 400 Bad Request\r\n"),
            "{request}{answer}"
        );
        assert!(answer.ends_with("\r\n\r\n"), "no body: {answer}");
    }
    daemon.check_serves();
}

#[test]
fn broken_and_oversized_requests_are_refused() {
    let daemon = WebDaemon::start();
    let port = daemon.port;
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let long = "x".repeat(1 << 20);
    for request in [
        format!("GET /{long} HTTP/1.1\r\n{host}\r\n"),
        format!("GET / HTTP/1.1\r\n{host}X: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(1_000)),
        "\0\u{1}\u{2}\r\n\r\n".to_owned(),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list_sessions\"}\n".to_owned(),
        format!("GET / HTTP/9.9\r\n{host}\r\n"),
        format!("GET / HTTP/1.1\r\n{host}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ] {
        let answer = http(port, &request);
        let is_refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        assert!(
            is_refused,
            "{}: {answer}",
            &request[..request.len().min(80)]
        );
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        assert_eq!(body, "");
    }
    // A second request on the same connection is not answered.
    let one = format!("GET /x HTTP/1.1\r\n{host}\r\n");
    let answer = http(port, &format!("{one}{one}"));
    assert_eq!(answer.matches("HTTP/1.1").count(), 1);
    daemon.check_serves();
}
