//! Reviews of the replaced and suspicious texts in an export before it is written.

use super::*;

const RANDOM: &str = "Qm7xK2vP9sLd4TzRb8Wn";

fn said() -> Log {
    let token = token();
    Log::new("s1")
        .user("u1", "", &format!("use {token} and {RANDOM}"))
        .assistant("a1", "u1", &format!("{token}, password=hunter22x"))
        .user(
            "u2",
            "a1",
            &format!(
                "a hash {}, a path /usr/lib/x86_64-linux-gnu/libc.so.6",
                "ab12".repeat(10)
            ),
        )
}

fn ids(review: &Json) -> Vec<(String, String)> {
    let of = |item: &Json, name: &str| item[name].as_str().unwrap().to_owned();
    let items = review.as_array().unwrap().iter();
    items
        .map(|item| (of(item, "kind"), of(item, "id")))
        .collect()
}

#[test]
fn a_review_lists_what_is_replaced_and_what_looks_like_a_secret_and_writes_nothing() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &said());
    let path = home.files().join("out.md");
    let params = json!({"format": "markdown", "review": true, "path": path});
    let result = d.ok("export_session", params);
    assert!(!path.exists());
    assert_eq!(
        (&result["bytes"], &result["redactions"]),
        (&json!(0), &json!([]))
    );
    let review = &result["review"];
    let mut shown = review.clone();
    for item in shown.as_array_mut().unwrap() {
        let id = item.as_object_mut().unwrap().remove("id").unwrap();
        assert_eq!(id.as_str().unwrap().len(), 16);
    }
    assert_eq!(
        shown,
        json!([
            {"kind": "github-token", "replaced": true, "shown": "gh\u{2026}B2", "length": 40, "count": 2, "entryIds": ["u1", "a1"]},
            {"kind": "password", "replaced": true, "shown": "\u{2026}", "length": 9, "count": 1, "entryIds": ["a1"]},
            {"kind": "unknown", "replaced": false, "shown": "Qm\u{2026}Wn", "length": 20, "count": 1, "entryIds": ["u1"]},
        ])
    );
    assert!(!result.to_string().contains("hunter"), "{result}");
    // A second review gives the same ids.
    let again = d.ok("export_session", json!({"format": "text", "review": true}));
    assert_eq!(ids(&again["review"]), ids(review));
    for (params, field) in [
        (json!({"format": "jsonl", "review": true}), "review"),
        (
            json!({"format": "text", "review": true, "redact": false}),
            "review",
        ),
        (json!({"format": "text", "keep": ["hunter22x"]}), "keep"),
        (
            json!({"format": "text", "replace": vec!["0123456789abcdef"; 1001]}),
            "replace",
        ),
        (json!({"format": "text", "words": ["ab"]}), "words"),
    ] {
        let error = d.err_kind("export_session", params, "invalidParams");
        assert_eq!(error.details("field"), field);
    }
}

#[test]
fn an_export_follows_the_decisions_of_a_review() {
    let home = Home::new();
    let (mut d, _) = opened(&home, &said());
    let result = d.ok("export_session", json!({"format": "text", "review": true}));
    let ids = ids(&result["review"]);
    let decided =
        json!({"format": "text", "keep": [ids[1].1], "replace": [ids[2].1], "words": ["path"]});
    let text = content(&mut d, decided.clone());
    assert!(
        text.contains("use [redacted:github-token] and [redacted:chosen]"),
        "{text}"
    );
    assert!(text.contains("password=hunter22x"), "{text}");
    assert!(text.contains("a [redacted:word] /usr/lib/"), "{text}");
    let mut reviewed = decided;
    reviewed["review"] = json!(true);
    let review = &d.ok("export_session", reviewed)["review"];
    let replaced: Vec<(&str, bool)> = { review.as_array().unwrap().iter() }
        .map(|item| {
            (
                item["kind"].as_str().unwrap(),
                item["replaced"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        replaced,
        [
            ("github-token", true),
            ("password", false),
            ("word", true),
            ("unknown", true)
        ]
    );
}

/// Runs the command with these arguments and this input; returns its exit code, stdout and stderr.
fn run(home: &Home, args: &[&str], input: &str) -> (i32, String, String) {
    let output = home.run(&[&["export", "s1"], args].concat(), &[], input);
    (output.code.unwrap(), output.text(), output.stderr)
}

#[test]
fn a_person_decides_at_the_shell_before_anything_is_written() {
    let home = Home::new();
    said().store(&home, "2025-01-01_s1.jsonl");
    let path = home.cwd().join("out.txt");
    let args = ["--text", "-o", "out.txt", "--review"];
    for input in ["", "no\n", "keep 2\n", "keep 9\nreplace x\nwhat\n"] {
        let (code, out, err) = run(&home, &args, input);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(
            err.contains("nothing was written") && !path.exists(),
            "{err}"
        );
        assert!(
            err.contains(
                "   1  is replaced  github-token  gh\u{2026}B2 (40 characters), 2 \u{d7} in u1, a1"
            ),
            "{err}"
        );
        assert!(err.contains("1 text that may be secret:"), "{err}");
        assert!(!err.contains("hunter"), "{err}");
    }
    let (code, _, err) = run(&home, &args, "keep 2\nreplace 3\nword path\nyes\n");
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("   2  stays        password"), "{err}");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("password=hunter22x") && text.contains("[redacted:chosen]"),
        "{text}"
    );
    assert!(text.contains("a [redacted:word] /usr"), "{text}");
}

#[test]
fn a_script_lists_and_decides_by_ids() {
    let home = Home::new();
    said().store(&home, "2025-01-01_s1.jsonl");
    let (code, out, err) = run(&home, &["--text", "--review", "--json"], "");
    assert_eq!(code, 0, "{err}");
    let ids = ids(&parse(&out).unwrap()["review"]);
    let (code, out, _) = run(
        &home,
        &["--text", "--keep", &ids[1].1, "--replace", &ids[2].1],
        "",
    );
    assert!(
        code == 0 && out.contains("password=hunter22x") && out.contains("[redacted:chosen]"),
        "{out}"
    );
    for wrong in [
        &["--jsonl", "--review"][..],
        &["--text", "--review", "--no-redact"],
    ] {
        assert_eq!(run(&home, wrong, "yes\n").0, 2, "{wrong:?}");
    }
}
