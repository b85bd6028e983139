//! The common parts of the APIs: the request, the reader of a stream, and the failures.

use super::secret::Redactor;
use crate::summarizer::shared::failed;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use std::fmt;
use std::time::Duration;
use treelined_core::error::Error;
use treelined_core::summary::{ModelName, Usage};

/// The longest pause that is reported to clients, in milliseconds: the largest integer that JavaScript represents
/// exactly.
const MAX_TOLD_MS: u64 = (1 << 53) - 1;

/// A request in the form of the provider's API.
pub(super) struct Outgoing {
    pub(super) path: &'static str,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Reads the events of a stream.
pub(super) trait StreamReader {
    fn take(&mut self, data: &str) -> Result<EventContent, ModelFailure>;
    /// Whether the answer is complete if the stream ends here.
    fn is_complete(&self) -> bool;
    /// The usage. Fails if the answer is not a summary.
    fn finish(self) -> Result<Option<Usage>, ModelFailure>;
}

/// The content of an event.
pub(super) enum EventContent {
    Text(String),
    Nothing,
    /// The end of the answer.
    End,
}

/// The reason why there is no summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelFailure {
    /// The server could not be reached.
    Connect,
    /// A time limit has passed: `connect`, `idle` or `total`.
    Timeout(&'static str),
    /// A response with a status other than 200.
    Status {
        status: StatusCode,
        retry_after: Option<Duration>,
        /// The provider's code for the failure.
        code: Option<String>,
    },
    /// An event in the stream reports an error. The text is the provider's code.
    InStream(Option<String>),
    /// The stream ended before the answer was complete.
    Cut,
    /// The answer reached the model's output limit.
    Truncated,
    Empty,
    /// The model or its provider refused to answer.
    Refused,
    /// The model called a tool.
    ToolCall,
    /// The answer exceeds [`MAX_ANSWER_BYTES`].
    TooLong,
    /// The response does not follow the provider's API.
    BadResponse,
    /// The key has characters that a header cannot have.
    BadKey,
}

impl ModelFailure {
    /// The cause as a name for programs.
    pub(crate) fn cause(&self) -> &'static str {
        match self {
            ModelFailure::Connect => "connect",
            ModelFailure::Timeout(_) => "timeout",
            ModelFailure::Status { status, .. } => match status.as_u16() {
                429 => "rateLimited",
                401 | 403 => "unauthorized",
                _ => "http",
            },
            ModelFailure::InStream(_) => "provider",
            ModelFailure::Cut => "cut",
            ModelFailure::Truncated => "truncated",
            ModelFailure::Empty => "empty",
            ModelFailure::Refused => "refused",
            ModelFailure::ToolCall => "toolCall",
            ModelFailure::TooLong => "tooLong",
            ModelFailure::BadResponse => "badResponse",
            ModelFailure::BadKey => "badKey",
        }
    }

    /// Removes the error code of the provider if the code contains the key.
    pub(super) fn redacted(mut self, redactor: &Redactor<'_>) -> Self {
        if let ModelFailure::Status { code, .. } | ModelFailure::InStream(code) = &mut self {
            *code = code.take().and_then(|code| redactor.word(code));
        }
        self
    }

    /// Whether another attempt may succeed.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            ModelFailure::Connect
            | ModelFailure::Cut
            | ModelFailure::Timeout("connect" | "idle") => true,
            ModelFailure::Status { status, .. } => {
                status.is_server_error() || matches!(status.as_u16(), 408 | 429)
            }
            ModelFailure::InStream(code) => code.as_deref() == Some("overloaded_error"),
            _ => false,
        }
    }

    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            ModelFailure::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    pub(super) fn into_error(self, model: &ModelName) -> Error {
        let ModelName { provider, model_id } = model;
        let message = format!("no summary by {model_id:?} of {provider:?}: {self}");
        let mut error = failed(self.cause(), message);
        if let ModelFailure::Status { status, .. } = &self
            && let Some(details) = error.details.as_mut()
            && let Some(details) = details.as_object_mut()
        {
            details.insert("status".to_owned(), status.as_u16().into());
        }
        let after = self.retry_after();
        let after = after.and_then(|after| u64::try_from(after.as_millis()).ok());
        error.retry_after_ms = after.filter(|after| *after <= MAX_TOLD_MS);
        error
    }
}

impl fmt::Display for ModelFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelFailure::Connect => f.write_str("its server cannot be reached"),
            ModelFailure::Timeout(limit) => write!(f, "the {limit} timeout has passed"),
            ModelFailure::Status { status, code, .. } => {
                write!(f, "its server answered {}", status.as_u16())?;
                code.as_ref().map_or(Ok(()), |code| write!(f, " ({code})"))
            }
            ModelFailure::InStream(code) => {
                f.write_str("its server failed while it answered")?;
                code.as_ref().map_or(Ok(()), |code| write!(f, " ({code})"))
            }
            ModelFailure::Cut => f.write_str("the answer broke off"),
            ModelFailure::Truncated => {
                f.write_str("the answer was longer than the model may write")
            }
            ModelFailure::Empty => f.write_str("the answer was empty"),
            ModelFailure::Refused => f.write_str("the request was refused"),
            ModelFailure::ToolCall => f.write_str("the model called a tool"),
            ModelFailure::TooLong => f.write_str("the answer was too long"),
            ModelFailure::BadResponse => f.write_str("the answer could not be understood"),
            ModelFailure::BadKey => f.write_str("the key cannot be sent"),
        }
    }
}

pub(super) fn identifier(code: &str) -> Option<String> {
    let is_plain = code.len() <= 40 && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_plain.then(|| code.to_owned())
}
