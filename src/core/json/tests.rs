//! Compares the module with serde_json and with a naive reader, and tests unusual texts one by one.

use super::*;
use crate::test_support::random::Random;
use serde::de::IgnoredAny;
use std::borrow::Cow;

/// Whether serde_json accepts the text. If serde_json skips a value, it follows the same grammar, without limits and
/// without checks of Unicode.
fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

const ENTRY: &str = r#" {"type" : "message","id":"a1","parentId":null,"n":[-0.5e+3,0,1E9,[],{ },[{}]],
	"message":{"role":"user","content":"a \"quoted\" \\ line\n\u00e9\ud83d\ude00 é 😀 \/\b\f\r\t"},"t":true,"f":[false,null] } "#;

#[test]
    #[rustfmt::skip]
    fn accepts_what_json_parse_accepts() {
        for text in [
            "0", "-0", "-0.0e-0", "1e400", "123456789012345678901234567890", "1.5E+7", "true",
            "false", "null", "\"\"", r#""\ud800""#, r#""\udc00\ud800x""#, r#""\u00AF""#, "[]", "{}",
            " [ ] ", "\t\r\n{\n}\r", r#"{"a":1,"a":2,"":3}"#, r#"{"\u0069d":[{"x":{}}]}"#,
            "\"\u{7f}\u{2028}\u{feff}\"", r#"[1,[2,[3,{"a":[4]}]],5]"#, ENTRY,
        ] {
            let span = value_span(text.as_bytes()).unwrap();
            assert_eq!(text[span].trim(), text.trim());
            assert!(is_json(text.as_bytes()), "{text}");
        }
    }

#[test]
    #[rustfmt::skip]
    fn says_where_a_text_stops_being_json() {
        for (text, at) in [
            ("", 0), ("  ", 2), ("01", 1), ("+1", 0), (".5", 0), ("-", 1), ("1.", 2), ("1e", 2),
            ("1e+", 3), ("1.e1", 2), ("NaN", 0), ("nul", 3), ("truE", 3), ("truex", 4), ("1 2", 2), ("'a'", 0),
            ("\"a", 2), ("\"\\", 2), ("\"\\x\"", 2), ("\"\\u12g4\"", 5), ("\"\t\"", 1), ("\"\0\"", 1),
            ("\"0123456789abcdef\n\"", 17), ("\"\\n012345678\n\"", 12), ("[", 1), ("[1", 2), ("[1,]", 3), ("[,1]", 1), ("[1 2]", 3),
            ("[1}", 2), ("{\"a\":1]", 6), ("{", 1), ("{\"a\"", 4), ("{\"a\":", 5), ("{\"a\" 1}", 5), ("{\"a\":1,}", 7),
            ("{a:1}", 1), ("{1:1}", 1), ("{,}", 1), ("{\"a\":1 \"b\":2}", 7), ("]", 0), ("{}}", 2), ("\u{feff}{}", 0),
            ("\u{a0}1", 0), ("[1]\u{c}", 3), ("// c\n1", 0),
        ] {
            assert_eq!(value_span(text.as_bytes()), Err(Malformed { at }), "{text:?}");
            assert!(!is_json(text.as_bytes()), "{text:?}");
        }
    }

#[test]
fn refuses_a_text_torn_at_any_byte() {
    let text = ENTRY.trim().as_bytes();
    for end in 0..text.len() {
        let at = value_span(&text[..end]).unwrap_err().at;
        assert!(at <= end, "{end}");
    }
}

/// The string grammar, one byte at a time: the position after the literal, or the position of the first fault.
fn naive_string(text: &[u8]) -> Result<usize, usize> {
    let byte = |at: usize| text.get(at).copied().unwrap_or(0);
    let mut at = 1;
    loop {
        at += match (byte(at), byte(at + 1)) {
            (b'"', _) => return Ok(at + 1),
            (b'\\', b'u') => match (2..6).find(|n| !byte(at + n).is_ascii_hexdigit()) {
                Some(bad) => return Err(at + bad),
                None => 6,
            },
            (b'\\', next) if b"\"\\/bfnrt".contains(&next) => 2,
            (b'\\', _) => return Err(at + 1),
            (0..0x20, _) => return Err(at),
            _ => 1,
        }
    }
}

