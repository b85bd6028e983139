//! The state that connections share, in parts, and the verbs that work on it.
//!
//! [`Daemon`] holds the parts: [`registry`] has the open sessions, [`session_files`] their files, [`connections`] the
//! clients, [`offers`] the commands and renderers of clients, [`list_watchers`] the clients that watch the list of
//! sessions, [`notify`] sends notifications, and [`questions`] knows the clients, hooks and extensions that can be
//! asked. A part does not know the daemon. This file has the methods of the daemon itself. A verb is a function above
//! the parts, in a file that owns its types.
//!
//! - Data. [`open_session`] is an open session, with [`client_turn`], [`notices`], [`tree_view`] and [`watched`].
//!   [`connection`] is a client with its output, [`client`] is its transport and its introduction, and [`pending`] is
//!   one of its unanswered requests. [`call`] is a request until its response. [`queue`] orders requests, one queue per
//!   session, and [`guard`] is the right to work on a session.
//! - Sessions. [`creating`] and [`opening`] open them, [`opened`] has the steps that both share, and [`closing`] closes
//!   them for one connection or for all. [`deleting`] moves their files. [`connecting`] begins and ends connections.
//! - Changes. [`append`] writes adjacent appends of a queue, [`commit`] makes any other change, and [`commit_tail`]
//!   ends both. [`agent_turn`] has the turns of a session's clients. [`other_session`] is a session from which entries
//!   come. [`follow`] detects the entries of other writers. [`release`] is for operations that ask before they commit:
//!   [`navigation`] and [`compaction`] use it. [`preparation`] reads the entries of a navigation, and [`staying`] is a
//!   navigation that leaves the leaf where it is. [`fork`] and [`continuation`] have their own steps.
//! - Questions. [`event_question`] asks clients, hooks and extensions. [`extension`] and [`hook_answer`] have the rules
//!   for extensions and hooks alone, and [`received_answer`] is the answer of any of them. [`summaries`] runs the
//!   summarizer.
//! - Reads. [`find`] and [`rows`] read what the tree shows, and [`first_message`] finds the first message of a session.
//!   [`session_row`] makes a row of the list, and [`list_watch`] announces the row. [`reading`] and [`at_once`] decide
//!   on which thread work runs, and [`convert`] converts to the types of `wire`.
//!
//! Imports between files have no circles, and at most twelve files of this crate import the same file.

pub(crate) mod agent_turn;
pub(crate) mod append;
pub(crate) mod at_once;
pub(crate) mod call;
pub(crate) mod client;
pub(crate) mod client_turn;
pub(crate) mod closing;
pub(crate) mod commit;
mod commit_tail;
pub(crate) mod compaction;
mod connecting;
pub mod connection;
pub(crate) mod connections;
pub(crate) mod continuation;
pub(crate) mod convert;
pub(crate) mod creating;
mod deleting;
pub(crate) mod event_question;
mod extension;
pub(crate) mod find;
mod first_message;
pub(crate) mod follow;
pub(crate) mod fork;
pub(crate) mod guard;
mod hook_answer;
mod list_watch;
pub(crate) mod list_watchers;
pub(crate) mod navigation;
mod notices;
pub(crate) mod notify;
mod offers;
pub(crate) mod open_session;
pub(crate) mod opened;
pub(crate) mod opening;
pub(crate) mod other_session;
pub(crate) mod pending;
mod preparation;
pub(crate) mod questions;
pub(crate) mod queue;
pub(crate) mod reading;
pub(crate) mod received_answer;
pub(crate) mod registry;
pub(crate) mod release;
pub(crate) mod rows;
mod session_files;
pub(crate) mod session_row;
pub(crate) mod shown_rows;
mod staying;
pub(crate) mod summaries;
mod summary_entries;
pub(crate) mod tree_view;
mod watched;

