//! Writes a path with each writer, and imports the files again.

mod home;
mod placing;
mod text;

use crate::place::place;
use crate::prepare::{Prepared, Request, prepare};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use treelined_core::context::{self, Format, Kept, PathStep};
use treelined_core::error::Kind;
use treelined_core::json;
use treelined_files::cancel::Cancel;
use treelined_files::clock::SystemSource;
use treelined_files::store::Store;
use treelined_import::Tool;
use treelined_import::importer::run::{Import, ImportRequest};
use treelined_import::neutral::{
    Message, ModelPart, NeutralPath, Options, Part, PathMessage, hash,
};

/// A home directory with the folders of all agents, and the folder of a project.
struct World {
    root: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("project")).unwrap();
        Self { root }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn prepare(
        &self,
        tool: Option<Tool>,
        path: &[Value],
    ) -> treelined_core::error::Result<Prepared> {
        self.prepare_with(tool, path, |_| {})
    }

    fn prepare_with(
        &self,
        tool: Option<Tool>,
        path: &[Value],
        change: impl FnOnce(&mut Request<'_>),
    ) -> treelined_core::error::Result<Prepared> {
        let home = self.at("home").into_os_string();
        let environment =
            |name: &str| -> Option<OsString> { (name == "HOME").then(|| home.clone()) };
        let (cwd, sessions) = (self.at("project"), self.at("sessions"));
        let mut request = Request {
            tool,
            session_id: "tour",
            name: Some("A tour"),
            cwd: cwd.to_str().unwrap(),
            path: stored(path),
            summary: None,
            learned: None,
            last: None,
            keeps_thoughts: false,
            limit: 0,
            session_dir: &sessions,
            source: &SystemSource,
            environment: &environment,
        };
        change(&mut request);
        prepare(request)
    }
}

fn stored(path: &[Value]) -> Vec<PathMessage> {
    let messages = path.iter().enumerate().map(|(at, message)| PathMessage {
        json: message.to_string().into_bytes(),
        entry_id: format!("e{at}"),
        is_scaffolding: false,
    });
    messages.collect()
}

/// A conversation with every kind of content that a path may have.
fn conversation() -> Vec<Value> {
    let call = |id: &str, name: &str, arguments: Value| json!({ "type": "toolCall", "id": id, "name": name, "arguments": arguments });
    let model = |content: Value| json!({ "role": "assistant", "content": content, "provider": "anthropic", "model": "claude-opus-4-6" });
    let result = |id: &str, text: &str, is_error: bool| {
        json!({ "role": "toolResult", "toolCallId": id, "toolName": "x",
        "isError": is_error, "content": [{ "type": "text", "text": text }] })
    };
    vec![
        json!({ "role": "user", "content": "ALPHA \"quoted\" \u{2028} <b>\n\n  indented" }),
        model(json!([
            { "type": "thinking", "thinking": "Hm.", "thinkingSignature": "x" },
            { "type": "text", "text": "I look into both." },
            call("toolu_1", "bash", json!({ "command": "ls -l" })),
            call("call.2", "read", json!({ "path": "a.md", "limit": 5 })),
        ])),
        result("toolu_1", "one\ntwo", false),
        result("call.2", "no such file", true),
        model(json!([{ "type": "text", "text": "Two files, and one is missing." }])),
        json!({ "role": "user", "content": [
            { "type": "text", "text": "Look at this." },
            { "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" },
        ]}),
        model(
            json!([{ "type": "text", "text": "A picture." }, call("toolu_3", "deploy", json!({ "to": { "a": [1, 2.5, null] } }))]),
        ),
    ]
}

/// The first conversation in these files, imported, as a path.
fn imported(tool: Tool, files: &Path) -> Vec<PathMessage> {
    let sessions = tempfile::tempdir().unwrap();
    let store = Store::new(sessions.path().to_owned());
    let request = ImportRequest {
        from: Some(tool),
        paths: vec![files.to_owned()],
        is_final: true,
        ..ImportRequest::default()
    };
    let report = treelined_import::importer::repeat::LastImport::default().run(&Import {
        store: &store,
        session_dir: sessions.path(),
        request: &request,
        now: 1_800_000_000_000,
        cancel: &Cancel::new(),
        progress: &|_, _| {},
        redact: &treelined_import::importer::redaction::no_redaction,
    });
    let report: Value = serde_json::from_slice(&report.unwrap()).unwrap();
    assert_eq!(report["totals"]["failed"], 0, "{report}");
    let file = report["sessions"][0]["path"].as_str().unwrap();
    context_of(&store, Path::new(file))
}

