//! Forking a session into a new file (protocol.md §3, session-file.md §5).

use super::append::Durability;
use super::event::CancelReason;
use super::params::Raw;
use super::session::Session;
use serde::{Deserialize, Serialize};

session_params! {
    /// The params of `fork_session`. The source stays as it is. Ids of entries are kept in the copy.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"entryId": "u2"}"#)))]
    ForkSessionParams {
        /// Which part of the session to copy. Default: `branch`.
        scope: Option<ForkScope>,
        /// The id of the new session. If a fork of this session has it, the result is that fork, opened: the call can be
        /// repeated. Default: the daemon chooses one.
        new_session_id: Option<String>,
        /// The name of the new session, its last entry; a blank one is none. Default: that of the copied entries.
        name: Option<String>,
        /// The working directory of the new session. Default: that of the source.
        cwd: Option<String>,
        /// The id of the entry at which to fork. Default: the leaf.
        entry_id: Option<String>,
        /// Whether the fork ends before the entry or with it. Default: `before` for a user message, else
        /// `at`.
        position: Option<ForkPosition>,
        /// Whether to close tool calls that have no result with aborted results; otherwise such a fork fails
        /// with `unansweredToolCalls`. Default: false.
        close_tool_calls: Option<bool>,
    }
}

/// The part of a session that a fork copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ForkScope {
    /// The path to an entry.
    #[default]
    Branch,
    /// Every line of the file, with the same leaf. `entryId`, `position` and `closeToolCalls` are refused.
    Tree,
}

/// Where a fork ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ForkPosition {
    /// Before the entry, which must be a user message.
    Before,
    /// With the entry.
    At,
}

/// The result of `fork_session`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "session": {
    "sessionId": "0198c1f0-5e00-7000-8000-000000000004",
    "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-854Z_0198c1f0-5e00-7000-8000-000000000004.jsonl",
    "cwd": "/home/ada/project", "name": "A tour",
    "firstMessage": "Why does the build fail?", "leafId": "16e149ed", "seq": 0, "entryCount": 4,
    "readOnly": false, "multiWriter": true,
    "parentSession": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl",
    "version": 3, "created": "2026-11-22T05:40:35.854Z",
    "header": {
      "type": "session", "version": 3, "id": "0198c1f0-5e00-7000-8000-000000000004",
      "timestamp": "2026-11-22T05:40:35.854Z", "cwd": "/home/ada/project",
      "parentSession": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl"
    }
  },
  "editorText": "Clear the cache.", "cancelled": false, "durability": "interval"
}"#)))]
pub struct ForkSessionResult {
    /// The new session, which is open. Absent if `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The text of the user message before which the fork ends, for an editor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    /// The images of that message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(with = "Option<Vec<crate::message::ContentBlock>>")
    )]
    pub editor_images: Option<Vec<Raw>>,
    /// True if no session was created; `reason` says why.
    pub cancelled: bool,
    /// Why no session was created. Present if `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<CancelReason>,
    /// The name of the client, hook or extension that cancelled or failed. Present if `reason` is `cancelledByClient` or
    /// `hookFailed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The reason that the client, hook or extension gave, as text for people. Present if there is a reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How safe the write is at the time of the response; `none` if nothing was written.
    pub durability: Durability,
}

session_params! {
    /// The params of `get_fork_messages`.
    #[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
    GetForkMessagesParams {
        /// Whether messages of archived branches are listed. Default: false.
        archived: Option<bool>,
    }
}

/// The result of `get_fork_messages`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "messages": [
    {"entryId": "u1", "text": "Why does the build fail?", "onActivePath": true},
    {"entryId": "u2", "text": "Clear the cache.", "onActivePath": false}
  ]
}"#)))]
pub struct GetForkMessagesResult {
    /// The user messages in file order, without empty ones.
    pub messages: Vec<ForkMessage>,
}

/// A user message.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkMessage {
    /// The id of the message's entry.
    pub entry_id: String,
    /// The text of the message.
    pub text: String,
    /// True if the entry is on the path from the root to the leaf.
    pub on_active_path: bool,
}
