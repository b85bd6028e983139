//! The log of a daemon: one connection for all of its sessions, and a follower for each that is open.

use super::backend::LogBackend;
use super::connection::ANSWER;
use super::files::SessionFiles;
use super::follower::Follower;
use super::replicated::{LogSource, ReplicatedFile, TornLine};
use super::stream::NatsLog;
use super::team::Team;
use super::{transfer, trash};
use crate::settings::NatsSettings;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};
use treelined_core::error::{Error, Kind, Result};
use treelined_core::team::{TeamList, TeamRow, TeamView};
use treelined_files::lock::lock;
use treelined_files::log::header::CURRENT_VERSION;
use treelined_files::log::upstream::{InLog, PublishedHook, SharedLog, Upstream};
use treelined_files::os::file::Location;
use treelined_files::store::{Store, listing};

/// How often the stream is checked.
const CHECK: Duration = Duration::from_secs(15);
/// How long an append of a daemon is tried.
const APPEND: Duration = Duration::from_secs(5);
/// A failure to connect is the answer for so long, and a lost connection is followed again after it.
pub(super) const PAUSE: Duration = Duration::from_secs(2);
/// The log of a daemon.
pub struct LiveLog {
    this: Weak<Self>,
    connector: Arc<Connector>,
    /// By session.
    sessions: Mutex<HashMap<String, LiveSession>>,
}

/// Connects when the log is needed for the first time.
pub(super) struct Connector {
    this: Weak<Self>,
    settings: NatsSettings,
    /// Held while one thread connects, which others wait for.
    connecting: Mutex<()>,
    /// Locked for a moment at a time.
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
    /// Why the stream may lose what it acknowledges.
    misconfigured: Option<Error>,
}

struct LiveSession {
    file: Arc<ReplicatedFile>,
    at: PathBuf,
    follower: Option<Follower>,
    published: Option<PublishedHook>,
    /// Whether the session is closed, and followed only until nothing waits in its file.
    is_left: bool,
}

impl ConnectorState {
    /// Why the log cannot be used at this moment.
    fn fault(&self) -> Option<&Error> {
        let failed = self.failed.as_ref();
        let failed_lately = failed.filter(|(at, _)| at.elapsed() < PAUSE);
        let failed_lately = failed_lately.map(|(_, error)| error);
        self.misconfigured.as_ref().or(failed_lately)
    }

    /// The log, connected; `None` if nothing has connected yet.
    fn connected(&self) -> Result<Option<&Arc<NatsLog>>> {
        if let Some(error) = self.fault() {
            return Err(error.clone());
        }
        match &self.log {
            Some(log) if !log.is_connected() => {
                Err(away("the connection to the servers of the log is lost"))
            }
            log => Ok(log.as_ref()),
        }
    }
}

impl Connector {
    /// The log, connected. Waits for servers only if none has failed yet: then a thread of its own connects.
    pub(super) fn connected(self: &Arc<Self>) -> Result<Arc<NatsLog>> {
        let state = lock(&self.state);
        if let Some(log) = state.connected()? {
            return Ok(Arc::clone(log));
        }
        if let Some((_, error)) = &state.failed {
            let error = error.clone();
            drop(state);
            connect_beside(self);
            return Err(error);
        }
        drop(state);
        self.connect()
    }

    /// The log if it is connected; otherwise a thread of its own connects.
    pub(super) fn connected_beside(self: &Arc<Self>) -> Option<Arc<NatsLog>> {
        let log = lock(&self.state).connected().ok().flatten().cloned();
        if log.is_none() {
            connect_beside(self);
        }
        log
    }

