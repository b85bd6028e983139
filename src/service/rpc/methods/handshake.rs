//! The connection itself: `initialize`, `shutdown`, `rpc.discover`, cancelling (protocol.md §1, §2, §5).

use crate::daemon::MAX_ANSWER;
use crate::daemon::call::Call;
use crate::daemon::connection::Client;
use crate::daemon::convert;
use crate::people;
use crate::rpc::reply::Prepared;
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::os::watch;
use treelined_wire as wire;
use treelined_wire::schema;

pub(in crate::rpc) fn initialize(
    call: &Arc<Call>,
    params: wire::InitializeParams,
) -> Result<wire::InitializeResult> {
    let daemon = &call.daemon;
    let capabilities = params.capabilities;
    let own_limit = daemon.settings.max_frame_bytes as u64;
    let client = Client {
        name: params.client_info.map(|info| info.name),
        cwd: params.cwd,
        answers: capabilities.answers,
        opt_out: capabilities.opt_out.unwrap_or_default(),
        summary_deltas: capabilities.summary_deltas,
        progress: capabilities.progress,
        search_hits: capabilities.search_hits,
        ui: capabilities.ui.map(|names| people::kinds(&names)),
        max_frame_bytes: capabilities.max_frame_bytes.unwrap_or(own_limit) as usize,
    };
    if !call.connection.introduce(client) {
        return Err(Error::new(
            Kind::InvalidRequest,
            "the connection is initialized already",
        ));
    }
    if let Some(id) = params.process_id {
        let connection = Arc::downgrade(&call.connection);
        let watch = watch::on_death(id, move || {
            if let Some(connection) = connection.upgrade() {
                connection.ask_to_end();
            }
        });
        call.connection.keep_watch(watch);
    }
    if call.connection.extension().is_some() {
        let (daemon, connection) = (Arc::clone(daemon), Arc::clone(&call.connection));
        call.after(move || daemon.extension_ready(&connection));
    }
    let settings = &daemon.settings;
    Ok(wire::InitializeResult {
        protocol_version: schema::PROTOCOL_VERSION,
        server_info: wire::ServerInfo {
            name: "treelined".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        instance_id: daemon.instance_id.clone(),
        schema_hash: schema::schema_hash(),
        capabilities: wire::ServerCapabilities {
            summarizer: settings.summarizer.as_ref().map(|s| s.name().to_owned()),
        },
        limits: wire::Limits {
            max_frame_bytes: settings.max_frame_bytes as u64,
            max_answer_ms: MAX_ANSWER.as_millis() as u64,
            max_queued_bytes: settings.max_queued_bytes as u64,
        },
    })
}

pub(in crate::rpc) fn shutdown(
    call: &Arc<Call>,
    _: wire::ShutdownParams,
) -> Result<wire::ShutdownResult> {
    // The reader still handles the frames it has already read.
    call.connection.end();
    Ok(wire::ShutdownResult {})
}

pub(in crate::rpc) fn discover(
    _: &Arc<Call>,
    _: wire::DiscoverParams,
) -> Result<Prepared<wire::DiscoverResult>> {
    let document = schema::openrpc().as_bytes().to_vec();
    Ok(Prepared::bytes(convert::on_one_line(document)))
}

pub(in crate::rpc) fn cancel_request(
    call: &Arc<Call>,
    params: wire::CancelRequestParams,
) -> Result<wire::CancelRequestResult> {
    // An unknown id is ignored: the response may be on its way.
    call.connection.cancel(&params.request_id);
    Ok(wire::CancelRequestResult {})
}

pub(in crate::rpc) fn lsp_cancel_request(
    call: &Arc<Call>,
    params: wire::LspCancelRequestParams,
) -> Result<wire::CancelRequestResult> {
    call.connection.cancel(&params.id);
    Ok(wire::CancelRequestResult {})
}
