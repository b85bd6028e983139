//! Sessions as a whole: create, open, close, delete (protocol.md §3).

use super::list;
use super::reply::Reply;
use crate::blocking::blocking;
use crate::daemon::Daemon;
use crate::daemon::call::Call;
use crate::daemon::convert;
use crate::daemon::open_session::{Lease, OpenSession, OpenSessions, SessionGuard, guard};
use crate::daemon::queue::{Scope, Unnamed};
use crate::durability::Durability;
use crate::error::{Error, Kind, Result};
use crate::flow::append::{self, NewEntry};
use crate::log::{self, Claim, Log, OpenedLog};
use crate::name;
use crate::os::file::Location;
use crate::session::{self, Activity, Session, SessionState};
use crate::store::listing;
use crate::store::{self, exists};
use crate::tree::Tree;
use crate::wire::{self, notification};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long others wait until it is known which session a file to be opened is of.
const HEADER_IS_READ: Duration = Duration::from_millis(100);

pub(super) async fn create_session(
    call: Arc<Call>,
    params: wire::CreateSessionParams,
) -> Result<Reply> {
    let id = store::choose_id(params.session_id.as_deref())?;
    let ephemeral = params.ephemeral.unwrap_or_default();
    if ephemeral && params.write.is_some() {
        let why = "an ephemeral session is never written: leave it out";
        return Err(Error::invalid_params("write", why));
    }
    let daemon = Arc::clone(&call.daemon);
    let lease = daemon
        .queues
        .lease(Some(id.as_str()), Scope::Create, &call.cancel)
        .await?;
    if lease.open().is_some() {
        return Err(exists(id.as_str()));
    }
    let writes_now = match params.write {
        Some(when) => when == wire::FirstWrite::Now,
        None => call.connection.writes_files_at_once(),
    };
    let cwd = params.cwd.unwrap_or_else(|| daemon.config.cwd.clone());
    let parent = params.parent_session.as_deref();
    let header = log::header::Header::new(id.as_str(), daemon.source.now_ms(), &cwd, parent);
    let log = if ephemeral {
        Log::ephemeral(header)
    } else {
        let log = Log::create(daemon.store.place(&header)?, header);
        match params.session_id {
            Some(_) => log.claimed_by(claim(&daemon, id.as_str())),
            None => log,
        }
    };
    let opened = OpenedLog {
        log,
        tree: Tree::new(),
        diagnostics: Vec::new(),
    };
    let durability = durability(&call, params.durability);
    let open = OpenSession::new(Session::new(opened, false, durability), &call.connection);
    let mut turn = open.session.guard(Instant::now(), lease)?;
    let name = params.name.as_deref().and_then(name::given);
    let is_written = name.is_some() || (writes_now && !ephemeral);
    if let Some(name) = &name {
        turn = write_name(&call, turn, name).await?;
    } else if is_written {
        turn = turn.make_file().await?;
    }
    let result = wire::CreateSessionResult {
        session: convert::session(&open, &call.connection, &turn),
        durability: open.durability(is_written),
    };
    call.open_after(&open, turn.into_with());
    Reply::of(&result)
}

/// Two processes never make a session with the same id. Only one that a client has chosen can be taken.
fn claim(daemon: &Arc<Daemon>, id: &str) -> Claim {
    let (daemon, id) = (Arc::downgrade(daemon), id.to_owned());
    Box::new(move || match daemon.upgrade() {
        Some(daemon) => daemon.store.claim(&id),
        None => Err(Error::new(
            Kind::ShuttingDown,
            "the daemon is shutting down",
        )),
    })
}

/// The name is the first entry, written at once; nobody is told, since nobody knows the session.
async fn write_name(
    call: &Call,
    turn: session::SessionGuard<Lease>,
    name: &str,
) -> Result<session::SessionGuard<Lease>> {
    let source = Arc::clone(&call.daemon.source);
    let entry = [NewEntry::session_info(name)];
    let plan = move |core: &SessionState| {
        append::plan(&core.tree, &*source, &entry, &|node| core.entry(node))
    };
    let (turn, _, committed) = turn.commit(&call.cancel, plan).await;
    committed?;
    turn.ok_or_else(Error::cancelled)
}

