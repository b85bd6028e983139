//! What one process serves: its open sessions, its one connection, and the way from a request to the
//! session it means.

use super::follow::Watched;
use super::lane::Append;
use super::notify::Notices;
use super::question::Given;
use super::tree::{LastView, ViewBytes};
use super::turns::ClientTurn;
use crate::ask::Asks;
use crate::cancel::Cancel;
use crate::daemon::queue::{self, Queues, Scope, Sessions};
use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::hooks::{Hook, Hooks};
use crate::id::{self, Source};
use crate::lock::lock;
use crate::session::{self, Busy, Session};
use crate::stats::LastCount;
use crate::stdio::Outbox;
use crate::store::Store;
use crate::store::watch::Watcher;
use crate::summarizer::Summarizer;
use crate::wire;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Longest time from a question to its answer (protocol.md §2, `limits.maxAnswerMs`).
pub const MAX_ANSWER: Duration = Duration::from_secs(600);

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Config {
    pub session_dir: PathBuf,
    pub durability: Durability,
    pub summarizer: Option<Summarizer>,
    pub hooks: Vec<Hook>,
    /// Bytes.
    pub max_frame_bytes: usize,
    /// Bytes.
    pub max_queued_bytes: usize,
    /// For sessions that name no other.
    pub cwd: String,
}

/// One process's sessions and its connection.
pub struct Server {
    pub config: Config,
    pub store: Store,
    pub source: Arc<dyn Source>,
    pub outbox: Arc<Outbox>,
    pub asks: Asks<Given>,
    pub hooks: Hooks,
    pub instance_id: String,
    /// What the client has said of itself in `initialize`.
    client: OnceLock<Client>,
    /// The open sessions, and the order of the requests about them.
    pub queues: Arc<Queues<OpenSessions>>,
    pub watcher: Watcher<Watched>,
    /// Of the views that the open sessions keep.
    pub view_bytes: ViewBytes,
    in_flight: Mutex<HashMap<wire::RequestId, Arc<Call>>>,
    /// Sessions of which a file that was replaced is looked after, open or not.
    following: Mutex<Vec<Arc<OpenSession>>>,
    ending: AtomicBool,
    pub on_shutdown: Box<dyn Fn() + Send + Sync>,
}

/// A client that has introduced itself.
#[derive(Debug, Clone)]
pub struct Client {
    pub name: Option<String>,
    pub answers: wire::Answers,
    pub opt_out: Vec<String>,
    pub summary_deltas: bool,
    pub progress: bool,
    /// Bytes.
    pub max_frame_bytes: usize,
}

/// A session as this connection sees it.
pub struct OpenSession {
    pub session: Arc<Session>,
    /// Locked while a notification is queued, so that they leave in the order of their numbers.
    pub notices: Mutex<Notices>,
    /// The session's id, shared with what is queued.
    pub id: Arc<str>,
    /// Changed by whoever holds the session's turn, except at the end of the connection.
    pub turn: Mutex<ClientTurn>,
    pub watched: OnceLock<Arc<Watched>>,
    pub last_view: LastView,
    pub last_count: LastCount,
}

/// One request on its way.
pub struct Call {
    pub server: Arc<Server>,
    pub id: Option<wire::RequestId>,
    pub cancel: Cancel,
    /// An append waits for the appends behind it that have arrived already.
    pub holds: bool,
    /// What is to be said after the response.
    pub after: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// If it is one.
    navigation: OnceLock<AskedNavigation>,
}

/// A navigation as it was asked for: what an abort names it by before it has begun.
pub struct AskedNavigation {
    pub session_id: Option<String>,
    pub navigation_id: String,
}

