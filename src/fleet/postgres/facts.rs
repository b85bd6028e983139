//! The settings of a database that decide whether it keeps acknowledged lines, and the number of sessions and lines in
//! it.

use super::address::Address;
use super::pool::{Pool, ask, connect};
use super::refusal::{away, unreadable, unsigned};
use super::schema::{self, Team};
use crate::acknowledged::worth;
use crate::settings::PostgresSettings;
use memchr::memmem;
use treelined_core::author::Author;
use treelined_core::durability::Durability;
use treelined_core::error::Result;
use treelined_core::json;

/// The oldest version of the server, in the server's own numbers.
const OLDEST: i32 = 150_000;
const SETTINGS: &str = "\
SELECT current_database()::text, session_user::text, current_setting('server_version'),
    current_setting('server_version_num')::int, current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
    current_setting('server_encoding'), pg_is_in_recovery()";
const RIGHTS: &str = "\
SELECT has_function_privilege('treelined.append(text, bigint, uuid, uuid, bytea[])', 'EXECUTE'),
    has_table_privilege('treelined.entries', 'DELETE')";
const HOLDINGS: &str = "\
SELECT count(*), coalesce(sum(last), 0)::bigint, pg_total_relation_size('treelined.entries')::bigint
FROM treelined.sessions";

/// The last lines of the sessions that were described last. For each line, the result has the account and the end of
/// the line, which names the writer.
const WRITERS: &str = "\
SELECT entry.author, entry.ending
FROM (SELECT session FROM treelined.rows ORDER BY changed DESC LIMIT 1000) AS lately,
LATERAL (SELECT author, substring(line FROM greatest(octet_length(line) - 1023, 1)) AS ending
    FROM treelined.entries WHERE session = lately.session ORDER BY seq DESC LIMIT 20) AS entry";

/// The numbers of the last lines whose writer is the account that added the line, is another account, or is not named.
#[derive(Debug, Default)]
pub struct Writers {
    pub same: u64,
    pub other: u64,
    pub none: u64,
}

/// The settings of a database.
pub struct Facts {
    pub database: String,
    pub user: String,
    pub version: String,
    version_number: i32,
    fsync: String,
    full_page_writes: String,
    pub commits: String,
    pub standbys: String,
    encoding: String,
    pub is_standby: bool,
}

/// A database as `doctor --cluster` shows it.
pub struct Described {
    pub hosts: Vec<String>,
    pub facts: Facts,
    pub team: Team,
    pub sessions: u64,
    pub lines: u64,
    pub bytes: u64,
    pub writers: Writers,
    pub may_append: bool,
    pub may_remove: bool,
    /// The user in the address, if the address has one.
    pub given_user: Option<String>,
    /// Whether the settings permit connections without TLS.
    pub may_be_plain: bool,
}

impl Facts {
    pub fn durability(&self) -> Durability {
        worth(&self.commits, &self.standbys)
    }

    pub(super) fn is_synced(&self) -> bool {
        self.durability() != Durability::Os
    }

    pub(super) fn is_replicated(&self) -> bool {
        self.durability() == Durability::Replicated
    }

    /// The reasons why the database must not keep sessions.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.version_number < OLDEST {
            let version = &self.version;
            faults.push(format!(
                "PostgreSQL {version} is too old: install 15 or newer"
            ));
        }
        if self.fsync == "off" {
            let why =
                "fsync is off: the server loses acknowledged lines with its machine; set it to on";
            faults.push(why.to_owned());
        }
        if self.full_page_writes == "off" {
            let why =
                "full_page_writes is off: a crash of the machine may damage tables; set it to on";
            faults.push(why.to_owned());
        }
        if self.commits == "off" {
            let why = "synchronous_commit is off: the server acknowledges lines before they are on its disk; set it to on";
            faults.push(why.to_owned());
        }
        if self.encoding != "UTF8" {
            let encoding = &self.encoding;
            faults.push(format!(
                "the database has the encoding {encoding}: make one with UTF8"
            ));
        }
        faults
    }
}

