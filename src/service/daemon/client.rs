//! The other end of a connection: its transport, and the client as it introduced itself.

use crate::access::Rights;
use crate::extensions::ExtensionRun;
use std::sync::Arc;
use treelined_wire::{self as wire, BeforeEvent};

/// The properties of a connection that its kind of transport decides.
pub(crate) struct Transport {
    /// The working directory of new sessions that name none; `None` if a client must name it.
    pub(crate) cwd: Option<String>,
    /// Ends the input, so that the reader ends the connection.
    pub(crate) end_input: Box<dyn Fn() + Send + Sync>,
    /// The extension that the connection belongs to.
    pub(crate) extension: Option<ExtensionRun>,
    /// Whether it is a WebSocket of the page.
    pub(crate) is_page: bool,
    /// The rights of connections over it.
    pub(crate) rights: Arc<Rights>,
}

/// A client that has introduced itself.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) name: Option<String>,
    /// The working directory of new sessions that name none.
    pub(crate) cwd: Option<String>,
    pub(crate) answers: wire::Answers,
    pub(crate) opt_out: Vec<String>,
    pub(crate) summary_deltas: bool,
    pub(crate) progress: bool,
    pub(crate) search_hits: bool,
    /// The kinds of questions that it can ask a person; `None` without a person.
    pub(crate) ui: Option<Vec<wire::AskKind>>,
    /// Bytes.
    pub(crate) max_frame_bytes: usize,
}

impl Client {
    /// How this client answers the event, if it does.
    pub(super) fn declared_answer(&self, event: BeforeEvent) -> Option<wire::DeclaredAnswer> {
        match event {
            BeforeEvent::SessionBeforeTree => self.answers.session_before_tree,
            BeforeEvent::SessionBeforeFork => self.answers.session_before_fork,
            BeforeEvent::SessionBeforeCompact => self.answers.session_before_compact,
        }
    }
}
