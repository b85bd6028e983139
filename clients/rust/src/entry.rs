//! Entries of the tree, as their bytes, with what every entry has read out.

use crate::generated::EntryBody;
use crate::json::Json;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An entry of the tree. What all types have in common can be asked for at once, the rest is read by
/// [`body`](Entry::body), and [`json`](Entry::json) has every byte.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    head: Head,
    json: Json,
}

/// The members of every entry. In a damaged file any of them but the id may be missing.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    r#type: String,
    id: String,
    #[serde(default)]
    parent_id: Option<String>,
    #[serde(default)]
    timestamp: String,
}

impl Entry {
    /// Unique in the session.
    pub fn id(&self) -> &str {
        &self.head.id
    }

    /// The entry before it; none at a root.
    pub fn parent_id(&self) -> Option<&str> {
        self.head.parent_id.as_deref()
    }

    /// Such as `message`.
    pub fn r#type(&self) -> &str {
        &self.head.r#type
    }

    /// ISO 8601 with milliseconds, UTC.
    pub fn timestamp(&self) -> &str {
        &self.head.timestamp
    }

    /// What it says. Fails if members are missing that its type asks for, or it is nested more than
    /// some hundred levels deep.
    pub fn body(&self) -> Result<EntryBody, serde_json::Error> {
        EntryBody::parse(self.r#type(), &self.json)
    }

    /// All of it.
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
