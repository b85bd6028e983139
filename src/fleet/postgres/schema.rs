//! The tables of a database. Numbered files make them.

use super::pool::{Pool, ask, connect};
use super::refusal::{of_request, unreadable};
use crate::settings::PostgresSettings;
use tokio_postgres::types::{ToSql, Type};
use treelined_core::error::{Error, Kind, Result};

/// The files. Each makes the next version of the tables.
const FILES: [&str; 3] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
];
/// The oldest version with which this program appends. Requests that need a newer version fail.
const OLDEST: i32 = 2;
/// Takes a lock, so that two administrators do not change the tables at the same time.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('treelined.schema', 0))";
const TEAM: &str = "\
SELECT to_char(created AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), version FROM treelined.team";
/// The tables of a database.
pub struct Team {
    /// The time at which the tables were made. Tables that are deleted and made again have the same name.
    pub created: String,
    pub version: i32,
}

/// The tables and roles that `create` has made.
pub struct Made {
    /// The version that the tables had before; `None` if there were no tables.
    pub before: Option<i32>,
    pub version: i32,
    /// The roles that have rights. `without` is the reason why some roles could not be made.
    pub roles: Vec<String>,
    pub without: Option<String>,
}

impl Team {
    /// Fails unless this program can append to the tables.
    pub fn check_usable(&self) -> Result<()> {
        match (OLDEST..newest()).contains(&self.version) {
            true => Ok(()),
            false => self.check(),
        }
    }

    /// Fails unless the tables have the version of this program.
    pub fn check(&self) -> Result<()> {
        let newest = newest();
        let remedy = match self.version.cmp(&newest) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => "`treelined doctor --cluster --create` brings them to it",
            std::cmp::Ordering::Greater => "install a newer treelined",
        };
        let version = self.version;
        let why = format!("the tables have version {version}, and this program {newest}: {remedy}");
        Err(Error::new(Kind::LogMisconfigured, why))
    }
}

fn newest() -> i32 {
    i32::try_from(FILES.len()).unwrap_or(i32::MAX)
}

/// The tables. Fails with `logMisconfigured` if there are none.
pub(super) async fn team(pool: &Pool) -> Result<Team> {
    let answer = ask(pool, TEAM, &[]).await?;
    let row = answer.rows.first().ok_or_else(|| {
        let why = "the table treelined.team is empty: drop the schema treelined, or restore it";
        Error::new(Kind::LogMisconfigured, why)
    })?;
    Ok(Team {
        created: row.try_get(0).map_err(unreadable)?,
        version: row.try_get(1).map_err(unreadable)?,
    })
}

/// The statements that make a role ($1) the owner of the schema, the tables and the functions that other roles own.
/// Indexes and triggers belong to their tables.
const OTHERS_OWN: &str = "\
SELECT statement FROM (
    SELECT 1 AS place, format('ALTER SCHEMA treelined OWNER TO %I', $1) AS statement, nspowner AS owner
        FROM pg_namespace WHERE nspname = 'treelined'
    UNION ALL SELECT 2, format('ALTER TABLE %s OWNER TO %I', oid::regclass, $1), relowner
        FROM pg_class WHERE relnamespace = 'treelined'::regnamespace AND relkind = 'r'
    UNION ALL SELECT 2, format('ALTER FUNCTION %s OWNER TO %I', oid::regprocedure, $1), proowner
        FROM pg_proc WHERE pronamespace = 'treelined'::regnamespace
) AS objects WHERE owner <> (SELECT oid FROM pg_roles WHERE rolname = $1) ORDER BY place";

/// Makes the tables, or brings them to the newest version. Also makes the roles. The role of the administrators owns
/// the tables.
pub fn create(settings: &PostgresSettings) -> Result<Made> {
    let (runtime, pool) = connect(settings)?;
    runtime.block_on(async {
        let (client, _notices) = pool.listening().await?;
        let run = |error: tokio_postgres::Error| of_request(&error).error();
        client.batch_execute("BEGIN").await.map_err(run)?;
        client.batch_execute(LOCK).await.map_err(run)?;
        let found = "SELECT to_regclass('treelined.team') IS NOT NULL";
        let found = client.query_typed(found, &[]).await.map_err(run)?;
        let is_there = found
            .first()
            .is_some_and(|row| row.try_get(0).unwrap_or(false));
        let before = match is_there {
            false => None,
            true => {
                let version = "SELECT version FROM treelined.team";
                let version = client.query_typed(version, &[]).await.map_err(run)?;
                let version = version.first().map(|row| row.try_get::<_, i32>(0));
                version.transpose().map_err(unreadable)?
            }
        };
        let done = usize::try_from(before.unwrap_or(0)).unwrap_or(0);
        for file in FILES.iter().skip(done) {
            client.batch_execute(file).await.map_err(run)?;
        }
        client.batch_execute("COMMIT").await.map_err(run)?;
        let version = newest().max(before.unwrap_or(0));
        let name = "SELECT current_database()";
        let name = client.query_typed(name, &[]).await.map_err(run)?;
        let name: String = name
            .first()
            .map_or(Ok(String::new()), |row| row.try_get(0))
            .map_err(unreadable)?;
        let (roles, without) = match grant(&client, &name).await {
            Ok(roles) => (roles, None),
            Err(error) => (Vec::new(), Some(run(error).message.into_owned())),
        };
        Ok(Made {
            before,
            version,
            roles,
            without,
        })
    })
}

/// Makes the roles of this database, and gives them their rights.
async fn grant(
    client: &tokio_postgres::Client,
    database: &str,
) -> std::result::Result<Vec<String>, tokio_postgres::Error> {
    let roles = ["member", "reader", "admin"].map(|ending| format!("{database}_{ending}"));
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    for role in &roles {
        let known = "SELECT 1 FROM pg_roles WHERE rolname = $1";
        let params: [(&(dyn ToSql + Sync), _); 1] = [(role, Type::TEXT)];
        if client.query_typed(known, &params).await?.is_empty() {
            let make = format!("CREATE ROLE {} NOLOGIN", quoted(role));
            client.batch_execute(&make).await?;
        }
    }
    let [member, reader, admin] = roles.each_ref().map(quoted);
    let [_, _, admins] = &roles;
    let rights = format!(
        "GRANT USAGE ON SCHEMA treelined TO {member}, {reader};
        GRANT SELECT ON ALL TABLES IN SCHEMA treelined TO {member}, {reader};
        GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA treelined TO {member}"
    );
    client.batch_execute(&rights).await?;
    let member_of = "SELECT pg_has_role(current_user, $1, 'MEMBER')";
    let params: [(&(dyn ToSql + Sync), _); 1] = [(admins, Type::TEXT)];
    let is_admin = client.query_typed(member_of, &params).await?;
    let is_admin = is_admin
        .first()
        .is_some_and(|row| row.try_get(0).unwrap_or(false));
    if !is_admin {
        let join = format!("GRANT {admin} TO CURRENT_USER");
        client.batch_execute(&join).await?;
    }
    let owned = client
        .query_typed(OTHERS_OWN, &params)
        .await?
        .iter()
        .map(|row| row.try_get(0))
        .collect::<std::result::Result<Vec<String>, _>>()?;
    client.batch_execute(&owned.join(";")).await?;
    Ok(roles.to_vec())
}
