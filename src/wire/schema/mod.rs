//! The documents that describe the protocol and the file format, made from the `wire` types and the method
//! table. Pure and deterministic: The program writes them to `schema/`, and a test compares.

mod methods;
mod openrpc;
mod reference;

pub use methods::notification_names;
pub use openrpc::openrpc;

use crate::RequestId;
use crate::entry::FileLine;
use crate::methods::ANY;
use methods::{GROUPS, Method, Notification, methods, notifications};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::OnceLock;
use treelined_core::error::{Advice, Kind};

/// The version of the protocol.
pub const PROTOCOL_VERSION: u32 = 1;

/// The beginning of a reference to a definition of the same document.
const DEFINITIONS: &str = "#/$defs/";

/// The definitions of the wire types; other documents refer to them there.
const WIRE_FILE: &str = "treelined.v1.json";

/// The files of `schema/`: name and text.
pub fn documents() -> Vec<(&'static str, String)> {
    vec![
        (WIRE_FILE, wire_document().to_owned()),
        ("methods.json", pretty(&method_list())),
        ("openrpc.json", pretty(&openrpc::document())),
        ("session-file.v3.json", pretty(&session_file())),
        ("reference.md", reference::document()),
    ]
}

/// `sha256:` and the hash of `treelined.v1.json`, in hex, as `schema/methods.json` says it: making the
/// document to hash it takes longer than all else that a daemon does before its first answer. A test
/// compares.
pub fn schema_hash() -> String {
    const METHODS: &str = include_str!("../methods.json");
    let said = METHODS.split_once("\"schemaHash\": \"");
    let said = said.and_then(|(_, rest)| rest.split_once('"'));
    said.map_or_else(computed_hash, |(hash, _)| hash.to_owned())
}

/// The hash of the document that this program makes.
fn computed_hash() -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(wire_document()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// One generator for params and one for results: an optional member may be null in params and is absent from results.
pub struct Generators {
    incoming: SchemaGenerator,
    outgoing: SchemaGenerator,
}

impl Default for Generators {
    fn default() -> Self {
        let settings = || SchemaSettings::draft2020_12();
        Self {
            incoming: settings().for_deserialize().into_generator(),
            outgoing: settings().for_serialize().into_generator(),
        }
    }
}

impl Generators {
    fn params<T: JsonSchema>(&mut self) -> Schema {
        self.incoming.subschema_for::<T>()
    }

    fn result<T: JsonSchema>(&mut self) -> Schema {
        self.outgoing.subschema_for::<T>()
    }

    /// All definitions so far, by name, without the examples of params and results.
    fn into_definitions(self) -> Map<String, Value> {
        self.into_definitions_and_examples().0
    }

    /// All definitions so far and the examples of those that have one, both by name.
    fn into_definitions_and_examples(mut self) -> (Map<String, Value>, Map<String, Value>) {
        let mut definitions = self.outgoing.take_definitions(true);
        for definition in schemas(&mut definitions) {
            RecursiveTransform(never_null).transform(definition);
        }
        for (name, definition) in self.incoming.take_definitions(true) {
            definitions.entry(name).or_insert(definition);
        }
        for definition in schemas(&mut definitions) {
            RecursiveTransform(tidy).transform(definition);
        }
        definitions.sort_keys();
        let mut examples = Map::new();
        for (name, definition) in &mut definitions {
            let Some(Value::Array(given)) = definition
                .as_object_mut()
                .and_then(|definition| definition.shift_remove("examples"))
            else {
                continue;
            };
            examples.extend(given.into_iter().next().map(|given| (name.clone(), given)));
        }
        (definitions, examples)
    }
}

/// Everything `treelined.v1.json` defines, and the tables that refer to it.
struct Protocol {
    methods: Vec<Method>,
    notifications: Vec<Notification>,
    definitions: Map<String, Value>,
    /// By the name of the definition.
    examples: Map<String, Value>,
}

impl Protocol {
    fn new() -> Self {
        let mut generators = Generators::default();
        let methods = methods(&mut generators);
        let notifications = notifications(&mut generators);
        generators.params::<RequestId>();
        generators.result::<crate::ErrorObject>();
        generators.result::<crate::InvalidParamsDetails>();
        generators.result::<crate::EntryNotFoundDetails>();
        generators.result::<crate::LeafMovedDetails>();
        generators.result::<crate::SessionBusyDetails>();
        generators.result::<crate::EntryInvalidDetails>();
        generators.result::<crate::CommandDetails>();
        generators.result::<crate::CommandFailedDetails>();
        generators.result::<crate::TreeChangedDetails>();
        generators.result::<crate::PartialWriteDetails>();
        let (mut definitions, examples) = generators.into_definitions_and_examples();
        definitions.insert("ErrorKind".into(), error_kind().into());
        definitions.sort_keys();
        Self {
            methods,
            notifications,
            definitions,
            examples,
        }
    }

    /// The definition of a params or result type.
    fn definition(&self, schema: &Schema) -> &Value {
        let name = definition_name(schema);
        let definition = name.and_then(|name| self.definitions.get(name));
        definition.unwrap_or(&Value::Null)
    }

    /// The description of a method or a notification: its summary, and the sentences of its params.
    fn description(&self, name: &str, summary: &str, params: &Schema) -> String {
        let opening = format!("The params of `{name}`");
        let more = explanation(self.definition(params), &opening);
        format!("{summary} {more}").trim_end().to_owned()
    }

    /// The example of a params or result type.
    fn example(&self, schema: &Schema) -> Option<&Value> {
        self.examples.get(definition_name(schema)?)
    }
}

/// The description of a definition without its opening, which only names the definition.
fn explanation(definition: &Value, opening: &str) -> String {
    let description = definition.get("description").and_then(Value::as_str);
    let description = description.unwrap_or_default();
    let rest = description.strip_prefix(opening).unwrap_or(description);
    rest.trim_start_matches([',', '.', ':', ' ']).to_owned()
}

/// The name of the definition that a schema refers to.
fn definition_name(schema: &Schema) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(DEFINITIONS)
}