/// The settings of the database of a pool.
pub(super) async fn read(pool: &Pool) -> Result<Facts> {
    let answer = ask(pool, SETTINGS, &[]).await?;
    let row = answer
        .rows
        .first()
        .ok_or_else(|| away("the database said nothing"))?;
    Ok(Facts {
        database: row.try_get(0).map_err(unreadable)?,
        user: row.try_get(1).map_err(unreadable)?,
        version: row.try_get(2).map_err(unreadable)?,
        version_number: row.try_get(3).map_err(unreadable)?,
        fsync: row.try_get(4).map_err(unreadable)?,
        full_page_writes: row.try_get(5).map_err(unreadable)?,
        commits: row.try_get(6).map_err(unreadable)?,
        standbys: row.try_get(7).map_err(unreadable)?,
        encoding: row.try_get(8).map_err(unreadable)?,
        is_standby: row.try_get(9).map_err(unreadable)?,
    })
}

/// Describes the database of the settings, without checking it.
pub fn describe(settings: &PostgresSettings) -> Result<Described> {
    let address = Address::of(settings)?;
    let (runtime, pool) = connect(settings)?;
    runtime.block_on(async {
        pool.reach().await?;
        let facts = read(&pool).await?;
        let team = schema::team(&pool).await?;
        let rights = ask(&pool, RIGHTS, &[]).await?;
        let right = |at: usize| {
            rights
                .rows
                .first()
                .is_some_and(|row| row.try_get(at).unwrap_or(false))
        };
        let holdings = ask(&pool, HOLDINGS, &[]).await?;
        let held = |at: usize| {
            let number = holdings
                .rows
                .first()
                .map_or(Ok(0), |row| row.try_get::<_, i64>(at));
            number.map(unsigned).map_err(unreadable)
        };
        Ok(Described {
            hosts: address.hosts(),
            sessions: held(0)?,
            lines: held(1)?,
            bytes: held(2)?,
            writers: writers(&pool).await?,
            may_append: right(0),
            may_remove: right(1),
            given_user: address.config.get_user().map(str::to_owned),
            may_be_plain: address.may_be_plain(),
            facts,
            team,
        })
    })
}

async fn writers(pool: &Pool) -> Result<Writers> {
    let mut writers = Writers::default();
    for row in ask(pool, WRITERS, &[]).await?.rows {
        let account: &str = row.try_get(0).map_err(unreadable)?;
        let ending = row.try_get(1).map_err(unreadable)?;
        let count = match claimed(ending) {
            Some(by) if by.name == account => &mut writers.same,
            Some(_) => &mut writers.other,
            None => &mut writers.none,
        };
        *count += 1;
    }
    Ok(writers)
}

/// The writer that a daemon has added to the end of a line.
fn claimed(ending: &[u8]) -> Option<Author> {
    let at = memmem::rfind(ending, b",\"by\":")?;
    let mut object = ending.get(at..)?.trim_ascii_end().to_vec();
    *object.first_mut()? = b'{';
    // The member `by` of an inner object does not end the line.
    let is_last = json::value_span(&object).is_ok_and(|span| span == (0..object.len()));
    is_last.then(|| Author::of(&object))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use treelined_core::author::Signature;

    #[test]
    fn the_end_of_a_line_names_its_writer() {
        let ada = Author::new("Ada \"L.\"", "desk", "d1".to_owned());
        let mut line =
            br#"{"type":"custom","id":"a","data":{"n":1,"by":{"name":"x","host":"x","daemon":"x"}}}"#
                .to_vec();
        assert_eq!(claimed(&line), None);
        Signature::of(&ada).sign(&mut line);
        let cut = [line.get(20..).unwrap(), b"\n"].concat();
        assert_eq!(claimed(&cut), Some(ada));
        for other in ["", "}", r#","by":}"#, r#","by":{}}"#, r#","by":"x"}"#] {
            assert_eq!(claimed(other.as_bytes()), None, "{other}");
        }
    }
}
