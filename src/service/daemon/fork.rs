//! Forks: copies a session into a new one, after clients and hooks have been asked (protocol.md §3.10, session-file.md
//! §5).

use super::Daemon;
use super::call::Call;
use super::convert;
use super::open_session::{OpenSession, Place, SessionGuard, Tenure, guard};
use super::question::{self, EventQuestion, Refusal};
use super::queue::{Access, Scope};
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::entry::draft::{Draft, draft};
use treelined_core::error::Result;
use treelined_core::flow::fork::{self, End, ForkSide};
use treelined_core::flow::{IdAllocator, leaf};
use treelined_core::id::SessionId;
pub(crate) use treelined_core::tree::{Cause, Node, Tree};
use treelined_files::blocking::blocking;
use treelined_files::clock;
use treelined_files::log::whole::SessionLines;
use treelined_files::log::{self, Log, OpenedLog};
pub(crate) use treelined_files::os::file::Folder;
use treelined_files::session::SessionState;
use treelined_files::session::fork::ForkContent;
use treelined_files::session::sync::UnsyncedFile;
use treelined_wire::{self as wire, BeforeEvent, notification};

/// The options of the caller of a fork.
pub(crate) struct ForkOptions {
    /// The whole tree, not one branch.
    pub is_whole: bool,
    /// The entry at which to fork. Default: the leaf.
    pub entry_id: Option<String>,
    pub position: Option<ForkSide>,
    pub closes_calls: bool,
    pub cwd: Option<String>,
}

/// The request of a fork.
pub(crate) struct Forker {
    call: Arc<Call>,
    options: ForkOptions,
    place: Place,
    /// Whether later requests wait for the fork, so that a later `close_session` finds it finished. They do not wait
    /// for a question, unless the client is a script.
    keeps: bool,
}

impl Forker {
    /// Takes the fork's place in the queue of the session.
    pub(crate) fn new(call: &Arc<Call>, session_id: Option<&str>, options: ForkOptions) -> Self {
        let daemon = &call.daemon;
        let is_asked = daemon
            .queues
            .find_now(Some(call.connection.id), session_id)
            .is_ok_and(|open| {
                let event = BeforeEvent::SessionBeforeFork;
                let answerers = daemon.answerers(&open, event, call.connection.id);
                !answerers.is_empty()
            });
        let keeps = !is_asked || is_script(call);
        let scope = if keeps { Scope::Change } else { Scope::Session };
        Self {
            place: call.place(session_id, scope),
            call: Arc::clone(call),
            options,
            keeps,
        }
    }

    pub(crate) async fn run(self) -> Result<wire::ForkSessionResult> {
        let Self {
            call,
            options,
            place,
            keeps,
        } = self;
        let (open, turn) = guard(place.await?, Instant::now())?;
        let turn = call.daemon.caught_up(&open, turn).await?;
        open.session.check_not_in_turn()?;
        let (_, source) = Source::find(&turn, &options)?;
        // The answerers are known only here if the session was not open yet when the request arrived.
        let event = BeforeEvent::SessionBeforeFork;
        let answerers = || call.daemon.answerers(&open, event, call.connection.id);
        let keeps = keeps && (is_script(&call) || answerers().is_empty());
        let tenure = keeps.then(|| turn.into_with());
        if let Some(refusal) = ask(&call, &open, &source).await? {
            return Ok(refused(refusal));
        }
        let lease = match tenure {
            Some(tenure) => tenure.lease,
            None => call.place(Some(&open.id), Scope::Change).await?,
        };
        let (open, turn) = guard(lease, Instant::now())?;
        // The options are checked again, since the tree may have been reread since.
        let options = ForkOptions {
            entry_id: source.entry_id,
            position: Some(source.position),
            ..options
        };
        let (end, source) = Source::find(&turn, &options)?;
        copy(&call, &open, turn, end, source, options.is_whole).await
    }
}

/// Whether the client has not introduced itself, as scripts do not.
fn is_script(call: &Call) -> bool {
    call.connection.client().is_none()
}

