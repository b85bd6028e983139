//! Errors as clients see them: one [`Error`], one [`Kind`] for each cause, and the only table that maps
//! kinds to JSON-RPC codes (protocol.md §8).

mod advice;

pub use advice::Advice;

use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use std::io;

macro_rules! kinds {
    ($($variant:ident $name:literal $code:literal $retryable:literal),+ $(,)?) => {
        /// The cause of a failure. `name()` is the contract with clients (`data.kind`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Kind { $($variant),+ }

        impl Kind {
            /// Every kind, in the order of protocol.md §8.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),+];

            /// `data.kind` on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name),+ }
            }

            /// The JSON-RPC error number.
            pub const fn code(self) -> i32 {
                match self { $(Kind::$variant => $code),+ }
            }

            /// Whether the same request may succeed later, unchanged.
            pub const fn retryable(self) -> bool {
                match self { $(Kind::$variant => $retryable),+ }
            }
        }
    };
}

kinds! {
    ParseError "parseError" -32700 false,
    InvalidRequest "invalidRequest" -32600 false,
    MethodNotFound "methodNotFound" -32601 false,
    InvalidParams "invalidParams" -32602 false,
    InternalError "internalError" -32603 false,
    ShuttingDown "shuttingDown" 1004 false,
    SessionNotFound "sessionNotFound" 1100 false,
    SessionBusy "sessionBusy" 1101 true,
    SessionLocked "sessionLocked" 1102 true,
    HeaderMissing "headerMissing" 1104 false,
    VersionUnsupported "versionUnsupported" 1105 false,
    ReadOnly "readOnly" 1106 false,
    SessionDeleted "sessionDeleted" 1107 false,
    SessionReplaced "sessionReplaced" 1108 false,
    SessionExists "sessionExists" 1109 false,
    ImportBusy "importBusy" 1110 true,
    EntryNotFound "entryNotFound" 1200 false,
    LeafMoved "leafMoved" 1201 false,
    EntryInvalid "entryInvalid" 1202 false,
    TreeChanged "treeChanged" 1203 false,
    NestingTooDeep "nestingTooDeep" 1204 false,
    DuplicateEntryId "duplicateEntryId" 1205 false,
    NotAUserMessage "notAUserMessage" 1206 false,
    NothingToUndo "nothingToUndo" 1207 false,
    UnansweredToolCalls "unansweredToolCalls" 1208 false,
    SummarizerUnavailable "summarizerUnavailable" 1300 false,
    SummarizerFailed "summarizerFailed" 1301 true,
    NothingToCompact "nothingToCompact" 1302 false,
    EventNotPending "eventNotPending" 1400 false,
    NoUser "noUser" 1401 false,
    CommandExists "commandExists" 1410 false,
    CommandNotFound "commandNotFound" 1411 false,
    CommandFailed "commandFailed" 1412 false,
    StorageFull "storageFull" 1600 true,
    StorageIo "storageIo" 1601 false,
    PathDenied "pathDenied" 1602 false,
    DurabilityUnknown "durabilityUnknown" 1603 false,
    FileExists "fileExists" 1604 false,
    ImportFailed "importFailed" 1606 false,
    LogUnavailable "logUnavailable" 1700 true,
    LogConflict "logConflict" 1701 true,
    LogForeign "logForeign" 1702 false,
    LogDiverged "logDiverged" 1703 false,
    LogRewound "logRewound" 1704 false,
    LogMisconfigured "logMisconfigured" 1705 false,
    LogDenied "logDenied" 1706 false,
    PayloadTooLarge "payloadTooLarge" 1707 false,
    BatchUnsupported "batchUnsupported" -32005 false,
    RequestTooLarge "requestTooLarge" -32007 false,
    ResponseTooLarge "responseTooLarge" -32008 false,
    Overloaded "overloaded" -32009 true,
    Cancelled "cancelled" -32800 false,
}

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

    /// −32602 for one field; `field` is the path of the wrong member.
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

    /// For an entry from a client that breaks protocol.md §9 in `field`; `index` is its place in the request.
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

    /// For a failed system call on `what`; the errno decides the kind.
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
