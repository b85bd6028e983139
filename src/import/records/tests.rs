use super::*;
use proptest::prelude::*;

/// The longest line in these tests, in bytes.
const LONGEST: usize = 1 << 16;

/// A piece with its own copy of the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Record(u64, String),
    Unparsable(u64, u64, Reason),
}

/// Cuts `text`, which is passed in chunks of `chunk` bytes. Returns the parts, and the end of the last one.
fn cut_in(layout: Layout, text: &[u8], chunk: usize, is_final: bool) -> (Vec<Part>, u64) {
    let mut splitter = Splitter {
        longest: LONGEST,
        ..Splitter::new(layout)
    };
    let (mut parts, mut number, mut passed) = (Vec::new(), 0, Vec::new());
    let mut take = |piece: Piece<'_>| {
        parts.push(match piece {
            Piece::Text(text) => {
                passed.extend_from_slice(text);
                return;
            }
            Piece::Record(record) => {
                assert_eq!(record.number, number);
                number += 1;
                let text = String::from_utf8_lossy(record.bytes);
                Part::Record(record.at, text.into_owned())
            }
            Piece::Unparsable(place, reason) => Part::Unparsable(place.at, place.len, reason),
        });
    };
    for chunk in text.chunks(chunk.max(1)) {
        splitter.push(chunk, &mut take);
    }
    let end = splitter.finish(is_final, &mut take);
    assert_eq!(passed, text[..end as usize]);
    let most = 16 * (text.len() as u64 + 8);
    assert!(splitter.steps() <= most, "{} steps", splitter.steps());
    (parts, end)
}

fn cut(text: &str) -> Vec<Part> {
    let (parts, end) = cut_in(Layout::Lines, text.as_bytes(), usize::MAX, true);
    assert_eq!(end, text.len() as u64);
    parts
}

fn record(at: u64, text: &str) -> Part {
    Part::Record(at, text.to_owned())
}

fn bad(at: u64, len: u64) -> Part {
    Part::Unparsable(at, len, Reason::NotJson)
}

/// Checks that every byte is either in one part, or white space.
fn check_parts(text: &[u8], parts: &[Part], end: u64) {
    let mut at = 0;
    let is_space = |from: u64, to: u64| {
        let (from, to) = (from as usize, to as usize);
        text[from..to]
            .iter()
            .all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
    };
    for part in parts {
        let (start, len) = match part {
            Part::Record(at, text) => (*at, text.len() as u64),
            Part::Unparsable(at, len, _) => (*at, *len),
        };
        assert!(len > 0 && start >= at && is_space(at, start), "{parts:?}");
        at = start + len;
        let bytes = &text[start as usize..at as usize];
        if let Part::Record(_, text) = part {
            assert_eq!(text.as_bytes(), bytes);
            assert_eq!(json::value_span(bytes), Ok(0..bytes.len()));
        }
    }
    assert!(at <= end && is_space(at, end), "{parts:?} to {end}");
}

#[test]
fn each_line_is_a_record() {
    let parts = cut("{\"a\":1}\r\n\n  [2] \n7\n\"s\"");
    let expected = [
        record(0, "{\"a\":1}"),
        record(12, "[2]"),
        record(17, "7"),
        record(19, "\"s\""),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn glued_records_are_separate() {
    let parts = cut("{\"a\":1}{\"b\":{\"c\":2}} \0{\"d\":3}\n{\"e\":4}\n");
    let expected = [
        record(0, "{\"a\":1}"),
        record(7, "{\"b\":{\"c\":2}}"),
        bad(21, 1),
        record(22, "{\"d\":3}"),
        record(30, "{\"e\":4}"),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn a_record_glued_to_a_torn_one_is_found_wherever_it_was_torn() {
    let torn = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a\"b\"{}é\n"},{"n":[1,-2.5e3,true]}]},"uuid":"x"}"#;
    let whole = r#"{"type":"summary","summary":"{\"type\":\"user\"}","list":[{"a":{"b":{}}}]}"#;
    for end in 1..torn.len() {
        let Some(torn) = torn.get(..end) else {
            continue;
        };
        let text = format!("{torn}{whole}\n");
        let parts = cut(&text);
        if torn.ends_with([':', ',', '[']) && !torn.ends_with("\",") {
            // This object is read as a part of the torn record, because no record of the source begins like this
            // object.
            continue;
        }
        let at = torn.len() as u64;
        assert_eq!(parts, [bad(0, at), record(at, whole)], "{text}");
    }
    for end in (1..torn.len()).filter(|end| torn.is_char_boundary(*end)) {
        let torn = torn.get(..end).unwrap();
        let parts = cut(&format!("{whole}\n{torn}{whole}\n"));
        let first = whole.len() as u64;
        let at = first + 1 + torn.len() as u64;
        let expected = [
            record(0, whole),
            bad(first + 1, torn.len() as u64),
            record(at, whole),
        ];
        assert_eq!(parts, expected, "{torn}");
    }
}

