//! Whole sessions: create, open, close, delete (protocol.md §3).

use crate::daemon::Daemon;
use crate::daemon::call::Call;
use crate::daemon::closing;
use crate::daemon::convert;
use crate::daemon::open_session::guard_for_all;
use crate::daemon::open_session::{Lease, OpenSession, OpenSessions, Place};
use crate::daemon::queue::{Access, Scope, Unnamed};
use crate::rpc::handler::Remainder;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::{self, NewEntry};
use treelined_core::id::SessionId;
use treelined_core::name;
use treelined_core::tree::Tree;
use treelined_files::blocking::blocking;
use treelined_files::log::{self, Claim, Log, OpenedLog};
use treelined_files::os::file::Location;
use treelined_files::session::{self, SessionState};
use treelined_files::store::listing;
use treelined_files::store::{self, exists};
use treelined_wire as wire;

/// The time for which other requests wait for the header of a file.
const HEADER_IS_READ: Duration = Duration::from_millis(100);

pub(in crate::rpc) fn create_session(
    call: &Arc<Call>,
    params: wire::CreateSessionParams,
) -> Result<Remainder<wire::CreateSessionResult>> {
    let id = store::choose_id(params.session_id.as_deref())?;
    if params.ephemeral.unwrap_or_default() && params.write.is_some() {
        let why = "an ephemeral session is never written: leave it out";
        return Err(Error::invalid_params("write", why));
    }
    let cwd = params.cwd.as_deref().or(call.connection.default_cwd());
    let cwd = cwd.map(str::to_owned).ok_or_else(|| {
        let why = "is required: initialize gave no cwd for this connection";
        Error::invalid_params("cwd", why)
    })?;
    let place = call.place(Some(id.as_str()), Scope::Create);
    Ok(Box::pin(create(Arc::clone(call), place, id, cwd, params)))
}

async fn create(
    call: Arc<Call>,
    place: Place,
    id: SessionId,
    cwd: String,
    params: wire::CreateSessionParams,
) -> Result<wire::CreateSessionResult> {
    let daemon = Arc::clone(&call.daemon);
    let ephemeral = params.ephemeral.unwrap_or_default();
    let lease = place.await?;
    if lease.open().is_some() {
        return Err(exists(id.as_str()));
    }
    let writes_now = match params.write {
        Some(when) => when == wire::FirstWrite::Now,
        None => call.connection.writes_files_at_once(),
    };
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
    let session = daemon.new_session(opened, Access::Write, durability);
    let open = OpenSession::new(session, &call.connection);
    let mut turn = open.session.guard(Instant::now(), lease)?;
    let name = params.name.as_deref().and_then(name::given);
    let is_written = name.is_some() || (writes_now && !ephemeral);
    if let Some(name) = &name {
        turn = write_name(&call, turn, name).await?;
    } else if is_written {
        turn = turn.make_file().await?;
    }
    let result = wire::CreateSessionResult {
        session: open.shown_to(&call.connection, Access::Write, &turn),
        durability: open.durability(&turn, is_written),
    };
    call.open_after(&open, Access::Write, turn.into_with());
    Ok(result)
}

/// Two processes never create a session with the same id. Only an id from a client can already exist.
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

/// The name is the first entry, written at once. No client is notified, since none has the session open.
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

pub(in crate::rpc) fn open_session(
    call: &Arc<Call>,
    params: wire::OpenSessionParams,
) -> Result<Remainder<wire::OpenSessionResult>> {
    let options = OpenOptions {
        access: match params.mode {
            Some(wire::OpenMode::Read) => Access::Read,
            _ => Access::Write,
        },
        durability: params.durability,
    };
    let call = Arc::clone(call);
    Ok(match params.target()? {
        wire::OpenTarget::Id(id) => {
            let place = call.place(Some(id), Scope::Open);
            let id = id.to_owned();
            Box::pin(async move {
                let lease = place.await?;
                if lease.open().is_some() {
                    return opened_before(&call, lease, options).await;
                }
                let daemon = Arc::clone(&call.daemon);
                let location = blocking(move || daemon.find_file(&id)).await?;
                open(call, Found::Lease(lease), location, options).await
            })
        }
        wire::OpenTarget::Path(path) => {
            let by = Some(call.connection.id);
            let imports = call.daemon.queues.imports_ended(by);
            let unnamed = call.daemon.queues.unnamed(by, &call.cancel);
            let path = path.to_owned();
            Box::pin(async move {
                // An import may create the file.
                call.cancel.guard(ended(imports, &unnamed)).await?;
                let location = blocking(move || Location::of_path(Path::new(&path))).await?;
                // The header is enough to see whether the session is open.
                let found = name(unnamed, &location).await?;
                open(call, found, location, options).await
            })
        }
    })
}

