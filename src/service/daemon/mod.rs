//! The state that connections share: the open sessions, and the order of the requests to them.
//!
//! [`call`] is a request until its response, [`queue`] orders requests, one queue per session. [`open_session`] is an
//! open session: its data, with the parts [`client_turn`], [`notices`] and [`watched`]. [`connection`] is a client with
//! its output, [`connections`] has all of them, and [`connecting`] begins and ends them. No file imports another in a
//! circle: the data stands below the operations.
//!
//! [`replication`] connects sessions with the team's stream. [`closing`] closes sessions for one connection or
//! for all, [`deleting`] moves their files. [`append`] writes adjacent appends of a queue, [`commit`] makes any other
//! change and ends both; [`notify`] sends notifications in the order of the commits; [`follow`] detects the entries of
//! other writers. [`release`] holds operations that ask before they commit: [`navigation`] and [`compaction`] use it,
//! [`fork`] and [`continuation`] have steps of their own. [`extension`] opens sessions for extensions. [`question`] asks clients and hooks,
//! [`received_answer`] is what they answer, and [`summaries`] runs the summarizer.
//!
//! [`convert`] makes messages, and [`session_row`] rows of the list, which [`list_watch`] announces to
//! [`list_watchers`]. [`agent_turn`] is the turn of a session's client, [`tree_view`] keeps the last view, [`find`] and
//! [`rows`] read the data that it shows, [`first_message`] names a session, and [`reading`] decides where large reads
//! run.

pub(crate) mod agent_turn;
pub(crate) mod append;
pub(crate) mod call;
mod client_turn;
pub(crate) mod closing;
pub(crate) mod commit;
pub(crate) mod compaction;
mod connecting;
pub mod connection;
pub(crate) mod connections;
pub(crate) mod continuation;
pub(crate) mod convert;
mod deleting;
pub(crate) mod extension;
pub(crate) mod find;
mod first_message;
pub(crate) mod follow;
pub(crate) mod fork;
mod hook_answer;
pub(crate) mod list_watch;
mod list_watchers;
pub(crate) mod navigation;
mod notices;
pub(crate) mod notify;
pub(crate) mod open_session;
pub(crate) mod question;
pub(crate) mod queue;
pub(crate) mod reading;
pub(crate) mod received_answer;
pub(crate) mod release;
pub(crate) mod replication;
pub(crate) mod rows;
pub(crate) mod session_row;
pub(crate) mod summaries;
pub(crate) mod tree_view;
mod watched;

use self::connections::Connections;
use self::list_watchers::ListWatch;
use self::open_session::{OpenSession, OpenSessions, SessionGuard, guard};
use self::queue::{Asker, Queues, Scope};
use self::received_answer::ReceivedAnswer;
use self::watched::WatchedSession;
use crate::ask::Asks;
use crate::commands::OfferedCommands;
use crate::extensions::Extensions;
use crate::hooks::Hooks;
use crate::parts::{Handoff, Importer, Parts};
use crate::peers::Peers;
use crate::settings::DaemonSettings;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::{self, Source};
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::log::upstream::SharedLog;
use treelined_files::store::Store;
use treelined_files::store::watch::Watcher;
use treelined_pages::renderers::Renderers;
use treelined_wire::OpenWebResult;

/// Longest time from a question to its answer (protocol.md §2, `limits.maxAnswerMs`).
pub(crate) const MAX_ANSWER: Duration = Duration::from_secs(600);

/// The state that all connections share.
pub struct Daemon {
    pub settings: DaemonSettings,
    pub store: Store,
    importer: Option<Box<dyn Importer>>,
    handoff: Option<Box<dyn Handoff>>,
    pub source: Arc<dyn Source>,
    pub(crate) connections: Connections,
    pub(crate) list_watch: ListWatch,
    pub(crate) asks: Asks<ReceivedAnswer>,
    /// The open questions of connections to others.
    pub(crate) peers: Peers,
    commands: Mutex<OfferedCommands>,
    pub hooks: Hooks,
    pub(crate) extensions: Extensions,
    /// Shared with the requests that make rows.
    renderers: Mutex<Arc<Renderers>>,
    pub instance_id: String,
    /// The open sessions, and the order of the requests to them.
    pub(crate) queues: Arc<Queues<OpenSessions>>,
    pub(crate) watcher: Watcher<WatchedSession>,
    /// Bytes of the views that the open sessions keep.
    pub(crate) view_bytes: Arc<AtomicUsize>,
    /// Sessions whose replaced file is still followed, whether they are open or not.
    following: Mutex<Vec<Arc<OpenSession>>>,
    /// The team's stream.
    shared_log: Option<Arc<dyn SharedLog>>,
    /// As in [`Parts`].
    publishes_later: bool,
    /// Serves the page and returns its address.
    web: OnceLock<Box<OpenWeb>>,
    ending: Arc<AtomicBool>,
}

/// Serves the page if it is not served, and returns its address.
pub(crate) type OpenWeb = dyn Fn() -> Result<OpenWebResult> + Send + Sync;

