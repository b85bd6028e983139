//! Reads the members that decide where a message goes, and replaces single values without changing other bytes.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::ops::Range;

/// The most sessions and requests that are remembered, so that a peer that never answers cannot fill the memory.
pub(crate) const MAX_KEPT: usize = 10_000;

/// A message of JSON-RPC. A member that is null counts as missing.
#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OfSessionText<'a> {
    #[serde(rename = "sessionId", borrow)]
    session_id: &'a RawValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fault {
    message: String,
}

#[derive(Deserialize)]
struct OfSession {
    #[serde(rename = "sessionId")]
    session_id: String,
}

impl<'a> Message<'a> {
    /// Reads a line. `None` if it is not such a message: the line then passes unchanged.
    pub(crate) fn read(line: &'a [u8]) -> Option<Message<'a>> {
        serde_json::from_slice(line).ok()
    }

    /// The params. If `T` has only some of their members, only these are read.
    pub(crate) fn params<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.params?.get()).ok()
    }

    /// The id of the session in the params.
    pub(crate) fn session(&self) -> Option<String> {
        self.params::<OfSession>().map(|of| of.session_id)
    }

    /// The id of the session in the result.
    pub(crate) fn new_session(&self) -> Option<String> {
        self.result::<OfSession>().map(|of| of.session_id)
    }

    /// The id of the session in the params, as it is written in the line.
    pub(crate) fn session_text(&self) -> Option<&'a RawValue> {
        self.params::<OfSessionText<'a>>().map(|of| of.session_id)
    }

    /// The result. If `T` has only some of its members, only these are read.
    pub(crate) fn result<T: Deserialize<'a>>(&self) -> Option<T> {
        serde_json::from_str(self.result?.get()).ok()
    }

    /// The text of the error.
    pub(crate) fn error_text(&self) -> String {
        let fault = self.error.map(|error| serde_json::from_str(error.get()));
        let fault: Fault = fault.and_then(Result::ok).unwrap_or_default();
        fault.message
    }

    /// Whether the message is a response without an error.
    pub(crate) fn is_success(&self) -> bool {
        self.method.is_none() && self.error.is_none()
    }
}

/// The range of bytes that a value of a message has in its line.
pub(crate) fn span(line: &[u8], value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr();
    let start = start.saturating_sub(line.as_ptr().addr());
    start..start + value.get().len()
}

/// The line with the bytes of a range replaced.
pub(crate) fn replaced(line: &[u8], at: Range<usize>, with: &[u8]) -> Vec<u8> {
    let before = line.get(..at.start).unwrap_or_default();
    let after = line.get(at.end..).unwrap_or_default();
    [before, with, after].concat()
}
