use super::*;
use crate::log::append::TryLock;
use crate::log::repair::repair;
use crate::log::state::{Log, OpenedLog};
use crate::log::whole::SessionLines;
use crate::os::file::Location;
use proptest::prelude::*;

fn entry(id: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z","message":{{"role":"user","content":[{{"type":"text","text":"x"}}]}}}}"#
    )
}

/// The ids of the whole entries, in order.
fn ids(text: &[u8], version: Option<u64>) -> Vec<String> {
    let pieces = recover(text, version).pieces.into_iter();
    let whole = pieces.filter(|piece| piece.whole);
    whole
        .filter_map(|piece| match scan::scan_line(text.get(piece.span)?) {
            Ok(Line::Entry(entry)) => Some(entry.id?.into_owned()),
            _ => None,
        })
        .collect()
}

/// Every whole entry is found after any text. A torn line with 63 or more objects that begin like an entry once hid the
/// whole entry after it, because the number of attempts was limited.
#[test]
fn every_whole_entry_is_found_behind_any_damage() {
    let (a, b) = (entry("a"), entry("b"));
    let cut = |at: &str| a.get(..a.find(at).unwrap()).unwrap().to_owned();
    let torn = [
        cut("\"2025"),
        cut("2025"),
        cut("user"),
        cut("{\"type\":\"text\""),
        cut("\"x\""),
        cut("}]}"),
        r#"{"type":"x","content":["#.to_owned() + &r#"{"type":"text","text":"t"},"#.repeat(500),
        r#"{"type":"#.repeat(100),
        r#"{"a{"#.to_owned(),
        r#"["x{",":",",","#.to_owned(),
        "{".repeat(1000),
        "\0\0garbage \\\" \u{1}".to_owned(),
        "42".to_owned(),
        "\"open".to_owned(),
        "[1,".to_owned(),
    ];
    for torn in &torn {
        for version in [2, 3, 9] {
            let line = format!("{torn}{b}");
            assert_eq!(ids(line.as_bytes(), Some(version)), ["b"], "{torn}");
            let line = format!("{b}{torn}{}{torn}", entry("c"));
            assert_eq!(ids(line.as_bytes(), Some(version)), ["b", "c"], "{torn}");
        }
    }
    // The members of an entry may be in any order.
    let odd = r#"{"timestamp":"t","parentId":"p","id":"o","message":{"type":1},"type":"label"}"#;
    assert_eq!(ids(format!("{{\"x{odd}").as_bytes(), Some(3)), ["o"]);
    // An object inside a damaged entry is an entry only if it has all members of an entry.
    assert!(
        ids(
            br#"{"a":{"type":"message","id":"i","parentId":1,"timestamp":"t"}"#,
            Some(3)
        )
        .is_empty()
    );
}

#[test]
fn before_a_header_the_first_whole_one_counts() {
    let header = r#"{"type":"session","version":3,"id":"s","x":{"type":"session","id":"inner"}}"#;
    for before in [
        "",
        "\0\0\0",
        "garbage",
        "{\"type\":\"session\",\"id\":\"t",
        "[{",
        "\"",
    ] {
        let line = format!("{before}{header}{}garbage", entry("a"));
        let whole: Vec<LinePart> = recover(line.as_bytes(), None).pieces;
        let whole: Vec<&str> = whole
            .iter()
            .filter(|piece| piece.whole)
            .map(|piece| &line[piece.span.clone()])
            .collect();
        assert_eq!(whole, [header, &entry("a")], "{before}");
    }
    // Entries of version 1 have no ids.
    let old = r#"{"type":"session","id":"s"}{"type":"mess{"type":"message","timestamp":"t","message":{}}"#;
    let whole = recover(old.as_bytes(), None).pieces;
    assert_eq!(whole.iter().filter(|piece| piece.whole).count(), 2);
}

