//! Pages of the team's list: the sessions with the latest activity first, the sessions without a description at the
//! end.

use super::pool::{Params, Pool, ask};
use super::refusal::{unreadable, unsigned};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use treelined_core::error::Result;
use treelined_core::team::TeamQuery;

/// The most sessions of a page.
const MOST: usize = 1000;
/// The number up to which sessions are counted.
const COUNTED: i64 = 10_000;
/// The rows that a query selects: deleted or not ($1), without a file here ($2), and by their directory ($3), their
/// name ($4) and their words ($5). A session without a description has a row with an empty body. To read the first
/// message from the body is slow. It is done only if the body, without the escapes of JSON, has the words.
const SELECTED: &str = r#"
FROM treelined.rows WHERE trashed = $1 AND session <> ALL($2::text[])
AND ($3::text IS NULL OR cwd IN ($3, $3 || '/'))
AND ($4::bool IS NULL OR body <> '' AND (coalesce(name, '') <> '') = $4)
AND ($5::text[] IS NULL OR lower(concat_ws(E'\n', name, cwd, session)) LIKE ALL($5)
    OR lower(concat_ws(E'\n', name, cwd, session, replace(replace(body, '\"', '"'), '\\', '\'))) LIKE ALL($5)
    AND lower(concat_ws(E'\n', name, cwd, session, treelined.member_of(body, 'firstMessage'))) LIKE ALL($5))"#;

/// A page.
pub(super) struct Page {
    /// Rows with the id of a session and its description.
    pub(super) rows: Vec<Row>,
    /// The number of sessions on all pages. With `is_at_least`, there are more sessions than this.
    pub(super) count: u64,
    pub(super) is_at_least: bool,
    pub(super) next: Option<String>,
}

/// The sessions that a query selects, without the sessions that have a file here.
pub(super) async fn read(pool: &Pool, query: &TeamQuery, here: &[String]) -> Result<Page> {
    let most = query.limit.min(MOST);
    let asked = Asked {
        pool,
        query,
        here,
        patterns: patterns(&query.words),
    };
    let (mut rows, count) = tokio::try_join!(asked.rows(most), asked.count())?;
    let mut next = None;
    if rows.len() > most {
        rows.truncate(most);
        next = rows.last().map(cursor).transpose()?;
    }
    Ok(Page {
        rows,
        count: unsigned(count.min(COUNTED)),
        is_at_least: count > COUNTED,
        next,
    })
}

/// The cursor that names the last row of a page.
fn cursor(row: &Row) -> Result<String> {
    let id: String = row.try_get(0).map_err(unreadable)?;
    let modified: String = row.try_get(2).map_err(unreadable)?;
    Ok(format!("{modified} {id}"))
}

/// Patterns that find words in texts.
fn patterns(words: &[String]) -> Option<Vec<String>> {
    let pattern = |word: &String| {
        let literal = word
            .replace('\\', "\\\\")
            .replace('%', "\\%")
            .replace('_', "\\_");
        format!("%{literal}%")
    };
    (!words.is_empty()).then(|| words.iter().map(pattern).collect())
}

struct Asked<'q> {
    pool: &'q Pool,
    query: &'q TeamQuery,
    here: &'q [String],
    patterns: Option<Vec<String>>,
}

impl Asked<'_> {
    /// At most `most` rows of a page, and one additional row if another page follows.
    async fn rows(&self, most: usize) -> Result<Vec<Row>> {
        if most == 0 {
            return Ok(Vec::new());
        }
        let statement = format!(
            "SELECT session, body, modified {SELECTED}
            AND ($6::text IS NULL OR modified <= $6 AND (modified < $6 OR session > $7))
            ORDER BY modified DESC, session LIMIT $8"
        );
        let after = self.query.after.as_deref();
        let (modified, id) = after.and_then(|after| after.split_once(' ')).unzip();
        let most = i64::try_from(most + 1).unwrap_or(i64::MAX);
        let params: Params<'_> = &[
            (&self.query.is_of_deleted, Type::BOOL),
            (&self.here, Type::TEXT_ARRAY),
            (&self.query.cwd, Type::TEXT),
            (&self.query.named, Type::BOOL),
            (&self.patterns, Type::TEXT_ARRAY),
            (&modified, Type::TEXT),
            (&id, Type::TEXT),
            (&most, Type::INT8),
        ];
        Ok(ask(self.pool, &statement, params).await?.rows)
    }

    /// The number of sessions on all pages, [`COUNTED`] and one more at most. Only the first page has this number.
    async fn count(&self) -> Result<i64> {
        if self.query.after.is_some() {
            return Ok(0);
        }
        let statement = format!("SELECT count(*) FROM (SELECT {SELECTED} LIMIT $6) AS counted");
        let params: Params<'_> = &[
            (&self.query.is_of_deleted, Type::BOOL),
            (&self.here, Type::TEXT_ARRAY),
            (&self.query.cwd, Type::TEXT),
            (&self.query.named, Type::BOOL),
            (&self.patterns, Type::TEXT_ARRAY),
            (&(COUNTED + 1), Type::INT8),
        ];
        let rows = ask(self.pool, &statement, params).await?.rows;
        let count = rows.first().map(|row| row.try_get(0));
        Ok(count.transpose().map_err(unreadable)?.unwrap_or(0))
    }
}
