//! The team of a daemon, and the simpler form for a command that ends at once.

use super::upkeep::{OpenHere, PendingRows};
use crate::engine::{Engine, TeamIndex};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use treelined_core::author::Author;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::Source;
use treelined_core::team::{
    TeamFound, TeamList, TeamPage, TeamQuery, TeamQuestion, TeamRow, TeamView,
};
use treelined_files::clock::SystemSource;
use treelined_files::lock::lock;

/// How long a list waits for the servers.
const WAIT: Duration = Duration::from_secs(2);
/// A list that is younger than this is returned again.
const FRESH: Duration = Duration::from_secs(1);
/// After a failure, the servers are not asked again for this time.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The pauses before the next look for lines that the search does not have: if there were none, and after a failure.
const AFTER_TEXTS: Duration = Duration::from_secs(2);
const AFTER_REFUSAL: Duration = Duration::from_secs(30);
/// How long a search waits for the servers.
const SEARCH: Duration = Duration::from_secs(10);

/// A daemon's part in the team: it describes the sessions that the daemon writes to, reports which sessions it has
/// open, and lists the sessions of all machines.
///
/// No call blocks except [`TeamView::list`] and [`Self::end`], which block for 2 s at most. All calls are possible from
/// any thread, and before there is a connection.
pub struct Team {
    shared: Arc<SharedTeam>,
    /// This daemon. Its id is the key of the row with its open sessions.
    author: Author,
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

/// The list, and the runtime of its connection. They work until the log is dropped.
struct TeamServers {
    index: Box<dyn TeamIndex>,
    runtime: Handle,
}

/// The last list, and the state of the read of the next list.
#[derive(Default)]
struct Listing {
    /// The query of the list that is wanted, or was wanted last.
    query: TeamQuery,
    /// The last list, and the `after` of its query.
    list: Arc<TeamList>,
    after: Option<String>,
    /// The time at which the list was read, or at which the read failed.
    at: Option<Instant>,
    /// Whether the list is being read, or will be when there is a connection.
    is_running: bool,
    /// Whether the servers have failed or were late.
    has_failed: bool,
}

impl Listing {
    /// Whether the list is young and answers a query.
    fn is_fresh(&self, query: &TeamQuery) -> bool {
        let answers = self.has_failed || self.query == *query;
        let time = match self.has_failed {
            true => AFTER_FAILURE,
            false => FRESH,
        };
        answers && !self.is_running && self.at.is_some_and(|at| at.elapsed() < time)
    }

    /// Keeps the sessions of the last list, and marks the list as incomplete.
    fn fail(&mut self, kind: Kind, why: String) {
        let mut list = TeamList::clone(&self.list);
        list.incomplete = Some((kind, why));
        self.list = Arc::new(list);
        self.has_failed = true;
    }

    /// The list for a query that wants the page after `after`. If the servers were late, the last list may be another
    /// page, and its cursor would skip rows. So the answer is an empty page with the cursor `after`: with that cursor,
    /// the client asks for the same page again.
    fn answer(&self, after: Option<&String>) -> Arc<TeamList> {
        if !self.has_failed || after.is_none() || self.after.as_ref() == after {
            return Arc::clone(&self.list);
        }
        let mut list = TeamList::new(self.list.stream.clone(), Vec::new());
        list.incomplete.clone_from(&self.list.incomplete);
        list.page = Some(TeamPage {
            next: after.cloned(),
            ..TeamPage::default()
        });
        Arc::new(list)
    }
}

impl Team {
    /// A daemon's part in the team with this stream. There is no connection yet.
    pub fn new(stream: &str, author: Author) -> Self {
        let shared = SharedTeam::default();
        lock(&shared.listing).list = Arc::new(TeamList::new(stream.to_owned(), Vec::new()));
        Self {
            shared: Arc::new(shared),
            author,
            tasks: Mutex::default(),
        }
    }

