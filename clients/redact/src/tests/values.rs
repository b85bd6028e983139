//! Secrets that are recognized by their values.

use super::super::*;

const SALT: &[u8] = b"0123456789abcdef";
const VALUE: &str = "tangerine-Boat/42+x=";

fn known(values: &[&str], words: &[&str]) -> Redactor {
    let mut known = KnownValues::new(SALT);
    known.add_hashes(values.iter().filter_map(|value| ValueHash::of(SALT, value)));
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    known.set_words(&words);
    Redactor::new(true, None).unwrap().with_values(known)
}

fn shown(redactor: &Redactor, text: &str) -> String {
    redactor.text(text, &mut |_, _| {}).into_owned()
}

/// The value of a variable once stayed in an export wherever no name that means a secret was beside it.
#[test]
fn a_value_of_a_variable_is_replaced_wherever_it_is_a_word() {
    let redactor = known(&[VALUE, "tangerine-Boat"], &[]);
    let mark = "[redacted:variable]";
    for (text, expected) in [
        ("say VALUE.", "say MARK."),
        ("VALUE", "MARK"),
        (
            "x\u{e4} (VALUE), 'VALUE' `VALUE`",
            "x\u{e4} (MARK), 'MARK' `MARK`",
        ),
        ("\u{1b}[1mVALUE\u{1b}[0m", "\u{1b}[1mMARK\u{1b}[0m"),
        ("https://h/?q=VALUE&r", "https://h/?q=MARK&r"),
        ("a tangerine-Boat sails", "a MARK sails"),
    ] {
        let text = text.replace("VALUE", VALUE);
        let expected = expected.replace("MARK", mark).replace("VALUE", VALUE);
        assert_eq!(shown(&redactor, &text), expected);
        assert!(redactor.may_change(text.as_bytes()), "{text}");
    }
    for stays in [
        "tangerine-Boats",
        "atangerine-Boat",
        "tangerine-boat",
        "Boat/42+x=",
    ] {
        assert_eq!(shown(&redactor, stays), stays);
        assert!(!redactor.may_change(stays.as_bytes()), "{stays}");
    }
    assert!(!shown(&redactor, &format!("TOKEN={VALUE}")).contains("tangerine"));
}

