//! Reading a session: leaf, entries, paths, labels, branches, context, statistics (protocol.md §3).

use super::entry::Entry;
use super::message::Message;
use super::params::{Count, GivenPosition, Nullable, Raw, count, nullable, nullable_into};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

session_params! {
    /// Where the session stands.
    GetLeafParams {}
}

/// The result of `get_leaf`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetLeafResult {
    /// Null: before the first entry.
    pub leaf_id: Option<String>,
    /// The number of the last notification of this session to this connection.
    pub seq: u64,
    /// The leaf, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Entry>")]
    pub entry: Option<Raw>,
}

session_params! {
    /// All entries in file order, page by page.
    GetEntriesParams {
        /// Only entries after this one.
        since: Option<String>,
        /// Most entries of a page.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        limit: Option<u64>,
        /// Most bytes of a page; one entry is always delivered.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        max_bytes: Option<u64>,
    }
}

/// The result of `get_entries`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetEntriesResult {
    /// In file order.
    #[schemars(with = "Vec<Entry>")]
    pub entries: Vec<Raw>,
    /// Null: before the first entry.
    pub leaf_id: Option<String>,
    /// The number of the last notification of this session to this connection.
    pub seq: u64,
    /// There are more entries: `since` of the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

session_params! {
    /// One entry.
    GetEntryParams {
        /// The entry.
        entry_id: String,
    }
}

/// The result of `get_entry`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetEntryResult {
    /// The entry.
    #[schemars(with = "Entry")]
    pub entry: Raw,
    /// What is odd about the entry: `orphan`, `duplicateId`, `recovered`…
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
}

session_params! {
    /// The children of an entry, in file order.
    GetChildrenParams {
        /// Null: the roots.
        #[serde(deserialize_with = "nullable")]
        #[schemars(with = "Nullable<String>")]
        entry_id: Option<String>,
    }
}

/// The result of `get_children`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetChildrenResult {
    /// In file order.
    #[schemars(with = "Vec<Entry>")]
    pub entries: Vec<Raw>,
}

session_params! {
    /// The entries from the root to an entry.
    GetPathParams {
        /// The last entry of the path; the leaf if left out.
        entry_id: Option<String>,
    }
}

/// The result of `get_path`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetPathResult {
    /// Root first; empty if the session stands before its first entry.
    #[schemars(with = "Vec<Entry>")]
    pub entries: Vec<Raw>,
}

session_params! {
    /// The label of an entry.
    GetLabelParams {
        /// The entry.
        entry_id: String,
    }
}

/// The result of `get_label`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetLabelResult {
    /// Left out if the entry has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When it was set, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_timestamp: Option<String>,
}

session_params! {
    /// One row for each tip of the tree.
    ListBranchesParams {}
}

/// The result of `list_branches`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListBranchesResult {
    /// The active one is among them.
    pub branches: Vec<Branch>,
}

/// The way from a fork, or from the root, to a tip.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// The last entry of the branch.
    pub tip_id: String,
    /// The nearest ancestor with several children; null if there is none.
    pub fork_id: Option<String>,
    /// The label nearest to the tip, on this branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Messages from the fork, exclusive, to the tip.
    pub message_count: u64,
    /// The last message, on one line.
    pub preview: String,
    /// ISO 8601.
    pub last_activity: String,
    /// The leaf is on this branch.
    pub is_active: bool,
}

session_params! {
    /// What a model sees at a position.
    GetContextParams {
        /// The position; the leaf if left out, null: before the first entry.
        #[serde(default, deserialize_with = "nullable_into")]
        #[schemars(with = "Option<String>")]
        leaf_id: GivenPosition,
        /// `agent` if left out.
        format: Option<ContextFormat>,
    }
}

/// What a context is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContextFormat {
    /// Messages as stored, and summaries and custom messages in roles of their own.
    #[default]
    Agent,
    /// Only system, user, assistant and toolResult.
    Llm,
    /// The stored entries that the context is made of, in the order of the context, instead of messages:
    /// the latest compaction first, then what it keeps, then what follows. Settings, labels and context
    /// edits are among them; the edits are not applied.
    Entries,
}

/// The result of `get_context`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetContextResult {
    /// In order; left out with `format:"entries"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Message>>")]
    pub messages: Option<Vec<Raw>>,
    /// In order; only with `format:"entries"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Entry>>")]
    pub entries: Option<Vec<Raw>>,
    /// `off` if none was ever set.
    pub thinking_level: String,
    /// Null if neither a model change nor an assistant message tells.
    pub model: Option<Model>,
    /// The entry that each message comes from, or the id of each entry.
    pub entry_ids: Vec<String>,
}

/// A model, as the conversation names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Who serves it.
    pub provider: String,
    /// The provider's name for it.
    pub model_id: String,
}

session_params! {
    /// Numbers about the whole session.
    GetStatsParams {}
}

/// The result of `get_stats`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GetStatsResult {
    /// Messages by role.
    pub messages: BTreeMap<String, u64>,
    /// Calls in assistant messages.
    pub tool_calls: u64,
    /// Tokens used.
    pub tokens: Tokens,
    /// In the currency of the usage records.
    pub cost: f64,
    /// Tokens of the context at the leaf, estimated where no usage tells.
    pub context_tokens: u64,
}

/// Tokens that the conversation has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// Sent, caches not counted.
    pub input: u64,
    /// Received.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_write: u64,
}
