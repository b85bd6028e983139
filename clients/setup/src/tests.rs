//! Tests of the edits: pieces are added to many generated files and taken out again.

use crate::agent::Agent;
use crate::json::Presence;
use crate::pieces::{Piece, Server};
use crate::program::Program;
use crate::record::Change;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json as value};
use std::cell::Cell;
use std::path::Path;

fn program() -> Program {
    Program::new(Path::new("/usr/bin/treelined"), None, Vec::new()).unwrap()
}

fn other_program() -> Program {
    let folder = Some(Path::new("/data/my sessions"));
    Program::new(
        Path::new("/home/ada/.cargo/bin/treelined"),
        folder,
        Vec::new(),
    )
    .unwrap()
}

/// The hooks of Claude Code that setup writes without `--recall`.
const HOOKS: Piece = hooks(Agent::ClaudeCode, false);

const fn hooks(agent: Agent, recalls: bool) -> Piece {
    Piece::Hooks { agent, recalls }
}

/// Gemini CLI's server, with or without the hooks that recall.
fn gemini(recalls: bool) -> Piece {
    let server = Piece::Server {
        object: "mcpServers",
        server: Server::Plain,
    };
    Piece::Several(vec![server, hooks(Agent::Gemini, recalls)])
}

fn json_pieces() -> [Piece; 8] {
    let server = |object, server| Piece::Server { object, server };
    [
        HOOKS,
        hooks(Agent::ClaudeCode, true),
        hooks(Agent::Codex, true),
        gemini(false),
        gemini(true),
        server("mcpServers", Server::Stdio),
        server("mcpServers", Server::Plain),
        server("mcp", Server::Local),
    ]
}

/// Checks the invariants of a piece and a text. Returns whether the piece can be put into the text.
fn check(piece: &Piece, text: &str) -> Result<bool, TestCaseError> {
    let program = program();
    let Ok(Presence::Missing) = piece.presence(&program, text) else {
        return Ok(false);
    };
    let added = match piece.add(&program, text) {
        Ok(added) => added,
        Err(_) => return Ok(false),
    };
    prop_assert_eq!(
        piece.presence(&program, &added),
        Ok(Presence::Same),
        "{}",
        &added
    );
    // Comments and all other text stay in order: the old text is a subsequence of the new one.
    let mut rest = added.chars();
    for char in text.chars() {
        prop_assert!(rest.any(|found| found == char), "{text:?} became {added:?}");
    }
    prop_assert_eq!(
        added.contains("\r\n"),
        text.contains("\r\n"),
        "{:?}",
        &added
    );
    if text.contains("\r\n") && !text.replace("\r\n", "").contains('\n') {
        prop_assert!(!added.replace("\r\n", "").contains('\n'), "{added:?}");
    }
    // With the record, the old text is restored byte for byte.
    let change = Change::between(Agent::Codex, Some(text), &added);
    prop_assert_eq!(change.undone(&added), Some(Some(text.to_owned())));
    // Without the record, a second removal finds nothing, and adding again gives the same text.
    let removed = piece.remove(&program, &added).unwrap().unwrap();
    prop_assert_eq!(
        piece.presence(&program, &removed),
        Ok(Presence::Missing),
        "{}",
        &removed
    );
    prop_assert_eq!(
        piece.remove(&program, &removed).unwrap(),
        Some(removed.clone())
    );
    // The piece of an earlier setup is replaced.
    let older = piece.add(&other_program(), text).unwrap();
    prop_assert_eq!(
        piece.presence(&program, &older),
        Ok(Presence::Older),
        "{}",
        &older
    );
    let without = piece.remove(&program, &older).unwrap().unwrap();
    prop_assert_eq!(piece.presence(&program, &without), Ok(Presence::Missing));
    // The content is the same as before. The layout may differ.
    for taken_out in [&removed, &without] {
        prop_assert_eq!(said(piece, taken_out), said(piece, text), "{}", taken_out);
    }
    Ok(true)
}