#[test]
fn objects_inside_a_torn_record_are_not_records() {
    let torn = r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a{}b"},{"n":[1]}]},"uuid":"x"}"#;
    for end in 1..torn.len() {
        assert_eq!(cut(&torn[..end]), [bad(0, end as u64)], "{}", &torn[..end]);
    }
    for start in 1..torn.len() {
        let rest = &torn[start..];
        let parts = cut(rest);
        assert!(
            parts
                .iter()
                .all(|part| matches!(part, Part::Unparsable(..)))
                || start == 6,
            "{rest}: {parts:?}"
        );
    }
}

#[test]
fn zeros_and_a_byte_order_mark_are_reported() {
    let parts = cut("\u{feff}{\"a\":1}\n\0\0\0{\"b\":2}\n\0\0\0\n");
    let expected = [
        bad(0, 3),
        record(3, "{\"a\":1}"),
        bad(11, 3),
        record(14, "{\"b\":2}"),
        bad(22, 3),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn the_last_line_waits_for_its_line_break() {
    let text = b"{\"a\":1}\n{\"b\":2}";
    let (parts, end) = cut_in(Layout::Lines, text, 3, false);
    assert_eq!((parts, end), (vec![record(0, "{\"a\":1}")], 8));
    let (parts, end) = cut_in(Layout::Lines, text, 3, true);
    let expected = vec![record(0, "{\"a\":1}"), record(8, "{\"b\":2}")];
    assert_eq!((parts, end), (expected, 15));
}

#[test]
fn a_document_is_one_record() {
    let text = "{\n \"a\": [\n1,\n2]}\n";
    let (parts, end) = cut_in(Layout::Document, text.as_bytes(), 4, false);
    let whole = text.trim_end();
    assert_eq!((parts, end), (vec![record(0, whole)], 17));
    let torn = &text.as_bytes()[..9];
    assert_eq!(
        cut_in(Layout::Document, torn, 4, false),
        (vec![], 0),
        "it is being written"
    );
    let (parts, end) = cut_in(Layout::Document, torn, 4, true);
    assert_eq!((parts, end), (vec![bad(0, 9)], 9));
}

/// The ending of the file name once decided how a Gemini document was read. A document over several lines with the name
/// `.jsonl` then had no record.
#[test]
fn a_source_has_lines_if_its_first_line_is_a_record() {
    let lines = "\n {\"a\":1}\n{\"b\":[\n{\"a\":2}\n";
    for chunk in [1, 3, 100] {
        let found = cut_in(Layout::Document, lines.as_bytes(), chunk, true);
        assert_eq!(found, cut_in(Layout::Lines, lines.as_bytes(), chunk, true));
        let document = "\n{\n\"a\":\n{}\n}\n";
        let (parts, _) = cut_in(Layout::Document, document.as_bytes(), chunk, false);
        assert_eq!(parts, [record(1, document.trim())]);
        // This is the first line of a file that grows.
        let (parts, end) = cut_in(Layout::Document, b"{\"a\":1", chunk, false);
        assert_eq!((parts, end), (vec![], 0));
    }
}

#[test]
fn a_record_that_is_too_deep_or_too_long_is_reported() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let (deep, flat) = (nested(257), nested(256));
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(LONGEST));
    let text = format!("{deep}\n{flat}\n{long}\n{{\"b\":2}}\n");
    let long_at = 514 + 513 + 1;
    let expected = [
        Part::Unparsable(0, 514, Reason::TooDeep),
        record(515, &flat),
        Part::Unparsable(long_at, long.len() as u64 + 1, Reason::TooLong),
        record(long_at + long.len() as u64 + 1, "{\"b\":2}"),
    ];
    for chunk in [1000, LONGEST / 2] {
        let (parts, _) = cut_in(Layout::Lines, text.as_bytes(), chunk, false);
        assert_eq!(parts, expected);
    }
}

