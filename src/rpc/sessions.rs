//! Sessions as a whole: create, open, close, delete (protocol.md §3).

use super::convert;
use super::method::Reply;
use super::registry::{Paths, Subject, Ticket};
use super::server::{Call, OpenSession, Server};
use crate::error::{Error, Kind, Result};
use crate::flow::append::{self, NewEntry};
use crate::id::SessionId;
use crate::listing;
use crate::log::file::Location;
use crate::log::{self, Log, Opened};
use crate::name;
use crate::session::{Activity, Core, Session, Turn, blocking};
use crate::store;
use crate::sync::Durability;
use crate::tree::Tree;
use crate::wire::{self, notification};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long others wait until it is known which session a file to be opened is of.
const HEADER_IS_READ: Duration = Duration::from_millis(100);

pub async fn create_session(call: Arc<Call>, params: wire::CreateSessionParams) -> Result<Reply> {
    let id = store::choose_id(params.session_id.as_deref())?;
    let server = Arc::clone(&call.server);
    let subject = Subject::Session(id.clone());
    let ticket = server.registry.enter(subject, Paths::Soon, true);
    ticket.admitted(&call.cancel).await?;
    if server.find(id.as_str()).is_some() {
        return Err(exists(id.as_str()));
    }
    let ephemeral = params.ephemeral.unwrap_or_default();
    // Only an id of the client's own can be taken.
    if !ephemeral && params.session_id.is_some() {
        let (server, id) = (Arc::clone(&server), id.clone());
        blocking(move || match server.store.find(id.as_str()) {
            Ok(_) => Err(exists(id.as_str())),
            Err(error) if error.kind == Kind::SessionNotFound => Ok(()),
            Err(error) => Err(error),
        })
        .await?;
    }
    let cwd = params.cwd.unwrap_or_else(|| server.config.cwd.clone());
    let parent = params.parent_session.as_deref();
    let header = log::new_header(id.as_str(), server.source.now_ms(), &cwd, parent);
    let log = if ephemeral {
        Log::ephemeral(header)
    } else {
        Log::create(server.store.place(&header)?, header)
    };
    let opened = Opened {
        log,
        tree: Tree::new(),
        diagnostics: Vec::new(),
    };
    let durability = durability(&call, params.durability);
    let open = OpenSession::new(Session::new(opened, false, durability));
    let mut turn = open.session.turn(&call.cancel).await?;
    let name = params.name.as_deref().and_then(name::given);
    if let Some(name) = &name {
        turn = write_name(&call, turn, name).await?;
    }
    let result = wire::CreateSessionResult {
        session: convert::session(&open, &turn),
        durability: convert::durability(match name {
            Some(_) => open.session.syncer.durability(),
            None => Durability::None,
        }),
    };
    drop(turn);
    Server::insert_after(&call, &open, ticket);
    Reply::of(&result)
}

/// The name is the first entry, written at once; nobody is told, since nobody knows the session.
async fn write_name(call: &Call, turn: Turn, name: &str) -> Result<Turn> {
    let source = Arc::clone(&call.server.source);
    let entry = [NewEntry::session_info(name)];
    let plan =
        move |core: &Core| append::plan(&core.tree, &*source, &entry, &|node| core.entry(node));
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
) -> Result<(Arc<OpenSession>, Turn)> {
    ticket.admitted(&call.cancel).await?;
    let open = call.server.session_now(id)?;
    let turn = open.session.turn(&call.cancel).await?;
    // Looked at with the turn: what was asked for before has begun, and cannot commit now.
    match open.session.activity() {
        Some(Activity::Navigation { abort, .. } | Activity::Compaction { abort }) => {
            abort.cancel();
            open.session.idle().await;
        }
        Some(Activity::Turn) => open.session.check_idle()?,
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
    // The ticket is kept until the file is gone: its id is free for the next request.
    let ticket = call.server.enter(Some(&id), true);
    let location = match closing(&call, Some(&id), &ticket).await {
        Ok((open, turn)) => {
            open.session.check_writable()?;
            let written = turn.log.location().filter(|_| turn.log.is_written());
            let at = written.cloned();
            close(&call.server, &open);
            at
        }
        Err(error) if error.kind == Kind::SessionNotFound => {
            let server = Arc::clone(&call.server);
            Some(blocking(move || server.store.find(&id)).await?)
        }
        Err(error) => return Err(error),
    };
    let server = Arc::clone(&call.server);
    let trashed = match location {
        Some(location) => Some(blocking(move || server.store.trash(&location)).await?),
        None => None,
    };
    Reply::of(&wire::DeleteSessionResult {
        trashed_path: trashed.map(|path| path.display().to_string()),
    })
}

fn exists(id: &str) -> Error {
    Error::new(
        Kind::SessionExists,
        format!("there is a session {id:?} already"),
    )
}
