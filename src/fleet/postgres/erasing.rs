//! Erases a session: deletes its rows, and adds a tombstone (schema/fleet.md "Erasure").

use super::log::PgLog;
use super::refusal::unreadable;
use tokio_postgres::types::Type;
use treelined_core::error::{Error, Kind, Result};

const ERASE: &str = "SELECT treelined.erase($1)";
const IS_ERASED: &str = "SELECT 1 FROM treelined.erased WHERE session = $1";

impl PgLog {
    /// Removes all lines of a session permanently. A repeated call does nothing.
    pub(super) async fn erase_session(&self, session: &str) -> Result<()> {
        let answer = self.ask(ERASE, &[(&session, Type::TEXT)]).await?;
        let erased = answer.rows.first().map(|row| row.try_get(0));
        if !erased.transpose().map_err(unreadable)?.unwrap_or(false) {
            return Err(Error::session_not_found(session));
        }
        // No follower has lines up to this end, so each follower reads the session at once.
        let end = u64::try_from(i64::MAX).unwrap_or(u64::MAX);
        self.notices.say(session, end);
        Ok(())
    }

    /// Fails with `sessionErased` if a session that has no lines was erased.
    pub(super) async fn check_not_erased(&self, session: &str) -> Result<()> {
        let answer = self.ask(IS_ERASED, &[(&session, Type::TEXT)]).await?;
        match answer.rows.is_empty() {
            true => Ok(()),
            false => Err(Error::new(
                Kind::SessionErased,
                format!("session {session:?} was erased for the team"),
            )),
        }
    }
}
