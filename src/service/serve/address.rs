//! The addresses of `--listen`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// An address to which clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// The stdin and stdout of this process.
    Stdio,
    /// A socket at this path, or at the path of the shared daemon.
    Unix(Option<PathBuf>),
    /// The page and the WebSocket at this address, or at an address that the daemon picks.
    WebSocket(Option<SocketAddr>),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        match (kind, rest) {
            ("stdio", "") => Ok(Self::Stdio),
            ("unix", "") if text.ends_with(':') => Err("a path is missing: unix:PATH".to_owned()),
            ("unix", "") => Ok(Self::Unix(None)),
            ("unix", path) => Ok(Self::Unix(Some(PathBuf::from(path)))),
            ("ws", "") if !text.ends_with(':') => Ok(Self::WebSocket(None)),
            ("ws", address) => match address.parse() {
                Ok(address) => Ok(Self::WebSocket(Some(address))),
                Err(_) => Err("must be an address and a port: ws:127.0.0.1:PORT".to_owned()),
            },
            _ => Err("must be stdio, unix, unix:PATH, ws or ws:127.0.0.1:PORT".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_stdio_paths_of_sockets_and_ports() {
        let parse = |text: &str| text.parse::<ListenAddress>();
        assert_eq!(parse("stdio"), Ok(ListenAddress::Stdio));
        let path = Some(PathBuf::from("/a:b"));
        assert_eq!(parse("unix:/a:b"), Ok(ListenAddress::Unix(path)));
        assert_eq!(parse("unix"), Ok(ListenAddress::Unix(None)));
        assert_eq!(parse("ws"), Ok(ListenAddress::WebSocket(None)));
        for address in ["127.0.0.1:0", "[::1]:4444"] {
            let parsed = Some(address.parse().unwrap());
            let ws = parse(&format!("ws:{address}"));
            assert_eq!(ws, Ok(ListenAddress::WebSocket(parsed)));
        }
        for wrong in [
            "",
            "unix:",
            "stdio:x",
            "ws:",
            "ws:1",
            "ws:localhost:1",
            "ws:127.0.0.1",
            "tcp:1",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
