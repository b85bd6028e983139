//! The log of a daemon: one connection for all of its sessions. Each open session has a follower, which copies what
//! other machines append into the file; the session reads that as it reads the entries of any other writer.

use super::backend::LogBackend;
use super::files::SessionFiles;
use super::messages::SessionMessages;
use super::replicated::{LogSource, ReplicatedFile, TornLine};
use super::stream::NatsLog;
use super::team::Team;
use super::{transfer, trash};
use crate::blocking::blocking;
use crate::config::NatsSettings;
use crate::error::{Error, Kind, Result};
use crate::lock::lock;
use crate::log::header::CURRENT_VERSION;
use crate::log::upstream::{InLog, SharedLog, Upstream};
use crate::os::file::Location;
use crate::store::{Store, listing};
use crate::team::{TeamList, TeamRow, TeamView};
use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// How long an append of a daemon is tried.
const APPEND: Duration = Duration::from_secs(5);
/// A failure to connect is the answer for so long, and a lost connection is followed again after it.
const PAUSE: Duration = Duration::from_secs(2);
/// A message that arrives while the daemon appends is probably its own: the follower waits a second for the append,
/// since it would take the lock of the file from the next one.
const OWN_LOOKS: u32 = 200;
const OWN_PAUSE: Duration = Duration::from_millis(5);
/// How often a follower looks for lines of other programs in the file.
const LOOK: Duration = Duration::from_secs(2);

/// The log of a daemon.
pub(crate) struct LiveLog {
    connector: Arc<Connector>,
    /// By session.
    sessions: Mutex<HashMap<String, LiveSession>>,
}

/// Connects when the log is needed for the first time.
struct Connector {
    settings: NatsSettings,
    state: Mutex<ConnectorState>,
    team: Team,
    store: Store,
}

/// The team's list, which connects if nothing has done so.
struct LiveTeam(Arc<Connector>);

impl TeamView for LiveTeam {
    fn list(&self) -> Arc<TeamList> {
        connect_beside(&self.0);
        self.0.team.list()
    }
}

#[derive(Default)]
struct ConnectorState {
    log: Option<Arc<NatsLog>>,
    /// The last failure to connect, or to get an answer, and its time.
    failed: Option<(Instant, Error)>,
}

struct LiveSession {
    file: Arc<ReplicatedFile>,
    at: PathBuf,
    follower: Option<Follower>,
}

/// Ends when it is dropped.
struct Follower(Arc<Mutex<FollowerTask>>);

#[derive(Default)]
struct FollowerTask {
    is_ended: bool,
    running: Option<AbortHandle>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut task = lock(&self.0);
        task.is_ended = true;
        if let Some(running) = task.running.take() {
            running.abort();
        }
    }
}

impl ConnectorState {
    fn failed_lately(&self) -> Option<&Error> {
        let failed = self.failed.as_ref();
        failed
            .filter(|(at, _)| at.elapsed() < PAUSE)
            .map(|(_, error)| error)
    }
}

