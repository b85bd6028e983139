//! `treelined call`.

use super::*;

#[test]
fn call_prints_the_result() {
    let home = Home::new();
    let output = home.run(&["call", "list_sessions"], &[], "").clean();
    let printed: Json = serde_json::from_str(&output.text()).expect("the result as JSON");
    assert!(printed.to_string().contains("\"sessions\":[]"), "{printed}");
    let output = home
        .run(
            &[
                "call",
                "create_session",
                r#"{"sessionId":"made","name":"by call"}"#,
            ],
            &[],
            "",
        )
        .clean();
    assert!(output.text().contains("by call"), "{output:?}");
    assert_eq!(file_lines(&home.only_file())[1]["name"], "by call");
}

#[test]
fn call_fails_if_the_method_fails() {
    let home = Home::new();
    for args in [
        &["call", "no_such_method"][..],
        &["call", "open_session", r#"{"sessionId":"nobody"}"#],
        &["call", "list_sessions", "{"],
    ] {
        let output = home.run(args, &[], "");
        assert!(output.code.is_some_and(|c| c != 0), "{args:?}: {output:?}");
    }
    let output = home.run(
        &["call", "open_session", r#"{"sessionId":"nobody"}"#],
        &[],
        "",
    );
    assert!(output.stderr.contains("sessionNotFound"), "{output:?}");
}

/// Only the JSON once had the name of the client that cancelled and its reason.
#[test]
fn call_says_who_cancelled_and_why() {
    let home = Home::new();
    let log = Log::new("s1")
        .user("u1", "", "one")
        .assistant("a1", "u1", "two");
    let path = log.save(&home);
    for (body, says) in [
        (
            "echo '{\"cancel\":true,\"reason\":\"building\"}'",
            "cancelled by guard: building\n",
        ),
        (
            "exit 3",
            "cancelled, since guard failed: it exited with code 3\n",
        ),
    ] {
        let hook = crate::config::script(&home, "guard", body);
        let text = format!("[[hooks]]\nevents = [\"session_before_tree\"]\nargv = [{hook:?}]\n");
        let config = crate::config::file(&home, &text);
        let open = path.to_str().unwrap();
        let args = ["--config", &config, "call", "navigate_tree", "--open", open];
        let args = [&args[..], &[r#"{"targetId":"u1"}"#]].concat();
        let output = home.run(&args, &[], "");
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.text().contains("\"cancelled\":true"), "{output:?}");
        assert!(output.stderr.ends_with(says), "{output:?}");
    }
}

#[test]
fn call_opens_a_session_with_open() {
    let home = Home::new();
    let log = Log::new("s1")
        .user("u1", "", "one")
        .assistant("a1", "u1", "two");
    let path = log.save(&home);
    log.store(&home, "x_s1.jsonl");
    for session in [path.to_str().unwrap(), "s1"] {
        let output = home
            .run(&["call", "get_leaf", "--open", session], &[], "")
            .clean();
        let leaf: Json = serde_json::from_str(&output.text()).unwrap();
        assert_eq!(leaf["leafId"], "a1");
        assert_eq!(output.text().lines().count(), 1, "compact");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), log.text(), "only read");
    let output = home
        .run(
            &["call", "append_message", "-", "--open", path.to_str().unwrap()],
            &[],
            "{\n  \"entryId\": \"u2\",\n  \"message\": {\"role\": \"user\", \"content\": \"three\"}\n}\n",
        )
        .clean();
    assert!(output.text().contains("\"leafId\":\"u2\""), "{output:?}");
    assert_eq!(file_lines(&path)[3]["parentId"], "a1");
}

#[test]
fn call_prints_the_error_object() {
    let home = Home::new();
    for (args, kind) in [
        (&["call", "no_such_method"][..], "methodNotFound"),
        (&["call", "get_leaf"], "invalidParams"),
        (&["call", "get_leaf", "--open", "nobody"], "sessionNotFound"),
    ] {
        let output = home.run(args, &[], "");
        assert_eq!(output.code, Some(1), "{args:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{args:?}: {output:?}");
        let error: Json = serde_json::from_str(&output.stderr).expect("an error object");
        assert_eq!(error["data"]["kind"], kind, "{args:?}");
    }
}

#[test]
fn pretty_prints_the_same_json_without_control_characters() {
    let home = Home::new();
    let said = "\u{1b}]0;title\u{7} \u{9b}2J \u{202e}gpj.exe \u{7f} ä 🌳";
    let path = Log::new("s1").user("u1", "", said).save(&home);
    let call = |extra: &[&str]| {
        let args = [
            &[
                "call",
                "get_entry",
                r#"{"entryId":"u1"}"#,
                "--open",
                path.to_str().unwrap(),
            ],
            extra,
        ];
        home.run(&args.concat(), &[], "").clean().text()
    };
    let (compact, pretty) = (call(&[]), call(&["--pretty"]));
    assert!(
        pretty.contains("\n  \"entry\": {\n    \"type\": \"message\","),
        "{pretty}"
    );
    for text in [&compact, &pretty] {
        assert!(no_controls(text), "{text:?}");
        let result: Json = serde_json::from_str(text).unwrap();
        assert_eq!(result["entry"]["message"]["content"], said);
    }
}
