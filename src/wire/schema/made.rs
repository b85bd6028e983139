//! Makes the documents of `schema/` from the types of the protocol and the table of methods. The module is a part of
//! the tests only, since the program has the finished documents.

use super::PROTOCOL_VERSION;
use super::generators::Generators;
use super::methods::GROUPS;
use super::openrpc;
use super::protocol::{Protocol, names};
use super::reference;
use crate::entry::FileLine;
use crate::methods::ANY;
use schemars::Schema;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::OnceLock;
use treelined_core::error::Kind;

/// The file with the definitions of the wire types. Other documents refer to these definitions.
const WIRE_FILE: &str = "treelined.v1.json";

/// The files of `schema/`, each with its name and text.
pub(super) fn documents() -> Vec<(&'static str, String)> {
    vec![
        (WIRE_FILE, wire_document().to_owned()),
        ("methods.json", pretty(&method_list())),
        ("openrpc.json", pretty(&openrpc::document())),
        ("session-file.v3.json", pretty(&session_file())),
        ("reference.md", reference::document()),
    ]
}

/// `sha256:` and the hash of `treelined.v1.json` in hex.
pub(super) fn hash() -> String {
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
            "right": method.right.name(),
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
        "schemaHash": hash(),
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
