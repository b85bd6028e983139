//! `fork_session` and `get_fork_messages` (protocol.md §3, session-file.md §5).

use super::reply::Reply;
use crate::blocking::blocking;
use crate::clock;
use crate::daemon::Daemon;
use crate::daemon::call::Call;
use crate::daemon::convert;
use crate::daemon::open_session::{OpenSession, guard};
use crate::daemon::question::{self, ANSWER_TIMEOUT, Asking, Refusal};
use crate::daemon::queue::Scope;
use crate::durability::Durability;
use crate::entry::draft::{Draft, draft};
use crate::entry::{Kind as EntryKind, Role};
use crate::error::{Error, Kind, Result};
use crate::flow::fork::{self, End, Position};
use crate::flow::{IdAllocator, leaf};
use crate::log::whole::SessionLines;
use crate::log::{self, Log, OpenedLog};
use crate::os::file::Folder;
use crate::session::fork::Copy;
use crate::session::sync::UnsyncedFile;
use crate::session::{Session, SessionState};
use crate::tree::{Cause, Node, Tree};
use crate::wire::{self, BeforeEvent, notification};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

pub(super) async fn get_fork_messages(
    call: Arc<Call>,
    params: wire::GetForkMessagesParams,
) -> Result<Reply> {
    super::read::read_again(|| fork_messages(&call, &params)).await
}

async fn fork_messages(call: &Call, params: &wire::GetForkMessagesParams) -> Result<Reply> {
    let (_, turn) = call.fresh(params).await?;
    let limit = call.connection.client_frame_bytes();
    let active: HashSet<Node> = turn.tree.ancestors(turn.leaf()).collect();
    let is_user = |node: &Node| {
        turn.tree.kind(*node) == EntryKind::Message && turn.tree.role(*node) == Role::User
    };
    let nodes: Vec<Node> = turn.tree.entries().filter(is_user).collect();
    let size = super::read::size_of(&turn, &nodes);
    let id = |node: &Node| (turn.tree.id(*node).to_owned(), active.contains(node));
    let ids: Vec<(String, bool)> = nodes.iter().map(id).collect();
    let (bodies, fetches) = (turn.bodies(), turn.fetch(nodes)?);
    drop(turn);
    let list = move || {
        let mut reader = bodies.reader();
        let mut messages = Vec::new();
        // No more is held than can be answered.
        let mut left = limit;
        for (fetch, (entry_id, on_active_path)) in fetches.iter().zip(ids) {
            let text = draft(&reader.entry(fetch)?).text;
            if !text.is_empty() {
                left = left
                    .checked_sub(text.len() + entry_id.len())
                    .ok_or_else(|| too_large(limit))?;
                messages.push(wire::ForkMessage {
                    entry_id,
                    text,
                    on_active_path,
                });
            }
        }
        Reply::of(&wire::GetForkMessagesResult { messages })
    };
    super::read::inline_or_blocking(size, list).await
}

fn too_large(limit: usize) -> Error {
    Error::new(
        Kind::ResponseTooLarge,
        format!(
            "the user messages have more than the {limit} bytes the client takes: \
             read them in pages with get_tree and its filter user-only"
        ),
    )
}

