use super::*;
use crate::search::{FieldKind, Mode};
use crate::timestamp::{self, DAY, Millis};

/// 2026-11-24T16:30:00Z.
const NOW: Millis = 1_795_537_800_000;

fn parsed(text: &str) -> Filters {
    Filters::parse(text, NOW).unwrap()
}

#[test]
fn each_filter_is_read_beside_words_and_phrases() {
    let text = "role:user tool:bash cwd:. since:2w before:2026-11-01 in:labels branch:active source:codex type:x git:fix/a \
                \"a phrase\" -gone -\"not this\" two";
    let expected = Filters {
        text: "\"a phrase\" two".to_owned(),
        is_pattern: false,
        without: "gone \"not this\"".to_owned(),
        fields: Some(vec![FieldKind::Labels]),
        cwd: Some(Written {
            value: ".".to_owned(),
            position: 24,
        }),
        tool: Some("bash".to_owned()),
        source: Some("codex".to_owned()),
        role: Some("user".to_owned()),
        entry_type: Some("x".to_owned()),
        since: Some(NOW - 14 * DAY),
        before: timestamp::parse("2026-11-01T00:00:00.000Z"),
        branches: Some(BranchFilter::Active),
        tag: None,
        git: Some("fix/a".to_owned()),
    };
    assert_eq!(parsed(text), expected);
    assert_eq!(parsed(""), Filters::default());
}

/// Text that people search for may have colons, slashes and dashes.
#[test]
fn what_only_looks_like_a_filter_is_a_word() {
    for text in [
        "std::fs http://x.org foo:bar Role:user x:",
        "--limit -> - a-b 5\"x\"",
        "/home/ada /usr/bin",
        "error[E0432]: missing",
        "日本:語 time::now tool::x",
        "get:x gist:y bag:z",
    ] {
        let filters = Filters::parse(text, NOW);
        match text.contains("tool::x") {
            // A known name is a filter, whatever follows.
            true => assert_eq!(filters.unwrap().tool.as_deref(), Some(":x")),
            false => assert_eq!(filters.unwrap().text, text),
        }
    }
}

#[test]
fn a_pattern_stands_between_slashes() {
    let filters = parsed("role:assistant /fix(ed|es)? it\\/s/ -not");
    assert_eq!(
        (filters.text.as_str(), filters.mode()),
        ("fix(ed|es)? it\\/s", Mode::Regex)
    );
    assert_eq!(filters.without, "not");
    // Once `set -u` left out each entry with the letter u, and `rm -rf` left out each entry with a word such as
    // `interface`.
    let command = parsed("rm -u -rf -tags=x -word -\"js\" -编译");
    assert_eq!(command.text, "rm -u -rf -tags=x");
    assert_eq!(command.without, "word \"js\" 编译");
    assert_eq!(parsed("cwd:\"/a b/c\" x").cwd.unwrap().value, "/a b/c");
}

#[test]
fn times_are_instants_days_and_times_ago() {
    let since = |value: &str| parsed(&format!("since:{value}")).since.unwrap();
    assert_eq!(since("90min"), NOW - 90 * 60_000);
    assert_eq!(since("12h"), NOW - DAY / 2);
    assert_eq!(since("6mo"), NOW - 180 * DAY);
    assert_eq!(since("1y"), NOW - 365 * DAY);
    assert_eq!(
        timestamp::format(since("today")),
        "2026-11-24T00:00:00.000Z"
    );
    assert_eq!(
        timestamp::format(since("yesterday")),
        "2026-11-23T00:00:00.000Z"
    );
    assert_eq!(
        timestamp::format(since("2026-11-01T08:00:00Z")),
        "2026-11-01T08:00:00.000Z"
    );
}

