//! The page file: `clients/web/FORMAT.md`.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::*;

/// The chunks of a page by their names.
pub(crate) fn chunks(page: &str) -> BTreeMap<String, Json> {
    let start = "<script type=\"application/octet-stream;base64\" id=\"c-";
    let chunk = |text: &str| {
        let (name, rest) = text.split_once("\">").unwrap();
        let (packed, _) = rest.split_once("</script>").unwrap();
        let packed = STANDARD.decode(packed).unwrap();
        let size = u32::from_le_bytes(packed[packed.len() - 4..].try_into().unwrap());
        let mut json = vec![0; size as usize];
        let mut gzip = libdeflater::Decompressor::new();
        assert_eq!(gzip.gzip_decompress(&packed, &mut json), Ok(json.len()));
        (name.to_owned(), serde_json::from_slice(&json).unwrap())
    };
    page.split(start).skip(1).map(chunk).collect()
}

fn numbers(value: &Json) -> Vec<usize> {
    let numbers = value.as_array().unwrap().iter();
    numbers
        .map(|number| number.as_u64().unwrap() as usize)
        .collect()
}

#[test]
fn a_page_has_the_rows_of_each_filter() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched());
    let page = content(&mut d, json!({"format": "html"}));
    let chunks = chunks(&page);
    let rows = chunks["rows-0"].as_array().unwrap();
    for filter in ["default", "no-tools", "user-only", "labeled-only", "all"] {
        let asked = json!({"filter": filter, "order": "active-first", "render": "unicode"});
        let tree = d.ok("get_tree", asked);
        let view = &chunks[&format!("view-{filter}")];
        let (shown, nodes) = (numbers(&view["rows"]), tree["nodes"].as_array().unwrap());
        assert_eq!(shown.len(), nodes.len(), "{filter}");
        assert_eq!(view["hidden"], tree["hidden"], "{filter}");
        let prefixes = view["prefixes"].as_array().unwrap();
        for (at, node) in nodes.iter().enumerate() {
            let row = &rows[shown[at]];
            for member in [
                "id",
                "type",
                "role",
                "preview",
                "timestamp",
                "label",
                "toolName",
                "toolCall",
                "isError",
                "flags",
                "style",
            ] {
                assert_eq!(row.get(member), node.get(member), "{filter} {member}");
            }
            assert_eq!(view["depth"][at], node["depth"]);
            assert_eq!(view["indent"][at], node["indent"]);
            assert_eq!(prefixes[numbers(&view["prefix"])[at]], node["prefix"]);
            if filter == "all" {
                let parent = row["parent"].as_i64().unwrap();
                let parent = usize::try_from(parent)
                    .ok()
                    .map_or(&Json::Null, |at| &rows[at]["id"]);
                assert_eq!(*parent, node["parentId"]);
                assert_eq!(row.get("isLeaf").is_some(), node["isLeaf"] == true);
                assert_eq!(
                    row.get("onActivePath").is_some(),
                    node["onActivePath"] == true
                );
            }
        }
    }
}

#[test]
fn a_page_has_the_blocks_of_each_entry_and_the_facts_of_the_session() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched());
    let page = content(&mut d, json!({"format": "html"}));
    let chunks = chunks(&page);
    let rows = chunks["rows-0"].as_array().unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row["id"].clone()).collect();
    let rendered = d.ok("render_entries", json!({"entryIds": ids, "results": "ids"}));
    let bodies = chunks["bodies-0"].as_array().unwrap();
    assert_eq!(bodies.len(), rows.len());
    for (body, rendered) in bodies.iter().zip(rendered["entries"].as_array().unwrap()) {
        assert_eq!(body, rendered);
    }
    let call = bodies.iter().find(|body| body["entryId"] == "a1").unwrap();
    let call = call["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|block| block["kind"] == "toolCall")
        .unwrap();
    assert_eq!(
        (&call["result"]["entryId"], &call["result"]["isError"]),
        (&json!("r1"), &json!(true))
    );
    let meta = &chunks["meta"];
    assert_eq!(meta["format"], 1);
    assert_eq!(meta["session"]["sessionId"], "s1");
    assert_eq!(
        (
            &meta["leafId"],
            &rows[numbers(&json!([meta["selected"]]))[0]]["id"]
        ),
        (&json!("a2"), &json!("a2"))
    );
    assert_eq!(
        (&meta["rowCount"], &meta["rowChunks"], &meta["bodyChunks"]),
        (&json!(rows.len()), &json!(1), &json!(1))
    );
    assert_eq!(chunks["stats"]["total"]["tokens"]["input"], 12);
}

/// The sum of a number over the rows of a branch, computed from the numbers in a page.
fn sum_of(usage: &Json, member: &str, branch: &[usize]) -> f64 {
    let rows = numbers(&usage["rows"]);
    let values = usage[member].as_array().unwrap();
    assert_eq!(values.len(), rows.len(), "{member}");
    let values = rows.iter().zip(values);
    let values = values.filter(|(row, _)| branch.contains(row));
    values.map(|(_, value)| value.as_f64().unwrap()).sum()
}

