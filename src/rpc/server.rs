//! What one process serves: its open sessions, its one connection, and the way from a request to the
//! session it means.

use super::follow::Watched;
use super::lane::{Gathering, Lane};
use super::notify::Notices;
use super::question::Given;
use super::registry::{Paths, Registry, Subject, Ticket};
use super::tree::{LastView, ViewBytes};
use super::turns::ClientTurn;
use crate::ask::Asks;
use crate::cancel::Cancel;
use crate::config::Config;
use crate::durability::Durability;
use crate::error::{Error, Result};
use crate::hooks::Hooks;
use crate::id::{self, SessionId, Source};
use crate::lock::lock;
use crate::session::{Session, SessionGuard};
use crate::stats::PrefixStats;
use crate::stdio::Outbox;
use crate::store::Store;
use crate::store::watch::Watcher;
use crate::wire;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::Poll;
use std::time::Duration;

/// Longest time from a question to its answer (protocol.md §2, `limits.maxAnswerMs`).
pub const MAX_ANSWER: Duration = Duration::from_secs(600);

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
    sessions: Mutex<HashMap<SessionId, Arc<OpenSession>>>,
    /// Keeps requests about one session in their order while sessions are opened and closed.
    pub registry: Arc<Registry>,
    pub watcher: Watcher<Watched>,
    /// Of the views that the open sessions keep.
    pub view_bytes: ViewBytes,
    in_flight: Mutex<HashMap<wire::RequestId, Arc<Call>>>,
    /// Sessions of which a file that was replaced is looked after, open or not.
    following: Mutex<Vec<Arc<OpenSession>>>,
    /// Sessions whose appends wait for others that are already here.
    pub gathering: Gathering,
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
    pub lane: Lane,
    /// The session's id, shared with what is queued.
    pub id: Arc<str>,
    /// Changed by whoever holds the session's turn, except at the end of the connection.
    pub turn: Mutex<ClientTurn>,
    pub watched: OnceLock<Arc<Watched>>,
    pub last_view: LastView,
    pub last_count: Mutex<PrefixStats>,
}

/// One request on its way.
pub struct Call {
    pub server: Arc<Server>,
    pub id: Option<wire::RequestId>,
    pub cancel: Cancel,
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
        on_shutdown: Box<dyn Fn() + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store: Store::new(config.session_dir.clone()),
            hooks: Hooks::new(config.hooks.clone()),
            instance_id: id::random_token(&*source),
            config,
            source,
            outbox,
            asks: Asks::new(MAX_ANSWER, |given| given.answer.cancel == Some(true)),
            client: OnceLock::new(),
            sessions: Mutex::default(),
            registry: Arc::default(),
            watcher: Watcher::new(),
            view_bytes: ViewBytes::default(),
            following: Mutex::default(),
            gathering: Gathering::default(),
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

    /// Takes a ticket for the session that is meant, which need not be open. It is not admitted yet.
    pub fn enter(&self, id: Option<&str>, changes: bool) -> Ticket {
        let Some(id) = id.map(SessionId::new) else {
            return self.registry.enter(Subject::Only, Paths::All, changes);
        };
        let paths = match self.sessions().contains_key(&id) {
            true => Paths::None,
            false => Paths::All,
        };
        self.registry.enter(Subject::Session(id), paths, changes)
    }

    /// The session a request means, and its turn. Turns are taken in the order of arrival, whether or
    /// not a request had to wait for its session to be opened.
    pub async fn turn(
        self: &Arc<Self>,
        id: Option<&str>,
        cancel: &Cancel,
    ) -> Result<(Arc<OpenSession>, SessionGuard)> {
        let (open, ahead) = self.find_in_order(id, cancel).await?;
        let session = Arc::clone(&open.session);
        let mut turn = pin!(session.turn(cancel));
        // Asked for before the next request about the session may go on.
        let asked = poll_fn(|context| Poll::Ready(turn.as_mut().poll(context))).await;
        drop(ahead);
        let turn = match asked {
            Poll::Ready(turn) => turn?,
            Poll::Pending => turn.await?,
        };
        Ok((open, turn))
    }

    /// The session a request means. Later requests that may mean the same one do not find it before
    /// the second is dropped.
    pub async fn find_in_order(
        self: &Arc<Self>,
        id: Option<&str>,
        cancel: &Cancel,
    ) -> Result<(Arc<OpenSession>, Option<Ticket>)> {
        if let Some(open) = self.at_once(id) {
            return Ok((open, None));
        }
        let ticket = self.enter(id, false);
        ticket.admitted(cancel).await?;
        let open = self.session_now(id)?;
        Ok((open, Some(ticket)))
    }

    /// The session that is meant, if no earlier request that may mean it is still waiting to find
    /// its own.
    fn at_once(&self, id: Option<&str>) -> Option<Arc<OpenSession>> {
        let session_id = id.map(SessionId::new);
        if !self.registry.is_clear_for(session_id.as_ref()) {
            return None;
        }
        self.session_now(id).ok()
    }

    /// The session a request means, now. Without an id it is the only one that is open.
    pub fn session_now(&self, id: Option<&str>) -> Result<Arc<OpenSession>> {
        let sessions = self.sessions();
        match id {
            Some(id) => {
                let open = sessions.get(&SessionId::new(id));
                open.cloned().ok_or_else(|| Error::session_not_found(id))
            }
            None if sessions.len() == 1 => {
                let only = sessions.values().next().cloned();
                only.ok_or_else(|| Error::session_not_found(""))
            }
            None => Err(Error::invalid_params(
                "sessionId",
                format!("is required while {} sessions are open", sessions.len()),
            )),
        }
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
        self.sessions().get(&SessionId::new(id)).cloned()
    }

    /// Makes a session known once the response to `call` is queued: nothing of it may go out, and
    /// no other request may reach it, before (protocol.md §7). `tickets` are kept until then.
    pub fn insert_after(call: &Call, open: &Arc<OpenSession>, tickets: impl Send + 'static) {
        let (server, open) = (Arc::clone(&call.server), Arc::clone(open));
        call.after(move || {
            server
                .sessions()
                .insert(open.session.id.clone(), Arc::clone(&open));
            server.notify(&open, "session_opened", |seq| {
                wire::notification::SessionOpened {
                    session_id: open.id.to_string(),
                    seq,
                }
            });
            server.watch(&open);
            drop(tickets);
        });
    }

    pub fn remove(&self, open: &OpenSession) {
        open.session.close();
        self.unwatch(open);
        self.sessions().remove(&open.session.id);
    }

    pub fn open_sessions(&self) -> Vec<Arc<OpenSession>> {
        self.sessions().values().cloned().collect()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<OpenSession>>> {
        lock(&self.sessions)
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

impl OpenSession {
    pub fn new(session: Arc<Session>) -> Arc<Self> {
        Arc::new(Self {
            id: session.id.shared(),
            notices: Mutex::default(),
            lane: Lane::default(),
            turn: Mutex::default(),
            watched: OnceLock::new(),
            last_view: LastView::default(),
            last_count: Mutex::default(),
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
    pub fn new(server: Arc<Server>, id: Option<wire::RequestId>) -> Arc<Self> {
        Arc::new(Self {
            server,
            id,
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
