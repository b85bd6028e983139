//! Reading a session: leaf, entries, paths, labels, branches, context (protocol.md §3).

use super::params::{GivenPosition, Raw, count, nullable, nullable_into};
use super::renderers::RowStyle;
use super::session::Diagnostic;
use super::shed::ShedBranch;
use serde::{Deserialize, Serialize};

session_params! {
    /// The params of `get_leaf`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
    GetLeafParams {}
}

/// The result of `get_leaf`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "leafId": "32cf6b69", "seq": 10,
  "entry": {
    "type": "label", "id": "32cf6b69", "parentId": "50aeb394",
    "timestamp": "2026-11-22T05:40:35.837Z", "targetId": "50aeb394", "label": "first try"
  }
}"#)))]
pub struct GetLeafResult {
    /// The leaf; null at the empty position.
    pub leaf_id: Option<String>,
    /// The number of the last notification about this session to this connection.
    pub seq: u64,
    /// The entry of the leaf. Absent at the empty position.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::entry::Entry>"))]
    pub entry: Option<Raw>,
    /// `leafBesideNewest`, if the file opens beside its newest entries; `backgroundCut`, if it ends within a background
    /// write; `logRewound`, if the team's stream has lost lines of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

session_params! {
    /// The params of `get_entries`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"limit": 1}"#)))]
    GetEntriesParams {
        /// The id of an entry; the page begins after it. Default: the first entry.
        since: Option<String>,
        /// How many entries the client has up to and with `since`; fails with `treeChanged` if the file has another
        /// number of entries up to there. Default: the order is not compared.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        known: Option<u64>,
        /// The most entries of the page. Default: no limit.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        limit: Option<u64>,
        /// The most bytes of the page, which has at least one entry. Default: the client's `maxFrameBytes`.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        max_bytes: Option<u64>,
        /// Only entries of these types. Default: all types.
        types: Option<Vec<String>>,
        /// Only `custom` and `custom_message` entries of this custom type. Default: all entries.
        custom_type: Option<String>,
    }
}

/// The result of `get_entries`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "entries": [
    {
      "type": "session_info", "id": "4878310c", "parentId": null,
      "timestamp": "2026-11-22T05:40:35.827Z", "name": "A tour"
    }
  ],
  "leafId": "a1", "seq": 11, "nextCursor": "4878310c"
}"#)))]
pub struct GetEntriesResult {
    /// The entries in file order.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::entry::Entry>"))]
    pub entries: Vec<Raw>,
    /// The leaf; null at the empty position.
    pub leaf_id: Option<String>,
    /// The number of the last notification about this session to this connection.
    pub seq: u64,
    /// The `since` of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

session_params! {
    /// The params of `get_entry`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "u1"}"#)))]
    GetEntryParams {
        /// The id of the entry.
        entry_id: String,
        /// Whether the servers of the team are asked about the entry. Default: false.
        #[serde(default)]
        verify: bool,
    }
}

/// The result of `get_entry`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "entry": {
    "type": "message", "id": "u1", "parentId": "4878310c", "timestamp": "2026-11-22T05:40:35.831Z",
    "message": {"role": "user", "content": "Why does the build fail?"}
  }
}"#)))]
pub struct GetEntryResult {
    /// The entry.
    #[cfg_attr(feature = "schema", schemars(with = "crate::entry::Entry"))]
    pub entry: Raw,
    /// The unusual properties of the entry: `orphan`, `duplicateId`, `recovered` and others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// The judgement of the team's servers on the entry. Only with `verify`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedEntry>,
}

/// The judgement of a team's servers on an entry, by its line.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerifiedEntry {
    /// The name of the team's stream.
    pub stream: String,
    /// Whether the stream and the file have the same line.
    pub line: VerifiedLine,
    /// The account that has added the line of the stream. Null if the servers name none, as those of NATS, or if they do
    /// not have the line.
    pub account: Option<String>,
    /// Whether `account` is the `name` of the entry's `by`. Absent without one of them, and if the line differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
}

