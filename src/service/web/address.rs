//! The address of the page and the WebSocket, and the port that serves them.

use super::saved::{SavedAddress, WebFolder};
use super::token::Token;
use anyhow::Context;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use treelined_core::id::Source;
use treelined_files::clock::SystemSource;

/// The address of the page and the WebSocket, with the token that a client needs.
#[derive(Debug, Clone)]
pub struct WebAddress {
    bound: SocketAddr,
    pub token: Token,
}

impl WebAddress {
    pub(super) fn new(bound: SocketAddr, token: Token) -> Self {
        Self { bound, token }
    }

    /// The URL of the page, without the token.
    pub fn page(&self) -> String {
        format!("http://{}/", self.reached())
    }

    /// The URL of the WebSocket.
    pub(crate) fn web_socket(&self) -> String {
        format!("ws://{}/ws", self.reached())
    }

    pub(super) fn bound(&self) -> SocketAddr {
        self.bound
    }

    /// The address to which a client on this machine connects.
    fn reached(&self) -> SocketAddr {
        let mut reached = self.bound;
        if reached.ip().is_unspecified() {
            reached.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        reached
    }
}

/// A port to which clients connect.
#[derive(Debug)]
pub struct WebListener {
    pub(super) listener: TcpListener,
    pub address: WebAddress,
}

impl WebListener {
    /// Listens on this address. Without an address, or with port 0, the daemon uses the port of its last start in this
    /// session directory. If this port is too old or taken, the daemon picks a free port.
    pub fn bind(session_dir: &Path, wanted: Option<SocketAddr>) -> anyhow::Result<Self> {
        let folder = WebFolder::open(session_dir)?;
        let now_ms = SystemSource.now_ms();
        let saved = folder.read(now_ms);
        let ip = wanted.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |wanted| wanted.ip());
        let fixed = wanted.map_or(0, |wanted| wanted.port());
        let same = saved.as_ref().filter(|_| fixed == 0);
        let same = same.and_then(|saved| TcpListener::bind((ip, saved.port)).ok());
        let listener = match same {
            Some(listener) => listener,
            None => TcpListener::bind((ip, fixed))
                .with_context(|| format!("listen on {}", SocketAddr::new(ip, fixed)))?,
        };
        let bound = listener.local_addr().context("ask for the own port")?;
        let token = match saved.filter(|saved| saved.port == bound.port()) {
            Some(saved) => saved.token,
            None => {
                let token = Token::random()?;
                let saved = SavedAddress {
                    port: bound.port(),
                    token: token.clone(),
                };
                folder.write(&saved, now_ms)?;
                token
            }
        };
        Ok(Self {
            listener,
            address: WebAddress::new(bound, token),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An open page may give its token to the program that has taken the port, so the token must not be used again.
    #[test]
    fn a_taken_port_is_replaced_with_its_token() {
        let sessions = tempfile::tempdir().unwrap();
        let bind = |wanted: Option<&str>| {
            let wanted = wanted.map(|wanted| wanted.parse().unwrap());
            WebListener::bind(sessions.path(), wanted)
        };
        let first = bind(None).unwrap();
        let first_address = first.address.clone();
        drop(first);
        let again = bind(Some("127.0.0.1:0")).unwrap();
        assert_eq!(again.address.bound, first_address.bound, "the same port");
        assert!(again.address.token.is(first_address.token.expose()));
        let other = bind(None).unwrap();
        assert_ne!(other.address.bound, first_address.bound);
        assert!(!other.address.token.is(first_address.token.expose()));
        let taken = bind(Some(&first_address.bound.to_string())).unwrap_err();
        assert!(format!("{taken:#}").starts_with("listen on 127.0.0.1:"));
        drop((again, other));
        let fixed = bind(Some(&first_address.bound.to_string())).unwrap();
        assert!(!fixed.address.token.is(first_address.token.expose()));
    }
}