use self::connections::Connections;
use self::list_watchers::ListWatch;
use self::notify::Notifier;
use self::offers::Offers;
use self::questions::Questions;
use self::registry::Registry;
use self::session_files::SessionFiles;
use crate::access::Redaction;
use crate::hooks::Hooks;
use crate::memory::WorkingMemory;
use crate::parts::Parts;
use crate::settings::DaemonSettings;
use crate::summarizer::Summarizer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::{self, Source};
use treelined_files::kept::Kept;
use treelined_files::store::Store;
use treelined_find::AskState;
use treelined_pages::renderers::Renderers;
use treelined_wire::OpenWebResult;

/// The state that all connections share.
pub struct Daemon {
    pub settings: DaemonSettings,
    pub source: Arc<dyn Source>,
    pub instance_id: String,
    /// The memory of frames and summaries.
    pub(crate) memory: Arc<WorkingMemory>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) files: Arc<SessionFiles>,
    /// The memory of the mode `ask` of `search`.
    pub(crate) ask: AskState,
    pub(crate) list_watch: Arc<ListWatch>,
    pub(crate) notifier: Notifier,
    pub(crate) questions: Arc<Questions>,
    pub(crate) offers: Offers,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) parts: Parts,
    /// Serves the page and returns its address.
    web: OnceLock<Box<OpenWeb>>,
    pub(crate) redaction: Redaction,
    ending: Arc<AtomicBool>,
}

/// Serves the page if it is not served, and returns its address.
pub(crate) type OpenWeb = dyn Fn() -> Result<OpenWebResult> + Send + Sync;

impl Daemon {
    /// A daemon without connections. A job that cannot run on the thread that submits it runs on `runtime`.
    pub fn new(
        settings: DaemonSettings,
        mut parts: Parts,
        source: Arc<dyn Source>,
        runtime: &Handle,
    ) -> Arc<Self> {
        let runtime = runtime.clone();
        let spawn = Box::new(move |job: Box<dyn FnOnce() + Send>| {
            runtime.spawn(async { job() });
        });
        let (connections, registry) = (Arc::default(), Arc::new(Registry::new(spawn)));
        let hooks = Arc::new(Hooks::new(settings.hooks.clone()));
        let extensions = settings.extensions.clone();
        let questions = Questions::new(&hooks, extensions, &connections, &registry, &source);
        let store = Store::within(
            settings.session_dir.clone(),
            Kept::new(settings.max_kept_bytes),
        );
        let memory = WorkingMemory::new(settings.max_working_bytes);
        let working = Arc::clone(&memory);
        store.borrow_from(Box::new(move |bytes| {
            let lent = working.reserve(bytes).ok()?;
            Some(Box::new(lent))
        }));
        let files = Arc::new(SessionFiles::new(store, &mut parts, &source));
        let author = parts.author.take().map(|author| author.daemon);
        let instance_id = author.unwrap_or_else(|| id::random_token(&*source));
        Arc::new(Self {
            ask: AskState::new(&instance_id),
            memory,
            instance_id,
            list_watch: ListWatch::new(&files),
            notifier: Notifier::new(&hooks),
            questions: Arc::new(questions),
            offers: Offers::new(Renderers::configured(&settings.renderers)),
            parts,
            web: OnceLock::new(),
            redaction: Redaction::new(settings.redact.clone()),
            ending: Arc::default(),
            settings,
            source,
            connections,
            registry,
            files,
            hooks,
        })
    }

    /// Sets the function that serves the page.
    pub(crate) fn set_web(&self, open: Box<OpenWeb>) {
        let _set_before = self.web.set(open);
    }

    /// Serves the page and returns its address. Fails if no function to serve it is set.
    pub(crate) fn open_web(&self) -> Result<OpenWebResult> {
        let open = self.web.get();
        let open =
            open.ok_or_else(|| Error::new(Kind::StorageIo, "this program serves no page"))?;
        open()
    }

    /// Stops the daemon: later requests are refused, and all questions end.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Release);
        self.questions.end();
    }

    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// The configured summarizer. Fails without one.
    pub(super) fn summarizer(&self) -> Result<&Summarizer> {
        self.settings.summarizer.as_ref().ok_or_else(|| {
            Error::new(
                Kind::SummarizerUnavailable,
                "no summarizer is configured and nobody answers the event with a summary",
            )
        })
    }
}
