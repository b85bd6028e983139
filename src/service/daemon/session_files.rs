//! The session files of this machine, and the stream of the team (fleet.md): which files are replicas, and how the
//! stream describes them.

use super::first_message;
use super::queue::Access;
use super::shown_rows::ShownRows;
use crate::access::{self, Rights};
use crate::parts::Parts;
use std::collections::HashSet;
use std::sync::Arc;
use treelined_core::author::Signature;
use treelined_core::durability::Durability;
use treelined_core::error::{Kind, Result};
use treelined_core::id::Source;
use treelined_core::team::{TeamRow, TeamView};
use treelined_core::timestamp;
use treelined_files::blocking::blocking;
use treelined_files::log::OpenedLog;
use treelined_files::log::header::CURRENT_VERSION;
use treelined_files::log::upstream::{SharedLog, is_replica};
use treelined_files::os::file::Location;
use treelined_files::session::{Session, SessionState};
use treelined_files::store::{Store, listing};

/// The session files of this machine, and the stream of the team. Some of the files are replicas.
pub(crate) struct SessionFiles {
    pub(crate) store: Store,
    /// The stream of the team, if this daemon uses one.
    shared_log: Option<Arc<dyn SharedLog>>,
    /// See [`Parts`].
    publishes_later: bool,
    /// The writer that new entries name.
    signature: Option<Signature>,
    signs_all: bool,
    source: Arc<dyn Source>,
    pub(crate) shown_rows: ShownRows,
}

impl SessionFiles {
    /// Takes its parts out of `parts`.
    pub(super) fn new(store: Store, parts: &mut Parts, source: &Arc<dyn Source>) -> Self {
        Self {
            store,
            shared_log: parts.shared_log.take(),
            publishes_later: parts.publishes_later,
            signature: parts.author.as_ref().map(Signature::of),
            signs_all: parts.signs_all,
            source: Arc::clone(source),
            shown_rows: ShownRows::default(),
        }
    }

    /// The stream of the team, if this daemon uses one.
    pub(super) fn shared_log(&self) -> Option<&dyn SharedLog> {
        self.shared_log.as_deref()
    }

    /// Makes an open session of a file that was just opened.
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
        let signature = self.signature.clone();
        match upstream {
            Some(upstream) => Session::replicated(opened, read_only, upstream, signature),
            None => {
                let signature = signature.filter(|_| self.signs_all);
                Session::signed(opened, read_only, durability, signature)
            }
        }
    }

    /// The access to a file that the daemon is about to open. A replica is read-only if the daemon has no stream of the
    /// team and cannot publish later.
    pub(crate) fn access_to(&self, at: &Location, wanted: Access) -> Access {
        match self.shared_log.is_none() && !self.publishes_later && is_replica(at) {
            true => Access::Read,
            false => wanted,
        }
    }

    /// Brings the entries of the stream into a file that the daemon is about to open. If the stream cannot be read, the
    /// file can still be read, and the first append fails for the same reason. Fails with `sessionDeleted` if the
    /// stream says that the session is deleted.
    pub(crate) async fn prepare_replica(&self, at: &Location, access: Access) -> Result<()> {
        let Some(log) = &self.shared_log else {
            return Ok(());
        };
        if access == Access::Read && !is_replica(at) {
            return Ok(());
        }
        // The file of a deleted session can be read in the trash.
        if self.store.is_in_trash(at) {
            return Ok(());
        }
        let (log, at) = (Arc::clone(log), at.clone());
        let prepared = blocking(move || log.prepare(&at)).await;
        match prepared {
            Err(error) if matches!(error.kind, Kind::SessionDeleted | Kind::SessionErased) => {
                Err(error)
            }
            Err(error) => {
                tracing::warn!(%error, "a session is opened without the team's stream");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// The file of a session. If this machine has none, the file is copied from the stream of the team. Blocks.
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

    /// Like [`Self::find_file`], for a connection with these rights. A limited connection does not find a session of
    /// another directory, and a session that is only in the stream is not copied for it. Blocks.
    pub(crate) fn find_file_for(&self, id: &str, rights: &Rights) -> Result<Location> {
        if !rights.is_limited() {
            return self.find_file(id);
        }
        let location = self.store.find(id).map_err(|_| access::not_found(id))?;
        let header = listing::header(&location);
        rights.check_session(id, header.as_ref().map(|header| header.cwd.as_str()))?;
        Ok(location)
    }

    /// The sessions with entries that wait for the team.
    pub(crate) fn queued_sessions(&self) -> HashSet<String> {
        let log = self.shared_log.as_ref();
        log.map(|log| log.queued()).unwrap_or_default()
    }

    /// The sessions of the team, as other machines see them; `None` without a stream of the team.
    pub(crate) fn team(&self) -> Option<Arc<dyn TeamView>> {
        self.shared_log.as_ref().map(|log| log.team())
    }

    /// Describes a session to other machines after a commit.
    pub(crate) fn describe(&self, state: &SessionState) {
        let (Some(log), Some(header)) = (&self.shared_log, state.log.header()) else {
            return;
        };
        let now = timestamp::format(self.source.now_ms());
        let created = header.timestamp.as_deref().and_then(timestamp::parse);
        log.describe(TeamRow {
            session_id: header.id.clone(),
            name: state.tree.name().map(str::to_owned),
            first_message: first_message::of(state).to_owned(),
            cwd: header.cwd.clone(),
            created: created.map_or_else(|| now.clone(), timestamp::format),
            modified: now,
            entries: state.tree.entry_count() as u64,
            host: String::new(),
            sequence: 0,
            is_trashed: false,
        });
    }

    /// Removes this daemon from the list that other machines see. Blocks for at most 2 s.
    pub(crate) fn end(&self) {
        if let Some(log) = &self.shared_log {
            log.end();
        }
    }

    /// Stops following a session that has been closed.
    pub(crate) fn leave_log(&self, session_id: &str) {
        if let Some(log) = &self.shared_log {
            log.leave(session_id);
        }
    }
}
