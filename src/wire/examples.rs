//! Examples of types for the documents.

/// Parses the example of a type for the documents. JSON that does not parse becomes null, which a test
/// rejects.
pub(super) fn example(json: &str) -> serde_json::Value {
    serde_json::from_str(json).unwrap_or_default()
}