/// Opens a file, unless its session is open.
async fn open(
    call: Arc<Call>,
    found: Found,
    location: Location,
    options: OpenOptions,
) -> Result<wire::OpenSessionResult> {
    let daemon = &call.daemon;
    if let Found::Lease(lease) = &found
        && let Some(open) = lease.open()
    {
        same_file(open, location).await?;
        return match found {
            Found::Lease(lease) => opened_before(&call, lease, options).await,
            Found::Unnamed(_) => Err(Error::cancelled()),
        };
    }
    let options = OpenOptions {
        access: daemon.access_to(&location, options.access),
        ..options
    };
    daemon.prepare_replica(&location, options.access).await?;
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
                    call.place(Some(&id), Scope::Open).await?
                }
            };
            if let Some(open) = lease.open() {
                same_file(open, location).await?;
                return opened_before(&call, lease, options).await;
            }
            lease
        }
    };
    if let Some(at) = opened
        .log
        .location()
        .filter(|_| options.access == Access::Write)
    {
        daemon.store.tidy_once(&at.folder);
    }
    let mut diagnostics = convert::diagnostics(&opened.diagnostics);
    let durability = durability(&call, options.durability);
    let session = daemon.new_session(opened, options.access, durability);
    let open = OpenSession::new(session, &call.connection);
    let turn = open.session.guard(Instant::now(), lease)?;
    diagnostics.extend(convert::leaf_beside_newest(&turn));
    let result = wire::OpenSessionResult {
        session: open.shown_to(&call.connection, options.access, &turn),
        diagnostics,
    };
    call.open_after(&open, options.access, turn.into_with());
    Ok(result)
}

/// The options of an opening.
#[derive(Clone, Copy)]
struct OpenOptions {
    access: Access,
    durability: Option<wire::DurabilityPolicy>,
}

/// The session's own policy, else the daemon's.
fn durability(call: &Call, policy: Option<wire::DurabilityPolicy>) -> Durability {
    policy.map_or(call.daemon.settings.durability, convert::policy)
}

/// The session of a file that is to be opened.
enum Found {
    Lease(Lease),
    /// Its id is not known yet.
    Unnamed(Unnamed<OpenSessions>),
}

/// Waits for imports; if they take long, other requests do not wait for this one.
async fn ended(imports: impl Future<Output = ()>, unnamed: &Unnamed<OpenSessions>) {
    let mut imports = pin!(imports);
    let waiting = tokio::time::timeout(HEADER_IS_READ, &mut imports);
    if waiting.await.is_err() {
        unnamed.header_is_late();
        imports.await;
    }
}

/// Reads the session's id from the header, and waits for earlier requests to that session; if the header is not found
/// soon, other requests do not wait for it.
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

/// `sessionExists` unless this is the file of the open session. Call it with the lease.
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
    options: OpenOptions,
) -> Result<wire::OpenSessionResult> {
    let access = lease.access().unwrap_or(options.access);
    let (open, turn) = guard_for_all(lease, Instant::now())?;
    let turn = call.daemon.caught_up(&open, turn).await?;
    if options.durability.is_some() {
        let durability = durability(call, options.durability);
        open.session.syncer.set_durability(durability);
    }
    let result = wire::OpenSessionResult {
        session: open.shown_to(&call.connection, access, &turn),
        diagnostics: convert::leaf_beside_newest(&turn).into_iter().collect(),
    };
    call.open_again_after(&open, access, turn);
    Ok(result)
}

pub(in crate::rpc) fn close_session(
    call: &Arc<Call>,
    params: wire::CloseSessionParams,
) -> Result<Remainder<wire::CloseSessionResult>> {
    let place = call.place(params.session_id.as_deref(), Scope::Change);
    let (daemon, connection) = (Arc::clone(&call.daemon), Arc::clone(&call.connection));
    Ok(Box::pin(async move {
        closing::close(&daemon, &connection, place.await?).await?;
        Ok(wire::CloseSessionResult {})
    }))
}

pub(in crate::rpc) fn delete_session(
    call: &Arc<Call>,
    params: wire::DeleteSessionParams,
) -> Result<Remainder<wire::DeleteSessionResult>> {
    let id = params.session_id;
    if let Some(open) = call.daemon.find(&id) {
        open.session.check_version()?;
    }
    let place = call.place(Some(&id), Scope::Change);
    Ok(Box::pin(delete(Arc::clone(&call.daemon), place, id)))
}

/// Keeps the lease until the file is removed: no job writes to it, and the next request may use its id. On failure the
/// session stays open.
async fn delete(
    daemon: Arc<Daemon>,
    place: Place,
    id: String,
) -> Result<wire::DeleteSessionResult> {
    let lease = place.await?;
    let trashed = match lease.open() {
        Some(_) => {
            lease.check_writable()?;
            let (open, mut turn) = closing::prepare(lease).await?;
            open.session.check_version()?;
            let written = turn.log.location().filter(|_| turn.log.is_written());
            let at = written.cloned();
            let trashed = daemon.delete_file(&id, at).await?;
            closing::close_for_all(&daemon, &open, &mut turn);
            trashed
        }
        None => {
            let finding = Arc::clone(&daemon);
            let named = id.clone();
            let found = blocking(move || finding.find_file(&named)).await?;
            let trashed = daemon.delete_file(&id, Some(found)).await?;
            drop(lease);
            trashed
        }
    };
    Ok(wire::DeleteSessionResult {
        trashed_path: trashed.map(|path| path.display().to_string()),
    })
}

pub(in crate::rpc) fn restore_session(
    call: &Arc<Call>,
    params: wire::RestoreSessionParams,
) -> Result<Remainder<wire::RestoreSessionResult>> {
    let id = params.session_id;
    let place = call.place(Some(&id), Scope::Change);
    let daemon = Arc::clone(&call.daemon);
    Ok(Box::pin(async move {
        let lease = place.await?;
        if lease.open().is_some() {
            return Err(exists(&id));
        }
        let restored = blocking(move || {
            let path = daemon.restore(&id, params.trashed_path.as_deref())?;
            Ok(wire::RestoreSessionResult {
                session_id: id,
                path: path.display().to_string(),
            })
        });
        let restored = restored.await?;
        drop(lease);
        Ok(restored)
    }))
}
