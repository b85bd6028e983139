//! The logs of a daemon: one connection for all of its sessions, and a follower for each open session.

use super::connector::{Connector, LiveTeam, connect_beside, retain_beside};
use super::engine;
use super::files::SessionFiles;
use super::follower::Follower;
use super::replicated::{LogSource, ReplicatedFile, TornLine};
use super::team::Team;
use super::{transfer, trash};
use crate::settings::TeamSettings;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use treelined_core::author::Author;
use treelined_core::error::{Kind, Result};
use treelined_core::team::{TeamRow, TeamView};
use treelined_files::lock::lock;
use treelined_files::log::header::CURRENT_VERSION;
use treelined_files::log::upstream::{InLog, LogHook, LogNews, SharedLog, Upstream};
use treelined_files::os::file::Location;
use treelined_files::store::{Store, listing};

/// The logs of a daemon.
pub struct LiveLog {
    this: Weak<Self>,
    connector: Arc<Connector>,
    /// The sessions by their ids.
    sessions: Mutex<HashMap<String, LiveSession>>,
}

struct LiveSession {
    file: Arc<ReplicatedFile>,
    at: PathBuf,
    follower: Option<Follower>,
    news: Option<LogHook>,
    /// Whether the session is closed. A closed session is followed only until no lines wait in its file.
    is_left: bool,
}

impl LiveLog {
    /// The logs of the sessions in this directory. Connects in the background.
    pub fn new(settings: TeamSettings, author: Author, session_dir: PathBuf) -> Arc<Self> {
        let connector = Arc::new_cyclic(|this| Connector {
            this: Weak::clone(this),
            connecting: Mutex::default(),
            team: Team::new(settings.name(), author),
            settings,
            state: Mutex::default(),
            store: Store::new(session_dir),
        });
        connect_beside(&connector);
        retain_beside(&connector);
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
                known.news = None;
            }
            return Arc::clone(&known.file);
        }
        let source = Arc::clone(&self.connector) as Arc<dyn LogSource>;
        let queues = self.connector.settings.queues();
        let file = ReplicatedFile::new(source, session, at.clone(), queues);
        let live = LiveSession {
            file: Arc::clone(&file),
            at: path,
            follower: None,
            news: None,
            is_left: false,
        };
        sessions.insert(session.to_owned(), live);
        file
    }

    fn follower(&self, session: &str, file: &Arc<ReplicatedFile>) -> Follower {
        let (this, id) = (Weak::clone(&self.this), session.to_owned());
        let hook: LogHook = Arc::new(move |news| match (this.upgrade(), news) {
            (Some(log), LogNews::Published) => log.published(&id),
            (Some(log), other) => log.tell(&id, other),
            (None, _) => {}
        });
        Follower::new(&self.connector, session, file, hook)
    }

    /// Notifies the daemon if it has the session open.
    fn tell(&self, session: &str, news: LogNews) {
        let sessions = lock(&self.sessions);
        let hook = sessions.get(session).and_then(|live| live.news.clone());
        drop(sessions);
        if let Some(hook) = hook {
            hook(news);
        }
    }

    fn is_followed(&self, session: &str) -> bool {
        let sessions = lock(&self.sessions);
        sessions
            .get(session)
            .is_some_and(|live| live.follower.is_some())
    }

    /// Removes the replica of a session that is not open.
    fn forget(&self, session: &str) {
        let mut sessions = lock(&self.sessions);
        if sessions
            .get(session)
            .is_some_and(|live| live.follower.is_none())
        {
            sessions.remove(session);
        }
    }

    /// Notes that the lines which waited in the file of a session are in the log.
    fn published(&self, session: &str) {
        let mut sessions = lock(&self.sessions);
        let Some(live) = sessions.get(session).filter(|live| !live.file.waits()) else {
            return;
        };
        let (hook, is_left) = (live.news.clone(), live.is_left);
        let left = is_left.then(|| sessions.remove(session)).flatten();
        drop(sessions);
        if let Some(left) = left {
            left.save();
        } else if let Some(hook) = hook {
            hook(LogNews::Published);
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
        // The first append rewrites a file of an older version, so such a file has no log yet.
        if header.version != CURRENT_VERSION {
            return Ok(());
        }
        let file = self.replica(&header.id, at);
        match file.settle_alone(TornLine::Leave) {
            Err(error) if error.kind == Kind::SessionDeleted => {
                // The follower of an open session moves its file, and reports which entries are lost.
                if self.is_followed(&header.id) {
                    return Err(error);
                }
                if self.connector.discard(&file)?.is_none() {
                    return Ok(());
                }
                self.forget(&header.id);
                Err(error)
            }
            Err(error) if error.kind == Kind::SessionErased => {
                self.connector.store.erase(&header.id)?;
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
        trash::reopen(&*log, session, &self.connector.team)
    }

    fn restored(&self, session: &str, at: &Location, before: InLog) -> Result<()> {
        let file = self.replica(session, at);
        file.stop_closing();
        let settled = trash::settle_restored(&file, &self.connector.team, before);
        self.forget(session);
        // If the deletion of the session has failed, the session is still open and is followed again.
        if let Some(live) = lock(&self.sessions).get_mut(session) {
            live.follower = Some(self.follower(session, &file));
        }
        settled
    }

    fn erase(&self, session: &str) -> Result<()> {
        let log = self.connector.connected()?;
        engine::wait(log.runtime(), log.erase(session))
    }

    fn follow(&self, session: &str, news: LogHook) {
        let mut sessions = lock(&self.sessions);
        let Some(live) = sessions.get_mut(session) else {
            return;
        };
        if live.follower.is_none() {
            live.follower = Some(self.follower(session, &live.file));
        }
        if live.news.replace(news).is_none() {
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
        // A session whose lines all wait is not in the log yet.
        if sequence > 0 {
            let team = &self.connector.team;
            let host = team.author().host.clone();
            team.note(TeamRow {
                host,
                sequence,
                // Another machine may have deleted the session after the commit.
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
            // Without the record, the next opening only takes longer.
            let _unsaved = session.file.save();
        }
        self.connector.team.end();
    }
}
