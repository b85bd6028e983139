//! The call that spawned a session.

use serde::{Deserialize, Serialize};

/// The call that spawned a subagent.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SpawnedBy {
    /// The id of the session that holds the call.
    pub session_id: String,
    /// The id of the entry at the call. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
    /// The id of the call. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}
