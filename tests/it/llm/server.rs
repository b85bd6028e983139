//! A stand-in for a model provider, and its responses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::net::{AddressFamily, SocketType};

use crate::harness::*;

/// A port that refuses connections: a socket is bound to it, so that no other program takes it, and does not listen.
pub(super) fn refusing_port() -> (OwnedFd, u16) {
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = rustix::net::socket(family, kind, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = rustix::net::getsockname(&socket).unwrap();
    let port = SocketAddrV4::try_from(address).unwrap().port();
    (socket, port)
}

/// A request that the server has received.
pub(super) struct Request {
    /// The line `POST /path HTTP/1.1` and the headers.
    pub(super) head: String,
    pub(super) body: Json,
}

/// A server that reads a request from each connection, and then gives the connection to `serve`.
pub(super) struct Server {
    pub(super) port: u16,
    pub(super) requests: Receiver<Request>,
    pub(super) connections: Arc<AtomicUsize>,
}

impl Server {
    pub(super) fn start(serve: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, requests) = channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let (serve, count) = (Arc::new(serve), connections.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (serve, tell, count) = (serve.clone(), tell.clone(), count.clone());
                thread::spawn(move || {
                    if let Some(request) = read_request(&mut stream) {
                        let number = count.fetch_add(1, Ordering::SeqCst);
                        let _ = tell.send(request);
                        serve(number, &mut stream);
                    }
                });
            }
        });
        Server {
            port,
            requests,
            connections,
        }
    }

    /// A server that sends the same bytes to every client and closes the connection.
    pub(super) fn says(bytes: Vec<u8>) -> Server {
        Server::start(move |_, stream| {
            let _ = stream.write_all(&bytes);
        })
    }

    pub(super) fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

pub(super) fn read_request(stream: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap();
    Some(Request { head, body })
}

/// A stream of events. If its length is sent, a client notices that the stream is cut.
pub(super) fn stream_response(body: &str, with_length: bool) -> Vec<u8> {
    let length = match with_length {
        true => format!("content-length: {}\r\n", body.len()),
        false => "connection: close\r\n".to_owned(),
    };
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{length}\r\n{body}").into_bytes()
}

pub(super) fn status_response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes()
}

pub(super) fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(7)
        .map(|piece| piece.iter().collect())
        .collect()
}

pub(super) fn anthropic_events(text: &str, stop: &str) -> String {
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": {
            "input_tokens": 10, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4, "output_tokens": 1,
        }}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
        json!({"type": "something_new"}),
    ];
    for piece in pieces(text) {
        let delta = json!({"type": "text_delta", "text": piece});
        events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    }
    events.push(json!({"type": "content_block_stop", "index": 0}));
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20}}));
    events.push(json!({"type": "message_stop"}));
    let event = |event: &Json| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    };
    events.iter().map(event).collect()
}

pub(super) fn openai_events(text: &str, finish: &str) -> String {
    let mut chunks = vec![json!({"choices": [{"delta": {"role": "assistant", "content": ""}}]})];
    for piece in pieces(text) {
        chunks.push(json!({"choices": [{"delta": {"content": piece}, "finish_reason": null}]}));
    }
    chunks.push(json!({"choices": [{"delta": {}, "finish_reason": finish}]}));
    chunks.push(json!({"choices": [], "usage": {
        "prompt_tokens": 17, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 7},
    }}));
    let mut text: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    text.push_str("data: [DONE]\n\n");
    text
}
