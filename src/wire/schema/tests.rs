use super::generators::Generators;
use super::made::documents;
use super::methods::{methods, notifications};
use super::protocol::Protocol;
use super::*;
use crate::methods::NOTIFICATIONS;
use serde_json::json;
use std::collections::HashSet;
use std::path::Path;
use treelined_core::error::Kind;

fn document(name: &str) -> Value {
    let documents = documents();
    let (_, text) = documents.iter().find(|(other, _)| *other == name).unwrap();
    assert!(text.ends_with("}\n"));
    serde_json::from_str(text).unwrap()
}

/// The names of the documents that are JSON.
fn json_documents() -> impl Iterator<Item = &'static str> {
    let names = documents().into_iter().map(|(name, _)| name);
    names.filter(|name| name.ends_with(".json"))
}

/// Every value in a document, containers before their members.
fn values(document: &Value) -> Vec<&Value> {
    let mut found = vec![document];
    let mut next = 0;
    while let Some(value) = found.get(next).copied() {
        match value {
            Value::Object(members) => found.extend(members.values()),
            Value::Array(elements) => found.extend(elements),
            _ => {}
        }
        next += 1;
    }
    found
}

#[test]
fn documents_are_the_same_every_time() {
    assert_eq!(documents(), documents());
    assert_eq!(Protocol::new().definitions, Protocol::new().definitions);
}

#[test]
fn the_documents_are_those_of_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
    for (name, text) in documents() {
        let path = folder.join(name);
        if std::env::var_os("TREELINED_UPDATE").is_some() {
            std::fs::write(path, text).unwrap();
        } else {
            let is_same = std::fs::read_to_string(path).unwrap() == text;
            assert!(is_same, "cargo xtask generate: {name} has changed");
        }
    }
}

#[test]
fn the_program_has_the_documents() {
    let written: Vec<(&str, String)> = super::documents().collect();
    assert_eq!(written, documents());
    let openrpc: Value = serde_json::from_str(&openrpc()).unwrap();
    assert_eq!(openrpc, document("openrpc.json"));
}

// A client that was generated from these types asks for this hash (protocol.md §2).
#[test]
fn the_reported_hash_is_that_of_the_document() {
    assert_eq!(SCHEMA_HASH, made::hash());
    assert!(SCHEMA_HASH.starts_with("sha256:"));
    assert_eq!(SCHEMA_HASH.len(), "sha256:".len() + 64);
}

#[test]
fn every_reference_leads_somewhere() {
    let wire = document("treelined.v1.json");
    for name in json_documents() {
        let document = document(name);
        for value in values(&document) {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                continue;
            };
            let (file, pointer) = reference.split_once('#').unwrap();
            let target = match file {
                "" => document.pointer(pointer),
                "treelined.v1.json" => wire.pointer(pointer),
                _ => None,
            };
            assert!(target.is_some(), "{name}: {reference}");
        }
    }
}

#[test]
fn every_definition_and_member_is_described() {
    for name in ["treelined.v1.json", "session-file.v3.json"] {
        for (definition, schema) in document(name)["$defs"].as_object().unwrap() {
            let described = |schema: &Value| {
                schema["description"]
                    .as_str()
                    .is_some_and(|text| !text.is_empty())
            };
            assert!(described(schema), "{definition}");
            for (member, schema) in schema["properties"].as_object().into_iter().flatten() {
                assert!(described(schema), "{definition}.{member}");
            }
        }
    }
}

/// The generator adds a number to a name that two types have. A null default would mean that an absent member is null.
#[test]
fn definitions_are_in_terms_of_the_protocol() {
    let wire = document("treelined.v1.json");
    for name in wire["$defs"].as_object().unwrap().keys() {
        assert!(!name.ends_with(|c: char| c.is_ascii_digit()), "{name}");
    }
    for value in values(&wire) {
        assert!(value.get("format").is_none_or(Value::is_object), "{value}");
        assert!(value.get("default").is_none_or(Value::is_object), "{value}");
    }
}

