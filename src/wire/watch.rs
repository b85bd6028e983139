//! `watch_sessions`, `unwatch_sessions` and `sessions_changed` (protocol.md §10.4).

use super::session::SessionRow;
use serde::{Deserialize, Serialize};

/// The params of `watch_sessions`. A repetition replaces the earlier watch of the connection.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"cwd": "/home/ada/project"}"#)))]
pub struct WatchSessionsParams {
    /// Only sessions of this working directory. Default: all sessions.
    pub cwd: Option<String>,
    /// Whether changes of archived sessions are announced too; else a session is `removed` when it is archived. Default:
    /// false.
    pub archived: Option<bool>,
}

/// The result of `watch_sessions`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
pub struct WatchSessionsResult {}

/// The params of `unwatch_sessions`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
pub struct UnwatchSessionsParams {}

/// The result of `unwatch_sessions`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{}"#)))]
pub struct UnwatchSessionsResult {}

/// The params of `sessions_changed`. It has no `seq`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "changed": [
    {
      "sessionId": "0198c1f0-5e00-7000-8000-000000000002",
      "path": "/home/ada/.treelined/sessions/--home-ada-project--/2026-11-22T05-40-35-824Z_0198c1f0-5e00-7000-8000-000000000002.jsonl",
      "cwd": "/home/ada/project", "name": "The build", "created": "2026-11-22T05:40:35.824Z",
      "modified": "2026-11-22T05:40:35.854Z", "messageCount": 6,
      "firstMessage": "Why does the build fail?"
    }
  ],
  "removed": []
}"#)))]
pub struct SessionsChanged {
    /// The rows of sessions that are new or changed, as `list_sessions` returns them.
    pub changed: Vec<SessionRow>,
    /// The ids of sessions whose file is gone.
    pub removed: Vec<String>,
    /// True: the sessions of the team have changed, which `list_sessions` returns as `team` and `openOn`. Absent if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<bool>,
}
