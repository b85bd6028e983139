//! Converts errors of SQLite.

use crate::importer::limits::too_large;
use crate::importer::native::{FaultKind, NativeError};
use rusqlite::ErrorCode;

/// The fault that an error of SQLite means.
pub(super) fn failed(error: rusqlite::Error) -> NativeError {
    let code = error.sqlite_error_code();
    let kind = match code {
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed,
        ) => FaultKind::Locked,
        Some(ErrorCode::NotADatabase) => FaultKind::NotDatabase,
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly,
        ) => FaultKind::Unreadable,
        Some(ErrorCode::TooBig) => FaultKind::TooLarge,
        _ => FaultKind::Damaged,
    };
    let message = match kind {
        FaultKind::Locked => {
            "another program has locked the database: close it, or import again".to_owned()
        }
        FaultKind::NotDatabase => "the file is encrypted, or no SQLite database".to_owned(),
        FaultKind::Damaged => format!("the database is damaged: {error}"),
        FaultKind::TooLarge => too_large("a value in it is too long"),
        FaultKind::UnknownSchema | FaultKind::Unreadable => error.to_string(),
    };
    NativeError::new(kind, message)
}