fn wire_document() -> &'static str {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let definitions = Protocol::new().definitions;
        // Type generators follow the root: they leave out types that it does not name.
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

fn names(kinds: &[Kind]) -> Vec<&'static str> {
    kinds.iter().map(|kind| kind.name()).collect()
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

fn error_kind() -> Schema {
    let mut description = "The cause of a failure: the contract of `error.data.kind`.\n".to_owned();
    for kind in Kind::ALL {
        let Advice { happened, remedy } = kind.advice();
        let _ = write!(description, "\n`{}`: {happened} {remedy}", kind.name());
    }
    json_schema!({
        "description": description,
        "type": "string",
        "enum": names(Kind::ALL),
    })
}

/// A reference as it reads outside the file of definitions.
fn in_file(schema: &Schema) -> Value {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => json!({ "$ref": format!("{WIRE_FILE}{reference}") }),
        None => schema.clone().into(),
    }
}

fn schemas(definitions: &mut Map<String, Value>) -> impl Iterator<Item = &mut Schema> {
    definitions
        .values_mut()
        .filter_map(|definition| definition.try_into().ok())
}

/// Makes optional members of outgoing objects not nullable: the daemon leaves them out instead.
fn never_null(schema: &mut Schema) {
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

/// Removes data without meaning for clients: number formats, line breaks of the source. An enum whose values are
/// described one by one becomes a plain one, which generators support better.
fn tidy(schema: &mut Schema) {
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
    // Beside a bare `$ref`, draft 7 (OpenRPC) ignores the description, and generators of types make
    // a copy of the definition for it.
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

/// The values of a union of strings, and a line on each of them that has a description.
fn plain_enum(schema: &Schema) -> Option<(Vec<Value>, String)> {
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

fn pretty(document: &Value) -> String {
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests;
