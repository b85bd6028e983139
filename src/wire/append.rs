//! Appending entries: messages, batches, labels, copies from other branches (protocol.md §3, §9).

use super::params::{GivenPosition, Raw, non_empty, nullable_into, object};
use serde::Serialize;
pub use treelined_core::durability::Durability;

mutation_params! {
    /// The params of `append_message`. After the append the leaf is the new entry. An append with `parentId`
    /// is not a navigation: it asks no client and cannot be undone.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
      "entryId": "u1", "message": {"role": "user", "content": "Why does the build fail?"}
    }"#)))]
    AppendMessageParams {
        /// The message, with a `role`. Its bytes are stored unchanged.
        #[serde(deserialize_with = "object")]
        #[cfg_attr(feature = "schema", schemars(with = "crate::message::Message"))]
        message: Raw,
        /// The id of the new entry. A client that chooses it can repeat the request safely. Default: the
        /// daemon chooses one.
        entry_id: Option<String>,
        /// The parent of the new entry; null makes the entry a root. Default: the leaf.
        #[serde(default, deserialize_with = "nullable_into")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        parent_id: GivenPosition,
        /// Whether to append in the background: the entry grows the branch at `parentId`, which must be given, and every
        /// leaf stays where it is. `expectedLeafId` is then the end of that branch. Default: false.
        keep_leaf: Option<bool>,
        /// The question to which the branch is one of several answers; all of them have the same text here and the same
        /// parent. Only with `keepLeaf`. Default: none.
        group: Option<String>,
    }
}

/// The result of `append_message`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "u1", "leafId": "u1", "durability": "interval"}"#)))]
pub struct AppendMessageResult {
    /// The id of the new entry.
    pub entry_id: String,
    /// The leaf after the append: the new entry. With `keepLeaf` the end of the branch, since the leaf stays.
    pub leaf_id: String,
    /// How safe the write is at the time of the response.
    pub durability: Durability,
}

mutation_params! {
    /// The params of `append_entries`. Either all entries are appended, in one write, or none.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
      "entries": [
        {
          "type": "message", "id": "a1",
          "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": "A stale cache, or a missing import."}],
            "provider": "example", "model": "large", "stopReason": "stop"
          }
        },
        {"type": "message", "id": "u2", "message": {"role": "user", "content": "Clear the cache."}},
        {
          "type": "message", "id": "a2",
          "message": {
            "role": "assistant", "content": [{"type": "text", "text": "Cleared. It still fails."}]
          }
        }
      ]
    }"#)))]
    AppendEntriesParams {
        /// The entries, in order. The bytes of their members are stored unchanged. At least one.
        #[serde(deserialize_with = "non_empty")]
        #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::entry::NewEntry>", length(min = 1)))]
        entries: Vec<Raw>,
        /// The parent of the first entry, unless the entry names its own parent; null makes the entry a root. Default:
        /// the leaf.
        #[serde(default, deserialize_with = "nullable_into")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
        parent_id: GivenPosition,
        /// Whether to append in the background: the entries grow the branch at the parent of the first one, which must be
        /// given, and every leaf stays where it is. `expectedLeafId` is then the end of that branch. Default: false.
        keep_leaf: Option<bool>,
        /// The question to which the branch is one of several answers; all of them have the same text here and the same
        /// parent. The first entry gets it. Only with `keepLeaf`. Default: none.
        group: Option<String>,
    }
}

/// The result of `append_entries`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "entryIds": ["a1", "u2", "a2"], "leafId": "a2", "durability": "interval"
}"#)))]
pub struct AppendEntriesResult {
    /// The ids of the new entries, in the order of `entries`.
    pub entry_ids: Vec<String>,
    /// The leaf after the append: the last of the new entries. With `keepLeaf` the end of the branch, since the leaf stays.
    pub leaf_id: String,
    /// How safe the write is at the time of the response.
    pub durability: Durability,
}

mutation_params! {
    /// The params of `append_label`. The label is a new entry at the leaf; it names the entry that it labels.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"targetId": "a1", "label": "two ideas"}"#)))]
    AppendLabelParams {
        /// The id of the entry to label.
        target_id: String,
        /// The label. It is stored trimmed and on one line; a blank one clears the label. Default: null,
        /// which clears the label.
        label: Option<String>,
        /// The id of the new entry. A client that chooses it can repeat the request safely. Default: the
        /// daemon chooses one.
        entry_id: Option<String>,
    }
}

/// The result of `append_label`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "entryId": "16e149ed", "leafId": "16e149ed", "durability": "interval"
}"#)))]
pub struct AppendLabelResult {
    /// The id of the label entry.
    pub entry_id: String,
    /// The leaf after the append: the label entry.
    pub leaf_id: String,
    /// How safe the write is at the time of the response.
    pub durability: Durability,
}

mutation_params! {
    /// The params of `cherry_pick`. The copies are appended at the leaf, each with the id of its original as
    /// `copiedFrom`, or with `{sessionId, entryId}` if it is in another session. Tool calls are copied only together with all of their results.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryIds": ["u2", "a2"]}"#)))]
    CherryPickParams {
        /// The ids of the messages to copy, in the order of the copies. At least one.
        #[serde(deserialize_with = "non_empty")]
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        entry_ids: Vec<String>,
        /// The session that has the messages, open or not. Copies that the path to the leaf has already are returned, not
        /// written again. Default: this session.
        from_session_id: Option<String>,
    }
}

/// The result of `cherry_pick`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "entryIds": ["0c16eded", "6122b546"], "leafId": "6122b546", "durability": "interval"
}"#)))]
pub struct CherryPickResult {
    /// The ids of the copies, in order.
    pub entry_ids: Vec<String>,
    /// The leaf after the append: the last copy.
    pub leaf_id: String,
    /// How safe the write is at the time of the response.
    pub durability: Durability,
}
