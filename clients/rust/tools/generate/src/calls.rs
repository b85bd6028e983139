//! Generates the functions for methods and for their params.

use crate::NOTICE;
use crate::groups::group;
use crate::layout::Piece;
use crate::schema::{Definitions, Property, last};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The params that decide the shape of the result. Their functions are in src/call.rs.
const CHOOSING: &[(&str, &str)] = &[
    ("NavigateTreeParams", "dryRun"),
    ("PopParams", "dryRun"),
    ("GetTreeParams", "format"),
];

/// Returns the methods that get a function: the name, the name of the params, and the row of the table.
fn callable(table: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let methods = table["methods"].as_array().expect("methods");
    methods
        .iter()
        .map(|method| {
            let params = method["params"]["$ref"].as_str().expect("params");
            let name = method["name"].as_str().expect("name");
            (name, last(params), method)
        })
        .filter(|(name, _, method)| *name != "initialize" && method["notification"] == false)
}

/// Returns the functions of the methods, by group.
pub fn methods(definitions: &Definitions, table: &Value) -> Vec<Piece> {
    let mut groups: BTreeMap<String, String> = BTreeMap::new();
    for (name, params, method) in callable(table) {
        let result = match last(method["result"]["$ref"].as_str().expect("result")) {
            "NavigateTreeResult" | "PopResult" => "Navigation",
            "GetTreeResult" => "FlatTree",
            result => result,
        };
        let group = group(method);
        *groups.entry(group.to_owned()).or_default() +=
            &function(definitions, method, name, params, result);
    }
    groups
        .into_iter()
        .map(|(group, functions)| (group, format!("impl Client {{\n{functions}}}\n")))
        .collect()
}

pub fn version(table: &Value) -> String {
    format!(
        "//! The version of the protocol.\n//!\n{NOTICE}\
         /// The version of the protocol.\n\
         pub const PROTOCOL_VERSION: u64 = {};\n\n\
         /// The hash of the schema behind these types. A daemon with the same `schema_hash` has the same schema.\n\
         pub const SCHEMA_HASH: &str = {};\n",
        table["protocolVersion"], table["schemaHash"],
    )
}

/// Returns the functions for the optional params of each method, by the name of the params.
pub fn setters<'a>(definitions: &Definitions, table: &'a Value) -> Vec<(&'a str, String)> {
    callable(table)
        .map(|(_, params, _)| (params, setters_of(definitions, params)))
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

fn function(
    definitions: &Definitions,
    method: &Value,
    name: &str,
    params: &str,
    result: &str,
) -> String {
    let mut text = String::new();
    let summary = method["summary"].as_str().expect("summary");
    let description = definitions.0[params]["description"].as_str().unwrap_or("");
    // The description begins with the name of the method, which is superfluous at a function of this name.
    let opening = format!("The params of `{name}`.");
    let more = description.strip_prefix(&opening).unwrap_or(description);
    let about = format!("{summary} {}", more.trim());
    text += &wrapped(&format!("{} `{name}`", about.trim()));
    text += "    ///\n";
    let required: Vec<_> = definitions
        .properties(params)
        .into_iter()
        .filter(|property| property.required)
        .collect();
    for property in &required {
        let description = property.schema["description"].as_str().unwrap_or("");
        writeln!(text, "    /// - `{}`: {description}", property.field()).unwrap();
    }
    if !required.is_empty() {
        text += "    ///\n";
    }
    let errors: Vec<String> = method["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .map(|kind| format!("`{}`", kind.as_str().expect("kind")))
        .collect();
    if !errors.is_empty() {
        text += &wrapped(&format!("Errors: {}.", errors.join(", ")));
    }
    let own = name.strip_prefix("rpc.").unwrap_or(name);
    write!(text, "    pub fn {own}(&self").unwrap();
    for property in &required {
        write!(text, ", {}: {}", property.field(), argument(property).0).unwrap();
    }
    writeln!(text, ") -> Call<{params}, {result}> {{").unwrap();
    let properties = definitions.properties(params);
    let mut fields = Vec::new();
    for property in &properties {
        let field = property.field();
        fields.push(if property.required {
            let value = argument(property).1;
            if value == field {
                field
            } else {
                format!("{field}: {value}")
            }
        } else if is_session(property) {
            format!("{field}: self.session_id()")
        } else {
            format!("{field}: None")
        });
    }
    let fields = fields.join(", ");
    writeln!(
        text,
        "        let params = {params} {{ {fields} }};\n        self.call({name:?}, params)\n    }}\n"
    )
    .unwrap();
    text
}

/// Wraps a text into lines of a comment.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + word.len() < 92 {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
        .iter()
        .map(|line| format!("    /// {line}\n"))
        .collect()
}

/// Returns whether the param names the session that the method is about, and not a session to create or open.
fn is_session(property: &Property) -> bool {
    property.member == "sessionId"
        && property.schema["description"].as_str().is_some_and(|text| {
            let works_on = "the session that is open, if exactly one is";
            text.contains(works_on) || text.starts_with("The id of an open session")
        })
}

fn setters_of(definitions: &Definitions, params: &str) -> String {
    let properties = definitions.properties(params);
    let optional: Vec<_> = properties
        .iter()
        .filter(|property| !property.required)
        .filter(|property| !CHOOSING.contains(&(params, property.member)))
        .collect();
    if optional.is_empty() {
        return String::new();
    }
    let mut text = format!("impl<R> Call<{params}, R> {{\n");
    for property in optional {
        let field = property.field();
        let (shape, value) = argument(property);
        text += &property.docs("    ");
        writeln!(
            text,
            "    pub fn {field}(mut self, {field}: {shape}) -> Self {{\n        self.params.{field} = Some({value});\n        self\n    }}\n"
        )
        .unwrap();
    }
    text + "}\n\n"
}

/// Returns the type of the argument for a param, and the expression that converts the argument to the value of the
/// field.
fn argument(property: &Property) -> (String, String) {
    let field = property.field();
    let (shape, nullable) = property.shape();
    if property.null_differs() || (property.required && nullable) {
        assert_eq!(shape, "String", "{field}");
        return ("Option<&str>".into(), format!("{field}.map(str::to_owned)"));
    }
    match shape.as_str() {
        "String" | "Json" | "Message" | "Content" | "GivenSummary" | "TreeFold" => {
            (format!("impl Into<{shape}>"), format!("{field}.into()"))
        }
        "Vec<String>" | "Vec<Json>" => {
            let item = shape.trim_start_matches("Vec<").trim_end_matches('>');
            (
                format!("impl IntoIterator<Item = impl Into<{item}>>"),
                format!("{field}.into_iter().map(Into::into).collect()"),
            )
        }
        _ => (shape, field),
    }
}
