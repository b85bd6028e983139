//! The generators of the schemas of params and results.

use super::tidy::{never_null, schemas, tidy};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// One generator for params and one for results: an optional member may be null in params and is absent from results.
pub(super) struct Generators {
    pub(super) incoming: SchemaGenerator,
    pub(super) outgoing: SchemaGenerator,
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
    pub(super) fn params<T: JsonSchema>(&mut self) -> Schema {
        self.incoming.subschema_for::<T>()
    }

    pub(super) fn result<T: JsonSchema>(&mut self) -> Schema {
        self.outgoing.subschema_for::<T>()
    }

    /// All definitions so far, by name, without the examples of params and results.
    pub(super) fn into_definitions(self) -> Map<String, Value> {
        self.into_definitions_and_examples().0
    }

    /// All definitions so far and the examples of definitions, both by name. Some definitions have no example.
    pub(super) fn into_definitions_and_examples(
        mut self,
    ) -> (Map<String, Value>, Map<String, Value>) {
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