#[track_caller]
fn check_string(text: &[u8]) {
    let expected = naive_string(text).map_err(|at| Malformed { at });
    let shown = String::from_utf8_lossy(text);
    assert_eq!(skip_value(text, 0), expected, "{shown:?}");
    let end = expected.unwrap_or(0);
    let decoded = text.get(..end).and_then(string);
    assert_eq!(decoded.is_some(), expected.is_ok(), "{shown:?}");
    if let Some(decoded) = decoded {
        assert!(chars(text).eq(decoded.chars()), "{shown:?}");
        let escaped = text[..end].contains(&b'\\');
        let invalid = str::from_utf8(&text[..end]).is_err();
        assert_eq!(
            matches!(decoded, Cow::Owned(_)),
            escaped || invalid,
            "{shown:?}"
        );
        if let Ok(theirs) = serde_json::from_slice::<String>(&text[..end]) {
            assert_eq!(decoded, theirs);
        }
    }
}

#[test]
fn sees_every_byte_at_every_place_of_a_string() {
    for (start, byte) in ["\"", "\"\\t"]
        .into_iter()
        .flat_map(|s| (0..=255).map(move |b| (s, b)))
    {
        for (before, after) in (0..20).flat_map(|a| [0, 1, 20].map(|b| (a, b))) {
            let filler = |length| std::iter::repeat_n(b'#', length);
            let mut text = start.as_bytes().to_vec();
            text.extend(
                filler(before)
                    .chain([byte])
                    .chain(filler(after))
                    .chain(*b"\","),
            );
            check_string(&text);
        }
    }
}

#[test]
fn passes_and_decodes_strings_like_a_naive_reader() {
    let mut random = Random(0x5eed);
    let parts = [
        "a",
        "bcdefghi",
        " ",
        "é",
        "😀",
        "\u{2028}",
        "\\n",
        "\\t",
        "\\\"",
        "\\\\",
        "\\/",
        "\\b",
        "\\u00e9",
        "\\uD83D\\uDe00",
        "\\ud83d",
        "\\ude00",
        "#]!",
        "\u{ff}",
    ];
    let bad = ["\"", "\\", "\u{1}", "\n", "\\x", "\\u12", "\\u+123"];
    for _ in 0..60_000 {
        let mut text = String::from("\"");
        for _ in 0..random.below(24) {
            text += if random.below(40) == 0 {
                random.pick(&bad)
            } else {
                random.pick(&parts)
            };
        }
        text += "\"";
        check_string(text.as_bytes());
    }
}

#[test]
fn plain_words_are_those_a_plain_loop_finds() {
    let naive = |text: &[u8]| {
        let mut end = 0;
        for (at, byte) in text.iter().enumerate() {
            let double = *byte == b' ' && (at == 0 || text[at - 1] == b' ');
            if !(b' '..=b'~').contains(byte) || matches!(byte, b'"' | b'\\') || double {
                break;
            }
            end = at + 1;
        }
        end - usize::from(end > 0 && text[end - 1] == b' ')
    };
    for other in 0..=u8::MAX {
        for at in 0..34 {
            for words in [&b"a few words and then many more, really"[..], &[b'x'; 40]] {
                let mut text = words.to_vec();
                text[at] = other;
                assert_eq!(plain_words(&text), naive(&text), "{text:?}");
                assert_eq!(plain_words(&text[..=at]), naive(&text[..=at]), "{text:?}");
            }
        }
    }
    assert_eq!(plain_words(b""), 0);
    assert_eq!(plain_words(b" a"), 0);
}

