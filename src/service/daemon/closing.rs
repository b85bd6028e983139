//! Closing sessions: for one connection, or for all (protocol.md §10).
//!
//! A connection must close a session as often as it has opened the session. The session closes when the last connection
//! has closed it for the last time.

use super::Daemon;
use super::agent_turn;
use super::connection::Connection;
use super::follow;
use super::guard::{Lease, SessionGuard, guard_for_all, guard_of};
use super::open_session::OpenSession;
use super::queue::{Departure, Openings};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::error::{Error, Result};
use treelined_files::os::heap;
pub(crate) use treelined_files::session::Activity;
use treelined_wire::notification;

/// The approximate bytes of an entry in the index of an open session.
const NODE_BYTES: usize = 64;

/// Ends one of the connection's openings of the leased session. When the last opening ends, the connection's navigation
/// is aborted. A turn of the connection's client makes the last close fail.
pub(crate) async fn close(
    daemon: &Arc<Daemon>,
    connection: &Arc<Connection>,
    lease: Lease,
) -> Result<()> {
    if !lease.is_open_for_asker() {
        return Err(Error::session_not_found(lease.id()));
    }
    let lease = end_turn_of_follower(daemon, connection, lease, Openings::One).await?;
    match lease.departure(connection.id, Openings::One) {
        Departure::StillOpen => lease.leave(connection.id, Openings::One),
        Departure::ForOthers => {
            let (open, mut guard) = guard_of(lease, Instant::now())?;
            if open.client_turn().is_sessions_of(connection.id) {
                open.session.check_not_in_turn()?;
            }
            open.client_turn().check_no_branch(Some(connection.id))?;
            end_operation(connection, &open).await;
            announce(daemon, &open, Some(connection));
            leave(daemon, connection, &open, &mut guard);
        }
        Departure::Last => {
            let (open, mut guard) = prepare(lease).await?;
            close_for_all(daemon, &open, &mut guard);
        }
    }
    Ok(())
}

/// If a close would be the last one, ends the turns of extensions that only follow the session, since these must not
/// keep the session open.
async fn end_turn_of_follower(
    daemon: &Arc<Daemon>,
    connection: &Connection,
    lease: Lease,
    openings: Openings,
) -> Result<Lease> {
    let is_last = lease.departure(connection.id, openings) == Departure::Last;
    let Some(open) = lease.open().filter(|_| is_last).map(Arc::clone) else {
        return Ok(lease);
    };
    if !open.client_turn().has_others(connection.id) {
        return Ok(lease);
    }
    drop(lease);
    agent_turn::end_of(daemon, &open.id, |by| by != connection.id).await;
    let by = Some(connection.id);
    daemon.registry.place_to_close(by, &open.id).await
}

/// Prepares the close of a session for all connections. A navigation is aborted. A turn of a client is not ended: the
/// close fails.
async fn prepare(lease: Lease) -> Result<(Arc<OpenSession>, SessionGuard)> {
    let (open, guard) = guard_for_all(lease, Instant::now())?;
    // The lease is held here: earlier requests have begun, and cannot commit at this point.
    if let Some(Activity::AgentTurn) = open.session.activity() {
        open.session.check_idle()?;
    }
    open.client_turn().check_no_branch(None)?;
    end_operations(&open).await;
    open.session.syncer.flush().await?;
    Ok((open, guard))
}

/// Aborts the navigation or compaction of any connection.
async fn end_operations(open: &OpenSession) {
    if let Some(Activity::Navigation { abort, .. } | Activity::Compaction { abort }) =
        open.session.activity()
    {
        abort.cancel();
        open.session.idle().await;
    }
}

/// Closes a session for all connections. Later requests find no open session.
fn close_for_all(daemon: &Daemon, open: &OpenSession, guard: &mut SessionGuard) {
    open.session.close();
    heap::freed(guard.tree.node_count() * NODE_BYTES);
    follow::unwatch(daemon, open);
    guard.with().lease.set_open(None);
    announce(daemon, open, None);
}

/// Closes a session for all connections, and moves its file to the trash. Returns the new path if the session had a
/// file. The lease is kept until the file is moved, so that no job writes to the file during the move, and the next
/// request may use the id. If the move fails, the session stays open.
pub(crate) async fn delete(daemon: &Arc<Daemon>, lease: Lease) -> Result<Option<PathBuf>> {
    let (open, mut guard) = prepare(lease).await?;
    open.session.check_version()?;
    let written = guard.log.location().filter(|_| guard.log.is_written());
    let at = written.cloned();
    let trashed = daemon.files.delete_file(&open.id, at).await?;
    close_for_all(daemon, &open, &mut guard);
    Ok(trashed)
}

/// Erases a session for the team. If it is open, closes it for all connections.
pub(crate) async fn erase(daemon: &Arc<Daemon>, lease: Lease) -> Result<()> {
    if lease.open().is_none() {
        let id = lease.id().to_owned();
        daemon.files.erase(&id).await?;
        drop(lease);
        return Ok(());
    }
    let (open, mut guard) = prepare(lease).await?;
    daemon.files.erase(&open.id).await?;
    close_for_all(daemon, &open, &mut guard);
    Ok(())
}

/// Announces the end to one connection, or to all.
fn announce(daemon: &Daemon, open: &OpenSession, to: Option<&Connection>) {
    let closed = |seq| notification::SessionClosed {
        session_id: open.id.to_string(),
        seq,
    };
    match to {
        Some(connection) => daemon.notifier.notify_one(open, connection, closed),
        None => daemon.notifier.notify(open, closed),
    }
}

/// Aborts the navigation or compaction of a connection.
async fn end_operation(connection: &Connection, open: &OpenSession) {
    if let Some(Activity::Navigation { abort, .. } | Activity::Compaction { abort }) =
        open.session.activity()
        && connection.asked_for(&abort)
    {
        abort.cancel();
        open.session.idle().await;
    }
}

/// Closes a session for one connection. It stays open for the other connections.
fn leave(daemon: &Daemon, connection: &Connection, open: &OpenSession, guard: &mut SessionGuard) {
    daemon.questions.leave(connection.id, Some(&open.id));
    open.remove_listener(connection);
    let lease = &guard.with().lease;
    lease.leave(connection.id, Openings::All);
    let has_writer = lease.has_writer();
    guard.set_read_only(open.session.is_newer || !has_writer);
}

/// Closes the sessions of a connection that has ended. The turns of the connection end, and the messages that wait for
/// their end are appended.
pub(crate) async fn close_sessions_of(daemon: &Arc<Daemon>, connection: &Arc<Connection>) {
    for open in daemon.registry.queues.all_open(Some(connection.id)) {
        if open.client_turn().is_of(connection.id) {
            agent_turn::end_of(daemon, &open.id, |by| by == connection.id).await;
        }
        let place = daemon.registry.place_to_close(None, &open.id);
        let Ok(lease) = place.await else {
            continue;
        };
        let Ok(lease) = end_turn_of_follower(daemon, connection, lease, Openings::All).await else {
            continue;
        };
        let departure = lease.departure(connection.id, Openings::All);
        let Ok((open, mut guard)) = guard_of(lease, Instant::now()) else {
            continue;
        };
        end_operation(connection, &open).await;
        leave(daemon, connection, &open, &mut guard);
        if departure == Departure::Last {
            end_operations(&open).await;
            if open.session.syncer.flush().await.is_err() {
                tracing::error!("the last entries may not be on disk");
            }
            // Only extensions that follow the session are notified.
            close_for_all(daemon, &open, &mut guard);
        }
    }
}
