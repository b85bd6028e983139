//! Appending entries: messages, batches, labels, copies from other branches (protocol.md §3, §9).

use super::entry::NewEntry;
use super::message::Message;
use super::params::{GivenPosition, Raw, non_empty, nullable_into, object};
use schemars::JsonSchema;
use serde::Serialize;

/// How safe what was written is at the time of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Nothing was written.
    None,
    /// Survives the death of the process.
    Os,
    /// Reaches the disk within 50 ms.
    Interval,
    /// Is on the disk.
    Always,
}

mutation_params! {
    /// Appends one message at the leaf, or elsewhere.
    AppendMessageParams {
        /// Stored byte for byte.
        #[serde(deserialize_with = "object")]
        #[schemars(with = "Message")]
        message: Raw,
        /// The id of the new entry; makes retries safe.
        entry_id: Option<String>,
        /// Appends there instead of at the leaf; null appends a root.
        #[serde(default, deserialize_with = "nullable_into")]
        #[schemars(with = "Option<String>")]
        parent_id: GivenPosition,
    }
}

/// The result of `append_message`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendMessageResult {
    /// The new entry.
    pub entry_id: String,
    /// The leaf afterwards: the entry.
    pub leaf_id: String,
    /// What the write was given.
    pub durability: Durability,
}

mutation_params! {
    /// Appends several entries, all or none.
    AppendEntriesParams {
        /// In order; each stored with its members byte for byte.
        #[serde(deserialize_with = "non_empty")]
        #[schemars(with = "Vec<NewEntry>", length(min = 1))]
        entries: Vec<Raw>,
    }
}

/// The result of `append_entries`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendEntriesResult {
    /// In the order of `entries`.
    pub entry_ids: Vec<String>,
    /// The leaf afterwards: the last entry.
    pub leaf_id: String,
    /// What the write was given.
    pub durability: Durability,
}

mutation_params! {
    /// Labels an entry by appending a label entry.
    AppendLabelParams {
        /// The entry to label.
        target_id: String,
        /// Stored trimmed and on one line. Left out, null or blank clears the label.
        label: Option<String>,
        /// The id of the new entry; makes retries safe.
        entry_id: Option<String>,
    }
}

/// The result of `append_label`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendLabelResult {
    /// The label entry.
    pub entry_id: String,
    /// The leaf afterwards: the label entry.
    pub leaf_id: String,
    /// What the write was given.
    pub durability: Durability,
}

mutation_params! {
    /// Appends copies of messages of other branches at the leaf, tool calls only with their results.
    CherryPickParams {
        /// What to copy, in this order.
        #[serde(deserialize_with = "non_empty")]
        #[schemars(length(min = 1))]
        entry_ids: Vec<String>,
    }
}

/// The result of `cherry_pick`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CherryPickResult {
    /// The copies.
    pub entry_ids: Vec<String>,
    /// The leaf afterwards: the last copy.
    pub leaf_id: String,
    /// What the write was given.
    pub durability: Durability,
}