pub(super) async fn open_session(
    call: Arc<Call>,
    params: wire::OpenSessionParams,
) -> Result<Reply> {
    let daemon = &call.daemon;
    let policy = params.durability;
    let read_only = params.mode == Some(wire::OpenMode::Read);
    let (mut found, location) = match params.target()? {
        wire::OpenTarget::Id(id) => {
            let lease = daemon
                .queues
                .lease(Some(id), Scope::Open, &call.cancel)
                .await?;
            if lease.open().is_some() {
                return opened_before(&call, lease, policy).await;
            }
            let (store, id) = (Arc::clone(daemon), id.to_owned());
            let location = blocking(move || store.store.find(&id)).await?;
            (Found::Lease(lease), location)
        }
        wire::OpenTarget::Path(path) => {
            let unnamed = daemon.queues.unnamed(&call.cancel);
            let path = path.to_owned();
            let location = blocking(move || Location::of_path(Path::new(&path))).await?;
            // The header alone tells whether the session is open already.
            (name(unnamed, &location).await?, location)
        }
    };
    if let Found::Lease(lease) = found {
        if let Some(open) = lease.open() {
            same_file(open, location).await?;
            return opened_before(&call, lease, policy).await;
        }
        found = Found::Lease(lease);
    }
    let (opening, at, cancel) = (Arc::clone(daemon), location.clone(), call.cancel.clone());
    let opened = blocking(move || opening.store.open(at, &cancel)).await?;
    let header = opened.log.header();
    let id = header.map(|header| header.id.clone()).unwrap_or_default();
    let lease = match found {
        Found::Lease(lease) if **lease.id() == *id => lease,
        other => {
            // The header took long to find, or the file has been replaced since it was read.
            let lease = match other {
                Found::Unnamed(unnamed) => unnamed.lease(&id).await?,
                Found::Lease(lease) => {
                    drop(lease);
                    daemon
                        .queues
                        .lease(Some(&id), Scope::Open, &call.cancel)
                        .await?
                }
            };
            if let Some(open) = lease.open() {
                same_file(open, location).await?;
                return opened_before(&call, lease, policy).await;
            }
            lease
        }
    };
    if let Some(at) = opened.log.location().filter(|_| !read_only) {
        daemon.store.tidy_once(&at.folder);
    }
    let diagnostics = convert::diagnostics(&opened.diagnostics);
    let session = Session::new(opened, read_only, durability(&call, policy));
    let open = OpenSession::new(session, &call.connection);
    let turn = open.session.guard(Instant::now(), lease)?;
    let result = wire::OpenSessionResult {
        session: convert::session(&open, &call.connection, &turn),
        diagnostics,
    };
    call.open_after(&open, turn.into_with());
    Reply::of(&result)
}

/// The session's own policy, else the daemon's.
fn durability(call: &Call, policy: Option<wire::DurabilityPolicy>) -> Durability {
    policy.map_or(call.daemon.config.durability, convert::policy)
}

/// What is known of the session whose file is to be opened.
enum Found {
    Lease(Lease),
    /// Its id is not known yet.
    Unnamed(Unnamed<OpenSessions>),
}

/// Finds out by the header which session's file this is, and waits for earlier requests about that
/// session; if the header is not found soon, others do not wait for it.
async fn name(unnamed: Unnamed<OpenSessions>, location: &Location) -> Result<Found> {
    let location = location.clone();
    let header = blocking(move || Ok(listing::header_id(&location)));
    let id = match tokio::time::timeout(HEADER_IS_READ, header).await {
        Ok(found) => found?,
        Err(_) => None,
    };
    match id {
        Some(id) => unnamed.lease(&id).await.map(Found::Lease),
        None => {
            unnamed.header_is_late();
            Ok(Found::Unnamed(unnamed))
        }
    }
}

/// `sessionExists` unless this is the file of the open session. To be called with its lease.
async fn same_file(open: &Arc<OpenSession>, location: Location) -> Result<()> {
    let open = Arc::clone(open);
    blocking(move || {
        let identity = |at: &Location| at.status().ok().map(|status| status.identity);
        let guard = open.session.guard(Instant::now(), ())?;
        let opened = guard.log.location().and_then(identity);
        drop(guard);
        match opened.is_some() && opened == identity(&location) {
            true => Ok(()),
            false => Err(exists(&open.id)),
        }
    })
    .await
}

