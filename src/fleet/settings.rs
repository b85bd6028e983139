//! The servers of a team, and its stream (fleet.md).

use std::path::PathBuf;

/// The default name of the stream.
pub const STREAM: &str = "treelined";
/// The default number of copies of each message.
pub const REPLICAS: u64 = 3;

/// The servers of a log on NATS JetStream, and its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsSettings {
    /// Addresses of servers of one cluster: `nats://HOST:PORT` or `tls://HOST:PORT`.
    pub servers: Vec<String>,
    /// A file with a JWT and its key, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// A file with the certificates that servers are checked with, besides those of the system.
    pub ca: Option<PathBuf>,
    /// Files with the certificate of the client and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Whether connections without TLS are refused.
    pub needs_tls: bool,
    pub stream: String,
    /// The copies of each message that a stream needs.
    pub replicas: u64,
    /// Whether a daemon writes to its files while no server can be reached, and publishes later.
    pub queues: bool,
}

impl NatsSettings {
    /// The settings for these servers, with the defaults for the rest.
    pub fn of_servers(servers: Vec<String>) -> Self {
        Self {
            servers,
            credentials: None,
            ca: None,
            certificate: None,
            needs_tls: false,
            stream: STREAM.to_owned(),
            replicas: REPLICAS,
            queues: false,
        }
    }

    /// The same, with other servers.
    pub fn at(self, servers: Vec<String>) -> Self {
        Self { servers, ..self }
    }

    /// The same, with some of its servers. Each has the user of the settings.
    pub fn only(self, keep: &[bool]) -> Self {
        let (addresses, user) = self.addresses();
        let user = user.map(|user| match user {
            (name, Some(password)) => format!("{name}:{password}@"),
            (token, None) => format!("{token}@"),
        });
        let user = user.unwrap_or_default();
        let kept = addresses.iter().zip(keep).filter(|(_, keep)| **keep);
        let with_user = kept.map(|(address, _)| match address.split_once("://") {
            Some((scheme, host)) => format!("{scheme}://{user}{host}"),
            None => format!("{user}{address}"),
        });
        let servers = with_user.collect();
        self.at(servers)
    }

    /// The addresses without what stands before their hosts, and a user with a password, or a token alone. The first
    /// server with one gives it.
    pub fn addresses(&self) -> (Vec<String>, Option<(String, Option<String>)>) {
        let mut user = None;
        let plain = self.servers.iter().map(|server| {
            let start = server.find("://").map_or(0, |at| at + 3);
            let (scheme, rest) = server.split_at(start);
            let Some((before, host)) = rest.rsplit_once('@') else {
                return server.clone();
            };
            user.get_or_insert_with(|| match before.split_once(':') {
                Some((name, password)) => (name.to_owned(), Some(password.to_owned())),
                None => (before.to_owned(), None),
            });
            format!("{scheme}{host}")
        });
        (plain.collect(), user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address with the user may be the one of a server that is away.
    #[test]
    fn some_of_the_servers_keep_the_user_of_all() {
        let of = |servers: &[&str], keep: &[bool]| {
            let servers = servers.iter().map(|it| (*it).to_owned()).collect();
            NatsSettings::of_servers(servers).only(keep).servers
        };
        let servers = ["nats://a:b@n1:4222", "tls://n2", "n3"];
        assert_eq!(
            of(&servers, &[false, true, true]),
            ["tls://a:b@n2", "a:b@n3"]
        );
        assert_eq!(of(&["nats://token@n1"], &[true]), ["nats://token@n1"]);
        assert_eq!(of(&["n1", "n2"], &[true, false]), ["n1"]);
    }
}