/// There is one exception: a member of params may be null where results leave the member out.
#[test]
fn both_directions_agree_on_shared_definitions() {
    let mut generators = Generators::default();
    methods(&mut generators);
    notifications(&mut generators);
    let incoming = generators.incoming.take_definitions(false);
    let outgoing = generators.outgoing.take_definitions(false);
    let mut shared = 0;
    for (name, definition) in &incoming {
        if let Some(other) = outgoing.get(name) {
            assert_eq!(definition, other, "{name}");
            shared += 1;
        }
    }
    assert!(shared > 0);
}

#[test]
fn no_two_methods_or_notifications_have_the_same_name() {
    let mut generators = Generators::default();
    let methods = methods(&mut generators);
    let names = methods.iter().map(|method| method.name);
    let mut seen = HashSet::new();
    for name in names.chain(NOTIFICATIONS.iter().copied()) {
        assert!(seen.insert(name), "{name}");
    }
    assert!(seen.len() > methods.len());
}

#[test]
fn definitions_are_named_after_their_methods() {
    let mut generators = Generators::default();
    for method in methods(&mut generators) {
        let camel: String = method
            .name
            .trim_start_matches("rpc.")
            .split('_')
            .flat_map(|word| {
                let mut letters = word.chars();
                letters
                    .next()
                    .map(|c| c.to_ascii_uppercase())
                    .into_iter()
                    .chain(letters)
            })
            .collect();
        if !method.notification {
            assert_eq!(
                method.params.get("$ref").unwrap(),
                &format!("#/$defs/{camel}Params")
            );
            assert_eq!(
                method.result.get("$ref").unwrap(),
                &format!("#/$defs/{camel}Result")
            );
        }
        assert!(
            method.errors.contains(&Kind::InvalidParams),
            "{}",
            method.name
        );
    }
}

#[test]
fn params_refuse_unknown_members_except_those_of_initialize() {
    let wire = document("treelined.v1.json");
    for (name, schema) in wire["$defs"].as_object().unwrap() {
        if name.ends_with("Params") {
            let open = schema.get("additionalProperties").is_none();
            assert_eq!(open, name == "InitializeParams", "{name}");
        }
    }
}

#[test]
fn null_and_absence_are_distinguished() {
    let wire = document("treelined.v1.json");
    let check = |definition: &str, member: &str, nullable: bool, required: bool| {
        let schema = &wire["$defs"][definition];
        let types = &schema["properties"][member]["type"];
        assert_eq!(
            *types == json!(["string", "null"]),
            nullable,
            "{definition}.{member}: {types}"
        );
        let names = schema["required"].as_array();
        let is_required = names.is_some_and(|names| names.contains(&json!(member)));
        assert_eq!(is_required, required, "{definition}.{member}");
    };
    check("AppendLabelParams", "label", true, false);
    check("BranchParams", "entryId", true, true);
    check("AppendLabelParams", "targetId", false, true);
    check("AppendLabelParams", "expectedLeafId", true, false);
    check("AppendMessageParams", "parentId", true, false);
    check("GetContextParams", "leafId", true, false);
    check("SetLeafParams", "leafId", true, true);
    check("GetChildrenParams", "entryId", true, true);
    check("Navigation", "newLeafId", true, true);
    check("Navigation", "editorText", false, false);
    check("GetLabelResult", "label", false, false);
}

#[test]
fn entries_are_distinguished_by_their_own_type() {
    let file = document("session-file.v3.json");
    let line = &file["$defs"]["FileLine"]["oneOf"];
    let mut types = HashSet::new();
    for shape in line.as_array().unwrap() {
        assert_eq!(shape.as_object().unwrap().len(), 1, "a plain $ref: {shape}");
        let pointer = shape["$ref"].as_str().unwrap().strip_prefix('#').unwrap();
        let definition = file.pointer(pointer).unwrap();
        assert!(
            definition["required"]
                .as_array()
                .unwrap()
                .contains(&json!("type"))
        );
        assert_ne!(definition["additionalProperties"], json!(false));
        let tag = &definition["properties"]["type"];
        if let Some(name) = tag["const"].as_str() {
            // A type of entry has one `customType`, several, or any.
            let custom = &definition["properties"]["customType"];
            let custom = custom.get("const").or(custom.get("enum")).cloned();
            assert!(types.insert((name.to_owned(), custom)), "{name}");
        } else {
            assert!(tag["not"]["enum"].as_array().unwrap().len() > 10);
        }
    }
    assert_eq!(types.len(), 15);
}

