//! The team of a daemon, and the same for a command that ends at once.

use super::upkeep::{OpenHere, PendingRows};
use crate::engine::{Engine, TeamIndex};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::{Source, random_token};
use treelined_core::team::{TeamList, TeamRow, TeamView};
use treelined_files::clock::SystemSource;
use treelined_files::lock::lock;
use treelined_files::os::process;

/// How long a list waits for the servers.
const WAIT: Duration = Duration::from_secs(2);
/// A list that is younger is given again.
const FRESH: Duration = Duration::from_secs(1);
/// The time after a failure in which the servers are not asked again.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// A daemon's part in the team: it describes the sessions that it writes to, says which ones it has open, and lists
/// those of all.
///
/// No call blocks, but [`TeamView::list`] and [`Self::end`] for 2 s at most; all may be called from any thread, before
/// there is a connection too.
pub struct Team {
    shared: Arc<SharedTeam>,
    host: String,
    /// The key of this daemon's row of open sessions.
    daemon: String,
    tasks: Mutex<Vec<AbortHandle>>,
}

#[derive(Default)]
struct SharedTeam {
    servers: OnceLock<TeamServers>,
    pending: PendingRows,
    open: OpenHere,
    listing: Mutex<Listing>,
    listed: Condvar,
}

/// The list, and the runtime of its connection. They work as long as the log exists.
struct TeamServers {
    index: Box<dyn TeamIndex>,
    runtime: Handle,
}

/// The last list, and the state of the next one.
#[derive(Default)]
struct Listing {
    list: Arc<TeamList>,
    /// When it was made, or could not be made.
    at: Option<Instant>,
    /// Whether it is read, or will be once there is a connection.
    is_running: bool,
    /// Whether the servers failed or were late.
    has_failed: bool,
}

impl Listing {
    fn is_fresh(&self) -> bool {
        let time = match self.has_failed {
            true => AFTER_FAILURE,
            false => FRESH,
        };
        !self.is_running && self.at.is_some_and(|at| at.elapsed() < time)
    }

    /// Keeps the list as it was, as an incomplete one.
    fn fail(&mut self, kind: Kind, why: String) {
        let mut list = TeamList::clone(&self.list);
        list.incomplete = Some((kind, why));
        self.list = Arc::new(list);
        self.has_failed = true;
    }
}

impl Team {
    /// A daemon's part in the team of this stream, before there is a connection.
    pub fn new(stream: &str) -> Self {
        let shared = SharedTeam::default();
        lock(&shared.listing).list = Arc::new(TeamList::new(stream.to_owned(), Vec::new()));
        Self {
            shared: Arc::new(shared),
            host: process::host_name(),
            daemon: random_token(&SystemSource),
            tasks: Mutex::default(),
        }
    }

    /// Begins the upkeep of the list on the connection of the log; what is missing is made if the servers permit it.
    /// Further calls do nothing.
    pub fn connect(&self, log: &dyn Engine) {
        let runtime = log.runtime();
        let servers = TeamServers {
            index: log.index(&self.host, &self.daemon),
            runtime: runtime.clone(),
        };
        if self.shared.servers.set(servers).is_err() {
            return;
        }
        let (writer, renewer) = (Arc::clone(&self.shared), Arc::clone(&self.shared));
        let write = async move {
            if let Some(servers) = writer.servers.get() {
                writer.pending.write_on(&*servers.index).await;
            }
        };
        let renew = async move {
            if let Some(servers) = renewer.servers.get() {
                renewer.open.renew_on(&*servers.index).await;
            }
        };
        let write = runtime.spawn(write).abort_handle();
        let renew = runtime.spawn(renew).abort_handle();
        lock(&self.tasks).extend([write, renew]);
        if lock(&self.shared.listing).is_running {
            self.read();
        }
    }

    /// Begins to read the list, if there is a connection.
    fn read(&self) {
        if let Some(servers) = self.shared.servers.get() {
            let shared = Arc::clone(&self.shared);
            servers.runtime.spawn(async move { shared.refresh().await });
        }
    }

