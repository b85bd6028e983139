//! Opening sessions, by id or by file (protocol.md §3.3).

use super::append::OpenSessions;
use super::call::Call;
use super::convert::diagnostics;
use super::follow;
use super::guard::{Lease, guard_for_all};
use super::opened::{new, open_after, open_again_after, shown};
use super::queue::{Access, Unnamed};
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Result};
use treelined_files::blocking::blocking;
use treelined_files::os::file::Location;
use treelined_files::store::listing;
use treelined_wire as wire;

/// How long other requests wait for the header of a file.
const HEADER_IS_READ: Duration = Duration::from_millis(100);

/// The options of an opening.
#[derive(Clone, Copy)]
pub(crate) struct OpenOptions {
    pub access: Access,
    /// The policy of this session, if the caller chooses one.
    pub durability: Option<wire::DurabilityPolicy>,
}

/// Opens the session with this id. The request enters the queue of the session before this function returns.
pub(crate) fn by_id(
    call: &Arc<Call>,
    id: &str,
    options: OpenOptions,
) -> impl Future<Output = Result<wire::OpenSessionResult>> + Send + use<> {
    let (call, id) = (Arc::clone(call), id.to_owned());
    let place = call.place_to_open(&id);
    async move {
        let lease = place.await?;
        if lease.open().is_some() {
            return opened_before(&call, lease, options).await;
        }
        let (files, rights) = (
            Arc::clone(&call.daemon.files),
            Arc::clone(call.connection.rights()),
        );
        let location = blocking(move || files.find_file_for(&id, &rights)).await?;
        open(call, Found::Lease(lease), location, options).await
    }
}

/// Opens the session of the file at this path. This call takes a number in the order of requests.
pub(crate) fn by_path(
    call: &Arc<Call>,
    path: &str,
    options: OpenOptions,
) -> impl Future<Output = Result<wire::OpenSessionResult>> + Send + use<> {
    let (call, path) = (Arc::clone(call), path.to_owned());
    let (by, queues) = (Some(call.connection.id), &call.daemon.registry.queues);
    let imports = queues.imports_ended(by);
    let unnamed = queues.unnamed(by, &call.cancel);
    async move {
        // An earlier import may create the file.
        call.cancel.guard(ended(imports, &unnamed)).await?;
        let location = blocking(move || Location::of_path(Path::new(&path))).await?;
        // The header alone says whether the session is open.
        let found = name(unnamed, &location).await?;
        open(call, found, location, options).await
    }
}

/// The policy that the caller chooses for the session, else the policy of the daemon.
pub(super) fn durability(call: &Call, policy: Option<wire::DurabilityPolicy>) -> Durability {
    policy.map_or(call.daemon.settings.durability, Durability::from)
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
        open.check_file(location).await?;
        return match found {
            Found::Lease(lease) => opened_before(&call, lease, options).await,
            Found::Unnamed(_) => Err(Error::cancelled()),
        };
    }
    let options = OpenOptions {
        access: daemon.files.access_to(&location, options.access),
        ..options
    };
    daemon
        .files
        .prepare_replica(&location, options.access)
        .await?;
    let (opening, at, cancel) = (Arc::clone(daemon), location.clone(), call.cancel.clone());
    let opened = blocking(move || opening.files.store.open(at, &cancel)).await?;
    let header = opened.log.header();
    let id = header.map(|header| header.id.clone()).unwrap_or_default();
    let lease = match found {
        Found::Lease(lease) if **lease.id() == *id => lease,
        other => {
            // The search for the header took long, or the file was replaced after the header was read.
            let lease = match other {
                Found::Unnamed(unnamed) => unnamed.lease(&id).await?,
                Found::Lease(lease) => {
                    drop(lease);
                    call.place_to_open(&id).await?
                }
            };
            if let Some(open) = lease.open() {
                open.check_file(location).await?;
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
        daemon.files.store.tidy_once(&at.folder);
    }
    let mut diagnostics = diagnostics::to_wire(&opened.diagnostics);
    let durability = durability(&call, options.durability);
    // The rights are checked again, since the file may have been replaced after its header was read.
    let cwd = opened.log.header().map(|header| header.cwd.as_str());
    call.connection.rights().check_session(&id, cwd)?;
    let (open, guard) = new(&call, opened, options.access, durability, lease)?;
    diagnostics.extend(diagnostics::of_place(&guard));
    let result = wire::OpenSessionResult {
        session: shown(&open, &call, options.access, &guard),
        diagnostics,
    };
    open_after(&call, &open, options.access, guard.into_with());
    Ok(result)
}

/// The session of a file that a request opens.
enum Found {
    Lease(Lease),
    /// The id of the session is not known yet.
    Unnamed(Unnamed<OpenSessions>),
}

/// Waits for imports. If the imports take long, other requests do not wait for this request.
async fn ended(imports: impl Future<Output = ()>, unnamed: &Unnamed<OpenSessions>) {
    let mut imports = pin!(imports);
    let waiting = tokio::time::timeout(HEADER_IS_READ, &mut imports);
    if waiting.await.is_err() {
        unnamed.header_is_late();
        imports.await;
    }
}

/// Reads the session's id from the header, and waits for earlier requests to that session. If the header is not found
/// soon, other requests do not wait for this request.
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

async fn opened_before(
    call: &Arc<Call>,
    lease: Lease,
    options: OpenOptions,
) -> Result<wire::OpenSessionResult> {
    if let Some(open) = lease.open() {
        let rights = call.connection.rights();
        rights.check_session(&open.id, Some(&open.session.cwd))?;
    }
    let access = lease.access().unwrap_or(options.access);
    let (open, guard) = guard_for_all(lease, Instant::now())?;
    let guard = follow::caught_up(&call.daemon, &open, guard).await?;
    if options.durability.is_some() {
        let durability = durability(call, options.durability);
        open.session.syncer.set_durability(durability);
    }
    let result = wire::OpenSessionResult {
        session: shown(&open, call, access, &guard),
        diagnostics: diagnostics::of_place(&guard).collect(),
    };
    open_again_after(call, &open, access, guard);
    Ok(result)
}
