//! `search`: the entries of all sessions, open or not. protocol.md §3.16.

mod directories;
mod values;

use std::fs;
use std::time::{Duration, Instant};

use crate::harness::*;

/// Two sessions: `kitchen` has two branches and a label; `garden` has another directory and a tool call.
pub(crate) fn two(home: &Home) {
    Log::new("kitchen")
        .user("u1", "", "Where are the apples?")
        .assistant("a1", "u1", "In the cellar.")
        .user("u2", "a1", "Bake a cake of apples, then")
        .assistant("a2", "u2", "The cake burnt.")
        .user("u3", "a1", "Peel them")
        .label("l1", "u3", "a1", json!("winter store"))
        .entry("session_info", "i1", "l1", json!({"name": "Kitchen"}))
        .store(home, "2025-01-01T00-00-00-000Z_kitchen.jsonl");
    let thinks = json!([
        {"type": "thinking", "thinking": "apples grow on trees"},
        {"type": "text", "text": "Looking."},
        tool_call("c1", "bash", json!({"command": "ls trees/apples"})),
    ]);
    Log::with_header(json!({
        "type": "session", "version": 3, "id": "garden", "timestamp": "2025-03-01T00:00:00.000Z",
        "cwd": "/other/garden",
    }))
    .user("u1", "", "Go on")
    .message("a1", "u1", assistant_with(thinks))
    .message(
        "t1",
        "a1",
        tool_result("c1", "bash", "apples: 3\npears: 5", false),
    )
    .store(home, "2025-03-01T00-00-00-000Z_garden.jsonl");
}

#[track_caller]
fn found(d: &mut Daemon, params: Json) -> Vec<String> {
    let result = d.ok("search", params);
    let hits = result["hits"].as_array().unwrap().iter();
    hits.map(|hit| {
        let text = |name: &str| hit[name].as_str().unwrap().to_owned();
        format!(
            "{}/{} {}",
            text("sessionId"),
            text("entryId"),
            text("field")
        )
    })
    .collect()
}

#[test]
fn a_hit_names_entry_field_place_and_branch() {
    let home = Home::new();
    two(&home);
    let mut d = Daemon::quiet_in(&home);
    let result = d.ok("search", json!({"query": "CAKE apples"}));
    let hit = &result["hits"][0];
    assert_eq!(
        *hit,
        json!({
            "sessionId": "kitchen", "sessionName": "Kitchen", "entryId": "u2", "field": "text",
            "at": hit["at"], "snippet": "Bake a cake of apples, then", "ranges": [[7, 11], [15, 21]], "score": 4.0,
            "branch": {"tipId": "a2", "onActivePath": false, "leftAt": "a1"},
        })
    );
    assert_eq!(result["totals"]["sessions"], 1);
    assert_eq!(result["totals"]["entries"], 1);
    let bytes: u64 = home
        .session_files()
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert_eq!(result["totals"]["scannedBytes"], bytes);
    assert!(result.get("nextCursor").is_none() && result.get("partial").is_none());
    let unnamed = d.ok("search", json!({"query": "pears"}));
    assert_eq!(unnamed["hits"][0]["sessionName"], "Go on");
    assert_eq!(
        unnamed["hits"][0]["branch"],
        json!({"tipId": "t1", "onActivePath": true})
    );
}

/// An import writes the name of the session below the leaf, and then the leaf record. The name was once shown as an
/// abandoned branch.
#[test]
fn a_name_beside_the_path_is_on_no_branch_of_its_own() {
    let home = Home::new();
    let name = |number: usize| json!({"name": format!("Title {number}")});
    let leaf = json!({"customType": "treelined.leaf", "data": {"from": "i3", "cause": "set_leaf"}});
    Log::new("named")
        .user("u1", "", "Question")
        .entry("session_info", "i1", "u1", name(1))
        .assistant("b1", "u1", "Left")
        .entry("session_info", "i2", "b1", name(2))
        .assistant("a1", "u1", "Answer")
        .entry("session_info", "i3", "a1", name(3))
        .entry("custom", "x1", "a1", leaf)
        .store(&home, "2025-01-01T00-00-00-000Z_named.jsonl");
    let mut d = Daemon::quiet_in(&home);
    let result = d.ok("search", json!({"query": "title"}));
    let hits = result["hits"].as_array().unwrap().iter();
    let mut branches: Vec<_> = hits.map(|hit| (&hit["entryId"], &hit["branch"])).collect();
    branches.sort_by_key(|(id, _)| id.as_str());
    let active = json!({"tipId": "a1", "onActivePath": true});
    let left = json!({"tipId": "b1", "onActivePath": false, "leftAt": "u1"});
    let expected = [
        (&json!("i1"), &active),
        (&json!("i2"), &left),
        (&json!("i3"), &active),
    ];
    assert_eq!(branches, expected);
    let only = |branches: &str| json!({"query": "title", "branches": branches});
    assert_eq!(found(&mut d, only("abandoned")), ["named/i2 labels"]);
    assert_eq!(found(&mut d, only("active")).len(), 2);
}

