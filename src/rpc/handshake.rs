//! The connection itself: `initialize`, `shutdown`, `rpc.discover`, cancelling (protocol.md §1, §2, §5).

use super::reply::Reply;
use crate::daemon::MAX_ANSWER;
use crate::daemon::call::Call;
use crate::daemon::connection::Client;
use crate::daemon::convert;
use crate::error::{Error, Kind, Result};
use crate::os::process;
use crate::schema;
use crate::wire;
use std::sync::Arc;

pub(super) async fn initialize(call: Arc<Call>, params: wire::InitializeParams) -> Result<Reply> {
    let daemon = &call.daemon;
    let capabilities = params.capabilities;
    let own_limit = daemon.config.max_frame_bytes as u64;
    let client = Client {
        name: params.client_info.map(|info| info.name),
        answers: capabilities.answers,
        opt_out: capabilities.opt_out.unwrap_or_default(),
        summary_deltas: capabilities.summary_deltas,
        progress: capabilities.progress,
        max_frame_bytes: capabilities.max_frame_bytes.unwrap_or(own_limit) as usize,
    };
    if !call.connection.introduce(client) {
        return Err(Error::new(
            Kind::InvalidRequest,
            "the connection is initialized already",
        ));
    }
    if let Some(id) = params.process_id {
        let daemon = Arc::clone(daemon);
        process::on_death(id, move || (daemon.on_shutdown)());
    }
    let config = &daemon.config;
    Reply::of(&wire::InitializeResult {
        protocol_version: schema::PROTOCOL_VERSION,
        server_info: wire::ServerInfo {
            name: "treelined".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        instance_id: daemon.instance_id.clone(),
        schema_hash: schema::schema_hash(),
        capabilities: wire::ServerCapabilities {
            summarizer: config.summarizer.as_ref().map(|s| s.name().to_owned()),
        },
        limits: wire::Limits {
            max_frame_bytes: config.max_frame_bytes as u64,
            max_answer_ms: MAX_ANSWER.as_millis() as u64,
            max_queued_bytes: config.max_queued_bytes as u64,
        },
    })
}

pub(super) async fn shutdown(call: Arc<Call>, _: wire::ShutdownParams) -> Result<Reply> {
    // The reader ends with what is already in its hands.
    call.daemon.end();
    Reply::of(&wire::ShutdownResult {})
}

pub(super) async fn discover(_: Arc<Call>, _: wire::DiscoverParams) -> Result<Reply> {
    let document = schema::openrpc().as_bytes().to_vec();
    Ok(Reply::Bytes(convert::on_one_line(document)))
}

pub(super) async fn cancel_request(
    call: Arc<Call>,
    params: wire::CancelRequestParams,
) -> Result<Reply> {
    cancel(&call, &params.request_id)
}

pub(super) async fn lsp_cancel_request(
    call: Arc<Call>,
    params: wire::LspCancelRequestParams,
) -> Result<Reply> {
    cancel(&call, &params.id)
}

/// An unknown id is ignored: the answer may be on its way.
fn cancel(call: &Call, id: &wire::RequestId) -> Result<Reply> {
    call.connection.cancel(id);
    Reply::of(&wire::CancelRequestResult {})
}
