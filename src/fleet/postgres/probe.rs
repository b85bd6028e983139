//! Checks which servers of the settings answer now. All servers are asked at the same time, for a second.

use super::address::Address;
use crate::own_runtime::OwnRuntime;
use crate::settings::PostgresSettings;
use futures_util::future::join_all;
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::config::Host;
use treelined_core::error::Result;

/// How long a server may take to answer.
const PROBE: Duration = Duration::from_secs(1);
/// Asks a server whether it has TLS. Each server answers with one byte, before it knows a user.
const ASK_FOR_TLS: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// A server of the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedServer {
    /// `HOST:PORT`.
    pub address: String,
    pub answers: bool,
}

/// Such as `10.0.0.2:5432 does not answer`.
impl fmt::Display for ProbedServer {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answers = if self.answers {
            "answers"
        } else {
            "does not answer"
        };
        write!(to, "{} {answers}", self.address)
    }
}

/// Asks all servers. The result has the order of the settings.
pub fn probe(settings: &PostgresSettings) -> Result<Vec<ProbedServer>> {
    let address = Address::of(settings)?;
    let runtime = OwnRuntime::new("probe")?;
    let asking = address.hosts_and_ports().map(|(host, port)| async move {
        let asked = tokio::time::timeout(PROBE, ask(host, port)).await;
        asked.is_ok_and(|answer| answer.is_ok())
    });
    let answers = runtime.block_on(join_all(asking));
    let servers = address.hosts().into_iter().zip(answers);
    Ok(servers
        .map(|(address, answers)| ProbedServer { address, answers })
        .collect())
}

async fn ask(host: &Host, port: u16) -> io::Result<()> {
    let Host::Tcp(name) = host else {
        // The caller then connects, which shows whether a server listens at a path.
        return Ok(());
    };
    let mut stream = TcpStream::connect((name.as_str(), port)).await?;
    stream.write_all(&ASK_FOR_TLS).await?;
    stream.read_u8().await.map(drop)
}