/// One parser reads the language of filters: a query in it finds the same entries as the params that it stands for.
#[test]
fn a_query_of_filters_finds_what_its_params_find() {
    let home = Home::new();
    two(&home);
    let note = json!({"customType": "note", "data": {"targetId": "a2", "reason": "apples rot", "outcome": "abandoned"}});
    let path = home
        .session_files()
        .into_iter()
        .find(|path| path.ends_with("2025-01-01T00-00-00-000Z_kitchen.jsonl"));
    let mut text = fs::read_to_string(path.as_ref().unwrap()).unwrap();
    let mut entry = json!({"type": "custom", "id": "n1", "parentId": "i1", "timestamp": "2025-01-02T00:00:00.000Z"});
    entry
        .as_object_mut()
        .unwrap()
        .extend(note.as_object().unwrap().clone());
    text.push_str(&format!("{entry}\n"));
    fs::write(path.unwrap(), text).unwrap();
    let mut d = Daemon::quiet_in(&home);
    for (text, params) in [
        ("apples", json!({})),
        ("apples role:USER", json!({"role": "user"})),
        ("apples role:tool", json!({"role": "toolResult"})),
        ("apples tool:Bash", json!({"tool": "bash"})),
        (
            "apples in:toolCalls,thinking",
            json!({"in": ["toolCalls", "thinking"]}),
        ),
        ("apples branch:left", json!({"branches": "abandoned"})),
        ("apples type:note", json!({"type": "note"})),
        (
            "apples -cake -\"go on\"",
            json!({"without": "cake \"go on\""}),
        ),
        ("apples cwd:/other", json!({"cwd": "/other"})),
        ("apples cwd:garden", json!({"cwd": "/other/garden"})),
        ("apples before:2025-01-02", json!({"until": "2025-01-02"})),
        (
            "apples since:2025-01-02 before:2025-02-01",
            json!({"since": "2025-01-02", "until": "2025-02-01"}),
        ),
    ] {
        let mut params = params;
        params["query"] = json!("apples");
        let expected = found(&mut d, params);
        let typed = json!({"query": text, "syntax": "filters", "directory": "/other"});
        let all = found(&mut d, json!({"query": "apples"})).len();
        assert_eq!(found(&mut d, typed), expected, "{text}");
        assert!(
            !expected.is_empty() && (expected.len() < all || text == "apples"),
            "{text}: {expected:?}"
        );
    }
    let filters = |query: &str| json!({"query": query, "syntax": "filters"});
    assert_eq!(
        found(&mut d, filters("/pea(r|ch)s/ role:tool")),
        ["garden/t1 toolResults"]
    );
    // A query without words finds each entry that passes the filters.
    assert_eq!(found(&mut d, filters("type:note")), ["kitchen/n1 text"]);
    assert_eq!(
        found(&mut d, filters("role:user cwd:/other")),
        ["garden/u1 text"]
    );
    assert_eq!(found(&mut d, filters("since:1h")), [""; 0]);
    // A hit must pass the filters of the params and the filters in the query's text.
    let mut both = filters("apples cwd:/other");
    both["cwd"] = json!("/home");
    assert_eq!(found(&mut d, both), [""; 0]);
    let mut both = filters("apples role:user");
    both["branches"] = json!("abandoned");
    assert_eq!(found(&mut d, both), ["kitchen/u2 text"]);
}

#[test]
fn a_fault_in_a_query_of_filters_has_its_place() {
    let home = Home::new();
    let mut d = Daemon::quiet_in(&home);
    for (query, position, said) in [
        (
            "é rol:user",
            2,
            "character 3: `rol:` is not a filter; did you mean `role:`?",
        ),
        ("cwd:here", 4, "this client has none"),
        ("apples cwd:.", 11, "this client has none"),
        ("cwd:/nosuch/../x", 4, "cannot be found"),
    ] {
        let params = json!({"query": query, "syntax": "filters"});
        let error = d.err_kind("search", params, "invalidParams");
        assert_eq!(error.details("field"), "query");
        assert_eq!(error.details("position"), position);
        let reason = error.details("reason").as_str().unwrap();
        assert!(reason.contains(said), "{query}: {reason}");
    }
    let params = json!({"query": "x", "syntax": "filters", "mode": "regex"});
    let error = d.err_kind("search", params, "invalidParams");
    assert_eq!(error.details("field"), "mode");
    // Without the language of filters these are words.
    d.ok("search", json!({"query": "rol:user role: tag:x"}));
}

