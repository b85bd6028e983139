//! `treelined import --redact` (protocol.md §3.17, session-file.md §5.9).

use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::record;
use crate::harness::*;

/// A token in the form of a token of GitHub. Scanners of repositories do not take it for a real token.
fn token(letter: char) -> String {
    format!("ghp_{}", format!("{letter}1B2").repeat(9))
}

/// A conversation with this number of turns. Each turn has a secret, and the title has one.
fn conversation(turns: usize) -> String {
    let title = json!({"type": "summary", "summary": format!("The token {}", token('t')), "leafUuid": "s-1"});
    let turn = |turn: usize| {
        let asked = json!({"role": "user", "content": format!("question {turn}: {}", token('q'))});
        let said = json!({
            "id": format!("msg_{turn}"), "role": "assistant", "model": "m", "content": [
                {"type": "text", "text": format!("answer {turn}")},
                {"type": "tool_use", "id": format!("call{turn}"), "name": "Bash",
                 "input": {"command": format!("curl -H 'Authorization: Bearer {}' x", token('c'))}},
            ],
            "usage": {"input_tokens": 1, "output_tokens": 2},
        });
        record("s", "user", 2 * turn, &asked) + &record("s", "assistant", 2 * turn + 1, &said)
    };
    let turns: String = (0..turns).map(turn).collect();
    format!("{title}\n{turns}")
}

fn import(home: &Home, args: &[&str]) -> Json {
    let files = home.files();
    let place = files.to_str().unwrap();
    let all = [
        &[
            "import",
            "--from",
            "claude-code",
            "--final",
            "--json",
            place,
        ],
        args,
    ]
    .concat();
    let output = home.run(&all, &[], "").clean();
    serde_json::from_str(&output.text()).unwrap()
}

fn write(home: &Arc<Home>, turns: usize) {
    home.file("s.jsonl", conversation(turns).as_bytes());
}

/// The number of secrets in all files below a folder.
fn secrets_below(folder: &Path) -> usize {
    let files = files_below(folder).into_iter();
    let texts = files.map(|file| fs::read(&file).unwrap());
    let secrets = texts.map(|text| String::from_utf8_lossy(&text).matches("1B2").count() / 9);
    secrets.sum()
}

/// The session file of the conversation.
fn session(home: &Home) -> String {
    let mut files = home.session_files();
    let is_hidden = |file: &Path| {
        file.iter()
            .any(|part| part.as_encoded_bytes().starts_with(b"."))
    };
    files.retain(|file| !is_hidden(file));
    assert_eq!(files.len(), 1, "{files:?}");
    fs::read_to_string(&files[0]).unwrap()
}

/// A secret in a conversation of another tool was once in the session directory twice: in the session, and in the kept
/// source.
#[test]
fn an_import_replaces_secrets_and_keeps_no_source() {
    let home = Home::new();
    write(&home, 2);
    let dry = import(&home, &["--redact", "--dry-run"]);
    assert_eq!(dry["sessions"][0]["entriesAdded"], 5, "{dry}");
    assert!(!home.sessions().join(".imports/redact").exists());
    import(&home, &["--redact"]);
    let text = session(&home);
    assert_eq!(secrets_below(&home.sessions()), 0, "{text}");
    assert!(text.matches("[redacted:").count() >= 5, "{text}");
    assert!(text.contains("question 1: [redacted:"), "{text}");
    assert_eq!(files_below(&home.sessions().join(".origins")).len(), 0);
    let again = import(&home, &[]);
    assert_eq!(again["totals"]["unchanged"], 1, "{again}");
}

/// A later import must also replace the secrets. Otherwise it would write the secrets of each new turn, and the old
/// secrets again.
#[test]
fn it_holds_for_later_imports_until_it_is_taken_back() {
    let home = Home::new();
    write(&home, 1);
    import(&home, &["--redact"]);
    write(&home, 2);
    let grown = import(&home, &[]);
    assert_eq!(grown["sessions"][0]["entriesAdded"], 2, "{grown}");
    assert_eq!(grown["sessions"][0]["revised"], 0, "{grown}");
    assert_eq!(secrets_below(&home.sessions()), 0);
    let mut d = Daemon::quiet_in(&home);
    write(&home, 3);
    let place = json!({"from": "claude-code", "paths": [home.files()], "final": true});
    let grown = d.ok("import_sessions", place);
    assert_eq!(grown["sessions"][0]["entriesAdded"], 2, "{grown}");
    drop(d);
    assert_eq!(secrets_below(&home.sessions()), 0);

    let before = session(&home);
    write(&home, 4);
    let grown = import(&home, &["--no-redact"]);
    assert_eq!(grown["sessions"][0]["revised"], 0, "{grown}");
    let after = session(&home);
    assert!(after.starts_with(&before), "what was written stays");
    assert!(
        after.contains(&format!("question 3: {}", token('q'))),
        "{after}"
    );
}

/// `--no-redact` once changed later imports without a word.
#[test]
fn it_is_said_what_changes_for_later_imports() {
    let home = Home::new();
    write(&home, 1);
    let files = home.files();
    let place = files.to_str().unwrap();
    for (option, said) in [
        (
            "--redact",
            "secrets are replaced in all imports from now on",
        ),
        (
            "--no-redact",
            "secrets are not replaced in imports from now on",
        ),
    ] {
        let shown = |more: &[&str]| {
            let args = ["import", "--from", "claude-code", place, option];
            home.run(&[&args[..], more].concat(), &[], "")
                .clean()
                .text()
        };
        let dry = shown(&["--dry-run"]);
        assert!(!dry.contains("from now on"), "{dry}");
        let text = shown(&[]);
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn what_was_imported_before_stays_until_it_is_written_anew() {
    let home = Home::new();
    write(&home, 1);
    let first = import(&home, &[]);
    let id = first["sessions"][0]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    write(&home, 2);
    let grown = import(&home, &["--redact"]);
    assert_eq!(grown["sessions"][0]["revised"], 0, "{grown}");
    let text = session(&home);
    assert!(
        text.contains(&format!("question 0: {}", token('q'))),
        "{text}"
    );
    assert!(text.contains("question 1: [redacted:"), "{text}");
    home.run(&["import", "--forget", &id], &[], "").clean();
    assert_eq!(files_below(&home.sessions().join(".origins")).len(), 0);
    import(&home, &["--again", &id]);
    home.run(&["purge", "--all", "--yes"], &[], "").clean();
    assert_eq!(secrets_below(&home.sessions()), 0, "{}", session(&home));
}
