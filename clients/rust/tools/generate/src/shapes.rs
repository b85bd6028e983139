//! Generates structs and enums.

use crate::NOTICE;
use crate::schema::{Definitions, docs, last, pascal};
use serde_json::Value;
use std::fmt::Write as _;

/// The definitions that are written by hand in src/, or that the client does not need.
const BY_HAND: &[&str] = &[
    "Answers",
    "ClientCapabilities",
    "ClientInfo",
    "Content",
    "ContentBlock",
    "Cost",
    "DryRun",
    "Entry",
    "InitializeParams",
    "Message",
    "NavigateTreeResult",
    "NewEntry",
    "NewOtherEntry",
    "OtherBlock",
    "OtherEntry",
    "OtherMessage",
    "PopResult",
    "RequestId",
    "TreeFold",
    "TreeNodes",
    "Usage",
];

pub fn types(definitions: &Definitions) -> Vec<(&str, String)> {
    structures(definitions, |name| !name.ends_with("Result"))
}

pub fn results(definitions: &Definitions) -> Vec<(&str, String)> {
    structures(definitions, |name| name.ends_with("Result"))
}

fn structures(definitions: &Definitions, are_wanted: impl Fn(&str) -> bool) -> Vec<(&str, String)> {
    let mut pieces = Vec::new();
    for (name, schema) in definitions.sorted() {
        // Entries have their own file. Messages and their content are raw JSON.
        let tags = ["type", "role"].map(|tag| &schema["properties"][tag]["const"]);
        let elsewhere = tags.iter().any(|tag| tag.is_string())
            || name == "Replacement"
            || schema["enum"].is_array();
        if BY_HAND.contains(&name) || name.ends_with("Params") || elsewhere || !are_wanted(name) {
            continue;
        }
        let mut text = docs(schema, "");
        if let Some(other) = schema["allOf"][0]["$ref"].as_str() {
            writeln!(text, "pub type {name} = {};\n", last(other)).unwrap();
        } else if schema["additionalProperties"] == true {
            writeln!(text, "pub type {name} = Json;\n").unwrap();
        } else if let Some(shapes) = schema["oneOf"].as_array() {
            text += &tagged_union(definitions, name, shapes);
        } else {
            // Types that clients send can be written as literals. Types that clients receive may get more
            // members, so they are non-exhaustive.
            let sent = schema["additionalProperties"] == false;
            text += if sent {
                "#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]\n"
            } else {
                "#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]\n#[non_exhaustive]\n"
            };
            text += &structure(definitions, name, false);
        }
        pieces.push((name, text));
    }
    pieces
}

/// Generates an enum of objects. Their member `kind` distinguishes them.
fn tagged_union(definitions: &Definitions, name: &str, shapes: &[Value]) -> String {
    let mut text = format!(
        "#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]\n#[non_exhaustive]\n\
         #[serde(tag = \"kind\")]\npub enum {name} {{\n"
    );
    for shape in shapes {
        let shape = last(shape["$ref"].as_str().expect("$ref"));
        let schema = &definitions.0[shape];
        let tag = &schema["properties"]["kind"]["const"];
        let variant = pascal(tag.as_str().expect("const"));
        text += &docs(schema, "    ");
        writeln!(
            text,
            "    #[serde(rename = {tag})]\n    {variant}({shape}),"
        )
        .unwrap();
    }
    text + "    /// A kind that this client does not know.\n    #[serde(other)]\n    Unknown,\n}\n\n"
}

pub fn params(definitions: &Definitions) -> Vec<(&str, String)> {
    definitions
        .sorted()
        .into_iter()
        .filter(|(name, _)| {
            name.ends_with("Params") && !name.contains("CancelRequest") && !BY_HAND.contains(name)
        })
        .map(|(name, schema)| {
            let text = docs(schema, "")
                + "#[derive(Debug, Clone, Serialize)]\n"
                + &structure(definitions, name, true);
            (name, text)
        })
        .collect()
}

