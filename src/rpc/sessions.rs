//! Sessions as a whole: create, open, close, delete (protocol.md §3).

use super::convert;
use super::list;
use super::registry::{Paths, Subject, Ticket};
use super::reply::Reply;
use super::server::{Call, OpenSession, Server};
use crate::durability::Durability;
use crate::error::{Error, Kind, Result};
use crate::flow::append::{self, NewEntry};
use crate::id::SessionId;
use crate::log::{self, Claim, Log, OpenedLog};
use crate::name;
use crate::os::file::Location;
use crate::session::{Activity, Session, SessionGuard, SessionState, blocking};
use crate::store::listing;
use crate::store::{self, exists};
use crate::tree::Tree;
use crate::wire::{self, notification};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long others wait until it is known which session a file to be opened is of.
const HEADER_IS_READ: Duration = Duration::from_millis(100);

pub async fn create_session(call: Arc<Call>, params: wire::CreateSessionParams) -> Result<Reply> {
    let id = store::choose_id(params.session_id.as_deref())?;
    let ephemeral = params.ephemeral.unwrap_or_default();
    if ephemeral && params.write.is_some() {
        let why = "an ephemeral session is never written: leave it out";
        return Err(Error::invalid_params("write", why));
    }
    let server = Arc::clone(&call.server);
    let subject = Subject::Session(id.clone());
    let ticket = server.registry.enter(subject, Paths::Soon, true);
    ticket.admitted(&call.cancel).await?;
    if server.find(id.as_str()).is_some() {
        return Err(exists(id.as_str()));
    }
    let writes_now = match params.write {
        Some(when) => when == wire::FirstWrite::Now,
        None => server.writes_files_at_once(),
    };
    let cwd = params.cwd.unwrap_or_else(|| server.config.cwd.clone());
    let parent = params.parent_session.as_deref();
    let header = log::header::Header::new(id.as_str(), server.source.now_ms(), &cwd, parent);
    let log = if ephemeral {
        Log::ephemeral(header)
    } else {
        let log = Log::create(server.store.place(&header)?, header);
        match params.session_id {
            Some(_) => log.claimed_by(claim(&server, id.as_str())),
            None => log,
        }
    };
    let opened = OpenedLog {
        log,
        tree: Tree::new(),
        diagnostics: Vec::new(),
    };
    let durability = durability(&call, params.durability);
    let open = OpenSession::new(Session::new(opened, false, durability));
    let mut turn = open.session.turn(&call.cancel).await?;
    let name = params.name.as_deref().and_then(name::given);
    let is_written = name.is_some() || (writes_now && !ephemeral);
    if let Some(name) = &name {
        turn = write_name(&call, turn, name).await?;
    } else if is_written {
        turn = turn.make_file().await?;
    }
    let result = wire::CreateSessionResult {
        session: convert::session(&open, &turn),
        durability: open.durability(is_written),
    };
    drop(turn);
    Server::insert_after(&call, &open, ticket);
    Reply::of(&result)
}

/// Two processes never make a session with the same id. Only one that a client has chosen can be taken.
fn claim(server: &Arc<Server>, id: &str) -> Claim {
    let (server, id) = (Arc::downgrade(server), id.to_owned());
    Box::new(move || match server.upgrade() {
        Some(server) => server.store.claim(&id),
        None => Err(Error::new(
            Kind::ShuttingDown,
            "the daemon is shutting down",
        )),
    })
}

/// The name is the first entry, written at once; nobody is told, since nobody knows the session.
async fn write_name(call: &Call, turn: SessionGuard, name: &str) -> Result<SessionGuard> {
    let source = Arc::clone(&call.server.source);
    let entry = [NewEntry::session_info(name)];
    let plan = move |core: &SessionState| {
        append::plan(&core.tree, &*source, &entry, &|node| core.entry(node))
    };
    let (turn, _, committed) = turn.commit(&call.cancel, plan).await;
    committed?;
    turn.ok_or_else(Error::cancelled)
}