    /// The name of this machine, for the rows that [`Self::note`] takes.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Describes a session after a commit. Rows are written in the background, at most one per session and second,
    /// and a row never replaces one with a greater sequence.
    pub fn note(&self, row: TeamRow) {
        self.shared.pending.note(row);
    }

    /// Says that this daemon has a session open.
    pub fn opened(&self, session: &str) {
        self.shared.open.opened(session, SystemSource.now_ms());
    }

    /// Says that this daemon has closed a session.
    pub fn closed(&self, session: &str) {
        self.shared.open.closed(session);
    }

    /// Writes the rows that wait, and removes this daemon from the open sessions of others' lists. Waits 2 s at most;
    /// without it the servers forget the daemon after 60 s.
    pub fn end(&self) {
        lock(&self.tasks).iter().for_each(AbortHandle::abort);
        let Some(servers) = self.shared.servers.get() else {
            return;
        };
        let (sender, done) = mpsc::channel();
        let shared = Arc::clone(&self.shared);
        servers.runtime.spawn(async move {
            if let Some(TeamServers { index, .. }) = shared.servers.get() {
                let rows = shared.pending.write_all(&**index);
                let (rows, presence) = tokio::join!(rows, shared.open.remove(&**index));
                if let Err(error) = rows.and(presence) {
                    tracing::info!(%error, "the team's list is left as it was");
                }
            }
            let _late = sender.send(());
        });
        let _late = done.recv_timeout(WAIT);
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        lock(&self.tasks).iter().for_each(AbortHandle::abort);
    }
}

impl TeamView for Team {
    fn list(&self) -> Arc<TeamList> {
        let mut listing = lock(&self.shared.listing);
        if listing.is_fresh() {
            return Arc::clone(&listing.list);
        }
        if !std::mem::replace(&mut listing.is_running, true) {
            self.read();
        }
        // Servers that were late are not waited for until they answer again.
        let wait = match listing.has_failed {
            true => Duration::ZERO,
            false => WAIT,
        };
        let waited = self
            .shared
            .listed
            .wait_timeout_while(listing, wait, |listing| listing.is_running);
        let (mut listing, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if listing.is_running && !listing.has_failed {
            let why = format!("the servers did not answer in {} s", WAIT.as_secs());
            listing.fail(Kind::LogUnavailable, why);
        }
        Arc::clone(&listing.list)
    }
}

impl SharedTeam {
    async fn refresh(&self) {
        let Some(servers) = self.servers.get() else {
            return;
        };
        let is_unknown = |listing: &Listing| listing.has_failed || listing.at.is_none();
        let always = is_unknown(&lock(&self.listing));
        let read = servers.index.list(always).await;
        let mut listing = lock(&self.listing);
        match read {
            Ok(list) => {
                // Without a new one, the list may have been given as incomplete meanwhile: the next one is whole.
                if let Some(list) = list {
                    listing.list = Arc::new(list);
                    listing.has_failed = false;
                }
            }
            Err(error) => listing.fail(error.kind, error.message.to_string()),
        }
        listing.at = Some(Instant::now());
        listing.is_running = false;
        drop(listing);
        self.listed.notify_all();
    }
}

/// The team's list for a command: each call waits for the servers, with the deadlines of the log.
pub struct TeamRows {
    index: Box<dyn TeamIndex>,
    host: String,
    runtime: Handle,
}

impl TeamRows {
    pub fn of(log: &dyn Engine) -> Self {
        let host = process::host_name();
        Self {
            index: log.index(&host, ""),
            host,
            runtime: log.runtime().clone(),
        }
    }

    /// Makes what is missing. Returns the names of what was made.
    pub fn create(&self) -> Result<Vec<String>> {
        self.runtime.block_on(self.index.ensure())
    }

    /// The name of this machine.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Writes a row, unless there is one with the same or a greater sequence.
    pub fn write(&self, row: TeamRow) -> Result<()> {
        self.runtime.block_on(self.index.write_row(row))
    }

    /// The sessions of the log, with all daemons that have them open.
    pub fn list(&self) -> Result<TeamList> {
        let list = self.runtime.block_on(self.index.list(true))?;
        list.ok_or_else(|| Error::new(Kind::LogUnavailable, "the servers gave no list"))
    }
}