/// Copies the session into a new one, and opens that with the response.
async fn copy(
    call: &Arc<Call>,
    open: &Arc<OpenSession>,
    turn: SessionGuard,
    end: End,
    mut source: Source,
    is_whole: bool,
) -> Result<wire::ForkSessionResult> {
    let daemon = &call.daemon;
    let (draft, entry_id) = (source.draft.take(), source.entry_id.clone());
    let durability = open.session.syncer.durability();
    let id = clock::new_session_id();
    // A request may name the fork as soon as it is announced; it waits until the fork is in the list of open sessions.
    let lease = call.place(Some(id.as_str()), Scope::CreateFresh).await?;
    let target = NewSession {
        daemon: Arc::clone(daemon),
        id,
        writes_at_once: call.connection.writes_files_at_once(),
        is_ephemeral: open.session.ephemeral,
        durability,
    };
    let made = blocking(move || match is_whole {
        true => target.copy_whole(turn, &source),
        false => target.copy_branch(turn, &source, end),
    });
    let SessionCopy {
        opened,
        written,
        tenure,
    } = made.await?;
    let session = daemon.new_session(opened, Access::Write, durability);
    let forked = OpenSession::new(session, &call.connection);
    let turn = forked.session.guard(Instant::now(), lease)?;
    let new_session_id = forked.id.to_string();
    daemon.notify(open, |seq| notification::SessionFork {
        session_id: open.id.to_string(),
        seq,
        new_session_id: new_session_id.clone(),
        entry_id: entry_id.clone().unwrap_or_default(),
    });
    let is_written = written.is_some();
    let turn = turn.published().await?;
    daemon.describe(&turn);
    let durability = forked.durability(&turn, is_written);
    let session = forked.shown_to(&call.connection, Access::Write, &turn);
    call.open_after(&forked, Access::Write, turn.into_with());
    if let Some(written) = written {
        let (daemon, forked) = (Arc::clone(daemon), Arc::clone(&forked));
        call.after(move || finish(&daemon, &forked, written));
    }
    // A later `close_session` finds the file that needs a sync.
    call.after(move || drop(tenure));
    let images = draft.as_ref().map(|draft| &draft.images);
    let images = images.filter(|images| !images.is_empty());
    Ok(wire::ForkSessionResult {
        session: Some(session),
        editor_text: draft.as_ref().map(|draft| draft.text.clone()),
        editor_images: images
            .map(|images| images.iter().map(|image| convert::raw(image)).collect()),
        cancelled: false,
        reason: None,
        by: None,
        message: None,
        durability,
    })
}

/// A fork that a client or a hook refused.
fn refused(refusal: Refusal) -> wire::ForkSessionResult {
    wire::ForkSessionResult {
        session: None,
        editor_text: None,
        editor_images: None,
        cancelled: true,
        reason: Some(refusal.reason),
        by: refusal.by,
        message: refusal.message,
        durability: Durability::None,
    }
}

/// Finishes the fork after its response: nothing waits for this.
fn finish(daemon: &Arc<Daemon>, forked: &Arc<OpenSession>, written: UnsyncedFork) {
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
    position: ForkSide,
    /// The text and images that go back to the editor.
    draft: Option<Draft>,
    open_calls: Vec<fork::OpenCall>,
    cwd: String,
    /// The path of the source's file, or its id if it has no file.
    parent_session: String,
}

impl Source {
    /// The end of the fork, and what it takes from its source.
    fn find(core: &SessionState, options: &ForkOptions) -> Result<(End, Self)> {
        let entry = match &options.entry_id {
            Some(id) => Some(core.find(id)?),
            None => core.leaf(),
        };
        let end = fork::end(&core.tree, entry, options.position)?;
        let mut source = Self::read(core, end, entry, options.closes_calls)?;
        if let Some(cwd) = &options.cwd {
            source.cwd.clone_from(cwd);
        }
        Ok((end, source))
    }