/// The context at the leaf of a session file, without messages that the agent has added itself.
fn context_of(store: &Store, file: &Path) -> Vec<PathMessage> {
    let at = treelined_files::os::file::Location::of_path(file).unwrap();
    let opened = store.open(at, &Cancel::new()).unwrap();
    let (tree, bodies) = (&opened.tree, opened.log.bodies());
    let steps: Vec<PathStep> = tree
        .path(tree.file_leaf())
        .into_iter()
        .map(|node| PathStep {
            node,
            kind: tree.kind(node),
            role: tree.role(node),
        })
        .collect();
    let mut body = |node| bodies.entry(&bodies.fetch(tree, node)?);
    let kept = Kept::of(&steps, body, |id| tree.find(id)).unwrap();
    let context =
        context::build_within(&steps, kept, Format::Agent, usize::MAX, &mut body).unwrap();
    let ids = context.entry_ids.into_iter();
    let messages = context
        .messages
        .into_iter()
        .zip(ids)
        .map(|(message, id)| PathMessage {
            is_scaffolding: json::get(&message, "role") == Some(b"\"custom\""),
            entry_id: id.unwrap_or_default(),
            json: message,
        });
    messages.collect()
}

/// The path without facts that agents do not keep: ids, entries, models, and the borders between texts.
fn comparable(path: &NeutralPath) -> Vec<String> {
    let parts = |parts: &[Part]| {
        let words = parts.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Image { mime_type, data } => format!("<{mime_type} {data}>"),
        });
        words.collect::<Vec<_>>().join("|")
    };
    let messages = path.messages.iter().map(|message| match message {
        Message::User(said) => format!("user {}", parts(&said.parts)),
        Message::Model(said) => {
            let words = said.parts.iter().map(|part| match part {
                ModelPart::Text(text) => text.clone(),
                ModelPart::Call(call) => format!("{} {}", call.name, json!(call.arguments)),
            });
            format!("model {}", words.collect::<Vec<_>>().join("|"))
        }
        Message::Results(results) => {
            let words = results
                .iter()
                .map(|result| format!("{} {}", result.is_error, parts(&result.parts)));
            format!("results {}", words.collect::<Vec<_>>().join("|"))
        }
    });
    messages.collect()
}

fn written(tool: Tool) -> NeutralPath {
    let options = Options {
        tool: Some(tool),
        ..Options::default()
    };
    NeutralPath::of(stored(&conversation()), options)
}

/// The path that was written, and the path that was imported from its files.
fn round_trip(
    tool: Tool,
    arrange: impl FnOnce(&World, &Prepared) -> PathBuf,
) -> (NeutralPath, NeutralPath) {
    let world = World::new();
    let prepared = world.prepare(Some(tool), &conversation()).unwrap();
    place(&prepared.files).unwrap();
    let files = arrange(&world, &prepared);
    let options = Options {
        tool: Some(tool),
        ..Options::default()
    };
    (
        written(tool),
        NeutralPath::of(imported(tool, &files), options),
    )
}

#[test]
fn claude_code_gives_back_what_was_written() {
    let (written, read) = round_trip(Tool::ClaudeCode, |world, _| world.at("home/.claude"));
    assert_eq!(comparable(&read), comparable(&written));
    assert_eq!(hash(&read.messages), hash(&written.messages));
}

/// Codex does not keep whether a result is an error.
#[test]
fn codex_gives_back_what_was_written() {
    let (written, read) = round_trip(Tool::Codex, |world, _| world.at("home/.codex"));
    let without = |lines: Vec<String>| -> Vec<String> {
        lines
            .iter()
            .map(|line| line.replace("true ", "false "))
            .collect()
    };
    assert_eq!(without(comparable(&read)), without(comparable(&written)));
    assert_eq!(hash(&read.messages), hash(&written.messages));
}

