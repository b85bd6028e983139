//! Converts each failure of the database to its kind of error.

use tokio_postgres::error::{DbError, SqlState};
use treelined_core::error::{Error, Kind};

/// The state with which an append to an erased session fails.
const ERASED: &str = "TE001";

/// A failure of one request.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server refused the request, and would refuse it again.
    Refused(Error),
    /// The request may succeed later. With `may_be_done`, the server may have run it, or may still run it.
    Later { may_be_done: bool, why: Error },
}

impl Failure {
    pub(super) fn error(self) -> Error {
        match self {
            Self::Refused(error) => error,
            Self::Later { why, .. } => why,
        }
    }
}

/// The error for a failure that is probably temporary.
pub(super) fn away(why: impl Into<String>) -> Error {
    let mut error = Error::new(Kind::LogUnavailable, why.into());
    error.retry_after_ms = Some(2000);
    error
}

/// The failure of a request that was sent.
pub(super) fn of_request(error: &tokio_postgres::Error) -> Failure {
    match error.as_db_error() {
        Some(refusal) => of_server(refusal),
        None => Failure::Later {
            may_be_done: true,
            why: away(format!(
                "the connection to the database is lost: {}",
                causes(error)
            )),
        },
    }
}

fn of_server(refusal: &DbError) -> Failure {
    let (code, message) = (refusal.code(), refusal.message());
    let kind = match code.code() {
        "3D000" | "3F000" | "42P01" | "42883" | "42703" => {
            let why = format!(
                "the database is not one of a team: {message}; `treelined doctor --cluster --create` makes the tables"
            );
            return Failure::Refused(Error::new(Kind::LogMisconfigured, why));
        }
        "42501" => Kind::LogDenied,
        ERASED => return Failure::Refused(Error::new(Kind::SessionErased, message.to_owned())),
        code if code.starts_with("28") => Kind::LogDenied,
        "53100" | "54000" => Kind::LogMisconfigured,
        // The server may end between the commit and its answer.
        "57P01" | "57P02" | "57P03" => {
            return Failure::Later {
                may_be_done: true,
                why: away(format!("the database ends or begins: {message}")),
            };
        }
        _ => {
            return Failure::Later {
                may_be_done: false,
                why: away(format!("the database refuses: {message} ({})", code.code())),
            };
        }
    };
    let why = format!("the database refuses: {message} ({})", code.code());
    Failure::Refused(Error::new(kind, why))
}

/// The failure of a connection that was not made.
pub(super) fn of_connection(error: &tokio_postgres::Error) -> Failure {
    if let Some(refusal) = error.as_db_error() {
        return match of_server(refusal) {
            Failure::Refused(error) if *refusal.code() == SqlState::INVALID_CATALOG_NAME => {
                // `--create` makes tables, but not a database.
                let why = format!("{}: `createdb` makes a database", refusal.message());
                Failure::Refused(Error::new(error.kind, why))
            }
            failure => failure,
        };
    }
    let why = causes(error);
    // The client has no codes for these errors, so their texts are compared.
    let is_denied = ["error performing TLS handshake", "authentication error"]
        .iter()
        .any(|start| why.starts_with(start));
    let is_wrong = ["invalid configuration", "invalid connection string"]
        .iter()
        .any(|start| why.starts_with(start));
    match (is_denied, is_wrong) {
        (true, _) => Failure::Refused(Error::new(Kind::LogDenied, format!("the database: {why}"))),
        (_, true) => Failure::Refused(Error::new(Kind::LogMisconfigured, why)),
        _ => Failure::Later {
            may_be_done: false,
            why: away(format!("no server of the database answers: {why}")),
        },
    }
}

/// The text of an error, with the texts of its causes.
fn causes(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

/// A number of the database as an unsigned number. A negative number becomes 0.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The error for an answer that the tables of this program cannot give.
pub(super) fn unreadable(error: tokio_postgres::Error) -> Error {
    let why = format!("the tables of the database are not those of treelined: {error}");
    Error::new(Kind::LogMisconfigured, why)
}