#[test]
fn hits_come_by_weight_and_then_newest_first() {
    let home = Home::new();
    two(&home);
    let mut d = Daemon::quiet_in(&home);
    let all = [
        "kitchen/u2 text",
        "kitchen/u1 text",
        "garden/a1 thinking",
        "garden/t1 toolResults",
    ];
    assert_eq!(found(&mut d, json!({"query": "apples"})), all);
    assert_eq!(
        found(&mut d, json!({"query": "winter"})),
        ["kitchen/a1 labels"]
    );
    // A label and the text that it labels can match together.
    assert_eq!(
        found(&mut d, json!({"query": "cellar winter"})),
        ["kitchen/a1 labels"]
    );
    assert_eq!(
        found(&mut d, json!({"query": "kitchen"})),
        ["kitchen/i1 labels"]
    );
    assert_eq!(
        found(&mut d, json!({"query": "\"cake of\""})),
        ["kitchen/u2 text"]
    );
    assert_eq!(
        found(&mut d, json!({"query": "Cake", "mode": "literal"})),
        [""; 0]
    );
    assert_eq!(
        found(&mut d, json!({"query": r"^pears: \d$", "mode": "regex"})),
        ["garden/t1 toolResults"]
    );
}

#[test]
fn filters_select_fields_sessions_and_entries() {
    let home = Home::new();
    two(&home);
    let imported = entry_line(
        70,
        "message",
        "m1",
        "",
        json!({"message": user("apples"), "origin": {"tool": "codex"}}),
    );
    Log::new("imported")
        .raw(&imported)
        .store(&home, "2025-05-01T00-00-00-000Z_imported.jsonl");
    let mut d = Daemon::quiet_in(&home);
    let mut with = |filter: Json| {
        let mut params = json!({"query": "apples"});
        let filter = filter.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(filter);
        found(&mut d, params)
    };
    assert_eq!(with(json!({"in": ["thinking"]})), ["garden/a1 thinking"]);
    assert_eq!(
        with(json!({"in": ["toolResults", "labels"]})),
        ["garden/t1 toolResults"]
    );
    let garden = ["garden/a1 thinking", "garden/t1 toolResults"];
    for cwd in ["/other", "/other/garden/", "//other/./garden"] {
        assert_eq!(with(json!({"cwd": cwd})), garden, "{cwd}");
    }
    assert_eq!(with(json!({"cwd": "/oth"})), [""; 0]);
    assert_eq!(with(json!({"cwd": "/"})).len(), 5);
    assert_eq!(with(json!({"tool": "bash"})), garden);
    assert_eq!(with(json!({"source": "codex"})), ["imported/m1 text"]);
    assert_eq!(
        with(json!({"role": "toolResult"})),
        ["garden/t1 toolResults"]
    );
    assert_eq!(with(json!({"branches": "abandoned"})), ["kitchen/u2 text"]);
    assert_eq!(with(json!({"branches": "active", "role": "user"})).len(), 2);
    let since = json!({"since": stamp(70)});
    assert_eq!(with(since), ["imported/m1 text"]);
    assert_eq!(with(json!({"until": stamp(70)})).len(), 4);
    assert_eq!(with(json!({"since": "2999-01-01"})), [""; 0]);
    // The params and the language of filters have the same times.
    assert_eq!(with(json!({"since": "1min"})), [""; 0]);
    assert_eq!(with(json!({"limit": 0})), [""; 0]);
}

