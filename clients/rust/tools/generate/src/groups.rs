//! The groups in the table of methods, and the group to which each definition belongs.

use crate::schema::{Definitions, last};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The group of definitions that the methods of several groups use.
const SHARED: &str = "shared";
const NOTIFICATIONS: &str = "notifications";
const ERRORS: &str = "errors";
/// Methods of the largest group in the table that are generated into separate files: one file for the conversations of
/// other tools, and one for searches and counts over all sessions.
const FILES_OF_SESSIONS: [(&str, &[&str]); 2] = [
    (
        "imports",
        &[
            "import_sessions",
            "import_report",
            "continue_session",
            "continuation_started",
        ],
    ),
    ("search", &["search", "complete_query", "get_usage"]),
];

/// The group of a method. Its file has the same name.
pub fn group(method: &Value) -> &str {
    let name = method["name"].as_str().expect("name");
    let mut files = FILES_OF_SESSIONS.iter();
    match files.find(|(_, methods)| methods.contains(&name)) {
        Some((file, _)) => file,
        None => method["group"].as_str().expect("group"),
    }
}

/// The group of each definition, by the name of the definition.
pub struct Groups(BTreeMap<String, String>);

impl Groups {
    pub fn new(definitions: &Definitions, table: &Value) -> Groups {
        let mut users: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for method in table["methods"].as_array().expect("methods") {
            let group = group(method);
            for name in reached(definitions, method) {
                users.entry(name).or_default().insert(group);
            }
        }
        let mut groups: BTreeMap<String, String> = users
            .into_iter()
            .map(|(name, groups)| match groups.len() {
                1 => (name, groups.into_iter().collect()),
                _ => (name, SHARED.into()),
            })
            .collect();
        for name in reached(definitions, &table["notifications"]) {
            groups.entry(name).or_insert_with(|| NOTIFICATIONS.into());
        }
        // Errors name the type of their details only in a description.
        for name in definitions.0.keys() {
            groups.entry(name.clone()).or_insert_with(|| ERRORS.into());
        }
        Groups(groups)
    }

    pub fn of(&self, definition: &str) -> String {
        self.0[definition].clone()
    }
}

/// Returns the definitions that a value refers to, directly or through others.
fn reached(definitions: &Definitions, value: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut pending = Vec::new();
    add_references(value, &mut pending);
    while let Some(name) = pending.pop() {
        if let Some(schema) = definitions.0.get(&name)
            && all.insert(name)
        {
            add_references(schema, &mut pending);
        }
    }
    all
}

fn add_references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                match value.as_str() {
                    Some(reference) if member == "$ref" => names.extend(named(last(reference))),
                    _ => add_references(value, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_references(item, names)),
        _ => {}
    }
}

/// Returns the names of the definitions that the generated files use in place of the definition `name`.
fn named(name: &str) -> Vec<String> {
    match name {
        "GetTreeResult" => vec!["FlatTree".into(), "NestedTree".into()],
        name => vec![name.into()],
    }
}
