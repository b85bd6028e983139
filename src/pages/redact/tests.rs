use super::samples::{ALNUM, chars, escaped_forms, tokens};
use super::*;
use treelined_core::test_support::random::Random;

fn redactor() -> &'static Redactor {
    static SHARED: std::sync::LazyLock<Redactor> =
        std::sync::LazyLock::new(|| Redactor::new(true, None).unwrap());
    &SHARED
}

/// The prefilter reads raw JSON, where a line break is two characters and any character may be escaped.
#[test]
fn strings_of_an_entry_are_redacted_however_they_are_escaped() {
    for (kind, token) in tokens() {
        let slashes = format!("https:\\/\\/a:{}@b", "pw1");
        for text in escaped_forms(&token) {
            let entry = format!(
                "{{\"type\":\"message\",\"id\":\"a\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}"
            );
            let mut kinds = Vec::new();
            let out = redactor()
                .entry(entry.as_bytes(), &mut |kind, _| kinds.push(kind))
                .into_owned();
            assert_eq!(kinds, [kind], "{entry}");
            let out: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let content = out["message"]["content"].as_str().unwrap();
            assert!(
                content.contains("[redacted:") && !content.contains(&token),
                "{content}"
            );
        }
        let mut kinds = Vec::new();
        let entry =
            format!("{{\"a\":\"{slashes}\",\"b\":\"Authorization:\\tBearer\\u0020abcdefgh\"}}");
        let out = redactor()
            .entry(entry.as_bytes(), &mut |kind, _| kinds.push(kind))
            .into_owned();
        assert_eq!(
            kinds,
            ["url-credentials", "authorization"],
            "{}",
            String::from_utf8_lossy(&out)
        );
    }
}

/// In a command that is a list, a flag and its value are two strings of the entry. Once, such a value was not replaced.
#[test]
fn the_argument_behind_a_flag_that_says_secret_is_replaced() {
    let entry = r#"{"type":"message","id":"a","arguments":{"args":["--password","hunter2","--verbose","hunter2"],"flag":"--token","note":"a1b2c3d4e5f6","nested":["--token",["a1b2c3d4e5f6"]]}}"#;
    let mut kinds = Vec::new();
    let out = redactor().entry(entry.as_bytes(), &mut |kind, _| kinds.push(kind));
    let shown = entry.replace(
        r#""--password","hunter2""#,
        r#""--password","[redacted:password]""#,
    );
    assert_eq!(String::from_utf8(out.into_owned()).unwrap(), shown);
    assert_eq!(kinds, ["password"]);
}

#[test]
fn members_of_tools_whose_names_say_secret_are_replaced() {
    let entry = r#"{"type":"message","id":"a","token":"a1b2c3d4e5f6","arguments":{"password":"hunter2","env":{"API_KEY":"a1b2c3d4e5f6","PATH":"/bin"},"pass\u0077ord":"x","note":"hunter2","maxTokens":"a1b2c3d4e5f6"}}"#;
    let mut kinds = Vec::new();
    let out = redactor().entry(entry.as_bytes(), &mut |kind, _| kinds.push(kind));
    let out = String::from_utf8(out.into_owned()).unwrap();
    assert_eq!(kinds, ["password", "key"], "{out}");
    let shown = entry
        .replace(
            r#""password":"hunter2""#,
            r#""password":"[redacted:password]""#,
        )
        .replace(
            r#""API_KEY":"a1b2c3d4e5f6""#,
            r#""API_KEY":"[redacted:key]""#,
        );
    assert_eq!(out, shown);
}

#[test]
fn ids_stay_and_every_other_string_and_key_is_redacted() {
    let token = format!("ghp_{}", chars(ALNUM, 36));
    let entry = r#"{"type":"T","id":"T","parentId":"T","customType":"T","x":["T",{"toolCallId":"T","name":"T","arguments":{"id":"T","T":"T","deep":[{"parentId":"T"}]},"id":"T"}],"n":1.50}"#;
    let shown = r#"{"type":"R","id":"T","parentId":"T","customType":"R","x":["R",{"toolCallId":"T","name":"R","arguments":{"id":"R","R":"R","deep":[{"parentId":"R"}]},"id":"T"}],"n":1.50}"#;
    let entry = entry.replace("\"T\"", &format!("\"{token}\""));
    let shown = shown
        .replace("\"T\"", &format!("\"{token}\""))
        .replace("\"R\"", "\"[redacted:github-token]\"");
    let out = redactor()
        .entry(entry.as_bytes(), &mut |_, _| {})
        .into_owned();
    assert_eq!(String::from_utf8(out).unwrap(), shown);
}

#[test]
fn paths_in_the_home_directory_are_shortened_also_when_they_are_escaped() {
    let redactor = Redactor::new(false, Some("/home/ada/")).unwrap();
    let entry = br#"{"id":"a","cwd":"\/home\/ada\/x"}"#;
    let out = redactor.entry(entry, &mut |_, _| {}).into_owned();
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"id":"a","cwd":"~/x"}"#);
}

#[test]
fn random_entries_stay_json_and_without_secrets_stay_as_they_are() {
    let mut random = Random(7);
    let pieces = [
        "\\n",
        "\\\"",
        "ghp_",
        "abcdefghijklmnopqrstuvwxyz0123456789ABCD",
        "://u:p@h",
        " ",
        "é",
        "\\ud83d\\ude00",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "\\u0041",
    ];
    for _ in 0..2000 {
        let text: String = (0..random.below(8))
            .map(|_| pieces[random.below(pieces.len())])
            .collect();
        let entry =
            format!("{{\"id\":\"a\",\"t\":\"{text}\",\"u\":[\"{text}\",{{\"k\":\"{text}\"}}]}}");
        let mut found = 0;
        let out = redactor()
            .entry(entry.as_bytes(), &mut |_, _| found += 1)
            .into_owned();
        let parsed: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert!(parsed["t"].is_string());
        assert!(found > 0 || out == entry.as_bytes(), "{entry}");
    }
}
