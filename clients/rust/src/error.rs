//! Errors of calls.

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

/// The reason why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The daemon answered with an error.
    #[error("{method}: {error}")]
    Refused {
        /// The method that was called.
        method: String,
        /// The daemon's error.
        error: Refusal,
    },

    /// The daemon has ended, or the client is closed. It is unknown whether the call took effect.
    #[error(transparent)]
    Disconnected(#[from] Disconnected),

    /// No response arrived in time. The daemon was asked to cancel the call, but the call may have taken
    /// effect.
    #[error("{method}: no answer within {after:?}")]
    Timeout {
        /// The method that was called.
        method: String,
        /// The deadline of the call.
        after: Duration,
    },

    /// The daemon speaks another version of the protocol.
    #[error("the daemon speaks protocol version {spoken}, this client speaks {expected}")]
    VersionMismatch {
        /// The version of this client.
        expected: u64,
        /// The version of the daemon.
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

    /// The result does not have the expected shape, or is nested too deeply for this client (about 60 levels
    /// in `nested` trees).
    #[error("{method}: unexpected answer: {message}")]
    Unexpected {
        /// The method that was called.
        method: String,
        /// The reason.
        message: String,
    },

    /// The params cannot be written as JSON.
    #[error("{method}: {message}")]
    InvalidCall {
        /// The method that the client tried to call.
        method: String,
        /// The reason.
        message: String,
    },
}

/// Says where a missing program was searched, and how it can be installed.
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
         in treelined's repository, or name it with TREELINED_BIN or `Client::builder().program(…)`"
    )
}

impl Error {
    /// Returns the error that the daemon answered; `None` if the error comes from elsewhere.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Error::Refused { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns the kind of the daemon's error (protocol.md §8.2).
    pub fn kind(&self) -> Option<&ErrorKind> {
        self.refusal().map(|refusal| &refusal.kind)
    }

    /// Returns whether the daemon answered with an error of this kind.
    pub fn is(&self, kind: ErrorKind) -> bool {
        self.kind() == Some(&kind)
    }

    /// Returns whether the same call may succeed later, unchanged.
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Refused { error, .. } => error.retryable,
            Error::Timeout { .. } => true,
            _ => false,
        }
    }
}

/// An error that the daemon answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// The kind of the error. Programs decide by it.
    pub kind: ErrorKind,
    /// The JSON-RPC error code.
    pub code: i32,
    /// A description for people.
    pub message: String,
    /// Whether the same request may succeed later, unchanged.
    pub retryable: bool,
    /// The time after which a retry makes sense, if there is one.
    pub retry_after: Option<Duration>,
    /// The details. Their shape depends on the kind; see [`details`](Refusal::details).
    pub details: Option<Json>,
}

impl Refusal {
    /// Parses the details as the type of the kind, for instance `LeafMovedDetails` for `leafMoved`. `None`
    /// if there are no details, or if they have another shape.
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
        // A treelined daemon always sends `data`. Of errors without `data` only the code is known.
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

/// How the connection to a daemon has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disconnected {
    /// A description of the error for people.
    pub reason: String,
    /// The exit status of the process, if this client started the process and it has ended.
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
