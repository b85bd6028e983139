//! Finds the sessions of a database without activity (schema/fleet.md "Retention").

use super::log::PgLog;
use super::refusal::{unreadable, unsigned};
use crate::backend::Position;
use crate::closing;
use crate::quiet::{Due, QuietSession};
use crate::settings::Retention;
use crate::team::presence;
use std::collections::HashSet;
use std::time::Duration;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use treelined_core::error::Result;

/// The number of sessions that one statement looks at.
const PAGE: i64 = 5000;
/// The last id of the next page of sessions, in the order of ids.
const LAST: &str = "\
SELECT max(id) FROM (SELECT id FROM treelined.sessions WHERE id > $1 ORDER BY id LIMIT $2) AS page";
/// The sessions without activity up to that id. The record of a deletion is short, so a long last line is not read.
const QUIET: &str = "\
SELECT session.id, session.last, extract(epoch FROM clock_timestamp() - entry.at)::float8,
    CASE WHEN octet_length(entry.line) < 65536 AND position('treelined.trashed'::bytea IN entry.line) > 0
        THEN entry.line END,
    (SELECT pg_has_role(session_user, nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = 'treelined')
        OR EXISTS (SELECT FROM treelined.entries AS first
            WHERE first.session = session.id AND first.seq = 1 AND first.author = session_user)
FROM treelined.sessions AS session
JOIN treelined.entries AS entry ON entry.session = session.id AND entry.seq = session.last
WHERE session.id > $1 AND session.id <= $2 AND entry.at < clock_timestamp() - make_interval(secs => $3)
ORDER BY session.id";
const OPEN: &str = "\
SELECT body FROM treelined.presence WHERE at > clock_timestamp() - interval '1 minute'";

impl PgLog {
    pub(super) async fn quiet_sessions(
        &self,
        retention: Retention,
        most: usize,
    ) -> Result<Vec<QuietSession>> {
        let least = retention
            .erase
            .unwrap_or(retention.keep)
            .min(retention.keep);
        let least = least.as_secs_f64();
        let mut found = Vec::new();
        let mut after = String::new();
        while found.len() < most {
            let last = self
                .ask(LAST, &[(&after, Type::TEXT), (&PAGE, Type::INT8)])
                .await?;
            let last: Option<String> = match last.rows.first() {
                Some(row) => row.try_get(0).map_err(unreadable)?,
                None => None,
            };
            let Some(last) = last else { break };
            let page = [
                (&after as _, Type::TEXT),
                (&last as _, Type::TEXT),
                (&least as _, Type::FLOAT8),
            ];
            for row in &self.ask(QUIET, &page).await?.rows {
                found.extend(quiet(row, retention).map_err(unreadable)?);
            }
            after = last;
        }
        found.truncate(most);
        Ok(found)
    }

    pub(super) async fn all_open_sessions(&self) -> Result<HashSet<String>> {
        let mut open = HashSet::new();
        for row in &self.ask(OPEN, &[]).await?.rows {
            let body: String = row.try_get(0).map_err(unreadable)?;
            let sessions = presence::decode(body.as_bytes()).ok_or_else(presence::damaged)?;
            open.extend(sessions.into_iter().map(|(session, _)| session));
        }
        Ok(open)
    }
}

/// The session of a row, if something is due for it.
fn quiet(
    row: &Row,
    retention: Retention,
) -> std::result::Result<Option<QuietSession>, tokio_postgres::Error> {
    let session: String = row.try_get(0)?;
    let seconds: f64 = row.try_get(2)?;
    let last: Option<Vec<u8>> = row.try_get(3)?;
    let may_erase: bool = row.try_get(4)?;
    let quiet = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let is_closed = last.is_some_and(|line| closing::is_closed(&session, &line));
    let due = match is_closed {
        true => may_erase && retention.erase.is_some_and(|erase| quiet >= erase),
        false => quiet >= retention.keep,
    };
    let end = Position(unsigned(row.try_get(1)?));
    let kind = if is_closed { Due::Erase } else { Due::Close };
    Ok(due.then_some(QuietSession {
        session,
        end,
        quiet,
        due: kind,
    }))
}
