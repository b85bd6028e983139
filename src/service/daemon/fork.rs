//! Forks: asks clients and hooks, then copies a session into a new one (protocol.md §3.10, session-file.md §5).

use super::call::{Call, TakesPlace};
use super::commit_tail::late_failure;
use super::convert::stored::raw;
use super::creating::claim;
use super::event_question::{self, EventQuestion, Refusal};
use super::follow::current;
use super::guard::{Place, SessionGuard, Tenure, guard_of};
use super::opened::{durability_of_new, new, open_after, shown};
use super::opening::{self, OpenOptions};
use super::queue::Access;
use super::release::SessionRequest;
use super::session_files::SessionFiles;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::entry::draft::{Draft, draft};
use treelined_core::error::{Kind, Result};
use treelined_core::flow::fork::{self, End, ForkSide};
use treelined_core::flow::{IdAllocator, leaf};
use treelined_core::id::{SessionId, Source as IdSource};
pub(crate) use treelined_core::tree::{Cause, Node, Tree};
use treelined_files::blocking::blocking;
use treelined_files::log::header::Header;
use treelined_files::log::whole::SessionLines;
use treelined_files::log::{Log, OpenedLog};
pub(crate) use treelined_files::os::file::{Folder, FolderLock};
use treelined_files::session::SessionState;
use treelined_files::session::fork::ForkContent;
use treelined_files::session::sync::UnsyncedFile;
use treelined_files::store::{exists, listing};
use treelined_wire::{self as wire, BeforeEvent, notification};

/// The options of the caller of a fork.
pub(crate) struct ForkOptions {
    /// Whether the fork has the whole tree; otherwise it has one branch.
    pub is_whole: bool,
    /// The entry at which to fork. Default: the leaf.
    pub entry_id: Option<String>,
    pub position: Option<ForkSide>,
    pub closes_calls: bool,
    pub cwd: Option<String>,
    /// The id of the fork.
    pub id: SessionId,
    /// Whether a client has chosen the id. Then a session with this id may exist already.
    pub is_id_chosen: bool,
    pub name: Option<String>,
}

/// The place of a fork request in the queue of its session, taken when the request arrives.
#[must_use]
pub(crate) struct ForkPlace {
    call: Arc<Call>,
    place: Place,
    /// Whether later requests wait for the whole fork, so that a later `close_session` finds it finished. They do not
    /// wait while clients are asked, unless the client of the fork is a script.
    keeps: bool,
}

impl TakesPlace for ForkPlace {
    fn take(call: &Arc<Call>, session_id: Option<&str>) -> Self {
        let (daemon, asker) = (&call.daemon, call.connection.id);
        let open = daemon.registry.queues.find_now(Some(asker), session_id);
        let is_asked = open.is_ok_and(|open| {
            let event = BeforeEvent::SessionBeforeFork;
            let answerers = daemon.questions.answerers(&open, event, asker);
            !answerers.is_empty()
        });
        let keeps = !is_asked || is_script(call);
        Self {
            place: match keeps {
                true => call.place_to_change(session_id),
                false => call.place(session_id),
            },
            call: Arc::clone(call),
            keeps,
        }
    }
}

impl ForkOptions {
    /// Forks the session of this place.
    pub(crate) async fn run(self, place: ForkPlace) -> Result<wire::ForkSessionResult> {
        let ForkPlace { call, place, keeps } = place;
        let rights = call.connection.rights();
        rights.check_new(("newSessionId", self.is_id_chosen), self.cwd.as_deref())?;
        let (open, guard) = current(&call.daemon, place.await?, Instant::now()).await?;
        // A repeated request returns the existing fork, even if the source has changed after the fork was made.
        if self.is_id_chosen && self.is_made(&call, &Names::of(&guard)).await? {
            let id = self.id.clone();
            let again = ForkOptions {
                closes_calls: true,
                ..self
            };
            let (_, source) = Source::find(&guard, &again)?;
            drop(guard);
            return made_before(&call, id.as_str(), source).await;
        }
        open.session.check_not_in_turn()?;
        let (_, source) = Source::find(&guard, &self)?;
        // If the session was not open when the request arrived, the answerers are known only now.
        let (event, asker) = (BeforeEvent::SessionBeforeFork, call.connection.id);
        let answerers = || call.daemon.questions.answerers(&open, event, asker);
        let keeps = keeps && (is_script(&call) || answerers().is_empty());
        let tenure = keeps.then(|| guard.into_with());
        let request = SessionRequest { call, open };
        if let Some(refusal) = ask(&request, &source).await? {
            return Ok(refused(refusal));
        }
        let lease = match tenure {
            Some(tenure) => tenure.lease,
            None => {
                let session_id = Some(&*request.open.id);
                request.call.place_to_change(session_id).await?
            }
        };
        let (open, guard) = guard_of(lease, Instant::now())?;
        // The tree may have been read again during the question, so the options are checked again.
        let options = ForkOptions {
            entry_id: source.entry_id,
            position: Some(source.position),
            ..self
        };
        let (end, source) = Source::find(&guard, &options)?;
        let request = SessionRequest { open, ..request };
        options.copy(&request, guard, end, source).await
    }

