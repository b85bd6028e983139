//! The search of all sessions: terms of lines are added after the appends, and a question reads the lines that have its
//! terms (schema/fleet.md "Search").

use super::pool::{ANSWER, Params, Pool, ask};
use super::refusal::{Failure, unreadable, unsigned};
use crate::closing::is_closed;
use crate::subject;
use crate::team::row::StoredRow;
use std::collections::BTreeMap;
use std::time::Instant;
use tokio_postgres::types::Type;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::id::random_token;
use treelined_core::search::ask::terms_of_line;
use treelined_core::team::{FoundLine, FoundSession, TeamFound, TeamQuestion};
use treelined_files::clock::SystemSource;

/// The most lines whose terms are added at once, and the bytes after which no further line is added.
const PAGE_LINES: i64 = 500;
const PAGE_BYTES: i64 = 4 << 20;
/// The bytes of a line's texts whose terms are added, and the most terms of a line.
const MOST_TEXT: usize = 256 << 10;
const MOST_TERMS: usize = 65_536;
/// The most lines that are read for a question, and their bytes.
const MOST_FOUND: i64 = 2000;
const MOST_BYTES: i64 = 16 << 20;
/// The number up to which sessions without terms are counted.
const MOST_UNREAD: i64 = 10_000;

/// A session with lines that have no terms yet: the first session at or after the id $1, else the first session.
const DUE: &str = "\
(SELECT session FROM treelined.texts_due WHERE session >= $1 ORDER BY session LIMIT 1)
UNION ALL (SELECT session FROM treelined.texts_due ORDER BY session LIMIT 1) LIMIT 1";
/// For a session: the last line that has terms, whether the first line has terms, and the last line.
const STATE: &str = "\
SELECT coalesce((SELECT max(seq) FROM treelined.texts WHERE session = $1), 0),
    EXISTS (SELECT FROM treelined.texts WHERE session = $1 AND seq = 1),
    coalesce((SELECT last FROM treelined.sessions WHERE id = $1), 0)";
const LINES: &str = "\
SELECT seq, line FROM (
    SELECT seq, line, sum(length(line)) OVER (ORDER BY seq) - length(line) AS bytes
    FROM treelined.entries WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3
) AS page WHERE bytes < $4 ORDER BY seq";
const ADD: &str = "SELECT treelined.add_texts($1, $2, $3, $4, $5)";
/// The lines that have terms of a question, in the order in which they are found, up to $5 bytes. The lines are read in
/// the order of the index of `entries`, so fewer pages of the index are read.
const FIND: &str = "\
SELECT session, seq, author, line, body FROM (
    SELECT entry.session, entry.seq, entry.author, entry.line, described.body,
        sum(length(entry.line)) OVER (ORDER BY found.number ROWS UNBOUNDED PRECEDING) AS bytes
    FROM (
        SELECT session, seq, number FROM treelined.found($1, $2, $3, $4) WITH ORDINALITY AS one (session, seq, number)
        ORDER BY session, seq OFFSET 0
    ) AS found
    JOIN treelined.entries AS entry ON entry.session = found.session AND entry.seq = found.seq
    JOIN treelined.rows AS described ON described.session = found.session
) AS candidates WHERE bytes <= $5";
/// About how many lines and sessions there are, the number of sessions without terms, and the share of lines that have
/// each term ($1). The counts of lines and sessions and the shares are statistics of the database.
const SIZES: &str = "\
SELECT (SELECT reltuples::bigint FROM pg_class WHERE oid = 'treelined.texts'::regclass),
    (SELECT reltuples::bigint FROM pg_class WHERE oid = 'treelined.sessions'::regclass),
    (SELECT count(*) FROM (SELECT FROM treelined.texts_due LIMIT $2) AS due),
    ARRAY(
        SELECT coalesce(common.share, 0)::float8 FROM unnest($1::bigint[]) WITH ORDINALITY AS wanted (term, number)
        LEFT JOIN (
            SELECT term, share FROM pg_stats, unnest(most_common_elems::text::bigint[], most_common_elem_freqs) AS one (term, share)
            WHERE schemaname = 'treelined' AND tablename = 'texts' AND attname = 'terms'
        ) AS common ON common.term = wanted.term ORDER BY wanted.number
    )";

/// Adds the terms of a session's lines. Returns false if no session lacks terms, or if another daemon adds them.
pub(super) async fn add(pool: &Pool) -> Result<bool> {
    // Each daemon begins at a random id, so two daemons seldom take the same session.
    let from = random_token(&SystemSource);
    let due = ask(pool, DUE, &[(&from, Type::TEXT)]).await?.rows;
    let Some(row) = due.first() else {
        return Ok(false);
    };
    let session: String = row.try_get(0).map_err(unreadable)?;
    loop {
        match add_page(pool, &session).await? {
            Added::Whole => return Ok(true),
            Added::Elsewhere => return Ok(false),
            Added::Part => {}
        }
    }
}

enum Added {
    Whole,
    Part,
    Elsewhere,
}

