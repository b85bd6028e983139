//! A connection to the servers. Every request has a deadline, and every failure has its own kind of error.

use crate::settings::NatsSettings;
use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap, Message, RequestErrorKind,
    ServerError, connection::State,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
use treelined_files::lock::lock;

/// How long it may take to connect, for all servers together.
const CONNECT: Duration = Duration::from_secs(10);
/// How long one answer may take. If a cluster loses its leader, it has a new one after about five seconds.
pub(super) const ANSWER: Duration = Duration::from_secs(10);
/// The interval of pings. A connection is given up if its server does not answer three of them.
const PING: Duration = Duration::from_secs(3);
/// The number of denials that are kept.
const DENIALS: usize = 64;
/// The longest pause before a lost connection is tried again.
const RECONNECT: Duration = Duration::from_secs(2);

/// A connection to one of the servers. If that server is lost, the client connects to another one.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) client: Client,
    denials: Arc<Mutex<Denials>>,
}

/// The last denials, with the texts of the servers, the newest first. A denial names the subject, but not the request.
#[derive(Default)]
struct Denials(VecDeque<(Instant, String)>);

impl Denials {
    fn add(&mut self, why: String) {
        self.0.truncate(DENIALS - 1);
        self.0.push_front((Instant::now(), why));
    }

    /// A denial of a request with this subject, if one has arrived since `sent`.
    fn of(&self, subject: &str, sent: Instant) -> Option<String> {
        let quoted = format!("{subject:?}");
        // If a subscription to the subject of a session is denied, the follower of the session gets no hints. The
        // answer to a request is not affected.
        let names_another = |why: &str| {
            why.contains("for Publish to") || why.contains("for Subscription to \"treelined.")
        };
        let is_of = |why: &String| why.contains(&quoted) || !names_another(why);
        let mut later = self.0.iter().take_while(|(at, _)| *at >= sent);
        later
            .find(|(_, why)| is_of(why))
            .map(|(_, why)| why.clone())
    }
}

/// An error that JetStream answers.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ApiError {
    #[serde(default)]
    pub(super) err_code: u64,
    #[serde(default)]
    pub(super) description: String,
}

/// The reason why there is no answer.
pub(super) enum NoAnswer {
    /// No server answers for the subject now.
    NoResponders,
    /// The time is over. The server may have run the request.
    TimedOut,
    /// The connection was lost. The server may have run the request.
    Lost(String),
    /// The request was not sent, or was refused.
    Failed(Error),
}

impl Connection {
    pub(super) async fn open(settings: &NatsSettings) -> Result<Self> {
        let denials: Arc<Mutex<Denials>> = Arc::default();
        let (addresses, user) = settings.addresses();
        let mut options = options(settings, Arc::clone(&denials))?;
        match user {
            Some((name, Some(password))) => options = options.user_and_password(name, password),
            Some((token, None)) => options = options.token(token),
            None => {}
        }
        let servers = addresses.join(", ");
        let connecting = options.connect(addresses);
        let connected = tokio::time::timeout(CONNECT, connecting).await;
        let client = match connected {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(refused(&servers, &error)),
            Err(_) => {
                let why = format!("no server answers in {} s: {servers}", CONNECT.as_secs());
                return Err(unavailable(why));
            }
        };
        Ok(Self { client, denials })
    }

    /// Whether a request would be sent at once, and not wait for a connection.
    pub(super) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Sends a request, and waits for its answer for `time` at most.
    pub(super) async fn request(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Vec<u8>,
        time: Duration,
    ) -> Result<Message, NoAnswer> {
        let sent = Instant::now();
        let request = async_nats::Request::new()
            .headers(headers)
            .payload(payload.into())
            .timeout(None);
        // The client itself has no deadline for the messages in its queue.
        let answered = self.client.send_request(subject.clone(), request);
        let Ok(answered) = tokio::time::timeout(time, answered).await else {
            return Err(match lock(&self.denials).of(&subject, sent) {
                Some(why) => NoAnswer::Failed(Error::new(Kind::LogDenied, why)),
                None => NoAnswer::TimedOut,
            });
        };
        answered.map_err(|error| match error.kind() {
            RequestErrorKind::NoResponders => NoAnswer::NoResponders,
            RequestErrorKind::MaxPayloadExceeded => {
                NoAnswer::Failed(Error::new(Kind::PayloadTooLarge, error.to_string()))
            }
            _ => NoAnswer::Lost(error.to_string()),
        })
    }