    /// Whether the session has a fork with this id. Fails with `sessionExists` if another session has the id.
    async fn is_made(&self, call: &Call, names: &Names) -> Result<bool> {
        let id = self.id.as_str().to_owned();
        let parent = match call.daemon.registry.find(&id) {
            Some(open) => open.session.parent.clone(),
            None => {
                let files = Arc::clone(&call.daemon.files);
                let found = blocking(move || match files.find_file(&id) {
                    Ok(at) => Ok(Some(listing::header(&at))),
                    Err(error) if error.kind == Kind::SessionNotFound => Ok(None),
                    Err(error) => Err(error),
                });
                match found.await? {
                    Some(header) => header.and_then(|header| header.parent_session),
                    None => return Ok(false),
                }
            }
        };
        match parent.is_some_and(|parent| names.have(&parent)) {
            true => Ok(true),
            false => Err(exists(self.id.as_str())),
        }
    }

    /// Copies the session into a new one, and opens the new session with the response.
    async fn copy(
        self,
        request: &SessionRequest,
        guard: SessionGuard,
        end: End,
        mut source: Source,
    ) -> Result<wire::ForkSessionResult> {
        let SessionRequest { call, open } = request;
        let daemon = &call.daemon;
        let (draft, entry_id) = (source.draft.take(), source.entry_id.clone());
        let durability = open.session.syncer.durability();
        // Other requests may name the fork as soon as it is announced. They wait in its queue until the fork is in the
        // list of open sessions.
        let id = self.id.as_str();
        let lease = call.place_to_create(id, true).await?;
        if lease.open().is_some() {
            return Err(exists(id));
        }
        let target = NewSession {
            source: Arc::clone(&daemon.source),
            files: Arc::clone(&daemon.files),
            id: self.id.clone(),
            is_id_chosen: self.is_id_chosen,
            name: self.name,
            writes_at_once: call.connection.writes_files_at_once(),
            is_ephemeral: open.session.ephemeral,
            durability,
        };
        let made = blocking(move || match self.is_whole {
            true => target.copy_whole(guard, &source),
            false => target.copy_branch(guard, &source, end),
        });
        let SessionCopy {
            opened,
            written,
            tenure,
        } = made.await?;
        let (forked, guard) = new(call, opened, Access::Write, durability, lease)?;
        let new_session_id = forked.id.to_string();
        daemon
            .notifier
            .notify(open, |seq| notification::SessionFork {
                session_id: open.id.to_string(),
                seq,
                new_session_id: new_session_id.clone(),
                entry_id: entry_id.clone().unwrap_or_default(),
            });
        let is_written = written.is_some();
        let guard = guard.published().await?;
        daemon.files.describe(&guard);
        let durability = durability_of_new(&forked, &guard, is_written);
        let session = shown(&forked, call, Access::Write, &guard);
        if let Some(written) = written {
            let (daemon, forked) = (Arc::clone(daemon), Arc::clone(&forked));
            // No request waits for this work. The work runs before the lease of the fork ends, so that a
            // `close_session` of the fork finds the file that needs a sync.
            call.after(move || {
                daemon.files.store.tidy(written.folder);
                if let Some(unsynced) = written.unsynced {
                    let late = late_failure(&daemon, &forked);
                    forked.session.syncer.after_making(unsynced, late);
                }
            });
        }
        open_after(call, &forked, Access::Write, guard.into_with());
        // The next request to the source runs after the response.
        call.after(move || drop(tenure));
        Ok(result(Some(session), draft, durability))
    }
}

