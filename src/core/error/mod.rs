//! Errors as clients see them: one [`Error`], one [`Kind`] for each cause (protocol.md §8).

mod advice;
mod kind;

pub use advice::Advice;
pub use kind::Kind;

use serde_json::{Value, json};
use std::borrow::Cow;
use std::{fmt, io};

/// A failure with its kind, a sentence for people, and `data.details` for programs.
#[derive(Debug, Clone)]
pub struct Error {
    pub kind: Kind,
    pub message: Cow<'static, str>,
    pub details: Option<Value>,
    /// Milliseconds after which a retry makes sense.
    pub retry_after_ms: Option<u64>,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            details: None,
            retry_after_ms: None,
        }
    }

    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The error −32602 for one wrong member; `field` is the path of the member.
    pub fn invalid_params(field: impl Into<String>, reason: impl Into<String>) -> Self {
        let (field, reason) = (field.into(), reason.into());
        let message = if field.is_empty() {
            format!("invalid params: {reason}")
        } else {
            format!("invalid params: {field}: {reason}")
        };
        Self::new(Kind::InvalidParams, message)
            .with_details(json!({ "field": field, "reason": reason }))
    }

    pub fn entry_not_found(entry_id: &str) -> Self {
        Self::new(
            Kind::EntryNotFound,
            format!("no entry {entry_id:?} in this session"),
        )
        .with_details(json!({ "entryId": entry_id }))
    }

    pub fn session_not_found(session_id: &str) -> Self {
        Self::new(
            Kind::SessionNotFound,
            format!("no session {session_id:?} is open"),
        )
    }

    /// The error for an entry from a client if the member `field` of the entry breaks protocol.md §9. `index` is the
    /// index of the entry in the request.
    pub fn entry_invalid(index: usize, field: impl Into<String>, reason: &str) -> Self {
        let field = field.into();
        Self::new(
            Kind::EntryInvalid,
            format!("entry {index}: {field}: {reason}"),
        )
        .with_details(json!({ "index": index, "field": field }))
    }

    pub fn cancelled() -> Self {
        Self::new(Kind::Cancelled, "the request was cancelled")
    }

    /// The error for a failed system call on `what`; the errno decides the kind.
    pub fn io(what: &str, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Kind::StorageFull,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Kind::PathDenied,
            _ => Kind::StorageIo,
        };
        Self::new(kind, format!("{what}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_codes_are_unique() {
        let names: HashSet<_> = Kind::ALL.iter().map(|k| k.name()).collect();
        let codes: HashSet<_> = Kind::ALL.iter().map(|k| k.code()).collect();
        assert_eq!(names.len(), Kind::ALL.len());
        assert_eq!(codes.len(), Kind::ALL.len());
    }
}
