//! The connection itself: `initialize`, `shutdown`, `rpc.discover`, and cancelling (protocol.md §1, §2, §5).

use crate::access::{Access, Rights};
use crate::ask::MAX_ANSWER;
use crate::daemon::client::Client;
use crate::daemon::convert::line::on_one_line;
use crate::people;
use crate::rpc::caller::Caller;
use crate::rpc::reply::Prepared;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::os::watch;
use treelined_wire as wire;
use treelined_wire::{methods, schema};

pub(in crate::rpc) fn initialize(
    caller: &Caller<'_>,
    params: wire::InitializeParams,
) -> Result<wire::InitializeResult> {
    let (daemon, connection) = (caller.daemon(), caller.connection());
    let capabilities = params.capabilities;
    let own_limit = daemon.settings.max_frame_bytes as u64;
    let lowered = lowered(caller, params.access.as_ref())?;
    let rights = lowered.as_ref().unwrap_or(connection.rights());
    // A limited client answers no questions. It gets no pieces of summaries, since a piece could have half of a secret.
    let client = Client {
        name: params.client_info.map(|info| info.name),
        cwd: params.cwd,
        answers: match rights.is_limited() {
            true => wire::Answers::default(),
            false => capabilities.answers,
        },
        opt_out: capabilities.opt_out.unwrap_or_default(),
        summary_deltas: capabilities.summary_deltas && !rights.redacts(),
        progress: capabilities.progress,
        search_hits: capabilities.search_hits,
        ui: capabilities
            .ui
            .filter(|_| !rights.is_limited())
            .map(|names| people::kinds(&names)),
        max_frame_bytes: capabilities.max_frame_bytes.unwrap_or(own_limit) as usize,
    };
    if !connection.introduce(client) {
        return Err(Error::new(
            Kind::InvalidRequest,
            "the connection is initialized already",
        ));
    }
    if let Some(rights) = lowered {
        connection.lower(rights);
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
        access: connection.rights().access().map(granted),
    })
}

/// The rights that are left if the client asks for fewer.
fn lowered(
    caller: &Caller<'_>,
    wanted: Option<&wire::AccessParams>,
) -> Result<Option<Arc<Rights>>> {
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    if caller.connection().has_called() {
        let why = "`access` comes before all other requests of the connection";
        return Err(Error::new(Kind::InvalidRequest, why));
    }
    let resolve = |given: &Vec<String>| Access::resolve(given.iter().map(Path::new));
    let directories = wanted.directories.as_ref().map(resolve).transpose();
    let access = Access {
        appends: wanted.may == Some(wire::AccessRight::Append),
        directories: directories.map_err(|why| Error::invalid_params("access.directories", why))?,
        redacts: wanted.redact.unwrap_or(true),
    };
    let rights = caller.connection().rights();
    let lowered = rights.lowered(&access, || caller.daemon().redaction.redactor())?;
    Ok(Some(Arc::new(lowered)))
}

fn granted(access: &Access) -> wire::GrantedAccess {
    let shown = |all: &Vec<PathBuf>| all.iter().map(|path| path.display().to_string()).collect();
    wire::GrantedAccess {
        may: match access.appends {
            true => wire::AccessRight::Append,
            false => wire::AccessRight::Read,
        },
        directories: access.directories.as_ref().map(shown),
        redact: access.redacts,
    }
}

pub(in crate::rpc) fn shutdown(
    caller: &Caller<'_>,
    _: wire::ShutdownParams,
) -> Result<wire::ShutdownResult> {
    // The reader still handles the frames that it has already read.
    caller.connection().end();
    Ok(wire::ShutdownResult {})
}

pub(in crate::rpc) fn discover(
    caller: &Caller<'_>,
    _: wire::DiscoverParams,
) -> Result<Prepared<wire::DiscoverResult>> {
    let document = match caller.connection().rights() {
        rights if !rights.are_all() => allowed_methods(rights),
        _ => schema::openrpc().into_bytes(),
    };
    Ok(Prepared::bytes(on_one_line(document)))
}

/// The document with only the methods that these rights allow.
fn allowed_methods(rights: &Rights) -> Vec<u8> {
    let mut document: serde_json::Value =
        serde_json::from_str(&schema::openrpc()).unwrap_or_default();
    if let Some(methods) = document
        .get_mut("methods")
        .and_then(|all| all.as_array_mut())
    {
        methods.retain(|method| {
            let name = method.get("name").and_then(|name| name.as_str());
            name.is_some_and(|name| rights.allows(methods::right_of(name)))
        });
    }
    document.to_string().into_bytes()
}

pub(in crate::rpc) fn cancel_request(
    caller: &Caller<'_>,
    params: wire::CancelRequestParams,
) -> Result<wire::CancelRequestResult> {
    // An unknown id is ignored, since the request may be answered already.
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
