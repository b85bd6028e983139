//! The OpenRPC document of this daemon: `rpc.discover` and `schema/openrpc.json`.

use super::Protocol;
use super::methods::Method;
use crate::error::Kind;
use serde_json::{Map, Value, json};
use std::sync::OnceLock;

/// The version of the OpenRPC specification that is followed.
const OPENRPC: &str = "1.3.2";

/// The document without white space.
pub fn openrpc() -> &'static str {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(|| document().to_string())
}

pub(super) fn document() -> Value {
    let Protocol {
        methods,
        notifications,
        definitions,
    } = Protocol::new();
    let methods: Vec<Value> = methods
        .iter()
        .map(|method| described(method, &definitions))
        .collect();
    let notifications: Vec<Value> = notifications
        .into_iter()
        .map(|notification| {
            json!({
                "name": notification.name,
                "summary": notification.summary,
                "params": notification.params,
            })
        })
        .collect();
    let errors: Map<String, Value> = Kind::ALL
        .iter()
        .map(|kind| {
            let error = json!({
                "code": kind.code(),
                "message": kind.name(),
                "data": { "kind": kind.name(), "retryable": kind.retryable() },
            });
            (kind.name().to_owned(), error)
        })
        .collect();
    let mut document = json!({
        "openrpc": OPENRPC,
        "info": {
            "title": "treelined",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Keeps conversations of AI agents as trees, over JSON-RPC on stdio.",
        },
        "methods": methods,
        "x-notifications": notifications,
        "components": { "schemas": definitions, "errors": errors },
    });
    relocate(&mut document);
    document
}

fn described(method: &Method, definitions: &Map<String, Value>) -> Value {
    let definition = method
        .params
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| definitions.get(reference.strip_prefix("#/$defs/")?));
    let member = |name: &str| definition.and_then(|definition| definition.get(name));
    let required = member("required").and_then(Value::as_array);
    let params: Vec<Value> = member("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let mut descriptor = Map::new();
            descriptor.insert("name".into(), name.as_str().into());
            if let Some(text) = schema.get("description") {
                descriptor.insert("description".into(), text.clone());
            }
            let needed = required.is_some_and(|names| names.iter().any(|other| other == name));
            descriptor.insert("required".into(), needed.into());
            descriptor.insert("schema".into(), schema.clone());
            Value::Object(descriptor)
        })
        .collect();
    let errors: Vec<Value> = method
        .errors
        .iter()
        .map(|kind| json!({ "$ref": format!("#/components/errors/{}", kind.name()) }))
        .collect();
    json!({
        "name": method.name,
        "summary": method.summary,
        "paramStructure": "by-name",
        "params": params,
        "result": { "name": "result", "schema": method.result },
        "errors": errors,
    })
}

/// Definitions stand elsewhere in an OpenRPC document.
fn relocate(document: &mut Value) {
    let mut pending = vec![document];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get_mut("$ref")
                    && let Some(name) = reference.strip_prefix("#/$defs/")
                {
                    *reference = format!("#/components/schemas/{name}");
                }
                pending.extend(members.values_mut());
            }
            Value::Array(elements) => pending.extend(elements.iter_mut()),
            _ => {}
        }
    }
}
