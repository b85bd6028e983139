//! Checks of every conversation (protocol.md §1, §7, §8), and checks that several tests share.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use super::*;

/// Notifications that nearly every call causes. Tests of other subjects ignore them.
pub(super) const BOOKKEEPING: [&str; 7] = [
    "entries_appended",
    "session_opened",
    "session_closed",
    "session_tree",
    "session_info_changed",
    "session_before_tree",
    "session_reordered",
];

// --- the schema ---

/// Definitions whose values come from session files. They are not checked, since a session file may hold anything.
const STORED: [&str; 3] = ["Entry", "Message", "ContentBlock"];

/// The number of items of an array that are checked. The other items are made by the same code of the daemon.
const ITEMS: usize = 20;

/// The documents that the daemon publishes (`schema/`).
struct Schema {
    definitions: Json,
    /// For each method, the schema of its result and the kinds of its errors.
    methods: HashMap<String, (Json, Vec<String>)>,
    /// For each notification, the schema of its params.
    notifications: HashMap<String, Json>,
    /// The code of each kind of error.
    errors: HashMap<String, i64>,
    /// The kinds of errors that every request can fail with.
    general: Vec<String>,
}

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let wire = include_str!("../../../schema/treelined.v1.json");
        let list = include_str!("../../../schema/methods.json");
        let mut wire: Json = serde_json::from_str(wire).unwrap();
        let list: Json = serde_json::from_str(list).unwrap();
        let rows = |name: &str| list[name].as_array().unwrap().iter();
        let text = |value: &Json| value.as_str().unwrap().to_owned();
        let methods: HashMap<String, (Json, Vec<String>)> = rows("methods")
            .map(|row| {
                (
                    text(&row["name"]),
                    (row["result"].clone(), ids(&row["errors"])),
                )
            })
            .collect();
        let errors: HashMap<String, i64> = rows("errors")
            .map(|row| (text(&row["kind"]), row["code"].as_i64().unwrap()))
            .collect();
        Schema {
            definitions: wire["$defs"].take(),
            general: ids(&list["commonErrors"]),
            notifications: rows("notifications")
                .map(|row| (text(&row["name"]), row["params"].clone()))
                .collect(),
            methods,
            errors,
        }
    })
}

/// Checks the params of a notification against the schema.
#[track_caller]
pub(super) fn check_notification(name: &str, params: &Json) {
    let Some(expected) = schema().notifications.get(name) else {
        panic!("the schema has no notification {name}");
    };
    if let Err(why) = fits(expected, params) {
        panic!("{name}: {why}: {}", shorten(&params.to_string()));
    }
}

/// Checks a response to `method` against the schema: the result, or the kind and code of the error.
#[track_caller]
pub(super) fn check_response(method: &str, message: &Json) {
    let Some((result, kinds)) = schema().methods.get(method) else {
        let kind = &message["error"]["data"]["kind"];
        assert_eq!(kind, "methodNotFound", "{method} is not in the schema");
        return;
    };
    let shown = || shorten(&message.to_string());
    if let Some(given) = message.get("result") {
        if let Err(why) = fits(result, given) {
            panic!("{method}: {why}: {}", shown());
        }
        return;
    }
    let error = &message["error"];
    let kind = error["data"]["kind"].as_str().expect("an error has a kind");
    let code = schema().errors.get(kind).copied();
    assert_eq!(error["code"].as_i64(), code, "the code of {kind}");
    let is_listed = |list: &[String]| list.iter().any(|listed| listed == kind);
    assert!(
        is_listed(kinds) || is_listed(&schema().general),
        "the schema does not list {kind} for {method}: {}",
        shown()
    );
}

/// Whether a value has the shape of a schema. The limits of numbers and texts are not checked.
fn fits(expected: &Json, value: &Json) -> Result<(), String> {
    if let Some(name) = expected["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or(name);
        return match STORED.contains(&name) {
            true => Ok(()),
            false => fits(&schema().definitions[name], value),
        };
    }
    for part in list(&expected["allOf"]) {
        fits(part, value)?;
    }
    for alternatives in [&expected["anyOf"], &expected["oneOf"]] {
        let results: Vec<_> = list(alternatives)
            .iter()
            .map(|one| fits(one, value))
            .collect();
        if !results.is_empty() && results.iter().all(Result::is_err) {
            let reasons: Vec<String> = results.into_iter().filter_map(Result::err).collect();
            return Err(reasons.join(", or "));
        }
    }
    let type_fits = match &expected["type"] {
        Json::Null => true,
        Json::String(name) => has_type(name, value),
        names => list(names)
            .iter()
            .any(|name| has_type(name.as_str().unwrap_or(""), value)),
    };
    if !type_fits {
        return Err(format!(
            "{} is expected: {}",
            expected["type"],
            shorten(&value.to_string())
        ));
    }
    let is_allowed = match (&expected["const"], &expected["enum"]) {
        (Json::Null, Json::Null) => true,
        (Json::Null, allowed) => list(allowed).contains(value),
        (constant, _) => constant == value,
    };
    if !is_allowed {
        return Err(format!("{value} is not one of the allowed values"));
    }
    for item in list(value).iter().take(ITEMS) {
        fits(&expected["items"], item)?;
    }
    members_fit(expected, value)
}