#[test]
fn pi_gives_back_what_was_written() {
    let (written, read) = round_trip(Tool::Pi, |world, _| world.at("home/.pi/agent"));
    assert_eq!(comparable(&read), comparable(&written));
    assert_eq!(hash(&read.messages), hash(&written.messages));
}

/// The chat in the form in which Gemini CLI keeps it in its own folder.
#[test]
fn gemini_gives_back_what_was_written() {
    let (written, read) = round_trip(Tool::Gemini, |world, prepared| {
        let chats = world.at("home/.gemini/tmp/project/chats");
        fs::create_dir_all(&chats).unwrap();
        let file = &prepared.files.first().unwrap().path;
        fs::copy(file, chats.join(file.file_name().unwrap())).unwrap();
        world.at("home/.gemini")
    });
    assert_eq!(comparable(&read), comparable(&written));
    assert_eq!(hash(&read.messages), hash(&written.messages));
}

/// goose imports a session file of pi.
#[test]
fn the_file_for_goose_is_one_of_pi_with_its_names_of_tools() {
    let world = World::new();
    let prepared = world.prepare(Some(Tool::Goose), &conversation()).unwrap();
    place(&prepared.files).unwrap();
    let file = &prepared.files.first().unwrap().path;
    let store = Store::new(world.at("sessions"));
    let options = Options {
        tool: Some(Tool::Goose),
        ..Options::default()
    };
    let read = NeutralPath::of(context_of(&store, file), options);
    // goose adds a number before the text of each error, so no result is marked as an error.
    let text = String::from_utf8(prepared.files.first().unwrap().bytes.clone()).unwrap();
    assert!(!text.contains("\"isError\":true"));
    assert_eq!(hash(&read.messages), hash(&written(Tool::Goose).messages));
    assert_eq!(prepared.native_id, None);
    let start = prepared.steps.last().unwrap();
    assert!(start.contains(&"{nativeId}".to_owned()), "{start:?}");
}

/// The document has the form of `opencode export`: each call has its result, and an answer names its question.
#[test]
fn the_document_for_opencode_has_the_results_in_their_calls() {
    let world = World::new();
    let prepared = world
        .prepare(Some(Tool::Opencode), &conversation())
        .unwrap();
    let document: Value = serde_json::from_slice(&prepared.files.first().unwrap().bytes).unwrap();
    let id = prepared.native_id.as_deref().unwrap();
    assert!(
        document["info"]["id"] == id && id.starts_with("ses_") && id.len() == 30,
        "{id}"
    );
    let messages = document["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|message| message["info"]["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["user", "assistant", "assistant", "user", "assistant"]
    );
    assert_eq!(messages[2]["info"]["parentID"], messages[0]["info"]["id"]);
    let parts = messages[1]["parts"].as_array().unwrap();
    assert_eq!(parts[1]["state"]["output"], "one\ntwo");
    assert_eq!(
        parts[2]["state"],
        json!({
            "status": "error", "input": { "filePath": "a.md", "limit": 5 }, "error": "no such file",
            "time": parts[2]["state"]["time"],
        })
    );
    assert_eq!(
        messages[3]["parts"][1]["url"],
        "data:image/png;base64,iVBORw0KGgo="
    );
    let sorted = |ids: &[&Value]| ids.is_sorted_by_key(|id| id.as_str().unwrap().to_owned());
    assert!(sorted(
        &messages
            .iter()
            .map(|message| &message["info"]["id"])
            .collect::<Vec<_>>()
    ));
}

