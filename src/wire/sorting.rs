//! Tags, pins, archived sessions, and places in git (protocol.md §3.21).

use super::append::Durability;
use serde::{Deserialize, Serialize};

session_params! {
    /// The params of `tag_session`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"add": ["build"], "remove": ["todo"]}"#)))]
    TagSessionParams {
        /// The tags to add, with or without `#`; they are stored in lower case. Default: none.
        #[serde(default)]
        add: Vec<String>,
        /// The tags to remove. Default: none.
        #[serde(default)]
        remove: Vec<String>,
    }
}

/// The result of `tag_session`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "tags": ["build"], "inverse": {"method": "tag_session", "params": {"remove": ["build"], "add": ["todo"]}},
  "durability": "interval"
}"#)))]
pub struct TagSessionResult {
    /// All tags of the session after the call, in alphabetical order.
    pub tags: Vec<String>,
    /// The call that takes the change back. Absent if nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverse: Option<TagInverse>,
    /// How safe the write is at the time of the response; `none` if nothing was written, `always` if it is in the marks of
    /// this machine.
    pub durability: Durability,
}

/// The call that takes a change of tags back.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TagInverse {
    /// `tag_session`.
    pub method: TagVerb,
    /// Its params.
    pub params: TagChange,
}

/// The method that changes tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TagVerb {
    TagSession,
}

/// A change of tags.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TagChange {
    /// The tags to add.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// The tags to remove.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// The params of `mark_session`. A member that is left out changes nothing.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002", "pinned": true}"#)))]
pub struct MarkSessionParams {
    /// The id of the session, open or not.
    pub session_id: String,
    /// Whether the session is pinned. Default: as before.
    pub pinned: Option<bool>,
    /// Whether the session is archived: left out of lists until they ask for archived sessions. Default: as before.
    pub archived: Option<bool>,
}

/// The result of `mark_session`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "pinned": true, "archived": false,
  "inverse": {"method": "mark_session", "params": {"sessionId": "0198c1f0-5e00-7000-8000-000000000002", "pinned": false}}
}"#)))]
pub struct MarkSessionResult {
    /// Whether the session is pinned.
    pub pinned: bool,
    /// Whether the session is archived.
    pub archived: bool,
    /// The call that takes the change back. Absent if nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inverse: Option<MarkInverse>,
}

/// The call that takes a change of marks back.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MarkInverse {
    /// `mark_session`.
    pub method: MarkVerb,
    /// Its params.
    pub params: MarkChange,
}

/// The method that changes marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MarkVerb {
    MarkSession,
}

/// A change of marks.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MarkChange {
    /// The id of the session.
    pub session_id: String,
    /// Whether the session was pinned. Absent if that did not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Whether the session was archived. Absent if that did not change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

/// The place of a session in git.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GitPlace {
    /// The name of the branch. Absent if no branch is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The id of the commit. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The root of the worktree. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
}
