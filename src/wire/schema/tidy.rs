//! Changes derived schemas to the form that the documents have.

use schemars::Schema;
use serde_json::{Map, Value, json};
use std::fmt::Write;

pub(super) fn schemas(definitions: &mut Map<String, Value>) -> impl Iterator<Item = &mut Schema> {
    definitions
        .values_mut()
        .filter_map(|definition| definition.try_into().ok())
}

/// Makes the optional members of objects that the daemon sends not nullable, since the daemon leaves them out
/// instead.
pub(super) fn never_null(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    let is_optional = |name: &String| {
        required
            .as_array()
            .is_none_or(|names| !names.iter().any(|n| n == name))
    };
    for (_, member) in properties.iter_mut().filter(|(name, _)| is_optional(name)) {
        let Some(member) = member.as_object_mut() else {
            continue;
        };
        if let Some(Value::Array(types)) = member.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                member.insert("type".into(), only);
            }
        }
        if let Some(Value::Array(shapes)) = member.get_mut("anyOf") {
            shapes.retain(|shape| *shape != json!({ "type": "null" }));
            if let [Value::Object(only)] = shapes.as_slice() {
                let only = only.clone();
                member.shift_remove("anyOf");
                member.extend(only);
            }
        }
    }
}

/// Removes data that mean nothing to clients: number formats, and line breaks of the source. An enum whose
/// values are described one by one becomes a plain enum, which generators support better.
pub(super) fn tidy(schema: &mut Schema) {
    let formats = ["uint", "uint32", "uint64", "int32", "double"];
    if schema
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|name| formats.contains(&name))
    {
        schema.remove("format");
    }
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text
            .replace("\n\n", "\0")
            .replace('\n', " ")
            .replace('\0', "\n\n");
    }
    // In draft 7 (OpenRPC), the description beside a bare `$ref` is ignored, and generators of types make a copy
    // of the definition for it.
    if schema.get("$ref").is_some()
        && schema.get("description").is_some()
        && let Some(reference) = schema.remove("$ref")
    {
        schema.remove("type");
        schema.insert("allOf".into(), json!([{ "$ref": reference }]));
    }
    if let Some((names, described)) = plain_enum(schema) {
        schema.remove("oneOf");
        schema.insert("type".into(), "string".into());
        schema.insert("enum".into(), names.into());
        let text = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let text = format!("{text}\n{described}");
        schema.insert("description".into(), text.into());
    }
}

/// The values of a union of strings, and a text with one line for each value that has a description.
pub(super) fn plain_enum(schema: &Schema) -> Option<(Vec<Value>, String)> {
    let mut names = Vec::new();
    let mut described = String::new();
    for shape in schema.get("oneOf")?.as_array()? {
        if let Some(name) = shape.get("const").and_then(Value::as_str) {
            names.push(name.into());
            if let Some(text) = shape.get("description").and_then(Value::as_str) {
                let _ = write!(described, "\n`{name}`: {}", text.replace('\n', " "));
            }
        } else {
            names.extend(shape.get("enum")?.as_array()?.iter().cloned());
        }
    }
    Some((names, described))
}