async fn add_page(pool: &Pool, session: &str) -> Result<Added> {
    let state = ask(pool, STATE, &[(&session, Type::TEXT)]).await?.rows;
    let Some(state) = state.first() else {
        return Ok(Added::Elsewhere);
    };
    let mut after: i64 = state.try_get(0).map_err(unreadable)?;
    let has_first: bool = state.try_get(1).map_err(unreadable)?;
    let last: i64 = state.try_get(2).map_err(unreadable)?;
    // A deleted session has terms only for its last line. If the session was restored, all its lines are read again.
    let is_anew = after > 0 && !has_first && last > after;
    if is_anew {
        after = 0;
    }
    let params: Params<'_> = &[
        (&session, Type::TEXT),
        (&after, Type::INT8),
        (&PAGE_LINES, Type::INT8),
        (&PAGE_BYTES, Type::INT8),
    ];
    let rows = ask(pool, LINES, params).await?.rows;
    let (mut lists, mut end, mut ends_closed) = (Vec::with_capacity(rows.len()), after, false);
    for row in &rows {
        let number: i64 = row.try_get(0).map_err(unreadable)?;
        let line: &[u8] = row.try_get(1).map_err(unreadable)?;
        end += 1;
        if number != end {
            let why = format!("the database has not, of session {session:?}, line {end}");
            return Err(Error::new(Kind::LogRewound, why));
        }
        lists.push(list(line));
        ends_closed = end == last && is_closed(session, line);
    }
    let params: Params<'_> = &[
        (&session, Type::TEXT),
        (&after, Type::INT8),
        (&lists, Type::TEXT_ARRAY),
        (&is_anew, Type::BOOL),
        (&ends_closed, Type::BOOL),
    ];
    let added = pool.ask(ADD, params, Instant::now() + ANSWER).await;
    let added = added.map_err(Failure::error)?.rows;
    let is_added = added.first().map(|row| row.try_get(0)).transpose();
    Ok(match is_added.map_err(unreadable)?.unwrap_or(false) {
        false => Added::Elsewhere,
        true if end >= last => Added::Whole,
        true => Added::Part,
    })
}

/// The terms of a line, as the text of an array.
fn list(line: &[u8]) -> String {
    let mut terms = terms_of_line(line, MOST_TEXT);
    terms.truncate(MOST_TERMS);
    let terms: Vec<String> = terms
        .iter()
        .map(|term| term.0.cast_signed().to_string())
        .collect();
    format!("{{{}}}", terms.join(","))
}

/// The name of a session, else its first message, from the row of the session in the list.
fn title(session: &str, body: &str) -> Option<String> {
    let row = StoredRow::decode(&subject::key(session), body.as_bytes())?.row;
    row.name.or(Some(row.first_message))
}

/// The lines that have the most terms of a question.
pub(super) async fn find(pool: &Pool, question: &TeamQuestion) -> Result<TeamFound> {
    let terms: Vec<i64> = question
        .terms
        .iter()
        .map(|term| term.0.cast_signed())
        .collect();
    let found: Params<'_> = &[
        (&terms, Type::INT8_ARRAY),
        (&question.session, Type::TEXT),
        (&question.directories, Type::TEXT_ARRAY),
        (&MOST_FOUND, Type::INT8),
        (&MOST_BYTES, Type::INT8),
    ];
    let sizes: Params<'_> = &[(&terms, Type::INT8_ARRAY), (&MOST_UNREAD, Type::INT8)];
    let (found, sizes) = tokio::try_join!(ask(pool, FIND, found), ask(pool, SIZES, sizes))?;
    let mut sessions: BTreeMap<String, (Option<String>, BTreeMap<u64, FoundLine>)> =
        BTreeMap::new();
    for row in &found.rows {
        let session: String = row.try_get(0).map_err(unreadable)?;
        let line = FoundLine {
            number: unsigned(row.try_get(1).map_err(unreadable)?),
            author: row.try_get(2).map_err(unreadable)?,
            line: row.try_get(3).map_err(unreadable)?,
        };
        let lines = match sessions.get_mut(&session) {
            Some((_, lines)) => lines,
            None => {
                let title = title(&session, row.try_get(4).map_err(unreadable)?);
                &mut sessions
                    .entry(session)
                    .or_insert((title, BTreeMap::new()))
                    .1
            }
        };
        lines.insert(line.number, line);
    }
    let session = |(session_id, (name, lines)): (_, (_, BTreeMap<u64, FoundLine>))| FoundSession {
        session_id,
        name,
        lines: lines.into_values().collect(),
    };
    let sizes = sizes.rows.first();
    let sizes: (i64, i64, i64, Vec<f64>) = sizes
        .map(|row| {
            Ok((
                row.try_get(0)?,
                row.try_get(1)?,
                row.try_get(2)?,
                row.try_get(3)?,
            ))
        })
        .transpose()
        .map_err(unreadable)?
        .unwrap_or_default();
    let (entries, all_sessions, unread, shares) = sizes;
    Ok(TeamFound {
        sessions: sessions.into_iter().map(session).collect(),
        entries: unsigned(entries),
        all_sessions: unsigned(all_sessions),
        unread: unsigned(unread),
        shares,
    })
}
