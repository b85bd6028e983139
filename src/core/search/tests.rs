//! Compares the search with a naive one that decodes every field with serde_json.

use super::excerpt::EXCERPT_CHARS;
use super::*;
use crate::entry::Kind;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::borrow::Cow;

fn query(text: &str, mode: Mode) -> Query {
    Query::parse(text, mode).unwrap().unwrap()
}

#[track_caller]
fn finds(entry: &str, kind: Kind, text: &str, mode: Mode) -> bool {
    let query = query(text, mode);
    let mut matcher = Matcher::new(&query);
    matcher.see_line(entry.as_bytes(), kind);
    let found = matcher.is_match();
    assert!(
        !found || Matcher::new(&query).may_complete(entry.as_bytes()),
        "{text} is passed over in {entry}"
    );
    found
}

fn user(text: &str) -> String {
    json!({"type": "message", "id": "a", "message": {"role": "user", "content": text}}).to_string()
}

#[test]
fn the_text_of_an_entry_is_what_somebody_wrote() {
    let message = r#"{"type":"message","id":"anid","parentId":null,"timestamp":"2025","message":{
        "role":"assistant","provider":"aprovider","content":[
          {"type":"thinking","thinking":"athought","signature":"asignature"},
          {"type":"text","text":"atext"},
          {"type":"image","data":"adata","mimeType":"image/png"},
          {"type":"toolCall","id":"acall","name":"atool","arguments":{"akey":"avalue","deep":[{"n":[-4711]}],"t":true}}
        ],"errorMessage":"anerror","usage":{"note":"ausage"}}}"#;
    let entries = [
        (
            Kind::Message,
            message,
            "athought atext atool avalue -4711 anerror",
        ),
        (
            Kind::Message,
            r#"{"message":{"role":"toolResult","toolName":"atool","toolCallId":"no","content":[{"type":"text","text":"aresult"}],"details":{"x":"no"}}}"#,
            "atool aresult",
        ),
        (
            Kind::Message,
            r#"{"message":{"role":"bashExecution","command":"acommand","output":"anoutput"}}"#,
            "acommand anoutput",
        ),
        (
            Kind::Compaction,
            r#"{"summary":"asummary","details":"no"}"#,
            "asummary",
        ),
        (
            Kind::CustomMessage,
            r#"{"customType":"atype","content":"acontent"}"#,
            "acontent",
        ),
        (
            Kind::Custom,
            r#"{"customType":"no","data":{"no":["avalue",{"no":7}],"targetId":"another"}}"#,
            "avalue 7 another",
        ),
        (
            Kind::Custom,
            r#"{"customType":"no","data":"avalue"}"#,
            "avalue",
        ),
        (
            Kind::Note,
            r#"{"customType":"note","data":{"targetId":"no","reason":"areason"}}"#,
            "areason",
        ),
        (
            Kind::LeafRecord,
            r#"{"customType":"treelined.leaf","data":{"leafId":"no"}}"#,
            "",
        ),
        (
            Kind::ContextEdit,
            r#"{"replacement":{"content":"acontent"}}"#,
            "acontent",
        ),
        (
            Kind::Label,
            r#"{"label":"alabel","targetId":"no"}"#,
            "alabel",
        ),
        (Kind::SessionInfo, r#"{"name":"aname"}"#, "aname"),
        (
            Kind::ModelChange,
            r#"{"provider":"ap","modelId":"am"}"#,
            "ap am",
        ),
        (Kind::Unknown, r#"{"type":"strange","text":"no"}"#, ""),
    ];
    for (kind, entry, text) in entries {
        assert_eq!(text_of(entry, kind), text, "{entry}");
    }
}

/// The searched strings of an entry, as they are in its line.
fn text_of(entry: &str, kind: Kind) -> String {
    let mut fields = Vec::new();
    each_field(entry.as_bytes(), kind, |raw| {
        let text = std::str::from_utf8(raw).unwrap();
        fields.push(text.trim_matches('"').to_owned());
        std::ops::ControlFlow::Continue(())
    });
    fields.join(" ")
}

#[test]
fn words_are_all_in_the_entry_whatever_their_case() {
    let entry = json!({"type": "message", "message": {"role": "assistant", "content": [
        {"type": "text", "text": "Die STRASSE, 5 \"q\" a/b\\c\nnext"},
        {"type": "toolCall", "name": "bash", "arguments": {"command": "cargo test"}},
    ]}});
    let entry = entry.to_string();
    let has = |text: &str| finds(&entry, Kind::Message, text, Mode::Words);
    assert!(has("straße CARGO"));
    assert!(has("\"cargo test\" a/b\\c"));
    assert!(has("\"q\"") && has("5 "));
    assert!(!has("\"test cargo\"") && has("test cargo"));
    assert!(!has("command") && !has("toolCall") && !has("cargo tests"));
}

/// A line may have any character as an escape: a search of the raw bytes alone would not find such text.
#[test]
fn escapes_hide_nothing() {
    let entry = r#"{"type":"message","message":{"role":"user","content":"\u0063argo \u212aelvin \u00df \ud83d\ude00 a\/b \"q\" \u001b[1m x\ty"}}"#;
    for (text, mode) in [
        ("cargo", Mode::Words),
        ("CARGO", Mode::Words),
        ("kelvin", Mode::Words),
        ("ss", Mode::Words),
        ("😀", Mode::Words),
        ("a/b", Mode::Words),
        ("cargo", Mode::Literal),
        ("\"q\"", Mode::Literal),
        ("x\ty", Mode::Literal),
        ("\u{1b}[1m", Mode::Literal),
        ("^cargo .elvin", Mode::Regex),
        (r"(?i)CARGO\s", Mode::Regex),
    ] {
        assert!(finds(entry, Kind::Message, text, mode), "{text} {mode:?}");
    }
    let raw = user("\u{212a}elvin ﬁne ß İx");
    for text in ["kelvin", "fine", "ss", "i\u{307}x"] {
        assert!(finds(&raw, Kind::Message, text, Mode::Words), "{text}");
    }
}

#[test]
fn literal_text_and_patterns_match_unchanged_in_one_field() {
    let entry = json!({"type": "message", "message": {"role": "assistant", "content": [
        {"type": "text", "text": "One two\nthree"}, {"type": "text", "text": "four"},
    ]}});
    let entry = entry.to_string();
    let has = |text: &str, mode| finds(&entry, Kind::Message, text, mode);
    assert!(has("e two\nth", Mode::Literal) && has(".", Mode::Regex));
    assert!(!has("one", Mode::Literal) && !has("/two/", Mode::Literal));
    assert!(has("^three$", Mode::Regex) && has("(?i)ONE|x", Mode::Regex));
    assert!(!has("three.*four", Mode::Regex) && !has("one", Mode::Regex));
}

#[track_caller]
fn check_excerpt(text: &str, mode: Mode, field: &str, expected: &str) {
    let query = query(text, mode);
    let mut best = BestField::new(&query);
    let _seen = best.see(Cow::Borrowed(field));
    let excerpt = best.excerpt().unwrap();
    assert!(excerpt.text.chars().count() <= EXCERPT_CHARS);
    let mut marked = String::new();
    for (at, char) in excerpt.text.chars().enumerate() {
        let mut close_and_open = String::new();
        for range in &excerpt.ranges {
            if range.end == at {
                close_and_open.push(']');
            }
            if range.start == at {
                close_and_open.push('[');
            }
        }
        marked.push_str(&close_and_open);
        marked.push(char);
    }
    if excerpt
        .ranges
        .last()
        .is_some_and(|range| range.end == excerpt.text.chars().count())
    {
        marked.push(']');
    }
    assert_eq!(marked, expected);
}

#[test]
fn an_excerpt_is_one_line_around_the_first_match() {
    check_excerpt("two", Mode::Words, "one TWO three", "one [TWO] three");
    check_excerpt(
        "one three",
        Mode::Words,
        " one\n\ttwo\u{1b} three ",
        "[one] two [three]",
    );
    // Words with only a hidden control character between them were once joined. Codes for colours are inside words.
    check_excerpt(
        "b",
        Mode::Words,
        "a\u{202e}b\u{9b}c \u{1b}[31md",
        "a [b] c [31md",
    );
    check_excerpt("straße", Mode::Words, "é STRASSE", "é [STRASSE]");
    check_excerpt("ss", Mode::Words, "😀 ß", "😀 [ß]");
    check_excerpt("ab bc", Mode::Words, "xabcx", "x[abc]x");
    check_excerpt("a\nb", Mode::Literal, "xa\nb", "x[a b]");
    check_excerpt(r"\d+", Mode::Regex, "a 12 b 3", "a [12] b [3]");
    check_excerpt("x*", Mode::Regex, "axxb", "a[xx]b");
    // There are at most 16 ranges.
    let many = "x ".repeat(100);
    let shown = "[x] ".repeat(16) + &"x ".repeat(84);
    check_excerpt("x", Mode::Literal, &many, shown.trim_end());
    // A match beyond the end is marked up to the end.
    let long = "y".repeat(300);
    let shown = format!("[{}]…", "y".repeat(199));
    check_excerpt(&long, Mode::Words, &long, &shown);
}

/// If the end of the excerpt cut the last of several matches, the remaining part was once marked, although this part is
/// not a match.
#[test]
fn a_match_that_the_end_cuts_is_not_marked_beside_whole_ones() {
    let field = format!("needle {}needle", "b".repeat(190));
    let expected = format!("[needle] {}ne…", "b".repeat(190));
    check_excerpt("needle", Mode::Literal, &field, &expected);
    check_excerpt("needle", Mode::Words, &field, &expected);
    check_excerpt("need.*?le", Mode::Regex, &field, &expected);
}

/// An excerpt once began and ended inside words, and nothing showed that the field has more text.
#[test]
fn an_excerpt_is_cut_between_words_and_shows_it() {
    let check = |field: &str, expected: &str| check_excerpt("needle", Mode::Words, field, expected);
    let words = |word: &str, count: usize| [word].repeat(count).join(" ");
    let field = format!("{} needle {}", words("before", 90), words("behind", 90));
    let expected = format!("…{} [needle] {}…", words("before", 8), words("behind", 19));
    check(&field, &expected);
    // Identifiers and paths are words.
    let path = "src/core/search/ask/passage_of_the_best_answer.rs";
    let field = format!("before {path} {} needle", "x".repeat(19));
    check(&field, &format!("…{} [needle]", "x".repeat(19)));
    let field = format!(
        "before {}/needle.rs it is {path} {path} {path}",
        "d".repeat(62)
    );
    let expected = format!("…{}/[needle].rs it is {path} {path}…", "d".repeat(62));
    check(&field, &expected);
    // A word of more than 64 characters is cut.
    let field = format!("{}needle{}", "a".repeat(90), "b".repeat(300));
    let expected = format!("…{}[needle]{}…", "a".repeat(60), "b".repeat(132));
    check(&field, &expected);
    let field = format!("{}needle{}", "日".repeat(90), "本".repeat(300));
    let expected = format!("…{}[needle]{}…", "日".repeat(60), "本".repeat(132));
    check(&field, &expected);
    // Nothing is cut from a field that fits, and white space does not count.
    let full = format!("needle {}", "b".repeat(193));
    check(&full, &full.replace("needle", "[needle]"));
    check(
        &format!("{}{full}\n\u{1b}\n", " \n".repeat(90)),
        &full.replace("needle", "[needle]"),
    );
    check(
        &format!("{full}b"),
        &format!("[needle] {}…", "b".repeat(192)),
    );
    check(
        &format!("{full} b"),
        &format!("[needle] {}…", "b".repeat(192)),
    );
}

#[test]
fn the_field_with_most_words_is_shown() {
    let query = query("one two three", Mode::Words);
    let mut best = BestField::new(&query);
    for field in ["one", "two three", "one two"] {
        let _seen = best.see(Cow::Borrowed(field));
    }
    assert_eq!(best.excerpt().unwrap().text, "two three");
    assert_eq!(BestField::new(&query).excerpt(), None);
}

/// All strings of a message's text, decoded by serde_json.
fn decoded_text(entry: &Value) -> Vec<String> {
    let blocks = entry["message"]["content"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.map(str::to_owned).collect()
}

fn folded(text: &str) -> String {
    let upper = text
        .chars()
        .flat_map(char::to_lowercase)
        .flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).collect()
}

/// A string literal with any of its characters as escapes.
fn literal(text: &str, escaped: &[bool]) -> String {
    let mut out = String::from("\"");
    for (at, char) in text.chars().enumerate() {
        let is_escaped = escaped
            .get(at % escaped.len().max(1))
            .copied()
            .unwrap_or(false);
        if is_escaped || char.is_control() || matches!(char, '"' | '\\') {
            for unit in char.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(char);
        }
    }
    out + "\""
}

proptest! {
    #[test]
    fn as_a_search_that_decodes_everything(
        texts in prop::collection::vec("[aAbBkKsSß\u{212a}ſİiﬁé日 \"/\\\\\n]{0,12}", 1..3),
        escaped in prop::collection::vec(prop::bool::weighted(0.1), 1..6),
        needle in "[aAbBkKsSßiéf日 /]{1,4}",
    ) {
        let blocks = texts.iter().map(|text| format!(r#"{{"type":"text","text":{}}}"#, literal(text, &escaped)));
        let blocks = blocks.collect::<Vec<_>>().join(",");
        let entry = format!(r#"{{"type":"message","message":{{"role":"user","content":[{blocks}]}}}}"#);
        let decoded = decoded_text(&serde_json::from_str(&entry).unwrap());
        prop_assert_eq!(&decoded, &texts);
        let literal = decoded.iter().any(|text| text.contains(&needle));
        prop_assert_eq!(finds(&entry, Kind::Message, &needle, Mode::Literal), literal);
        prop_assert_eq!(finds(&entry, Kind::Message, &needle, Mode::Regex), literal);
        let words: Vec<_> = needle.split_whitespace().map(folded).collect();
        if !words.is_empty() {
            let has = |word: &String| decoded.iter().any(|text| folded(text).contains(word));
            let all = words.iter().all(has);
            prop_assert_eq!(finds(&entry, Kind::Message, &needle, Mode::Words), all);
        }
    }
    /// The raw bytes of a field decide, if they are enough. An escape may end where a match seems to begin, and a
    /// letter outside ASCII may fold to two letters: then the decoded text decides.
    #[test]
    fn raw_bytes_and_the_decoded_text_give_the_same_result(
        text in "[abnuſsSß0İiﬁf\n\\\\éÉσςΣ日本]{0,24}",
        escaped in prop::collection::vec(prop::bool::weighted(0.05), 1..6),
        needle in "[abnusi0fß]{3,5}|[éÉσΣ日本]{1,3}|[abns日é]{1,4}|[abn]{0,2}[éσ日]{1,2}[asuif]{0,2}",
        cut in prop::option::of((0..24usize, 1..20usize)),
    ) {
        let part = cut.map(|(from, len)| text.chars().skip(from).take(len).collect::<String>());
        let needle = part.filter(|part| !part.trim().is_empty()).unwrap_or(needle);
        let literal = literal(&text, &escaped);
        let entry = format!(r#"{{"type":"message","message":{{"role":"user","content":{literal}}}}}"#);
        let expected = text.contains(&needle);
        prop_assert_eq!(finds(&entry, Kind::Message, &needle, Mode::Literal), expected);
        let words: Vec<_> = needle.split_whitespace().map(folded).collect();
        let expected = words.iter().all(|word| folded(&text).contains(word));
        prop_assert_eq!(finds(&entry, Kind::Message, &needle, Mode::Words), expected);
    }
}

/// A word in a field without escapes is found without decoding, in either case and in any alphabet. Decoding and
/// folding all text once took most of the time of a search.
#[test]
fn plain_fields_are_decided_by_their_bytes() {
    use super::prefilter::{Prefilter, Presence};
    let check = |word: &str, raw: &str, expected: Presence| {
        let told = Prefilter::folded(word.as_bytes()).tell(raw.as_bytes());
        assert_eq!(told, expected, "{word} in {raw}");
    };
    check("cargo", "\"a CarGo b\"", Presence::Yes);
    check("cargo", "\"a CarGi b → “ﬁ” straße\"", Presence::No);
    check("verbatim", r#""a\nb verBatim""#, Presence::Yes);
    check("the needle", "\"THE Needle\"", Presence::Yes);
    check("the needle", "\"the need of needles\"", Presence::No);
    check("café", "\"care\"", Presence::No);
    check("café", "\"CAFÉ\"", Presence::Yes);
    check("café", "\"CAFÉS, caféine, cafe\"", Presence::Yes);
    check("naïve", "\"a maïve naïf nïave NAÏVÉ\"", Presence::No);
    check("naïve", "\"a naïf NAÏVE\"", Presence::Yes);
    check("ïaé", "\"É ÏAÉ\"", Presence::Yes);
    check("ïaé", "\"Ïau ÏAE\"", Presence::No);
    check("ïaé", "\"Ïaß\"", Presence::Maybe);
    check("é", "\"É\"", Presence::Yes);
    check("é", "\"e → ü\"", Presence::No);
    check("日本", "\"日 本\"", Presence::No);
    check("日本", "\"日本\"", Presence::Yes);
    check("привет", "\"ПРИВЕТ\"", Presence::Yes);
    check("привет", "\"Проза, приветы\"", Presence::Yes);
    check("привет", "\"Проза, привед\"", Presence::No);
    // The end of an escape is not text, and bytes alone do not decide about characters that may fold to the word.
    check("note", r#""a\note""#, Presence::Maybe);
    check("beef", r#""a\u001beef""#, Presence::Maybe);
    check("cargo", r#""\u0063argo""#, Presence::Maybe);
    check("fine", "\"ﬁne\"", Presence::Maybe);
    check("strasse", "\"Straße\"", Presence::Maybe);
    check("né", r#""a\né""#, Presence::Maybe);
    check("xné", r#""x\né""#, Presence::Maybe);
    check("é\n", r#""é\n""#, Presence::Maybe);
    check("ésse", "\"éße\"", Presence::Maybe);
}