/// The files of the rows of a branch, sorted.
fn files_of(files: &Json, member: &str, branch: &[usize]) -> Vec<String> {
    let pairs = files[member].as_array().unwrap().iter().map(numbers);
    let pairs = pairs.filter(|pair| branch.contains(&pair[0]));
    let mut found: Vec<String> = pairs
        .map(|pair| files["paths"][pair[1]].as_str().unwrap().to_owned())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Without these numbers the page could only show sums over all branches.
#[test]
fn a_page_has_the_usage_and_the_files_of_each_row() {
    let home = Home::new();
    let call = |tool: &str, path: &str| json!({"type": "toolCall", "id": path, "name": tool, "arguments": {"path": path}});
    let answer = |calls: Json, input: u32| {
        json!({"role": "assistant", "content": calls, "provider": "p", "model": "m",
            "usage": {"input": input, "output": 1, "cacheRead": 2, "cacheWrite": 3, "cost": {"total": 0.5}}})
    };
    let mut log = Log::new("s1")
        .user("u1", "", "begin")
        .message("a1", "u1", answer(json!([call("read", "shared.rs")]), 100))
        .message(
            "a2",
            "a1",
            answer(json!([call("edit", "one.rs"), call("read", "one.rs")]), 20),
        )
        .message("a3", "a1", answer(json!([call("write", "two.rs")]), 3))
        .entry(
            "compaction",
            "c1",
            "a3",
            json!({"summary": "s", "firstKeptEntryId": "a3", "tokensBefore": 9,
                "details": {"readFiles": ["old.rs"], "modifiedFiles": ["two.rs"]}}),
        );
    // There are more entries than fit into one chunk of bodies, so that sums combine several parts.
    let mut parent = "c1".to_owned();
    for number in 0..3000 {
        let id = format!("b{number}");
        log = log.user(&id, &parent, "more");
        parent = id;
    }
    log = log.message("a4", &parent, answer(json!([call("edit", "shared.rs")]), 4));
    let (mut d, _) = opened(&home, &log);
    let path = home.files().join("page.html");
    d.ok("export_session", json!({"format": "html", "path": path}));
    let chunks = chunks(&std::fs::read_to_string(&path).unwrap());
    assert!(chunks["meta"]["bodyChunks"].as_u64().unwrap() > 1);
    let stats = &chunks["stats"];
    let mut row_of = BTreeMap::new();
    let row_chunks = chunks["meta"]["rowChunks"].as_u64().unwrap();
    let rows = (0..row_chunks).flat_map(|chunk| {
        let rows = chunks[&format!("rows-{chunk}")].as_array().unwrap();
        rows.iter().map(|row| row["id"].as_str().unwrap())
    });
    for (number, id) in rows.enumerate() {
        row_of.insert(id, number);
    }
    let compared = d.ok("compare_branches", json!({"a": "a2", "b": "a4"}));
    for side in ["a", "b"] {
        let compared = &compared[side];
        let ids = compared["entryIds"].as_array().unwrap().iter();
        let branch: Vec<usize> = ids.map(|id| row_of[id.as_str().unwrap()]).collect();
        let usage = &stats["usage"];
        for member in ["input", "output", "cacheRead", "cacheWrite"] {
            let expected = compared["stats"]["tokens"][member].as_f64().unwrap();
            assert_eq!(sum_of(usage, member, &branch), expected, "{side} {member}");
        }
        let costs = &compared["stats"]["costs"];
        let cost = costs["recorded"].as_f64().unwrap();
        assert_eq!(sum_of(usage, "cost", &branch), cost);
        let modified = files_of(&stats["files"], "modified", &branch);
        let mut read = files_of(&stats["files"], "read", &branch);
        read.retain(|path| !modified.contains(path));
        assert_eq!(json!(modified), compared["files"]["modifiedFiles"]);
        assert_eq!(json!(read), compared["files"]["readFiles"]);
    }
    assert_eq!(numbers(&stats["usage"]["rows"]).len(), 4);
    let total = d.ok("get_stats", json!({}));
    for member in [
        "messages",
        "tokens",
        "cost",
        "costs",
        "startedAt",
        "endedAt",
        "activeMs",
    ] {
        assert_eq!(stats["total"][member], total[member], "{member}");
    }
}

#[test]
fn only_the_part_is_in_the_page_of_a_branch_or_a_subtree() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched());
    let ids = |page: &str| {
        let rows = chunks(page)["rows-0"].clone();
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let branch = content(
        &mut d,
        json!({"format": "html", "scope": "branch", "entryId": "u2"}),
    );
    assert_eq!(ids(&branch), ["u1", "a1", "u2"]);
    assert_eq!(chunks(&branch)["meta"]["leafId"], Json::Null);
    assert_eq!(chunks(&branch)["meta"]["selected"], 2);
    let leaf = content(&mut d, json!({"format": "html", "scope": "branch"}));
    assert_eq!(ids(&leaf), ["u1", "a1", "r1", "a2"]);
    let subtree = content(
        &mut d,
        json!({"format": "html", "scope": "subtree", "entryId": "u2"}),
    );
    assert_eq!(ids(&subtree), ["u2", "a3", "l1"]);
}