#[test]
fn json_with_a_value_or_a_word_may_change_however_it_is_escaped() {
    let redactor = known(&[VALUE], &["Zoë & Söhne", "acme"]);
    for json in [
        format!(r#"{{"a":"\n{VALUE}\n"}}"#),
        format!(r#"{{"a":"{}"}}"#, VALUE.replace('/', "\\/")),
        format!(r#"{{"a":"{}"}}"#, VALUE.replace('t', "\\u0074")),
        r#"{"a":"Zo\u00eb & S\u00f6hne"}"#.to_owned(),
        r#"{"a":"Zoë & Söhne"}"#.to_owned(),
        r#"{"a":"\nACME"}"#.to_owned(),
    ] {
        assert!(redactor.may_change(json.as_bytes()), "{json}");
    }
    assert!(!known(&[VALUE], &["acme"]).may_change(br#"{"a":"\n nothing \" here"}"#));
}

#[test]
fn a_word_is_replaced_in_any_case_and_the_longest_that_is_whole() {
    let redactor = known(&[], &["acme", "acme rocket", "zo\u{eb}"]);
    let mark = "[redacted:word]";
    for (text, expected) in [
        ("Acme, ACME_db acme-db2", "MARK, MARK_db MARK-db2"),
        ("the Acme Rocket flies", "the MARK flies"),
        ("acme rockets", "MARK rockets"),
        ("acmeology macme", "acmeology macme"),
        ("zo\u{eb}!", "MARK!"),
        ("zo\u{eb}\u{eb}", "zo\u{eb}\u{eb}"),
    ] {
        assert_eq!(
            shown(&redactor, text),
            expected.replace("MARK", mark),
            "{text}"
        );
    }
}

/// Two secrets that overlap are replaced as one, so that no part of either stays.
#[test]
fn no_part_of_overlapping_secrets_is_left() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let value = format!("{token}-and-more");
    let redactor = known(&[&value, "more:hunter22x"], &["and-more:hunter22x rest"]);
    let text = format!("see {value}:hunter22x rest of it");
    let shown = shown(&redactor, &text);
    for part in ["a1B2", "and", "more", "hunter", "rest"] {
        assert!(!shown.contains(part), "{part}: {shown}");
    }
    assert!(
        shown.starts_with("see [redacted:") && shown.ends_with(" of it"),
        "{shown}"
    );
}

#[test]
fn values_are_of_variables_whose_name_says_secret_and_of_named_ones() {
    let variables = [
        ("DEPLOY_TOKEN", "tangerine-boat"),
        ("MY_LLM", "yellow-submarine"),
        ("EDITOR_NAME", "something-else"),
        ("SHORT_TOKEN", "tangerine"),
        ("TOKEN_FILE", "/run/secrets/token"),
        ("API_KEY", "~/secrets/token"),
        ("AUTH_TOKEN", "https://example.org/"),
    ];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    assert_eq!(
        secret_variables(variables, &["MY_LLM".to_owned()]),
        ["tangerine-boat", "yellow-submarine"]
    );
}

#[test]
fn values_are_kept_as_hashes_and_shown_nowhere() {
    assert_eq!(ValueHash::of(SALT, "with blanks in it"), None);
    assert_eq!(ValueHash::of(SALT, "too-short"), None);
    let hash = ValueHash::of(SALT, VALUE).unwrap();
    assert_ne!(Some(hash), ValueHash::of(b"another salt, of 16", VALUE));
    let mut known = KnownValues::new(SALT);
    known.add_values([VALUE.to_owned()]);
    known.set_words(&["acme-rocket".to_owned()]);
    let shown = format!("{known:?} {hash:?}");
    assert!(
        !shown.contains("tangerine") && !shown.contains("acme"),
        "{shown}"
    );
}

/// The seconds that this thread has run. Other work of the machine does not count.
fn seconds() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds: u64 = text.split(' ').next().unwrap().parse().unwrap();
    nanoseconds / 1_000_000_000
}

/// A search for values once began again after each word, and went to the end each time.
#[test]
fn time_is_linear_with_words_and_values() {
    let redactor = known(&[VALUE], &["aa", "aaa", "aaab", "acme"]);
    let began = seconds();
    for part in [
        "acme ",
        "a",
        "aaa ",
        "tangerine-Boat/42+x ",
        "password=hunter22x acme ",
    ] {
        let text = part.repeat(400_000 / part.len());
        let _ = redactor.text(&text, &mut |_, _| {});
        let _ = redactor.may_change(text.as_bytes());
    }
    let taken = seconds() - began;
    assert!(taken < 15, "{taken} s");
}

#[test]
fn text_that_looks_random_is_a_candidate_and_names_hashes_and_paths_are_not() {
    let found = |text: &str| {
        let spans = candidates(text, 0).map(|span| text[span].to_owned());
        spans.collect::<Vec<_>>()
    };
    for random in [
        "Qm7xK2vP9sLd4TzRb8Wn",
        "k3j9x0q8w7e5r2t1y6u4",
        "aG9vbGEgcXVlIHRhbA9x0Z/+8Kd2Lp5Q==",
    ] {
        assert_eq!(found(&format!("a {random}, b")), [random]);
    }
    for plain in [
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "rs_68af4030baa48193b0b43b4c2a176a1a0e65967f2d3f0d6d",
        "123e4567-e89b-12d3-a456-426614174000",
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30",
        "/tmp/tmphc0d55kl",
        "getElementsByClassName2024Edition",
        "2026-11-28T12:14:06.123456Z",
        "short9Ab",
    ] {
        assert_eq!(found(plain), [""; 0], "{plain}");
    }
    let data = "aZ9".repeat(60);
    assert_eq!(found(&data), [""; 0]);
}
