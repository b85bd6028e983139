//! Creating sessions (protocol.md §3.3).

use super::call::Call;
use super::opened::{durability_of_new, new, open_after, shown};
use super::opening::durability;
use super::queue::Access;
use super::session_files::SessionFiles;
use std::future::Future;
use std::sync::Arc;
use treelined_core::entry::SpawnedBy;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::{self, NewEntry};
use treelined_core::flow::sorting;
use treelined_core::id::SessionId;
use treelined_core::tags::GitPlace;
use treelined_core::tree::Tree;
use treelined_files::log::{self, Claim, Log, OpenedLog};
use treelined_files::session::{SessionGuard, SessionState};
use treelined_files::store::exists;
use treelined_wire as wire;

/// The options of the caller for a new session.
pub(crate) struct Creator {
    pub id: SessionId,
    /// Whether a client has chosen the id. Then a session with this id may exist already.
    pub is_id_chosen: bool,
    pub cwd: String,
    pub parent: Option<String>,
    pub spawned_by: Option<SpawnedBy>,
    pub name: Option<String>,
    pub git: GitPlace,
    pub is_ephemeral: bool,
    /// Whether the file is written at once. Otherwise it is written with the first entry.
    pub writes_now: bool,
    pub durability: Option<wire::DurabilityPolicy>,
}

impl Creator {
    /// Creates the session. The request enters the queue of the session before this function returns.
    pub(crate) fn run(
        self,
        call: &Arc<Call>,
    ) -> impl Future<Output = Result<wire::CreateSessionResult>> + Send + use<> {
        let call = Arc::clone(call);
        let place = call.place_to_create(self.id.as_str(), false);
        async move {
            let (id, daemon) = (&self.id, &call.daemon);
            let lease = place.await?;
            if lease.open().is_some() {
                return Err(exists(id.as_str()));
            }
            let parent = self.parent.as_deref();
            let now = daemon.source.now_ms();
            let header = log::header::Header {
                spawned_by: self.spawned_by.clone(),
                ..log::header::Header::new(id.as_str(), now, &self.cwd, parent)
            };
            let log = if self.is_ephemeral {
                Log::ephemeral(header)
            } else {
                let log = Log::create(daemon.files.store.place(&header)?, header);
                match self.is_id_chosen {
                    true => log.claimed_by(claim(&daemon.files, id.as_str())),
                    false => log,
                }
            };
            let opened = OpenedLog {
                log,
                tree: Tree::new(),
                diagnostics: Vec::new(),
            };
            let durability = durability(&call, self.durability);
            let (open, mut guard) = new(&call, opened, Access::Write, durability, lease)?;
            let has_git = !self.git.is_empty();
            let is_written =
                self.name.is_some() || has_git || (self.writes_now && !self.is_ephemeral);
            guard.set_patient(true);
            if has_git {
                guard = write_git(&call, guard, self.git).await?;
            }
            if let Some(name) = &self.name {
                guard = write_name(&call, guard, name).await?;
            } else if is_written && !has_git {
                guard = guard.make_file().await?;
            }
            guard.set_patient(false);
            let result = wire::CreateSessionResult {
                session: shown(&open, &call, Access::Write, &guard),
                durability: durability_of_new(&open, &guard, is_written),
            };
            open_after(&call, &open, Access::Write, guard.into_with());
            Ok(result)
        }
    }
}

/// Claims the id in the session directory, so that two processes never create a session with the same id. Only an id
/// that a client has chosen can already exist.
pub(super) fn claim(files: &Arc<SessionFiles>, id: &str) -> Claim {
    let (files, id) = (Arc::downgrade(files), id.to_owned());
    Box::new(move || match files.upgrade() {
        Some(files) => files.store.claim(&id),
        None => Err(Error::new(
            Kind::ShuttingDown,
            "the daemon is shutting down",
        )),
    })
}

/// Writes the record of git, which comes before the first entry.
async fn write_git<T: Send + 'static>(
    call: &Call,
    guard: SessionGuard<T>,
    git: GitPlace,
) -> Result<SessionGuard<T>> {
    let source = Arc::clone(&call.daemon.source);
    let plan = move |state: &SessionState| Ok(sorting::plan_git(&state.tree, &*source, &git));
    let (guard, _, committed) = guard.commit(&call.cancel, plan).await;
    committed?;
    guard.ok_or_else(Error::cancelled)
}

/// Writes the name as the first entry, at once. No client is notified, since none has the session open yet.
async fn write_name<T: Send + 'static>(
    call: &Call,
    guard: SessionGuard<T>,
    name: &str,
) -> Result<SessionGuard<T>> {
    let source = Arc::clone(&call.daemon.source);
    let entry = [NewEntry::session_info(name)];
    let plan = move |state: &SessionState| {
        append::plan(&state.tree, &*source, &entry, &|node| state.entry(node))
    };
    let (guard, _, committed) = guard.commit(&call.cancel, plan).await;
    committed?;
    guard.ok_or_else(Error::cancelled)
}
