//! A stream that keeps sessions, the names of the headers of its messages, and the codes of its errors.

use super::connection::{ApiError, Connection, unavailable};
use super::in_flight::InFlight;
use super::limits::StreamInfo;
use super::own_runtime::OwnRuntime;
use super::settings::NatsSettings;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};

/// The header with a sequence. The servers store the message only if the last message of the subject has this sequence.
pub(super) const EXPECTED: &str = "Nats-Expected-Last-Subject-Sequence";

/// The header with the subject whose last message is compared, if this is not the message's own subject.
pub(super) const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";

/// The header with the number of lines of a message.
pub(super) const LINES: &str = "Treelined-Lines";

/// The header of a message that ends with the record of a deletion.
pub(super) const CLOSED: &str = "Treelined-Closed";

/// The header with the name of the object to which a message refers.
pub(super) const OBJECT: &str = "Treelined-Object";

/// The header with the SHA-256 of that object, in hex.
pub(super) const HASH: &str = "Treelined-Hash";

pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// The longest time for which a server may answer with an old state, because it was paused and resumed, or because it
/// lags behind the other servers.
pub(super) const STALE: Duration = Duration::from_secs(3);

pub(super) const NO_STREAM: u64 = 10059;

/// The values that other modules need from a [`NatsLog`] to reach its servers. The connection works until the log is
/// dropped.
#[derive(Clone)]
pub(super) struct LogAccess {
    pub(super) connection: Connection,
    pub(super) settings: NatsSettings,
    /// The time at which the stream was created.
    pub(super) created: String,
}

/// A stream that keeps sessions.
pub struct NatsLog {
    pub(super) runtime: OwnRuntime,
    pub(super) connection: Connection,
    pub(super) settings: NatsSettings,
    pub(super) info: StreamInfo,
    pub(super) append_time: Duration,
    /// The time at which a server last acknowledged an append.
    pub(super) acknowledged: Mutex<Option<Instant>>,
    pub(super) in_flight: InFlight,
}

pub(super) fn connect(settings: &NatsSettings) -> Result<(OwnRuntime, Connection)> {
    let runtime = OwnRuntime::new("nats")?;
    let connection = runtime.block_on(Connection::open(settings))?;
    Ok((runtime, connection))
}

/// Converts an error of JetStream.
pub(super) fn refused(settings: &NatsSettings, error: &ApiError) -> Error {
    let stream = &settings.stream;
    let ApiError {
        err_code,
        description,
    } = error;
    match *err_code {
        NO_STREAM => {
            let why = format!(
                "there is no stream {stream:?}: `treelined doctor --cluster --create` makes it"
            );
            Error::new(Kind::LogMisconfigured, why)
        }
        OTHER_STREAM => {
            let why = format!("the subjects of sessions belong to another stream than {stream:?}");
            Error::new(Kind::LogMisconfigured, why)
        }
        SUBJECT_OVERLAP => {
            let why = format!(
                "the subjects of sessions belong to another stream than {stream:?}: name that one in [team]"
            );
            Error::new(Kind::LogMisconfigured, why)
        }
        NO_JETSTREAM | NONE_FOR_ACCOUNT | NOT_CLUSTERED | INVALID_STREAM | TOO_MANY_STREAMS => {
            let why = format!("the servers refuse the stream {stream:?}: {description}");
            Error::new(Kind::LogMisconfigured, why)
        }
        TOO_LARGE => Error::new(
            Kind::PayloadTooLarge,
            format!("the stream {stream:?}: {description}"),
        ),
        STORE_FAILED | SEALED => {
            let why = format!("the stream {stream:?} accepts no more messages: {description}");
            Error::new(Kind::LogMisconfigured, why)
        }
        code => unavailable(format!("the stream {stream:?}: {description} ({code})")),
    }
}

/// The codes of JetStream's errors.
pub(super) const NO_MESSAGE: u64 = 10037;

pub(super) const OTHER_STREAM: u64 = 10060;

pub(super) const TOO_LARGE: u64 = 10054;

pub(super) const STORE_FAILED: u64 = 10077;

pub(super) const SEALED: u64 = 10109;

pub(super) const SUBJECT_OVERLAP: u64 = 10065;

pub(super) const NO_JETSTREAM: u64 = 10076;

pub(super) const NONE_FOR_ACCOUNT: u64 = 10039;

/// The stream needs more than one copy, but the server does not belong to a cluster.
pub(super) const NOT_CLUSTERED: u64 = 10074;

pub(super) const INVALID_STREAM: u64 = 10052;

pub(super) const TOO_MANY_STREAMS: u64 = 10027;