pub async fn open_session(call: Arc<Call>, params: wire::OpenSessionParams) -> Result<Reply> {
    let server = &call.server;
    let policy = params.durability;
    let read_only = params.mode == Some(wire::OpenMode::Read);
    let (ticket, location) = match params.target()? {
        wire::OpenTarget::Id(id) => {
            let subject = Subject::Session(SessionId::new(id));
            let ticket = server.registry.enter(subject, Paths::Soon, false);
            ticket.admitted(&call.cancel).await?;
            if let Some(open) = server.find(id) {
                return opened_before(&call, open, policy).await;
            }
            let (store, id) = (Arc::clone(server), id.to_owned());
            (ticket, blocking(move || store.store.find(&id)).await?)
        }
        wire::OpenTarget::Path(path) => {
            let ticket = server.registry.enter(Subject::Path, Paths::Soon, false);
            let path = path.to_owned();
            let location = blocking(move || Location::of_path(Path::new(&path))).await?;
            (ticket, location)
        }
    };
    // The header alone tells whether the session is open already.
    let known_id = name(&call, &ticket, &location).await?;
    if let Some(open) = known_id.as_deref().and_then(|id| server.find(id)) {
        let open = same_file(open, location).await?;
        return opened_before(&call, open, policy).await;
    }
    let (opening, at, cancel) = (Arc::clone(server), location.clone(), call.cancel.clone());
    let opened = blocking(move || opening.store.open(at, &cancel)).await?;
    let header = opened.log.header();
    let id = header.map(|header| header.id.clone()).unwrap_or_default();
    if known_id.as_ref() != Some(&id) {
        ticket.is_about(Subject::Session(SessionId::new(id.as_str())));
        ticket.admitted(&call.cancel).await?;
        if let Some(open) = server.find(&id) {
            let open = same_file(open, location).await?;
            return opened_before(&call, open, policy).await;
        }
    }
    if let Some(at) = opened.log.location().filter(|_| !read_only) {
        server.store.tidy_once(&at.folder);
    }
    let diagnostics = convert::diagnostics(&opened.diagnostics);
    let open = OpenSession::new(Session::new(opened, read_only, durability(&call, policy)));
    let turn = open.session.turn(&call.cancel).await?;
    let result = wire::OpenSessionResult {
        session: convert::session(&open, &turn),
        diagnostics,
    };
    drop(turn);
    Server::insert_after(&call, &open, ticket);
    Reply::of(&result)
}

/// The session's own policy, else the daemon's.
fn durability(call: &Call, policy: Option<wire::DurabilityPolicy>) -> Durability {
    policy.map_or(call.server.config.durability, convert::policy)
}

/// Finds out by the header which session's file this is, and waits for earlier requests about that
/// session. `None` if the header is not found soon: then others do not wait for it.
async fn name(call: &Call, ticket: &Ticket, location: &Location) -> Result<Option<String>> {
    let location = location.clone();
    let header = blocking(move || Ok(listing::header_id(&location)));
    let found = match tokio::time::timeout(HEADER_IS_READ, header).await {
        Ok(found) => found?,
        Err(_) => None,
    };
    ticket.is_about(match &found {
        Some(id) => Subject::Session(SessionId::new(id.as_str())),
        None => Subject::Nameless,
    });
    ticket.admitted(&call.cancel).await?;
    Ok(found)
}

/// The open session if this is its file, else `sessionExists`.
async fn same_file(open: Arc<OpenSession>, location: Location) -> Result<Arc<OpenSession>> {
    blocking(move || {
        let identity = |at: &Location| at.status().ok().map(|status| status.identity);
        // Whoever holds the turn for long holds it for a navigation, which ends.
        let core = open.session.blocking_core();
        let opened = core.log.location().and_then(identity);
        drop(core);
        if opened.is_some() && opened == identity(&location) {
            return Ok(open);
        }
        Err(exists(&open.id))
    })
    .await
}

