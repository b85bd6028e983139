//! Sessions as a whole: create, open, close, list, delete (protocol.md §3).

use super::convert;
use super::method::Reply;
use super::server::{Call, OpenSession, Registry, Server};
use crate::error::{Error, Kind, Result};
use crate::flow::append::{self, NewEntry};
use crate::listing::{self, Listing};
use crate::log::file::Location;
use crate::log::{self, Log, Opened};
use crate::session::{Activity, Core, Session, Turn, blocking};
use crate::store;
use crate::sync::Durability;
use crate::timestamp::{self, Millis};
use crate::tree::Tree;
use crate::wire::{self, notification};
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a list waits for appends that were asked for before it.
const EARLIER_APPENDS: Duration = Duration::from_millis(250);

pub async fn create_session(call: Arc<Call>, params: wire::CreateSessionParams) -> Result<Reply> {
    let registry = call.server.registry(&call.cancel).await?;
    let id = store::choose_id(params.session_id.as_deref())?;
    let server = Arc::clone(&call.server);
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
    if let Some(name) = params.name.as_deref() {
        turn = write_name(&call, turn, name).await?;
    }
    let result = wire::CreateSessionResult {
        session: convert::session(&open, &turn),
        durability: convert::durability(match params.name {
            Some(_) => open.session.syncer.durability(),
            None => Durability::None,
        }),
    };
    drop(turn);
    Server::insert_after(&call, &open, registry);
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
    let registry = call.server.registry(&call.cancel).await?;
    let policy = params.durability;
    let read_only = params.mode == Some(wire::OpenMode::Read);
    let wanted = match params.target()? {
        wire::OpenTarget::Id(id) => Wanted::Id(id.to_owned()),
        wire::OpenTarget::Path(path) => Wanted::Path(path.to_owned()),
    };
    if let Wanted::Id(id) = &wanted
        && let Some(open) = call.server.find(id)
    {
        return opened_before(&call, open, policy).await;
    }
    let server = Arc::clone(&call.server);
    let found = blocking(move || find_and_open(&server, wanted, registry)).await?;
    let (opened, registry) = match found {
        Found::New(opened, registry) => (*opened, registry),
        Found::OpenAlready(open) => return opened_before(&call, open, policy).await,
    };
    let diagnostics = convert::diagnostics(&opened.diagnostics);
    let open = OpenSession::new(Session::new(opened, read_only, durability(&call, policy)));
    let turn = open.session.turn(&call.cancel).await?;
    let result = wire::OpenSessionResult {
        session: convert::session(&open, &turn),
        diagnostics,
    };
    drop(turn);
    Server::insert_after(&call, &open, registry);
    Reply::of(&result)
}

/// The session's own policy, else the daemon's.
fn durability(call: &Call, policy: Option<wire::DurabilityPolicy>) -> Durability {
    policy.map_or(call.server.config.durability, convert::policy)
}

/// How a session to open was named.
enum Wanted {
    Id(String),
    Path(String),
}

enum Found {
    New(Box<Opened>, Registry),
    OpenAlready(Arc<OpenSession>),
}

fn find_and_open(server: &Server, wanted: Wanted, registry: Registry) -> Result<Found> {
    let location = match wanted {
        Wanted::Id(id) => server.store.find(&id)?,
        Wanted::Path(path) => Location::of_path(Path::new(&path))?,
    };
    // The header alone tells whether the session is open already.
    if let Some(id) = listing::header_id(&location)
        && let Some(open) = server.find(&id)
    {
        let identity = |at: &Location| at.status().ok().map(|status| status.identity);
        // Whoever holds the turn for long holds it for a navigation, which ends.
        let core = open.session.blocking_core();
        let opened = core.log.location().and_then(identity);
        drop(core);
        if opened.is_some() && opened == identity(&location) {
            return Ok(Found::OpenAlready(open));
        }
        return Err(exists(&id));
    }
    let opened = server.store.open(location)?;
    Ok(Found::New(Box::new(opened), registry))
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
    let (open, _turn, registry) = closing(&call, params.session_id.as_deref()).await?;
    close(&call.server, &open);
    drop(registry);
    Reply::of(&wire::CloseSessionResult {})
}

