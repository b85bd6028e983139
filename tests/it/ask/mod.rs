//! `search {mode: "ask"}`: entries ranked by a question. protocol.md §3.16.

mod kept;
mod left;
mod near;

use std::fs;

use crate::harness::*;

fn ask(d: &mut Daemon, query: &str) -> Json {
    d.ok("search", json!({"query": query, "mode": "ask"}))
}

#[track_caller]
fn ids(result: &Json) -> Vec<String> {
    let hits = result["hits"].as_array().unwrap().iter();
    hits.map(|hit| hit["entryId"].as_str().unwrap().to_owned())
        .collect()
}

fn store(home: &Home, log: Log, id: &str) {
    log.store(home, &format!("2025-01-01T00-00-00-000Z_{id}.jsonl"));
}

/// Of the ten hits on the first page, on average 2.4 once had the phrase, and `rate` found "separate" as if it were the word.
#[test]
fn a_phrase_comes_before_words_apart_and_these_before_one_word() {
    let home = Home::new();
    for number in 0..5 {
        let id = format!("noise{number}");
        let log = Log::new(&id).user(
            "n1",
            "",
            "Keep code and exit apart; separate limits for all",
        );
        store(&home, log, &id);
    }
    store(
        &home,
        Log::new("a").user("one", "", "The exit of the building"),
        "a",
    );
    store(
        &home,
        Log::new("b").user(
            "apart",
            "",
            "The code of the long and winding tunnel has an exit",
        ),
        "b",
    );
    store(
        &home,
        Log::new("c").user("phrase", "", "It failed with exit code 7"),
        "c",
    );
    let mut d = Daemon::quiet_in(&home);
    let found = ids(&ask(&mut d, "exit code"));
    assert_eq!(found[0], "phrase", "{found:?}");
    let place = |id: &str| found.iter().position(|one| one == id).unwrap();
    assert!(place("apart") < place("one"), "{found:?}");
    let rate = ask(&mut d, "rate");
    let hits = rate["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 5);
    let is_marked = |hit: &Json| hit["inside"] == json!(["rate"]);
    assert!(hits.iter().all(is_marked), "{rate}");
    // An entry need not contain every word, and all forms of a word are the same.
    assert_eq!(ids(&ask(&mut d, "why did the tunnels explode"))[0], "apart");
    let result = ask(&mut d, "exit codes");
    let hit = &result["hits"][0];
    assert_eq!(hit["snippet"], "It failed with exit code 7");
    assert_eq!(hit["ranges"], json!([[15, 19], [20, 24]]));
    assert_eq!(result["totals"]["atLeast"], true);
}

#[test]
fn labels_notes_and_names_are_found() {
    let home = Home::new();
    let note =
        json!({"customType": "note", "data": {"targetId": "u1", "reason": "the parser was wrong"}});
    let log = Log::new("s")
        .user("u1", "", "Go")
        .assistant("a1", "u1", "Done")
        .entry("custom", "n1", "a1", note)
        .label("l1", "n1", "a1", json!("winter store"))
        .label("l2", "l1", "u1", json!("former words"))
        .label("l3", "l2", "u1", json!("present words"))
        .entry("session_info", "i1", "l3", json!({"name": "Kitchen"}));
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(ids(&ask(&mut d, "wintry stores"))[0], "a1");
    assert_eq!(ids(&ask(&mut d, "parser"))[0], "n1");
    assert_eq!(ids(&ask(&mut d, "kitchen"))[0], "i1");
    assert_eq!(ids(&ask(&mut d, "present")), ["u1"]);
    assert!(ids(&ask(&mut d, "former")).is_empty());
}

#[test]
fn three_entries_of_a_session_are_hits_and_the_rest_is_counted() {
    let home = Home::new();
    let mut log = Log::new("big");
    let mut above = String::new();
    for number in 0..9 {
        let id = format!("u{number}");
        log = log.user(&id, &above, "The cache again");
        above = id;
    }
    store(&home, log, "big");
    store(
        &home,
        Log::new("small").user("s1", "", "Another cache"),
        "small",
    );
    let mut d = Daemon::quiet_in(&home);
    let result = ask(&mut d, "cache");
    assert_eq!(ids(&result).len(), 4);
    assert_eq!(result["more"], json!([{"sessionId": "big", "count": 6}]));
    assert_eq!(result["totals"]["entries"], 10);
    let whole = json!({"query": "cache", "mode": "ask", "sessionId": "big"});
    assert_eq!(ids(&d.ok("search", whole)).len(), 9);
    let exact = json!({"query": "cache", "sessionId": "small"});
    assert_eq!(ids(&d.ok("search", exact)), ["s1"]);
    let unknown = json!({"query": "cache", "mode": "ask", "sessionId": "none"});
    d.err_kind("search", unknown, "sessionNotFound");
}

#[test]
fn pages_are_of_one_ranking_until_it_is_given_up() {
    let home = Home::new();
    for number in 0..5 {
        let id = format!("s{number}");
        let text = format!("cache {}", "filler ".repeat(number));
        store(
            &home,
            Log::new(&id).user(&format!("u{number}"), "", &text),
            &id,
        );
    }
    let mut d = Daemon::quiet_in(&home);
    let page = |cursor: Option<&str>| json!({"query": "cache", "mode": "ask", "limit": 2, "cursor": cursor});
    let whole = ids(&ask(&mut d, "cache"));
    let first = d.ok("search", page(None));
    // An entry that is appended in between changes no later page.
    store(&home, Log::new("new").user("new", "", "cache"), "new");
    let second = d.ok("search", page(first["nextCursor"].as_str()));
    let third = d.ok("search", page(second["nextCursor"].as_str()));
    assert!(third.get("nextCursor").is_none());
    let all: Vec<String> = [&first, &second, &third]
        .into_iter()
        .flat_map(ids)
        .collect();
    assert_eq!(all, whole);
    for _ in 0..8 {
        ask(&mut d, "filler");
    }
    d.err_kind(
        "search",
        page(first["nextCursor"].as_str()),
        "cursorExpired",
    );
    d.err_kind("search", page(Some("4:0:0:/x")), "invalidParams");
    let words = json!({"query": "cache", "cursor": first["nextCursor"]});
    d.err_kind("search", words, "invalidParams");
    d.err_kind(
        "search",
        json!({"query": "?", "mode": "ask"}),
        "invalidParams",
    );
}

/// Each hit shows the name of its session. The name was once also one of the three hits of a session.
#[test]
fn a_name_is_in_the_place_of_no_other_entry() {
    let home = Home::new();
    let info = |id: &str, above: &str, name: &str| json!({"type": "session_info", "id": id, "parentId": above, "timestamp": "2025-01-01T00:00:09.000Z", "name": name});
    let log = Log::new("s")
        .user("u1", "", "Where is the parser?")
        .user("u2", "u1", "The parser again")
        .user("u3", "u2", "Is this the parser?")
        .user("u4", "u3", "No parser")
        .raw(&info("n1", "u4", "The parser").to_string())
        .raw(&info("n2", "n1", "The parser and more").to_string());
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    let result = ask(&mut d, "parser");
    let found = ids(&result);
    assert_eq!(
        found.iter().filter(|id| id.starts_with('u')).count(),
        3,
        "{found:?}"
    );
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(result["more"], json!([{"sessionId": "s", "count": 2}]));
}

/// A hook has only a few seconds for a search. Once each search read every session again, and the hook never got an
/// answer.
#[test]
fn what_is_not_read_in_time_is_left_out_and_what_is_read_is_kept() {
    let home = Home::new();
    for id in ["a", "b"] {
        store(
            &home,
            Log::new(id).user("u1", "", "Where is the parser?"),
            id,
        );
    }
    let mut d = Daemon::quiet_in(&home);
    let mut asked = |time: u64| {
        let params = json!({"query": "parser", "mode": "ask", "readMs": time});
        let result = d.ok("search", params);
        let totals = &result["totals"];
        (ids(&result).len(), totals["unread"].as_u64())
    };
    assert_eq!(asked(0), (0, Some(2)));
    assert_eq!(asked(600_000), (2, None));
    assert_eq!(asked(0), (2, None));
}

/// Quotes once changed nothing: the first hit could lack the phrase that a person had put into them.
#[test]
fn every_phrase_in_quotes_must_occur() {
    let home = Home::new();
    let log = Log::new("s")
        .user("u1", "", "The containing object. The containing object.")
        .assistant("a1", "u1", "An Object containing get_tree rows.")
        .user("u2", "a1", "containing containing")
        .label("l1", "u2", "u2", json!("object containing all"))
        .user("u3", "u2", "object contain");
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    let mut asked = |query: &str| {
        let mut found = ids(&ask(&mut d, query));
        found.sort_unstable();
        found
    };
    assert_eq!(asked("object containing").len(), 3, "of four");
    assert_eq!(asked("\"object containing\""), ["a1", "u2"]);
    assert_eq!(asked("what is an \"object containing"), ["a1", "u2"]);
    assert_eq!(asked("\"object containing\" \"get_tree rows\""), ["a1"]);
    assert_eq!(asked("\"rows object\""), [""; 0]);
    let labels = json!({"query": "\"object containing\"", "mode": "ask", "in": ["labels"]});
    assert_eq!(ids(&d.ok("search", labels)), ["u2"]);
}

/// A question for a long word, such as a key, was once refused as empty.
#[test]
fn a_text_without_a_word_is_refused_with_the_reason() {
    let home = Home::new();
    let (mut d, long) = (Daemon::quiet_in(&home), "x".repeat(65));
    for text in ["", "???", "\u{2014}", &long] {
        let params = json!({"query": text, "mode": "ask"});
        let error = d.err_kind("search", params, "invalidParams");
        let said = error.details("reason").as_str().unwrap();
        assert!(said.contains("at most 64 bytes"), "{said}");
    }
    ask(&mut d, &"x".repeat(64));
}

#[test]
fn filters_select_fields_sessions_and_entries() {
    let home = Home::new();
    crate::search::two(&home);
    let mut d = Daemon::quiet_in(&home);
    let mut found = |filter: Json| {
        let mut params = json!({"query": "apples", "mode": "ask"});
        params
            .as_object_mut()
            .unwrap()
            .extend(filter.as_object().unwrap().clone());
        let mut ids = ids(&d.ok("search", params));
        ids.sort();
        ids
    };
    assert_eq!(found(json!({})), ["a1", "t1", "u1", "u2"]);
    assert_eq!(found(json!({"in": ["toolResults"]})), ["t1"]);
    assert_eq!(found(json!({"in": ["thinking"]})), ["a1"]);
    assert_eq!(found(json!({"cwd": "/other"})), ["a1", "t1"]);
    assert_eq!(found(json!({"tool": "bash"})), ["a1", "t1"]);
    assert_eq!(found(json!({"role": "user"})), ["u1", "u2"]);
    assert_eq!(found(json!({"branches": "abandoned"})), ["u2"]);
    assert!(found(json!({"source": "codex"})).is_empty());
    assert!(found(json!({"since": "2999-01-01"})).is_empty());
}

/// Filters were once applied only to the best eight entries of a session, after the other entries were dropped, so that
/// entries which pass were lost. Totals and `more` counted entries that do not pass, and the archive was not a filter.
#[test]
fn filters_are_applied_before_the_best_entries_are_taken() {
    let home = Home::new();
    let mut log = Log::new("s").user("u0", "", "Begin");
    let mut above = "u0".to_owned();
    // The best entries are on the path and have a word that the query below excludes.
    for number in 1..20 {
        let id = format!("u{number}");
        log = log.user(&id, &above, "cache spinach");
        above = id;
    }
    let text = "Of all that was said here about one thing and another, the least was about a cache";
    let log = log.user("aside", "u0", text).user("last", &above, "Go on");
    store(&home, log, "s");
    // The entries have no time, and the header is older than the filter.
    let header = json!({"type": "session", "version": 3, "id": "old", "timestamp": "2020-01-01T00:00:00.000Z", "cwd": "/"});
    let message = json!({"type": "message", "id": "o1", "parentId": null, "message": {"role": "user", "content": "cache"}});
    let file = home.sessions().join("2020-01-01T00-00-00-000Z_old.jsonl");
    fs::write(file, format!("{header}\n{message}\n")).unwrap();
    let mut d = Daemon::quiet_in(&home);
    d.ignore("branches_changed");
    let mut asked = |filter: Json| {
        let mut params = json!({"query": "cache", "mode": "ask"});
        let filter = filter.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(filter);
        d.ok("search", params)
    };
    for filter in [
        json!({"branches": "abandoned", "sessionId": "s"}),
        json!({"branches": "abandoned"}),
        json!({"without": "spinach", "sessionId": "s"}),
        json!({"without": "spinach", "since": "2024-01-01"}),
    ] {
        let result = asked(filter.clone());
        assert_eq!(ids(&result), ["aside"], "{filter}");
        assert_eq!(result["totals"]["entries"], 1, "{filter}");
        assert_eq!(result["totals"]["sessions"], 1, "{filter}");
        assert!(result.get("more").is_none(), "{filter} {result}");
    }
    let recent = asked(json!({"since": "2024-01-01"}));
    assert_eq!(recent["totals"]["sessions"], 1);
    assert_eq!(recent["more"], json!([{"sessionId": "s", "count": 17}]));
    assert_eq!(ids(&asked(json!({"until": "2024-01-01"}))), ["o1"]);
    let files = home.session_files().into_iter();
    let mut files = files.filter(|path| path.to_string_lossy().contains("_s."));
    d.open(&files.next().unwrap());
    d.ok("archive_branch", json!({"entryId": "aside"}));
    let mut entries = |archived: bool| {
        let params =
            json!({"query": "cache", "mode": "ask", "sessionId": "s", "archived": archived});
        d.ok("search", params)["totals"]["entries"].clone()
    };
    assert_eq!((entries(false), entries(true)), (json!(19), json!(20)));
}

/// A label has no role and no tool, so that it once did not count with these filters. It also counted as a separate
/// entry, even after another label had replaced it.
#[test]
fn a_label_counts_for_its_entry_whatever_the_filters_are() {
    let home = Home::new();
    let log = Log::new("s")
        .user("u1", "", "The winter store")
        .assistant("a1", "u1", "Yes")
        .message("t1", "a1", tool_result("c1", "bash", "ok", false))
        .label("l1", "t1", "u1", json!("former spring store"))
        .label("l2", "l1", "u1", json!("winter store"))
        .label("l3", "l2", "t1", json!("winter cache"));
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    let mut asked = |filter: Json| {
        let mut params = json!({"query": "winter", "mode": "ask"});
        let filter = filter.as_object().unwrap().clone();
        params.as_object_mut().unwrap().extend(filter);
        let result = d.ok("search", params);
        assert!(result.get("more").is_none(), "{result}");
        let mut found = ids(&result);
        found.sort();
        (found.join(" "), result["totals"]["entries"].clone())
    };
    assert_eq!(asked(json!({})), ("t1 u1".to_owned(), json!(2)));
    assert_eq!(asked(json!({"role": "user"})), ("u1".to_owned(), json!(1)));
    assert_eq!(asked(json!({"tool": "bash"})), ("t1".to_owned(), json!(1)));
    assert_eq!(
        asked(json!({"role": "assistant"})),
        (String::new(), json!(0))
    );
    assert_eq!(asked(json!({"query": "spring"})), (String::new(), json!(0)));
}

/// Each daemon numbers its rankings from 1, so that the cursor of an earlier daemon once named a page of another
/// question. The page of a ranking was also refused for a fault in a query that it does not use.
#[test]
fn a_cursor_names_one_ranking_of_one_daemon() {
    let home = Home::new();
    for number in 0..3 {
        let id = format!("s{number}");
        store(&home, Log::new(&id).user("u1", "", "cache and lexer"), &id);
    }
    let page = |query: &str, cursor: Option<&str>| json!({"query": query, "mode": "ask", "limit": 1, "cursor": cursor});
    let mut d = Daemon::quiet_in(&home);
    let first = d.ok("search", page("cache", None));
    let cursor = first["nextCursor"].as_str().unwrap();
    let long = "many words ".repeat(40);
    for query in ["?", &long] {
        let next = d.ok("search", page(query, Some(cursor)));
        assert_eq!(next["hits"].as_array().unwrap().len(), 1, "{query}");
    }
    let many = json!({"query": "cache", "mode": "ask", "limit": 1001, "cursor": cursor});
    d.err_kind("search", many, "invalidParams");
    d.err_kind("search", page("cache", Some("ask:")), "invalidParams");
    drop(d);
    let mut d = Daemon::quiet_in(&home);
    d.ok("search", page("lexer", None));
    d.err_kind("search", page("cache", Some(cursor)), "cursorExpired");
}

/// The document once promised all entries of a session.
#[test]
fn of_one_session_the_200_best_entries_are_hits() {
    let home = Home::new();
    let mut log = Log::new("s");
    let mut above = String::new();
    for number in 0..250 {
        let id = format!("u{number}");
        log = log.user(&id, &above, "cache");
        above = id;
    }
    store(&home, log, "s");
    let mut d = Daemon::quiet_in(&home);
    let params = json!({"query": "cache", "mode": "ask", "sessionId": "s", "limit": 1000});
    let result = d.ok("search", params);
    assert_eq!(ids(&result).len(), 200);
    assert_eq!(result["totals"]["entries"], 250);
    assert_eq!(result["more"], json!([{"sessionId": "s", "count": 50}]));
}

/// The output of a tool or the thoughts of a model that repeat a word once came before the prose about it.
#[test]
fn prose_comes_before_calls_and_these_before_output_and_thinking() {
    let home = Home::new();
    let words = "falcon ".repeat(20);
    let thinks = json!([{"type": "thinking", "thinking": words}]);
    let calls = json!([tool_call("c1", "bash", json!({"command": words}))]);
    let stored = [
        ("thinking", assistant_with(thinks)),
        ("output", tool_result("c1", "bash", &words, false)),
        ("call", assistant_with(calls)),
    ];
    for (id, message) in stored {
        store(&home, Log::new(id).message(id, "", message), id);
    }
    let text = format!("{}the falcon", "Nothing but other things here. ".repeat(3));
    store(&home, Log::new("prose").user("prose", "", &text), "prose");
    let mut d = Daemon::quiet_in(&home);
    let found = ids(&ask(&mut d, "falcon"));
    assert_eq!(found[..2], ["prose", "call"], "{found:?}");
}

/// Of 60 phrases of real output, once 41 were not in the first hit: prose with the same words apart came before them, and in one session
/// more than eight entries had the words.
#[test]
fn a_question_that_is_a_phrase_of_an_entry_finds_this_entry_first() {
    let home = Home::new();
    let apart = "The stage failed: linking the archive at the second stage has failed, and the linking of cc too";
    for number in 0..4 {
        let id = format!("apart{number}");
        store(&home, Log::new(&id).user(&id, "", apart), &id);
    }
    let filler = "Nothing but other things here. ".repeat(400);
    let mut log = Log::new("output");
    for number in 0..30_u32 {
        let text = match number {
            0 => format!(
                "{filler}东京 linking with src/cc_main.rs failed {} at stage {filler}",
                "x".repeat(70)
            ),
            _ => apart.replace("cc", "src/cc_main.rs"),
        };
        let before = format!("o{}", number.max(1) - 1);
        let before = if number == 0 { "" } else { &before };
        log = log.message(
            &format!("o{number}"),
            before,
            tool_result("c1", "bash", &text, false),
        );
    }
    store(&home, log, "output");
    let mut d = Daemon::quiet_in(&home);
    for question in [
        format!(
            "东京 linking with src/cc_main.rs failed {} at stage",
            "x".repeat(70)
        ),
        "linking with src/cc_main.rs failed".to_owned(),
        "linking with src cc main".to_owned(),
    ] {
        let found = ask(&mut d, &question);
        assert_eq!(ids(&found)[0], "o0", "{question}: {found}");
    }
}

/// One entry with two of four words once came before a conversation about all of them.
#[test]
fn a_session_that_has_most_words_together_comes_before_one_strong_entry() {
    let home = Home::new();
    let strong = Log::new("strong").user("strong", "", "The heron and the otter");
    store(&home, strong, "strong");
    let whole = Log::new("whole")
        .user("w1", "", "First we saw a heron")
        .assistant("w2", "w1", "And later an otter")
        .user("w3", "w2", "It came from the marsh")
        .assistant("w4", "w3", "We stood on the bridge");
    store(&home, whole, "whole");
    let mut d = Daemon::quiet_in(&home);
    let result = ask(&mut d, "heron otter marsh bridge");
    assert_eq!(result["hits"][0]["sessionId"], "whole", "{result}");
    let result = ask(&mut d, "heron otter");
    assert_eq!(result["hits"][0]["sessionId"], "strong", "{result}");
}

#[test]
fn a_question_reports_its_progress_and_streams_no_hits() {
    let home = Home::new();
    for id in ["a", "b"] {
        store(
            &home,
            Log::new(id).user("u1", "", "Where is the parser?"),
            id,
        );
    }
    let files = home.session_files();
    let sizes = files.iter().map(|path| fs::metadata(path).unwrap().len());
    let bytes: u64 = sizes.sum();
    let mut d = Daemon::start_in(&home, &[], &[]);
    d.init(json!({"progress": {}, "searchHits": {}}));
    let id = d.send("search", json!({"query": "parser", "mode": "ask"}));
    assert_eq!(ids(&d.response(&id).unwrap()).len(), 2);
    let told = d.received("progress");
    assert!(!told.is_empty());
    for progress in told {
        let read = progress["progress"].as_f64().unwrap();
        assert!(read > 0.0 && read <= bytes as f64, "{read}");
        assert_eq!(
            (&progress["token"], &progress["total"]),
            (&id, &json!(bytes as f64))
        );
    }
    d.no_notification("search_hit");
}
