//! Searches of connections that do not see secrets.

use super::*;

/// A search had a hit only for the right next character of a secret that the connection does not see. 604 searches told a
/// whole password.
#[test]
fn no_search_tells_a_secret() {
    let limited = Limited::start();
    let mut all = limited.shared.client("all", json!({}));
    let secret = "q9Xr72LmZp41Vb";
    let text = format!("zebra DB_PASSWORD={secret} crossing");
    let id = limited.session(&mut all, "in", &text);
    let mut client = Daemon::connected(&limited.shared.home, &limited.socket("append"));
    client.ignore("session_opened");
    client.ok("open_session", json!({"sessionId": id}));
    let hits = |client: &mut Daemon, params: Json| {
        let found = client.ok("search", params);
        found["totals"]["entries"].as_u64().unwrap()
    };
    let rows = |client: &mut Daemon, query: &str, mode: &str| {
        let params = json!({"sessionId": id, "query": query, "mode": mode});
        client.ok("get_tree", params)["total"].as_u64().unwrap()
    };
    for mode in ["words", "literal", "regex"] {
        for (query, all_find) in [
            ("DB_PASSWORD=q9Xr", true),
            ("q9Xr72LmZp41Vb", true),
            ("DB_PASSWORD=a", false),
        ] {
            let params = json!({"query": query, "mode": mode});
            assert_eq!(hits(&mut client, params.clone()), 0, "{mode} {query}");
            assert_eq!(hits(&mut all, params) > 0, all_find, "{mode} {query}");
            let redacted = json!({"query": query, "mode": mode, "redact": true});
            assert_eq!(hits(&mut all, redacted), 0, "{mode} {query}");
            // The rows of the client that sees all are kept, and are not those of the other one.
            assert_eq!(rows(&mut all, query, mode) > 0, all_find, "{mode} {query}");
            assert_eq!(rows(&mut client, query, mode), 0, "{mode} {query}");
        }
        assert_eq!(
            hits(&mut client, json!({"query": "zebra", "mode": mode})),
            1
        );
        assert_eq!(rows(&mut client, "zebra", mode), 1);
    }
    for without in ["q9Xr", "a1"] {
        let params = json!({"query": "zebra", "without": without});
        assert_eq!(hits(&mut client, params), 1, "{without}");
    }
    for query in ["q9Xr", "DB_PASSWORD=q"] {
        let listed = client.ok("list_sessions", json!({"query": query}));
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 0, "{query}");
    }
    let listed = client.ok("list_sessions", json!({"query": "zebra"}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    let question = json!({"query": "zebra", "mode": "ask"});
    client.err_kind("search", question, "invalidParams");
    let question = json!({"query": "zebra", "mode": "ask", "redact": true});
    all.err_kind("search", question, "invalidParams");
}
