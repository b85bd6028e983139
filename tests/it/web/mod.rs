//! The page and the WebSocket. protocol.md §17.

mod clients;
mod gate;
mod limits;
mod refusals;
mod starting;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::*;

/// The port and the token in a daemon's runtime file. Waits until the file has them.
#[track_caller]
fn address_in(runtime_file: &PathBuf) -> (u16, String) {
    let mut found = None;
    eventually("the daemon has a WebSocket", || {
        let text = fs::read_to_string(runtime_file).unwrap_or_default();
        let info: Json = serde_json::from_str(&text).unwrap_or_default();
        let address = info["webSocket"].as_str().zip(info["token"].as_str());
        found = address.map(|(url, token)| (port_of(url), token.to_owned()));
        found.is_some()
    });
    found.unwrap()
}

/// The port of the URL of a WebSocket.
#[track_caller]
fn port_of(url: &str) -> u16 {
    let rest = url.strip_prefix("ws://127.0.0.1:").expect(url);
    rest.strip_suffix("/ws").expect(url).parse().unwrap()
}

/// A daemon with a Unix socket and a WebSocket.
struct WebDaemon {
    shared: SharedDaemon,
    port: u16,
    token: String,
}

impl WebDaemon {
    #[track_caller]
    fn start() -> WebDaemon {
        WebDaemon::start_with(&[])
    }

    #[track_caller]
    fn start_with(args: &[&str]) -> WebDaemon {
        WebDaemon::start_in(&Home::new(), args)
    }

    #[track_caller]
    fn start_in(home: &Arc<Home>, args: &[&str]) -> WebDaemon {
        let args = [&["--listen", "ws:127.0.0.1:0"], args].concat();
        let shared = SharedDaemon::start_in(home, &args, &[]);
        let (port, token) = address_in(&shared.socket.with_extension("json"));
        WebDaemon {
            shared,
            port,
            token,
        }
    }

    /// A daemon whose log may contain refusals.
    #[track_caller]
    fn that_refuses() -> WebDaemon {
        let mut daemon = WebDaemon::start();
        daemon.shared.may_warn = true;
        daemon
    }

    /// A client of the WebSocket that has sent `initialize`.
    #[track_caller]
    fn client(&self, name: &str, capabilities: Json) -> Daemon {
        let home = &self.shared.home;
        let mut client = Daemon::over_web_socket(home, self.port, &self.token);
        client.ignore_bookkeeping();
        client.initialize(json!({
            "protocolVersion": 1,
            "clientInfo": {"name": name},
            "cwd": home.cwd(),
            "capabilities": capabilities,
        }));
        client
    }

    #[track_caller]
    fn socket(&self) -> WebSocket {
        WebSocket::with_token(self.port, &self.token)
    }

    /// Fails unless a new client is answered.
    #[track_caller]
    fn check_serves(&self) {
        let mut socket = self.socket();
        socket.frame(TEXT, LIST);
        assert!(socket.message()["result"]["sessions"].is_array());
    }
}

const LIST: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"list_sessions"}"#;