impl Connector {
    /// The log, connected. Waits for servers only if none has failed lately.
    fn connected(&self) -> Result<Arc<NatsLog>> {
        let mut state = lock(&self.state);
        if let Some(error) = state.failed_lately() {
            return Err(error.clone());
        }
        if let Some(log) = &state.log {
            return match log.is_connected() {
                true => Ok(Arc::clone(log)),
                false => Err(away("the connection to the servers of the log is lost")),
            };
        }
        match NatsLog::open(self.settings.clone()) {
            Ok(log) => {
                let log = Arc::new(log.with_append_time(APPEND));
                self.team.connect(&log);
                state.log = Some(Arc::clone(&log));
                state.failed = None;
                Ok(log)
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

/// Connects on a thread of its own, unless there is a connection or somebody makes one.
fn connect_beside(connector: &Arc<Connector>) {
    let is_needed = connector
        .state
        .try_lock()
        .is_ok_and(|state| state.log.is_none());
    if !is_needed {
        return;
    }
    let early = Arc::downgrade(connector);
    let connecting = thread::Builder::new().name("log".into());
    let started = connecting.spawn(move || {
        if let Some(connector) = early.upgrade()
            && let Err(error) = connector.connected()
        {
            tracing::warn!(%error, "the log is away; sessions can be read");
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "the log is connected by its first use");
    }
}

/// `logUnavailable`, worth another attempt after the pause.
fn away(why: &str) -> Error {
    let mut error = Error::new(Kind::LogUnavailable, why.to_owned());
    error.retry_after_ms = u64::try_from(PAUSE.as_millis()).ok();
    error
}

impl LogSource for Connector {
    fn log(&self) -> Result<Arc<dyn LogBackend>> {
        Ok(self.connected()?)
    }

    fn note_silence(&self, error: &Error) {
        let mut state = lock(&self.state);
        if state.failed_lately().is_none() {
            let why = format!("the log did not answer a moment ago: {}", error.message);
            state.failed = Some((Instant::now(), away(&why)));
        }
    }
}

impl LiveLog {
    /// The log of the sessions of this directory. Connects in the background.
    pub(crate) fn new(settings: NatsSettings, session_dir: PathBuf) -> Arc<Self> {
        let connector = Arc::new(Connector {
            team: Team::new(&settings.stream),
            settings,
            state: Mutex::default(),
            store: Store::new(session_dir),
        });
        connect_beside(&connector);
        Arc::new(Self {
            connector,
            sessions: Mutex::default(),
        })
    }

    /// The replica of a session in this file.
    fn replica(&self, session: &str, at: &Location) -> Arc<ReplicatedFile> {
        let mut sessions = lock(&self.sessions);
        let path = at.path();
        if let Some(known) = sessions.get(session).filter(|known| known.at == path) {
            return Arc::clone(&known.file);
        }
        let source = Arc::clone(&self.connector) as Arc<dyn LogSource>;
        let queues = self.connector.settings.queues;
        let file = ReplicatedFile::new(source, session, at.clone(), queues);
        let live = LiveSession {
            file: Arc::clone(&file),
            at: path,
            follower: None,
        };
        sessions.insert(session.to_owned(), live);
        file
    }

    /// Forgets the replica of a session that is not open.
    fn forget(&self, session: &str) {
        let mut sessions = lock(&self.sessions);
        if sessions
            .get(session)
            .is_some_and(|live| live.follower.is_none())
        {
            sessions.remove(session);
        }
    }
}

impl SharedLog for LiveLog {
    fn upstream(&self, session: &str, at: &Location) -> Box<dyn Upstream> {
        Box::new(self.replica(session, at))
    }

    fn prepare(&self, at: &Location) -> Result<()> {
        let Some(header) = listing::header(at) else {
            return Ok(());
        };
        // A file of an older version is rewritten by its first append.
        if header.version != CURRENT_VERSION {
            return Ok(());
        }
        let file = self.replica(&header.id, at);
        match file.settle_alone(TornLine::Leave) {
            Err(error) if error.kind == Kind::SessionDeleted => {
                let is_deleted =
                    trash::discard(&self.connector.store, &file, &self.connector.team)?;
                if !is_deleted {
                    return Ok(());
                }
                self.forget(&header.id);
                Err(error)
            }
            settled => settled,
        }
    }

    fn fetch(&self, session: &str) -> Result<bool> {
        let log = self.connector.connected()?;
        let files = SessionFiles::of(&self.connector.store);
        match transfer::pull(&files, &*log, session) {
            Ok(_) => Ok(true),
            Err(error) if error.kind == Kind::SessionNotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn delete(&self, session: &str, at: &Location) -> Result<()> {
        if trash::is_local(at) {
            return Ok(());
        }
        let file = self.replica(session, at);
        let deleted = trash::close(&file, &self.connector.team);
        self.forget(session);
        deleted
    }

    fn restore(&self, session: &str) -> Result<InLog> {
        let log = self.connector.connected()?;
        trash::reopen(&*log, session)
    }

    fn restored(&self, session: &str, at: &Location, before: InLog) -> Result<()> {
        let file = self.replica(session, at);
        file.stop_closing();
        let settled = trash::settle_restored(&file, &self.connector.team, before);
        self.forget(session);
        // A session whose deletion failed is open.
        if let Some(live) = lock(&self.sessions).get_mut(session) {
            live.follower = Some(follow(&self.connector, session, &file));
        }
        settled
    }

    fn follow(&self, session: &str) {
        let mut sessions = lock(&self.sessions);
        let Some(live) = sessions.get_mut(session) else {
            return;
        };
        if live.follower.is_none() {
            let follower = follow(&self.connector, session, &live.file);
            live.follower = Some(follower);
            self.connector.team.opened(session);
        }
    }

    fn leave(&self, session: &str) {
        self.connector.team.closed(session);
        let left = lock(&self.sessions).remove(session);
        if let Some(left) = left
            && let Err(error) = left.file.save()
        {
            tracing::warn!(%error, "the next opening of a session compares more");
        }
    }

    fn describe(&self, row: TeamRow) {
        let sessions = lock(&self.sessions);
        let Some(live) = sessions.get(&row.session_id) else {
            return;
        };
        let sequence = live.file.position().0;
        // A session that waits for the log is not in it yet.
        if sequence > 0 {
            let team = &self.connector.team;
            let host = team.host().to_owned();
            team.note(TeamRow {
                host,
                sequence,
                // Another machine may have deleted it since the commit.
                is_trashed: live.file.is_closed(),
                ..row
            });
        }
    }

    fn team(&self) -> Arc<dyn TeamView> {
        Arc::new(LiveTeam(Arc::clone(&self.connector)))
    }

    fn end(&self) {
        self.connector.team.end();
    }
}

impl Drop for LiveLog {
    fn drop(&mut self) {
        for session in lock(&self.sessions).values() {
            // The record only saves time.
            let _unsaved = session.file.save();
        }
    }
}

/// Copies what arrives in the log of a session into its file, until the follower is dropped.
fn follow(connector: &Arc<Connector>, session: &str, file: &Arc<ReplicatedFile>) -> Follower {
    let task = Arc::new(Mutex::new(FollowerTask::default()));
    let follower = Follower(Arc::clone(&task));
    let (connector, session) = (Arc::downgrade(connector), session.to_owned());
    let file = Arc::downgrade(file);
    let begin = move || {
        // Connecting takes a thread as long as there is no connection, and a task from then on.
        loop {
            let Some(log) = connector.upgrade().map(|connector| connector.connected()) else {
                return;
            };
            let mut task = lock(&task);
            if task.is_ended {
                return;
            }
            if let Ok(log) = log {
                let following = copy_on(Arc::downgrade(&log), connector, session, file);
                task.running = Some(log.spawn(following));
                return;
            }
            drop(task);
            thread::sleep(PAUSE);
        }
    };
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(begin)),
        Err(_) => drop(thread::spawn(begin)),
    }
    follower
}

async fn copy_on(
    log: Weak<NatsLog>,
    connector: Weak<Connector>,
    session: String,
    file: Weak<ReplicatedFile>,
) {
    while let (Some(log), Some(file)) = (log.upgrade(), file.upgrade()) {
        if let Err(error) = copy_while_connected(&log, &session, &file).await {
            if error.kind == Kind::SessionDeleted && is_discarded(&connector, &file).await {
                return;
            }
            tracing::info!(session, %error, "a session is followed again later");
        }
        drop((log, file));
        tokio::time::sleep(PAUSE).await;
    }
}

/// Moves the file of a deleted session to the trash. Returns whether it is not followed any more.
async fn is_discarded(connector: &Weak<Connector>, file: &Arc<ReplicatedFile>) -> bool {
    let Some(connector) = connector.upgrade() else {
        return true;
    };
    let file = Arc::clone(file);
    let discarded =
        blocking(move || trash::discard(&connector.store, &file, &connector.team)).await;
    discarded.unwrap_or_else(|error| {
        tracing::warn!(%error, "the file of a deleted session is moved to the trash later");
        false
    })
}

/// Ends with an error only.
async fn copy_while_connected(
    log: &NatsLog,
    session: &str,
    file: &Arc<ReplicatedFile>,
) -> Result<()> {
    settle(file, TornLine::Leave).await?;
    let mut messages = SessionMessages::new(log, session, file.position(), None);
    let mut was_unequal = false;
    loop {
        let before = messages.position();
        let part = {
            let mut next = pin!(messages.part());
            loop {
                match tokio::time::timeout(LOOK, &mut next).await {
                    Ok(part) => break part?,
                    Err(_) => was_unequal = look(file, was_unequal).await?,
                }
            }
        };
        for _ in 0..OWN_LOOKS {
            if !file.is_appending() {
                break;
            }
            tokio::time::sleep(OWN_PAUSE).await;
        }
        // Most messages are own ones, which need neither a thread nor the lock of the file.
        if file.position() < part.end {
            let file = Arc::clone(file);
            blocking(move || file.take(before, &part)).await?;
        }
    }
}

/// Publishes lines of other programs, and lines that wait for the log. Returns whether there were any. An incomplete
/// line that was there at the last look is closed.
async fn look(file: &Arc<ReplicatedFile>, was_unequal: bool) -> Result<bool> {
    let file = Arc::clone(file);
    let torn = match was_unequal {
        true => TornLine::Close,
        false => TornLine::Leave,
    };
    blocking(move || match file.is_equal() {
        true => Ok(false),
        false => file.settle_alone(torn).map(|()| true),
    })
    .await
}

async fn settle(file: &Arc<ReplicatedFile>, torn: TornLine) -> Result<()> {
    let file = Arc::clone(file);
    blocking(move || file.settle_alone(torn)).await
}