pub(super) async fn fork_session(
    call: Arc<Call>,
    params: wire::ForkSessionParams,
) -> Result<Reply> {
    let daemon = &call.daemon;
    let scope = params.scope.unwrap_or_default();
    check_scope(&params, scope)?;
    let id = params.session_id.as_deref();
    // Later requests wait for the fork, so that a close behind it finds it done; but nobody waits for
    // a question, except a script.
    let is_asked = daemon.queues.find_now(id).is_ok_and(|open| {
        let answerers = daemon.answerers(&open, BeforeEvent::SessionBeforeFork);
        !answerers.is_empty()
    });
    let waits = !is_asked || call.connection.client().is_none();
    call.drop_place();
    let scope_of_queue = if waits { Scope::Change } else { Scope::Session };
    let lease = daemon
        .queues
        .lease(id, scope_of_queue, &call.cancel)
        .await?;
    let (open, turn) = guard(lease, Instant::now())?;
    let turn = daemon.caught_up(&open, turn).await?;
    open.session.check_not_in_turn()?;
    let entry = match &params.entry_id {
        Some(id) => Some(turn.find(id)?),
        None => turn.leaf(),
    };
    let position = match (scope, params.position) {
        (wire::ForkScope::Tree, _) | (_, Some(wire::ForkPosition::At)) => Some(Position::At),
        (_, Some(wire::ForkPosition::Before)) => Some(Position::Before),
        (_, None) => None,
    };
    let end = fork::end(&turn.tree, entry, position)?;
    // A copy of the whole tree goes on where the source stands, open calls and all.
    let close_calls = scope == wire::ForkScope::Tree || params.close_tool_calls.unwrap_or_default();
    let source = Source::read(&turn, end, entry, close_calls)?;
    let tenure = waits.then(|| turn.into_with());
    if let Some(Refusal { reason, by }) = ask(&call, &open, &source).await? {
        return Reply::of(&wire::ForkSessionResult {
            session: None,
            editor_text: None,
            editor_images: None,
            cancelled: true,
            reason: Some(reason),
            by,
            durability: wire::Durability::None,
        });
    }
    let lease = match tenure {
        Some(tenure) => tenure.lease,
        None => {
            daemon
                .queues
                .lease(Some(&open.id), Scope::Change, &call.cancel)
                .await?
        }
    };
    let (open, turn) = guard(lease, Instant::now())?;
    // Again, since the tree may have been read anew meanwhile.
    let entry = source
        .entry_id
        .as_deref()
        .map(|id| turn.find(id))
        .transpose()?;
    let end = fork::end(&turn.tree, entry, Some(source.position))?;
    let mut source = Source::read(&turn, end, entry, close_calls)?;
    source.cwd = params.cwd.unwrap_or(source.cwd);
    let (draft, entry_id) = (source.draft.take(), source.entry_id.clone());
    let ephemeral = open.session.ephemeral;
    let durability = open.session.syncer.durability();
    let id = clock::new_session_id();
    // Whoever names the fork as soon as it is told of waits until it can be found.
    let forks_lease = daemon
        .queues
        .lease(Some(id.as_str()), Scope::CreateFresh, &call.cancel)
        .await?;
    let writes_at_once = call.connection.writes_files_at_once();
    let (opened, written, tenure) = {
        let daemon = Arc::clone(daemon);
        blocking(move || {
            if scope == wire::ForkScope::Tree {
                let header = source.header(&daemon, id.as_str());
                let (opened, written) = copied_whole(&daemon, writes_at_once, &turn, header)?;
                return Ok((opened, written, turn.into_with()));
            }
            let copy = Copy::prepare(&turn, end, &source.open_calls, &*daemon.source)?;
            let tenure = turn.into_with();
            let header = source.header(&daemon, id.as_str());
            let synced = durability == Durability::Always;
            let (opened, written) =
                copied(&daemon, writes_at_once, &copy, header, (ephemeral, synced))?;
            Ok((opened, written, tenure))
        })
        .await?
    };
    let forked = OpenSession::new(Session::new(opened, false, durability), &call.connection);
    let turn = forked.session.guard(Instant::now(), forks_lease)?;
    let new_session_id = forked.id.to_string();
    daemon.notify(&open, "session_fork", |seq| notification::SessionFork {
        session_id: open.id.to_string(),
        seq,
        new_session_id: new_session_id.clone(),
        entry_id: entry_id.clone().unwrap_or_default(),
    });
    let session = convert::session(&forked, &call.connection, &turn);
    call.open_after(&forked, turn.into_with());
    let is_written = written.is_some();
    if let Some(written) = written {
        let (daemon, forked) = (Arc::clone(daemon), Arc::clone(&forked));
        call.after(move || finish(&daemon, &forked, written));
    }
    // A close behind it finds what has to be synced.
    call.after(move || drop(tenure));
    Reply::of(&wire::ForkSessionResult {
        session: Some(session),
        editor_text: draft.as_ref().map(|draft| draft.text.clone()),
        editor_images: draft.filter(|draft| !draft.images.is_empty()).map(|draft| {
            draft
                .images
                .iter()
                .map(|image| convert::raw(image))
                .collect()
        }),
        cancelled: false,
        reason: None,
        by: None,
        durability: convert::durability(if is_written {
            durability
        } else {
            Durability::None
        }),
    })
}

