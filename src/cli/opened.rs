//! The session that a command has opened in its daemon. The connection has no other session open, so requests need not
//! name the session.

use super::daemon::{ChildDaemon, RawJson};
use super::session_choice::SessionQuery;
use super::words::title;
use anyhow::Context;
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;

/// The access that the command needs to the session.
#[derive(Debug, Clone, Copy)]
pub(super) enum SessionUse {
    Read,
    Write,
}

/// The members of `session` (protocol.md §3.2) that commands need.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenedSession {
    pub session_id: String,
    /// The session file; `None` for an ephemeral session.
    pub path: Option<PathBuf>,
    /// The leaf; `None` at the empty position.
    pub leaf_id: Option<String>,
    name: Option<String>,
    first_message: String,
}

impl OpenedSession {
    /// The name of the session, or else its first message.
    pub(super) fn title(&self) -> &str {
        title(self.name.as_deref(), &self.first_message)
    }
}

/// Finds the session and opens it.
pub(super) fn open(
    daemon: &mut ChildDaemon,
    query: &SessionQuery,
    used: SessionUse,
) -> anyhow::Result<OpenedSession> {
    let answered = answer(daemon, query, used)?;
    session_of(&answered)
}

/// Like [`open`], but returns the result of `open_session` unchanged.
pub(super) fn answer(
    daemon: &mut ChildDaemon,
    query: &SessionQuery,
    used: SessionUse,
) -> anyhow::Result<RawJson> {
    let path = query.find(daemon)?;
    let mode = match used {
        SessionUse::Read => "read",
        SessionUse::Write => "write",
    };
    let params = json!({ "path": path.display().to_string(), "mode": mode });
    daemon.call("open_session", &params.to_string())
}

/// The session in a result of `open_session`.
pub(super) fn session_of(answered: &RawJson) -> anyhow::Result<OpenedSession> {
    #[derive(Deserialize)]
    struct OpenResult {
        session: OpenedSession,
    }
    let opened: OpenResult =
        serde_json::from_str(answered.get()).context("read the answer to open_session")?;
    Ok(opened.session)
}
