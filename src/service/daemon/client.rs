//! The transport of a connection, and the client as `initialize` introduces it.

use crate::access::Rights;
use crate::extensions::ExtensionRun;
use std::sync::Arc;
use treelined_wire::{self as wire, BeforeEvent};

/// The properties of a connection that its kind of transport decides.
pub(crate) struct Transport {
    /// The working directory of a new session whose request names none; `None` if the request must name one.
    pub(crate) cwd: Option<String>,
    /// Ends the input, so that the reader ends the connection.
    pub(crate) end_input: Box<dyn Fn() + Send + Sync>,
    /// The extension that the connection belongs to.
    pub(crate) extension: Option<ExtensionRun>,
    /// Whether the connection is a WebSocket of the page.
    pub(crate) is_page: bool,
    /// The rights of connections over this transport.
    pub(crate) rights: Arc<Rights>,
}

/// A client after `initialize`.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) name: Option<String>,
    /// The working directory of a new session whose request names none.
    pub(crate) cwd: Option<String>,
    pub(crate) answers: wire::Answers,
    pub(crate) opt_out: Vec<String>,
    pub(crate) summary_deltas: bool,
    pub(crate) progress: bool,
    pub(crate) search_hits: bool,
    /// The kinds of questions that the client can ask a person; `None` if the client has no person.
    pub(crate) ui: Option<Vec<wire::AskKind>>,
    /// The largest message that the client reads, in bytes.
    pub(crate) max_frame_bytes: usize,
}

impl Client {
    /// The answer to the event that this client has declared, if it has declared one.
    pub(super) fn declared_answer(&self, event: BeforeEvent) -> Option<wire::DeclaredAnswer> {
        match event {
            BeforeEvent::SessionBeforeTree => self.answers.session_before_tree,
            BeforeEvent::SessionBeforeFork => self.answers.session_before_fork,
            BeforeEvent::SessionBeforeCompact => self.answers.session_before_compact,
        }
    }
}