    fn connect(&self) -> Result<Arc<NatsLog>> {
        let _one_at_a_time = lock(&self.connecting);
        if let Some(log) = lock(&self.state).connected()? {
            return Ok(Arc::clone(log));
        }
        let opened = NatsLog::open(self.settings.clone());
        let mut state = lock(&self.state);
        match opened {
            Ok(log) => {
                let log = Arc::new(log.with_append_time(APPEND));
                self.team.connect(&log);
                log.spawn(watch_stream(Arc::downgrade(&log), Weak::clone(&self.this)));
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

    /// Moves the file of a session that was deleted in the log to the trash; see [`trash::discard`].
    pub(super) fn discard(&self, file: &Arc<ReplicatedFile>) -> Result<bool> {
        trash::discard(&self.store, file, &self.team)
    }
}

/// Notes whether the stream still keeps what it acknowledges: somebody may change it while the daemon runs.
async fn watch_stream(log: Weak<NatsLog>, connector: Weak<Connector>) {
    loop {
        tokio::time::sleep(CHECK).await;
        let (Some(log), Some(connector)) = (log.upgrade(), connector.upgrade()) else {
            return;
        };
        // A stream that is not found may be one that a restarted server does not know yet.
        let Ok(info) = log.info(ANSWER).await else {
            continue;
        };
        let misconfigured = info.config.check().err();
        let mut state = lock(&connector.state);
        if let (None, Some(error)) = (&state.misconfigured, &misconfigured) {
            tracing::warn!(%error, "nothing is appended to the log");
        }
        state.misconfigured = misconfigured;
    }
}

/// Connects on a thread of its own, unless there is a connection or somebody makes one.
fn connect_beside(connector: &Arc<Connector>) {
    let is_needed = |state: &ConnectorState| state.log.is_none() && state.fault().is_none();
    if !is_needed(&lock(&connector.state)) || connector.connecting.try_lock().is_err() {
        return;
    }
    let early = Arc::downgrade(connector);
    let connecting = thread::Builder::new().name("log".into());
    let started = connecting.spawn(move || {
        if let Some(connector) = early.upgrade()
            && let Err(error) = connector.connect()
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
        let this = self.this.upgrade();
        let this = this.ok_or_else(|| away("the daemon ends"))?;
        Ok(this.connected()?)
    }

    fn ready(&self) -> Option<Arc<dyn LogBackend>> {
        let state = lock(&self.state);
        let log = state.connected().ok()??;
        Some(Arc::clone(log) as Arc<dyn LogBackend>)
    }

    fn note_silence(&self, error: &Error) {
        let mut state = lock(&self.state);
        // Where others get answers, the servers are slow, and not away.
        let is_heard = |log: &Arc<NatsLog>| log.acknowledged_in(PAUSE);
        if state.fault().is_none() && !state.log.as_ref().is_some_and(is_heard) {
            let why = format!("the log did not answer a moment ago: {}", error.message);
            state.failed = Some((Instant::now(), away(&why)));
        }
    }
}

impl LiveLog {
    /// The log of the sessions of this directory. Connects in the background.
    pub fn new(settings: NatsSettings, session_dir: PathBuf) -> Arc<Self> {
        let connector = Arc::new_cyclic(|this| Connector {
            this: Weak::clone(this),
            connecting: Mutex::default(),
            team: Team::new(&settings.stream),
            settings,
            state: Mutex::default(),
            store: Store::new(session_dir),
        });
        connect_beside(&connector);
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            connector,
            sessions: Mutex::default(),
        })
    }

    /// The replica of a session in this file.
    fn replica(&self, session: &str, at: &Location) -> Arc<ReplicatedFile> {
        let mut sessions = lock(&self.sessions);
        let path = at.path();
        if let Some(known) = sessions.get_mut(session).filter(|known| known.at == path) {
            if std::mem::take(&mut known.is_left) {
                known.published = None;
            }
            return Arc::clone(&known.file);
        }
        let source = Arc::clone(&self.connector) as Arc<dyn LogSource>;
        let queues = self.connector.settings.queues;
        let file = ReplicatedFile::new(source, session, at.clone(), queues);
        let live = LiveSession {
            file: Arc::clone(&file),
            at: path,
            follower: None,
            published: None,
            is_left: false,
        };
        sessions.insert(session.to_owned(), live);
        file
    }

    fn follower(&self, session: &str, file: &Arc<ReplicatedFile>) -> Follower {
        let (this, id) = (Weak::clone(&self.this), session.to_owned());
        let hook: PublishedHook = Arc::new(move || {
            if let Some(log) = this.upgrade() {
                log.published(&id);
            }
        });
        Follower::new(&self.connector, session, file, hook)
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

    /// Lines that waited in the file of a session are in the log.
    fn published(&self, session: &str) {
        let mut sessions = lock(&self.sessions);
        let Some(live) = sessions.get(session).filter(|live| !live.file.waits()) else {
            return;
        };
        let (hook, is_left) = (live.published.clone(), live.is_left);
        let left = is_left.then(|| sessions.remove(session)).flatten();
        drop(sessions);
        if let Some(left) = left {
            left.save();
        } else if let Some(hook) = hook {
            hook();
        }
    }
}

impl LiveSession {
    fn save(&self) {
        if let Err(error) = self.file.save() {
            tracing::warn!(%error, "the next opening of a session compares more");
        }
    }
}

impl SharedLog for LiveLog {
    fn upstream(&self, session: &str, at: &Location) -> Arc<dyn Upstream> {
        self.replica(session, at)
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
                if !self.connector.discard(&file)? {
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
            live.follower = Some(self.follower(session, &file));
        }
        settled
    }

    fn follow(&self, session: &str, published: PublishedHook) {
        let mut sessions = lock(&self.sessions);
        let Some(live) = sessions.get_mut(session) else {
            return;
        };
        if live.follower.is_none() {
            live.follower = Some(self.follower(session, &live.file));
        }
        if live.published.replace(published).is_none() {
            self.connector.team.opened(session);
        }
    }

    fn leave(&self, session: &str) {
        self.connector.team.closed(session);
        let mut sessions = lock(&self.sessions);
        if let Some(live) = sessions.get_mut(session)
            && live.follower.is_some()
            && live.file.waits()
        {
            live.is_left = true;
            return;
        }
        let left = sessions.remove(session);
        drop(sessions);
        if let Some(left) = left {
            left.save();
        }
    }

    fn queued(&self) -> HashSet<String> {
        let sessions = lock(&self.sessions);
        let files = sessions.values().map(|live| Arc::clone(&live.file));
        let files: Vec<_> = files.collect();
        drop(sessions);
        let waiting = files.iter().filter(|file| file.waits());
        waiting.map(|file| file.session().to_owned()).collect()
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
        for session in lock(&self.sessions).values() {
            // The record only saves time.
            let _unsaved = session.file.save();
        }
        self.connector.team.end();
    }
}
