//! The method table: name → handler, in the library's own table, with our decoding of params and our
//! errors around each handler.

use super::server::Call;
use super::{
    append, compact, convert, events, fork, handshake, list, moves, navigate, pick, read, sessions,
    tree, turns,
};
use crate::error::{Error, Kind, Result};
use crate::wire;
use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::sync::{Arc, PoisonError};

/// What a handler answers.
pub enum Reply {
    /// JSON on one line, ready to be put into the response.
    Bytes(Vec<u8>),
}

impl Reply {
    pub fn of(result: &impl Serialize) -> Result<Self> {
        let bytes = serde_json::to_vec(result);
        let bytes = bytes.map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
        Ok(Self::Bytes(convert::on_one_line(bytes)))
    }
}

/// Every method this daemon answers.
pub fn table() -> Result<RpcModule<()>, RegisterMethodError> {
    let mut module = RpcModule::new(());
    let table = &mut module;
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
    Ok(module)
}

fn add<P, F, R>(
    table: &mut RpcModule<()>,
    name: &'static str,
    handler: fn(Arc<Call>, P) -> F,
) -> Result<(), RegisterMethodError>
where
    P: DeserializeOwned + Send + 'static,
    F: Future<Output = Result<R>> + Send + 'static,
    R: Into<Reply> + Send,
{
    table.register_async_method(name, move |params, _, extensions| {
        let call = extensions.get::<Arc<Call>>().cloned();
        async move {
            let answered = async {
                let call = call.ok_or_else(|| Error::new(Kind::InternalError, "no call"))?;
                let params: P = wire::decode(params.as_str())?;
                let Reply::Bytes(bytes) = handler(Arc::clone(&call), params).await?.into();
                *call.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
                Ok(())
            };
            answered
                .await
                .map_err(|error: Error| -> ErrorObjectOwned { convert::error(&error) })
        }
    })?;
    Ok(())
}
