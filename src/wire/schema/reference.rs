//! `schema/reference.md`: every method, notification, type and error, for people who write a client.
//!
//! The reference is made from the same definitions as the JSON Schema. The description of an optional param ends with a
//! sentence `Default: …`, which becomes a separate column in the tables.

use super::methods::{GROUPS, Method, Notification};
use super::protocol::{Protocol, definition_name, explanation};
use crate::methods::{ANY, Access, Right, Scope};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use treelined_core::error::Kind;

/// The longest example on one line, in characters.
const LINE_LEN: usize = 110;

/// The text before the tables.
const INTRODUCTION: &str = "\
# Reference

This page is generated from the daemon's table of methods; do not edit it. It lists every method, notification,
type and error of protocol version 1. [protocol.md](protocol.md) says what they mean, and is named where it says
more.

In the tables of params, null means the same as leaving the member out, unless its meaning says otherwise. A
number is at most 2^53 - 1. A text is UTF-8. In the tables of results, a member that is *optional* is left out
where it has no value.

";

/// The scopes that methods have.
const SCOPES: [Scope; 5] = [
    Scope::Immediate,
    Scope::Registry,
    Scope::Session(Access::Read),
    Scope::Session(Access::Append),
    Scope::Session(Access::Release),
];

/// The page.
pub(super) fn document() -> String {
    let protocol = Protocol::new();
    let mut page = INTRODUCTION.to_owned();
    contents(&mut page, &protocol);
    scopes(&mut page);
    rights(&mut page);
    page.push_str("## Methods\n\n");
    for group in GROUPS {
        let _ = write!(page, "### Methods: {}\n\n{}\n\n", group.name, group.summary);
        let members = protocol.methods.iter();
        for member in members.filter(|method| method.group == group.name) {
            method(&mut page, &protocol, member);
        }
    }
    page.push_str("## Notifications\n\nThe daemon sends notifications without being asked (protocol.md §7).\n\n");
    for sent in &protocol.notifications {
        notification(&mut page, &protocol, sent);
    }
    types(&mut page, &protocol);
    errors(&mut page);
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// Links to every method and notification.
fn contents(page: &mut String, protocol: &Protocol) {
    let link = |name: &str| format!("[`{name}`](#{})", anchor(name));
    for group in GROUPS {
        let members = protocol.methods.iter();
        let members = members.filter(|method| method.group == group.name);
        let links: Vec<String> = members.map(|method| link(method.name)).collect();
        let _ = writeln!(page, "- **{}**: {}", group.name, links.join(", "));
    }
    let links = protocol.notifications.iter().map(|sent| link(sent.name));
    let links: Vec<String> = links.collect();
    let _ = writeln!(
        page,
        "- **[notifications](#notifications)**: {}",
        links.join(", ")
    );
    page.push_str("- **[types](#types)**, **[errors](#errors)**\n\n");
}

fn scopes(page: &mut String) {
    page.push_str("## Scopes\n\nEach method has a scope, which says in which order its requests run (protocol.md §1.6).\n\n");
    let rows = SCOPES.map(|scope| [format!("`{}`", scope.name()), scope.meaning().to_owned()]);
    table(page, ["scope", "meaning"], rows);
}

fn rights(page: &mut String) {
    page.push_str("## Rights\n\nEach method needs a right, which limited connections may lack (protocol.md §10.7).\n\n");
    let rows = Right::ALL.map(|right| [format!("`{}`", right.name()), right.meaning().to_owned()]);
    table(page, ["right", "meaning"], rows);
}

fn method(page: &mut String, protocol: &Protocol, method: &Method) {
    let (name, section) = (method.name, method.section);
    let _ = write!(
        page,
        "#### `{name}`\n\n{}",
        protocol.description(name, method.summary, &method.params)
    );
    let params = protocol.definition(&method.params);
    let (scope, right) = (method.scope.name(), method.right.name());
    let _ = write!(
        page,
        "\n\nScope: `{scope}`. Right: `{right}`. Described in [protocol.md \u{a7}{section}](protocol.md).\n\n"
    );
    if members(params).is_empty() {
        page.push_str("It takes no params.\n\n");
    } else {
        let rows = members(params).into_iter().map(MemberRow::into_param);
        table(
            page,
            ["param", "type", "required", "default", "meaning"],
            rows,
        );
    }
    result(page, protocol.definition(&method.result), name);
    example(page, protocol, method);
    method_errors(page, method);
}

/// The kinds of errors of a method. They are explained once, at the end of the page.
fn method_errors(page: &mut String, method: &Method) {
    let kinds = method.errors.iter().map(|kind| kind.name());
    let links: Vec<String> = kinds
        .map(|kind| format!("[`{kind}`](#error-{})", kind.to_lowercase()))
        .collect();
    let _ = write!(page, "Errors: {}.\n\n", links.join(", "));
}

fn result(page: &mut String, definition: &Value, name: &str) {
    let about = explanation(definition, &format!("The result of `{name}`"));
    let rows: Vec<_> = members(definition)
        .into_iter()
        .map(MemberRow::into_result)
        .collect();
    let about = match about.as_str() {
        "" if definition.get("anyOf").is_some() => format!("{}.", type_of(definition)),
        "" if rows.is_empty() => "An empty object.".to_owned(),
        about => about.to_owned(),
    };
    let _ = write!(page, "{}\n\n", format!("Result: {about}").trim_end());
    if !rows.is_empty() {
        table(page, ["member", "type", "", "meaning"], rows);
    }
}

/// The example of a request, and the response to it.
fn example(page: &mut String, protocol: &Protocol, method: &Method) {
    let params = protocol
        .example(&method.params)
        .cloned()
        .unwrap_or_else(|| json!({}));
    let mut request = json!({ "jsonrpc": "2.0", "id": 1, "method": method.name });
    let has_params = params.as_object().is_some_and(|params| !params.is_empty());
    if let Some(request) = request.as_object_mut().filter(|_| has_params) {
        request.insert("params".into(), params);
    }
    let result = protocol.example(&method.result);
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let _ = write!(page, "```json request\n{}\n```\n\n", shown(&request));
    let _ = write!(
        page,
        "```json response:{}\n{}\n```\n\n",
        method.name,
        shown(&response)
    );
}

fn notification(page: &mut String, protocol: &Protocol, sent: &Notification) {
    let (name, section) = (sent.name, sent.section);
    let definition = protocol.definition(&sent.params);
    let _ = write!(
        page,
        "### `{name}`\n\n{}",
        protocol.description(name, sent.summary, &sent.params)
    );
    let _ = write!(
        page,
        "\n\nDescribed in [protocol.md \u{a7}{section}](protocol.md).\n\n"
    );
    let rows = members(definition).into_iter().map(MemberRow::into_result);
    table(page, ["member", "type", "", "meaning"], rows);
    let message = json!({
        "jsonrpc": "2.0",
        "method": name,
        "params": protocol.example(&sent.params),
    });
    let _ = write!(
        page,
        "```json notification:{name}\n{}\n```\n\n",
        shown(&message)
    );
}

/// Every definition that is neither the params nor the result of one method or notification.
fn types(page: &mut String, protocol: &Protocol) {
    let methods = protocol
        .methods
        .iter()
        .flat_map(|method| [&method.params, &method.result]);
    let notifications = protocol.notifications.iter().map(|sent| &sent.params);
    let described: BTreeSet<&str> = methods
        .chain(notifications)
        .filter_map(definition_name)
        .collect();
    page.push_str("## Types\n\n");
    for (name, definition) in &protocol.definitions {
        if described.contains(name.as_str()) || name == "ErrorKind" {
            continue;
        }
        let description = text(definition, "description");
        let (about, values) = enum_values(definition, &description);
        let _ = write!(page, "### Type `{name}`\n\n{about}\n\n");
        let rows: Vec<_> = members(definition)
            .into_iter()
            .map(MemberRow::into_result)
            .collect();
        if !values.is_empty() {
            table(page, ["value", "meaning"], values);
        } else if !rows.is_empty() {
            table(page, ["member", "type", "", "meaning"], rows);
        } else if ["anyOf", "oneOf"]
            .iter()
            .any(|one_of| definition.get(one_of).is_some())
        {
            let _ = write!(page, "One of: {}.\n\n", type_of(definition));
        }
    }
}

fn errors(page: &mut String) {
    page.push_str("## Errors\n\n`error.data.kind` is the contract (protocol.md §8). Each method names its kinds; those marked with * are of any \
         request.\n\n");
    let rows = Kind::ALL.iter().map(|kind| {
        let advice = kind.advice();
        let mark = if ANY.contains(kind) { " *" } else { "" };
        let retryable = if kind.retryable() { "yes" } else { "no" };
        [
            format!(
                "`{}`{mark}<a id=\"error-{}\"></a>",
                kind.name(),
                kind.name().to_lowercase()
            ),
            kind.code().to_string(),
            retryable.to_owned(),
            advice.happened.to_owned(),
            advice.remedy.to_owned(),
        ]
    });
    table(page, ["kind", "code", "retryable", "when", "remedy"], rows);
}

/// A member of an object.
struct MemberRow {
    name: String,
    types: String,
    is_required: bool,
    /// The description without the sentence about the default.
    meaning: String,
    default: String,
}

impl MemberRow {
    fn new(name: &str, schema: &Value, is_required: bool) -> Self {
        let description = text(schema, "description");
        let (meaning, default) = match description.split_once("Default: ") {
            Some((meaning, default)) => (meaning.trim_end(), default.trim_end_matches('.')),
            None => (description.as_str(), ""),
        };
        Self {
            name: format!("`{name}`"),
            types: type_of(schema),
            is_required,
            meaning: meaning.to_owned(),
            default: default.to_owned(),
        }
    }

    fn into_param(self) -> [String; 5] {
        let required = if self.is_required { "yes" } else { "no" };
        let types = match self.is_required {
            true => self.types,
            // Null means the same as leaving out the member.
            false => self.types.trim_end_matches(" or null").to_owned(),
        };
        [
            self.name,
            types,
            required.to_owned(),
            self.default,
            self.meaning,
        ]
    }

    fn into_result(self) -> [String; 4] {
        let presence = if self.is_required { "" } else { "optional" };
        [self.name, self.types, presence.to_owned(), self.meaning]
    }
}

/// The members of an object, in their order.
fn members(definition: &Value) -> Vec<MemberRow> {
    let required = definition.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|n| n == name));
    let properties = definition.get("properties").and_then(Value::as_object);
    let properties = properties.into_iter().flat_map(Map::iter);
    properties
        .map(|(name, schema)| MemberRow::new(name, schema, is_required(name)))
        .collect()
}