#[test]
fn two_handoffs_of_one_path_are_two_sessions() {
    let world = World::new();
    for tool in Tool::AGENTS {
        let [one, other] = [(); 2].map(|()| world.prepare(Some(tool), &conversation()).unwrap());
        place(&one.files).unwrap();
        place(&other.files).unwrap();
        assert_ne!(
            one.files.first().unwrap().path,
            other.files.first().unwrap().path
        );
        let lines = |prepared: &Prepared| -> HashMap<String, usize> {
            let text = String::from_utf8(prepared.files.first().unwrap().bytes.clone()).unwrap();
            let ids = text
                .split('"')
                .filter(|word| word.len() >= 24 && !word.contains([' ', '/', ':', ',', '{']));
            ids.map(|id| (id.to_owned(), 1)).collect()
        };
        let (one, other) = (lines(&one), lines(&other));
        let both: Vec<&String> = one
            .keys()
            .filter(|id| other.contains_key(*id) && id.chars().any(|char| char.is_ascii_digit()))
            .collect();
        // The hash of the project is not used as an id.
        assert!(both.iter().all(|id| id.len() == 64), "{tool:?}: {both:?}");
    }
}

/// The record has the hash of the path that was written, and names the last entry of the path.
#[test]
fn the_record_has_the_hash_of_what_was_written() {
    let world = World::new();
    let mut path = conversation();
    path.push(json!({ "role": "user", "content": "And now?" }));
    let prepared = world.prepare(Some(Tool::Codex), &path).unwrap();
    let record: Value = serde_json::from_slice(&prepared.record).unwrap();
    assert_eq!(record["sha256"], hash(&written(Tool::Codex).messages));
    assert_eq!(record["messages"], 7);
    assert_eq!(
        (&record["entryId"], &record["sessionId"]),
        (&json!("e6"), &json!("tour"))
    );
    assert_eq!(record["nativeId"], prepared.native_id.unwrap());
    assert_eq!(
        record["path"],
        prepared.files.first().unwrap().path.to_str().unwrap()
    );
    assert_eq!(prepared.prompt.as_deref(), Some("And now?"));
    assert_eq!(prepared.steps.last().unwrap().last().unwrap(), "And now?");
    assert!(record.get("from").is_none() && record.get("thinking").is_none());
}

#[test]
fn what_was_learned_is_said_before_the_question() {
    let world = World::new();
    let mut path = conversation();
    path.push(json!({ "role": "user", "content": "And now?" }));
    let learn = |request: &mut Request<'_>| request.learned = Some("The cache is stale.");
    let prepared = world.prepare_with(Some(Tool::Pi), &path, learn).unwrap();
    let prompt = prepared.prompt.unwrap();
    assert!(
        prompt.contains("The cache is stale.\n\n---\n\nAnd now?"),
        "{prompt}"
    );
}

/// Once the limit counted only the messages, so a long prompt exceeded it.
#[test]
fn the_first_words_count_for_the_limit() {
    let world = World::new();
    let mut path = conversation();
    let handed = world.prepare(Some(Tool::Pi), &path).unwrap().tokens;
    let long = "What was learned is longer than what is left of the limit, so that it is too much to be said first.";
    let within = |path: &[Value], learned: Option<&'static str>| {
        let limit = |request: &mut Request<'_>| {
            request.limit = handed + 20;
            request.learned = learned;
        };
        let prepared = world.prepare_with(Some(Tool::Pi), path, limit);
        prepared.map(|_| ()).map_err(|error| error.kind)
    };
    assert_eq!(within(&path, None), Ok(()));
    assert_eq!(within(&path, Some(long)), Err(Kind::ContextTooLarge));
    path.push(json!({ "role": "user", "content": long }));
    assert_eq!(within(&path, None), Err(Kind::ContextTooLarge));
}

/// On Linux an argument has at most 128 KiB.
#[test]
fn a_long_prompt_is_a_file() {
    let world = World::new();
    let mut path = conversation();
    path.push(json!({ "role": "user", "content": "x".repeat(200 << 10) }));
    let prepared = world.prepare(Some(Tool::ClaudeCode), &path).unwrap();
    let last = prepared.steps.last().unwrap().last().unwrap().clone();
    let file = prepared.files.last().unwrap();
    assert_eq!(last, format!("Read {} and go on", file.path.display()));
    assert_eq!(file.bytes.len(), 200 << 10);
}

/// Once a prompt `-x` was taken for an option of the agent.
#[test]
fn a_prompt_is_not_an_option() {
    let world = World::new();
    let mut path = conversation();
    path.push(json!({ "role": "user", "content": "--help me" }));
    let prepared = world.prepare(Some(Tool::Codex), &path).unwrap();
    assert_eq!(prepared.steps.last().unwrap().last().unwrap(), " --help me");
}

