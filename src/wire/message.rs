//! The schema of messages and their content, made from the table in [`treelined_core::shape`] (protocol.md §9).
//! Messages themselves are sent as raw bytes.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::marker::PhantomData;
use treelined_core::shape::{self, KnownMember, Record, Shape};

/// A message, by its role.
pub struct Message;

/// A text, or content blocks.
pub struct Content;

/// A piece of content, by its type.
pub struct ContentBlock;

/// The tokens that a model used.
pub struct Usage;

/// The schema of a member that may be left out *and* may be null. Other optional members of JSON that the
/// daemon sends must not be null.
pub struct OrNull<T>(PhantomData<T>);

impl JsonSchema for Message {
    fn schema_name() -> Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = "A message, by its role. Members that are not listed are kept.";
        union(generator, "role", "OtherMessage", text, shape::ROLES)
    }
}

impl JsonSchema for ContentBlock {
    fn schema_name() -> Cow<'static, str> {
        "ContentBlock".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let text = "A piece of content, by its type. Members that are not listed are kept.";
        union(generator, "type", "OtherBlock", text, shape::BLOCKS)
    }
}

impl JsonSchema for Content {
    fn schema_name() -> Cow<'static, str> {
        "Content".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let block = generator.subschema_for::<ContentBlock>();
        json_schema!({
            "description": "A text, or content blocks.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": block }],
        })
    }
}

impl JsonSchema for Usage {
    fn schema_name() -> Cow<'static, str> {
        shape::USAGE.name.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        object(generator, &shape::USAGE, None)
    }
}

impl<T: JsonSchema> JsonSchema for OrNull<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("{}OrNull", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut value: Value = generator.subschema_for::<T>().into();
        or_null(&mut value);
        value.try_into().unwrap_or_default()
    }
}

/// Lets a member be null. The result is not a list of types, since null is removed from such lists in
/// definitions of JSON that the daemon sends.
pub(super) fn or_null(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    let takes_null = match members.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == "null"),
        Some(Value::String(name)) => name == "null",
        _ => false,
    };
    let only_described = members.keys().all(|key| key == "description");
    let is_union = |word: &str| {
        let shapes = members.get(word).and_then(Value::as_array);
        shapes.is_some_and(|shapes| shapes.contains(&json!({ "type": "null" })))
    };
    if takes_null || only_described || is_union("oneOf") || is_union("anyOf") {
        return;
    }
    let mut outer = Map::new();
    if let Some(description) = members.shift_remove("description") {
        outer.insert("description".into(), description);
    }
    let inner = Value::Object(std::mem::take(members));
    outer.insert("oneOf".into(), json!([inner, { "type": "null" }]));
    *members = outer;
}

/// A union of the known records, which their tag distinguishes, and of a record for every other tag.
fn union(
    generator: &mut SchemaGenerator,
    tag: &str,
    other: &str,
    description: &str,
    records: &[Record],
) -> Schema {
    let mut shapes: Vec<Value> = records
        .iter()
        .map(|record| defined(generator, record, Some(tag)))
        .collect();
    let known: Vec<&str> = records.iter().map(|record| record.tag).collect();
    let rest = json!({
        "description": format!("Any other {tag}."),
        "type": "object",
        "properties": {
            tag: { "description": "Any other value.", "type": "string", "not": { "enum": known } },
        },
        "required": [tag],
    });
    generator.definitions_mut().insert(other.into(), rest);
    shapes.push(json!({ "$ref": format!("#/$defs/{other}") }));
    json_schema!({ "description": description, "oneOf": shapes })
}

/// A reference to the definition of a record.
fn defined(generator: &mut SchemaGenerator, record: &Record, tag: Option<&str>) -> Value {
    let definition = object(generator, record, tag);
    let definitions = generator.definitions_mut();
    definitions.insert(record.name.into(), definition.into());
    json!({ "$ref": format!("#/$defs/{}", record.name) })
}

fn object(generator: &mut SchemaGenerator, record: &Record, tag: Option<&str>) -> Schema {
    let mut properties = Map::new();
    if let Some(tag) = tag {
        let schema =
            json!({ "description": format!("The {tag}."), "type": "string", "const": record.tag });
        properties.insert(tag.into(), schema);
    }
    for member in record.members {
        properties.insert(member.name.into(), of_member(generator, member));
    }
    let required = record.members.iter().filter(|member| member.is_required);
    let required: Vec<&str> = tag
        .into_iter()
        .chain(required.map(|member| member.name))
        .collect();
    let mut schema = json_schema!({
        "description": record.description,
        "type": "object",
        "properties": properties,
    });
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    schema
}

fn of_member(generator: &mut SchemaGenerator, member: &KnownMember) -> Value {
    let mut schema = match member.shape {
        Shape::Any => json!({}),
        Shape::Text => json!({ "type": "string" }),
        Shape::Number => json!({ "type": "number" }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Time => json!({ "type": ["number", "string"] }),
        Shape::Object(record) => defined(generator, record, None),
        Shape::Blocks => {
            json!({ "type": "array", "items": generator.subschema_for::<ContentBlock>() })
        }
        Shape::TextOrBlocks => generator.subschema_for::<Content>().into(),
    };
    if let Value::Object(schema) = &mut schema {
        schema.insert("description".into(), member.description.into());
    }
    if !member.is_required {
        or_null(&mut schema);
    }
    schema
}
