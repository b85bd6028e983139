//! Closing sessions: for one connection, or for all (protocol.md §10).
//!
//! A session stays open until as many closes as openings of each connection. The last close closes it.

use super::Daemon;
use super::connection::Connection;
use super::open_session::{Lease, OpenSession, SessionGuard, guard, guard_for_all};
use super::queue::{Departure, Openings, Scope};
use std::sync::Arc;
use std::time::Instant;
use treelined_core::error::{Error, Result};
use treelined_files::cancel::Cancel;
pub(crate) use treelined_files::session::Activity;
use treelined_wire::notification;

/// Takes back one opening of the session of a lease. The connection's navigation is aborted with its last one; a turn
/// of its client makes that fail.
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
            let (open, mut turn) = guard(lease, Instant::now())?;
            if open.client_turn().is_of(connection.id) {
                open.session.check_not_in_turn()?;
            }
            end_operation(connection, &open).await;
            announce(daemon, &open, Some(connection));
            leave(daemon, connection, &open, &mut turn);
        }
        Departure::Last => {
            let (open, mut turn) = prepare(lease).await?;
            close_for_all(daemon, &open, &mut turn);
        }
    }
    Ok(())
}

/// Ends the turn of an extension that only follows the session, if a close would be the last one: the turn must not
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
    let is_in_turn = matches!(open.session.activity(), Some(Activity::AgentTurn));
    if !is_in_turn || open.client_turn().is_of(connection.id) {
        return Ok(lease);
    }
    drop(lease);
    daemon.end_turn(&open).await;
    let by = Some(connection.id);
    let place = daemon
        .queues
        .lease(by, Some(&open.id), Scope::Change, &Cancel::new());
    place.await
}

/// The session to close for all. Its navigation is aborted; a turn of a client is not.
pub(crate) async fn prepare(lease: Lease) -> Result<(Arc<OpenSession>, SessionGuard)> {
    let (open, turn) = guard_for_all(lease, Instant::now())?;
    // Checked with the lease: earlier requests have begun, and cannot commit at this point.
    if let Some(Activity::AgentTurn) = open.session.activity() {
        open.session.check_idle()?;
    }
    end_operations(&open).await;
    open.session.syncer.flush().await?;
    Ok((open, turn))
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

/// Closes a session for all connections.
pub(crate) fn close_for_all(daemon: &Daemon, open: &OpenSession, turn: &mut SessionGuard) {
    daemon.remove(open, turn);
    announce(daemon, open, None);
}

/// Announces the end to one connection, or to all.
fn announce(daemon: &Daemon, open: &OpenSession, to: Option<&Connection>) {
    let closed = |seq| notification::SessionClosed {
        session_id: open.id.to_string(),
        seq,
    };
    match to {
        Some(connection) => daemon.notify_one(open, connection, closed),
        None => daemon.notify(open, closed),
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

/// Closes a session for a connection. It stays open for others.
fn leave(daemon: &Daemon, connection: &Connection, open: &OpenSession, turn: &mut SessionGuard) {
    daemon.asks.leave(connection.id, Some(&open.id));
    daemon.peers.leave(connection.id, Some(&open.id));
    open.remove_listener(connection);
    let lease = &turn.with().lease;
    lease.leave(connection.id, Openings::All);
    let has_writer = lease.has_writer();
    turn.set_read_only(open.session.is_newer || !has_writer);
}

impl Daemon {
    /// Closes the sessions of a connection that has ended. Its turns end, and the messages that waited for that are
    /// appended.
    pub(crate) async fn close_sessions_of(self: &Arc<Self>, connection: &Arc<Connection>) {
        for open in self.queues.all_open(Some(connection.id)) {
            if open.client_turn().is_of(connection.id) {
                self.end_turn(&open).await;
            }
            let place = self
                .queues
                .lease(None, Some(&open.id), Scope::Change, &Cancel::new());
            let Ok(lease) = place.await else {
                continue;
            };
            let Ok(lease) = end_turn_of_follower(self, connection, lease, Openings::All).await
            else {
                continue;
            };
            let departure = lease.departure(connection.id, Openings::All);
            let Ok((open, mut turn)) = guard(lease, Instant::now()) else {
                continue;
            };
            end_operation(connection, &open).await;
            leave(self, connection, &open, &mut turn);
            if departure == Departure::Last {
                end_operations(&open).await;
                if open.session.syncer.flush().await.is_err() {
                    tracing::error!("the last entries may not be on disk");
                }
                // Only extensions that follow it hear of that.
                close_for_all(self, &open, &mut turn);
            }
        }
    }
}