/// The requirements of OpenRPC 1.3.2; the whole meta-schema is checked if npm is installed.
#[test]
fn the_openrpc_document_is_by_name() {
    let document: Value = serde_json::from_str(&openrpc()).unwrap();
    assert_eq!(document["openrpc"], "1.3.2");
    let methods = document["methods"].as_array().unwrap();
    assert!(!methods.is_empty());
    for method in methods {
        assert_eq!(method["paramStructure"], "by-name");
        assert!(method["result"]["schema"].is_object());
        for param in method["params"].as_array().unwrap() {
            assert!(param["name"].is_string() && param["required"].is_boolean());
            assert!(param["schema"].is_object(), "{param}");
        }
    }
    for error in document["components"]["errors"]
        .as_object()
        .unwrap()
        .values()
    {
        assert!(error["code"].is_i64() && error["message"].is_string());
        assert!(error["data"]["kind"].is_string());
    }
}

/// Type generators make only the types that the root names. The root once named no types. The root must name every
/// definition, and the document must have an `$id`.
#[test]
fn the_root_names_every_definition() {
    let wire = document("treelined.v1.json");
    assert!(
        wire["$id"]
            .as_str()
            .is_some_and(|id| id.starts_with("urn:"))
    );
    let named = wire["properties"].as_object().unwrap();
    assert!(named.keys().eq(wire["$defs"].as_object().unwrap().keys()));
    for (name, schema) in named {
        assert_eq!(schema["$ref"], format!("#/$defs/{name}"));
    }
}

/// The OpenRPC document once had only the names of methods.
#[test]
fn every_method_has_a_description_a_tag_and_an_example() {
    let document: Value = serde_json::from_str(&openrpc()).unwrap();
    for method in document["methods"].as_array().unwrap() {
        let name = &method["name"];
        assert!(method["description"].is_string(), "{name}");
        assert!(method["result"]["description"].is_string(), "{name}");
        let tags = method["tags"].as_array().unwrap();
        assert_eq!(tags.len(), 1, "{name}");
        let tag = tags[0]["$ref"].as_str().unwrap().trim_start_matches('#');
        assert!(document.pointer(tag).unwrap()["description"].is_string());
        let examples = method["examples"].as_array().unwrap();
        assert_eq!(examples.len(), 1, "{name}");
        assert!(!examples[0]["result"]["value"].is_null(), "{name}");
    }
    for error in document["components"]["errors"]
        .as_object()
        .unwrap()
        .values()
    {
        assert!(error["message"].as_str().unwrap().ends_with('.'));
        assert!(error["data"]["remedy"].as_str().unwrap().ends_with('.'));
    }
}

/// OpenRPC's reference tools replace each reference with its target. A definition that refers to itself without end
/// once used up their memory.
#[test]
fn no_definition_of_the_openrpc_document_needs_itself() {
    let document: Value = serde_json::from_str(&openrpc()).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let targets = |name: &str| -> Vec<&str> {
        let references = values(&schemas[name]);
        let references = references
            .into_iter()
            .filter_map(|v| v.get("$ref")?.as_str());
        references
            .filter_map(|reference| reference.strip_prefix("#/components/schemas/"))
            .collect()
    };
    for name in schemas.keys() {
        let (mut pending, mut seen) = (targets(name), HashSet::new());
        while let Some(next) = pending.pop() {
            assert_ne!(next, name);
            if seen.insert(next) {
                pending.extend(targets(next));
            }
        }
    }
}

fn reference() -> String {
    let found = documents()
        .into_iter()
        .find(|(name, _)| *name == "reference.md");
    found.unwrap().1
}

