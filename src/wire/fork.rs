//! Forking a session into a new file (protocol.md §3, storage.md §5).

use super::Raw;
use super::append::Durability;
use super::event::CancelReason;
use super::message::ContentBlock;
use super::session::Session;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

session_params! {
    /// Copies the path to an entry, or the whole tree, into a new session and opens that.
    #[schemars(example = super::example(r#"{"entryId": "u2"}"#))]
    ForkSessionParams {
        /// `branch` if left out.
        scope: Option<ForkScope>,
        /// The working directory of the new session; the source's if left out.
        cwd: Option<String>,
        /// Where to fork; the leaf if left out.
        entry_id: Option<String>,
        /// `before` for a user message, `at` for anything else if left out.
        position: Option<ForkPosition>,
        /// Close unanswered tool calls with aborted results; else they are refused.
        close_tool_calls: Option<bool>,
    }
}

/// What a fork copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ForkScope {
    /// The path to an entry.
    #[default]
    Branch,
    /// All lines of the file, with the same leaf. Takes neither `entryId` nor `position` nor
    /// `closeToolCalls`.
    Tree,
}

/// Where a fork ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ForkPosition {
    /// Without the entry, which must be a user message.
    Before,
    /// With the entry.
    At,
}

/// The result of `fork_session`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "session": {
    "sessionId": "0198c1f0-5e00-7000-8000-000000000004",
    "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-854Z_0198c1f0-5e00-7000-8000-000000000004.jsonl",
    "cwd": "/home/ada/project", "name": "A tour", "leafId": "16e149ed", "seq": 0, "entryCount": 4,
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
}"#))]
pub struct ForkSessionResult {
    /// The new session, open; left out if cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    /// The text of the user message that was forked before, for the editor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    /// Its images.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<ContentBlock>>")]
    pub editor_images: Option<Vec<Raw>>,
    /// Nothing was made, for the `reason` given.
    pub cancelled: bool,
    /// Why nothing was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<CancelReason>,
    /// The hook that failed, if that is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// `none` if nothing was written.
    pub durability: Durability,
}

session_params! {
    /// The user messages of all branches, for choosing where to fork.
    #[schemars(example = super::example(r#"{}"#))]
    GetForkMessagesParams {}
}

/// The result of `get_fork_messages`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(example = super::example(r#"{
  "messages": [
    {"entryId": "u1", "text": "Why does the build fail?", "onActivePath": true},
    {"entryId": "u2", "text": "Clear the cache.", "onActivePath": false}
  ]
}"#))]
pub struct GetForkMessagesResult {
    /// In file order, without empty ones.
    pub messages: Vec<ForkMessage>,
}

/// A user message.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkMessage {
    /// The entry of the message.
    pub entry_id: String,
    /// Its text.
    pub text: String,
    /// Between the root and the leaf, both included.
    pub on_active_path: bool,
}