impl Daemon {
    /// A daemon without connections. Jobs that cannot run where they are submitted run on `runtime`.
    pub fn new(
        settings: DaemonSettings,
        parts: Parts,
        source: Arc<dyn Source>,
        runtime: &Handle,
    ) -> Arc<Self> {
        let runtime = runtime.clone();
        let spawn = Box::new(move |job: Box<dyn FnOnce() + Send>| {
            runtime.spawn(async { job() });
        });
        Arc::new(Self {
            store: Store::new(settings.session_dir.clone()),
            importer: parts.importer,
            handoff: parts.handoff,
            hooks: Hooks::new(settings.hooks.clone()),
            extensions: Extensions::new(settings.extensions.clone()),
            renderers: Mutex::new(Arc::new(Renderers::configured(&settings.renderers))),
            instance_id: id::random_token(&*source),
            shared_log: parts.shared_log,
            publishes_later: parts.publishes_later,
            settings,
            source,
            connections: Connections::default(),
            list_watch: ListWatch::default(),
            peers: Peers::new(MAX_ANSWER),
            commands: Mutex::default(),
            asks: Asks::new(MAX_ANSWER, |given| given.answer.cancel == Some(true)),
            queues: Queues::new(spawn),
            watcher: Watcher::new(),
            view_bytes: Arc::default(),
            following: Mutex::default(),
            web: OnceLock::new(),
            ending: Arc::default(),
        })
    }

    /// Sets how the page is served.
    pub(crate) fn set_web(&self, open: Box<OpenWeb>) {
        let _set_before = self.web.set(open);
    }

    /// Serves the page and returns its address. Fails in a program that has set nothing to serve it.
    pub(crate) fn open_web(&self) -> Result<OpenWebResult> {
        let open = self.web.get();
        let open =
            open.ok_or_else(|| Error::new(Kind::StorageIo, "this program serves no page"))?;
        open()
    }

    /// The importer of conversations. Fails in a program that imports none.
    pub(crate) fn importer(&self) -> Result<&dyn Importer> {
        let importer = self.importer.as_deref();
        importer.ok_or_else(|| Error::new(Kind::ImportFailed, "this program imports nothing"))
    }

    /// The part that hands conversations over. Fails in a program that has none.
    pub(crate) fn handoff(&self) -> Result<&dyn Handoff> {
        let handoff = self.handoff.as_deref();
        handoff.ok_or_else(|| Error::new(Kind::PathDenied, "this program hands nothing over"))
    }

    /// Returns the guard of the session that a request names, after all earlier requests to it. This call takes the
    /// place in the session's queue.
    pub(crate) fn turn(
        &self,
        by: Asker,
        id: Option<&str>,
        cancel: &Cancel,
    ) -> impl Future<Output = Result<(Arc<OpenSession>, SessionGuard)>> + Send + use<> {
        let asked = Instant::now();
        let lease = self.queues.lease(by, id, Scope::Session, cancel);
        async move { guard(lease.await?, asked) }
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<OpenSession>> {
        self.queues.find(id)
    }

    /// Closes a session. Later requests do not find it.
    pub(crate) fn remove(&self, open: &OpenSession, turn: &mut SessionGuard) {
        open.session.close();
        self.unwatch(open);
        turn.with().lease.set_open(None);
    }

    pub(crate) fn open_sessions(&self) -> Vec<Arc<OpenSession>> {
        self.queues.all_open(None)
    }

    /// Drops the views of all sessions.
    pub(crate) fn forget_views(&self) {
        for open in self.open_sessions() {
            open.last_view.forget();
        }
    }

    /// The commands that connections offer.
    pub(crate) fn commands(&self) -> MutexGuard<'_, OfferedCommands> {
        lock(&self.commands)
    }

    /// The renderers at this time.
    pub(crate) fn renderers(&self) -> Arc<Renderers> {
        Arc::clone(&lock(&self.renderers))
    }

    /// Changes the renderers for later requests.
    pub(crate) fn change_renderers<T>(&self, change: impl FnOnce(&mut Renderers) -> T) -> T {
        change(Arc::make_mut(&mut lock(&self.renderers)))
    }

    fn following(&self) -> MutexGuard<'_, Vec<Arc<OpenSession>>> {
        lock(&self.following)
    }

    /// Syncs the writes that the policy `interval` has not synced yet.
    pub async fn flush(&self) {
        for open in self.open_sessions() {
            if let Err(error) = open.session.syncer.flush().await {
                tracing::error!(%error, "the last entries may not be on disk");
            }
        }
    }

    /// Ends all questions.
    pub fn end_questions(&self) {
        self.asks.end();
    }

    /// Stops the daemon: later requests are refused.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Release);
    }

    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }
}

/// Runs work on this thread until it has to wait, then on the runtime.
pub(crate) fn at_once_or_later(work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
    let mut context = Context::from_waker(Waker::noop());
    if work.as_mut().poll(&mut context).is_pending() {
        tokio::spawn(work);
    }
}
