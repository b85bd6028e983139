//! Many ids, pages, and entries that do not fit.

use super::*;

/// A session with this number of user messages, each below the one before.
fn long(entries: usize) -> Log {
    let mut log = Log::new("s1");
    for at in 0..entries {
        let parent = match at {
            0 => String::new(),
            at => format!("u{}", at - 1),
        };
        log = log.user(&format!("u{at}"), &parent, &format!("text *{at}*"));
    }
    log
}

fn all_ids(entries: usize) -> Vec<String> {
    (0..entries).map(|at| format!("u{at}")).collect()
}

#[test]
fn many_ids_are_rendered_and_too_many_refused() {
    let mut d = opened(&long(10_000));
    let mut ids = all_ids(10_000);
    let result = d.ok("render_entries", json!({"entryIds": ids}));
    let entries = result["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 10_000);
    for (at, entry) in entries.iter().enumerate() {
        assert_eq!(entry["entryId"], format!("u{at}"));
        assert_eq!(
            entry["blocks"][0]["html"],
            format!("<p>text <em>{at}</em></p>")
        );
    }
    ids.push("u0".to_owned());
    let error = d.err_kind("render_entries", json!({"entryIds": ids}), "invalidParams");
    assert!(
        error.message.contains("at most") || error.message.contains("10000"),
        "{}",
        error.message
    );
}

#[test]
fn a_page_ends_between_entries_and_the_rest_follows() {
    let mut d = opened(&long(1000));
    let ids = all_ids(1000);
    let mut found = Vec::new();
    let mut pages = 0;
    while found.len() < ids.len() {
        let rest = &ids[found.len()..];
        let page = d.ok(
            "render_entries",
            json!({"entryIds": rest, "maxBytes": 16_384}),
        );
        let entries = page["entries"].as_array().unwrap();
        assert!(page["entries"].to_string().len() <= 16_384);
        let next = page
            .get("nextIndex")
            .map_or(rest.len(), |next| next.as_u64().unwrap() as usize);
        assert_eq!(next, entries.len());
        found.extend(
            entries
                .iter()
                .map(|entry| entry["entryId"].as_str().unwrap().to_owned()),
        );
        pages += 1;
    }
    assert_eq!(found, ids);
    assert!(pages > 5, "{pages}");
    let little = json!({"entryIds": ["u0"], "maxBytes": 4095});
    d.err_kind("render_entries", little, "invalidParams");
}

/// Entries after an entry above the limit were once on no page.
#[test]
fn entries_over_the_limit_are_cut_and_the_next_ones_follow() {
    let big = "x\n".repeat(100_000);
    let log = Log::new("s1")
        .message("r1", "", tool_result("k", "bash", &big, false))
        .message("r2", "r1", tool_result("l", "bash", &big, false))
        .user("u1", "r2", "end");
    let mut d = opened(&log);
    let params = json!({"entryIds": ["r1", "nobody", "r2", "u1"], "maxBytes": 8192});
    let page = d.ok("render_entries", params);
    assert_eq!(
        (&page["nextIndex"], &page["missing"]),
        (&json!(2), &json!(["nobody"]))
    );
    let block = &page["entries"][0]["blocks"][0];
    let left = block["text"].as_str().unwrap().len() as u64;
    assert_eq!(
        left + block["truncated"].as_u64().unwrap(),
        big.len() as u64
    );
    assert!(page["entries"].to_string().len() <= 8192 + 1024);
    let page = d.ok(
        "render_entries",
        json!({"entryIds": ["r2", "u1"], "maxBytes": 8192}),
    );
    assert!(page["entries"][0]["blocks"][0]["truncated"].is_u64());
    // The remaining space is enough for a short entry.
    assert_eq!(page["entries"][1]["blocks"][0]["html"], "<p>end</p>");
}

/// A response must fit into the frames of a client that accepts only short frames.
#[test]
fn an_answer_fits_into_the_frame_of_the_client() {
    let home = Home::new();
    let calls: Vec<Json> = (0..200)
        .map(|at| {
            tool_call(
                &format!("k{at}"),
                "bash",
                json!({"command": "\u{1}".repeat(500)}),
            )
        })
        .collect();
    let path = Log::new("s1")
        .message("a1", "", assistant_with(json!(calls)))
        .save(&home);
    let mut d = Daemon::quiet_in(&home);
    d.init(json!({"maxFrameBytes": 65_536}));
    d.open(&path);
    let id = d.send("render_entries", json!({"entryIds": ["a1"]}));
    let text = d.response_text(&id);
    assert!(text.len() <= 65_536, "{}", text.len());
    assert!(text.contains("omittedBlocks"), "{text:.200}");
}