/// Whether the client has not introduced itself. Such a client is a script.
fn is_script(call: &Call) -> bool {
    call.connection.client().is_none()
}

/// Opens the fork that an earlier call with this id has made.
async fn made_before(
    call: &Arc<Call>,
    id: &str,
    source: Source,
) -> Result<wire::ForkSessionResult> {
    let options = OpenOptions {
        access: Access::Write,
        durability: None,
    };
    let opened = opening::by_id(call, id, options).await?;
    Ok(result(Some(opened.session), source.draft, Durability::None))
}

/// The result of a fork that a client or a hook has refused.
fn refused(refusal: Refusal) -> wire::ForkSessionResult {
    wire::ForkSessionResult {
        cancelled: true,
        reason: Some(refusal.reason),
        by: refusal.by,
        message: refusal.message,
        ..result(None, None, Durability::None)
    }
}

fn result(
    session: Option<wire::Session>,
    draft: Option<Draft>,
    durability: Durability,
) -> wire::ForkSessionResult {
    let images = draft.as_ref().map(|draft| &draft.images);
    let images = images.filter(|images| !images.is_empty());
    wire::ForkSessionResult {
        session,
        editor_images: images.map(|images| images.iter().map(|image| raw(image)).collect()),
        editor_text: draft.map(|draft| draft.text),
        cancelled: false,
        reason: None,
        by: None,
        message: None,
        durability,
    }
}

/// The facts that a fork takes from its source, apart from the lines.
struct Source {
    entry_id: Option<String>,
    position: ForkSide,
    /// The text and images that go back to the editor.
    draft: Option<Draft>,
    open_calls: Vec<fork::OpenCall>,
    cwd: String,
    /// The path of the source's file, or its id if it has no file.
    parent_session: String,
    /// The last entry that is copied.
    tip_id: Option<String>,
}

impl Source {
    /// The end of the fork, and the facts that it takes from its source.
    fn find(state: &SessionState, options: &ForkOptions) -> Result<(End, Self)> {
        let entry = match &options.entry_id {
            Some(id) => Some(state.find(id)?),
            None => state.leaf(),
        };
        let end = fork::end(&state.tree, entry, options.position)?;
        let mut source = Self::read(state, end, entry, options.closes_calls)?;
        if let Some(cwd) = &options.cwd {
            source.cwd.clone_from(cwd);
        }
        Ok((end, source))
    }

    fn read(
        state: &SessionState,
        end: End,
        entry: Option<Node>,
        close_calls: bool,
    ) -> Result<Self> {
        let closing = fork::closing_messages(&state.tree, end.tip);
        let closing = closing.into_iter().map(|node| state.entry(node));
        let open_calls = fork::unanswered_calls(&closing.collect::<Result<Vec<_>>>()?);
        if !open_calls.is_empty() && !close_calls {
            return Err(fork::refuse(&open_calls));
        }
        let before = entry.filter(|_| end.position == ForkSide::Before);
        let before = before.map(|node| state.entry(node)).transpose()?;
        let header = state.log.header();
        let names = Names::of(state);
        Ok(Self {
            entry_id: state.id_of(entry).map(str::to_owned),
            position: end.position,
            draft: before.map(|entry| draft(&entry)),
            open_calls,
            cwd: header.map(|header| header.cwd.clone()).unwrap_or_default(),
            tip_id: state.id_of(end.tip).map(str::to_owned),
            parent_session: names.path.unwrap_or(names.id),
        })
    }
}

/// The two names by which the header of a fork can name its source.
struct Names {
    /// The path of the file; `None` if the session has no file.
    path: Option<String>,
    id: String,
}

impl Names {
    fn of(state: &SessionState) -> Self {
        let header = state.log.header();
        let location = state.log.location();
        Self {
            path: location.map(|at| at.path().display().to_string()),
            id: header.map(|header| header.id.clone()).unwrap_or_default(),
        }
    }

    fn have(&self, parent: &str) -> bool {
        self.path.as_deref() == Some(parent) || self.id == parent
    }
}

