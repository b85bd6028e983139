//! The team's stream (fleet.md): which sessions are replicas, and when they are followed.

use super::Daemon;
use super::open_session::OpenSession;
use super::queue::Access;
use std::collections::HashSet;
use std::sync::{Arc, Weak};
use tokio::runtime::Handle;
use treelined_core::durability::Durability;
use treelined_core::error::{Kind, Result};
use treelined_core::team::{TeamRow, TeamView};
use treelined_core::timestamp;
use treelined_files::blocking::blocking;
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::log::OpenedLog;
use treelined_files::log::header::CURRENT_VERSION;
use treelined_files::log::upstream::{PublishedHook, is_replica};
use treelined_files::os::file::Location;
use treelined_files::session::{Session, SessionState};
use treelined_wire::notification;

impl OpenSession {
    /// Whether entries wait for the log, as the connections of the session know it.
    pub(crate) fn known_queue(&self, core: &SessionState) -> bool {
        *lock(&self.queued).get_or_insert_with(|| core.waits_for_log())
    }
}

impl Daemon {
    /// The session of a log that was opened for the first time.
    pub(crate) fn new_session(
        &self,
        opened: OpenedLog,
        access: Access,
        durability: Durability,
    ) -> Arc<Session> {
        let read_only = access == Access::Read;
        let upstream = match (&self.shared_log, opened.log.location(), opened.log.header()) {
            (Some(log), Some(at), Some(header)) if opened.log.version() <= CURRENT_VERSION => {
                Some(log.upstream(&header.id, at))
            }
            _ => None,
        };
        match upstream {
            Some(upstream) => Session::replicated(opened, read_only, upstream),
            None => Session::new(opened, read_only, durability),
        }
    }

    /// The access to a file that is about to be opened: a replica is read only as long as there is no log.
    pub(crate) fn access_to(&self, at: &Location, wanted: Access) -> Access {
        match self.shared_log.is_none() && !self.publishes_later && is_replica(at) {
            true => Access::Read,
            false => wanted,
        }
    }

    /// Brings the entries of the log into a file that is about to be opened. If that fails, the file can be read, and
    /// the first append fails for the same reason. Fails with `sessionDeleted` if the log says that the session is
    /// deleted.
    pub(crate) async fn prepare_replica(&self, at: &Location, access: Access) -> Result<()> {
        let Some(log) = &self.shared_log else {
            return Ok(());
        };
        if access == Access::Read && !is_replica(at) {
            return Ok(());
        }
        // The file of a deleted session can be read where it is.
        if self.store.is_in_trash(at) {
            return Ok(());
        }
        let (log, at) = (Arc::clone(log), at.clone());
        let prepared = blocking(move || log.prepare(&at)).await;
        match prepared {
            Err(error) if error.kind == Kind::SessionDeleted => Err(error),
            Err(error) => {
                tracing::warn!(%error, "a session is opened without the log");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// The file of a session, copied from the log if there is none here. Blocks.
    pub(crate) fn find_file(&self, id: &str) -> Result<Location> {
        let missing = match self.store.find(id) {
            Err(error) if error.kind == Kind::SessionNotFound => error,
            found => return found,
        };
        match &self.shared_log {
            Some(log) if log.fetch(id)? => self.store.find(id),
            _ => Err(missing),
        }
    }

    /// Follows what other machines append to an open session.
    pub(crate) fn follow_log(self: &Arc<Self>, open: &Arc<OpenSession>, access: Access) {
        let (Some(log), Some(path)) = (&self.shared_log, &open.session.path) else {
            return;
        };
        let is_known = || Location::of_path(path).is_ok_and(|at| is_replica(&at));
        if access == Access::Write || is_known() {
            log.follow(&open.id, self.published_hook(open));
        }
    }

    /// Tells connections and other machines that entries of the file are in the log.
    fn published_hook(self: &Arc<Self>, open: &Arc<OpenSession>) -> PublishedHook {
        let (daemon, open) = (Arc::downgrade(self), Arc::downgrade(open));
        let runtime = Handle::current();
        Arc::new(move || {
            let (daemon, open) = (Weak::clone(&daemon), Weak::clone(&open));
            runtime.spawn(async move {
                let (Some(daemon), Some(open)) = (daemon.upgrade(), open.upgrade()) else {
                    return;
                };
                let turn = daemon.turn(None, Some(&open.id), &Cancel::new()).await;
                let Ok((open, turn)) = turn else {
                    return;
                };
                // The next call reports a fault of the file.
                if let Ok(turn) = daemon.caught_up(&open, turn).await {
                    daemon.describe(&turn);
                    daemon.note_queue(&open, &turn);
                }
            });
        })
    }

    /// Announces that entries of a session wait for the log, or wait no more.
    pub(crate) fn note_queue(&self, open: &OpenSession, core: &SessionState) {
        let queued = core.waits_for_log();
        let before = lock(&open.queued).replace(queued);
        if before.is_some_and(|before| before != queued) {
            self.notify(open, |seq| notification::SessionLogChanged {
                session_id: open.id.to_string(),
                seq,
                queued,
            });
        }
    }

    /// The sessions that have entries waiting for the log.
    pub(crate) fn queued_sessions(&self) -> HashSet<String> {
        let log = self.shared_log.as_ref();
        log.map(|log| log.queued()).unwrap_or_default()
    }

    /// The sessions of the log, as other machines see them; `None` without a log.
    pub(crate) fn team(&self) -> Option<Arc<dyn TeamView>> {
        self.shared_log.as_ref().map(|log| log.team())
    }

    /// Describes a session to other machines after a commit.
    pub(crate) fn describe(&self, core: &SessionState) {
        let (Some(log), Some(header)) = (&self.shared_log, core.log.header()) else {
            return;
        };
        let now = timestamp::format(self.source.now_ms());
        let created = header.timestamp.as_deref().and_then(timestamp::parse);
        log.describe(TeamRow {
            session_id: header.id.clone(),
            name: core.tree.name().map(str::to_owned),
            cwd: header.cwd.clone(),
            created: created.map_or_else(|| now.clone(), timestamp::format),
            modified: now,
            entries: core.tree.entry_count() as u64,
            host: String::new(),
            sequence: 0,
            is_trashed: false,
        });
    }

    /// Takes this daemon out of the list of other machines. Blocks 2 s at most.
    pub(crate) fn end_log(&self) {
        if let Some(log) = &self.shared_log {
            log.end();
        }
    }

    pub(crate) fn leave_log(&self, open: &OpenSession) {
        if let Some(log) = &self.shared_log {
            log.leave(&open.id);
        }
    }
}
