//! A client of the WebSocket, like the page.

use crate::daemon;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

/// The times of this number of trivial calls in a new session, in seconds. The runtime file has address and token.
pub fn calls(runtime_file: &Path, session: &str, calls: usize) -> Result<Vec<f64>> {
    let info: Value = serde_json::from_slice(&std::fs::read(runtime_file)?)?;
    let member = |name: &str| info[name].as_str().context("a WebSocket");
    let host = member("webSocket")?.trim_start_matches("ws://");
    let host = host.trim_end_matches("/ws");
    let mut stream = TcpStream::connect(host)?;
    stream.set_nodelay(true)?;
    let mut output = BufReader::new(stream.try_clone()?);
    write!(
        stream,
        "GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )?;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if output.read_line(&mut line)? == 0 {
            bail!("the WebSocket is refused");
        }
    }
    let token = format!("{{\"token\":\"{}\"}}", member("token")?);
    stream.write_all(&text_frame(token.as_bytes())?)?;
    timed_calls(
        (session, calls),
        |line| Ok(stream.write_all(&text_frame(line)?)?),
        |message| read_frame(&mut output, message),
    )
}

/// A short text frame with an empty mask.
fn text_frame(text: &[u8]) -> Result<Vec<u8>> {
    let length = u8::try_from(text.len())?;
    if length > 125 {
        bail!("a longer message");
    }
    let mut frame = vec![0x81, 0x80 | length, 0, 0, 0, 0];
    frame.extend(text);
    Ok(frame)
}

/// Reads a frame of less than 64 KiB.
fn read_frame(output: &mut impl Read, message: &mut Vec<u8>) -> Result<()> {
    let mut head = [0; 2];
    output.read_exact(&mut head)?;
    let length = match head[1] {
        126 => {
            let mut length = [0; 2];
            output.read_exact(&mut length)?;
            u16::from_be_bytes(length)
        }
        short => u16::from(short),
    };
    message.resize(usize::from(length), 0);
    Ok(output.read_exact(message)?)
}

/// The times of `get_leaf` in a new session, each from the request to its response. `receive` puts the next message into an empty buffer.
fn timed_calls(
    (session, calls): (&str, usize),
    mut send: impl FnMut(&[u8]) -> Result<()>,
    mut receive: impl FnMut(&mut Vec<u8>) -> Result<()>,
) -> Result<Vec<f64>> {
    let mut message = Vec::new();
    let mut timed = |id: usize, method: &str, params: &str| -> Result<f64> {
        let began = Instant::now();
        send(daemon::request(id as u64, method, params).as_bytes())?;
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\"");
        loop {
            message.clear();
            receive(&mut message)?;
            if message.starts_with(head.as_bytes()) {
                return Ok(began.elapsed().as_secs_f64());
            }
            if message.is_empty() || memchr::memmem::find(&message, b"\"error\":").is_some() {
                bail!("{}", String::from_utf8_lossy(&message));
            }
        }
    };
    timed(0, "create_session", session)?;
    (1..=calls).map(|id| timed(id, "get_leaf", "{}")).collect()
}