/// Whether the stream of a team and a file have the same line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum VerifiedLine {
    /// The bytes are the same.
    Equal,
    /// The stream has other bytes in its place.
    Differs,
    /// The line is not known to be in the stream: it waits for the servers.
    Queued,
}

session_params! {
    /// The params of `get_children`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "a1"}"#)))]
    GetChildrenParams {
        /// The id of the parent; null means the roots.
        #[serde(deserialize_with = "nullable")]
        #[cfg_attr(feature = "schema", schemars(with = "crate::shapes::Nullable<String>"))]
        entry_id: Option<String>,
    }
}

/// The result of `get_children`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "entries": [
    {
      "type": "message", "id": "u2", "parentId": "a1", "timestamp": "2026-11-22T05:40:35.833Z",
      "message": {"role": "user", "content": "Clear the cache."}
    },
    {
      "type": "branch_summary", "id": "50aeb394", "parentId": "a1",
      "timestamp": "2026-11-22T05:40:35.837Z", "fromId": "16e149ed",
      "summary": "This is a summary of a branch that was explored before the conversation returned here.\n\nThe cache was cleared. The build still fails.",
      "details": {"readFiles": [], "modifiedFiles": []}
    }
  ]
}"#)))]
pub struct GetChildrenResult {
    /// The children by timestamp; those with the same timestamp in file order.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::entry::Entry>"))]
    pub entries: Vec<Raw>,
}

session_params! {
    /// The params of `get_path`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "a1"}"#)))]
    GetPathParams {
        /// The id of the last entry of the path. Default: the leaf.
        entry_id: Option<String>,
        /// The id of an entry of the path; the page begins below it. Default: the root.
        since: Option<String>,
        /// The most entries of the page. Default: no limit.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        limit: Option<u64>,
        /// The most bytes of the page, which has at least one entry. Default: no page, the whole path.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        max_bytes: Option<u64>,
    }
}

/// The result of `get_path`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "entries": [
    {
      "type": "session_info", "id": "4878310c", "parentId": null,
      "timestamp": "2026-11-22T05:40:35.827Z", "name": "A tour"
    },
    {
      "type": "message", "id": "u1", "parentId": "4878310c", "timestamp": "2026-11-22T05:40:35.831Z",
      "message": {"role": "user", "content": "Why does the build fail?"}
    },
    {
      "type": "message", "id": "a1", "parentId": "u1", "timestamp": "2026-11-22T05:40:35.833Z",
      "message": {
        "role": "assistant",
        "content": [{"type": "text", "text": "A stale cache, or a missing import."}],
        "provider": "example", "model": "large", "stopReason": "stop"
      }
    }
  ]
}"#)))]
pub struct GetPathResult {
    /// The entries of the path, the root first; empty at the empty position.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::entry::Entry>"))]
    pub entries: Vec<Raw>,
    /// The `since` of the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

session_params! {
    /// The params of `get_label`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "a1"}"#)))]
    GetLabelParams {
        /// The id of the entry.
        entry_id: String,
    }
}

/// The result of `get_label`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "label": "two ideas", "labelTimestamp": "2026-11-22T05:40:35.833Z"
}"#)))]
pub struct GetLabelResult {
    /// The label. Absent if the entry has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When the label was set, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_timestamp: Option<String>,
}

session_params! {
    /// The params of `list_branches`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
    ListBranchesParams {
        /// Whether archived branches are listed. Default: false.
        archived: Option<bool>,
    }
}