/// JSON as people write it: comments, tabs, trailing commas, other line ends, one line or many.
fn json_text() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("1".to_owned()),
        Just("-2.50e3".to_owned()),
        Just("true".to_owned()),
        Just("null".to_owned()),
        "[a-z\u{e9}{}\\[\\],:/ ]{0,8}".prop_map(|text| format!("\"{text}\"")),
    ];
    let value = scalar.prop_recursive(3, 24, 4, |inner| {
        let space = prop_oneof![
            Just(" "),
            Just(""),
            Just("\n\t"),
            Just("\n    "),
            Just(" /* c */ "),
            Just(" // c\n")
        ];
        let items = prop::collection::vec((inner.clone(), space.clone()), 0..4);
        let key = prop_oneof![
            "[a-c]{1,2}".prop_map(|name| name),
            Just("hooks".to_owned()),
            Just("Stop".to_owned()),
            Just("SessionEnd".to_owned()),
            Just("mcpServers".to_owned()),
            Just("mcp".to_owned()),
        ];
        let members = prop::collection::btree_map(key, (inner, space), 0..5);
        prop_oneof![
            (items, any::<bool>()).prop_map(|(items, trailing)| {
                let comma = if trailing && !items.is_empty() {
                    ","
                } else {
                    ""
                };
                let items: Vec<String> = items
                    .into_iter()
                    .map(|(item, space)| format!("{space}{item}"))
                    .collect();
                format!("[{}{comma}]", items.join(","))
            }),
            (members, any::<bool>()).prop_map(|(members, trailing)| {
                let comma = if trailing && !members.is_empty() {
                    ","
                } else {
                    ""
                };
                let members: Vec<String> = members
                    .into_iter()
                    .map(|(key, (value, space))| format!("{space}\"{key}\":{space}{value}"))
                    .collect();
                format!("{{{}{comma}\n}}", members.join(","))
            }),
        ]
    });
    let frame = (
        prop_oneof![
            Just(""),
            Just("// first\n"),
            Just("/* a\n b */ "),
            Just("\n\n")
        ],
        prop_oneof![
            Just(""),
            Just("\n"),
            Just("\n\n"),
            Just("\n// last"),
            Just(" ")
        ],
        any::<bool>(),
        any::<bool>(),
    );
    (value, frame).prop_map(|(value, (before, after, has_mark, is_crlf))| {
        let text = format!("{before}{value}{after}");
        let text = if is_crlf {
            text.replace('\n', "\r\n")
        } else {
            text
        };
        format!("{}{text}", if has_mark { "\u{feff}" } else { "" })
    })
}

/// Codex's configuration as people write it.
fn toml_text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("model = \"o\""),
        Just("# a comment"),
        Just(""),
        Just("   "),
        Just("\tindented = 1 # behind"),
        Just("a.b.c = [1,\n  2, # two\n]"),
        Just("text = \"\"\"\n[not.a.table]\nnotify = 1\n\"\"\""),
        Just("date = 2026-01-01T00:00:00Z"),
        Just("inline = { notify = 1, x = \"}\" }"),
        Just("[projects.\"/w\"]"),
        Just("trust_level = \"trusted\""),
        Just("[mcp_servers.other]"),
        Just("command = \"x\""),
        Just("args = []"),
        Just("[[items]]"),
        Just("[tui]"),
        Just("notify = true"),
        Just("[mcp_servers]"),
    ];
    let lines = prop::collection::vec(line, 0..9);
    (lines, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(lines, has_end, has_mark, is_crlf)| {
            let text = lines.join("\n") + if has_end { "\n" } else { "" };
            let text = if is_crlf {
                text.replace('\n', "\r\n")
            } else {
                text
            };
            format!("{}{text}", if has_mark { "\u{feff}" } else { "" })
        },
    )
}

/// The content of a text without empty values: removing our last member also removes the object around it.
fn said(piece: &Piece, text: &str) -> Value {
    let text = text.trim_start_matches('\u{feff}');
    let mut value: Value = match piece {
        Piece::Codex => toml_edit::de::from_str(text).unwrap(),
        _ => {
            let value = jsonc_parser::parse_to_serde_value::<Value>(text, &Default::default());
            value.unwrap()
        }
    };
    for path in [
        &["hooks", "Stop"][..],
        &["hooks", "SessionEnd"],
        &["hooks"],
        &["mcpServers"],
        &["mcp"],
        &["mcp_servers"],
    ] {
        let (name, above) = path.split_last().unwrap();
        let above = above
            .iter()
            .try_fold(&mut value, |at, name| at.get_mut(name));
        if let Some(Value::Object(members)) = above {
            let is_empty = |found: &Value| [value!({}), value!([])].contains(found);
            if members.get(*name).is_some_and(is_empty) {
                members.remove(*name);
            }
        }
    }
    match value {
        Value::Null => value!({}),
        value => value,
    }
}

