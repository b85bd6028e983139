//! The right to work on an open session: the lease of its queue together with the guard of its state.

use super::append::OpenSessions;
use super::open_session::OpenSession;
use super::queue;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::error::{Error, Result};
use treelined_files::session::{self, Busy};

pub(crate) type Lease = queue::Lease<OpenSessions>;
pub(crate) type Place = queue::Place<OpenSessions>;

/// The right to read or change an open session. While it exists, the next job in the session's queue waits.
pub(crate) type SessionGuard = session::SessionGuard<Tenure>;

/// Fails if the session is read-only for the connection of the job that has this guard.
pub(crate) fn check_writable(open: &OpenSession, guard: &mut SessionGuard) -> Result<()> {
    open.session.check_version()?;
    guard.with().lease.check_writable()
}

/// The parts of a lease that end with a [`SessionGuard`]. The activity ends first, so that the next job does not find
/// the session busy.
pub(crate) struct Tenure {
    pub(crate) busy: Option<Busy>,
    pub(crate) lease: Lease,
}

/// The session of a lease. Fails with `sessionNotFound` if the session is not open for the connection of the job.
pub(crate) fn guard_of(lease: Lease, asked: Instant) -> Result<(Arc<OpenSession>, SessionGuard)> {
    match lease.is_open_for_asker() {
        true => guard_for_all(lease, asked),
        false => Err(Error::session_not_found(lease.id())),
    }
}

/// Like [`guard_of`], but it is enough that the session is open for any connection.
pub(crate) fn guard_for_all(
    lease: Lease,
    asked: Instant,
) -> Result<(Arc<OpenSession>, SessionGuard)> {
    let Some(open) = lease.open().map(Arc::clone) else {
        return Err(Error::session_not_found(lease.id()));
    };
    let tenure = Tenure { busy: None, lease };
    let guard = open.session.guard(asked, tenure)?;
    Ok((open, guard))
}
