//! Reads the documents of schema/ in the terms of Rust: types, fields, names.

use serde_json::{Map, Value};

/// The definitions of schema/treelined.v1.json, by name.
pub struct Definitions(pub Map<String, Value>);

impl Definitions {
    pub fn new(document: Value) -> Definitions {
        let mut all = document["$defs"].as_object().expect("$defs").clone();
        // `GetTreeResult` is replaced with one type for each of the two values of `format`.
        let tree = all.remove("GetTreeResult").expect("GetTreeResult");
        for (name, node) in [("FlatTree", "TreeNode"), ("NestedTree", "NestedNode")] {
            let mut tree = tree.clone();
            tree["properties"]["nodes"] = serde_json::json!({
                "description": "The rows of this page.",
                "type": "array",
                "items": { "$ref": format!("#/$defs/{node}") },
            });
            all.insert(name.into(), tree);
        }
        Definitions(all)
    }

    pub fn sorted(&self) -> Vec<(&str, &Value)> {
        let mut all: Vec<_> = self
            .0
            .iter()
            .map(|(name, schema)| (name.as_str(), schema))
            .collect();
        all.sort_by_key(|(name, _)| *name);
        all
    }

    pub fn properties(&self, name: &str) -> Vec<Property<'_>> {
        let schema = &self.0[name];
        let required = schema["required"].as_array();
        let Some(properties) = schema["properties"].as_object() else {
            return Vec::new();
        };
        properties
            .iter()
            .map(|(member, schema)| Property {
                member,
                schema,
                required: required.is_some_and(|all| all.iter().any(|name| name == member)),
            })
            .collect()
    }
}

/// A member of an object.
pub struct Property<'a> {
    pub member: &'a str,
    pub schema: &'a Value,
    pub required: bool,
}

impl Property<'_> {
    pub fn field(&self) -> String {
        match snake(self.member).as_str() {
            word @ ("type" | "ref" | "match" | "in" | "final") => format!("r#{word}"),
            word => word.to_owned(),
        }
    }

    /// Returns the Rust type of the value, and whether the value may be null.
    pub fn shape(&self) -> (String, bool) {
        rust_type(self.schema)
    }

    /// Returns whether leaving out the param has another meaning than null.
    pub fn null_differs(&self) -> bool {
        let description = self.schema["description"].as_str().unwrap_or_default();
        !self.required && description.to_lowercase().contains("null")
    }

    pub fn docs(&self, indent: &str) -> String {
        docs(self.schema, indent)
    }
}

/// Returns the Rust type of a value, and whether the value may be null.
pub fn rust_type(schema: &Value) -> (String, bool) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = match last(name) {
            "ContentBlock" | "NewEntry" | "Usage" => "Json",
            name => name,
        };
        return (name.into(), false);
    }
    if let Some(shapes) = ["allOf", "anyOf", "oneOf"]
        .iter()
        .find_map(|word| schema[word].as_array())
    {
        let nullable = shapes.iter().any(|shape| shape["type"] == "null");
        let shapes: Vec<String> = shapes
            .iter()
            // The daemon also accepts an empty array, from languages in which an empty object is an
            // array. It is ignored here.
            .filter(|shape| shape["type"] != "null" && shape["maxItems"] != 0)
            .map(|shape| rust_type(shape).0)
            .collect();
        assert_eq!(shapes.len(), 1, "{schema}");
        return (shapes.concat(), nullable);
    }
    if let Some(kinds) = schema["type"].as_array() {
        let nullable = kinds.iter().any(|kind| kind == "null");
        let mut one = schema.clone();
        one["type"] = kinds
            .iter()
            .find(|kind| *kind != "null")
            .expect("a type")
            .clone();
        return (rust_type(&one).0, nullable);
    }
    let shape = match schema["type"].as_str() {
        Some("string") => "String".into(),
        Some("boolean") => "bool".into(),
        Some("number") => "f64".into(),
        Some("integer") if schema["minimum"] == 0 => "u64".into(),
        Some("integer") => "i64".into(),
        Some("array") => format!("Vec<{}>", rust_type(&schema["items"]).0),
        Some("object") if schema["additionalProperties"].is_object() => format!(
            "BTreeMap<String, {}>",
            rust_type(&schema["additionalProperties"]).0
        ),
        _ => "Json".into(),
    };
    (shape, false)
}

pub fn docs(schema: &Value, indent: &str) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.lines()
        .map(|line| format!("{indent}/// {line}\n"))
        .collect()
}

/// Returns the last part of a reference, which is the name of the definition.
pub fn last(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

pub fn snake(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

pub fn pascal(name: &str) -> String {
    name.split(['_', '-'])
        .map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|c| c.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        })
        .collect()
}