/// Checks many texts with the pieces. A piece must be accepted by at least `accepted` texts: a piece that every text
/// refuses would pass the checks too.
fn check_all(texts: impl Strategy<Value = String>, pieces: &[Piece], accepted: u32) {
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let count = Cell::new(0);
    let checked = runner.run(&texts, |text| {
        for piece in pieces {
            count.set(count.get() + u32::from(check(piece, &text)?));
        }
        Ok(())
    });
    if let Err(error) = checked {
        panic!("{error}");
    }
    let count = count.get();
    assert!(count >= accepted, "only {count} were accepted");
}

#[test]
fn json_is_as_before_when_it_is_taken_out() {
    check_all(json_text(), &json_pieces(), 150);
}

#[test]
fn toml_is_as_before_when_it_is_taken_out() {
    check_all(toml_text(), &[Piece::Codex], 60);
}

/// Any text at all is edited correctly, or refused.
#[test]
fn no_text_makes_an_edit_fail() {
    let pieces = json_pieces().into_iter().chain([Piece::Codex]);
    let pieces: Vec<Piece> = pieces.collect();
    check_all("[\\[\\]{}\",:=#/* \nhoksmcp\u{feff}.]{0,40}", &pieces, 10);
}

/// For usual files, removing a piece by its structure restores the same bytes, even if something else has changed
/// since.
#[test]
fn usual_files_are_as_before_without_the_record() {
    let usual = [
        "{\n  \"model\": \"opus\"\n}\n",
        "{\n  \"model\": \"opus\"\n}",
        "{\n\t\"model\": \"opus\",\n\t\"env\": {\n\t\t\"A\": \"b\"\n\t}\n}\n",
        "{\r\n    // why\r\n    \"a\": [1, 2]\r\n}\r\n",
    ];
    for text in usual {
        for piece in json_pieces() {
            let added = piece.add(&program(), text).unwrap();
            let removed = piece.remove(&program(), &added).unwrap();
            assert_eq!(removed.as_deref(), Some(text), "{added}");
        }
    }
    for text in [
        "model = \"o\"\n",
        "# mine\nmodel = \"o\"\n\n[tui]\nx = 1\n",
        "\u{feff}model = \"o\"\r\n\r\n[tui]\r\nx = 1\r\n",
        "",
    ] {
        let added = Piece::Codex.add(&program(), text).unwrap();
        let removed = Piece::Codex.remove(&program(), &added).unwrap();
        assert_eq!(removed.as_deref(), Some(text), "{added}");
    }
}

#[test]
fn hooks_of_others_stay() {
    let text = r#"{
  "hooks": {
    "Stop": [
      {"hooks": [{"type": "command", "command": "say done"}]} // loud
    ]
  }
}
"#;
    let added = HOOKS.add(&program(), text).unwrap();
    assert!(
        added.contains("say done") && added.contains("// loud"),
        "{added}"
    );
    // A person has put our hook into one of their groups.
    let mixed = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"},{"type":"command","command":"/usr/bin/treelined import --hook claude-code"}]}]}}"#;
    let removed = HOOKS.remove(&program(), mixed).unwrap().unwrap();
    assert_eq!(
        removed,
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"}]}]}}"#
    );
}

/// A setup without `--recall` once took hooks with `--recall` for an earlier form of its own hooks.
#[test]
fn hooks_that_recall_stay_until_everything_goes() {
    let recalling = hooks(Agent::ClaudeCode, true);
    let text = recalling.add(&program(), "{}").unwrap();
    let is_same = |piece: &Piece, text: &str| {
        piece.for_text(text).presence(&program(), text) == Ok(Presence::Same)
    };
    assert!(
        is_same(&HOOKS, &text) && is_same(&recalling, &text),
        "{text}"
    );
    let plain = HOOKS.add(&program(), "{}").unwrap();
    assert!(
        is_same(&HOOKS, &plain) && !plain.contains("--recall"),
        "{plain}"
    );
    assert_eq!(recalling.presence(&program(), &plain), Ok(Presence::Older));
    assert_eq!(HOOKS.remove(&program(), &text), Ok(Some("{}".to_owned())));
}

