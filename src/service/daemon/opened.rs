//! The effects of an opening: the session as its connection sees it, the notification after the response, and the
//! openings for extensions that follow all sessions (protocol.md §7, §11).

use super::call::Call;
use super::convert::stored::raw;
use super::first_message;
use super::follow;
use super::guard::{Lease, SessionGuard};
use super::notices::Notices;
use super::open_session::OpenSession;
use super::questions::Questions;
use super::queue::{Access, Openings};
use crate::extensions::ExtensionSessions;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::error::Result;
use treelined_core::id::ConnectionId;
use treelined_core::timestamp;
use treelined_files::log::OpenedLog;
use treelined_files::session::{self, SessionState};
use treelined_wire::{self as wire, notification};

/// Makes an open session, with its guard, for the connection of a call. [`open_after`] makes it visible.
pub(super) fn new(
    call: &Call,
    opened: OpenedLog,
    access: Access,
    durability: Durability,
    lease: Lease,
) -> Result<(Arc<OpenSession>, session::SessionGuard<Lease>)> {
    let session = call.daemon.files.new_session(opened, access, durability);
    let open = OpenSession::new(session, Notices::to(&call.connection));
    let guard = open.session.guard(Instant::now(), lease)?;
    Ok((open, guard))
}

/// The session as the connection of a call sees it.
pub(super) fn shown(
    open: &OpenSession,
    call: &Call,
    access: Access,
    state: &SessionState,
) -> wire::Session {
    let header = state.log.header();
    wire::Session {
        session_id: open.id.to_string(),
        path: state
            .log
            .location()
            .map(|at| at.path().display().to_string()),
        version: state.log.stated_version(),
        created: header
            .and_then(|header| timestamp::parse(header.timestamp.as_deref()?))
            .map(timestamp::format),
        header: raw(state.log.header_line().trim_ascii()),
        cwd: header.map(|header| header.cwd.clone()).unwrap_or_default(),
        name: state.tree.name().map(str::to_owned),
        first_message: first_message::of(state).to_owned(),
        leaf_id: state.leaf_id().map(str::to_owned),
        seq: open.seq(&call.connection),
        entry_count: state.tree.entry_count() as u64,
        read_only: access == Access::Read || open.session.is_newer,
        multi_writer: state.log.is_multi_writer(),
        parent_session: header.and_then(|header| header.parent_session.clone()),
        queued: open.known_queue(state).then_some(true),
    }
}

/// The durability of a new session: `none` if nothing of it is written.
pub(super) fn durability_of_new(
    open: &OpenSession,
    state: &SessionState,
    wrote: bool,
) -> Durability {
    match wrote {
        true if state.is_queued() => Durability::Queued,
        true => state.worth(open.session.syncer.durability()),
        false => Durability::None,
    }
}

/// Opens a session, and notifies its connection when the response is queued. Before that, no notification of the
/// session may be sent, and the lease keeps other requests from the session (protocol.md §7).
///
/// The session is open before the response is queued: a client may read the response at once, and then ask something
/// that takes no place in the queue of the session, such as `run_command`.
pub(super) fn open_after(call: &Call, open: &Arc<OpenSession>, access: Access, mut lease: Lease) {
    let daemon = Arc::clone(&call.daemon);
    let open = Arc::clone(open);
    lease.set_open(Some(Arc::clone(&open)));
    lease.admit(call.connection.id, access);
    call.after(move || {
        daemon.notifier.notify(&open, |seq| opened(&open, seq));
        follow::watch(&daemon, &open);
        follow::follow_log(&daemon, &open, access);
        open_for_extensions(&daemon.questions, &open, &lease);
        drop(lease);
    });
}

/// Opens an open session once more for the connection, and notifies the connection when the response is queued. As in
/// [`open_after`], the session is open for the connection before the response is queued.
pub(super) fn open_again_after(
    call: &Call,
    open: &Arc<OpenSession>,
    access: Access,
    mut guard: SessionGuard,
) {
    let (daemon, connection) = (Arc::clone(&call.daemon), Arc::clone(&call.connection));
    let open = Arc::clone(open);
    let is_first = !guard.with().lease.is_open_for_asker();
    guard.with().lease.admit(connection.id, access);
    call.after(move || {
        let lease = &guard.with().lease;
        let has_writer = lease.has_writer();
        guard.set_read_only(open.session.is_newer || !has_writer);
        follow::follow_log(&daemon, &open, access);
        if is_first {
            open.add_listener(&connection);
            let notifier = &daemon.notifier;
            notifier.notify_one(&open, &connection, |seq| opened(&open, seq));
        }
        drop(guard);
    });
}

/// Announces that a session is open.
fn opened(open: &OpenSession, seq: u64) -> notification::SessionOpened {
    notification::SessionOpened {
        session_id: open.id.to_string(),
        seq,
    }
}

/// Notes that the client of an extension has introduced itself. Opens all open sessions for the extension if it follows
/// all sessions.
pub(crate) fn extension_ready(call: &Call) {
    let (questions, connection) = (&call.daemon.questions, &call.connection);
    let Some(run) = connection.extension() else {
        return;
    };
    questions.extensions.set_ready(run.number, connection.id);
    run.ready();
    if !follows_all(questions, run.number) {
        return;
    }
    for open in questions.registry.all() {
        let (questions, id) = (Arc::clone(questions), connection.id);
        let place = questions.registry.own_place(&open.id);
        tokio::spawn(async move {
            // The place fails if the session has been closed.
            if let Ok(lease) = place.await
                && let Some(open) = lease.open()
            {
                open_for_extension(&questions, open, &lease, id);
            }
        });
    }
}

/// Opens a session for the extensions that follow all sessions.
fn open_for_extensions(questions: &Questions, open: &Arc<OpenSession>, lease: &Lease) {
    for (number, _) in questions.extensions.all() {
        if follows_all(questions, number)
            && let Some(id) = questions.extensions.connection(number)
        {
            open_for_extension(questions, open, lease, id);
        }
    }
}

fn follows_all(questions: &Questions, number: usize) -> bool {
    let extension = questions.extensions.get(number);
    extension.is_some_and(|extension| extension.sessions == ExtensionSessions::All)
}

fn open_for_extension(
    questions: &Questions,
    open: &Arc<OpenSession>,
    lease: &Lease,
    id: ConnectionId,
) {
    let Some(connection) = questions.connections.find(id) else {
        return;
    };
    if lease.follow(id) {
        open.add_listener(&connection);
        let notifier = &questions.notifier;
        notifier.notify_one(open, &connection, |seq| opened(open, seq));
    }
    // If the connection has ended, its sessions may be closed already, so this opening is reverted.
    let run = connection.extension();
    let current = run.and_then(|run| questions.extensions.connection(run.number));
    if current != Some(id) {
        lease.leave(id, Openings::All);
        open.remove_listener(&connection);
    }
}
