//! Damaged session files open under their id. They can be appended to, migrated and repaired, and no complete entry is
//! lost. session-file.md §2.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::harness::*;

const TIME: &str = "\"timestamp\":\"2025-01-01T00:00:00.000Z\"";

fn header(version: u64) -> String {
    format!(r#"{{"type":"session","version":{version},"id":"damaged",{TIME},"cwd":"/p"}}"#)
}

fn line(id: &str, parent: Option<&str>) -> String {
    let parent = parent.map_or("null".to_owned(), |id| format!("\"{id}\""));
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},{TIME},"message":{{"role":"user","content":"{id}"}}}}"#
    )
}

/// Two entries, without ids in version 1.
fn entries(version: u64) -> Vec<String> {
    let old = |text: &str| {
        format!(r#"{{"type":"message",{TIME},"message":{{"role":"user","content":"{text}"}}}}"#)
    };
    match version {
        1 => vec![old("a"), old("b")],
        _ => vec![line("a", None), line("b", Some("a"))],
    }
}

/// Files whose header line is damaged, each with the name of the damage.
fn damaged_headers(version: u64) -> Vec<(&'static str, String)> {
    let (header, entries) = (header(version), entries(version));
    let rest = entries.join("\n");
    vec![
        ("garbage behind it", format!("{header} garbage\n{rest}\n")),
        (
            "garbage before it",
            format!("garbage {{\"{header}\n{rest}\n"),
        ),
        (
            "bytes of zero before it",
            format!("{}{header}\n{rest}\n", "\0".repeat(64)),
        ),
        ("an entry glued to it", format!("{header}{rest}\n")),
        (
            "carriage returns only",
            format!("{header}\r{}\r", entries.join("\r")),
        ),
    ]
}

fn texts(d: &mut Daemon) -> Vec<String> {
    let entries = d.ok("get_entries", json!({}))["entries"].clone();
    let text = |entry: &Json| entry["message"]["content"].as_str().unwrap().to_owned();
    entries.as_array().unwrap().iter().map(text).collect()
}

/// A file of version 1 or 2 with a damaged header once overflowed the stack at the first write and in `migrate`, since
/// the migrated file still had the old version. The list showed such files under an id that could not be opened.
#[test]
fn a_session_with_a_damaged_header_line_opens_by_its_id_and_is_written_to() {
    for version in [1, 2, 3] {
        for (damage, text) in damaged_headers(version) {
            let home = Home::new();
            let path = home.sessions().join("s.jsonl");
            fs::write(&path, &text).unwrap();
            let mut d = Daemon::quiet_in(&home);
            let rows = d.ok("list_sessions", json!({}))["sessions"].clone();
            assert_eq!(
                rows[0]["sessionId"], "damaged",
                "{damage}, version {version}"
            );
            assert!(rows[0].get("diagnostic").is_none(), "{damage}");
            d.ok("open_session", json!({"sessionId": "damaged"}));
            assert_eq!(texts(&mut d), ["a", "b"], "{damage}, version {version}");
            let ids = d.ids();
            d.user("new", "c");
            assert_eq!(
                texts(&mut d),
                ["a", "b", "c"],
                "{damage}, version {version}"
            );
            d.ok("close_session", json!({}));
            let opened = d.ok("open_session", json!({"sessionId": "damaged"}));
            assert_eq!(opened["session"]["sessionId"], "damaged");
            assert_eq!(d.ids()[..2], ids[..], "{damage}, version {version}");
            let stored = fs::read_to_string(&path).unwrap();
            assert!(version == 3 || stored.starts_with("{\"type\":\"session\",\"version\":3"));
        }
    }
}

#[test]
fn the_command_migrates_a_file_with_a_damaged_header_line() {
    for version in [1, 2] {
        for (damage, text) in damaged_headers(version) {
            let home = Home::new();
            let path = home.file("s.jsonl", text.as_bytes());
            home.run(&["migrate", path.to_str().unwrap()], &[], "")
                .clean();
            let mut d = Daemon::quiet_in(&home);
            let session = d.open(&path)["session"].clone();
            assert_eq!(session["sessionId"], "damaged", "{damage}");
            assert_eq!(texts(&mut d), ["a", "b"], "{damage}, version {version}");
        }
    }
}

/// `doctor --repair` once removed a damaged header, reported the file as sound, and left a file that no daemon could
/// open.
#[test]
fn repairing_a_file_with_a_damaged_header_line_keeps_the_header() {
    for (damage, text) in damaged_headers(3) {
        let home = Home::new();
        let path = home.file("s.jsonl", text.as_bytes());
        let output = home.run(&["doctor", "--repair", path.to_str().unwrap()], &[], "");
        assert!(output.clean().text().contains("1 sound"), "{damage}");
        let repaired = fs::read_to_string(&path).unwrap();
        assert_eq!(
            repaired,
            format!("{}\n{}\n", header(3), entries(3).join("\n")),
            "{damage}"
        );
    }
}

/// `migrate` once never ended for a version 1 or 2 file with an incomplete last line, since it took this line for one
/// that had just arrived.
#[test]
fn migrating_a_file_with_a_torn_tail_ends() {
    for version in [1, 2] {
        let home = Home::new();
        let entries = entries(version);
        let torn = entries[0].get(..40).unwrap();
        let text = format!("{}\n{}\n{torn}", header(version), entries.join("\n"));
        let path = home.file("s.jsonl", text.as_bytes());
        let mut child = home
            .command(&["migrate", path.to_str().unwrap()], &[])
            .spawn()
            .unwrap();
        assert_eq!(wait(&mut child, DEADLINE), Some(0), "version {version}");
        assert_eq!(file_lines_that_are_json(&path), 3, "version {version}");
        assert!(
            fs::read_to_string(&path).unwrap().contains(torn),
            "nothing is dropped"
        );
    }
}

fn file_lines_that_are_json(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| parse(line).is_ok()).count()
}

