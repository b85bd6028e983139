//! The documents that describe the protocol and the file format. They are made from the `wire` types and
//! the table of methods. The module is pure and deterministic: the program writes the documents to
//! `schema/`, and a test compares them.

mod methods;
mod openrpc;
mod reference;

pub use generators::Generators;
pub use methods::notification_names;
pub use openrpc::openrpc;
use protocol::{Protocol, names};

use crate::entry::FileLine;
use crate::methods::ANY;
use methods::GROUPS;
use schemars::Schema;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::OnceLock;
use treelined_core::error::Kind;

/// The version of the protocol.
pub const PROTOCOL_VERSION: u32 = 1;

/// The file with the definitions of the wire types. Other documents refer to these definitions.
const WIRE_FILE: &str = "treelined.v1.json";

/// The files of `schema/`, each with its name and text.
pub fn documents() -> Vec<(&'static str, String)> {
    vec![
        (WIRE_FILE, wire_document().to_owned()),
        ("methods.json", pretty(&method_list())),
        ("openrpc.json", pretty(&openrpc::document())),
        ("session-file.v3.json", pretty(&session_file())),
        ("reference.md", reference::document()),
    ]
}

/// `sha256:` and the hash of `treelined.v1.json` in hex. It is read from `schema/methods.json`: making the
/// document and hashing it would take longer than everything else that a daemon does before its first
/// answer. A test compares both.
pub fn schema_hash() -> String {
    const METHODS: &str = include_str!("../methods.json");
    let said = METHODS.split_once("\"schemaHash\": \"");
    let said = said.and_then(|(_, rest)| rest.split_once('"'));
    said.map_or_else(computed_hash, |(hash, _)| hash.to_owned())
}

/// The hash of the document as this program makes it.
fn computed_hash() -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(wire_document()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn wire_document() -> &'static str {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let definitions = Protocol::new().definitions;
        // Generators of types start at the root and leave out types that the root does not name.
        let named: Map<String, Value> = definitions
            .keys()
            .map(|name| (name.clone(), json!({ "$ref": format!("#/$defs/{name}") })))
            .collect();
        pretty(&json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "urn:treelined:protocol:v1",
            "title": "TreelinedProtocol",
            "description": "Params, results, notifications and errors of protocol version 1, each a member by its name. methods.json says which belong to which method.",
            "type": "object",
            "properties": named,
            "$defs": definitions,
        }))
    })
}

fn method_list() -> Value {
    let Protocol {
        methods,
        notifications,
        ..
    } = Protocol::new();
    let methods = methods.into_iter().map(|method| {
        json!({
            "name": method.name,
            "group": method.group,
            "scope": method.scope.name(),
            "summary": method.summary,
            "section": method.section,
            "params": in_file(&method.params),
            "result": in_file(&method.result),
            "errors": names(&method.errors),
            "notification": method.notification,
        })
    });
    let groups = GROUPS
        .iter()
        .map(|group| json!({ "name": group.name, "summary": group.summary }));
    let notifications = notifications.into_iter().map(|notification| {
        json!({
            "name": notification.name,
            "summary": notification.summary,
            "section": notification.section,
            "params": in_file(&notification.params),
        })
    });
    let errors = Kind::ALL.iter().map(|kind| {
        json!({
            "kind": kind.name(),
            "code": kind.code(),
            "retryable": kind.retryable(),
            "description": kind.advice().happened,
            "remedy": kind.advice().remedy,
        })
    });
    json!({
        "protocolVersion": PROTOCOL_VERSION,
        "schemaHash": computed_hash(),
        "groups": groups.collect::<Vec<_>>(),
        "methods": methods.collect::<Vec<_>>(),
        "notifications": notifications.collect::<Vec<_>>(),
        "errors": errors.collect::<Vec<_>>(),
        "commonErrors": names(ANY),
    })
}

fn session_file() -> Value {
    let mut generators = Generators::default();
    let line = generators.result::<FileLine>();
    let reference = line.get("$ref").cloned();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:treelined:session-file:v3",
        "title": "treelined session file, version 3",
        "description": "One JSON object per line: the header first, then entries and leaf records.",
        "$ref": reference,
        "$defs": generators.into_definitions(),
    })
}

/// A reference in the form for documents other than the file of definitions.
fn in_file(schema: &Schema) -> Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => json!({ "$ref": format!("{WIRE_FILE}{reference}") }),
        None => schema.clone().into(),
    }
}

fn pretty(document: &Value) -> String {
    format!("{document:#}\n")
}

mod generators;
mod protocol;
#[cfg(test)]
mod tests;
mod tidy;
