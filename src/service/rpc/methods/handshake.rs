//! The connection itself: `initialize`, `shutdown`, `rpc.discover`, cancelling (protocol.md §1, §2, §5).

use crate::ask::MAX_ANSWER;
use crate::daemon::client::Client;
use crate::daemon::convert::line::on_one_line;
use crate::people;
use crate::rpc::caller::Caller;
use crate::rpc::reply::Prepared;
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::os::watch;
use treelined_wire as wire;
use treelined_wire::schema;

pub(in crate::rpc) fn initialize(
    caller: &Caller<'_>,
    params: wire::InitializeParams,
) -> Result<wire::InitializeResult> {
    let (daemon, connection) = (caller.daemon(), caller.connection());
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
    if !connection.introduce(client) {
        return Err(Error::new(
            Kind::InvalidRequest,
            "the connection is initialized already",
        ));
    }
    if let Some(id) = params.process_id {
        let weak = Arc::downgrade(connection);
        let watch = watch::on_death(id, move || {
            if let Some(connection) = weak.upgrade() {
                connection.ask_to_end();
            }
        });
        connection.keep_watch(watch);
    }
    caller.introduced();
    let settings = &daemon.settings;
    Ok(wire::InitializeResult {
        protocol_version: schema::PROTOCOL_VERSION,
        server_info: wire::ServerInfo {
            name: "treelined".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        instance_id: daemon.instance_id.clone(),
        schema_hash: schema::SCHEMA_HASH.to_owned(),
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
    caller: &Caller<'_>,
    _: wire::ShutdownParams,
) -> Result<wire::ShutdownResult> {
    // The reader still handles the frames it has already read.
    caller.connection().end();
    Ok(wire::ShutdownResult {})
}

pub(in crate::rpc) fn discover(
    _: &Caller<'_>,
    _: wire::DiscoverParams,
) -> Result<Prepared<wire::DiscoverResult>> {
    let document = schema::openrpc().into_bytes();
    Ok(Prepared::bytes(on_one_line(document)))
}

pub(in crate::rpc) fn cancel_request(
    caller: &Caller<'_>,
    params: wire::CancelRequestParams,
) -> Result<wire::CancelRequestResult> {
    // An unknown id is ignored: the response may be on its way.
    caller.connection().cancel(&params.request_id);
    Ok(wire::CancelRequestResult {})
}

pub(in crate::rpc) fn lsp_cancel_request(
    caller: &Caller<'_>,
    params: wire::LspCancelRequestParams,
) -> Result<wire::CancelRequestResult> {
    caller.connection().cancel(&params.id);
    Ok(wire::CancelRequestResult {})
}
