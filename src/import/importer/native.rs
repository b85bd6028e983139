//! Native sessions that are together in one database or folder. A native session is a session of another tool.

use super::limits::TOO_LARGE;
use std::fmt;
use std::io;
use treelined_core::timestamp::Millis;

/// One session of another tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NativeSession {
    pub(crate) id: String,
    /// The time of the last activity. `None` if the tool does not record it.
    pub(crate) last_activity: Option<Millis>,
    /// A hash that changes whenever a record of the session changes.
    pub(crate) version: u64,
}

/// The reason why the sessions in a database or folder cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// Another program holds a lock, or writes continuously.
    Locked,
    /// Parts of the file cannot be read.
    Damaged,
    /// The file is encrypted, or it is not a database.
    NotDatabase,
    /// A table, a column or the version is not known.
    UnknownSchema,
    /// The system refuses access.
    Unreadable,
    /// A value exceeds its limit.
    TooLarge,
}

impl FaultKind {
    /// The name of the reason in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Locked => "locked",
            Self::Damaged => "damaged",
            Self::NotDatabase => "notDatabase",
            Self::UnknownSchema => "unknownSchema",
            Self::Unreadable => "pathDenied",
            Self::TooLarge => TOO_LARGE,
        }
    }
}

/// The source cannot be read, or the receiver of its bytes has failed.
#[derive(Debug)]
pub(crate) enum NativeError {
    Source {
        kind: FaultKind,
        message: String,
    },
    /// The receiver failed.
    Output(io::Error),
}

impl NativeError {
    pub(super) fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Source { kind, message }
    }

    /// The error for a failed system call on the source.
    pub(super) fn io(error: &io::Error) -> Self {
        Self::new(FaultKind::Unreadable, error.to_string())
    }
}

impl fmt::Display for NativeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source { message, .. } => f.write_str(message),
            Self::Output(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for NativeError {}