    fn read(core: &SessionState, end: End, entry: Option<Node>, close_calls: bool) -> Result<Self> {
        let closing = fork::closing_messages(&core.tree, end.tip);
        let closing = closing.into_iter().map(|node| core.entry(node));
        let open_calls = fork::unanswered_calls(&closing.collect::<Result<Vec<_>>>()?);
        if !open_calls.is_empty() && !close_calls {
            return Err(fork::refuse(&open_calls));
        }
        let before = entry.filter(|_| end.position == ForkSide::Before);
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
}

/// Asks the clients and the hooks, which may refuse.
async fn ask(call: &Arc<Call>, open: &OpenSession, source: &Source) -> Result<Option<Refusal>> {
    let asking = EventQuestion {
        daemon: &call.daemon,
        open,
        asker: call.connection.id,
        event: BeforeEvent::SessionBeforeFork,
        navigation_id: None,
        timeout: None,
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
            ForkSide::Before => wire::ForkPosition::Before,
            ForkSide::At => wire::ForkPosition::At,
        },
    });
    Ok(decided.await?.refusal(wire::OnNoAnswer::Proceed))
}

/// The work of a fork after its response.
struct UnsyncedFork {
    /// The folder of the fork's file.
    folder: Arc<Folder>,
    unsynced: Option<UnsyncedFile>,
}

/// The new session.
struct NewSession {
    daemon: Arc<Daemon>,
    id: SessionId,
    writes_at_once: bool,
    is_ephemeral: bool,
    durability: Durability,
}

/// A finished fork, and the result of its source's guard.
struct SessionCopy {
    opened: OpenedLog,
    /// `None` if no file was written.
    written: Option<UnsyncedFork>,
    tenure: Tenure,
}

impl NewSession {
    fn header(&self, source: &Source) -> log::header::Header {
        let now = self.daemon.source.now_ms();
        let id = self.id.as_str();
        log::header::Header::new(id, now, &source.cwd, Some(&source.parent_session))
    }

    /// Copies all lines of the session, with a sync. If there are none, the new session has no file yet.
    fn copy_whole(&self, turn: SessionGuard, source: &Source) -> Result<SessionCopy> {
        let (from, to) = (turn.tree.file_leaf(), turn.leaf());
        let record = (from != to).then(|| {
            let mut allocator = IdAllocator::new(&turn.tree, &*self.daemon.source);
            leaf::record_from(&mut allocator, &turn.tree, from, to, Cause::SetLeaf.name())
        });
        let whole = SessionLines::prepare(&turn.log, &turn.tree, record)?;
        let header = self.header(source);
        let (opened, written) = if self.is_ephemeral {
            (whole.into_memory(header)?, None)
        } else {
            let location = self.daemon.store.place(&header)?;
            let log = Log::create(location.clone(), header);
            if whole.is_empty() && !self.writes_at_once {
                (unwritten(log), None)
            } else {
                let folder = Arc::clone(&location.folder);
                let opened = whole.to_file(location, &log.header_line())?;
                let unsynced = None;
                (opened, Some(UnsyncedFork { folder, unsynced }))
            }
        };
        Ok(SessionCopy {
            opened,
            written,
            tenure: turn.into_with(),
        })
    }

    /// Copies the branch up to `end`, with a sync if the policy requires one. An empty fork is written like a new
    /// session.
    fn copy_branch(&self, turn: SessionGuard, source: &Source, end: End) -> Result<SessionCopy> {
        let copy = ForkContent::prepare(&turn, end, &source.open_calls, &*self.daemon.source)?;
        let tenure = turn.into_with();
        let header = self.header(source);
        let (opened, written) = if self.is_ephemeral {
            (copy.to_memory(header)?, None)
        } else {
            let location = self.daemon.store.place(&header)?;
            let log = Log::create(location.clone(), header);
            if copy.is_empty() && !self.writes_at_once {
                (unwritten(log), None)
            } else {
                let folder = Arc::clone(&location.folder);
                let synced = self.durability == Durability::Always || copy.is_empty();
                let made = copy.to_file(location, log.header_line(), synced)?;
                let unsynced =
                    (!synced).then(|| UnsyncedFile::made(made.file, Arc::clone(&folder)));
                (made.opened, Some(UnsyncedFork { folder, unsynced }))
            }
        };
        Ok(SessionCopy {
            opened,
            written,
            tenure,
        })
    }
}

/// A session without a file.
fn unwritten(log: Log) -> OpenedLog {
    OpenedLog {
        log,
        tree: Tree::new(),
        diagnostics: Vec::new(),
    }
}