/// The policy of the page contains the hashes of the script and the style. With other hashes the page would not work.
#[test]
fn the_policy_allows_only_the_script_and_the_style_of_the_page() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched());
    let page = content(&mut d, json!({"format": "html"}));
    let between = |start: &str, end: &str| {
        page.split_once(start)
            .unwrap()
            .1
            .split_once(end)
            .unwrap()
            .0
            .to_owned()
    };
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let policy = between("Content-Security-Policy\" content=\"", "\"");
    let expected = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types treelined",
        hash(&between("<script>", "</script>")),
        hash(&between("<style>", "</style>"))
    );
    assert_eq!(policy, expected);
}

#[test]
fn no_text_of_a_session_is_markup_of_the_page() {
    let home = Home::new();
    let evil = "</script></title></style><img src=x onerror=alert(1)>\"'";
    let log = Log::new("s1")
        .user("u1", "", evil)
        .message(
            "a1",
            "u1",
            json!({"role": evil, "content": [{"type": "text", "text": evil}], "model": evil}),
        )
        .entry(
            "custom_message",
            "m1",
            "a1",
            json!({"customType": evil, "content": evil, "display": true}),
        )
        .entry(evil, "x1", "m1", json!({"a": evil}))
        .label("l1", "x1", "u1", json!(evil))
        .entry("session_info", "n1", "l1", json!({"name": evil}));
    let (mut d, _) = opened(&home, &log);
    let page = content(&mut d, json!({"format": "html"}));
    assert!(!page.contains("<img"), "{page}");
    assert_eq!(page.matches("</title>").count(), 1);
    assert_eq!(
        page.matches("<script").count(),
        page.matches("</script>").count()
    );
    assert_eq!(chunks(&page)["meta"]["session"]["name"], evil);
}

#[test]
fn without_script_the_last_messages_are_readable() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &branched());
    let page = content(&mut d, json!({"format": "html"}));
    let shown = page
        .split_once("<div id=\"static\">")
        .unwrap()
        .1
        .split_once("</div>")
        .unwrap()
        .0;
    assert!(
        shown.contains("<strong>it</strong>") && shown.contains("An import is missing."),
        "{shown}"
    );
    assert!(
        !shown.contains("3 failed") && !shown.contains("Yes."),
        "{shown}"
    );
    let mut log = Log::new("s2").user("u0", "", "first");
    for number in 1..60 {
        let text = format!("message {number} {}", "word ".repeat(8000));
        log = log.user(&format!("u{number}"), &format!("u{}", number - 1), &text);
    }
    let mut d = daemon(&home);
    d.open(&home.file("long.jsonl", log.text().as_bytes()));
    let page = content(&mut d, json!({"format": "html"}));
    let shown = page
        .split_once("<div id=\"static\">")
        .unwrap()
        .1
        .split_once("</div>")
        .unwrap()
        .0;
    let size = "<div id=\"static\">".len() + shown.len() + "</div>\n".len();
    assert!((900_000..=1_000_000).contains(&size), "{size}");
    assert!(shown.contains("message 59") && !shown.contains("message 20 "));
    assert!(shown.contains("earlier messages are left out"));
}

/// Rows and bodies of a session with several chunks of each are complete and in order.
#[test]
fn a_large_session_has_all_rows_and_bodies_in_several_chunks() {
    let home = Home::new();
    let mut log = Log::new("s1").user("u0", "", "begins");
    for number in 1..9000 {
        log = log.user(
            &format!("u{number}"),
            &format!("u{}", number - 1),
            &format!("text {number}"),
        );
    }
    let (mut d, _) = opened(&home, &log);
    let chunks = chunks(&content(&mut d, json!({"format": "html"})));
    let meta = &chunks["meta"];
    assert_eq!(
        (&meta["rowCount"], &meta["rowChunks"]),
        (&json!(9000), &json!(3))
    );
    let mut number = 0;
    for chunk in 0..3 {
        for row in chunks[&format!("rows-{chunk}")].as_array().unwrap() {
            assert_eq!(row["id"], format!("u{number}"));
            let body = &chunks[&format!("bodies-{}", row["body"])];
            let has_it = |body: &Json| {
                body.as_array()
                    .unwrap()
                    .iter()
                    .any(|entry| entry["entryId"] == row["id"])
            };
            if number % 500 == 0 {
                assert!(has_it(body), "{row}");
            }
            number += 1;
        }
    }
    assert_eq!(number, 9000);
    assert!(meta["bodyChunks"].as_u64().unwrap() > 2);
}