/// Setup adds pieces to one file at two times. The removal takes out all of them.
#[test]
fn hooks_beside_a_server_are_one_piece_with_it() {
    let plain = gemini(false).add(&program(), "{}").unwrap();
    assert!(!plain.contains("hooks"), "{plain}");
    assert_eq!(
        gemini(true).presence(&program(), &plain),
        Ok(Presence::Older)
    );
    let text = gemini(true).add(&program(), "{}").unwrap();
    let now = gemini(false).for_text(&text);
    assert_eq!(now.presence(&program(), &text), Ok(Presence::Same));
    assert!(
        text.contains("AfterTool") && text.contains("10000"),
        "{text}"
    );
    assert_eq!(
        gemini(false).remove(&program(), &text),
        Ok(Some("{}".to_owned()))
    );
    // A server that a person has written stays, with the hooks beside it.
    let theirs = "{\n  \"mcpServers\": {\n    \"treelined\": {\"command\": \"treelined\", \"args\": [\"mcp\", \"--allow-notes\"]}\n  }\n}\n";
    let text = gemini(true).add(&program(), theirs).unwrap();
    assert!(
        text.contains("--allow-notes") && text.contains("--recall"),
        "{text}"
    );
    assert_eq!(gemini(true).presence(&program(), &text), Ok(Presence::Same));
    assert_eq!(
        gemini(true).remove(&program(), &text),
        Ok(Some(theirs.to_owned()))
    );
}

/// Setup without `--recall` keeps the recalling hooks in our own files, like the hooks of Claude Code.
#[test]
fn a_plugin_that_recalls_stays_until_everything_goes() {
    let plugin = |recalls| Piece::Plugin { recalls };
    let plain = plugin(false).add(&program(), "").unwrap();
    let text = plugin(true).add(&program(), "").unwrap();
    assert!(
        text.starts_with(&plain) && !plain.contains("recall"),
        "{text}"
    );
    assert_eq!(
        plugin(true).presence(&program(), &plain),
        Ok(Presence::Older)
    );
    let now = plugin(false).for_text(&text);
    assert_eq!(now.presence(&program(), &text), Ok(Presence::Same));
    assert_eq!(plugin(false).remove(&program(), &text), Ok(None));
    let extension = other_program().extension();
    let call = r#"["--session-dir","/data/my sessions","mcp","--recall"]"#;
    for text in [other_program().plugin(true), extension] {
        assert!(text.contains(call), "{text}");
    }
}

#[test]
fn servers_of_a_person_stay() {
    let theirs =
        r#"{"mcpServers":{"treelined":{"command":"treelined","args":["mcp","--allow-notes"]}}}"#;
    let piece = Piece::Server {
        object: "mcpServers",
        server: Server::Plain,
    };
    assert_eq!(piece.presence(&program(), theirs), Ok(Presence::Theirs));
    assert_eq!(
        piece.remove(&program(), theirs),
        Ok(Some(theirs.to_owned()))
    );
}

#[test]
fn comments_behind_our_lines_stay() {
    let added = Piece::Codex.add(&program(), "model = \"o\"\n").unwrap();
    let commented = added
        .replace("\"codex\"]\n", "\"codex\"]  # why\n")
        .replace("treelined]\n", "treelined] # this\n")
        .replace("\"mcp\"]\n", "\"mcp\"] # and that\n");
    assert_eq!(
        Piece::Codex.remove(&program(), &commented),
        Ok(Some(
            "model = \"o\"\n# why\n# this\n# and that\n".to_owned()
        ))
    );
}

#[test]
fn what_is_not_understood_is_refused() {
    for text in [
        "{",
        "[]",
        "7",
        "{\"hooks\":[]}",
        "{\"hooks\":{\"Stop\":{}}}",
        "{'hooks':{}}",
        "{hooks:{}}",
    ] {
        assert!(HOOKS.add(&program(), text).is_err(), "{text}");
    }
    for text in [
        "mcp_servers = { a = { command = \"x\" } }",
        "model = ",
        "[mcp_servers]\n[mcp_servers]",
        "mcp_servers = 1",
    ] {
        let presence = Piece::Codex.presence(&program(), text);
        let added = presence.and_then(|_| Piece::Codex.add(&program(), text));
        assert!(added.is_err(), "{text}: {added:?}");
    }
}

/// A quote or a blank in the path once broke the command.
#[test]
fn words_are_quoted() {
    let program = Program::new(Path::new("/a b/it's 100%/treelined"), None, Vec::new()).unwrap();
    let command = program.hook_command("claude-code");
    assert_eq!(
        command,
        "'/a b/it'\\''s 100%/treelined' import --hook claude-code"
    );
    assert!(
        program
            .unit("pi")
            .contains("ExecStart=\"/a b/it's 100%%/treelined\" import --watch --from pi\n")
    );
    let added = HOOKS.add(&program, "{}").unwrap();
    assert_eq!(HOOKS.presence(&program, &added), Ok(Presence::Same));
    let added = Piece::Codex.add(&program, "").unwrap();
    assert_eq!(Piece::Codex.presence(&program, &added), Ok(Presence::Same));
}
