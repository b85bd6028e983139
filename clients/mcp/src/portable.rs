//! JSON Schemas that every agent's model provider accepts.

use schemars::Schema;
use schemars::transform::transform_subschemas;
use serde_json::Value;

/// Removes from a schema what some providers refuse: the formats of integers, and `null` beside a type (an optional
/// member is left out instead).
pub fn portable(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if schema.get("type").is_some_and(|name| name == "integer") {
        schema.remove("format");
    }
    transform_subschemas(&mut portable, schema);
}