#[test]
fn decodes_strings_javascript_can_hold_and_rust_cannot() {
    for (raw, decoded) in [
        (r#""\ud800""#, "\u{fffd}"),
        (r#""\udc00x""#, "\u{fffd}x"),
        (r#""\ud800\u0041""#, "\u{fffd}A"),
        (r#""\ud800\ud83d\ude00""#, "\u{fffd}😀"),
        (r#""\u0000\uFFFF""#, "\0\u{ffff}"),
    ] {
        assert_eq!(string(raw.as_bytes()).unwrap(), decoded);
        assert!(chars(raw.as_bytes()).eq(decoded.chars()));
    }
    assert_eq!(
        string(b"\"a\xff\xe2\x82z\\n\xc3\"").unwrap(),
        "a\u{fffd}\u{fffd}z\n\u{fffd}"
    );
    for none in [
        "", "\"", "1", "null", "\"a\" ", " \"a\"", "\"a\"b\"", "\"\\\"", "{}",
    ] {
        assert_eq!(string(none.as_bytes()), None, "{none}");
    }
}

#[test]
fn agrees_with_serde_json_on_damaged_texts() {
    let mut random = Random(0xbad5eed);
    let pieces: [&[u8]; 20] = [
        b"{", b"}", b"[", b"]", b",", b":", b"\"", b"\\", b"0", b"-", b"e", b".", b" ", b"null",
        b"\"k\":", b"\n", b"\\u", b"\x01", b"1", b"{}",
    ];
    let mut good = 0;
    for _ in 0..60_000 {
        let mut text = ENTRY.as_bytes().to_vec();
        if random.below(2) == 0 {
            text = br#"{"a":[1,{"b":[]},"c"],"d":-1.5e3}"#.to_vec();
        }
        for _ in 0..=random.below(3) {
            let at = random.below(text.len());
            let end = text.len().min(at + random.below(4));
            let piece = random.pick(&pieces);
            text.splice(at..end, piece.iter().copied());
        }
        let ours = value_span(&text);
        assert_eq!(
            ours.is_ok(),
            is_json(&text),
            "{:?}",
            String::from_utf8_lossy(&text)
        );
        good += usize::from(ours.is_ok());
        let _ = (
            depth(&text),
            string(&text),
            chars(&text).count(),
            get(&text, "type"),
        );
        let _ = (with_member(&text, "a", b"1"), without_member(&text, "a"));
    }
    assert!(good > 1_000, "{good}");
}

#[test]
fn never_panics_on_bytes_that_are_not_text() {
    let mut random = Random(7);
    for _ in 0..60_000 {
        let mut text: Vec<u8> = (0..random.below(40))
            .map(|_| random.below(256) as u8)
            .collect();
        text.splice(
            0..0,
            random
                .pick::<[u8]>(&[b"", b"\"", b"{\"", b"[\"", b"\"\\u"])
                .iter()
                .copied(),
        );
        let _ = (
            value_span(&text),
            depth(&text),
            string(&text),
            chars(&text).count(),
        );
        let _ = (
            get(&text, "a"),
            with_member(&text, "a", b"1"),
            without_member(&text, "a"),
        );
        push_raw(&mut Vec::new(), &text);
        for at in [0, 1, text.len(), text.len() + 1, usize::MAX] {
            let _ = (skip_value(&text, at), skip_space(&text, at));
            assert!(Members::open(&text, at).is_err() || text[at] == b'{');
            let _ = splice(&text, &[(at..at, b"x"), (0..at, b"y")]);
        }
    }
}

#[test]
fn walks_objects_and_arrays_in_place() {
    let text = br#" {"a":[1, "x" ,{}],"\u0062":{"c":2}} tail"#;
    let mut members = Members::open(text, 1).unwrap();
    let a = members.next_key().unwrap().unwrap();
    let mut elements = Elements::open(text, a.value_at).unwrap();
    let mut seen = Vec::new();
    while let Some(span) = elements.next_value().unwrap() {
        seen.push(&text[span]);
    }
    assert_eq!(seen, [&b"1"[..], b"\"x\"", b"{}"]);
    assert_eq!(elements.next_value(), Ok(None));
    members.resume(elements.end());
    let b = members.next_member().unwrap().unwrap();
    assert!(b.key_escaped && b.is(text, "b") && !b.is(text, "\\u0062"));
    assert_eq!(&text[b.value], br#"{"c":2}"#);
    assert_eq!(
        (members.next_member(), members.next_member()),
        (Ok(None), Ok(None))
    );
    assert_eq!(&text[members.end()..], b" tail");

    for torn in [
        "{",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{,",
        "{\"a\":1 \"b\":2}",
    ] {
        let mut members = Members::open(torn.as_bytes(), 0).unwrap();
        while let Ok(more) = members.next_member() {
            assert!(more.is_some(), "{torn}");
        }
    }
}

#[test]
fn the_last_duplicate_counts() {
    let text = br#" {"id":1,"x":{"id":9},"i\u0064":2,"y":[{"id":8}]} "#;
    assert_eq!(get(text, "id"), Some(&b"2"[..]));
    assert_eq!(get_path(text, &["x", "id"]), Some(&b"9"[..]));
    assert_eq!(
        (get(text, "none"), get(b"[]", "id"), get(b"", "id")),
        (None, None, None)
    );
    assert_eq!(get_path(text, &["y", "id"]), None);
}

#[test]
    #[rustfmt::skip]
    fn edits_leave_every_other_byte() {
        for (object, name, with, without) in [
            ("{}", "a", r#"{"a":0}"#, "{}"),
            (" { } ", "a", r#" {"a":0 } "#, " { } "),
            (r#"{"a":1}"#, "a", r#"{"a":0}"#, "{}"),
            (r#"{ "a" : 1 }"#, "a", r#"{ "a" : 0 }"#, "{  }"),
            (r#"{"b" : 1.0 , "c":2 }"#, "a", r#"{"b" : 1.0 , "c":2,"a":0 }"#, r#"{"b" : 1.0 , "c":2 }"#),
            (r#"{"a":1, "b":2}"#, "a", r#"{"a":0, "b":2}"#, r#"{"b":2}"#),
            (r#"{"b":2, "a":1}"#, "a", r#"{"b":2, "a":0}"#, r#"{"b":2}"#),
            (r#"{"a":1,"a":{"a":2},"b":3,"\u0061":4,"c":5,"a":6}"#, "a",
             r#"{"a":1,"a":{"a":2},"b":3,"\u0061":4,"c":5,"a":0}"#, r#"{"b":3,"c":5}"#),
            (r#"{"a":1,"a":2}"#, "a", r#"{"a":1,"a":0}"#, "{}"),
            (r#"{"x":1}"#, "q\"\n", r#"{"x":1,"q\"\n":0}"#, r#"{"x":1}"#),
            ("[1]", "a", "[1]", "[1]"),
        ] {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            assert_eq!(text(with_member(object.as_bytes(), name, b"0")), with);
            assert_eq!(text(without_member(object.as_bytes(), name)), without);
        }
        let edits: [(Span, &[u8]); 3] = [(0..0, b"<"), (1..3, b""), (6..6, b">")];
        assert_eq!(splice(b"abcdef", &edits), b"<adef>");
        let wrong: [(Span, &[u8]); 3] = [(2..3, b"X"), (1..2, b"-"), (4..9, b"-")];
        assert_eq!(splice(b"abcdef", &wrong), b"abXdef");
    }

#[test]
fn writes_strings_and_raw_json_on_one_line() {
    let text = "\u{0}\u{1f}\u{8}\u{c}\n\r\t\"\\/\u{7f}é\u{2027}\u{2028}\u{2029}\u{202a}—😀";
    let mut out = b"x".to_vec();
    push_string(&mut out, text);
    let expected =
        "x\"\\u0000\\u001f\\b\\f\\n\\r\\t\\\"\\\\/\u{7f}é\u{2027}\\u2028\\u2029\u{202a}—😀\"";
    assert_eq!(String::from_utf8(out.clone()).unwrap(), expected);
    assert_eq!(string(&out[1..]).unwrap(), text);
    assert_eq!(serde_json::from_slice::<String>(&out[1..]).unwrap(), text);

    let mut out = b"x".to_vec();
    push_raw(
        &mut out,
        "{\r\n\"a\":\n\"\u{2028}—\u{2029}\\n\"}".as_bytes(),
    );
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "x{  \"a\": \"\\u2028—\\u2029\\n\"}"
    );
}

#[test]
fn nesting_has_no_limit() {
    const LEVELS: usize = 1_000_000;
    let mut text: Vec<u8> = (0..LEVELS / 2).flat_map(|_| *b"[{\"a\":").collect();
    text.push(b'1');
    text.extend((0..LEVELS / 2).flat_map(|_| *b"}]"));
    assert_eq!(value_span(&text), Ok(0..text.len()));
    assert_eq!(depth(&text), LEVELS);
    assert!(value_span(&text[..text.len() - 1]).is_err());
    // One bracket of the wrong kind, in an outer level, after many full words of bits.
    let at = text.len() - 100;
    text[at] ^= b']' ^ b'}';
    assert_eq!(value_span(&text), Err(Malformed { at }));
    assert_eq!(
        (depth(b"1"), depth(b"\"[[\\\"[\""), depth(b"[[],{}]")),
        (0, 0, 2)
    );
}

#[test]
fn numbers_end_where_their_digits_do() {
    for len in 0..20 {
        for after in 0..=u8::MAX {
            let digits = &b"98765432101234567890"[..len];
            let text = [digits, &[after], b"77777777, so that there are enough"].concat();
            let digit = after.is_ascii_digit();
            let expected = match (len, after) {
                (0, b'-') => Ok(9),
                (0, b'0') => Ok(1),
                (0, _) if digit => Ok(9),
                // Other characters with which a value may begin.
                (0, b'"' | b'[' | b'{' | b't' | b'f' | b'n') => continue,
                (0, _) => Err(0),
                (_, b'.' | b'e' | b'E') => Ok(len + 9),
                _ => Ok(if digit { len + 9 } else { len }),
            };
            let found = skip_value(&text, 0).map_err(|malformed| malformed.at);
            assert_eq!(found, expected, "{}", text.escape_ascii());
            let short = &text[..len + 1];
            if len > 0 && !digit && !matches!(after, b'.' | b'e' | b'E') {
                assert_eq!(skip_value(short, 0), Ok(len));
            }
        }
    }
}
