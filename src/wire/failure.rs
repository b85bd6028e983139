//! The error object of a response, and the details that some kinds carry (protocol.md §8).
//!
//! `treelined_core::error` has the kinds. This module has only the shapes of their details, for the
//! schema.

use super::params::Raw;
use serde::Serialize;
use serde_json::{Map, Value};

/// The error object of a response.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorObject {
    /// The number of the error, for JSON-RPC libraries. Programs compare `data.kind` instead.
    pub code: i32,
    /// A sentence for people. It may change.
    pub message: String,
    /// The members for programs.
    pub data: ErrorData,
}

/// The members of an error for programs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorData {
    /// The cause of the error.
    #[cfg_attr(feature = "schema", schemars(extend("$ref" = "#/$defs/ErrorKind")))]
    pub kind: String,
    /// True if the same request may succeed later, unchanged.
    pub retryable: bool,
    /// How many milliseconds to wait before a retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// More about the error; each kind has its own definition, whose name ends in `Details`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Map<String, Value>>,
}

/// The `details` of `invalidParams`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InvalidParamsDetails {
    /// The path of the wrong member, such as `summary.details`; empty for the params as a whole.
    pub field: String,
    /// A sentence for people.
    pub reason: String,
    /// The number of characters before the fault. Present for templates, and for a query of filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
}

/// The `details` of `entryNotFound`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EntryNotFoundDetails {
    /// The id that no entry has.
    pub entry_id: String,
}

/// The `details` of `leafMoved`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LeafMovedDetails {
    /// The leaf that the request expected; null at the empty position.
    pub expected_leaf_id: Option<String>,
    /// The actual leaf; null at the empty position.
    pub leaf_id: Option<String>,
    /// The newest entries between the two leaves, and those that other processes appended below the leaf: at most 100,
    /// and none if they exceed 256 KiB.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::entry::Entry>"))]
    pub entries: Vec<Raw>,
}

/// The `details` of `sessionBusy`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionBusyDetails {
    /// The activity that is running.
    pub by: BusyBy,
    /// The id of the navigation that is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub navigation_id: Option<String>,
}

/// An operation that keeps a session busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BusyBy {
    Turn,
    Compaction,
    Navigation,
}

/// The `details` of `entryInvalid`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EntryInvalidDetails {
    /// The index of the wrong entry among those to append, from 0.
    pub index: u64,
    /// The path of the wrong member.
    pub field: String,
}

/// The `details` of `commandExists` and `commandNotFound`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandDetails {
    /// The name of the command.
    pub name: String,
}

/// The `details` of `commandFailed`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandFailedDetails {
    /// The name of the command.
    pub name: String,
    /// Why the command failed.
    pub reason: CommandFailure,
    /// The error of the client that offers the command. Present with the reason `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Why a command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum CommandFailure {
    /// The client that offers the command answered with an error.
    Error,
    /// The command took too long.
    Timeout,
    /// The connection that offers the command has ended.
    OwnerGone,
}

/// The `details` of `treeChanged`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TreeChangedDetails {
    /// The current revision of the tree.
    pub revision: String,
}

/// The `details` of `storageFull` and `storageIo`, if a part of the entries was written.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PartialWriteDetails {
    /// The ids of the entries that were written.
    pub written_ids: Vec<String>,
}
