//! The definitions of all wire types and methods.

use schemars::json_schema;
use std::fmt::Write;
use treelined_core::error::{Advice, Kind};

use super::generators::Generators;
use super::methods::{Method, Notification, methods, notifications};
use crate::params::RequestId;
use schemars::Schema;
use serde_json::{Map, Value};

/// The beginning of a reference to a definition in the same document.
pub(super) const DEFINITIONS: &str = "#/$defs/";

/// All definitions of `treelined.v1.json`, and the tables that refer to them.
pub(super) struct Protocol {
    pub(super) methods: Vec<Method>,
    pub(super) notifications: Vec<Notification>,
    pub(super) definitions: Map<String, Value>,
    /// The examples, by the name of the definition.
    pub(super) examples: Map<String, Value>,
}

impl Protocol {
    pub(super) fn new() -> Self {
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
    pub(super) fn definition(&self, schema: &Schema) -> &Value {
        let name = definition_name(schema);
        let definition = name.and_then(|name| self.definitions.get(name));
        definition.unwrap_or(&Value::Null)
    }

    /// The description of a method or a notification: its summary, and the description of its
    /// params.
    pub(super) fn description(&self, name: &str, summary: &str, params: &Schema) -> String {
        let opening = format!("The params of `{name}`");
        let more = explanation(self.definition(params), &opening);
        format!("{summary} {more}").trim_end().to_owned()
    }

    /// The example of a params or result type.
    pub(super) fn example(&self, schema: &Schema) -> Option<&Value> {
        self.examples.get(definition_name(schema)?)
    }
}

/// The description of a definition without its opening sentence, which only names the definition.
pub(super) fn explanation(definition: &Value, opening: &str) -> String {
    let description = definition.get("description").and_then(Value::as_str);
    let description = description.unwrap_or_default();
    let rest = description.strip_prefix(opening).unwrap_or(description);
    rest.trim_start_matches([',', '.', ':', ' ']).to_owned()
}

/// The name of the definition that a schema refers to.
pub(super) fn definition_name(schema: &Schema) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(DEFINITIONS)
}

pub(super) fn error_kind() -> Schema {
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

pub(super) fn names(kinds: &[Kind]) -> Vec<&'static str> {
    kinds.iter().map(|kind| kind.name()).collect()
}