/// The type of a value in words, with a link to its definition.
fn type_of(schema: &Value) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return match name {
            "ErrorKind" => "[`ErrorKind`](#errors)".to_owned(),
            _ => format!("[`{name}`](#type-{})", name.to_lowercase()),
        };
    }
    for one_of in ["allOf", "anyOf", "oneOf"] {
        let Some(shapes) = schema.get(one_of).and_then(Value::as_array) else {
            continue;
        };
        // The daemon also accepts an empty array for an object (protocol.md §1.4).
        let shapes = shapes
            .iter()
            .filter(|shape| shape.get("maxItems").is_none());
        return shapes.map(type_of).collect::<Vec<_>>().join(" or ");
    }
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    match schema.get("type") {
        Some(Value::Array(names)) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.join(" or ")
        }
        Some(Value::String(name)) if name == "array" => {
            let items = schema
                .get("items")
                .map_or_else(|| "any".to_owned(), type_of);
            format!("array of {items}")
        }
        Some(Value::String(name)) => name.clone(),
        _ => "any".to_owned(),
    }
}

/// The description of an enum without its values, and a row for each value.
fn enum_values(definition: &Value, description: &str) -> (String, Vec<[String; 2]>) {
    let Some(values) = definition.get("enum").and_then(Value::as_array) else {
        return (description.to_owned(), Vec::new());
    };
    let about = description.split("\n\n`").next().unwrap_or_default();
    let rows = values.iter().filter_map(Value::as_str).map(|value| {
        let mark = format!("`{value}`: ");
        let meaning = description
            .lines()
            .find_map(|line| line.strip_prefix(&mark));
        [format!("`{value}`"), meaning.unwrap_or_default().to_owned()]
    });
    (about.to_owned(), rows.collect())
}