/// An incomplete line with 63 or more objects once hid the entry after it on the same line. Later entries became
/// orphans, and a repair removed the hidden entry.
#[test]
fn an_entry_glued_behind_a_torn_line_is_found_and_survives_repair() {
    let home = Home::new();
    let torn = format!(
        r#"{{"type":"message","content":[{}"#,
        r#"{"type":"text"},"#.repeat(5_000)
    );
    let text = format!(
        "{}\n{torn}{}\n{}\n",
        header(3),
        line("a", None),
        line("b", Some("a"))
    );
    let path = home.file("s.jsonl", text.as_bytes());
    let mut d = Daemon::quiet_in(&home);
    let opened = d.open(&path);
    let kinds: Vec<&str> = opened["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["invalidJson"], "no orphans");
    assert_eq!(d.path_ids(None), ["a", "b"]);
    d.stop();
    home.run(&["doctor", "--repair", path.to_str().unwrap()], &[], "")
        .clean();
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(d.open(&path)["diagnostics"], json!([]));
    assert_eq!(d.path_ids(None), ["a", "b"]);
}

/// oh-my-pi writes the title on the first line of the file, which it rewrites in place, and into the header. The
/// session has this title until an entry names it.
#[test]
fn a_title_line_before_the_header_and_a_title_in_it_name_the_session() {
    let slot = |title: &str| {
        format!(
            r#"{{"type":"title","v":1,"title":"{title}","source":"auto","updatedAt":"2025-01-01T00:00:00.000Z","pad":"   "}}"#
        )
    };
    let titled =
        |title: &str| header(3).replace("\"cwd\"", &format!("\"title\":\"{title}\",\"cwd\""));
    let rest = entries(3).join("\n");
    for (text, name) in [
        (
            format!("{}\n{}\n{rest}\n", slot("newest"), titled("older")),
            json!("newest"),
        ),
        (
            format!("{}\n{}\n{rest}\n", slot(""), titled("header's")),
            json!("header's"),
        ),
        (
            format!("{}\n{rest}\n", titled(" header's ")),
            json!("header's"),
        ),
        (format!("{}\n{rest}\n", titled("")), Json::Null),
    ] {
        let home = Home::new();
        let path = home.sessions().join("s.jsonl");
        fs::write(&path, &text).unwrap();
        let mut d = Daemon::quiet_in(&home);
        let rows = d.ok("list_sessions", json!({}))["sessions"].clone();
        assert_eq!(
            rows[0].get("name").cloned().unwrap_or_default(),
            name,
            "{text}"
        );
        assert_eq!(rows[0]["sessionId"], "damaged");
        let opened = d.ok("open_session", json!({"sessionId": "damaged"}));
        assert_eq!(opened["diagnostics"], json!([]));
        assert_eq!(
            opened["session"].get("name").cloned().unwrap_or_default(),
            name
        );
        d.user("new", "c");
        d.ok("set_session_name", json!({"name": "mine"}));
        assert!(fs::read_to_string(&path).unwrap().starts_with(&text));
        d.ok("close_session", json!({}));
        let opened = d.ok("open_session", json!({"sessionId": "damaged"}));
        assert_eq!(opened["session"]["name"], "mine");
    }
}

/// Ids that differ only in a lone surrogate were once read as the same id, with U+FFFD, so the second entry replaced
/// the first. Now they are two entries, and each is found by its stored id and by its shown id.
#[test]
fn ids_with_different_lone_surrogates_are_different_entries() {
    let home = Home::new();
    let text = format!(
        "{}\n{}\n{}\n{}\n",
        header(3),
        line("\\ud800", None),
        line("\\uDBFF", Some("\\ud800")),
        line("b\\udfff\\n", Some("\\udbff")),
    );
    let path = home.file("s.jsonl", text.as_bytes());
    let mut d = Daemon::quiet_in(&home);
    assert_eq!(d.open(&path)["diagnostics"], json!([]));
    let leaf = d.leaf();
    assert_eq!(leaf, json!("b\u{fffd}dfff\n"));
    for (stored, shown) in [
        ("\\ud800", "\u{fffd}d800"),
        ("\\udbff", "\u{fffd}dbff"),
        ("b\\udfff\\u000a", "b\u{fffd}dfff\n"),
    ] {
        let id = d.send_text("get_path", &format!(r#"{{"entryId":"{stored}"}}"#));
        let by_stored = d.response_text(&id);
        let id = d.send("get_path", json!({"entryId": shown}));
        let by_shown = d.response_text(&id);
        let entries = |text: &str| text[text.find("\"result\"").unwrap()..].to_owned();
        assert_eq!(entries(&by_stored), entries(&by_shown), "{stored}");
    }
    let id = d.send_text("set_leaf", r#"{"leafId":"\uD800"}"#);
    d.response(&id).unwrap();
    assert_eq!(d.leaf(), json!("\u{fffd}d800"));
}

/// To open a sparse file of 200 GB the daemon once read every byte of the hole. Other requests waited, and a signal
/// took 8 s to end the daemon.
#[test]
fn a_sparse_file_of_200_gb_opens_without_reading_the_hole() {
    let home = Home::new();
    let path = home.file(
        "s.jsonl",
        format!("{}\n{}\n", header(3), entries(3).join("\n")).as_bytes(),
    );
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    if file.set_len(200 << 30).is_err() {
        return skip(
            Needs::Faults,
            "the file system cannot hold a file of 200 GB",
        );
    }
    file.write_all(format!("\n{}\n", line("last", Some("b"))).as_bytes())
        .unwrap();
    let began = Instant::now();
    let mut d = Daemon::quiet_in(&home);
    let opened = d.open(&path);
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(opened["diagnostics"][0]["kind"], "oversizedLine");
    assert_eq!(d.path_ids(None), ["a", "b", "last"]);
}
