//! The error object of a response, and the details that some kinds carry (protocol.md §8).
//!
//! Which kinds there are is `crate::error`'s; here are only their shapes, for the schema.

use super::entry::Entry;
use super::params::Raw;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The error object of a response.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorObject {
    /// For people and JSON-RPC libraries; programs look at `data.kind`.
    pub code: i32,
    /// For people.
    pub message: String,
    /// For programs.
    pub data: ErrorData,
}

/// What programs need to know about a failure.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// The cause.
    #[schemars(extend("$ref" = "#/$defs/ErrorKind"))]
    pub kind: String,
    /// The same request may succeed later, unchanged.
    pub retryable: bool,
    /// Milliseconds after which a retry makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// By kind; see the definitions that end in `Details`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
}

/// Of `invalidParams`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvalidParamsDetails {
    /// The path of the member, such as `summary.details`; empty for the params as a whole.
    pub field: String,
    /// For people.
    pub reason: String,
}

/// Of `entryNotFound`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryNotFoundDetails {
    /// The id that names no entry.
    pub entry_id: String,
}

/// Of `leafMoved`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeafMovedDetails {
    /// Null: before the first entry.
    pub expected_leaf_id: Option<String>,
    /// Null: before the first entry.
    pub leaf_id: Option<String>,
    /// What stands between, and what others have appended below the leaf meanwhile: the newest, as
    /// far as they are few and small.
    #[schemars(with = "Vec<Entry>")]
    pub entries: Vec<Raw>,
}

/// Of `sessionBusy`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionBusyDetails {
    /// What is running.
    pub by: BusyBy,
    /// Which navigation, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub navigation_id: Option<String>,
}

/// What keeps a session busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BusyBy {
    Turn,
    Compaction,
    Navigation,
}

/// Of `entryInvalid`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryInvalidDetails {
    /// Of the entry among those to append, from 0.
    pub index: u64,
    /// The path of the member.
    pub field: String,
}

/// Of `treeChanged`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeChangedDetails {
    /// The current one.
    pub revision: String,
}

/// Of `storageFull` and `storageIo`, if a part landed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PartialWriteDetails {
    /// The entries that were written.
    pub written_ids: Vec<String>,
}