fn text(schema: &Value, member: &str) -> String {
    let text = schema.get(member).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// JSON text in which each short object or array is on one line.
fn shown(value: &Value) -> String {
    let mut out = String::new();
    show(&mut out, value, 0, 0);
    out
}

/// Appends a value to `out`. `before` is the number of characters before the value on its line.
fn show(out: &mut String, value: &Value, indent: usize, before: usize) {
    let line = value.to_string();
    let is_short = before + line.chars().count() <= LINE_LEN;
    let (open, close, values): (_, _, Vec<(String, &Value)>) = match value {
        Value::Object(members) if !is_short => {
            let name = |name: &String| format!("{}: ", Value::from(name.as_str()));
            (
                '{',
                '}',
                members
                    .iter()
                    .map(|(key, value)| (name(key), value))
                    .collect(),
            )
        }
        Value::Array(items) if !is_short => (
            '[',
            ']',
            items.iter().map(|item| (String::new(), item)).collect(),
        ),
        _ => {
            out.push_str(&line);
            return;
        }
    };
    out.push(open);
    let deeper = indent + 2;
    for (index, (name, value)) in values.into_iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\n{:deeper$}{name}", "");
        show(out, value, deeper, deeper + name.len());
    }
    let _ = write!(out, "\n{:indent$}{close}", "");
}

fn table<const N: usize>(
    page: &mut String,
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) {
    let _ = writeln!(page, "| {} |", head.join(" | "));
    let _ = writeln!(page, "|{}", "---|".repeat(N));
    for row in rows {
        let cells = row.map(|cell| {
            cell.replace('|', "\\|")
                .replace("\n\n", "<br>")
                .replace('\n', "<br>")
        });
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    page.push('\n');
}

/// The anchor of a heading.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}