/// Asks the clients and the hooks, which may refuse.
async fn ask(request: &SessionRequest, source: &Source) -> Result<Option<Refusal>> {
    let asking = EventQuestion {
        takes_summary: false,
        ..request.asking(BeforeEvent::SessionBeforeFork, None)
    };
    let decided = event_question::put(asking, |put| notification::SessionBeforeFork {
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
    source: Arc<dyn IdSource>,
    files: Arc<SessionFiles>,
    id: SessionId,
    is_id_chosen: bool,
    name: Option<String>,
    writes_at_once: bool,
    is_ephemeral: bool,
    durability: Durability,
}

/// A finished fork, and the right to the source, which is still held.
struct SessionCopy {
    opened: OpenedLog,
    /// `None` if no file was written.
    written: Option<UnsyncedFork>,
    tenure: Tenure,
}

impl NewSession {
    fn header(&self, source: &Source) -> Header {
        let now = self.source.now_ms();
        let id = self.id.as_str();
        let header = Header::new(id, now, &source.cwd, Some(&source.parent_session));
        Header {
            parent_entry_id: source.tip_id.clone(),
            ..header
        }
    }

    /// The right to make a file with the id, if the client has chosen the id.
    fn claim(&self) -> Result<Option<FolderLock>> {
        let claim = || self.files.store.claim(self.id.as_str());
        self.is_id_chosen.then(claim).transpose()
    }

    /// The log. If the client has chosen the id, the first write of the log claims the id.
    fn claimed(&self, log: Log) -> Log {
        match self.is_id_chosen {
            true => log.claimed_by(claim(&self.files, self.id.as_str())),
            false => log,
        }
    }

    /// Copies all lines of the session and syncs them. If there are no lines, the new session has no file yet.
    fn copy_whole(&self, guard: SessionGuard, source: &Source) -> Result<SessionCopy> {
        let (from, to) = (guard.tree.file_leaf(), guard.leaf());
        let is_cut = guard.tree.cut_background().is_some();
        let mut minter = IdAllocator::new(&guard.tree, &*self.source);
        let mut lines = Vec::new();
        if from != to || is_cut {
            let cause = Cause::SetLeaf.name();
            let record = leaf::record_from(&mut minter, &guard.tree, from, to, cause);
            lines.push(record);
        }
        if let Some(name) = &self.name {
            let (line, _) = fork::name_line(&mut minter, name, guard.leaf_id());
            lines.push(line);
        }
        let whole = SessionLines::prepare(&guard.log, &guard.tree, lines)?;
        let header = self.header(source);
        let (opened, written) = if self.is_ephemeral {
            (whole.into_memory(header)?, None)
        } else {
            let location = self.files.store.place(&header)?;
            let log = Log::create(location.clone(), header);
            if whole.is_empty() && !self.writes_at_once {
                (unwritten(self.claimed(log)), None)
            } else {
                let _claimed = self.claim()?;
                let folder = Arc::clone(&location.folder);
                let opened = whole.to_file(location, &log.header_line())?;
                let unsynced = None;
                (opened, Some(UnsyncedFork { folder, unsynced }))
            }
        };
        Ok(SessionCopy {
            opened,
            written,
            tenure: guard.into_with(),
        })
    }

    /// Copies the branch up to `end`, with a sync if the policy requires one. An empty fork is written like a new
    /// session.
    fn copy_branch(&self, guard: SessionGuard, source: &Source, end: End) -> Result<SessionCopy> {
        let copy = ForkContent::prepare(
            &guard,
            end,
            &source.open_calls,
            self.name.as_deref(),
            &*self.source,
        )?;
        let tenure = guard.into_with();
        let header = self.header(source);
        let (opened, written) = if self.is_ephemeral {
            (copy.to_memory(header)?, None)
        } else {
            let location = self.files.store.place(&header)?;
            let log = Log::create(location.clone(), header);
            if copy.is_empty() && !self.writes_at_once {
                (unwritten(self.claimed(log)), None)
            } else {
                let _claimed = self.claim()?;
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

/// A session that has no file yet.
fn unwritten(log: Log) -> OpenedLog {
    OpenedLog {
        log,
        tree: Tree::new(),
        diagnostics: Vec::new(),
    }
}
