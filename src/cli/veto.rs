//! A veto: a client, a hook or an extension has held back an operation. This module shows which one, and its
//! reason (protocol.md §4.10).

use super::failure::{FAILED, ShellError};
use serde::Deserialize;

/// The members of a result that describe a veto.
#[derive(Debug, Deserialize)]
pub(super) struct Verdict {
    cancelled: bool,
    reason: Option<String>,
    by: Option<String>,
    message: Option<String>,
}

impl Verdict {
    /// The verdict in a result. `None` if no client is asked before this operation.
    pub(super) fn of(result: &str) -> Option<Self> {
        serde_json::from_str(result).ok()
    }

    /// Whether the operation was done and the result has this reason.
    pub(super) fn went_on_with(&self, reason: &str) -> bool {
        !self.cancelled && self.reason.as_deref() == Some(reason)
    }

    /// Names who cancelled the operation, and the reason; `None` if the operation was not cancelled.
    pub(super) fn why(&self) -> Option<String> {
        let reason = self.reason.as_deref().filter(|_| self.cancelled)?;
        let why = self.message.as_ref().map(|why| format!(": {why}"));
        let why = why.unwrap_or_default();
        Some(match (reason, &self.by) {
            ("cancelledByClient", Some(by)) => format!("cancelled by {by}{why}"),
            ("hookFailed", Some(by)) => format!("cancelled, since {by} failed{why}"),
            ("noAnswer", _) => "cancelled: nobody answered in time".to_owned(),
            (other, _) => format!("cancelled: {other}"),
        })
    }

    /// The veto as the error of a command; `None` if the operation was not cancelled.
    pub(super) fn error(&self) -> Option<ShellError> {
        let remedy = match self.reason.as_deref() {
            Some("hookFailed") => {
                "correct what failed, and run the command again; nothing was changed, since a failed guard counts as a refusal"
            }
            _ => "allow it in that client or hook, and run the command again; nothing was changed",
        };
        Some(ShellError::new(FAILED, self.why()?, remedy))
    }
}
