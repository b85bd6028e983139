//! The method table: name → handler, in the library's own table, with our decoding of params and our
//! errors around each handler.

use super::server::Call;
use super::{
    append, compact, convert, events, fork, handshake, list, moves, navigate, pick, read, sessions,
    tree, turns,
};
use crate::error::Result;
use crate::lock::lock;
use crate::wire;
use jsonrpsee::Extensions;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::core::server::{MethodCallback, MethodResponse, Methods, SyncMethod};
use jsonrpsee::types::{Id, Params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

/// What a handler answers.
pub enum Reply {
    /// JSON on one line, ready to be put into the response.
    Bytes(Vec<u8>),
    /// The same in pieces.
    Pieces(Vec<Vec<u8>>),
}

impl Reply {
    /// Bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Pieces(pieces) => pieces.iter().map(Vec::len).sum(),
        }
    }

    pub fn of(result: &impl Serialize) -> Result<Self> {
        convert::line(result).map(Self::Bytes)
    }
}

/// The methods of this daemon.
///
/// The library's way to register a handler has its answer serialized, copied and checked anew, and gives it
/// what it needs through a map that is made for each request. Here each only begins, and leaves its future,
/// whose answer is ready bytes, where it has found the call.
pub struct Table {
    methods: Methods,
    /// Locked while a handler is begun: there is one place to hand over.
    handover: Mutex<Arc<Handover>>,
}

/// A handler on its way to the result.
pub type Handling = Pin<Box<dyn Future<Output = Result<Reply>> + Send>>;

#[derive(Default)]
struct Handover {
    call: Mutex<Option<Arc<Call>>>,
    begun: Mutex<Option<Handling>>,
}

impl Table {
    pub fn new() -> Result<Self, RegisterMethodError> {
        let handover = Arc::new(Handover::default());
        Ok(Self {
            methods: methods(&handover)?,
            handover: Mutex::new(handover),
        })
    }

    pub fn knows(&self, method: &str) -> bool {
        self.methods.method(method).is_some()
    }

    /// Decodes the params and begins the handler, which runs once it is polled. `None` if there is no
    /// such method, or if it panicked.
    pub fn begin(&self, method: &str, params: Option<&str>, call: Arc<Call>) -> Option<Handling> {
        let Some(MethodCallback::Sync(callback)) = self.methods.method(method) else {
            return None;
        };
        let handover = lock(&self.handover);
        *lock(&handover.call) = Some(call);
        let (params, extensions) = (Params::new(params), Extensions::new());
        let begin = || callback(Id::Null, params, usize::MAX, extensions);
        let begun = catch_unwind(AssertUnwindSafe(begin));
        let handling = take(&handover.begun);
        begun.ok().and(handling)
    }
}

/// Every method this daemon answers.
fn methods(handover: &Arc<Handover>) -> Result<Methods, RegisterMethodError> {
    let table = &mut (Methods::new(), Arc::clone(handover));
    add(table, "initialize", handshake::initialize)?;
    add(table, "shutdown", handshake::shutdown)?;
    add(table, "rpc.discover", handshake::discover)?;
    add(table, "$/cancel_request", handshake::cancel_request)?;
    add(table, "$/cancelRequest", handshake::lsp_cancel_request)?;
    add(table, "create_session", sessions::create_session)?;
    add(table, "open_session", sessions::open_session)?;
    add(table, "close_session", sessions::close_session)?;
    add(table, "list_sessions", list::list_sessions)?;
    add(table, "delete_session", sessions::delete_session)?;
    add(table, "list_trash", sessions::list_trash)?;
    add(table, "restore_session", sessions::restore_session)?;
    add(table, "set_session_name", append::set_session_name)?;
    add(table, "append_message", append::append_message)?;
    add(table, "append_entries", append::append_entries)?;
    add(table, "append_label", append::append_label)?;
    add(table, "get_leaf", read::get_leaf)?;
    add(table, "get_entries", read::get_entries)?;
    add(table, "get_entry", read::get_entry)?;
    add(table, "get_children", read::get_children)?;
    add(table, "get_path", read::get_path)?;
    add(table, "get_label", read::get_label)?;
    add(table, "get_context", read::get_context)?;
    add(table, "get_stats", read::get_stats)?;
    add(table, "list_branches", read::list_branches)?;
    add(table, "get_tree", tree::get_tree)?;
    add(table, "set_leaf", moves::set_leaf)?;
    add(table, "branch", moves::branch)?;
    add(table, "undo_navigation", moves::undo_navigation)?;
    add(table, "redo_navigation", moves::redo_navigation)?;
    add(table, "get_navigation_log", moves::get_navigation_log)?;
    add(table, "navigate_tree", navigate::navigate_tree)?;
    add(table, "abort_navigation", navigate::abort_navigation)?;
    add(table, "answer_event", events::answer_event)?;
    add(table, "fork_session", fork::fork_session)?;
    add(table, "get_fork_messages", fork::get_fork_messages)?;
    add(table, "pop", navigate::pop)?;
    add(table, "merge_branch", navigate::merge_branch)?;
    add(table, "cherry_pick", pick::cherry_pick)?;
    add(table, "prepare_compaction", compact::prepare_compaction)?;
    add(table, "compact", compact::compact)?;
    add(table, "begin_turn", turns::begin_turn)?;
    add(table, "end_turn", turns::end_turn)?;
    add(table, "send_message", turns::send_message)?;
    Ok(std::mem::take(&mut table.0))
}

fn add<P, F, R>(
    (methods, handover): &mut (Methods, Arc<Handover>),
    name: &'static str,
    handler: fn(Arc<Call>, P) -> F,
) -> Result<(), RegisterMethodError>
where
    P: DeserializeOwned + Send + 'static,
    F: Future<Output = Result<R>> + Send + 'static,
    R: Into<Reply> + Send,
{
    let handover = Arc::clone(handover);
    let begin: SyncMethod = Arc::new(move |_, params, _, _| {
        // What the library makes of an answer: not looked at.
        let none = MethodResponse::notification();
        let Some(call) = take(&handover.call) else {
            return none;
        };
        let handling: Handling = match wire::decode::<P>(params.as_str()) {
            Ok(params) => {
                let result = handler(call, params);
                Box::pin(async move { result.await.map(Into::into) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        };
        *lock(&handover.begun) = Some(handling);
        none
    });
    methods.verify_and_insert(name, MethodCallback::Sync(begin))?;
    Ok(())
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    lock(slot).take()
}
