//! Messages as lines: jsonrpsee's transport over two streams of bytes.
//!
//! Only `\n` separates lines: U+2028 and the like stand inside of them. What jsonrpsee must not see
//! (connection.rs) is taken out here.

use crate::connection::{Connection, Said, lock};
use crate::error::Disconnected;
use crate::json::Json;
use jsonrpsee::core::client::{ReceivedMessage, TransportReceiverT, TransportSenderT};
use jsonrpsee::types::ErrorObject;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};

/// After writing has failed: how long to wait for the daemon's own last words.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How much of a line that is no message is shown, in bytes.
const MAX_ECHO: usize = 200;

/// Longest line of what may not be a daemon at all, in bytes. Its first one is an introduction.
const MAX_FIRST_LINE: u64 = 1024 * 1024;

/// Bytes read at once.
const BUFFER: usize = 64 * 1024;

pub(crate) struct Sender {
    connection: Arc<Connection>,
}

impl Sender {
    pub(crate) fn new(connection: Arc<Connection>) -> Sender {
        Sender { connection }
    }

    async fn write(&self, message: &str) -> io::Result<()> {
        let mut writer = self.connection.writer.lock().await;
        // The input has been ended: a call that came too late fails with the connection.
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
        // A daemon that does not read must not keep the connection from ending.
        let written = tokio::select! {
            written = self.write(&message) => written,
            why = connection.over() => return Err(why),
        };
        let Err(error) = written else {
            return Ok(());
        };
        // It is about to die, most likely: then how it did is a better reason.
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

pub(crate) struct Receiver<R> {
    connection: Arc<Connection>,
    reader: BufReader<R>,
    /// Something has been read that only a daemon says.
    is_daemon: bool,
}

impl<R: AsyncRead + Unpin> Receiver<R> {
    pub(crate) fn new(connection: Arc<Connection>, reader: R) -> Receiver<R> {
        Receiver {
            connection,
            reader: BufReader::with_capacity(BUFFER, reader),
            is_daemon: false,
        }
    }

    /// Deals with a line, unless it is an answer that somebody waits for.
    fn is_answer(&mut self, line: &[u8]) -> bool {
        let Some(message) = Envelope::parse(line) else {
            self.strange(line);
            return false;
        };
        self.is_daemon = true;
        match message {
            Envelope::Notification { method, params } => {
                self.connection.said(Said { method, params });
                false
            }
            Envelope::Answer { id: Some(id) } => lock(&self.connection.unanswered).remove(&id),
            // About something that the daemon could not read, or that nobody has asked.
            Envelope::Answer { id: None } => {
                tracing::warn!("the daemon answered what was not asked");
                false
            }
        }
    }

    fn strange(&self, line: &[u8]) {
        let shown = String::from_utf8_lossy(line.get(..MAX_ECHO).unwrap_or(line));
        if self.is_daemon {
            tracing::warn!("not a message, and ignored: {shown:?}");
        } else {
            let why = format!(
                "this is no treelined daemon: it said {:?}",
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
        // Whoever looks after the other end knows why.
        Err(self.connection.over().await)
    }
}

/// The kind of a message.
enum Envelope {
    Notification {
        method: String,
        params: Json,
    },
    /// Without an id: an error about something that the daemon could not read.
    Answer {
        id: Option<u64>,
    },
}

impl Envelope {
    /// None if it is nothing that a daemon says.
    fn parse(line: &[u8]) -> Option<Envelope> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(borrow)]
            jsonrpc: Cow<'a, str>,
            id: Option<serde_json::Value>,
            method: Option<String>,
            params: Option<Json>,
            #[serde(default, deserialize_with = "is_there")]
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
                // jsonrpsee ends at answers that have neither, both, or an error of another shape.
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

fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}
