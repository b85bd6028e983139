//! The servers of a team (fleet.md).

use std::path::PathBuf;
use std::time::Duration;

/// The default name of the stream.
pub const STREAM: &str = "treelined";
/// The default number of copies of each message.
pub const REPLICAS: u64 = 3;

/// The servers of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TeamSettings {
    Nats(NatsSettings),
    Postgres(PostgresSettings),
}

impl TeamSettings {
    /// The name of the stream or of the database in the settings.
    pub fn name(&self) -> &str {
        match self {
            Self::Nats(nats) => &nats.stream,
            Self::Postgres(postgres) => postgres.database(),
        }
    }

    /// Whether a daemon writes to its files while no server can be reached, and publishes the lines later.
    pub fn queues(&self) -> bool {
        match self {
            Self::Nats(nats) => nats.queues,
            Self::Postgres(postgres) => postgres.queues,
        }
    }

    /// When sessions without activity are closed and erased; `None` for never.
    pub fn retention(&self) -> Option<Retention> {
        match self {
            Self::Nats(nats) => nats.retention,
            Self::Postgres(postgres) => postgres.retention,
        }
    }
}

/// When sessions without activity are closed and erased (fleet.md "Retention").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// A session whose last line is older is closed.
    pub keep: Duration,
    /// A session that has been deleted for longer than this is erased.
    pub erase: Option<Duration>,
}

/// The settings of a team on PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresSettings {
    /// The address of the database, `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Commas join several hosts.
    pub url: String,
    /// A file with certificates. The certificates of servers are checked with these certificates, and with the
    /// certificates of the system.
    pub ca: Option<PathBuf>,
    /// The file with the client's certificate, and the file with its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Whether a daemon writes to its files while no server can be reached, and publishes the lines later.
    pub queues: bool,
    /// When sessions without activity are closed and erased; `None` for never.
    pub retention: Option<Retention>,
}

impl PostgresSettings {
    /// The settings for this address. All others have their defaults.
    pub fn of_url(url: String) -> Self {
        Self {
            url,
            ca: None,
            certificate: None,
            queues: false,
            retention: None,
        }
    }

    /// Whether an address is the address of a database of PostgreSQL.
    pub fn is_url(address: &str) -> bool {
        address.starts_with("postgres://") || address.starts_with("postgresql://")
    }

    /// The name of the database in the address.
    pub fn database(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let rest = rest.split('?').next().unwrap_or_default();
        // A password may have a slash, so the hosts begin after the last `@`.
        let hosts = rest.rsplit_once('@').map_or(rest, |(_, hosts)| hosts);
        hosts.split_once('/').map_or("", |(_, database)| database)
    }
}

/// The settings of a team on NATS JetStream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsSettings {
    /// The addresses of servers of one cluster: `nats://HOST:PORT` or `tls://HOST:PORT`.
    pub servers: Vec<String>,
    /// A file with a JWT and its key, in the format of `nsc`.
    pub credentials: Option<PathBuf>,
    /// A file with certificates. The certificates of servers are checked with these certificates, and with the
    /// certificates of the system.
    pub ca: Option<PathBuf>,
    /// The file with the client's certificate, and the file with its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Whether connections without TLS are refused.
    pub needs_tls: bool,
    pub stream: String,
    /// The number of copies of each message that the stream must have.
    pub replicas: u64,
    /// Whether a daemon writes to its files while no server can be reached, and publishes the lines later.
    pub queues: bool,
    /// When sessions without activity are closed; `None` for never.
    pub retention: Option<Retention>,
}

impl NatsSettings {
    /// The name of the stream with the rows of the team's sessions.
    pub fn rows_stream(&self) -> String {
        format!("{}-rows", self.stream)
    }

    /// The settings for these servers. All others have their defaults.
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
            retention: None,
        }
    }

    /// These settings with other servers.
    pub fn at(self, servers: Vec<String>) -> Self {
        Self { servers, ..self }
    }

    /// These settings with only some of the servers. Each server gets the user of the settings.
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

    /// The addresses without users and passwords, and the user. The user has a password, or is only a token. The user
    /// is from the first address that has one.
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

    #[test]
    fn an_address_names_its_database() {
        for (url, expected) in [
            (
                "postgres://alice:p/w@db1,db2:5433/team?sslmode=require",
                "team",
            ),
            ("postgresql://db/team", "team"),
            ("postgres://db", ""),
            ("db", ""),
        ] {
            let settings = PostgresSettings::of_url(url.to_owned());
            assert_eq!(settings.database(), expected, "{url}");
        }
        assert!(PostgresSettings::is_url("postgres://db"));
        assert!(!PostgresSettings::is_url("nats://db"));
    }

    /// The only address with the user may be the address of a server that does not answer.
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
