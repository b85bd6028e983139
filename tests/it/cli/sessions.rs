//! The ways in which a person can name a session, in all commands that take one.

use super::*;

fn home_with_two() -> std::sync::Arc<Home> {
    let home = Home::new();
    for (id, day, name) in [("abcd1111", 1, "first"), ("abcd2222", 2, "second")] {
        Log::with_header(json!({"type": "session", "version": 3, "id": id, "timestamp": format!("2025-01-0{day}T00:00:00.000Z"), "cwd": home.cwd()}))
            .user("u1", "", &format!("about {id}"))
            .entry("session_info", "n1", "u1", json!({"name": name}))
            .store(&home, &format!("2025-01-0{day}_{id}.jsonl"));
    }
    home
}

/// Some commands once took only ids, others only paths.
#[test]
fn every_command_finds_a_session_by_id_name_beginning_and_latest() {
    let home = home_with_two();
    let commands: [&[&str]; 6] = [
        &["tree"],
        &["show"],
        &["export", "--text"],
        &["doctor"],
        &["migrate"],
        &["call", "get_entry", r#"{"entryId":"u1"}"#],
    ];
    for command in commands {
        let is_call = command[0] == "call";
        let run = |session: &str| {
            let named = match (session, is_call) {
                ("--latest", _) | (_, false) => vec![session],
                _ => vec!["--open", session],
            };
            home.run(&[command, &named].concat(), &[], "")
        };
        for (session, id) in [
            ("abcd1111", "abcd1111"),
            ("first", "abcd1111"),
            ("abcd2", "abcd2222"),
            ("--latest", "abcd2222"),
        ] {
            let output = run(session);
            assert_eq!(output.code, Some(0), "{command:?} {session}: {output:?}");
            let text = output.text();
            let name = if id == "abcd1111" { "first" } else { "second" };
            assert!(
                text.contains(id) || text.contains(name),
                "{command:?} {session}: {text}"
            );
        }
        let several = run("abcd");
        assert_eq!(several.code, Some(2), "{command:?}: {several:?}");
        assert!(
            several
                .stderr
                .starts_with("error: 2 sessions fit \"abcd\":\n  abcd"),
            "{}",
            several.stderr
        );
        let missing = run("nobody");
        let code = if is_call { 1 } else { 3 };
        assert_eq!(missing.code, Some(code), "{command:?}: {missing:?}");
        assert!(
            missing.stderr.contains("sessionNotFound"),
            "{}",
            missing.stderr
        );
    }
}

#[test]
fn a_deleted_session_is_found_in_the_same_ways() {
    let home = home_with_two();
    let delete = |id: &str| {
        let params = json!({ "sessionId": id }).to_string();
        home.run(&["call", "delete_session", &params], &[], "")
            .clean();
    };
    let restore = |session: &str| home.run(&["restore", session], &[], "");
    for session in ["abcd1111", "first", "abcd1", "--latest"] {
        delete("abcd1111");
        restore(session).clean();
        assert_eq!(
            home.run(&["tree", "abcd1111"], &[], "").code,
            Some(0),
            "{session}"
        );
    }
    delete("abcd1111");
    delete("abcd2222");
    assert_eq!(restore("abcd").code, Some(2));
    assert_eq!(restore("nobody").code, Some(3));
    let listed = home.run(&["restore", "--json"], &[], "").clean().text();
    let listed: Json = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_damaged_file_is_described_in_json() {
    let home = Home::new();
    let text = Log::new("s1")
        .user("u1", "", "x")
        .raw("{\"type\":\"mess")
        .text();
    let path = home.file("s.jsonl", text.as_bytes());
    let output = home.run(&["doctor", "--json", path.to_str().unwrap()], &[], "");
    assert_eq!(output.code, Some(1));
    let line: Json = serde_json::from_str(&output.text()).unwrap();
    assert_eq!(
        (&line["sessionId"], &line["sound"]),
        (&json!("s1"), &json!(false))
    );
    assert_eq!(line["diagnostics"][0]["line"], 3);
}

/// A folder of the working directory once hid the session of the same name from `doctor`.
#[test]
fn a_folder_does_not_hide_the_session_of_its_name() {
    let home = home_with_two();
    for folder in ["first", "empty"] {
        fs::create_dir(home.cwd().join(folder)).unwrap();
    }
    for command in ["doctor", "show"] {
        let found = home.run(&[command, "first"], &[], "").clean().text();
        assert!(found.contains("first"), "{command}: {found}");
        let none = home.run(&[command, "empty"], &[], "");
        assert_eq!(none.code, Some(3), "{command}: {none:?}");
        assert!(
            none.stderr.contains("\"empty\" is a folder") && none.stderr.contains("\n  try: "),
            "{none:?}"
        );
    }
}

#[test]
fn a_deleted_session_is_said_to_be_in_the_trash() {
    let home = home_with_two();
    home.run(
        &["call", "delete_session", r#"{"sessionId":"abcd1111"}"#],
        &[],
        "",
    )
    .clean();
    for (command, session) in [("show", "first"), ("tree", "abcd1111"), ("doctor", "abcd1")] {
        let output = home.run(&[command, session], &[], "");
        assert_eq!(output.code, Some(3), "{command}: {output:?}");
        let expected = format!(
            "error: the session {session:?} is in the trash (sessionNotFound)\n  \
             try: treelined restore {session:?}, which brings it back\n"
        );
        assert_eq!(output.stderr, expected, "{command}");
    }
    home.run(&["restore", "first"], &[], "").clean();
    home.run(&["show", "first"], &[], "").clean();
}

/// In the column of names, the list shows the first message of a session without a name.
#[test]
fn a_first_message_in_place_of_a_name_is_answered_with_the_ids() {
    let home = Home::new();
    for id in ["abcd1111", "abcd2222"] {
        Log::new(id)
            .user("u1", "", "Why so slow?")
            .store(&home, &format!("x_{id}.jsonl"));
    }
    let output = home.run(&["show", "Why so slow?"], &[], "");
    assert_eq!(output.code, Some(3));
    for part in [
        "but these begin with it:",
        "\n  abcd1111  ",
        "\n  abcd2222  ",
        "\n  try: the beginning",
    ] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
}
