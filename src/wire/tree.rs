//! `get_tree`: the tree of a session as rows, or nested (protocol.md §6).

use super::entry::Entry;
use super::params::{Count, Raw, count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

session_params! {
    /// The tree, filtered, in depth-first order, page by page.
    #[schemars(example = super::example(r#"{"maxDepth": 1}"#))]
    GetTreeParams {
        /// `flat` if left out.
        format: Option<TreeFormat>,
        /// Only this entry and what is below it.
        root_id: Option<String>,
        /// Deepest level of rows, the roots being 0. Nested: at most 10000, 256 if left out.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        max_depth: Option<u64>,
        /// `default` if left out.
        filter: Option<TreeFilter>,
        /// Only entries whose text holds this: messages, thinking, tool names and arguments, results,
        /// summaries, labels, custom types, and the words a row shows (role, type, what was asked of a tool).
        query: Option<String>,
        /// How `query` is understood; `words` if left out.
        mode: Option<SearchMode>,
        /// `time` if left out.
        order: Option<TreeOrder>,
        /// Entries whose descendants are left out.
        fold: Option<Vec<String>>,
        /// Draw a `prefix` for each row.
        render: Option<TreeRender>,
        /// Most rows of a page.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        limit: Option<u64>,
        /// Most bytes of a page; one row is always delivered.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        max_bytes: Option<u64>,
        /// `nextCursor` of the page before; fails with `treeChanged` once the tree is another.
        cursor: Option<String>,
        /// Rows to pass over.
        #[serde(default, deserialize_with = "count")]
        #[schemars(with = "Option<Count>")]
        offset: Option<u64>,
        /// The page shall contain this entry.
        around: Option<String>,
    }
}

/// The shape of `nodes`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TreeFormat {
    /// Rows in depth-first pre-order.
    #[default]
    Flat,
    /// Objects in objects; for shallow trees.
    Nested,
}

/// Which entries are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TreeFilter {
    /// The conversation: no labels, settings or other bookkeeping.
    #[default]
    Default,
    /// `default` without tool results.
    NoTools,
    /// User messages and displayed custom_messages.
    UserOnly,
    /// Entries with a label.
    LabeledOnly,
    /// Every entry.
    All,
}

/// How a query is understood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchMode {
    /// All words must occur in the entry, whatever their case; `"…"` is one word.
    #[default]
    Words,
    /// The text must occur in one field of the entry as it stands.
    Literal,
    /// A regular expression must match in one field; `^` and `$` match at lines.
    Regex,
}

/// The order of siblings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TreeOrder {
    /// Oldest first.
    #[default]
    Time,
    /// The active path first, then oldest first.
    ActiveFirst,
}

/// The characters a `prefix` is drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TreeRender {
    Unicode,
    Ascii,
}

/// A page of the tree.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
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
}"#))]
pub struct GetTreeResult<'a> {
    /// The rows of this page.
    pub nodes: TreeNodes<'a>,
    /// Null: before the first entry.
    pub leaf_id: Option<String>,
    /// The visible roots.
    pub root_ids: Vec<String>,
    /// Rows over all pages.
    pub total: u64,
    /// Entries in scope that filter or query removed.
    pub hidden: u64,
    /// Rows before this page.
    pub offset: u64,
    /// Changes with any append, label or move.
    pub revision: String,
    /// The number of the last notification of this session to this connection.
    pub seq: u64,
    /// There are more rows: `cursor` of the next page.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

// Not `Serialize`: that would recurse over a nested tree.
/// By `format`.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub enum TreeNodes<'a> {
    Flat(Vec<TreeNode<'a>>),
    Nested(Vec<NestedNode>),
}

/// A row of the flat form.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeNode<'a> {
    /// The entry.
    pub id: Cow<'a, str>,
    /// The nearest visible ancestor; null at a visible root.
    pub parent_id: Option<Cow<'a, str>>,
    /// The entry's type.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// Of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Cow<'a, str>>,
    /// One line, at most 200 characters, without control characters. Of a tool result
    /// `<name> <summary> → <result>`, `→ ✗ <result>` if it failed (`->` and `x` with `render: ascii`).
    pub preview: Cow<'a, str>,
    /// ISO 8601, as stored.
    pub timestamp: Cow<'a, str>,
    /// The label in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Cow<'a, str>>,
    /// When the label was set, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_timestamp: Option<Cow<'a, str>>,
    /// Visible children, those of a folded entry too.
    pub child_count: u64,
    /// Visible ancestors.
    pub depth: u64,
    /// Columns of the tree: grows only where it branches.
    pub indent: u64,
    /// Between the root and the leaf, both included.
    pub on_active_path: bool,
    /// The nearest visible ancestor-or-self of the leaf.
    pub is_leaf: bool,
    /// Has several visible children.
    pub is_branch_point: bool,
    /// Of a compaction: the tokens before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Of a tool result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<Cow<'a, str>>,
    /// Of a tool result: the call it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<TreeCall<'a>>,
    /// With a `query`: where the entry holds it.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub found: Option<Match<'a>>,
    /// Left out if false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// What to draw before the row, if `render` was given; at most 64 columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Cow<'a, str>>,
    /// What is odd about the entry: `orphan`, `duplicateId`, `recovered`…
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Cow<'a, str>>,
}

/// A call of a tool.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TreeCall<'a> {
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The argument that tells what it does, on one line, at most 120 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Cow<'a, str>>,
}

/// Where an entry holds what was looked for.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Match<'a> {
    /// A part of the entry's text on one line, at most 200 characters.
    pub snippet: Cow<'a, str>,
    /// Where it matches in `snippet`: start and end (exclusive), in Unicode code points; at most 16.
    pub ranges: Vec<[u64; 2]>,
}

/// A node of the nested form.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct NestedNode {
    /// The entry.
    #[schemars(with = "Entry")]
    pub entry: Raw,
    /// In the order asked for.
    pub children: Vec<NestedNode>,
    /// The label in force.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When the label was set, ISO 8601.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub label_timestamp: Option<String>,
}