#[test]
fn bad_params_are_refused_with_the_field_and_the_reason() {
    let mut d = Daemon::quiet();
    let typed =
        |query: &str, mode: &str| json!({"query": query, "mode": mode, "syntax": "filters"});
    for (params, field, reason) in [
        (
            json!({"query": "(", "mode": "regex"}),
            "query",
            "unclosed group",
        ),
        (json!({"query": ""}), "query", "is empty"),
        (json!({"query": "  "}), "query", "is empty"),
        // Of these, one once found everything, and the others had another error.
        (typed("", "words"), "query", "write a word, or a filter"),
        (typed("\"\"", "words"), "query", "write a word, or a filter"),
        (typed(" \"", "ask"), "query", "write a word, or a filter"),
        (json!({"query": "x", "limit": 1001}), "limit", "1000"),
        (
            json!({"query": "x in:labels", "syntax": "filters", "in": ["text"]}),
            "in",
            "no field of `in:`",
        ),
        (
            json!({"query": "x", "since": "last week"}),
            "since",
            "is not a time",
        ),
        (
            json!({"query": "x", "until": "2025-13-01"}),
            "until",
            "is not a time",
        ),
        (json!({"query": "x", "in": []}), "in", "no field"),
        (
            json!({"query": "x", "cursor": "?"}),
            "cursor",
            "not a cursor",
        ),
    ] {
        let error = d.err_kind("search", params, "invalidParams");
        assert_eq!(error.details("field"), field);
        let said = error.details("reason").as_str().unwrap();
        assert!(said.contains(reason), "{said}");
    }
    d.err_kind("search", json!({}), "invalidParams");
    d.err_kind(
        "search",
        json!({"query": "x", "in": ["words"]}),
        "invalidParams",
    );
    // The session directory does not exist, so nothing is found.
    assert_eq!(found(&mut d, json!({"query": "x"})), [""; 0]);
}

