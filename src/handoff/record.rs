//! Makes the record of a continuation for its session (session-file.md §4.6).

use serde_json::{Map, Value, json};
use std::path::Path;
use treelined_import::Tool;
use treelined_import::neutral::{Message, hash};

pub(crate) struct Record<'a> {
    pub(crate) id: &'a str,
    pub(crate) session_id: &'a str,
    pub(crate) entry_id: &'a str,
    pub(crate) tool: Tool,
    pub(crate) native_id: Option<&'a str>,
    pub(crate) path: Option<&'a Path>,
    pub(crate) cwd: &'a str,
    pub(crate) from: Option<&'a str>,
    pub(crate) summary: Option<&'a str>,
    pub(crate) keeps_thoughts: bool,
    pub(crate) messages: &'a [Message],
}

impl Record<'_> {
    /// The record as raw JSON, an object.
    pub(crate) fn json(&self) -> Vec<u8> {
        let mut record = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                record.insert(name.to_owned(), value);
            }
        };
        put("id", Some(json!(self.id)));
        put("sessionId", Some(json!(self.session_id)));
        put("entryId", Some(json!(self.entry_id)));
        put("tool", Some(json!(self.tool.name())));
        put("nativeId", self.native_id.map(|id| json!(id)));
        put("path", self.path.map(|path| json!(path.to_string_lossy())));
        put("cwd", Some(json!(self.cwd)));
        put("from", self.from.map(|from| json!(from)));
        put("summary", self.summary.map(|summary| json!(summary)));
        put("thinking", self.keeps_thoughts.then(|| json!("text")));
        put("messages", Some(json!(self.messages.len())));
        put("sha256", Some(json!(hash(self.messages))));
        Value::Object(record).to_string().into_bytes()
    }
}
