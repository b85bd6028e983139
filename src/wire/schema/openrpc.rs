//! The OpenRPC document of this daemon: `rpc.discover` and `schema/openrpc.json`.

use super::methods::{GROUPS, Method};
use super::protocol::{DEFINITIONS, Protocol, definition_name};
use schemars::Schema;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use treelined_core::error::Kind;

/// The version of the OpenRPC specification that this document follows.
const OPENRPC: &str = "1.3.2";

pub(super) fn document() -> Value {
    let protocol = Protocol::new();
    let methods: Vec<Value> = protocol
        .methods
        .iter()
        .map(|method| described(method, &protocol))
        .collect();
    let notifications: Vec<Value> = protocol
        .notifications
        .iter()
        .map(|sent| {
            json!({
                "name": sent.name,
                "summary": sent.summary,
                "description": protocol.description(sent.name, sent.summary, &sent.params),
                "params": sent.params,
            })
        })
        .collect();
    let definitions = protocol.definitions;
    let errors: Map<String, Value> = Kind::ALL
        .iter()
        .map(|kind| {
            let error = json!({
                "code": kind.code(),
                "message": kind.advice().happened,
                "data": {
                    "kind": kind.name(),
                    "retryable": kind.retryable(),
                    "remedy": kind.advice().remedy,
                },
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
        "components": { "schemas": without_cycles(definitions), "errors": errors, "tags": tags() },
    });
    relocate(&mut document);
    document
}

fn tags() -> Map<String, Value> {
    let tags = GROUPS.iter().map(|group| {
        let object = json!({ "name": group.name, "description": group.summary });
        (group.name.to_owned(), object)
    });
    tags.collect()
}

fn definition_of<'d>(schema: &Schema, definitions: &'d Map<String, Value>) -> Option<&'d Value> {
    definitions.get(definition_name(schema)?)
}

fn description_of(schema: &Schema, definitions: &Map<String, Value>) -> Option<Value> {
    definition_of(schema, definitions)?
        .get("description")
        .cloned()
}

fn described(method: &Method, protocol: &Protocol) -> Value {
    let definitions = &protocol.definitions;
    let definition = definition_of(&method.params, definitions);
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
    let tag = json!({ "$ref": format!("#/components/tags/{}", method.group) });
    json!({
        "name": method.name,
        "summary": method.summary,
        "description": protocol.description(method.name, method.summary, &method.params),
        "tags": [tag],
        "paramStructure": "by-name",
        "params": params,
        "result": {
            "name": "result",
            "description": description_of(&method.result, definitions),
            "schema": method.result,
        },
        "errors": errors,
        "examples": [pairing(method, protocol)],
    })
}

fn pairing(method: &Method, protocol: &Protocol) -> Value {
    let params = protocol.example(&method.params).and_then(Value::as_object);
    let params = params.into_iter().flatten();
    let params = params.map(|(name, value)| json!({ "name": name, "value": value }));
    json!({
        "name": method.name,
        "description": method.summary,
        "params": params.collect::<Vec<_>>(),
        "result": { "name": "result", "value": protocol.example(&method.result) },
    })
}

/// The definitions without references to themselves. The reference tools of OpenRPC replace each reference with its
/// target, so they would never finish. Inside a definition, a reference to the same definition becomes an object
/// that names it.
fn without_cycles(mut definitions: Map<String, Value>) -> Map<String, Value> {
    let mut references: HashMap<String, HashSet<String>> = HashMap::new();
    for (name, definition) in &mut definitions {
        let targets = references.entry(name.clone()).or_default();
        for_each_object(definition, |object| targets.extend(target_of(object)));
    }
    for (name, definition) in &mut definitions {
        for_each_object(definition, |object| {
            if let Some(target) = target_of(object)
                && leads_to(&target, name, &references)
            {
                object.shift_remove("$ref");
                object.insert("type".into(), "object".into());
                object.insert("description".into(), format!("Again as `{target}`.").into());
                if let Some(targets) = references.get_mut(name) {
                    targets.remove(&target);
                }
            }
        });
    }
    definitions
}

/// The definition that a reference names.
fn target_of(object: &Map<String, Value>) -> Option<String> {
    let reference = object.get("$ref")?.as_str()?;
    reference.strip_prefix(DEFINITIONS).map(str::to_owned)
}

fn leads_to(from: &str, to: &str, references: &HashMap<String, HashSet<String>>) -> bool {
    let mut seen = HashSet::from([from]);
    let mut pending = vec![from];
    while let Some(name) = pending.pop() {
        if name == to {
            return true;
        }
        let targets = references.get(name).into_iter().flatten();
        pending.extend(targets.map(String::as_str).filter(|name| seen.insert(name)));
    }
    false
}

/// Changes the references, since definitions have another path in an OpenRPC document.
fn relocate(document: &mut Value) {
    for_each_object(document, |object| {
        if let Some(Value::String(reference)) = object.get_mut("$ref")
            && let Some(name) = reference.strip_prefix(DEFINITIONS)
        {
            *reference = format!("#/components/schemas/{name}");
        }
    });
}

fn for_each_object(value: &mut Value, mut change: impl FnMut(&mut Map<String, Value>)) {
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        match value {
            Value::Object(members) => {
                change(members);
                pending.extend(members.values_mut());
            }
            Value::Array(elements) => pending.extend(elements.iter_mut()),
            _ => {}
        }
    }
}