/// A search that begins again at each brace would read a line many times.
#[test]
fn hostile_lines_take_linear_time() {
    const TIMES: usize = 5000;
    let patterns = [
        "{",
        "[",
        "[{",
        "{\"",
        "\"{",
        "{\"a\":",
        "{\"a\":{",
        "{}",
        "{ }",
        "{\"a\":1}",
        "{\"a\":1},",
        "{\"a\":[",
        "\\",
        "{\\",
        "\0",
        "{\"a\":{\"b\":1}",
        "{\"a\":1}\0",
        "\"{\":",
        "{\"{\":",
        "{\"a\":\"{\\\"",
    ];
    for pattern in patterns {
        for (front, back) in [
            ("", ""),
            ("{\"x\":", ""),
            ("{", "\"}"),
            ("", "{\"a\":1"),
            ("\"", "]"),
        ] {
            let mut text = front.as_bytes().to_vec();
            for _ in 0..TIMES {
                text.extend_from_slice(pattern.as_bytes());
            }
            text.extend_from_slice(back.as_bytes());
            let (parts, end) = cut_in(Layout::Lines, &text, 4096, true);
            check_parts(&text, &parts, end);
        }
    }
}

fn source() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("{\"type\":\"user\",\"a\":1}\n"),
        Just("{\"type\":\"user\",\"a\":{\"b\":[1,{}]}}"),
        Just("{\"a\":\"x\\\"{\\\\\"}\n"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("\""),
        Just("\\"),
        Just(":"),
        Just(","),
        Just("\n"),
        Just("\0"),
        Just(" "),
        Just("12"),
        Just("null"),
        Just("\u{e9}"),
    ];
    let torn = (prop::collection::vec(piece, 0..40), 0..8_usize);
    torn.prop_map(|(pieces, torn)| {
        let mut text = pieces.concat().into_bytes();
        text.truncate(text.len().saturating_sub(torn));
        text
    })
}

proptest! {
    #[test]
    fn every_byte_is_in_one_part_however_it_arrives(text in source(), chunk in 1..50_usize) {
        for layout in [Layout::Lines, Layout::Document] {
            let (parts, end) = cut_in(layout, &text, usize::MAX, true);
            assert_eq!(end, text.len() as u64);
            check_parts(&text, &parts, end);
            assert_eq!(cut_in(layout, &text, chunk, true), (parts.clone(), end));
            let (so_far, end) = cut_in(layout, &text, chunk, false);
            check_parts(&text, &so_far, end);
            assert!(parts.starts_with(&so_far));
        }
    }

    #[test]
    fn whole_lines_are_records_whatever_is_between_them(garbage in source()) {
        let mut text = b"\n{\"id\":\"first\"}\n".to_vec();
        text.extend_from_slice(&garbage);
        text.extend_from_slice(b"\n{\"id\":\"last\"}\n");
        let (parts, end) = cut_in(Layout::Lines, &text, 7, false);
        check_parts(&text, &parts, end);
        assert_eq!(&parts[0], &record(1, "{\"id\":\"first\"}"));
        assert_eq!(parts.last(), Some(&record(text.len() as u64 - 14, "{\"id\":\"last\"}")));
    }
}
