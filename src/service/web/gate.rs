//! Checks the origin of a request before its path is read.
//!
//! A page of another site can make a browser send requests to a loopback address. The owner of that site can also give
//! the loopback address a name (DNS rebinding). In both cases the browser names the other site in `Host` or in
//! `Origin`.

use axum::http::header::{HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, Uri};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The addresses by which clients can name this server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gate {
    bound: SocketAddr,
}

impl Gate {
    pub(super) fn new(bound: SocketAddr) -> Self {
        Self { bound }
    }

    /// The value of `Host` if the request may pass: it must be this server's address, and `Origin` must not name
    /// another site.
    pub(super) fn passed<'h>(&self, uri: &Uri, headers: &'h HeaderMap) -> Option<&'h str> {
        // A request to a proxy has the name of another server in its URI.
        if uri.authority().is_some() {
            return None;
        }
        let host = only(headers, HOST)?;
        if !self.is_own(host) {
            return None;
        }
        // Programs that are not browsers send no `Origin`.
        let is_same = |origin: &str| origin.strip_prefix("http://") == Some(host);
        match headers.contains_key(ORIGIN) {
            true => only(headers, ORIGIN).is_some_and(is_same).then_some(host),
            false => Some(host),
        }
    }

    /// Whether `host` is an address of this server with its port. If the server listens beyond loopback, any other
    /// address may belong to this machine. It is safe to accept an address, since DNS rebinding needs a name.
    fn is_own(&self, host: &str) -> bool {
        let (ip, port) = (self.bound.ip(), self.bound.port());
        if host == format!("localhost:{port}") {
            return true;
        }
        let Ok(named) = host.parse::<SocketAddr>() else {
            return false;
        };
        // A browser writes an address only in its canonical form.
        let is_canonical = named.to_string() == host;
        let is_known = match named.ip() {
            IpAddr::V4(Ipv4Addr::LOCALHOST) | IpAddr::V6(Ipv6Addr::LOCALHOST) => true,
            other => other == ip || !ip.is_loopback(),
        };
        is_canonical && is_known && named.port() == port
    }
}

/// The value of a header that occurs exactly once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    match values.next() {
        Some(_) => None,
        None => value.to_str().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(bound: &str, headers: &[(&str, &str)]) -> bool {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        let gate = Gate::new(bound.parse().unwrap());
        gate.passed(&Uri::from_static("/"), &map).is_some()
    }

    fn host_passes(bound: &str, host: &str) -> bool {
        passes(bound, &[("host", host)])
    }

    #[test]
    fn a_host_is_a_loopback_address_with_the_port() {
        for host in ["127.0.0.1:4444", "localhost:4444", "[::1]:4444"] {
            assert!(host_passes("127.0.0.1:4444", host), "{host}");
        }
        for host in [
            "",
            "127.0.0.1",
            "127.0.0.1:",
            "127.0.0.1:444",
            "127.0.0.1:44444",
            "127.0.0.1:04444",
            "localhost",
            "LOCALHOST:4444",
            "localhost.:4444",
            "localhost:4444.evil.com",
            "evil.com:4444",
            "127.0.0.1.evil.com:4444",
            "127.0.0.2:4444",
            "0.0.0.0:4444",
            "[::]:4444",
            "[0:0::1]:4444",
            "[::ffff:127.0.0.1]:4444",
            "::1:4444",
            "user@127.0.0.1:4444",
            "127.0.0.1:4444/",
            "127.1:4444",
            "2130706433:4444",
            " 127.0.0.1:4444",
        ] {
            assert!(!host_passes("127.0.0.1:4444", host), "{host}");
        }
        assert!(host_passes("127.0.0.2:1", "127.0.0.2:1"));
    }

    #[test]
    fn beyond_loopback_a_host_is_any_address_and_no_name() {
        for host in [
            "192.168.1.7:80",
            "[fe80::1]:80",
            "localhost:80",
            "127.0.0.1:80",
        ] {
            assert!(host_passes("0.0.0.0:80", host), "{host}");
        }
        for host in ["rebound.example:80", "192.168.1.7:81", "192.168.1.7"] {
            assert!(!host_passes("0.0.0.0:80", host), "{host}");
        }
    }

    #[test]
    fn an_origin_is_the_host_or_absent() {
        let with = |origin: &str| {
            let host = ("host", "localhost:1");
            passes("127.0.0.1:1", &[host, ("origin", origin)])
        };
        assert!(with("http://localhost:1"));
        for origin in [
            "null",
            "",
            "http://127.0.0.1:1",
            "https://localhost:1",
            "http://localhost:2",
            "http://localhost",
            "http://localhost:1/",
            "HTTP://localhost:1",
            "http://evil.com",
            "file://",
            "http://localhost:1 http://evil.com",
        ] {
            assert!(!with(origin), "{origin}");
        }
    }

    #[test]
    fn hosts_and_origins_are_not_repeated_or_missing() {
        let (host, origin) = (("host", "localhost:1"), ("origin", "http://localhost:1"));
        let passes = |headers: &[(&str, &str)]| passes("127.0.0.1:1", headers);
        assert!(passes(&[host, origin]));
        assert!(!passes(&[]));
        assert!(!passes(&[origin]));
        assert!(!passes(&[host, host]));
        assert!(!passes(&[host, origin, origin]));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "localhost:1".parse().unwrap());
        let uri = Uri::from_static("http://localhost:1/");
        let gate = Gate::new("127.0.0.1:1".parse().unwrap());
        assert!(gate.passed(&uri, &headers).is_none(), "as to a proxy");
    }
}
