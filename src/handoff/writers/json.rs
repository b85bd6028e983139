//! Writes lines of JSON.

use serde_json::Value;

/// Collects JSON values, one on each line.
#[derive(Default)]
pub(super) struct Lines(Vec<u8>);

impl Lines {
    pub(super) fn push(&mut self, value: &Value) {
        self.0.extend_from_slice(value.to_string().as_bytes());
        self.0.push(b'\n');
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}