impl Server {
    pub fn new(
        config: Config,
        source: Arc<dyn Source>,
        outbox: Arc<Outbox>,
        runtime: &Handle,
        on_shutdown: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<Self> {
        let runtime = runtime.clone();
        let spawn = Box::new(move |job: Box<dyn FnOnce() + Send>| {
            runtime.spawn(async { job() });
        });
        Arc::new(Self {
            store: Store::new(config.session_dir.clone()),
            hooks: Hooks::new(config.hooks.clone()),
            instance_id: id::random_token(&*source),
            config,
            source,
            outbox,
            asks: Asks::new(MAX_ANSWER, |given| given.answer.cancel == Some(true)),
            client: OnceLock::new(),
            queues: Queues::new(spawn),
            watcher: Watcher::new(),
            view_bytes: ViewBytes::default(),
            following: Mutex::default(),
            in_flight: Mutex::default(),
            ending: AtomicBool::new(false),
            on_shutdown,
        })
    }

    /// `None` until `initialize`.
    pub fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    /// False if the client has introduced itself before.
    pub fn introduce(&self, client: Client) -> bool {
        self.client.set(client).is_ok()
    }

    /// Whether the file of a new session is written with it, unless the client says otherwise: a script
    /// that makes a session expects to find it.
    pub fn writes_files_at_once(&self) -> bool {
        self.client().is_none()
    }

    /// The most a message to the client may have, in bytes.
    pub fn client_frame_bytes(&self) -> usize {
        self.client()
            .map_or(self.config.max_frame_bytes, |client| client.max_frame_bytes)
    }

    /// The session a request means, and the right to work on it once everything asked before is done.
    pub fn turn(
        &self,
        id: Option<&str>,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<(Arc<OpenSession>, SessionGuard)>> + Send + use<> {
        let asked = Instant::now();
        let lease = self.queues.lease(id, Scope::Session, cancel);
        async move { guard(lease.await?, asked) }
    }

    /// The session a request means, now. Without an id it is the only one that is open.
    pub fn session_now(&self, id: Option<&str>) -> Result<Arc<OpenSession>> {
        self.queues.find_now(id)
    }

    /// Requests that wait for something, by their ids.
    pub fn in_flight(&self) -> MutexGuard<'_, HashMap<wire::RequestId, Arc<Call>>> {
        lock(&self.in_flight)
    }

    /// Cancels whatever waits.
    pub fn cancel_all(&self) {
        for call in self.in_flight().values() {
            call.cancel.cancel();
        }
    }

    /// How to abort the navigations of a session that are in flight.
    pub fn asked_navigations(
        &self,
        session_id: &str,
        is_meant: impl Fn(&str) -> bool,
    ) -> Vec<Cancel> {
        let in_flight = self.in_flight();
        let meant = in_flight.values().filter(|call| {
            call.navigation.get().is_some_and(|asked| {
                let of = asked.session_id.as_deref();
                of.is_none_or(|id| id == session_id) && is_meant(&asked.navigation_id)
            })
        });
        meant.map(|call| call.cancel.clone()).collect()
    }

    pub fn find(&self, id: &str) -> Option<Arc<OpenSession>> {
        self.queues.find(id)
    }

    /// Opens a session once the response to `call` is queued: nothing of it may go out, and no other
    /// request may reach it, before (protocol.md §7).
    pub fn open_after(call: &Call, open: &Arc<OpenSession>, mut lease: Lease) {
        let (server, open) = (Arc::clone(&call.server), Arc::clone(open));
        call.after(move || {
            lease.set_open(Some(Arc::clone(&open)));
            server.notify(&open, "session_opened", |seq| {
                wire::notification::SessionOpened {
                    session_id: open.id.to_string(),
                    seq,
                }
            });
            server.watch(&open);
            drop(lease);
        });
    }

    pub fn remove(&self, open: &OpenSession, lease: &mut Lease) {
        open.session.close();
        self.unwatch(open);
        lease.set_open(None);
    }

    pub fn open_sessions(&self) -> Vec<Arc<OpenSession>> {
        self.queues.all_open()
    }

    /// Gives up the views of all sessions.
    pub fn forget_views(&self) {
        for open in self.open_sessions() {
            open.last_view.forget();
        }
    }

    pub(super) fn following(&self) -> MutexGuard<'_, Vec<Arc<OpenSession>>> {
        lock(&self.following)
    }