#[test]
fn every_link_of_the_reference_leads_to_a_heading_or_an_error() {
    let page = reference();
    let headings = page.lines().filter_map(|line| line.strip_prefix('#'));
    let headings =
        headings.map(|heading| reference::anchor(heading.trim_start_matches(['#', ' '])));
    let rows = page.split("<a id=\"").skip(1);
    let rows = rows.filter_map(|row| Some(row.split_once('"')?.0.to_owned()));
    let anchors: Vec<String> = headings.chain(rows).collect();
    let unique: HashSet<&String> = anchors.iter().collect();
    assert_eq!(unique.len(), anchors.len(), "two have one anchor");
    let mut links = 0;
    for link in page.split("](#").skip(1) {
        let target = link.split(')').next().unwrap().to_owned();
        assert!(anchors.contains(&target), "{target}");
        links += 1;
    }
    assert!(links > 100, "{links}");
}

#[test]
fn the_reference_has_every_method_notification_and_error() {
    let page = reference();
    let mut generators = Generators::default();
    for method in methods(&mut generators) {
        let heading = format!("\n#### `{}`\n\n{}", method.name, method.summary);
        assert!(page.contains(&heading), "{heading}");
    }
    for notification in notifications(&mut generators) {
        let heading = format!("\n### `{}`\n\n{}", notification.name, notification.summary);
        assert!(page.contains(&heading), "{heading}");
    }
    for kind in Kind::ALL {
        let row = format!("| {} |", kind.code());
        assert!(page.contains(&row), "{}", kind.name());
    }
}

/// The reference has a column for defaults, which it reads from the descriptions.
#[test]
fn every_optional_param_says_its_default() {
    let protocol = Protocol::new();
    for method in &protocol.methods {
        let definition = protocol.definition(&method.params);
        let required = definition["required"].as_array();
        for (name, schema) in definition["properties"].as_object().into_iter().flatten() {
            let is_required = required.is_some_and(|names| names.contains(&json!(name)));
            let description = schema["description"].as_str().unwrap();
            let has_default = description.contains(" Default: ") && description.ends_with('.');
            assert_eq!(
                has_default, !is_required,
                "{}.{name}: {description}",
                method.name
            );
        }
    }
}

/// A summary is a separate sentence in the README, the reference and the clients.
#[test]
fn every_summary_is_one_sentence() {
    let mut generators = Generators::default();
    let methods = methods(&mut generators);
    let summaries = methods.iter().map(|method| method.summary);
    let notifications = notifications(&mut generators);
    let sent = notifications
        .iter()
        .map(|notification| notification.summary);
    for summary in summaries.chain(sent) {
        let starts = summary.starts_with(char::is_uppercase);
        assert!(
            starts && summary.ends_with('.') && !summary.contains(". "),
            "{summary}"
        );
    }
}

#[test]
fn params_and_results_have_examples_that_decode() {
    macro_rules! decode_examples {
        ($($group:ident $about:literal {
            $($name:literal {
                summary: $summary:literal,
                section: $section:literal,
                scope: $scope:ident $(($access:ident))?,
                $(right: $right:ident,)?
                params: $params:ident,
                result: $result:ty,
                errors: $errors:tt,
                run: $run:path,
            })+
        })+) => {
            fn decode_example(name: &str, params: &str) -> serde_json::Result<()> {
                match name {
                    $($($name => serde_json::from_str::<crate::$params>(params).map(drop),)+)+
                    _ => panic!("{name}"),
                }
            }
        };
    }
    crate::methods::with_methods!(decode_examples);
    let protocol = Protocol::new();
    for method in &protocol.methods {
        let params = protocol.example(&method.params).unwrap().to_string();
        decode_example(method.name, &params).unwrap();
        let result = protocol.example(&method.result).unwrap();
        assert!(result.is_object(), "{}: {result}", method.name);
    }
    for notification in &protocol.notifications {
        let params = protocol.example(&notification.params).unwrap();
        assert!(params.is_object(), "{}: {params}", notification.name);
    }
}