/// Torn pieces may precede the header on its line. Opening the file once did not read them, but migration wrote each to
/// a separate line, where its whole entries were found. The migrated session then had more entries, or another copy of
/// an entry came first, with another parent.
#[test]
fn an_entry_torn_in_front_of_the_header_is_read_by_opening_migrating_repairing_and_copying() {
    let header = |version: u64| {
        format!(
            r#"{{"type":"session","version":{version},"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}}"#
        )
    };
    let below = |id: &str, parent: &str| {
        entry(id).replace("\"parentId\":null", &format!("\"parentId\":{parent}"))
    };
    let (b, c) = (below("b", "\"a\""), below("c", "\"b\""));
    for version in [1, 2, 3] {
        // The second text has a later copy of `a` with another parent. The first copy counts.
        for again in [String::new(), below("a", "\"c\"") + "\n"] {
            let text = format!(
                "1e999{{\"torn{}{{\"torn{}\0{}\n{again}{c}\n",
                entry("a"),
                header(version),
                b
            );
            let folder = tempfile::tempdir().unwrap();
            let at = Location::of_path(&folder.path().join("s.jsonl")).unwrap();
            std::fs::write(at.path(), &text).unwrap();
            let mut opened = Log::open(at.clone()).unwrap();
            let expected = ["a below -", "b below a", "c below b"];
            assert_eq!(links(&opened), expected, "{text}");

            let copied = at.beside(".copy");
            let whole = SessionLines::prepare(&opened.log, &opened.tree, Vec::new()).unwrap();
            let header_line = header(3).into_bytes();
            let copied = whole.to_file(copied, &header_line).unwrap();
            assert_eq!(links(&copied), expected, "{text}");

            if version < 3 {
                let TryLock::Locked(lock) = opened.log.try_lock().unwrap() else {
                    panic!("nobody else has the file");
                };
                opened.log.rewrite(&lock, &opened.tree).unwrap();
            } else {
                let report = repair(&at, false).unwrap();
                assert_eq!((report.lines, report.recovered), (1, 2));
            }
            let mended = Log::open(at).unwrap();
            assert_eq!(links(&mended), expected, "{text}");
            assert_eq!(mended.log.version(), 3);
        }
    }
}

fn links(opened: &OpenedLog) -> Vec<String> {
    let tree = &opened.tree;
    let parent = |node| tree.parent(node).map_or("-", |parent| tree.id(parent));
    tree.entries()
        .map(|node| format!("{} below {}", tree.id(node), parent(node)))
        .collect()
}

/// Pieces of damaged lines that make a recovery with repeated attempts slow.
const UNITS: [&str; 20] = [
    "{\"type\":",
    "{\"a\":",
    "{\"a{",
    "{\"",
    "{",
    "[",
    "[{\"a\":1},",
    "{\"a\":[",
    "\"{\",",
    "\",\",\":\",",
    "x{\",\":\",",
    "\\\"{",
    "\\\\\"{",
    "1,",
    "\0",
    "}{",
    "{}",
    "{\"type\":\"x\",\"timestamp\":\"t\",\"a\":",
    "{\"type\":\"m\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"t\"}",
    "{\"type\":\"session\",\"id\":\"a\"",
];

/// A damaged line of 0.2 MB once took 7.8 s, and a line of 0.9 MB more than 100 s. The number of bytes read must be
/// linear in the length of the line: at most this factor for any line, and twice as many for a line of twice the
/// length.
const MOST_STEPS: u64 = 12;

#[track_caller]
fn is_linear(text: &[u8]) {
    for version in [None, Some(1), Some(3)] {
        let steps = recover(text, version).steps;
        let most = MOST_STEPS * (text.len() as u64 + 8);
        assert!(
            steps <= most,
            "{steps} steps for {} bytes: {:?}",
            text.len(),
            String::from_utf8_lossy(text.get(..200).unwrap_or(text))
        );
    }
}

#[test]
fn steps_double_at_most_when_a_line_of_any_pattern_does() {
    for first in UNITS {
        for second in UNITS {
            for after in ["", "\"", "]"] {
                let in_turn = |count: usize| format!("{first}{second}").repeat(count) + after;
                let in_a_row = |count: usize| {
                    format!("{}{after}{}", first.repeat(count), second.repeat(count))
                };
                for line in [in_turn(64), in_turn(128), in_a_row(64), in_a_row(128)] {
                    is_linear(line.as_bytes());
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn steps_are_linear_in_any_line(
        units in prop::collection::vec(prop::sample::select(UNITS.to_vec()), 1..40),
        repeats in 1usize..30,
    ) {
        is_linear(units.concat().repeat(repeats).as_bytes());
    }

    /// The pieces cover the line in order, and whole values are JSON.
    #[test]
    fn pieces_cover_the_line(units in prop::collection::vec(prop::sample::select(UNITS.to_vec()), 0..60)) {
        let text = units.concat();
        let mut end = 0;
        for piece in recover(text.as_bytes(), Some(3)).pieces {
            let between = &text[end..piece.span.start];
            prop_assert!(between.bytes().all(|byte| b" \t\r\0".contains(&byte)));
            prop_assert!(!piece.span.is_empty());
            prop_assert!(!piece.whole || json::value_span(text[piece.span.clone()].as_bytes()).is_ok());
            end = piece.span.end;
        }
        prop_assert!(text[end..].bytes().all(|byte| b" \t\r\0".contains(&byte)));
    }
}