#[test]
fn a_missing_folder_an_empty_path_and_a_long_one_are_refused() {
    let world = World::new();
    let refused =
        |refused: treelined_core::error::Result<Prepared>| refused.err().map(|error| error.kind);
    let elsewhere = |request: &mut Request<'_>| request.cwd = "/no/such/folder";
    let missing = world.prepare_with(Some(Tool::Codex), &conversation(), elsewhere);
    assert_eq!(refused(missing), Some(Kind::InvalidParams));
    let empty = world.prepare(
        Some(Tool::Codex),
        &[json!({ "role": "user", "content": "Why?" })],
    );
    let said = empty.err().unwrap();
    assert_eq!(said.kind, Kind::InvalidParams);
    // The error message was once about the member `entryId`, which a person never writes.
    let cwd = world.at("project").display().to_string();
    let plain =
        format!("no conversation to hand over: start codex in {cwd}, and give it the prompt");
    assert!(said.message.ends_with(&plain), "{}", said.message);
    let limited = |request: &mut Request<'_>| request.limit = 10;
    let large = world
        .prepare_with(Some(Tool::Codex), &conversation(), limited)
        .err()
        .unwrap();
    assert_eq!(large.kind, Kind::ContextTooLarge);
    assert_eq!(large.details.unwrap()["limit"], 10);
    let homeless = |request: &mut Request<'_>| request.environment = &|_| None;
    let nowhere = world.prepare_with(Some(Tool::Codex), &conversation(), homeless);
    assert_eq!(refused(nowhere), Some(Kind::PathDenied));
}

/// Once a NUL in a summary ended the argument, or kept the agent from starting.
#[test]
fn a_prompt_has_no_nul() {
    let world = World::new();
    let learn = |request: &mut Request<'_>| request.learned = Some("stale\0cache");
    let prepared = world
        .prepare_with(Some(Tool::Codex), &conversation(), learn)
        .unwrap();
    let said = prepared.steps.last().unwrap().last().unwrap();
    assert!(said.ends_with("stale\u{fffd}cache"), "{said:?}");
}

/// Once the daemon wrote below its own working directory, where the agent does not look.
#[test]
fn a_relative_folder_of_an_agent_is_refused() {
    let world = World::new();
    // The variables are CODEX_HOME, CLAUDE_CONFIG_DIR and PI_CODING_AGENT_DIR.
    let relative = |request: &mut Request<'_>| {
        request.environment = &|name| Some(if name == "HOME" { "/home/ada" } else { "x" }.into());
    };
    for tool in [Tool::Codex, Tool::ClaudeCode, Tool::Pi] {
        let refused = world.prepare_with(Some(tool), &conversation(), relative);
        let error = refused.err().unwrap();
        assert_eq!(error.kind, Kind::PathDenied);
        assert!(error.message.contains("relative path, x"), "{error:?}");
    }
}

/// Once a pipe in place of the settings kept the daemon waiting, and a file of any size was read.
#[test]
fn settings_are_a_regular_file_of_a_sensible_size() {
    let world = World::new();
    let settings = world.at("home/.codex/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let provider = || {
        let prepared = world.prepare(Some(Tool::Codex), &conversation()).unwrap();
        let text = String::from_utf8(prepared.files.first().unwrap().bytes.clone()).unwrap();
        let meta: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        meta["payload"]["model_provider"].clone()
    };
    let usual = provider();
    let set = "model_provider = \"azure\"\n";
    fs::write(world.at("dotfiles.toml"), set).unwrap();
    std::os::unix::fs::symlink(world.at("dotfiles.toml"), &settings).unwrap();
    assert_eq!(provider(), "azure");
    fs::remove_file(&settings).unwrap();
    fs::write(&settings, format!("{set}# {}", "x".repeat(1 << 20))).unwrap();
    assert_eq!(provider(), usual);
    fs::remove_file(&settings).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &settings, mode).unwrap();
    assert_eq!(provider(), usual);
}