/// Like [`fits`], for the members of an object: all required members must be present, and no unknown member.
fn members_fit(expected: &Json, value: &Json) -> Result<(), String> {
    let Some(members) = value.as_object() else {
        return Ok(());
    };
    for name in list(&expected["required"]) {
        let name = name.as_str().unwrap_or_default();
        if !members.contains_key(name) {
            return Err(format!("there is no member {name}"));
        }
    }
    let Some(properties) = expected["properties"].as_object() else {
        return Ok(());
    };
    for (name, member) in members {
        let property = properties
            .get(name)
            .unwrap_or(&expected["additionalProperties"]);
        if property.is_null() {
            return Err(format!("the member {name} is not in the schema"));
        }
        fits(property, member).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn has_type(name: &str, value: &Json) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the schema has a type {other}"),
    }
}

/// For each session, the number of its last notification.
#[derive(Default)]
pub(super) struct Sequence(HashMap<String, u64>);

impl Sequence {
    /// Checks that no notification of a session is missing (protocol.md §7).
    #[track_caller]
    pub(super) fn check(&mut self, method: &str, params: &Json) {
        if matches!(
            method,
            "summary_delta" | "progress" | "search_hit" | "sessions_changed"
        ) {
            return;
        }
        // Notifications about commands, and questions and messages to a person, have no number.
        let is_unnumbered = matches!(method, "command_invoked" | "user_asked" | "user_notified")
            || params["event"] == "user_asked";
        if is_unnumbered {
            assert!(params.get("seq").is_none(), "{method} with seq: {params}");
            return;
        }
        let session = params["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("{method} without sessionId: {params}"));
        if method == "events_lost" {
            self.0.remove(session);
            return;
        }
        let number = params["seq"]
            .as_u64()
            .unwrap_or_else(|| panic!("{method} without seq: {params}"));
        let before = self.0.insert(session.to_owned(), number);
        if let Some(before) = before
            && method != "session_opened"
        {
            assert_eq!(number, before + 1, "seq of {method} in {session}");
        }
        if method == "session_closed" {
            self.0.remove(session);
        }
    }
}

// --- messages ---

#[track_caller]
pub(super) fn parse_message(line: &str) -> Json {
    let message =
        parse(line).unwrap_or_else(|e| panic!("stdout line is not JSON ({e}): {}", shorten(line)));
    assert_eq!(message["jsonrpc"], "2.0", "{}", shorten(line));
    if message.get("method").is_none() {
        assert_ne!(
            message.get("result").is_some(),
            message.get("error").is_some(),
            "result or error, not both: {}",
            shorten(line)
        );
    }
    message
}

/// Parses without a limit on depth. A lone surrogate escape, which stored text may hold, becomes U+FFFD.
pub(crate) fn parse(text: &str) -> Result<Json, serde_json::Error> {
    let deep = |text: &str| {
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        let value = <Json as serde::Deserialize>::deserialize(&mut reader)?;
        reader.end()?;
        Ok(value)
    };
    deep(text).or_else(|_: serde_json::Error| deep(&replace_lone_surrogates(text)))
}

fn replace_lone_surrogates(text: &str) -> String {
    let unit = |at: usize| -> Option<u32> {
        let escape = text.get(at..at + 6)?;
        u32::from_str_radix(escape.strip_prefix("\\u")?, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = text[at..].find('\\') {
        let escape = at + found;
        out.push_str(&text[at..escape]);
        let taken = match unit(escape) {
            Some(0xD800..=0xDBFF) if matches!(unit(escape + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str("\\ufffd");
                at = escape + 6;
                continue;
            }
            Some(_) => 6,
            None => 2,
        };
        let end = (escape + taken).min(text.len());
        out.push_str(&text[escape..end]);
        at = end;
    }
    out.push_str(&text[at..]);
    out
}

pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Checks that the fastest of at most five attempts takes less than `limit`, since the machine may be busy.
#[track_caller]
pub(crate) fn takes_at_most(limit: Duration, mut attempt: impl FnMut() -> Duration) {
    let mut took = Vec::new();
    while took.len() < 5 {
        took.push(attempt());
        if took.last().is_some_and(|took| *took < limit) {
            return;
        }
    }
    panic!("no attempt took less than {limit:?}: {took:?}");
}

/// The files below a folder, hidden ones too.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push(path),
            }
        }
    }
    files
}

/// The home of the user as whom the daemon runs.
pub(crate) fn home_of(d: &Daemon) -> PathBuf {
    d.home.sessions().parent().unwrap().to_owned()
}

/// A session of two turns, `u1 a1 u2 a2`, and its file.
pub(crate) fn two_turns() -> (Daemon, PathBuf) {
    let mut d = Daemon::quiet();
    d.create();
    d.chain(&["u1", "a1", "u2", "a2"]);
    let path = d.home.only_file();
    (d, path)
}

/// The members of a result that say why its operation was cancelled: `reason`, `by` and `message`.
#[track_caller]
pub(crate) fn why_cancelled(result: &Json) -> [&Json; 3] {
    assert_eq!(result["cancelled"], true, "{result}");
    ["reason", "by", "message"].map(|member| &result[member])
}

/// How long a test waits before it looks again.
const TURN: Duration = Duration::from_millis(10);

/// Waits until `holds` returns true, for work that the daemon does in the background. The deadline is one of turns, not of
/// the clock: on a machine that was suspended, time passes in which the daemon does nothing.
#[track_caller]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let turns = DEADLINE.as_millis() / TURN.as_millis();
    for _ in 0..turns {
        if holds() {
            return;
        }
        thread::sleep(TURN);
    }
    panic!("never came true: {what}");
}

/// Runs `body` on a thread with a large stack, for values so deep that parsing or dropping them overflows
/// the stack of a test thread.
pub(crate) fn on_a_big_stack(body: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new()
        .stack_size(512 << 20)
        .spawn(body)
        .unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
