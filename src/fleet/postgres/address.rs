//! The address of a database, and the settings of the connections to its servers.

use super::tls::Tls;
use crate::settings::PostgresSettings;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use treelined_core::error::{Error, Kind, Result};

/// How long it may take to connect to one server.
const CONNECT: Duration = Duration::from_secs(3);
/// A connection is lost if its server does not acknowledge bytes for this time.
const SILENCE: Duration = Duration::from_secs(10);
const PORT: u16 = 5432;

/// The address of the database and the settings of its TLS.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: Tls,
}

impl Address {
    pub(super) fn of(settings: &PostgresSettings) -> Result<Self> {
        let parsed = settings.url.parse::<Config>();
        let mut config = parsed.map_err(|error| {
            // The text of the error may quote the address, and the address has the password.
            let _ = error;
            let why =
                "the address of the database is not postgres://USER:PASSWORD@HOST:PORT/DATABASE";
            Error::new(Kind::LogMisconfigured, why)
        })?;
        if config.get_dbname().is_none() {
            let why =
                "the address of the database has no name of a database: postgres://HOST/DATABASE";
            return Err(Error::new(Kind::LogMisconfigured, why));
        }
        config
            .connect_timeout(CONNECT)
            .tcp_user_timeout(SILENCE)
            .keepalives_idle(SILENCE)
            .application_name("treelined");
        let is_any = config.get_target_session_attrs() == TargetSessionAttrs::Any;
        if config.get_hosts().len() > 1 && is_any {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        Ok(Self {
            config,
            tls: Tls::of(settings)?,
        })
    }

    /// The name and the port, `HOST:PORT`, of each server.
    pub(super) fn hosts(&self) -> Vec<String> {
        let named = self.hosts_and_ports().map(|(host, port)| match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            #[allow(unreachable_patterns, reason = "some systems have sockets with a path")]
            other => format!("{other:?}"),
        });
        named.collect()
    }

    /// The name and the port of each server.
    pub(super) fn hosts_and_ports(&self) -> impl Iterator<Item = (&Host, u16)> {
        let ports = self.config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
        let hosts = self.config.get_hosts().iter().enumerate();
        hosts.map(move |(at, host)| (host, port(at)))
    }

    /// Whether connections without TLS are allowed.
    pub(super) fn may_be_plain(&self) -> bool {
        self.config.get_ssl_mode() != SslMode::Require
    }
}
