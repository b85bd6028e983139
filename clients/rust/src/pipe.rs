//! Messages as lines: the transport for jsonrpsee over two streams of bytes.
//!
//! Only `\n` separates lines; U+2028 and similar characters may be inside of a line. Messages at which jsonrpsee would
//! end the connection (see `connection`) are removed here.

use crate::connection::{Connection, RawNotification, lock};
use crate::error::Disconnected;
use crate::json::Json;
use jsonrpsee::async_client::{Client as RpcClient, ClientBuilder, RpcService};
use jsonrpsee::core::client::{ReceivedMessage, TransportReceiverT, TransportSenderT};
use jsonrpsee::core::middleware::RpcServiceBuilder;
use jsonrpsee::types::ErrorObject;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

/// The deadline that jsonrpsee gets. This crate has its own deadlines, and all of them are shorter. `Duration::MAX`
/// would overflow the timers of jsonrpsee.
const NEVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// How long to wait, after a failed write, for the reason why the daemon ended. It is longer than the longest wait for
/// the output of a process that has ended, which is twice [`crate::process::DRAIN`].
const LAST_WORDS: Duration = Duration::from_secs(4);

/// The most bytes of an invalid line that a log or an error quotes.
const MAX_ECHO: usize = 200;

/// The longest first line in bytes. A program that is not a daemon may write without end.
const MAX_FIRST_LINE: u64 = 1024 * 1024;

/// The size of the read buffer in bytes.
const BUFFER: usize = 64 * 1024;

/// Starts to read and write. Dropping the returned client stops both.
pub(crate) async fn start<R, W>(
    connection: &Arc<Connection>,
    reader: R,
    writer: W,
) -> RpcClient<RpcService>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    *connection.writer.lock().await = Some(Box::new(writer));
    let served = Arc::clone(connection);
    // This replaces the logger of jsonrpsee, which formats every message. It also gives access to the service.
    let middleware = RpcServiceBuilder::new().layer_fn(move |service: RpcService| {
        served.has_service(service.clone());
        service
    });
    ClientBuilder::new()
        .set_rpc_middleware(middleware)
        .request_timeout(NEVER)
        .build_with_tokio(
            Sender {
                connection: Arc::clone(connection),
            },
            Receiver::new(Arc::clone(connection), reader),
        )
}

struct Sender {
    connection: Arc<Connection>,
}

impl Sender {
    async fn write(&self, message: &str) -> io::Result<()> {
        let mut writer = self.connection.writer.lock().await;
        // The input was closed, so this call fails when the connection ends.
        let Some(writer) = writer.as_mut() else {
            return Ok(());
        };
        writer.write_all(message.as_bytes()).await?;
        writer.flush().await
    }
}

impl TransportSenderT for Sender {
    type Error = Disconnected;

    async fn send(&mut self, mut message: String) -> Result<(), Disconnected> {
        message.push('\n');
        let connection = &self.connection;
        // A daemon that does not read must not delay the end of the connection.
        let written = tokio::select! {
            written = self.write(&message) => written,
            why = connection.over() => return Err(why),
        };
        let Err(error) = written else {
            return Ok(());
        };
        // The daemon is probably ending. Its exit status is a better reason than the failed write.
        if tokio::time::timeout(LAST_WORDS, connection.over())
            .await
            .is_err()
        {
            connection.end(Disconnected::because(format!(
                "cannot write to the daemon: {error}"
            )));
        }
        Err(connection.why_over())
    }

    async fn close(&mut self) -> Result<(), Disconnected> {
        self.connection.end_input().await;
        Ok(())
    }
}

struct Receiver<R> {
    connection: Arc<Connection>,
    reader: BufReader<R>,
    /// Whether a valid message has arrived. Then the program is a daemon.
    is_daemon: bool,
}

impl<R: AsyncRead + Unpin> Receiver<R> {
    fn new(connection: Arc<Connection>, reader: R) -> Receiver<R> {
        Receiver {
            connection,
            reader: BufReader::with_capacity(BUFFER, reader),
            is_daemon: false,
        }
    }

    /// Returns whether the line is the response to an open call. Handles all other lines itself.
    fn is_answer(&mut self, line: &[u8]) -> bool {
        let Some(message) = Envelope::parse(line) else {
            self.reject(line);
            return false;
        };
        self.is_daemon = true;
        match message {
            Envelope::Notification { method, params } => {
                self.connection.publish(RawNotification { method, params });
                false
            }
            Envelope::Answer { id: Some(id) } => lock(&self.connection.unanswered).remove(&id),
            // This is an error about a message that the daemon could not read, or a response to no request.
            Envelope::Answer { id: None } => {
                tracing::warn!("ignored a response to no request");
                false
            }
        }
    }

    fn reject(&self, line: &[u8]) {
        let shown = String::from_utf8_lossy(line.get(..MAX_ECHO).unwrap_or(line));
        if self.is_daemon {
            tracing::warn!("ignored a line that is not a message: {shown:?}");
        } else {
            let why = format!(
                "the program is not a treelined daemon: it wrote {:?}",
                shown.trim_end()
            );
            self.connection.end(Disconnected::because(why));
        }
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> TransportReceiverT for Receiver<R> {
    type Error = Disconnected;

    async fn receive(&mut self) -> Result<ReceivedMessage, Disconnected> {
        loop {
            let mut line = Vec::new();
            let most = match self.is_daemon {
                true => u64::MAX,
                false => MAX_FIRST_LINE,
            };
            let mut reader = (&mut self.reader).take(most);
            match reader.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => break,
                Ok(_) if line.iter().all(u8::is_ascii_whitespace) => (),
                Ok(_) if self.is_answer(&line) => return Ok(ReceivedMessage::Bytes(line)),
                Ok(_) => (),
            }
            if self.connection.is_over() {
                break;
            }
        }
        self.connection.is_read.cancel();
        // The task that supervises the daemon knows the reason.
        Err(self.connection.over().await)
    }
}

/// The kind of a message.
enum Envelope {
    Notification {
        method: String,
        params: Json,
    },
    /// A response. `id` is `None` in an error about a message that the daemon could not read.
    Answer {
        id: Option<u64>,
    },
}

impl Envelope {
    /// Parses a line; `None` if it is not a message of a daemon.
    fn parse(line: &[u8]) -> Option<Envelope> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(borrow)]
            jsonrpc: Cow<'a, str>,
            id: Option<serde_json::Value>,
            method: Option<String>,
            params: Option<Json>,
            #[serde(default, deserialize_with = "is_present")]
            result: bool,
            #[serde(borrow)]
            error: Option<&'a RawValue>,
        }
        let members: Members = serde_json::from_slice(line).ok()?;
        if members.jsonrpc != "2.0" {
            return None;
        }
        match (members.method, members.id) {
            (Some(method), None) => Some(Envelope::Notification {
                method,
                params: members.params.unwrap_or_default(),
            }),
            (Some(_), Some(_)) => None,
            (None, id) => {
                // jsonrpsee would end the connection at a response with neither a result nor an error, with both, or
                // with an error of another shape.
                let is_error = match members.error {
                    Some(error) => {
                        serde_json::from_str::<ErrorObject>(error.get()).ok()?;
                        true
                    }
                    None => false,
                };
                (members.result != is_error).then(|| Envelope::Answer {
                    id: id.and_then(|id| id.as_u64()),
                })
            }
        }
    }
}

fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}