/// The session that is to be closed, its turn and the registry. A navigation is aborted; a turn of
/// the client is not.
async fn closing(call: &Arc<Call>, id: Option<&str>) -> Result<(Arc<OpenSession>, Turn, Registry)> {
    let _place = call.server.stand_in_line(id);
    let registry = call.server.registry(&call.cancel).await?;
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
    Ok((open, turn, registry))
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
    // The registry is kept until the file is gone: its id is free for the next request.
    let (location, _registry) = match closing(&call, Some(&id)).await {
        Ok((open, turn, registry)) => {
            open.session.check_writable()?;
            let written = turn.log.location().filter(|_| turn.log.is_written());
            let at = written.cloned();
            close(&call.server, &open);
            (at, registry)
        }
        Err(error) if error.kind == Kind::SessionNotFound => {
            let registry = call.server.registry(&call.cancel).await?;
            let server = Arc::clone(&call.server);
            let found = blocking(move || server.store.find(&id)).await?;
            (Some(found), registry)
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

pub async fn list_sessions(call: Arc<Call>, params: wire::ListSessionsParams) -> Result<Reply> {
    let registry = call.server.registry(&call.cancel).await?;
    let open_sessions = call.server.open_sessions();
    drop(registry);
    // What was appended before is in the list, unless another process's lock keeps it waiting.
    let earlier = async {
        for open in open_sessions {
            let _taken = open.session.turn(&call.cancel).await;
        }
    };
    let _waiting = tokio::time::timeout(EARLIER_APPENDS, earlier).await;
    let server = Arc::clone(&call.server);
    let listings = blocking(move || server.store.list()).await?;
    let listings = ordered(filtered(listings, &params), params.sort.unwrap_or_default());
    let start = match &params.cursor {
        None => 0,
        Some(cursor) => {
            let after = listings
                .iter()
                .position(|row| row.path.to_string_lossy() == **cursor);
            let after = after.ok_or_else(|| {
                Error::invalid_params("cursor", "names no session of this list any more")
            })?;
            after + 1
        }
    };
    let limit = params.limit.map_or(usize::MAX, |limit| limit as usize);
    let rows: Vec<&Arc<Listing>> = listings.iter().skip(start).take(limit).collect();
    let more = start + rows.len() < listings.len();
    let last = rows.last().filter(|_| more);
    Reply::of(&wire::ListSessionsResult {
        next_cursor: last.map(|row| row.path.display().to_string()),
        sessions: rows.into_iter().map(|row| session_row(row)).collect(),
    })
}

fn filtered(listings: Vec<Arc<Listing>>, params: &wire::ListSessionsParams) -> Vec<Arc<Listing>> {
    let words: Vec<String> = params
        .query
        .iter()
        .flat_map(|query| query.split_whitespace())
        .map(str::to_lowercase)
        .collect();
    let keep = |row: &Arc<Listing>| {
        let header = row.header.as_ref();
        let cwd = header.map(|header| header.cwd.as_str()).unwrap_or_default();
        let in_cwd = params.cwd.as_deref().is_none_or(|wanted| wanted == cwd);
        let named = params
            .named
            .is_none_or(|wanted| wanted == row.name.is_some());
        let text = || {
            let name = row.name.as_deref().unwrap_or_default();
            let id = header.map(|header| header.id.as_str()).unwrap_or_default();
            format!("{name}\n{}\n{cwd}\n{id}", row.first_message).to_lowercase()
        };
        in_cwd
            && named
            && (words.is_empty() || {
                let text = text();
                words.iter().all(|word| text.contains(word.as_str()))
            })
    };
    listings.into_iter().filter(keep).collect()
}

/// By last activity, then creation, then path (storage.md §5); or as asked, with that as the rest.
fn ordered(mut listings: Vec<Arc<Listing>>, sort: wire::SessionSort) -> Vec<Arc<Listing>> {
    fn key(row: &Listing) -> (Reverse<Millis>, Reverse<Millis>, &OsStr) {
        let path = row.path.as_os_str();
        (Reverse(row.modified), Reverse(row.created), path)
    }
    listings.sort_by(|a, b| key(a).cmp(&key(b)));
    match sort {
        wire::SessionSort::Recent => {}
        wire::SessionSort::Created => listings.sort_by_key(|row| Reverse(row.created)),
        wire::SessionSort::Name => listings.sort_by_cached_key(|row| {
            let name = row.name.as_ref().map(|name| name.to_lowercase());
            (name.is_none(), name)
        }),
        wire::SessionSort::Threaded => return threaded(listings),
    }
    listings
}

/// Forks right behind the session they were made from.
fn threaded(listings: Vec<Arc<Listing>>) -> Vec<Arc<Listing>> {
    let mut by_name: HashMap<String, usize> = HashMap::new();
    for (index, row) in listings.iter().enumerate() {
        by_name.insert(row.path.display().to_string(), index);
        if let Some(header) = &row.header {
            by_name.entry(header.id.clone()).or_insert(index);
        }
    }
    let parent = |index: usize| {
        let row: &Arc<Listing> = listings.get(index)?;
        let parent = by_name.get(row.header.as_ref()?.parent_session.as_ref()?);
        parent.copied().filter(|parent| *parent != index)
    };
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut roots = Vec::new();
    for index in 0..listings.len() {
        match parent(index) {
            Some(parent) => children.entry(parent).or_default().push(index),
            None => roots.push(index),
        }
    }
    let mut order = Vec::with_capacity(listings.len());
    let mut seen = HashSet::new();
    // Those whose parents form a circle hang on no root.
    let mut waiting: Vec<usize> = (0..listings.len()).rev().collect();
    waiting.extend(roots.into_iter().rev());
    while let Some(index) = waiting.pop() {
        if seen.insert(index) {
            order.push(index);
            waiting.extend(
                children
                    .remove(&index)
                    .unwrap_or_default()
                    .into_iter()
                    .rev(),
            );
        }
    }
    order
        .into_iter()
        .filter_map(|index| listings.get(index).cloned())
        .collect()
}

fn session_row(row: &Listing) -> wire::SessionRow {
    let header = row.header.as_ref();
    wire::SessionRow {
        session_id: header.map(|header| header.id.clone()).unwrap_or_default(),
        path: row.path.display().to_string(),
        cwd: header.map(|header| header.cwd.clone()).unwrap_or_default(),
        name: row.name.clone(),
        created: timestamp::format(row.created),
        modified: timestamp::format(row.modified),
        message_count: row.message_count,
        first_message: row.first_message.clone(),
        parent_session: header.and_then(|header| header.parent_session.clone()),
        diagnostic: row.problem.map(|kind| wire::RowDiagnostic {
            kind: kind.name().to_owned(),
            message: "the file does not begin with a session header".to_owned(),
        }),
    }
}

fn exists(id: &str) -> Error {
    Error::new(
        Kind::SessionExists,
        format!("there is a session {id:?} already"),
    )
}