/// −32602 for what only a branch takes.
fn check_scope(params: &wire::ForkSessionParams, scope: wire::ForkScope) -> Result<()> {
    if scope == wire::ForkScope::Branch {
        return Ok(());
    }
    let given = [
        ("entryId", params.entry_id.is_some()),
        ("position", params.position.is_some()),
        ("closeToolCalls", params.close_tool_calls.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => Err(Error::invalid_params(
            *field,
            "goes with scope \"branch\" only; leave it out to copy the whole tree",
        )),
        None => Ok(()),
    }
}

/// What nobody waits for.
fn finish(daemon: &Arc<Daemon>, forked: &Arc<OpenSession>, written: Written) {
    daemon.store.tidy(written.folder);
    if let Some(unsynced) = written.unsynced {
        let (daemon, open) = (Arc::clone(daemon), Arc::clone(forked));
        let late = move || daemon.durability_lost(&open);
        forked.session.syncer.after_making(unsynced, late);
    }
}

/// The facts that a fork takes from its source besides the lines.
struct Source {
    entry_id: Option<String>,
    position: Position,
    /// The text and images that go back to the editor.
    draft: Option<Draft>,
    open_calls: Vec<fork::OpenCall>,
    cwd: String,
    /// The source's file, or its id where it has none.
    parent_session: String,
}

impl Source {
    fn read(core: &SessionState, end: End, entry: Option<Node>, close_calls: bool) -> Result<Self> {
        let closing = fork::closing_messages(&core.tree, end.tip);
        let closing = closing.into_iter().map(|node| core.entry(node));
        let open_calls = fork::unanswered_calls(&closing.collect::<Result<Vec<_>>>()?);
        if !open_calls.is_empty() && !close_calls {
            return Err(fork::refuse(&open_calls));
        }
        let before = entry.filter(|_| end.position == Position::Before);
        let before = before.map(|node| core.entry(node)).transpose()?;
        let header = core.log.header();
        let path = core
            .log
            .location()
            .map(|at| at.path().display().to_string());
        Ok(Self {
            entry_id: core.id_of(entry).map(str::to_owned),
            position: end.position,
            draft: before.map(|entry| draft(&entry)),
            open_calls,
            cwd: header.map(|header| header.cwd.clone()).unwrap_or_default(),
            parent_session: path
                .or_else(|| header.map(|header| header.id.clone()))
                .unwrap_or_default(),
        })
    }

    fn header(&self, daemon: &Daemon, id: &str) -> log::header::Header {
        let now = daemon.source.now_ms();
        log::header::Header::new(id, now, &self.cwd, Some(&self.parent_session))
    }
}

/// Asks the clients and the hooks, which may refuse.
async fn ask(call: &Arc<Call>, open: &OpenSession, source: &Source) -> Result<Option<Refusal>> {
    let asking = Asking {
        daemon: &call.daemon,
        open,
        event: BeforeEvent::SessionBeforeFork,
        navigation_id: None,
        timeout: ANSWER_TIMEOUT,
        abort: &call.cancel,
        takes_summary: false,
    };
    let decided = question::put(asking, |put| notification::SessionBeforeFork {
        session_id: put.session_id,
        seq: put.seq,
        event_id: put.event_id,
        timeout_ms: put.timeout_ms,
        entry_id: source.entry_id.clone().unwrap_or_default(),
        position: match source.position {
            Position::Before => wire::ForkPosition::Before,
            Position::At => wire::ForkPosition::At,
        },
    });
    Ok(decided.await?.refusal(wire::OnNoAnswer::Proceed))
}

/// The work of a fork that remains after its response.
struct Written {
    /// The file's.
    folder: Arc<Folder>,
    unsynced: Option<UnsyncedFile>,
}

/// Copies all lines of the session, synced. Without any the new session has no file yet.
fn copied_whole(
    daemon: &Daemon,
    writes_at_once: bool,
    turn: &SessionState,
    header: log::header::Header,
) -> Result<(OpenedLog, Option<Written>)> {
    let (from, to) = (turn.tree.file_leaf(), turn.leaf());
    let record = (from != to).then(|| {
        let mut minter = IdAllocator::new(&turn.tree, &*daemon.source);
        leaf::record_from(&mut minter, &turn.tree, from, to, Cause::SetLeaf)
    });
    let whole = SessionLines::prepare(&turn.log, &turn.tree, record)?;
    let is_ephemeral = turn.log.location().is_none();
    if is_ephemeral {
        return Ok((whole.into_memory(header)?, None));
    }
    let location = daemon.store.place(&header)?;
    let log = Log::create(location.clone(), header);
    if whole.is_empty() && !writes_at_once {
        let opened = OpenedLog {
            log,
            tree: Tree::new(),
            diagnostics: Vec::new(),
        };
        return Ok((opened, None));
    }
    let folder = Arc::clone(&location.folder);
    let opened = whole.to_file(location, &log.header_line())?;
    let unsynced = None;
    Ok((opened, Some(Written { folder, unsynced })))
}

/// Copies what was prepared, synced if so wanted. Without a file there is nothing left to do. An empty
/// fork is written as a new session is.
fn copied(
    daemon: &Daemon,
    writes_at_once: bool,
    copy: &Copy,
    header: log::header::Header,
    (ephemeral, synced): (bool, bool),
) -> Result<(OpenedLog, Option<Written>)> {
    if ephemeral {
        return Ok((copy.to_memory(header)?, None));
    }
    let location = daemon.store.place(&header)?;
    let log = Log::create(location.clone(), header);
    if copy.is_empty() && !writes_at_once {
        let opened = OpenedLog {
            log,
            tree: Tree::new(),
            diagnostics: Vec::new(),
        };
        return Ok((opened, None));
    }
    let folder = Arc::clone(&location.folder);
    let synced = synced || copy.is_empty();
    let made = copy.to_file(location, log.header_line(), synced)?;
    let unsynced = (!synced).then(|| UnsyncedFile::made(made.file, Arc::clone(&folder)));
    Ok((made.opened, Some(Written { folder, unsynced })))
}
