//! One example per method, for readers of the OpenRPC document: `examples.json` beside this file, as a
//! daemon has answered. The TypeScript client's tests check that they obey the schema.

use serde_json::{Map, Value};

const EXAMPLES: &str = include_str!("examples.json");

/// Params and result, by method.
pub fn examples() -> Map<String, Value> {
    serde_json::from_str(EXAMPLES).unwrap_or_default()
}
