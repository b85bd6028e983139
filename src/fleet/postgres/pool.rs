//! The connections to a database. Each connection has one request at a time, since a request that waits for a row or a
//! standby would make later requests on the connection wait too.

use super::address::Address;
use super::refusal::{Failure, away, of_connection, of_request};
use crate::own_runtime::OwnRuntime;
use crate::settings::PostgresSettings;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Connection, Notification, Row, Socket};
use treelined_core::error::Result;
use treelined_files::lock::lock;

/// The most connections at the same time. The connection for notifications does not count.
const MOST: usize = 16;
/// How long it may take to connect, for all servers together.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer may take, with all attempts.
pub(super) const ANSWER: Duration = Duration::from_secs(10);
/// How long one attempt may take.
pub(super) const ATTEMPT: Duration = Duration::from_secs(5);
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// The most notifications that wait to be read.
const WAITING: usize = 1024;

/// The params of a statement, with their types.
pub(super) type Params<'p> = &'p [(&'p (dyn ToSql + Sync), Type)];

/// The connections to a database.
#[derive(Clone)]
pub(super) struct Pool(Arc<PoolParts>);

struct PoolParts {
    address: Address,
    runtime: Handle,
    idle: Mutex<Vec<Connected>>,
    room: Arc<Semaphore>,
}

/// A connection.
pub(super) struct Connected {
    pub(super) client: Client,
    /// Whether the server has reported that a commit did not wait for its standbys.
    is_cut_short: Arc<AtomicBool>,
}

/// The answer of the server, and whether its commit did not wait for the standbys.
pub(super) struct Answer {
    pub(super) rows: Vec<Row>,
    pub(super) is_cut_short: bool,
}

impl Pool {
    pub(super) fn new(address: Address, runtime: Handle) -> Self {
        Self(Arc::new(PoolParts {
            address,
            runtime,
            idle: Mutex::default(),
            room: Arc::new(Semaphore::new(MOST)),
        }))
    }

    /// Sends one statement, and waits for its end until the moment `until`. The statement has no name, so that a
    /// transaction pooler can forward it. If the request is given up, its connection is closed.
    pub(super) async fn ask(
        &self,
        statement: &str,
        params: Params<'_>,
        until: Instant,
    ) -> std::result::Result<Answer, Failure> {
        let asking = async {
            let (connected, permit) = self.connected().await?;
            let answered = connected.client.query_typed(statement, params).await;
            let rows = answered.map_err(|error| of_request(&error))?;
            let is_cut_short = connected.is_cut_short.swap(false, Ordering::Relaxed);
            self.give_back(connected, permit);
            Ok(Answer { rows, is_cut_short })
        };
        let asked = tokio::time::timeout_at(until.into(), asking).await;
        asked.unwrap_or_else(|_| {
            Err(Failure::Later {
                may_be_done: true,
                why: away("the database gave no answer in time"),
            })
        })
    }

    /// Makes a connection for later requests, with one attempt.
    pub(super) async fn reach(&self) -> Result<()> {
        let (connected, permit) = self.connected().await.map_err(Failure::error)?;
        self.give_back(connected, permit);
        Ok(())
    }

    /// A connection that no other request uses.
    async fn connected(
        &self,
    ) -> std::result::Result<(Connected, Option<OwnedSemaphorePermit>), Failure> {
        // The semaphore is never closed, so this does not fail.
        let permit = Arc::clone(&self.0.room).acquire_owned().await.ok();
        let idle = || lock(&self.0.idle).pop();
        while let Some(connected) = idle() {
            if !connected.client.is_closed() {
                return Ok((connected, permit));
            }
        }
        let connected = self.connect(None).await?;
        Ok((connected, permit))
    }

    fn give_back(&self, connected: Connected, permit: Option<OwnedSemaphorePermit>) {
        lock(&self.0.idle).push(connected);
        drop(permit);
    }

    /// Makes a connection on the threads of the pool. Its notifications go to `notices`.
    async fn connect(
        &self,
        notices: Option<mpsc::Sender<Notification>>,
    ) -> std::result::Result<Connected, Failure> {
        let Address { config, tls } = self.0.address.clone();
        let connecting = self.0.runtime.spawn(async move {
            let made = tokio::time::timeout(CONNECT, config.connect(tls)).await;
            let (client, connection) = match made {
                Ok(made) => made.map_err(|error| of_connection(&error))?,
                Err(_) => {
                    let why = away("no server of the database was connected in time");
                    return Err(Failure::Later {
                        may_be_done: false,
                        why,
                    });
                }
            };
            let is_cut_short = Arc::<AtomicBool>::default();
            tokio::spawn(serve(connection, Arc::clone(&is_cut_short), notices));
            Ok(Connected {
                client,
                is_cut_short,
            })
        });
        connecting.await.unwrap_or_else(|error| {
            Err(Failure::Later {
                may_be_done: false,
                why: away(error.to_string()),
            })
        })
    }

    /// Makes a separate connection, and returns its notifications too.
    pub(super) async fn listening(&self) -> Result<(Client, mpsc::Receiver<Notification>)> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let connected = self.connect(Some(sender)).await.map_err(Failure::error)?;
        Ok((connected.client, receiver))
    }
}

/// The pool for a database, for one command or for the life of a log.
pub(super) fn connect(settings: &PostgresSettings) -> Result<(OwnRuntime, Pool)> {
    let runtime = OwnRuntime::new("postgres")?;
    let pool = Pool::new(Address::of(settings)?, runtime.handle().clone());
    Ok((runtime, pool))
}

/// Sends a query that changes nothing. Repeats it until it is answered or its time is over.
pub(super) async fn ask(pool: &Pool, statement: &str, params: Params<'_>) -> Result<Answer> {
    let until = Instant::now() + ANSWER;
    loop {
        let attempt = until.min(Instant::now() + ATTEMPT);
        match pool.ask(statement, params, attempt).await {
            Ok(answer) => return Ok(answer),
            Err(Failure::Later { .. }) if Instant::now() + PAUSE < until => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(failure) => return Err(failure.error()),
        }
    }
}

/// Runs a connection until it ends.
async fn serve<T>(
    mut connection: Connection<Socket, T>,
    is_cut_short: Arc<AtomicBool>,
    notices: Option<mpsc::Sender<Notification>>,
) where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await
    {
        match (message, &notices) {
            (Ok(AsyncMessage::Notification(notice)), Some(notices)) => {
                // If there is no room for a notification, it is lost. A follower also reads after a pause without
                // notifications.
                let _lost = notices.try_send(notice);
            }
            // This is the warning "canceling the wait for synchronous replication": only this server has the commit.
            (Ok(AsyncMessage::Notice(notice)), _) if notice.severity() != "NOTICE" => {
                is_cut_short.store(true, Ordering::Relaxed);
            }
            (Ok(_), _) => {}
            (Err(_), _) => return,
        }
    }
}