/// The result of `list_branches`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "branches": [
    {
      "tipId": "a2", "name": "Clear the cache.", "forkId": "a1", "messageCount": 2, "preview": "Cleared. It still fails.",
      "lastActivity": "2026-11-22T05:40:35.833Z", "isActive": false
    },
    {
      "tipId": "50aeb394", "name": "first try", "forkId": "a1", "label": "first try", "messageCount": 0,
      "preview": "The cache was cleared. The build still fails.",
      "lastActivity": "2026-11-22T05:40:35.837Z", "isActive": false
    }
  ]
}"#)))]
pub struct ListBranchesResult {
    /// The branches, the active one among them.
    pub branches: Vec<Branch>,
    /// The number of archived branches, listed or not, of which none is in another. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived_branches: Option<u64>,
    /// The number of branches in the cold file (protocol.md §3.24). Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shed_branches: Option<u64>,
    /// The branches in the cold file, as their records say. Only with `archived: true`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shed: Vec<ShedBranch>,
}

/// The entries from a fork, or from the root, to a tip.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// The id of the last entry of the branch.
    pub tip_id: String,
    /// The name of the branch for people: the one that it was given, else its label, else the first user message after
    /// the fork as its row shows it, else the preview.
    pub name: String,
    /// The name that `name_branch` gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_name: Option<String>,
    /// The id of the nearest ancestor with several children; null if there is none.
    pub fork_id: Option<String>,
    /// The label of the tip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The number of messages after the fork up to the tip.
    pub message_count: u64,
    /// The last message, on one line.
    pub preview: String,
    /// The icon of the last message. Present if its renderer has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// The style of the last message. Present for displayed custom messages, and if its renderer has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<RowStyle>"))]
    pub style: Option<RowStyle>,
    /// When the last entry was written, in ISO 8601.
    pub last_activity: String,
    /// True if the leaf is at the tip of this branch.
    pub is_active: bool,
    /// True if the branch is archived, else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// The question to which the branch is one of several answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

session_params! {
    /// The params of `get_context`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
    GetContextParams {
        /// The id of the position; null means the empty position. Default: the leaf.
        #[serde(default, deserialize_with = "nullable_into")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        leaf_id: GivenPosition,
        /// The form of the context. Default: `agent`.
        format: Option<ContextFormat>,
    }
}

/// The form of a context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ContextFormat {
    /// Messages as stored; summaries and messages of plugins have their own roles.
    #[default]
    Agent,
    /// Messages with the roles `system`, `user`, `assistant` and `toolResult` only.
    Llm,
    /// The stored entries instead of messages, in the order of the context: the latest compaction, then the
    /// entries that it keeps, then those after it. Settings, labels and context edits are among them; the
    /// edits are not applied.
    Entries,
}

/// The result of `get_context`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "messages": [
    {"role": "user", "content": "Why does the build fail?"},
    {
      "role": "assistant",
      "content": [{"type": "text", "text": "A stale cache, or a missing import."}],
      "provider": "example", "model": "large", "stopReason": "stop"
    }
  ],
  "thinkingLevel": "off", "model": {"provider": "example", "modelId": "large"},
  "entryIds": ["u1", "a1"]
}"#)))]
pub struct GetContextResult {
    /// The messages in order. Absent with `format: "entries"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<crate::message::Message>>")
    )]
    pub messages: Option<Vec<Raw>>,
    /// The entries in order. Present with `format: "entries"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<crate::entry::Entry>>")
    )]
    pub entries: Option<Vec<Raw>>,
    /// The thinking level; `off` if nothing on the path sets one.
    pub thinking_level: String,
    /// The model; null if nothing on the path names one.
    pub model: Option<Model>,
    /// The id of each message's entry, or of each entry, in the same order. Null for a result that `format: "llm"`
    /// adds after a call without one.
    pub entry_ids: Vec<Option<String>>,
}

/// A model, as the conversation names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The provider that serves the model.
    pub provider: String,
    /// The provider's name for the model.
    pub model_id: String,
}

/// Tokens as providers count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// Tokens sent to the model, without those of the cache.
    pub input: u64,
    /// Tokens received from the model.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
    pub cache_write: u64,
}
