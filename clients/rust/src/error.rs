//! The errors of a call.

use crate::generated::ErrorKind;
use crate::json::Json;
use jsonrpsee::types::ErrorObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

/// Why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The daemon refused, or failed.
    #[error("{method}: {error}")]
    Refused {
        /// The method that was called.
        method: String,
        /// Why.
        error: Refusal,
    },

    /// The daemon is gone, or the client is closed. Whether the call was carried out is not known.
    #[error(transparent)]
    Disconnected(#[from] Disconnected),

    /// No answer came in time. The daemon was asked to cancel the call; what it had done stays done.
    #[error("{method}: no answer within {after:?}")]
    Timeout {
        /// The method that was called.
        method: String,
        /// How long it was waited for.
        after: Duration,
    },

    /// The daemon speaks another version of the protocol.
    #[error("the daemon speaks protocol version {spoken}, this client {expected}")]
    VersionMismatch {
        /// This client's version.
        expected: u64,
        /// The daemon's.
        spoken: u64,
    },

    /// The daemon could not be started.
    #[error("cannot start {program}: {source}{}", remedy(program, source))]
    CannotStart {
        /// The program that the client tried to start.
        program: String,
        /// The error of the operating system; `NotFound` if there is no such program.
        source: Arc<io::Error>,
    },

    /// The answer is not what this client expects, or nested too deep for it (more than some 60 levels in
    /// `nested` trees).
    #[error("{method}: unexpected answer: {message}")]
    Unexpected {
        /// The method that was called.
        method: String,
        /// The reason.
        message: String,
    },

    /// The params have no JSON.
    #[error("{method}: {message}")]
    InvalidCall {
        /// The method that the client tried to call.
        method: String,
        /// The reason.
        message: String,
    },
}

/// Where a missing program was looked for, and how to get it.
fn remedy(program: &str, source: &io::Error) -> String {
    if source.kind() != io::ErrorKind::NotFound {
        return String::new();
    }
    let place = if program.contains(std::path::MAIN_SEPARATOR) {
        String::new()
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        format!(" on the PATH ({})", path.to_string_lossy())
    };
    format!(
        ": there is no such program{place}, or no folder to start it in. Install it with `cargo install --path .` \
         in treelined's repository, or name it with `Client::builder().program(…)`"
    )
}

impl Error {
    /// What the daemon refused a call for; none if the error is not an answer of the daemon.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Error::Refused { error, .. } => Some(error),
            _ => None,
        }
    }

    /// The kind of a refusal: the contract of the protocol (protocol.md, Errors).
    pub fn kind(&self) -> Option<&ErrorKind> {
        self.refusal().map(|refusal| &refusal.kind)
    }

    /// Whether the daemon refused for that reason.
    pub fn is(&self, kind: ErrorKind) -> bool {
        self.kind() == Some(&kind)
    }

    /// The same call may succeed later, unchanged.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Refused { error, .. } => error.retryable,
            Error::Timeout { .. } => true,
            _ => false,
        }
    }
}

/// An answer of the daemon that is an error.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// The cause: the contract.
    pub kind: ErrorKind,
    /// The JSON-RPC error code.
    pub code: i32,
    /// For people.
    pub message: String,
    /// The same request may succeed later, unchanged.
    pub retryable: bool,
    /// When a retry makes sense.
    pub retry_after: Option<Duration>,
    /// By kind; see [`details`](Refusal::details).
    pub details: Option<Json>,
}

impl Refusal {
    /// The details as the type of their kind: of `leafMoved` that is `LeafMovedDetails`, and so on. None
    /// if there are none, or of another shape.
    pub fn details<T: DeserializeOwned>(&self) -> Option<T> {
        self.details.as_ref()?.parse().ok()
    }

    pub(crate) fn new(error: &ErrorObject<'_>) -> Refusal {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Data {
            kind: ErrorKind,
            #[serde(default)]
            retryable: bool,
            retry_after_ms: Option<u64>,
            details: Option<Json>,
        }
        let data = error
            .data()
            .and_then(|data| serde_json::from_str::<Data>(data.get()).ok());
        // Not of a treelined daemon, then; the code is all there is.
        let data = data.unwrap_or(Data {
            kind: ErrorKind::Unknown(error.code().to_string()),
            retryable: false,
            retry_after_ms: None,
            details: None,
        });
        Refusal {
            kind: data.kind,
            code: error.code(),
            message: error.message().to_owned(),
            retryable: data.retryable,
            retry_after: data.retry_after_ms.map(Duration::from_millis),
            details: data.details,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.kind)
    }
}

impl std::error::Error for Refusal {}

/// How the connection to a daemon ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disconnected {
    /// A description of the error for people.
    pub reason: String,
    /// How the process ended, if it is this client's and has ended.
    pub status: Option<ExitStatus>,
    /// The last lines that the daemon wrote to stderr.
    pub last_words: String,
}

impl Disconnected {
    pub(crate) fn because(reason: impl Into<String>) -> Disconnected {
        Disconnected {
            reason: reason.into(),
            status: None,
            last_words: String::new(),
        }
    }
}

impl fmt::Display for Disconnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        if let Some(status) = self.status {
            write!(f, " ({status})")?;
        }
        if !self.last_words.is_empty() {
            write!(f, ": {}", self.last_words)?;
        }
        Ok(())
    }
}

impl std::error::Error for Disconnected {}
