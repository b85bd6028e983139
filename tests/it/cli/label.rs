//! `treelined label`.

use super::*;

fn label(home: &Home, args: &[&str]) -> Output {
    home.run(&[&["label"], args].concat(), &[], "")
}

fn label_of(home: &Home, entry: &str) -> Json {
    let params = json!({ "entryId": entry }).to_string();
    let args = ["call", "get_label", "--open", "s1", &params];
    let text = home.run(&args, &[], "").clean().text();
    parse(&text).unwrap()["label"].clone()
}

#[test]
fn an_entry_is_labelled_and_its_label_removed_from_the_shell() {
    let home = Home::new();
    branched(&home);
    let said = label(&home, &["s1", "u3", " go \u{1b}right "])
        .clean()
        .text();
    assert!(said.starts_with("labelled u3  user  [go "), "{said}");
    assert!(no_controls(&said), "{said}");
    assert!(label_of(&home, "u3").as_str().unwrap().ends_with("right"));
    label(&home, &["s1", "u3", "replaced"]).clean();
    assert_eq!(label_of(&home, "u3"), "replaced");
    let said = label(&home, &["s1", "u3", "--remove", "--json"])
        .clean()
        .text();
    let said = parse(&said).unwrap();
    assert_eq!(said["leafId"], said["entryId"]);
    assert_eq!(label_of(&home, "u3"), Json::Null);
    assert_eq!(label_of(&home, "u2"), "the left one");
}

#[test]
fn arguments_that_label_nothing_write_nothing() {
    let home = Home::new();
    let path = branched(&home);
    let before = fs::read(&path).unwrap();
    let wrong: [(&[&str], i32); 9] = [
        (&[], 2),
        (&["s1"], 2),
        // Two arguments are an entry and a text, in the latest session of this directory. This directory has no
        // session.
        (&["s1", "u3"], 3),
        (&["s1", "u3", " "], 2),
        (&["s1", "u3", "x", "--remove"], 2),
        (&["--latest", "s1", "u3", "x"], 2),
        (&["s1", "u3", "--remove"], 3),
        (&["s1", "nothing", "x"], 3),
        (&["nothing", "u3", "x"], 3),
    ];
    for (args, code) in wrong {
        let output = label(&home, args);
        assert_eq!(output.code, Some(code), "{args:?}: {output:?}");
        assert!(output.stderr.contains("try:"), "{args:?}: {output:?}");
        assert_eq!(fs::read(&path).unwrap(), before, "{args:?}");
    }
}

#[test]
fn the_latest_session_of_the_directory_is_labelled_without_its_name() {
    let home = Home::new();
    let create = json!({ "sessionId": "s1", "write": "now" }).to_string();
    home.run(&["call", "create_session", &create], &[], "")
        .clean();
    let message = json!({ "entryId": "u3", "message": { "role": "user", "content": "x" } });
    let args = [
        "call",
        "append_message",
        "--open",
        "s1",
        &message.to_string(),
    ];
    home.run(&args, &[], "").clean();
    label(&home, &["--latest", "u3", "here"]).clean();
    assert_eq!(label_of(&home, "u3"), "here");
}