/// Entries that are appended later, before or after the cursor, do not change the pages that were read.
#[test]
fn pages_repeat_nothing_while_entries_are_appended() {
    let home = Home::new();
    for session in 0..5 {
        let mut log = Log::new(&format!("s{session}")).user("first", "", "needle 0");
        for number in 1..20 {
            let parent = if number == 1 {
                "first".to_owned()
            } else {
                format!("n{}", number - 1)
            };
            log = log.user(&format!("n{number}"), &parent, "a needle");
        }
        log.store(
            &home,
            &format!("2025-01-0{}T00-00-00-000Z_s{session}.jsonl", session + 1),
        );
    }
    let mut d = Daemon::quiet_in(&home);
    d.ok("open_session", json!({"sessionId": "s2"}));
    let (mut seen, mut cursor, mut pages) = (Vec::new(), Json::Null, 0);
    loop {
        let result = d.ok(
            "search",
            json!({"query": "needle", "limit": 7, "cursor": cursor}),
        );
        let hits = result["hits"].as_array().unwrap();
        assert!(hits.len() <= 7);
        for hit in hits {
            seen.push(format!("{} {}", hit["sessionId"], hit["entryId"]));
        }
        pages += 1;
        assert_eq!(result["totals"]["entries"], 99 + pages);
        d.user(&format!("new{pages}"), "another needle");
        cursor = result["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count, "an entry came twice");
    assert_eq!(seen.iter().filter(|hit| !hit.contains("new")).count(), 100);
}

#[test]
fn a_page_ends_before_the_hit_that_does_not_fit() {
    let home = Home::new();
    let mut log = Log::new("s1");
    for number in 0..40 {
        log = log.user(&format!("n{number}"), "", &"needle ".repeat(40));
    }
    log.store(&home, "2025-01-01T00-00-00-000Z_s1.jsonl");
    let mut d = Daemon::start_in(&home, &[], &[]);
    d.init(json!({"maxFrameBytes": 4096}));
    let (mut count, mut cursor) = (0, Json::Null);
    loop {
        let result = d.ok("search", json!({"query": "needle", "cursor": cursor}));
        count += result["hits"].as_array().unwrap().len();
        cursor = result["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(count, 40);
}

#[test]
fn hits_are_streamed_to_clients_that_declare_it() {
    let home = Home::new();
    two(&home);
    let mut d = Daemon::start_in(&home, &[], &[]);
    d.init(json!({"searchHits": {}}));
    let id = d.send("search", json!({"query": "apples"}));
    let result = d.response(&id).unwrap();
    let key = |hit: &Json| format!("{}/{}", hit["sessionId"], hit["entryId"]);
    let mut hits: Vec<_> = result["hits"].as_array().unwrap().iter().map(key).collect();
    let mut streamed = Vec::new();
    for found in d.received("search_hit") {
        assert_eq!(found["token"], id);
        streamed.push(key(&found["hit"]));
    }
    hits.sort();
    streamed.sort();
    assert_eq!(streamed, hits);
    // Other clients get no notification: the harness fails if one is unclaimed.
    let mut other = Daemon::start_in(&home, &[], &[]);
    other.init(json!({}));
    assert_eq!(found(&mut other, json!({"query": "apples"})).len(), 4);
    other.no_notification("search_hit");
}

#[test]
fn a_long_search_reports_its_progress() {
    let home = Home::new();
    two(&home);
    let files = home.session_files();
    let sizes = files.iter().map(|path| fs::metadata(path).unwrap().len());
    let bytes: u64 = sizes.sum();
    let mut d = Daemon::start_in(&home, &[], &[]);
    d.init(json!({"progress": {}}));
    let id = d.send("search", json!({"query": "apples"}));
    d.response(&id).unwrap();
    let told = d.received("progress");
    assert!(!told.is_empty());
    for progress in told {
        assert_eq!(progress["token"], id);
        assert_eq!(progress["total"], bytes as f64);
        let read = progress["progress"].as_f64().unwrap();
        assert!(read > 0.0 && read <= bytes as f64, "{read}");
    }
    let mut other = Daemon::start_in(&home, &[], &[]);
    other.init(json!({}));
    other.ok("search", json!({"query": "apples"}));
    other.no_notification("progress");
}

#[test]
fn appends_of_this_and_of_other_processes_are_found_at_once() {
    let mut d = Daemon::quiet();
    d.create();
    for number in 0..10 {
        let text = format!("needle{number}");
        d.user(&format!("own{number}"), &text);
        assert_eq!(found(&mut d, json!({"query": text})).len(), 1);
        // Both requests are sent before the append is answered.
        let text = format!("piped{number}");
        let append = d.send("append_message", json!({"message": user(&text)}));
        let search = d.send("search", json!({"query": text}));
        d.response(&append).unwrap();
        let result = d.response(&search).unwrap();
        assert_eq!(result["totals"]["entries"], 1, "{text}");
    }
    let path = d.home.session_files().remove(0);
    let leaf = d.leaf().as_str().unwrap().to_owned();
    foreign_append(
        &path,
        &entry_line(
            90,
            "message",
            "foreign",
            &leaf,
            json!({"message": user("from elsewhere")}),
        ),
    );
    assert_eq!(found(&mut d, json!({"query": "elsewhere"})).len(), 1);
}

#[test]
fn damaged_files_give_their_readable_entries_and_unreadable_ones_are_named() {
    let home = Home::new();
    two(&home);
    let folder = home.session_files()[0].parent().unwrap().to_owned();
    let whole = Log::new("hurt")
        .user("u1", "", "apples before")
        .user("u2", "u1", "apples after")
        .text();
    let hurt = whole.replacen(
        "\n{\"type\":\"message\",\"id\":\"u2\"",
        "\n{\"type\":\"mess\0\n{\"type\":\"message\",\"id\":\"u2\"",
        1,
    );
    assert_ne!(hurt, whole);
    fs::write(folder.join("hurt.jsonl"), hurt).unwrap();
    fs::write(folder.join("none.jsonl"), "{\"type\":\"message\",\"id\":\"x\",\"message\":{\"role\":\"user\",\"content\":\"apples\"}}\n").unwrap();
    fs::create_dir(folder.join("folder.jsonl")).unwrap();
    let mut d = Daemon::quiet_in(&home);
    let result = d.ok("search", json!({"query": "apples"}));
    assert_eq!(result["totals"]["sessions"], 3);
    assert_eq!(result["totals"]["entries"], 6);
    let partial = result["partial"].as_array().unwrap().iter();
    let mut partial: Vec<_> = partial
        .map(|file| {
            let name = file["path"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned();
            (name, file["kind"].as_str().unwrap().to_owned())
        })
        .collect();
    partial.sort();
    let expected = [
        ("folder.jsonl", "pathDenied"),
        ("none.jsonl", "headerMissing"),
    ];
    assert_eq!(
        partial,
        expected.map(|(name, kind)| (name.to_owned(), kind.to_owned()))
    );
}

#[test]
fn a_search_is_cancelled_at_once() {
    let home = Home::new();
    let text = "nothing to see here ".repeat(200);
    let mut log = Log::new("s1").text();
    for number in 0..20_000 {
        log.push_str(&entry_line(
            1,
            "message",
            &format!("n{number}"),
            "",
            json!({"message": user(&text)}),
        ));
        log.push('\n');
    }
    for copy in 0..3 {
        fs::create_dir_all(home.sessions()).unwrap();
        fs::write(home.sessions().join(format!("{copy}.jsonl")), &log).unwrap();
    }
    let mut d = Daemon::quiet_in(&home);
    takes_at_most(Duration::from_millis(500), || {
        // The pattern has no literal text, so every entry is decoded.
        let id = d.send(
            "search",
            json!({"query": r"[^\x00-\x{10ffff}]", "mode": "regex"}),
        );
        std::thread::sleep(Duration::from_millis(20));
        let asked = Instant::now();
        d.notify("$/cancel_request", json!({"requestId": id}));
        let error = d.response(&id).unwrap_err();
        assert_eq!(error.code, -32800);
        asked.elapsed()
    });
}
