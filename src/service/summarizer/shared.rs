//! The parts that all summarizers use.

use treelined_core::error::{Error, Kind};

/// Receives the text of a summary in pieces, while it is written.
pub(crate) type OnPiece<'a> = &'a (dyn Fn(&str) + Send + Sync);

/// The error `summarizerFailed` with its cause.
pub(super) fn failed(cause: &str, message: impl Into<String>) -> Error {
    let details = serde_json::json!({ "cause": cause });
    Error::new(Kind::SummarizerFailed, message.into()).with_details(details)
}
