//! A client of the port for the page. It writes HTTP requests and frames of a WebSocket (RFC 6455) by hand, so that
//! they can be wrong.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// The first byte of each unfragmented frame.
pub(crate) const TEXT: u8 = 0x81;
pub(crate) const BINARY: u8 = 0x82;
pub(crate) const CLOSE: u8 = 0x88;
pub(crate) const PING: u8 = 0x89;
pub(crate) const PONG: u8 = 0x8a;

const MASK: [u8; 4] = [0x5a, 0x01, 0xff, 0x80];

/// Sends a request, which may be malformed, and returns the whole response; empty if there is none.
pub(crate) fn http(port: u16, request: &str) -> String {
    let mut stream = connect(port);
    // The server may have closed the connection.
    let _ = stream.write_all(request.as_bytes());
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    String::from_utf8(response).unwrap()
}

pub(crate) fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(super::DEADLINE)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// The request that opens a WebSocket, with these headers in addition to the required ones.
pub(crate) fn upgrade(port: u16, headers: &str) -> String {
    format!(
        "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    )
}

/// An open WebSocket. Dropping it closes the socket without a close frame.
pub(crate) struct WebSocket {
    pub stream: TcpStream,
}

impl WebSocket {
    /// Opens a WebSocket without sending the token.
    #[track_caller]
    pub(crate) fn open(port: u16) -> WebSocket {
        let mut stream = connect(port);
        stream.write_all(upgrade(port, "").as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        // The expected answer to the key above, from RFC 6455 section 1.3.
        assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="));
        WebSocket { stream }
    }

    /// Opens a WebSocket, and sends the token.
    #[track_caller]
    pub(crate) fn with_token(port: u16, token: &str) -> WebSocket {
        let mut socket = WebSocket::open(port);
        socket.frame(TEXT, format!("{{\"token\":\"{token}\"}}").as_bytes());
        socket
    }

    /// Sends a frame. If the server has closed the connection, the test fails because an answer is missing.
    pub(crate) fn frame(&mut self, first: u8, payload: &[u8]) {
        let _ = self.stream.write_all(&frame(first, payload));
    }

    /// The next frame: its first byte and its payload; `None` at the end.
    pub(crate) fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        receive(&mut self.stream)
    }

    /// The next message, which is a response or a notification.
    #[track_caller]
    pub(crate) fn message(&mut self) -> super::Json {
        let (first, payload) = self.receive().expect("a message");
        assert_eq!(first, TEXT);
        serde_json::from_slice(&payload).unwrap()
    }

    /// Reads to the end, and returns the code of the close frame, which must have no reason; `None` if there is no
    /// close frame.
    #[track_caller]
    pub(crate) fn close_code(&mut self) -> Option<u16> {
        loop {
            let (first, payload) = self.receive()?;
            if first == CLOSE {
                assert_eq!(self.receive(), None, "nothing follows");
                let code = payload.try_into().expect("a code and no reason");
                return Some(u16::from_be_bytes(code));
            }
        }
    }
}

/// A frame as a client sends it, masked.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..126 => frame.push(0x80 | short as u8),
        middle @ 126..65536 => {
            frame.push(0x80 | 126);
            frame.extend((middle as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    let masked = payload.iter().zip(MASK.iter().cycle());
    frame.extend(masked.map(|(byte, mask)| byte ^ mask));
    frame
}

fn receive(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).ok()?;
    let length = match head[1] {
        126 => {
            let mut length = [0; 2];
            stream.read_exact(&mut length).ok()?;
            u64::from(u16::from_be_bytes(length))
        }
        127 => {
            let mut length = [0; 8];
            stream.read_exact(&mut length).ok()?;
            u64::from_be_bytes(length)
        }
        short => u64::from(short),
    };
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).ok()?;
    Some((head[0], payload))
}

/// Sends lines as text frames.
pub(super) struct Lines {
    pub stream: TcpStream,
    pub unfinished: Vec<u8>,
}

impl Lines {
    /// Ends the WebSocket.
    pub(super) fn end(&self) {
        let _ = (&self.stream).write_all(&frame(CLOSE, &1000_u16.to_be_bytes()));
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unfinished.extend(bytes);
        while let Some(end) = memchr::memchr(b'\n', &self.unfinished) {
            let rest = self.unfinished.split_off(end + 1);
            let line = std::mem::replace(&mut self.unfinished, rest);
            self.stream.write_all(&frame(TEXT, &line[..end]))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads text frames as lines.
pub(super) struct Messages {
    pub stream: TcpStream,
    /// The bytes of the last message that were not read yet.
    pub left: Vec<u8>,
}

impl Read for Messages {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.is_empty() {
            self.stream.set_read_timeout(None::<Duration>)?;
            match receive(&mut self.stream) {
                Some((TEXT, message)) => self.left = [&message[..], b"\n"].concat(),
                // The connection is closed.
                _ => {
                    let _ = self.stream.shutdown(Shutdown::Both);
                    return Ok(0);
                }
            }
        }
        let count = buffer.len().min(self.left.len());
        buffer[..count].copy_from_slice(&self.left[..count]);
        self.left.drain(..count);
        Ok(count)
    }
}