async fn opened_before(
    call: &Arc<Call>,
    open: Arc<OpenSession>,
    policy: Option<wire::DurabilityPolicy>,
) -> Result<Reply> {
    let turn = open.session.turn(&call.cancel).await?;
    let turn = call.server.caught_up(&open, turn).await?;
    if policy.is_some() {
        open.session.syncer.set_durability(durability(call, policy));
    }
    Reply::of(&wire::OpenSessionResult {
        session: convert::session(&open, &turn),
        diagnostics: Vec::new(),
    })
}

pub async fn close_session(call: Arc<Call>, params: wire::CloseSessionParams) -> Result<Reply> {
    let id = params.session_id.as_deref();
    let ticket = call.server.enter(id, true);
    let (open, _turn) = closing(&call, id, &ticket).await?;
    close(&call.server, &open);
    drop(ticket);
    Reply::of(&wire::CloseSessionResult {})
}

/// The session that is to be closed, and its turn. A navigation is aborted; a turn of the client is
/// not.
async fn closing(
    call: &Arc<Call>,
    id: Option<&str>,
    ticket: &Ticket,
) -> Result<(Arc<OpenSession>, SessionGuard)> {
    ticket.admitted(&call.cancel).await?;
    let open = call.server.session_now(id)?;
    let turn = open.session.turn(&call.cancel).await?;
    // Looked at with the turn: what was asked for before has begun, and cannot commit now.
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

fn close(server: &Server, open: &OpenSession) {
    server.remove(open);
    server.notify(open, "session_closed", |seq| notification::SessionClosed {
        session_id: open.id.to_string(),
        seq,
    });
}

pub async fn delete_session(call: Arc<Call>, params: wire::DeleteSessionParams) -> Result<Reply> {
    let id = params.session_id;
    if let Some(open) = call.server.find(&id) {
        open.session.check_writable()?;
    }
    // SessionGuard and ticket are kept until the file is gone: nobody writes to it, and its id is free for the
    // next request. Where that fails the session stays open.
    let ticket = call.server.enter(Some(&id), true);
    let trashed = match closing(&call, Some(&id), &ticket).await {
        Ok((open, turn)) => {
            open.session.check_writable()?;
            let written = turn.log.location().filter(|_| turn.log.is_written());
            let at = written.cloned();
            let trashed = to_trash(&call.server, at).await?;
            close(&call.server, &open);
            trashed
        }
        Err(error) if error.kind == Kind::SessionNotFound => {
            let server = Arc::clone(&call.server);
            let found = blocking(move || server.store.find(&id)).await?;
            to_trash(&call.server, Some(found)).await?
        }
        Err(error) => return Err(error),
    };
    Reply::of(&wire::DeleteSessionResult {
        trashed_path: trashed.map(|path| path.display().to_string()),
    })
}

async fn to_trash(server: &Arc<Server>, at: Option<Location>) -> Result<Option<PathBuf>> {
    let Some(at) = at else {
        return Ok(None);
    };
    let server = Arc::clone(server);
    blocking(move || server.store.trash(&at).map(Some)).await
}

pub async fn list_trash(call: Arc<Call>, params: wire::ListTrashParams) -> Result<Reply> {
    let server = Arc::clone(&call.server);
    blocking(move || list::trash_page(server.store.trashed()?, &params)).await
}

pub async fn restore_session(call: Arc<Call>, params: wire::RestoreSessionParams) -> Result<Reply> {
    let id = params.session_id;
    let ticket = call.server.enter(Some(&id), true);
    ticket.admitted(&call.cancel).await?;
    if call.server.find(&id).is_some() {
        return Err(exists(&id));
    }
    let server = Arc::clone(&call.server);
    let restored = blocking(move || {
        let path = server.store.restore(&id, params.trashed_path.as_deref())?;
        Ok(wire::RestoreSessionResult {
            session_id: id,
            path: path.display().to_string(),
        })
    });
    Reply::of(&restored.await?)
}
