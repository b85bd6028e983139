//! Joins a WebSocket to a connection of the daemon. On the side of the WebSocket, each message is a text frame. On the
//! side of the daemon, messages have `Content-Length` framing.
//!
//! The daemon serves one end of a socket pair like a client of the Unix socket. So the queues, limits and rules of
//! every connection apply, even for a client that does not read: a full WebSocket fills the socket pair, and the full
//! socket pair stops the writer of the connection.

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, BufWriter,
};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use treelined_files::os::socket;

/// How long the daemon may take for the messages that came before the end of the WebSocket.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How long a client may take to end the WebSocket after the daemon has ended it.
const FAREWELL: Duration = Duration::from_secs(1);
/// The bytes of the buffer for input of the client.
const READ_BUFFER: usize = 16 << 10;
/// The beginning of the header before each message of the daemon.
const LENGTH: &str = "Content-Length: ";

/// The right by which a client of the WebSocket is served.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Admission {
    /// It has shown the token of the page.
    Page,
    /// It has shown the token with this number, which is the token of an access.
    Token(usize),
}

/// The daemon that serves the clients of a WebSocket.
pub(crate) trait WebBackend: Send + Sync + 'static {
    /// Serves the client of this socket, which uses the protocol with `Content-Length` framing.
    fn connect(&self, stream: socket::Stream, admission: &Admission) -> anyhow::Result<()>;
    /// How this token admits a client, if it is the token of an access.
    fn admits(&self, token: &str) -> Option<Admission>;
    fn is_ending(&self) -> bool;
    /// The limit of a message from a client, in bytes.
    fn max_message_bytes(&self) -> usize;
    /// Logs that a client was refused.
    fn refused(&self, why: &str);
}

/// Serves a client until one side ends.
pub(super) async fn run(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    admission: &Admission,
    backend: &dyn WebBackend,
) {
    let limit = backend.max_message_bytes();
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let (mut to_client, mut from_client) = socket.split();
    let code = match connect(admission, backend) {
        Ok(daemon) => join(&mut from_client, &mut to_client, daemon, backend).await,
        Err(error) => {
            let why = format!("a client of the page could not be served: {error:#}");
            backend.refused(&why);
            Some(end_code(backend, CloseCode::Again))
        }
    };
    let farewell = async {
        if let Some(code) = code {
            let reason = Utf8Bytes::default();
            let close = Message::Close(Some(CloseFrame { code, reason }));
            to_client.send(close).await?;
        }
        while from_client.next().await.transpose()?.is_some() {}
        to_client.close().await
    };
    // The time is limited, since the client may be gone or may not read.
    let _gone = timeout(FAREWELL, farewell).await;
}

pub(crate) fn connect(
    admission: &Admission,
    backend: &dyn WebBackend,
) -> anyhow::Result<socket::AsyncStream> {
    let (near, far) = socket::async_pair()?;
    backend.connect(far, admission)?;
    Ok(near)
}

/// The close code if the daemon ends the WebSocket.
fn end_code(backend: &dyn WebBackend, otherwise: CloseCode) -> CloseCode {
    match backend.is_ending() {
        true => CloseCode::Away,
        false => otherwise,
    }
}

/// Copies messages in both directions. Returns the close code for the client; `None` if the client has ended the
/// WebSocket.
pub(crate) async fn join(
    from_client: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    to_client: &mut (impl Sink<Message, Error = Error> + Unpin),
    daemon: socket::AsyncStream,
    backend: &dyn WebBackend,
) -> Option<CloseCode> {
    let (from_daemon, to_daemon) = daemon.into_split();
    let mut send = pin!(send(from_daemon, to_client));
    let code = tokio::select! {
        sent = &mut send => {
            let otherwise = match sent {
                Ok(()) => CloseCode::Normal,
                Err(_) => CloseCode::Error,
            };
            return Some(end_code(backend, otherwise));
        }
        code = receive(from_client, to_daemon) => code,
    };
    // The daemon has read the end of the input, and answers the messages before it. The client is still read, so that a
    // close is answered.
    let read_on = async {
        while from_client
            .next()
            .await
            .is_some_and(|message| message.is_ok())
        {}
        std::future::pending::<()>().await;
    };
    let answered = async {
        tokio::select! {
            _ = send => {}
            () = read_on => {}
        }
    };
    let _unanswered = timeout(LAST_ANSWERS, answered).await;
    code
}

/// Copies the client's messages to the daemon. Ends when the client ends the WebSocket, or when it breaks a rule. The
/// returned code names the rule.
pub(crate) async fn receive(
    from_client: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
    to_daemon: socket::WriteHalf,
) -> Option<CloseCode> {
    let mut to_daemon = BufWriter::new(to_daemon);
    while let Some(message) = from_client.next().await {
        match message {
            Ok(Message::Text(text)) => {
                if pass_on(&mut to_daemon, &text).await.is_err() {
                    // The daemon has ended the connection. The other direction still sends the last answers, and then
                    // the end.
                    std::future::pending::<()>().await;
                }
            }
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
            Ok(Message::Binary(_)) => return Some(CloseCode::Unsupported),
            Ok(Message::Close(_)) => return None,
            Err(Error::Capacity(_)) => return Some(CloseCode::Size),
            Err(Error::Utf8(_)) => return Some(CloseCode::Invalid),
            Err(Error::Protocol(_)) => return Some(CloseCode::Protocol),
            Err(_) => return None,
        }
    }
    None
}

pub(crate) async fn pass_on(
    to_daemon: &mut BufWriter<socket::WriteHalf>,
    message: &str,
) -> io::Result<()> {
    let head = format!("{LENGTH}{}\r\n\r\n", message.len());
    to_daemon.write_all(head.as_bytes()).await?;
    to_daemon.write_all(message.as_bytes()).await?;
    to_daemon.flush().await
}

/// Copies the daemon's messages to the client until the daemon ends the connection. If the client is gone, messages are
/// dropped, so that the daemon can still run the requests that the client has sent.
pub(crate) async fn send(
    from_daemon: socket::ReadHalf,
    to_client: &mut (impl Sink<Message, Error = Error> + Unpin),
) -> io::Result<()> {
    let mut from_daemon = BufReader::new(from_daemon);
    while let Some(message) = next_message(&mut from_daemon).await? {
        let sent = match from_daemon.buffer().is_empty() {
            true => to_client.send(Message::Text(message)).await,
            // More messages have arrived, so this message is written together with the next.
            false => to_client.feed(Message::Text(message)).await,
        };
        if sent.is_err() {
            tokio::io::copy(&mut from_daemon, &mut tokio::io::sink()).await?;
        }
    }
    Ok(())
}

/// The next message of the daemon; `None` at the end of the connection.
pub(crate) async fn next_message(
    from_daemon: &mut BufReader<socket::ReadHalf>,
) -> io::Result<Option<Utf8Bytes>> {
    let mut head = String::new();
    if from_daemon.read_line(&mut head).await? == 0 {
        return Ok(None);
    }
    let length = head.strip_prefix(LENGTH);
    let length = length.and_then(|length| length.trim_ascii().parse().ok());
    let length: usize = length.ok_or(ErrorKind::InvalidData)?;
    from_daemon.read_line(&mut head).await?;
    let mut message = vec![0; length];
    from_daemon.read_exact(&mut message).await?;
    let message = Utf8Bytes::try_from(message).map_err(|_| ErrorKind::InvalidData)?;
    Ok(Some(message))
}
