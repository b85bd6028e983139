//! Sessions for programs that embed this crate, such as an agent that keeps its own conversations.
//!
//! Other programs may append to the same files at the same time: the daemon, other agents, the pi coding agent. Each
//! call first reads the entries that they have appended. Each append is one write of whole lines under the lock of the
//! file (`schema/session-file.md`). All calls need a tokio runtime, since another thread waits for a locked or large
//! file.
//!
//! ```
//! use treelined_files::embed::{Durability, Sessions};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! let sessions = Sessions::at(folder, Durability::Interval);
//! let mut session = sessions.create("/home/ada/project")?;
//! let question = session.append(r#"{"role": "user", "content": "Which one?"}"#).await?;
//! let answer = session.append(r#"{"role": "user", "content": "The first."}"#).await?;
//!
//! // Another way from the same point; the first one stays in the file.
//! session.navigate(&answer).await?;
//! session.append(r#"{"role": "user", "content": "The second."}"#).await?;
//! assert_eq!(session.context().await?.messages.len(), 2);
//!
//! let id = session.id().to_owned();
//! session.close().await?;
//! let mut again = sessions.open(&id).await?;
//! assert_eq!(again.entries().await?.len(), 3);
//! assert_eq!(again.entries().await?[2].parent.as_deref(), Some(&*question));
//! # Ok::<(), treelined_files::embed::Error>(())
//! # }).unwrap();
//! ```

use crate::blocking::blocking;
use crate::cancel::Cancel;
use crate::clock::{SystemSource, new_session_id};
use crate::log::header::Header;
use crate::log::{Log, OpenedLog};
use crate::os::time;
use crate::session::{Session, SessionGuard, SessionState};
use crate::store::Store;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use treelined_core::context::{self, Format};
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::Result;
use treelined_core::flow::PlannedLines;
use treelined_core::flow::append::{self, NewEntry};
use treelined_core::flow::navigate::{self, Navigation};
use treelined_core::id::Source;
use treelined_core::tree::Tree;

pub use treelined_core::context::Context;
pub use treelined_core::durability::Durability;
pub use treelined_core::error::{Error, Kind};

/// The sessions of one folder, which has the layout of the daemon's session directory.
pub struct Sessions {
    store: Arc<Store>,
    durability: Durability,
}

/// A session that is open in this program.
pub struct OpenSession {
    session: Arc<Session>,
}

/// An entry and its place in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: String,
    /// The parent entry; `None` for a root.
    pub parent: Option<String>,
    /// The kind of the entry, such as `message` or `compaction`.
    pub kind: EntryKind,
    /// The line of the entry in the file, byte for byte, without the line break.
    pub line: Vec<u8>,
}

impl Sessions {
    /// The sessions of `folder`. The folder is made together with its first session. `durability` says which failures
    /// an answered append survives.
    pub fn at(folder: impl Into<PathBuf>, durability: Durability) -> Self {
        Self {
            store: Arc::new(Store::new(folder.into())),
            durability,
        }
    }

    /// A new session of the working directory `cwd`, which is an absolute path. The first append makes its file. Fails
    /// with `storageIo` if the folder cannot be made.
    pub fn create(&self, cwd: &str) -> Result<OpenSession> {
        let id = new_session_id();
        let header = Header::new(id.as_str(), SystemSource.now_ms(), cwd, None);
        let log = Log::create(self.store.place(&header)?, header);
        Ok(self.of(OpenedLog {
            log,
            tree: Tree::new(),
            diagnostics: Vec::new(),
        }))
    }

    /// Opens a session by its id. The leaf is where the last writer left it. Fails with `sessionNotFound`, or with an
    /// error about a damaged header.
    pub async fn open(&self, id: &str) -> Result<OpenSession> {
        let (store, id) = (Arc::clone(&self.store), id.to_owned());
        let opened = blocking(move || store.open(store.find(&id)?, &Cancel::new())).await?;
        Ok(self.of(opened))
    }

    fn of(&self, opened: OpenedLog) -> OpenSession {
        OpenSession {
            session: Session::new(opened, false, self.durability),
        }
    }
}

impl OpenSession {
    /// The id of the session.
    pub fn id(&self) -> &str {
        self.session.id.as_str()
    }