    /// Calls the API of JetStream. Returns the result, or the error of JetStream.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        name: &str,
        body: &serde_json::Value,
        time: Duration,
    ) -> Result<Result<T, ApiError>> {
        let body = match body.is_null() {
            true => Vec::new(),
            false => body.to_string().into_bytes(),
        };
        let subject = format!("$JS.API.{name}");
        let answer = self.request(subject, HeaderMap::new(), body, time).await;
        let answer = answer.map_err(|why| match why {
            NoAnswer::Failed(error) => error,
            NoAnswer::Lost(why) => unavailable(format!("no answer to {name}: {why}")),
            NoAnswer::TimedOut => {
                let time = time.as_secs_f32();
                let why =
                    format!("no answer to {name} in {time} s: most of the servers may be away");
                unavailable(why)
            }
            NoAnswer::NoResponders => {
                let why = "the servers have no JetStream, or its cluster has no leader";
                unavailable(why.to_owned())
            }
        })?;
        answer_of(&answer.payload)
    }
}

/// The result or the error in an answer of JetStream.
pub(super) fn answer_of<T: DeserializeOwned>(payload: &[u8]) -> Result<Result<T, ApiError>> {
    #[derive(Deserialize)]
    struct Failed {
        error: ApiError,
    }
    if let Ok(Failed { error }) = serde_json::from_slice(payload) {
        return Ok(Err(error));
    }
    let parsed = serde_json::from_slice(payload);
    let parsed = parsed.map_err(|error| {
        let why = format!("an answer of the server cannot be read: {error}");
        Error::new(Kind::LogForeign, why)
    })?;
    Ok(Ok(parsed))
}

pub(super) fn unavailable(why: String) -> Error {
    let mut error = Error::new(Kind::LogUnavailable, why);
    error.retry_after_ms = Some(1000);
    error
}

fn options(settings: &NatsSettings, denials: Arc<Mutex<Denials>>) -> Result<ConnectOptions> {
    let mut options = ConnectOptions::new()
        .name("treelined")
        .connection_timeout(Duration::from_secs(5))
        .ping_interval(PING)
        // The daemon knows its own appends, so the servers need not send them back.
        .no_echo()
        .require_tls(settings.needs_tls)
        .reconnect_delay_callback(|attempt| {
            let tries = u32::try_from(attempt).unwrap_or(u32::MAX).min(8);
            (Duration::from_millis(10) * 2_u32.pow(tries)).min(RECONNECT)
        })
        .event_callback(move |event| {
            let denials = Arc::clone(&denials);
            async move {
                match event {
                    Event::ServerError(ServerError::AuthorizationViolation) => {
                        let why = "the servers refuse the credentials";
                        lock(&denials).add(why.to_owned());
                    }
                    Event::ServerError(ServerError::Other(why)) if is_denial(&why) => {
                        lock(&denials).add(why);
                    }
                    event => tracing::info!(%event, "connection to the team's servers"),
                }
            }
        });
    if let Some(path) = &settings.credentials {
        let read = std::fs::read_to_string(path).and_then(|text| options.credentials(&text));
        options = read.map_err(|error| denied_file(path, &error))?;
    }
    if let Some(path) = &settings.ca {
        std::fs::metadata(path).map_err(|error| denied_file(path, &error))?;
        options = options.add_root_certificates(path.clone());
    }
    if let Some((certificate, key)) = &settings.certificate {
        for path in [certificate, key] {
            std::fs::metadata(path).map_err(|error| denied_file(path, &error))?;
        }
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options)
}

fn is_denial(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    why.contains("permissions violation")
        || why.contains("authorization")
        || why.contains("authentication")
}

fn denied_file(path: &std::path::Path, error: &std::io::Error) -> Error {
    Error::new(Kind::LogDenied, format!("{}: {error}", path.display()))
}

/// The kind of a failure to connect.
fn refused(servers: &str, error: &async_nats::ConnectError) -> Error {
    let (kind, why) = match error.kind() {
        ConnectErrorKind::ServerParse => (Kind::LogMisconfigured, "no address of a server"),
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
            (Kind::LogDenied, "the servers refuse the credentials")
        }
        ConnectErrorKind::Tls => (Kind::LogDenied, "no connection with TLS"),
        ConnectErrorKind::Io if is_of_tls(error) => (Kind::LogDenied, "no connection with TLS"),
        _ => return unavailable(format!("no server can be reached: {servers}: {error}")),
    };
    Error::new(kind, format!("{why}: {servers}: {error}"))
}

/// Whether an I/O error comes from TLS, for example from a certificate that is not trusted.
fn is_of_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let text = format!("{error:?}");
    [
        "InvalidCertificate",
        "AlertReceived",
        "CertificateRequired",
        "InvalidMessage",
        "HandshakeFailure",
    ]
    .iter()
    .any(|name| text.contains(name))
}