    /// Begins to maintain the list over the connection of the log. Makes missing parts of the list if the servers
    /// permit it. Further calls do nothing.
    pub fn connect(&self, log: &dyn Engine) {
        let runtime = log.runtime();
        let servers = TeamServers {
            index: log.index(&self.author.host, &self.author.daemon),
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
        let searched = Arc::clone(&self.shared);
        let add = async move {
            if let Some(servers) = searched.servers.get() {
                add_texts_on(&*servers.index).await;
            }
        };
        let add = runtime.spawn(add).abort_handle();
        let write = runtime.spawn(write).abort_handle();
        let renew = runtime.spawn(renew).abort_handle();
        lock(&self.tasks).extend([write, renew, add]);
        if lock(&self.shared.listing).is_running {
            self.read();
        }
    }

    /// Begins to read the list if there is a connection.
    fn read(&self) {
        if let Some(servers) = self.shared.servers.get() {
            let shared = Arc::clone(&self.shared);
            servers.runtime.spawn(async move { shared.refresh().await });
        }
    }

    /// This daemon, as rows and entries name it.
    pub fn author(&self) -> &Author {
        &self.author
    }

    /// Describes a session after a commit. Rows are written in the background, at most one for each session and second.
    /// A row never replaces a row with a greater sequence.
    pub fn note(&self, row: TeamRow) {
        self.shared.pending.note(row);
    }

    /// Reports that this daemon has opened a session.
    pub fn opened(&self, session: &str) {
        self.shared.open.opened(session, SystemSource.now_ms());
    }

    /// Reports that this daemon has closed a session.
    pub fn closed(&self, session: &str) {
        self.shared.open.closed(session);
    }

    /// Writes the waiting rows, and removes this daemon's open sessions from the lists of other machines. Waits 2 s at
    /// most. Without this call, the servers forget the daemon after 60 s.
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
    fn list(&self, query: &TeamQuery) -> Arc<TeamList> {
        let mut listing = lock(&self.shared.listing);
        if listing.is_fresh(query) {
            return listing.answer(query.after.as_ref());
        }
        // If the servers were late, a list does not wait for them again before they answer.
        let wait = match listing.has_failed {
            true => Duration::ZERO,
            false => WAIT,
        };
        let until = Instant::now() + wait;
        // A read for another query may be running. The read for this query begins after it.
        let mut is_asked = false;
        loop {
            if !listing.is_running && !is_asked {
                listing.is_running = true;
                listing.query.clone_from(query);
                self.read();
            }
            is_asked |= listing.query == *query;
            let left = until.saturating_duration_since(Instant::now());
            let waited = self
                .shared
                .listed
                .wait_timeout_while(listing, left, |listing| listing.is_running);
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            listing = after;
            let is_over = timeout.timed_out() || left.is_zero();
            if is_over || is_asked || listing.is_fresh(query) {
                break;
            }
        }
        if listing.is_running && !listing.has_failed {
            let why = format!("the servers did not answer in {} s", WAIT.as_secs());
            listing.fail(Kind::LogUnavailable, why);
        }
        listing.answer(query.after.as_ref())
    }

    fn find(&self, question: &TeamQuestion) -> Result<TeamFound> {
        let away = |why: &'static str| Error::new(Kind::LogUnavailable, why);
        let servers = self.shared.servers.get();
        let servers = servers.ok_or_else(|| away("no server is connected yet"))?;
        servers.runtime.block_on(async {
            let found = tokio::time::timeout(SEARCH, servers.index.find(question)).await;
            found.unwrap_or_else(|_| Err(away("the servers did not answer in time")))
        })
    }
}

/// Adds new lines to the search, in an endless loop.
async fn add_texts_on(index: &dyn TeamIndex) {
    loop {
        let pause = match index.add_texts().await {
            Ok(true) => continue,
            Ok(false) => AFTER_TEXTS,
            Err(error) => {
                tracing::info!(%error, "new lines of the team are not searched yet");
                AFTER_REFUSAL
            }
        };
        tokio::time::sleep(pause).await;
    }
}

impl SharedTeam {
    async fn refresh(&self) {
        let Some(servers) = self.servers.get() else {
            return;
        };
        let query = lock(&self.listing).query.clone();
        let read = servers.index.list(&query).await;
        let mut listing = lock(&self.listing);
        match read {
            Ok(list) => {
                listing.list = Arc::new(list);
                listing.after.clone_from(&query.after);
                listing.has_failed = false;
            }
            Err(error) => listing.fail(error.kind, error.message.to_string()),
        }
        listing.at = Some(Instant::now());
        listing.is_running = false;
        drop(listing);
        self.listed.notify_all();
    }
}

/// The team's list for a command. Each call waits for the servers, until the deadlines of the log.
pub struct TeamRows {
    index: Box<dyn TeamIndex>,
    runtime: Handle,
}

impl TeamRows {
    pub fn of(log: &dyn Engine) -> Self {
        Self {
            index: log.index("", ""),
            runtime: log.runtime().clone(),
        }
    }

    /// Makes missing parts of the list. Returns the names of the parts that were made.
    pub fn create(&self) -> Result<Vec<String>> {
        self.runtime.block_on(self.index.ensure())
    }

    /// Writes a row, unless the list has a row with the same or a greater sequence.
    pub fn write(&self, row: TeamRow) -> Result<()> {
        self.runtime.block_on(self.index.write_row(row))
    }

    /// A page of the sessions of the team, with all daemons that have them open.
    pub fn list(&self, query: &TeamQuery) -> Result<TeamList> {
        self.runtime.block_on(self.index.list(query))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treelined_core::team::TeamSession;

    /// The answer for a late page once had the cursor of the page before, or the cursor of another list. A client that
    /// continued at this cursor missed rows.
    #[test]
    fn a_page_that_is_late_goes_on_where_it_begins() {
        let session = TeamSession {
            session_id: "a".to_owned(),
            row: None,
            open_on: Vec::new(),
            place: Some(9),
        };
        let mut list = TeamList::new("s".to_owned(), vec![session]);
        list.page = Some(TeamPage {
            next: Some("#5".to_owned()),
            ..TeamPage::default()
        });
        let mut listing = Listing {
            list: Arc::new(list),
            after: Some("#10".to_owned()),
            ..Listing::default()
        };
        listing.fail(Kind::LogUnavailable, "late".to_owned());
        let next = |after: Option<&str>| {
            let answer = listing.answer(after.map(str::to_owned).as_ref());
            assert!(answer.incomplete.is_some());
            (answer.sessions.len(), answer.page.clone().unwrap().next)
        };
        assert_eq!(next(Some("#10")), (1, Some("#5".to_owned())));
        assert_eq!(next(Some("#900")), (0, Some("#900".to_owned())));
        assert_eq!(next(None), (1, Some("#5".to_owned())), "known rows stay");
    }
}
