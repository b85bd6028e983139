//! `get_tree`: the tree of a session as rows, or nested (protocol.md §6).

use super::family::Kinship;
use super::params::{Raw, count};
use super::renderers::RowStyle;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;
pub use treelined_core::search::Mode as SearchMode;
pub use treelined_core::view::{Filter as TreeFilter, Order as TreeOrder, Render as TreeRender};

session_params! {
    /// The params of `get_tree`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"maxDepth": 1}"#)))]
    GetTreeParams {
        /// The form of `nodes`. Default: `flat`.
        format: Option<TreeFormat>,
        /// The id of an entry: only it and its descendants are shown. Default: the whole tree.
        root_id: Option<String>,
        /// The deepest level to show; roots have level 0. The nested form takes at most 10000. Default: no
        /// limit, nested 256.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        max_depth: Option<u64>,
        /// Which entries to show. Default: `default`.
        filter: Option<TreeFilter>,
        /// Only entries whose text contains this: messages, thinking, names and arguments of tools, results,
        /// summaries, labels, notes, the data of custom entries, and the words of the row. Default: none.
        query: Option<String>,
        /// How to understand `query`. Default: `words`.
        mode: Option<SearchMode>,
        /// The order of siblings. Default: `time`.
        order: Option<TreeOrder>,
        /// The ids of entries whose descendants are not shown, or `left`: branches that are not on the way to the leaf
        /// have one row at their fork. Default: none.
        fold: Option<TreeFold>,
        /// With `fold` `left`: the ids of entries; the branches that hold them are open. Default: none.
        expand: Option<Vec<String>>,
        /// With `fold` `left`: the ids of folded rows; the branches at their forks have one row each. Default: none.
        each: Option<Vec<String>>,
        /// Whether archived branches are shown. The archived branch that has `rootId` is always shown. Default: false.
        archived: Option<bool>,
        /// Whether rows name the sessions that come from their entries. The names are read from the list of sessions.
        /// Default: false.
        sessions: Option<bool>,
        /// The characters of each row's `prefix`. Default: rows have no `prefix`.
        render: Option<TreeRender>,
        /// The most columns of a row's `prefix`, from 6 to 64: deeper ones begin with the number of missing steps.
        /// Default: 64.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        prefix_columns: Option<u64>,
        /// The most rows of the page. Default: no limit.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        limit: Option<u64>,
        /// The most bytes of the page, which has at least one row. Default: the client's `maxFrameBytes`.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        max_bytes: Option<u64>,
        /// The `nextCursor` of the previous page; fails with `treeChanged` once the tree has changed.
        /// Default: none.
        cursor: Option<String>,
        /// The number of rows to skip. Default: 0.
        #[serde(default, deserialize_with = "count")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<crate::params::Count>"))]
        offset: Option<u64>,
        /// The id of an entry that the page must contain. Default: none.
        around: Option<String>,
    }
}

/// The form of `nodes`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TreeFormat {
    /// Rows in depth-first pre-order.
    #[default]
    Flat,
    /// Objects inside objects, for trees that are not deep.
    Nested,
}

/// The rows to fold: the descendants of these entries, or the branches that were left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeFold {
    /// The descendants of these entries.
    Below(Vec<String>),
    /// The branches that were left.
    Left,
}

impl<'de> Deserialize<'de> for TreeFold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FoldVisitor)
    }
}

/// Reads a [`TreeFold`]. An error about a wrong id names the index of the id.
struct FoldVisitor;

impl<'de> Visitor<'de> for FoldVisitor {
    type Value = TreeFold;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of ids, or left")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<TreeFold, E> {
        match text {
            "left" => Ok(TreeFold::Left),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, ids: A) -> Result<TreeFold, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(ids)).map(TreeFold::Below)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for TreeFold {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TreeFold".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "What to fold: the descendants of these entries, or the branches that were left.",
            "anyOf": [{ "const": "left" }, { "type": "array", "items": { "type": "string" } }],
        })
    }
}

/// The result of `get_tree`: a page of rows, or the nested tree.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "camelCase"))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "nodes": [
    {
      "id": "u1", "parentId": null, "type": "message", "role": "user",
      "preview": "Why does the build fail?", "timestamp": "2026-11-22T05:40:35.831Z",
      "childCount": 1, "depth": 0, "indent": 0, "onActivePath": true, "isLeaf": false,
      "isBranchPoint": false
    },
    {
      "id": "a1", "parentId": "u1", "type": "message", "role": "assistant",
      "preview": "A stale cache, or a missing import.", "timestamp": "2026-11-22T05:40:35.833Z",
      "label": "two ideas", "labelTimestamp": "2026-11-22T05:40:35.833Z", "childCount": 2,
      "depth": 1, "indent": 0, "onActivePath": true, "isLeaf": true, "isBranchPoint": true
    }
  ],
  "leafId": "a1", "rootIds": ["u1"], "total": 2, "hidden": 3, "offset": 0, "revision": "b140f2e6-13",
  "seq": 11
}"#)))]
pub struct GetTreeResult<'a> {
    /// The rows of the page, or the nested nodes.
    pub nodes: TreeNodes<'a>,
    /// The leaf; null at the empty position.
    pub leaf_id: Option<String>,
    /// The ids of the visible roots.
    pub root_ids: Vec<String>,
    /// The number of rows of all pages.
    pub total: u64,
    /// The number of entries that filter and query removed.
    pub hidden: u64,
    /// The number of archived branches, shown or not, of which none is in another. Absent if there is none.
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none"))]
    pub archived_branches: Option<u64>,
    /// The number of branches in the cold file, which no tree shows (protocol.md §3.24). Absent if there is none.
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none"))]
    pub shed_branches: Option<u64>,
    /// The number of rows before this page.
    pub offset: u64,
    /// The revision of the tree, which changes with every append, label and move.
    pub revision: String,
    /// The number of the last notification about this session to this connection.
    pub seq: u64,
    /// The `cursor` of the next page. Absent on the last page.
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none"))]
    pub next_cursor: Option<String>,
}