/// A fault once had no position, so a person had to read a long text again to find the fault.
#[test]
fn a_fault_says_where_it_is_and_what_to_write() {
    for (text, position, said) in [
        ("日本 rol:user", 3, "did you mean `role:`"),
        ("a until:2w", 2, "did you mean `before:`"),
        ("role:usr", 5, "did you mean \"user\""),
        ("x in:lables", 5, "text, thinking"),
        ("in:text,nope", 3, "is not a field"),
        ("branch:gone", 7, "active, left"),
        ("since:2m", 6, "is not a time"),
        ("since:99999999999999999999y", 6, "is not a time"),
        ("since:9223372036854775807y", 6, "is not a time"),
        ("role: user", 5, "has no value"),
        ("role:user role:assistant", 10, "a second time"),
        ("tag:a,b", 4, "is not a tag"),
        ("-role:user", 0, "cannot be excluded"),
        ("word /a b/", 5, "a pattern and words"),
        ("/a/ word", 4, "a pattern and words"),
        ("/a/ /b/", 4, "second pattern"),
        ("x /(/", 2, "regular expression"),
    ] {
        let fault = Filters::parse(text, NOW).unwrap_err();
        assert_eq!(fault.position, position, "{text}: {fault:?}");
        assert!(fault.reason.contains(said), "{text}: {fault:?}");
    }
}

#[test]
fn filters_and_values_are_completed() {
    let completed = |text: &str, position: usize| {
        let Completion {
            start, end, items, ..
        } = complete(text, position);
        let items: Vec<String> = items.into_iter().map(|item| item.text).collect();
        (start, end, items.join(" "))
    };
    let of = |start, end, items: &str| (start, end, items.to_owned());
    assert_eq!(completed("日本 ro", 5), of(3, 5, "role:"));
    assert_eq!(completed("s x", 1), of(0, 1, "since: source:"));
    assert_eq!(
        completed("role:", 5),
        of(
            5,
            5,
            "user assistant toolResult system bashExecution custom branchSummary compactionSummary"
        )
    );
    assert_eq!(completed("role:to", 7), of(5, 7, "toolResult"));
    assert_eq!(completed("in:text,la", 10), of(8, 10, "labels"));
    assert_eq!(
        completed("a source:c", 10),
        of(
            9,
            10,
            "claude-code codex cline copilot-cli chatgpt claude-ai"
        )
    );
    assert_eq!(completed("branch:", 7).2, "active left abandoned all");
    assert_eq!(completed("\"ro", 3), of(3, 3, ""));
    assert_eq!(completed("-rol", 4), of(4, 4, ""));
    assert!(completed("role:user ", 10).2.starts_with("role: tool:"));
    assert!(completed("", 0).2.contains("tag: git:"));
    assert_eq!(completed("x", 99), of(0, 1, ""));
    assert_eq!(completed("cwd:\"/a ro", 99).2, "");
    assert!(completed("\"ro\" ", 99).2.starts_with("role:"));
}

/// A query with many quotes and slashes is read only once.
#[test]
fn a_long_text_is_read_in_linear_time() {
    let text = "/a \"b -c d:e ".repeat(20_000);
    let filters = parsed(&text);
    assert!(!filters.text.is_empty());
}

/// People paste an error as the question. A name with a colon in it was once read as a filter without a value, and the
/// question was refused.
#[test]
fn in_a_question_a_filter_without_a_value_is_a_word() {
    for text in ["source: No such file", "bash: tool: not found"] {
        assert!(Filters::parse(text, NOW).is_err(), "{text}");
        let filters = Filters::parse_question(text, NOW).unwrap();
        assert_eq!(
            filters.text,
            text.replace("source:", "source").replace("tool:", "tool")
        );
    }
    let filters = Filters::parse_question("role: admin role:user", NOW).unwrap();
    assert_eq!(
        (filters.text.as_str(), filters.role.is_some()),
        ("role admin", true)
    );
    for unfinished in ["role:usr", "cache role:", "role: "] {
        assert!(
            Filters::parse_question(unfinished, NOW).is_err(),
            "{unfinished}"
        );
    }
}
