//! `fork_session` and `get_fork_messages` (protocol.md §3, storage.md §5).

use super::convert;
use super::method::Reply;
use super::question::{self, ANSWER_TIMEOUT, Asking};
use super::server::{Call, OpenSession, Server};
use crate::error::Result;
use crate::flow::fork::{self, End, Position};
use crate::flow::navigate::{self, Draft};
use crate::id;
use crate::log::file::Folder;
use crate::log::scan::{Kind as EntryKind, Role};
use crate::log::{self, Log, Opened};
use crate::session::fork::Copy;
use crate::session::{Core, Session, blocking};
use crate::sync::{Durability, Unsynced};
use crate::tree::{Node, Tree};
use crate::wire::{self, BeforeEvent, notification};
use std::collections::HashSet;
use std::sync::Arc;

pub async fn get_fork_messages(
    call: Arc<Call>,
    params: wire::GetForkMessagesParams,
) -> Result<Reply> {
    let (_, turn) = call.fresh(&params).await?;
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
        for (fetch, (entry_id, on_active_path)) in fetches.iter().zip(ids) {
            let text = navigate::draft(&reader.entry(fetch)?).text;
            if !text.is_empty() {
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

pub async fn fork_session(call: Arc<Call>, params: wire::ForkSessionParams) -> Result<Reply> {
    let server = &call.server;
    let id = params.session_id.as_deref();
    // Later requests wait for the fork, so that a close behind it finds it done; but nobody waits for
    // a question, except a script. The registry always comes before a turn: whoever closes the
    // session takes both, too.
    let is_asked = !server.answerers(BeforeEvent::SessionBeforeFork).is_empty();
    let waits = !is_asked || server.client().is_none();
    let line = waits.then(|| server.stand_in_line(id));
    let registry = match line {
        Some(_) => Some(server.registry(&call.cancel).await?),
        None => None,
    };
    let (open, turn) = match registry {
        Some(_) => {
            let open = server.session_now(id)?;
            let turn = open.session.turn(&call.cancel).await?;
            (open, turn)
        }
        None => server.turn(id, &call.cancel).await?,
    };
    let turn = server.caught_up(&open, turn).await?;
    open.session.check_not_in_turn()?;
    let entry = match &params.entry_id {
        Some(id) => Some(turn.find(id)?),
        None => turn.leaf(),
    };
    let position = params.position.map(|position| match position {
        wire::ForkPosition::Before => Position::Before,
        wire::ForkPosition::At => Position::At,
    });
    let end = fork::end(&turn.tree, entry, position)?;
    let close_calls = params.close_tool_calls.unwrap_or_default();
    let source = Source::read(&turn, end, entry, close_calls)?;
    drop(turn);
    if !ask(&call, &open, &source).await? {
        return Reply::of(&wire::ForkSessionResult {
            session: None,
            editor_text: None,
            editor_images: None,
            cancelled: true,
            durability: wire::Durability::None,
        });
    }
    let registry = match registry {
        Some(registry) => registry,
        None => server.registry(&call.cancel).await?,
    };
    let turn = open.session.turn(&call.cancel).await?;
    // Again, since the tree may have been read anew meanwhile.
    let entry = source
        .entry_id
        .as_deref()
        .map(|id| turn.find(id))
        .transpose()?;
    let end = fork::end(&turn.tree, entry, Some(source.position))?;
    let mut source = Source::read(&turn, end, entry, close_calls)?;
    let (draft, entry_id) = (source.draft.take(), source.entry_id.clone());
    let ephemeral = open.session.ephemeral;
    let durability = open.session.syncer.durability();
    let (opened, written) = {
        let (server, id) = (Arc::clone(server), id::new_session_id());
        blocking(move || {
            let copy = Copy::prepare(&turn, end, &source.open_calls, &*server.source)?;
            drop(turn);
            let header = source.header(&server, id.as_str());
            let synced = durability == Durability::Always;
            copied(&server, &copy, header, (ephemeral, synced))
        })
        .await?
    };
    let forked = OpenSession::new(Session::new(opened, false, durability));
    let turn = forked.session.turn(&call.cancel).await?;
    let new_session_id = forked.id.to_string();
    server.notify(&open, "session_fork", |seq| notification::SessionFork {
        session_id: open.id.to_string(),
        seq,
        new_session_id,
        entry_id: entry_id.unwrap_or_default(),
    });
    let session = convert::session(&forked, &turn);
    drop(turn);
    Server::insert_after(&call, &forked, registry);
    let is_written = written.is_some();
    if let Some(written) = written {
        let (server, forked) = (Arc::clone(server), Arc::clone(&forked));
        call.after(move || finish(&server, &forked, written));
    }
    drop(line);
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
        durability: convert::durability(if is_written {
            durability
        } else {
            Durability::None
        }),
    })
}

/// What nobody waits for.
fn finish(server: &Arc<Server>, forked: &Arc<OpenSession>, written: Written) {
    server.store.tidy(written.folder);
    if let Some(unsynced) = written.unsynced {
        let (server, open) = (Arc::clone(server), Arc::clone(forked));
        let late = move || server.durability_lost(&open);
        forked.session.syncer.after_making(unsynced, late);
    }
}

/// What a fork takes from its source besides the lines.
struct Source {
    entry_id: Option<String>,
    position: Position,
    /// What goes back to the editor.
    draft: Option<Draft>,
    open_calls: Vec<fork::OpenCall>,
    cwd: String,
    /// The source's file, or its id where it has none.
    parent_session: String,
}

impl Source {
    fn read(core: &Core, end: End, entry: Option<Node>, close_calls: bool) -> Result<Self> {
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
            draft: before.map(|entry| navigate::draft(&entry)),
            open_calls,
            cwd: header.map(|header| header.cwd.clone()).unwrap_or_default(),
            parent_session: path
                .or_else(|| header.map(|header| header.id.clone()))
                .unwrap_or_default(),
        })
    }

    fn header(&self, server: &Server, id: &str) -> log::ingest::Header {
        let now = server.source.now_ms();
        log::new_header(id, now, &self.cwd, Some(&self.parent_session))
    }
}

/// Asks the clients; false if one cancels.
async fn ask(call: &Arc<Call>, open: &OpenSession, source: &Source) -> Result<bool> {
    let asking = Asking {
        server: &call.server,
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
    Ok(!decided.await?.cancelled)
}

/// What a fork has left to do once it is answered.
struct Written {
    /// The file's.
    folder: Arc<Folder>,
    unsynced: Option<Unsynced>,
}

/// Copies what was prepared, synced if so wanted. Without a file there is nothing left to do. An empty
/// fork is written as a new session is.
fn copied(
    server: &Server,
    copy: &Copy,
    header: log::ingest::Header,
    (ephemeral, synced): (bool, bool),
) -> Result<(Opened, Option<Written>)> {
    if ephemeral {
        return Ok((copy.to_memory(header)?, None));
    }
    let location = server.store.place(&header)?;
    let log = Log::create(location.clone(), header);
    if copy.is_empty() && !server.writes_files_at_once() {
        let opened = Opened {
            log,
            tree: Tree::new(),
            diagnostics: Vec::new(),
        };
        return Ok((opened, None));
    }
    let folder = Arc::clone(&location.folder);
    let synced = synced || copy.is_empty();
    let made = copy.to_file(location, log.header_line(), synced)?;
    let unsynced = (!synced).then(|| Unsynced::made(made.file, Arc::clone(&folder)));
    Ok((made.opened, Some(Written { folder, unsynced })))
}
