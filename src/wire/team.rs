//! The sessions of the team in the form for lists.

use serde::{Deserialize, Serialize};
use treelined_core::team::{OpenElsewhere, TeamSession};

/// The most machines that a list names for one session.
const MOST_MACHINES: usize = 32;

/// A session of the team that has no file here. `open_session` with its id opens it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TeamSessionRow {
    /// The id of the session.
    pub session_id: String,
    /// The session's name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The first message of the user, as in rows of files. Absent if there is none, or if no machine has described the
    /// session. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_message: Option<String>,
    /// The working directory in the header. Absent if no machine has described the session. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The time in the header, in ISO 8601. Absent if no machine has described the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The time of the last activity, in ISO 8601. Absent if no machine has described the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// The number of entries, messages and others. Absent if no machine has described the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// The name of the machine that wrote last. Absent if no machine has described the session. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The other daemons that have the session open.
    pub open_on: Vec<OpenOn>,
}

/// Another daemon that has a session open.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenOn {
    /// The name of its machine. Untrusted.
    pub host: String,
    /// When it opened the session, in ISO 8601 by its machine's clock.
    pub since: String,
}

/// The place of a session in the team's stream.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionInLog {
    /// The name of the stream.
    pub stream: String,
    /// The other daemons that have the session open.
    pub open_on: Vec<OpenOn>,
}

impl TeamSessionRow {
    pub fn of(session: &TeamSession) -> Self {
        let row = session.row.as_ref();
        Self {
            session_id: session.session_id.clone(),
            name: row.and_then(|row| row.name.clone()),
            first_message: row
                .map(|row| row.first_message.clone())
                .filter(|first| !first.is_empty()),
            cwd: row.map(|row| row.cwd.clone()),
            created: row.map(|row| row.created.clone()),
            modified: row.map(|row| row.modified.clone()),
            entries: row.map(|row| row.entries),
            host: row.map(|row| row.host.clone()),
            open_on: OpenOn::all(&session.open_on),
        }
    }
}

impl OpenOn {
    /// The first machines of `machines`, as many as a list names.
    pub fn all(machines: &[OpenElsewhere]) -> Vec<Self> {
        let machines = machines.iter().take(MOST_MACHINES);
        let machine = |by: &OpenElsewhere| Self {
            host: by.host.clone(),
            since: by.since.clone(),
        };
        machines.map(machine).collect()
    }
}

/// The params of `erase_session`. The session may be open or not.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{"sessionId": "0198c1f0-5e00-7000-8000-000000000002"}"#)))]
pub struct EraseSessionParams {
    /// The id of a session of the team.
    pub session_id: String,
}

/// The result of `erase_session`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(example = super::examples::example(r#"{
  "sessionId": "0198c1f0-5e00-7000-8000-000000000002",
  "remains": ["backups of the database, with its archive"]
}"#)))]
pub struct EraseSessionResult {
    /// The id of the session. It is used up.
    pub session_id: String,
    /// Where parts of the session can still be, as texts for people.
    pub remains: Vec<String>,
}