    /// The path of the session file. The file exists once an entry was appended.
    pub fn path(&self) -> Option<&Path> {
        self.session.path.as_deref()
    }

    /// Appends a message (one JSON object) below the leaf, and moves the leaf to it. Returns its id. Fails with
    /// `entryInvalid` if `message` is not a message, with `sessionLocked` if another program holds the lock too long,
    /// and with `durabilityUnknown` if it is unknown whether the message is in the file.
    pub async fn append(&mut self, message: &str) -> Result<String> {
        let entry = [NewEntry::message(message.as_bytes())?];
        let plan = move |state: &SessionState| {
            append::plan(&state.tree, &SystemSource, &entry, &|node| {
                state.entry(node)
            })
        };
        let ids = self.commit(plan).await?;
        let id = ids.into_iter().next();
        id.ok_or_else(|| Error::new(Kind::InternalError, "an append made no entry"))
    }

    /// Moves the leaf to an entry, so that the next append continues there. For a user message the leaf moves above it,
    /// so that the message can be sent in another form (`schema/semantics.md` §2). The branch that the leaf leaves
    /// stays in the file. Returns the new leaf; `None` is the position before the first entry. Fails with
    /// `entryNotFound`.
    pub async fn navigate(&mut self, entry_id: &str) -> Result<Option<String>> {
        let target = entry_id.to_owned();
        let plan = move |state: &SessionState| {
            let target = state.find(&target)?;
            match navigate::plan(&state.tree, target, true) {
                Navigation::AlreadyThere => Ok(PlannedLines::default()),
                Navigation::Move(plan) => {
                    navigate::commit(&state.tree, &SystemSource, &plan, None, None)
                }
            }
        };
        self.commit(plan).await?;
        Ok(self.guard()?.leaf_id().map(str::to_owned))
    }

    /// Returns the context of a model at the leaf: the messages on its path, with compactions and edits applied
    /// (`schema/semantics.md` §1).
    pub async fn context(&mut self) -> Result<Context> {
        self.read(|state| {
            let path = state.steps(state.leaf());
            let kept = state.kept(&path)?;
            let body = &mut |node| state.entry(node);
            context::build_within(&path, kept, Format::Llm, usize::MAX, body)
        })
        .await
    }

    /// All entries, in the order of the file.
    pub async fn entries(&mut self) -> Result<Vec<Entry>> {
        self.read(|state| {
            let entry = |node| {
                Ok(Entry {
                    id: state.tree.id(node).to_owned(),
                    parent: state.id_of(state.tree.parent(node)).map(str::to_owned),
                    kind: state.tree.kind(node),
                    line: state.entry(node)?,
                })
            };
            state.tree.entries().map(entry).collect()
        })
        .await
    }

    /// The id of the leaf, below which the next entry goes; `None` before the first entry.
    pub async fn leaf(&mut self) -> Result<Option<String>> {
        self.read(|state| Ok(state.leaf_id().map(str::to_owned)))
            .await
    }

    /// Syncs the entries that the durability `Interval` has not synced yet. If a session is dropped without this call,
    /// the file keeps all entries, but a failure of the machine may lose the last 50 ms.
    pub async fn close(self) -> Result<()> {
        self.session.syncer.flush().await
    }

    /// The right to use the session. Only this value requests the right, and each call borrows this value, so no call
    /// waits for another.
    fn guard(&self) -> Result<SessionGuard> {
        self.session.guard(time::now(), ())
    }

    async fn read<T: Send + 'static>(
        &mut self,
        read: impl FnOnce(&SessionState) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (guard, _) = self.guard()?.refreshed().await?;
        blocking(move || read(&guard)).await
    }

    async fn commit(
        &mut self,
        plan: impl FnMut(&SessionState) -> Result<PlannedLines> + Send + 'static,
    ) -> Result<Vec<String>> {
        self.session.check_version()?;
        self.session.syncer.check()?;
        let (_, _, outcome) = self.guard()?.commit(&Cancel::new(), plan).await;
        let outcome = outcome?;
        if let Some(file) = outcome.unsynced {
            let syncer = &self.session.syncer;
            syncer.after_write(syncer.durability(), file, || ()).await?;
        }
        let ids = outcome.entry_ids.iter();
        Ok(ids.map(|id| id.as_str().to_owned()).collect())
    }
}
