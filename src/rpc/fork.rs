//! `fork_session` and `get_fork_messages` (protocol.md §3, storage.md §5).

use super::convert;
use super::method::Reply;
use super::question::{self, ANSWER_TIMEOUT, Asking};
use super::server::{Call, OpenSession, Server};
use crate::error::{Error, Result};
use crate::flow::fork::{self, Plan, Position};
use crate::flow::navigate;
use crate::id;
use crate::log::body::{Bodies, Fetch};
use crate::log::copy::Draft;
use crate::log::file::Location;
use crate::log::scan::{Kind as EntryKind, Role};
use crate::log::{self, Log, Opened, rewrite};
use crate::session::{Core, Session, blocking};
use crate::sync::Durability;
use crate::tree::{Copied, Flags, Node, Tree};
use crate::wire::{self, BeforeEvent, notification};
use std::collections::HashSet;
use std::io::Write;
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
    let plan = fork::plan(&turn.tree, entry, position)?;
    let close_calls = params.close_tool_calls.unwrap_or_default();
    let source = Source::read(&turn, &plan, entry, close_calls)?;
    drop(turn);
    if !ask(&call, &open, &source).await? {
        return Reply::of(&wire::ForkSessionResult {
            session: None,
            editor_text: None,
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
    let plan = fork::plan(&turn.tree, entry, Some(source.position))?;
    let source = Source::read(&turn, &plan, entry, close_calls)?;
    let (editor_text, entry_id) = (source.editor_text.clone(), source.entry_id.clone());
    let copy = Copy::prepare(&turn, plan, &source, &*server.source)?;
    drop(turn);
    let ephemeral = open.session.ephemeral;
    let written = copy.is_written() && !ephemeral;
    let opened = {
        let (server, id) = (Arc::clone(server), id::new_session_id());
        blocking(move || {
            let header = source.header(&server, id.as_str());
            if ephemeral {
                return copy_to_memory(&copy, header);
            }
            copy_to_file(&server, &copy, header)
        })
        .await?
    };
    let durability = open.session.syncer.durability();
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
    drop(line);
    Reply::of(&wire::ForkSessionResult {
        session: Some(session),
        editor_text,
        cancelled: false,
        durability: convert::durability(if written {
            durability
        } else {
            Durability::None
        }),
    })
}

/// What a fork takes from its source besides the lines.
struct Source {
    entry_id: Option<String>,
    position: Position,
    editor_text: Option<String>,
    open_calls: Vec<fork::OpenCall>,
    cwd: String,
    /// The source's file, or its id where it has none.
    parent_session: String,
}

impl Source {
    fn read(core: &Core, plan: &Plan, entry: Option<Node>, close_calls: bool) -> Result<Self> {
        let closing = fork::closing_messages(&core.tree, &plan.kept);
        let closing = closing.into_iter().map(|node| core.entry(node));
        let open_calls = fork::unanswered_calls(&closing.collect::<Result<Vec<_>>>()?);
        if !open_calls.is_empty() && !close_calls {
            return Err(fork::refuse(&open_calls));
        }
        let before = entry.filter(|_| plan.position == Position::Before);
        let before = before.map(|node| core.entry(node)).transpose()?;
        let header = core.log.header();
        let path = core
            .log
            .location()
            .map(|at| at.path().display().to_string());
        Ok(Self {
            entry_id: core.id_of(entry).map(str::to_owned),
            position: plan.position,
            editor_text: before.map(|entry| navigate::draft(&entry).text),
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

/// The lines of a fork, prepared under the source's turn and read without it.
struct Copy {
    plan: Plan,
    bodies: Bodies,
    kept: Vec<Kept>,
    /// Results for calls that have none.
    results: Vec<Vec<u8>>,
    /// The id of the last entry before the labels.
    last_id: Option<String>,
    labels: Vec<(Fetch, String)>,
}

/// An entry that is copied.
struct Kept {
    fetch: Fetch,
    id: String,
    /// What is known of its copy, if that is the stored line, byte for byte.
    copied: Option<Copied>,
}

/// A line of a fork.
enum Line<'a> {
    Copy {
        bytes: &'a [u8],
        id: &'a str,
        facts: Copied,
    },
    Other(&'a [u8]),
}

impl Copy {
    fn prepare(core: &Core, plan: Plan, source: &Source, ids: &dyn id::Source) -> Result<Self> {
        let bodies = core.bodies();
        let with_id = |node: &Node| {
            let fetch = bodies.fetch(&core.tree, *node)?;
            Ok((fetch, core.tree.id(*node).to_owned()))
        };
        let mut kept = Vec::with_capacity(plan.kept.len());
        let mut before = None;
        for node in &plan.kept {
            let (fetch, id) = with_id(node)?;
            // Hanging on the entry before it in the source too, it needs no other parent.
            let is_linked = before.is_some()
                && core.tree.parent(*node) == before
                && !core.tree.flags(*node).has(Flags::REPARENTED);
            let copied = core.tree.copied(*node);
            kept.push(Kept {
                copied: copied.filter(|_| is_linked && fetch.is_verbatim()),
                fetch,
                id,
            });
            before = Some(*node);
        }
        let labels = plan
            .labels
            .iter()
            .map(with_id)
            .collect::<Result<Vec<_>>>()?;
        let last_id = kept.last().map(|kept: &Kept| kept.id.clone());
        let (results, last_id) = fork::close_calls(&core.tree, ids, &source.open_calls, last_id);
        Ok(Self {
            kept,
            results,
            last_id,
            labels,
            plan,
            bodies,
        })
    }

    /// Whether there is anything to write: a fork of nothing has no file yet.
    fn is_written(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Hands every line to `write`, in order.
    fn lines(&self, write: &mut dyn FnMut(Line<'_>) -> Result<()>) -> Result<()> {
        let mut reader = self.bodies.reader();
        let mut parent_id = None;
        for kept in &self.kept {
            match kept.copied {
                Some(facts) => write(Line::Copy {
                    bytes: reader.verbatim(&kept.fetch)?,
                    id: &kept.id,
                    facts,
                })?,
                None => {
                    let copy = self.plan.copy(reader.entry(&kept.fetch)?, parent_id);
                    write(Line::Other(&copy))?;
                }
            }
            parent_id = Some(kept.id.as_str());
        }
        for line in &self.results {
            write(Line::Other(line))?;
        }
        parent_id = self.last_id.as_deref();
        for (fetch, id) in &self.labels {
            write(Line::Other(
                &self.plan.copy(reader.entry(fetch)?, parent_id),
            ))?;
            parent_id = Some(id);
        }
        Ok(())
    }
}

impl Line<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Line::Copy { bytes, .. } | Line::Other(bytes) => bytes,
        }
    }
}

fn copy_to_memory(copy: &Copy, header: log::ingest::Header) -> Result<Opened> {
    let mut lines = Vec::new();
    copy.lines(&mut |line| {
        lines.push(line.bytes().to_vec());
        Ok(())
    })?;
    let mut log = Log::ephemeral(header);
    let mut tree = Tree::new();
    log.fill(&mut tree, lines)?;
    tree.set_leaf(tree.file_leaf());
    Ok(Opened {
        log,
        tree,
        diagnostics: Vec::new(),
    })
}

fn copy_to_file(server: &Server, copy: &Copy, header: log::ingest::Header) -> Result<Opened> {
    let location = server.store.place(&header)?;
    let log = Log::create(location.clone(), header);
    if !copy.is_written() {
        return Ok(Opened {
            log,
            tree: Tree::new(),
            diagnostics: Vec::new(),
        });
    }
    let mut draft = Draft::new(&log.header_line())?;
    write_file(&location, copy, &log.header_line(), &mut draft)?;
    draft.finish(location)
}

fn write_file(
    location: &Location,
    copy: &Copy,
    header_line: &[u8],
    draft: &mut Draft,
) -> Result<()> {
    let mut failure = None;
    let written = rewrite::replace(location, location, |out| {
        out.write_all(header_line)?;
        out.write_all(b"\n")?;
        let copied = copy.lines(&mut |line| {
            let bytes = line.bytes();
            let write = out.write_all(bytes).and_then(|()| out.write_all(b"\n"));
            write.map_err(|error| Error::io("write the fork", &error))?;
            match line {
                Line::Copy { bytes, id, facts } => draft.copy(bytes.len(), id, facts),
                Line::Other(bytes) => draft.line(bytes),
            }
        });
        copied.map_err(|error| {
            let other = std::io::Error::other(error.message.clone());
            failure = Some(error);
            other
        })
    });
    match failure {
        Some(error) => Err(error),
        None => written,
    }
}
