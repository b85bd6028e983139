//! Whole sessions: create, open, close, delete (protocol.md §3).

use crate::daemon::closing;
use crate::daemon::creating::Creator;
use crate::daemon::opening::{self, OpenOptions};
use crate::daemon::queue::Access;
use crate::rpc::arrival::Arrival;
use crate::rpc::handler::Remainder;
use std::sync::Arc;
use treelined_core::entry::SpawnedBy;
use treelined_core::error::{Error, Result};
use treelined_core::name;
use treelined_core::tags::{GitPlace, MOST_GIT_BYTES};
use treelined_files::blocking::blocking;
use treelined_files::store::{choose_id, exists};
use treelined_wire as wire;

pub(in crate::rpc) fn create_session(
    arrival: &Arrival<'_>,
    params: wire::CreateSessionParams,
) -> Result<Remainder<wire::CreateSessionResult>> {
    let connection = &arrival.call().connection;
    let id = choose_id(params.session_id.as_deref())?;
    if params.ephemeral.unwrap_or_default() && params.write.is_some() {
        let why = "an ephemeral session is never written: leave it out";
        return Err(Error::invalid_params("write", why));
    }
    let cwd = params.cwd.as_deref().or(connection.default_cwd());
    let cwd = cwd.map(str::to_owned).ok_or_else(|| {
        let why = "is required: initialize gave no cwd for this connection";
        Error::invalid_params("cwd", why)
    })?;
    let is_id_chosen = params.session_id.is_some();
    connection
        .rights()
        .check_new(("sessionId", is_id_chosen), Some(&cwd))?;
    let creator = Creator {
        id,
        is_id_chosen,
        cwd,
        parent: params.parent_session,
        spawned_by: params.spawned_by.map(|spawner| SpawnedBy {
            session_id: spawner.session_id,
            entry_id: spawner.entry_id,
            tool_call_id: spawner.tool_call_id,
        }),
        name: params.name.as_deref().and_then(name::given),
        git: params.git.map(git_place).transpose()?.unwrap_or_default(),
        is_ephemeral: params.ephemeral.unwrap_or_default(),
        writes_now: match params.write {
            Some(when) => when == wire::FirstWrite::Now,
            None => connection.writes_files_at_once(),
        },
        durability: params.durability,
    };
    Ok(Remainder::of(creator.run(arrival.call())))
}

/// The place in git that a client gives.
fn git_place(git: wire::GitPlace) -> Result<GitPlace> {
    let text = |field: &'static str, text: Option<String>| match text {
        Some(text) if text.is_empty() || text.len() > MOST_GIT_BYTES => {
            let why =
                format!("must have 1 to {MOST_GIT_BYTES} bytes; leave it out if it is unknown");
            Err(Error::invalid_params(field, &why))
        }
        text => Ok(text),
    };
    Ok(GitPlace {
        branch: text("git.branch", git.branch)?,
        commit: text("git.commit", git.commit)?,
        worktree: text("git.worktree", git.worktree)?,
    })
}

pub(in crate::rpc) fn open_session(
    arrival: &Arrival<'_>,
    params: wire::OpenSessionParams,
) -> Result<Remainder<wire::OpenSessionResult>> {
    let call = arrival.call();
    let rights = call.connection.rights();
    let why = "is a policy for all clients of the session, which limited connections cannot choose";
    rights.check_param("durability", params.durability.is_some(), why)?;
    let why = "is not for limited connections, which open sessions by their ids";
    rights.check_param("path", params.path.is_some(), why)?;
    let options = OpenOptions {
        access: match params.mode {
            Some(wire::OpenMode::Read) => Access::Read,
            _ if rights.only_reads() => Access::Read,
            _ => Access::Write,
        },
        durability: params.durability,
    };
    Ok(match params.target()? {
        wire::OpenTarget::Id(id) => Remainder::of(opening::by_id(call, id, options)),
        wire::OpenTarget::Path(path) => Remainder::of(opening::by_path(call, path, options)),
    })
}

pub(in crate::rpc) fn close_session(
    arrival: &Arrival<'_>,
    params: wire::CloseSessionParams,
) -> Result<Remainder<wire::CloseSessionResult>> {
    let place = arrival.place_to_change(params.session_id.as_deref());
    let call = Arc::clone(arrival.call());
    Ok(Remainder::of(async move {
        closing::close(&call.daemon, &call.connection, place.await?).await?;
        Ok(wire::CloseSessionResult {})
    }))
}

pub(in crate::rpc) fn delete_session(
    arrival: &Arrival<'_>,
    params: wire::DeleteSessionParams,
) -> Result<Remainder<wire::DeleteSessionResult>> {
    let (id, daemon) = (params.session_id, Arc::clone(&arrival.call().daemon));
    if let Some(open) = daemon.registry.find(&id) {
        open.session.check_version()?;
    }
    let place = arrival.place_to_change(Some(&id));
    Ok(Remainder::of(async move {
        let lease = place.await?;
        let trashed = match lease.open() {
            Some(_) => {
                lease.check_writable()?;
                closing::delete(&daemon, lease).await?
            }
            None => {
                let (files, named) = (Arc::clone(&daemon.files), id.clone());
                let found = blocking(move || files.find_file(&named)).await?;
                let trashed = daemon.files.delete_file(&id, Some(found)).await?;
                // The lease is kept until here, so that no job opens the session before its file is removed.
                drop(lease);
                trashed
            }
        };
        Ok(wire::DeleteSessionResult {
            trashed_path: trashed.map(|path| path.display().to_string()),
        })
    }))
}

pub(in crate::rpc) fn erase_session(
    arrival: &Arrival<'_>,
    params: wire::EraseSessionParams,
) -> Result<Remainder<wire::EraseSessionResult>> {
    let (id, daemon) = (params.session_id, Arc::clone(&arrival.call().daemon));
    let place = arrival.place_to_change(Some(&id));
    Ok(Remainder::of(async move {
        closing::erase(&daemon, place.await?).await?;
        Ok(wire::EraseSessionResult {
            session_id: id,
            remains: daemon.files.remains(),
        })
    }))
}

pub(in crate::rpc) fn restore_session(
    arrival: &Arrival<'_>,
    params: wire::RestoreSessionParams,
) -> Result<Remainder<wire::RestoreSessionResult>> {
    let id = params.session_id;
    let place = arrival.place_to_change(Some(&id));
    let files = Arc::clone(&arrival.call().daemon.files);
    Ok(Remainder::of(async move {
        let lease = place.await?;
        if lease.open().is_some() {
            return Err(exists(&id));
        }
        let restored = blocking(move || {
            let path = files.restore(&id, params.trashed_path.as_deref())?;
            Ok(wire::RestoreSessionResult {
                session_id: id,
                path: path.display().to_string(),
            })
        });
        let restored = restored.await?;
        drop(lease);
        Ok(restored)
    }))
}