async fn opened_before(
    call: &Arc<Call>,
    lease: Lease,
    policy: Option<wire::DurabilityPolicy>,
) -> Result<Reply> {
    let (open, turn) = guard(lease, Instant::now())?;
    let turn = call.daemon.caught_up(&open, turn).await?;
    if policy.is_some() {
        open.session.syncer.set_durability(durability(call, policy));
    }
    Reply::of(&wire::OpenSessionResult {
        session: convert::session(&open, &call.connection, &turn),
        diagnostics: Vec::new(),
    })
}

pub(super) async fn close_session(
    call: Arc<Call>,
    params: wire::CloseSessionParams,
) -> Result<Reply> {
    let id = params.session_id.as_deref();
    let lease = call
        .daemon
        .queues
        .lease(id, Scope::Change, &call.cancel)
        .await?;
    let (open, mut turn) = closing(lease).await?;
    close(&call.daemon, &open, &mut turn);
    Reply::of(&wire::CloseSessionResult {})
}

/// The session that is to be closed. A navigation is aborted; a turn of the client is not.
async fn closing(lease: Lease) -> Result<(Arc<OpenSession>, SessionGuard)> {
    let (open, turn) = guard(lease, Instant::now())?;
    // Looked at with the lease: what was asked for before has begun, and cannot commit now.
    match open.session.activity() {
        Some(Activity::Navigation { abort, .. } | Activity::Compaction { abort }) => {
            abort.cancel();
            open.session.idle().await;
        }
        Some(Activity::AgentTurn) => open.session.check_idle()?,
        None => {}
    }
    open.session.syncer.flush().await?;
    Ok((open, turn))
}

fn close(daemon: &Daemon, open: &OpenSession, turn: &mut SessionGuard) {
    daemon.remove(open, turn);
    daemon.notify(open, "session_closed", |seq| notification::SessionClosed {
        session_id: open.id.to_string(),
        seq,
    });
}

pub(super) async fn delete_session(
    call: Arc<Call>,
    params: wire::DeleteSessionParams,
) -> Result<Reply> {
    let id = params.session_id;
    if let Some(open) = call.daemon.find(&id) {
        open.session.check_writable()?;
    }
    // The lease is kept until the file is gone: nobody writes to it, and its id is free for the next
    // request. Where that fails the session stays open.
    let lease = call
        .daemon
        .queues
        .lease(Some(&id), Scope::Change, &call.cancel)
        .await?;
    let trashed = match lease.open() {
        Some(_) => {
            let (open, mut turn) = closing(lease).await?;
            open.session.check_writable()?;
            let written = turn.log.location().filter(|_| turn.log.is_written());
            let at = written.cloned();
            let trashed = to_trash(&call.daemon, at).await?;
            close(&call.daemon, &open, &mut turn);
            trashed
        }
        None => {
            let daemon = Arc::clone(&call.daemon);
            let found = blocking(move || daemon.store.find(&id)).await?;
            let trashed = to_trash(&call.daemon, Some(found)).await?;
            drop(lease);
            trashed
        }
    };
    Reply::of(&wire::DeleteSessionResult {
        trashed_path: trashed.map(|path| path.display().to_string()),
    })
}

async fn to_trash(daemon: &Arc<Daemon>, at: Option<Location>) -> Result<Option<PathBuf>> {
    let Some(at) = at else {
        return Ok(None);
    };
    let daemon = Arc::clone(daemon);
    blocking(move || daemon.store.trash(&at).map(Some)).await
}

pub(super) async fn list_trash(call: Arc<Call>, params: wire::ListTrashParams) -> Result<Reply> {
    let daemon = Arc::clone(&call.daemon);
    blocking(move || list::trash_page(daemon.store.trashed()?, &params)).await
}

pub(super) async fn restore_session(
    call: Arc<Call>,
    params: wire::RestoreSessionParams,
) -> Result<Reply> {
    let id = params.session_id;
    let lease = call
        .daemon
        .queues
        .lease(Some(&id), Scope::Change, &call.cancel)
        .await?;
    if lease.open().is_some() {
        return Err(exists(&id));
    }
    let daemon = Arc::clone(&call.daemon);
    let restored = blocking(move || {
        let path = daemon.store.restore(&id, params.trashed_path.as_deref())?;
        Ok(wire::RestoreSessionResult {
            session_id: id,
            path: path.display().to_string(),
        })
    });
    let restored = restored.await?;
    drop(lease);
    Reply::of(&restored)
}