// This is not `Serialize`, since serializing a nested tree would recurse.
/// The rows of the flat form, or the nodes of the nested form.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
pub enum TreeNodes<'a> {
    Flat(Vec<TreeNode<'a>>),
    Nested(Vec<NestedNode>),
}

/// A row of the flat form.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TreeNode<'a> {
    /// The id of the entry.
    pub id: Cow<'a, str>,
    /// The id of the nearest visible ancestor; null at a visible root.
    pub parent_id: Option<Cow<'a, str>>,
    /// The type of the entry.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The role of the message. Present for messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Cow<'a, str>>,
    /// The entry on one line, at most 200 characters, without control characters. A tool result is `<name>
    /// <summary> → <result>`, or `→ ✗ <result>` if it failed (`->` and `x` with `render: "ascii"`).
    pub preview: Cow<'a, str>,
    /// An icon to show before the preview. Present if the renderer of the custom type has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon: Option<Cow<'a, str>>,
    /// The style of the row. Present for displayed custom messages, and if the renderer of the custom type has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<RowStyle>,
    /// When the entry was written, in ISO 8601, as stored.
    pub timestamp: Cow<'a, str>,
    /// The current label of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Cow<'a, str>>,
    /// When the label was set, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_timestamp: Option<Cow<'a, str>>,
    /// The number of visible children, including those that are folded.
    pub child_count: u64,
    /// The number of visible ancestors.
    pub depth: u64,
    /// The column in a drawing of the tree, which grows only where the tree branches.
    pub indent: u64,
    /// True if the entry is on the path from the root to the leaf.
    pub on_active_path: bool,
    /// True for the leaf, or for its nearest visible ancestor if the leaf is hidden.
    pub is_leaf: bool,
    /// True if the entry has several visible children.
    pub is_branch_point: bool,
    /// True if the entry is in an archived branch, else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    /// The number of tokens before a compaction. Present for compactions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The name of the tool. Present for tool results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<Cow<'a, str>>,
    /// The call that a tool result answers. Present for tool results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<TreeCall<'a>>,
    /// Where the query matches. Present with `query`.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub found: Option<Match<'a>>,
    /// True if the entry is an error, else absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// The lines to draw before the row, at most `prefixColumns` columns. Present with `render`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Cow<'a, str>>,
    /// The branches that the row stands for. Present for branches that were left and are folded: `preview` is the line
    /// to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folded: Option<FoldedBranches>,
    /// The ids of the request without which the row would be folded. Present if there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened: Option<OpenedBy>,
    /// The unusual properties of the entry: `orphan`, `duplicateId`, `recovered` and others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Cow<'a, str>>,
    /// The name that was given to the branch that begins with this row: the first row at or below the entry with the name.
    /// Present if there is one and the row is not folded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_name: Option<Cow<'a, str>>,
    /// The sessions that come from the entry: forks, subagents and continuations, the oldest first, at most 64. Present with
    /// `sessions` if there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<BornSession>,
}

/// A session that comes from an entry.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BornSession {
    /// The id of the session. Untrusted.
    pub session_id: String,
    /// How the session comes from the entry.
    pub kind: Kinship,
}

/// The branches and entries that a folded row stands for.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FoldedBranches {
    /// The number of branches. If there is one, `expand` shows its entries; if there are several, `each` shows one row
    /// for each.
    pub branches: u64,
    /// The number of visible entries in them.
    pub entries: u64,
}

/// Why a row is not folded: ids of the request.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenedBy {
    /// The ids of `expand` that keep the branch open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expand: Vec<String>,
    /// The ids of `each` that give the branch its own row.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TreeCall<'a> {
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The argument that says what the call does, on one line, at most 120 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Cow<'a, str>>,
}

/// Where a query matches in an entry.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Match<'a> {
    /// A part of the entry's text on one line, at most 200 characters.
    pub snippet: Cow<'a, str>,
    /// The matches in `snippet`: start and end (exclusive) in Unicode code points; at most 16.
    pub ranges: Vec<[u64; 2]>,
}

/// A node of the nested form.
#[derive(Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename_all = "camelCase"))]
pub struct NestedNode {
    /// The entry.
    #[cfg_attr(feature = "schema", schemars(with = "crate::entry::Entry"))]
    pub entry: Raw,
    /// The children, in the `order` of the request.
    pub children: Vec<NestedNode>,
    /// The current label of the entry.
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none"))]
    pub label: Option<String>,
    /// When the label was set, in ISO 8601.
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Option::is_none"))]
    pub label_timestamp: Option<String>,
}