    /// Makes durable what `interval` has not synced yet.
    pub async fn flush(&self) {
        for open in self.open_sessions() {
            if let Err(error) = open.session.syncer.flush().await {
                tracing::error!(%error, "the last entries may not be on disk");
            }
        }
    }

    /// No more requests are taken.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Release);
    }

    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }
}

/// The open sessions of a daemon, as its queues know them.
pub struct OpenSessions;

impl Sessions for OpenSessions {
    type Open = OpenSession;
    type Append = Append;

    fn write(lease: Lease, appends: VecDeque<Append>) {
        super::lane::write(lease, appends);
    }

    fn refuse(append: Append, error: Error) {
        append.answer(Err(error));
    }
}

pub type Lease = queue::Lease<OpenSessions>;

/// The right to read or change an open session, and its place at the head of the session's queue.
pub type SessionGuard = session::SessionGuard<Tenure>;

/// What ends with a [`SessionGuard`]: the activity first, so that the next job does not find the session busy.
pub struct Tenure {
    pub busy: Option<Busy>,
    pub lease: Lease,
}

/// The session that a lease is for. `sessionNotFound` if it is not open.
pub fn guard(lease: Lease, asked: Instant) -> Result<(Arc<OpenSession>, SessionGuard)> {
    let Some(open) = lease.open().map(Arc::clone) else {
        return Err(Error::session_not_found(lease.id()));
    };
    let tenure = Tenure { busy: None, lease };
    let guard = open.session.guard(asked, tenure)?;
    Ok((open, guard))
}

impl OpenSession {
    pub fn new(session: Arc<Session>) -> Arc<Self> {
        Arc::new(Self {
            id: session.id.shared(),
            notices: Mutex::default(),
            turn: Mutex::default(),
            watched: OnceLock::new(),
            last_view: LastView::default(),
            last_count: LastCount::default(),
            session,
        })
    }

    /// What has just been written is given; nothing, where nothing was written.
    pub fn durability(&self, wrote: bool) -> wire::Durability {
        super::convert::durability(if wrote {
            self.session.syncer.durability()
        } else {
            Durability::None
        })
    }

    /// The number of the last notification of this session.
    pub fn seq(&self) -> u64 {
        self.notices().seq
    }
}

impl Call {
    pub fn new(server: Arc<Server>, id: Option<wire::RequestId>, holds: bool) -> Arc<Self> {
        Arc::new(Self {
            server,
            id,
            holds,
            cancel: Cancel::new(),
            after: Mutex::default(),
            navigation: OnceLock::new(),
        })
    }

    /// Makes an abort find it while it waits.
    pub fn names_navigation(&self, asked: AskedNavigation) {
        let _named_before = self.navigation.set(asked);
    }

    /// The session the params mean, and its turn, with what others have appended taken in.
    pub async fn fresh(
        &self,
        params: &impl wire::OnSession,
    ) -> Result<(Arc<OpenSession>, SessionGuard)> {
        let (open, turn) = self.server.turn(params.session_id(), &self.cancel).await?;
        let turn = self.server.caught_up(&open, turn).await?;
        Ok((open, turn))
    }

    /// The session a mutation means and its turn; the leaf is where the client expects it. A commit
    /// takes in what others have appended itself, so that is not done here.
    pub async fn mutable(
        &self,
        params: &impl wire::Mutation,
    ) -> Result<(Arc<OpenSession>, SessionGuard)> {
        let (open, turn) = self.server.turn(params.session_id(), &self.cancel).await?;
        open.session.check_writable()?;
        Ok((open, turn))
    }

    /// Says something once the response is on its way.
    pub fn after(&self, say: impl FnOnce() + Send + 'static) {
        let mut after = lock(&self.after);
        after.push(Box::new(say));
    }
}
