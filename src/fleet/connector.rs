//! Connects to the servers when the log is first needed.

use super::backend::LogBackend;
use super::engine::Engine;
use super::engines;
use super::patience;
use super::replicated::{LogSource, ReplicatedFile};
use super::retention::Round;
use super::settings::TeamSettings;
use super::team::Team;
use super::trash::{self, DiscardedFile};
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::team::{TeamFound, TeamList, TeamQuery, TeamQuestion, TeamView};
use treelined_files::lock::lock;
use treelined_files::store::Store;

/// After a failure to connect, further requests fail at once for this time. After this time, a session with a lost
/// connection is followed again.
pub(super) const PAUSE: Duration = Duration::from_secs(2);

/// Connects to the servers when the log is first needed.
pub(super) struct Connector {
    pub(super) this: Weak<Self>,
    pub(super) settings: TeamSettings,
    /// Held by the thread that connects. Other threads wait for it.
    pub(super) connecting: Mutex<()>,
    /// Locked only for a moment at a time.
    pub(super) state: Mutex<ConnectorState>,
    pub(super) team: Team,
    pub(super) store: Store,
}

/// The team's list. A request for the list connects to the servers if there is no connection yet.
pub(super) struct LiveTeam(pub(super) Arc<Connector>);

impl TeamView for LiveTeam {
    fn list(&self, query: &TeamQuery) -> Arc<TeamList> {
        connect_beside(&self.0);
        self.0.team.list(query)
    }

    fn find(&self, question: &TeamQuestion) -> Result<TeamFound> {
        self.0.connected()?;
        self.0.team.find(question)
    }
}

#[derive(Default)]
pub(super) struct ConnectorState {
    pub(super) log: Option<Arc<dyn Engine>>,
    /// The time and the error of the last failure to connect, or to get an answer.
    pub(super) failed: Option<(Instant, Error)>,
    /// The reason why the log may lose acknowledged lines, if there is one.
    pub(super) misconfigured: Option<Error>,
}

impl ConnectorState {
    /// The reason why the log cannot be used now, if there is one.
    pub(super) fn fault(&self) -> Option<&Error> {
        let failed = self.failed.as_ref();
        let failed_lately = failed.filter(|(at, _)| at.elapsed() < PAUSE);
        let failed_lately = failed_lately.map(|(_, error)| error);
        self.misconfigured.as_ref().or(failed_lately)
    }

    /// The connected log; `None` if nothing has connected yet.
    pub(super) fn connected(&self) -> Result<Option<&Arc<dyn Engine>>> {
        if let Some(error) = self.fault() {
            return Err(error.clone());
        }
        match &self.log {
            Some(log) if !log.is_connected() => {
                Err(away("the connection to the team's servers is lost"))
            }
            log => Ok(log.as_ref()),
        }
    }
}

impl Connector {
    /// The connected log. Waits for a connection only if no attempt to connect has failed yet, and if the caller has
    /// not set a moment (see [`patience`]). Otherwise a separate thread connects, and this call fails.
    pub(super) fn connected(self: &Arc<Self>) -> Result<Arc<dyn Engine>> {
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
        if patience::until().is_some() {
            connect_beside(self);
            return Err(away("no server is connected yet"));
        }
        self.connect()
    }

    /// The connected log, if there is one. Otherwise a separate thread connects.
    pub(super) fn connected_beside(self: &Arc<Self>) -> Option<Arc<dyn Engine>> {
        let log = lock(&self.state).connected().ok().flatten().cloned();
        if log.is_none() {
            connect_beside(self);
        }
        log
    }

