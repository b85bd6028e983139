//! Entries of the tree: their JSON, and the members that all entries have.

use crate::generated::EntryBody;
use crate::json::Json;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An entry of the tree. The members that all types of entries have are parsed. [`body`](Entry::body) parses
/// the others according to the type, and [`json`](Entry::json) is the entry as it was received.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    head: CommonMembers,
    json: Json,
}

/// The members of every entry. In a damaged file all of them except the id may be missing.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommonMembers {
    #[serde(default)]
    r#type: String,
    id: String,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    timestamp: String,
}

impl Entry {
    /// Returns the id, unique in the session.
    pub fn id(&self) -> &str {
        &self.head.id
    }

    /// Returns the id of the parent; `None` at a root.
    pub fn parent_id(&self) -> Option<&str> {
        self.head.parent_id.as_deref()
    }

    /// Returns the type, such as `message`.
    pub fn r#type(&self) -> &str {
        &self.head.r#type
    }

    /// Returns the time in ISO 8601, in UTC and with milliseconds.
    pub fn timestamp(&self) -> &str {
        &self.head.timestamp
    }

    /// Parses the entry according to its type. Fails if a required member is missing, or if the entry is
    /// nested more than 128 levels deep.
    pub fn body(&self) -> Result<EntryBody, serde_json::Error> {
        EntryBody::parse(self.r#type(), &self.json)
    }

    /// Returns the whole entry.
    pub fn json(&self) -> &Json {
        &self.json
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        let json = Json::deserialize(deserializer)?;
        let head = json.parse().map_err(de::Error::custom)?;
        Ok(Entry { head, json })
    }
}
