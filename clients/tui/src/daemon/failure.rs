//! Failures and refusals in the forms for the model and for people.

use crate::message::Failure;
use crate::text;
use treelined_client::{Error, ErrorKind};

/// Converts an error to the model's type.
pub(super) fn failure(error: Error) -> Failure {
    let (kind, message) = match &error {
        Error::Refused { error, .. } => (error.kind.as_str(), error.message.clone()),
        Error::Disconnected(_) => ("disconnected", error.to_string()),
        Error::Timeout { .. } => ("timeout", error.to_string()),
        _ => (ErrorKind::InternalError.as_str(), error.to_string()),
    };
    Failure {
        kind: text::line(kind),
        message: text::line(&message),
    }
}

/// Says who cancelled or failed an operation, and why, if that is known.
pub(super) fn refused(what: &str, failed: bool, by: Option<String>, why: Option<String>) -> String {
    let deed = match failed {
        true => "failed; there was no",
        false => "cancelled the",
    };
    text::line(&match (by, why) {
        (Some(by), Some(why)) => format!("{by} {deed} {what}: {why}"),
        (Some(by), None) => format!("{by} {deed} {what}."),
        (None, _) => format!("The {what} was cancelled; nothing has changed."),
    })
}