    pub(super) fn connect(&self) -> Result<Arc<dyn Engine>> {
        let _one_at_a_time = lock(&self.connecting);
        if let Some(log) = lock(&self.state).connected()? {
            return Ok(Arc::clone(log));
        }
        let opened = engines::open(&self.settings, Some(APPEND));
        let mut state = lock(&self.state);
        match opened {
            Ok(log) => {
                self.team.connect(&*log);
                let watching = watch(Arc::downgrade(&log), Weak::clone(&self.this));
                log.runtime().spawn(watching);
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

    /// Moves the file of a session that is deleted in the log to the trash; see [`trash::discard`].
    pub(super) fn discard(&self, file: &ReplicatedFile) -> Result<Option<DiscardedFile>> {
        trash::discard(&self.store, file, &self.team)
    }

    /// Moves the file of a restored session back; see [`trash::bring_back`].
    pub(super) fn bring_back(&self, file: &ReplicatedFile, path: Option<&Path>) -> Result<bool> {
        trash::bring_back(&self.store, &*self.log()?, file, path)
    }
}

/// Checks again and again whether the log still keeps acknowledged lines, since its settings can change while the
/// daemon runs.
async fn watch(log: Weak<dyn Engine>, connector: Weak<Connector>) {
    loop {
        tokio::time::sleep(CHECK).await;
        let (Some(log), Some(connector)) = (log.upgrade(), connector.upgrade()) else {
            return;
        };
        // A restarted server may not know the log yet, so an error changes nothing.
        let Ok(misconfigured) = log.fault().await else {
            continue;
        };
        let mut state = lock(&connector.state);
        if let (None, Some(error)) = (&state.misconfigured, &misconfigured) {
            tracing::warn!(%error, "nothing is appended to the team's stream");
        }
        state.misconfigured = misconfigured;
    }
}

/// Connects on a separate thread, unless there is a connection or another thread is connecting.
pub(super) fn connect_beside(connector: &Arc<Connector>) {
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
            let what = match error.kind {
                Kind::LogUnavailable => "the team's servers do not answer",
                _ => "nothing is appended to the team's servers",
            };
            tracing::warn!(%error, "{what}; sessions can be read");
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "the team's servers are connected at the first use");
    }
}

/// Closes and erases sessions without activity again and again, on a separate thread, if the settings say so.
pub(super) fn retain_beside(connector: &Arc<Connector>) {
    let Some(retention) = connector.settings.retention() else {
        return;
    };
    let early = Arc::downgrade(connector);
    let retaining = thread::Builder::new().name("retention".into());
    let started = retaining.spawn(move || {
        loop {
            thread::sleep(RETAIN);
            let Some(connector) = early.upgrade() else {
                return;
            };
            let Some(log) = connector.connected_beside() else {
                continue;
            };
            let round = Round {
                retention,
                session_dir: connector.store.path(),
                author: connector.team.author(),
                is_dry: false,
            };
            if let Err(error) = round.run_in_turn(&*log) {
                tracing::info!(%error, "sessions without activity stay");
            }
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "sessions without activity stay");
    }
}

/// The error `logUnavailable`, with the pause after which the client can try again.
pub(super) fn away(why: &str) -> Error {
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

    fn durability(&self) -> Durability {
        let state = lock(&self.state);
        let log = state.log.as_ref();
        log.map_or(Durability::Replicated, |log| log.durability())
    }

    fn note_silence(&self, error: &Error) {
        let mut state = lock(&self.state);
        // If other requests get answers, the servers are slow but not away.
        let is_heard = |log: &Arc<dyn Engine>| log.acknowledged_in(PAUSE);
        if state.fault().is_none() && !state.log.as_ref().is_some_and(is_heard) {
            let why = format!(
                "the team's servers did not answer a moment ago: {}",
                error.message
            );
            state.failed = Some((Instant::now(), away(&why)));
        }
    }
}

/// The pause between two checks of the log.
const CHECK: Duration = Duration::from_secs(15);

/// The pause between two checks whether sessions without activity must be closed or erased.
const RETAIN: Duration = Duration::from_secs(10);

/// How long a daemon tries an append.
const APPEND: Duration = Duration::from_secs(5);