/// Generates a struct. Params have `Option<Option<…>>` where null has another meaning than leaving out the
/// param.
fn structure(definitions: &Definitions, name: &str, is_params: bool) -> String {
    let mut text = format!("#[serde(rename_all = \"camelCase\")]\npub struct {name} {{\n");
    for property in definitions.properties(name) {
        // The tag of an entry needs no field, since the Rust type implies it.
        if property.schema["const"].is_string() {
            continue;
        }
        let (shape, nullable) = property.shape();
        text += &property.docs("    ");
        let shape = match (property.required, nullable) {
            (false, _) if is_params && property.null_differs() => {
                format!("Option<Option<{shape}>>")
            }
            (false, _) | (true, true) => format!("Option<{shape}>"),
            (true, false) => shape,
        };
        if !property.required {
            text += "    #[serde(skip_serializing_if = \"Option::is_none\")]\n";
        }
        writeln!(text, "    pub {}: {shape},", property.field()).unwrap();
    }
    text + "}\n\n"
}

pub fn enums(definitions: &Definitions) -> Vec<(&str, String)> {
    definitions
        .sorted()
        .into_iter()
        .filter_map(|(name, schema)| {
            let values = schema["enum"].as_array()?;
            Some((name, string_enum(name, schema, values)))
        })
        .collect()
}

fn string_enum(name: &str, schema: &Value, values: &[Value]) -> String {
    let documentation = docs(schema, "    ");
    let mut text = format!("string_enum! {{\n{documentation}    pub enum {name} {{\n");
    for value in values {
        let value = value.as_str().expect("a string");
        // `Self` is a keyword of Rust.
        let variant = if value == "self" {
            "Own".into()
        } else {
            pascal(value)
        };
        assert_ne!(variant, "Unknown", "{name}");
        writeln!(text, "        {variant} = {value:?},").unwrap();
    }
    text + "    }\n}\n\n"
}

pub fn entries(definitions: &Definitions) -> String {
    let mut text = String::from("//! The types of entries.\n//!\n")
        + NOTICE
        + "use crate::{Content, Json, Message};\n\
           use serde::{Deserialize, Serialize};\n\n";
    let union = definitions.0["Entry"]["oneOf"].as_array().expect("oneOf");
    let known: Vec<&str> = union
        .iter()
        .map(|shape| last(shape["$ref"].as_str().expect("$ref")))
        .filter(|name| *name != "OtherEntry")
        .collect();
    text += "/// The members of an entry, by its type.\n#[derive(Debug, Clone, PartialEq)]\n#[non_exhaustive]\npub enum EntryBody {\n";
    for name in &known {
        text += &docs(&definitions.0[*name], "    ");
        writeln!(text, "    {}({name}),", variant_of(name)).unwrap();
    }
    text += "    /// An entry of a type that this client does not know.\n    Other(Json),\n}\n\n";
    text += "impl EntryBody {\n    /// Fails if the entry lacks a member that its type requires.\n    pub(crate) fn parse(r#type: &str, json: &Json) -> Result<EntryBody, serde_json::Error> {\n        Ok(match r#type {\n";
    for name in &known {
        let tag = definitions.0[*name]["properties"]["type"]["const"]
            .as_str()
            .expect("const");
        writeln!(
            text,
            "            {tag:?} => EntryBody::{}(json.parse()?),",
            variant_of(name)
        )
        .unwrap();
    }
    text += "            _ => EntryBody::Other(json.clone()),\n        })\n    }\n}\n\n";
    for name in known.into_iter().chain(["Replacement"]) {
        text += &docs(&definitions.0[name], "");
        text += "#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]\n#[non_exhaustive]\n";
        text += &structure(definitions, name, false);
    }
    text
}

fn variant_of(name: &str) -> &str {
    name.strip_suffix("Entry").expect(name)
}
