//! Reads databases of other tools: their sessions, and the rows of each session as JSON lines.
//!
//! Does not write into the folder of a database, and holds a lock only while it reads one session. A database in
//! write-ahead mode is read from a private copy ([`open`]). Each row of a session becomes a line
//! `{"table":"part","rowid":7,"row":{…}}`, ordered by table and rowid. Memory needs eight bytes for each row,
//! whatever the size of its content.

mod fault;
mod open;
mod row;
#[cfg(test)]
mod tests;

use super::native::{FaultKind, NativeError, NativeSession};
use fault::failed;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use treelined_core::agent::Tool;
use treelined_core::timestamp::{self, Millis};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A table that has rows of sessions.
struct Table {
    name: &'static str,
    /// The column with the id of the session.
    session: &'static str,
    /// Whether a database can be read without this table.
    is_optional: bool,
    /// The columns that the table must have.
    columns: &'static [&'static str],
    /// The column with the time at which a row was last changed in place.
    changed: Option<&'static str>,
}

/// The tables of one tool. The first table has one row for each session.
struct Schema {
    tables: &'static [Table],
    /// The table that has the version of the schema, and the newest version that can be read.
    version: Option<(&'static str, i64)>,
    /// A table that gets a new row for each change. If a tool has such a table, the times of changes in place are not
    /// needed.
    history: Option<&'static str>,
}

const OPENCODE: Schema = Schema {
    tables: &[
        Table {
            name: "session",
            session: "id",
            is_optional: false,
            columns: &["id", "directory", "title"],
            changed: Some("time_updated"),
        },
        Table {
            name: "message",
            session: "session_id",
            is_optional: false,
            columns: &["id", "time_created", "data"],
            changed: Some("time_updated"),
        },
        Table {
            name: "part",
            session: "session_id",
            is_optional: false,
            columns: &["id", "message_id", "data"],
            changed: Some("time_updated"),
        },
        Table {
            name: "event",
            session: "aggregate_id",
            is_optional: true,
            columns: &["seq", "type", "data"],
            changed: None,
        },
        Table {
            name: "todo",
            session: "session_id",
            is_optional: true,
            columns: &[],
            changed: None,
        },
        Table {
            name: "session_message",
            session: "session_id",
            is_optional: true,
            columns: &[],
            changed: None,
        },
        Table {
            name: "session_input",
            session: "session_id",
            is_optional: true,
            columns: &[],
            changed: None,
        },
    ],
    version: None,
    history: Some("event"),
};

const GOOSE: Schema = Schema {
    tables: &[
        Table {
            name: "sessions",
            session: "id",
            is_optional: false,
            columns: &["id", "working_dir"],
            changed: Some("updated_at"),
        },
        Table {
            name: "messages",
            session: "session_id",
            is_optional: false,
            columns: &["role", "content_json", "created_timestamp"],
            changed: None,
        },
        Table {
            name: "usage_ledger",
            session: "session_id",
            is_optional: true,
            columns: &[],
            changed: None,
        },
    ],
    version: Some(("schema_version", 16)),
    history: None,
};

/// The schema of a tool's databases; `None` if the tool has no databases.
fn schema(tool: Tool) -> Option<&'static Schema> {
    match tool {
        Tool::Opencode => Some(&OPENCODE),
        Tool::Goose => Some(&GOOSE),
        Tool::ClaudeCode
        | Tool::Codex
        | Tool::Gemini
        | Tool::Pi
        | Tool::QwenCode
        | Tool::Cline
        | Tool::RooCode
        | Tool::KiloCode
        | Tool::CopilotCli
        | Tool::VscodeChat
        | Tool::ChatGpt
        | Tool::ClaudeAi => None,
    }
}

/// An opened database of another tool.
pub(crate) struct Database {
    connection: Connection,
    /// The tables that exist. Each has its columns in order, and the rows of each session.
    tables: Vec<PresentTable>,
    sessions: Vec<NativeSession>,
}

struct PresentTable {
    name: &'static str,
    columns: Vec<String>,
    rows: BTreeMap<String, Vec<i64>>,
}

impl Database {
    /// Opens a database of `tool`. If a private copy is needed, it is made in `scratch`.
    pub(crate) fn open(path: &Path, tool: Tool, scratch: &Path) -> Result<Self, NativeError> {
        let Some(schema) = schema(tool) else {
            let message = format!("{} keeps no database of sessions", tool.name());
            return Err(NativeError::new(FaultKind::UnknownSchema, message));
        };
        let connection = open::open(path, scratch)?;
        let mut database = Self {
            connection,
            tables: Vec::new(),
            sessions: Vec::new(),
        };
        database.check_version(schema)?;
        database.find(schema)?;
        Ok(database)
    }

    /// The sessions, in the order of their rows.
    pub(crate) fn sessions(&self) -> &[NativeSession] {
        &self.sessions
    }

    /// Writes the rows of a session as lines. Rows that were deleted since [`Self::open`] are left out. Fails at a
    /// row that has a value of more than `most` bytes.
    pub(crate) fn write_session(
        &self,
        id: &str,
        most: u64,
        out: &mut dyn Write,
    ) -> Result<(), NativeError> {
        open::limit_values(&self.connection, most).map_err(failed)?;
        // All tables are read in one transaction, so that their rows have the same state. The transaction never writes.
        let transaction = self.connection.unchecked_transaction().map_err(failed)?;
        for table in &self.tables {
            let Some(rows) = table.rows.get(id) else {
                continue;
            };
            let names: Vec<String> = table.columns.iter().map(|name| quoted(name)).collect();
            let query = format!(
                "SELECT {} FROM {} WHERE rowid = ?1",
                names.join(","),
                quoted(table.name)
            );
            let mut statement = transaction.prepare(&query).map_err(failed)?;
            let mut line = Vec::new();
            for rowid in rows {
                let mut found = statement.query([rowid]).map_err(failed)?;
                let Some(row) = found.next().map_err(failed)? else {
                    continue;
                };
                line.clear();
                row::push(&mut line, table.name, *rowid, &table.columns, row).map_err(failed)?;
                out.write_all(&line).map_err(NativeError::Output)?;
            }
        }
        Ok(())
    }

    fn check_version(&self, schema: &Schema) -> Result<(), NativeError> {
        let Some((table, known)) = schema.version else {
            return Ok(());
        };
        if self.columns(table)?.is_empty() {
            return Ok(());
        }
        let query = format!("SELECT max(version) FROM {}", quoted(table));
        let version = self
            .connection
            .query_row(&query, [], |row| row.get::<_, Option<i64>>(0));
        match version.map_err(failed)? {
            Some(version) if version > known => {
                let message = format!(
                    "the database has version {version} of its schema; versions up to {known} can be read"
                );
                Err(NativeError::new(FaultKind::UnknownSchema, message))
            }
            _ => Ok(()),
        }
    }

    /// Finds the tables, the sessions, and the rows of each session.
    fn find(&mut self, schema: &Schema) -> Result<(), NativeError> {
        let mut versions: BTreeMap<String, u64> = BTreeMap::new();
        let has_history = match schema.history {
            Some(table) => !self.columns(table)?.is_empty(),
            None => false,
        };
        let mut times = BTreeMap::new();
        let mut order = Vec::new();
        for (number, table) in schema.tables.iter().enumerate() {
            let columns = self.columns(table.name)?;
            if columns.is_empty() && table.is_optional {
                continue;
            }
            check_columns(table, &columns)?;
            let is_first = number == 0;
            let changed = table.changed.filter(|_| is_first || !has_history);
            let changed = changed.filter(|changed| columns.iter().any(|column| column == changed));
            let mut rows: BTreeMap<String, Vec<i64>> = BTreeMap::new();
            self.each_row(table, changed, |session, rowid, changed| {
                if is_first {
                    times.extend(time(changed).map(|time| (session.clone(), time)));
                    order.push((rowid, session.clone()));
                }
                let version = versions.entry(session.clone()).or_default();
                *version = version.wrapping_add(row_hash(number, rowid, changed));
                rows.entry(session).or_default().push(rowid);
            })?;
            rows.values_mut().for_each(|rows| rows.sort_unstable());
            self.tables.push(PresentTable {
                name: table.name,
                columns,
                rows,
            });
        }
        order.sort();
        order.dedup_by(|(_, one), (_, other)| one == other);
        self.sessions = order
            .into_iter()
            .map(|(_, id)| NativeSession {
                last_activity: times.get(&id).copied(),
                version: versions.get(&id).copied().unwrap_or_default(),
                id,
            })
            .collect();
        Ok(())
    }

    /// The columns of a table that have stored values; `None` if there is no such table.
    fn columns(&self, table: &str) -> Result<Vec<String>, NativeError> {
        // Only real tables are read: a view could run any query, and a virtual table any module.
        let is_table = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = ?1";
        let count: i64 = self
            .connection
            .query_row(is_table, [table], |row| row.get(0))
            .map_err(failed)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let query = "SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0 ORDER BY cid";
        let mut statement = self.connection.prepare(query).map_err(failed)?;
        let names = statement
            .query_map([table], |row| row.get::<_, String>(0))
            .map_err(failed)?;
        names.collect::<Result<_, _>>().map_err(failed)
    }

    /// Calls `found` for each row of a table, with the session, the rowid and the time of the last change.
    fn each_row(
        &self,
        table: &Table,
        changed: Option<&str>,
        mut found: impl FnMut(String, i64, ValueRef<'_>),
    ) -> Result<(), NativeError> {
        let changed = changed.map_or_else(|| "NULL".to_owned(), quoted);
        let query = format!(
            "SELECT rowid, {}, {changed} FROM {}",
            quoted(table.session),
            quoted(table.name)
        );
        let mut statement = self.connection.prepare(&query).map_err(failed)?;
        let mut rows = statement.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let rowid: i64 = row.get(0).map_err(failed)?;
            let session = match row.get_ref(1).map_err(failed)? {
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                ValueRef::Integer(number) => number.to_string(),
                ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => continue,
            };
            found(session, rowid, row.get_ref(2).map_err(failed)?);
        }
        Ok(())
    }
}

fn check_columns(table: &Table, columns: &[String]) -> Result<(), NativeError> {
    let unknown = |message: String| Err(NativeError::new(FaultKind::UnknownSchema, message));
    if columns.is_empty() {
        return unknown(format!("the database has no table {}", table.name));
    }
    let mut needed = table.columns.iter().chain([&table.session]);
    match needed.find(|needed| !columns.iter().any(|column| column == *needed)) {
        Some(column) => unknown(format!("the table {} has no column {column}", table.name)),
        None => Ok(()),
    }
}

/// Reads a time: Unix milliseconds, or the text of a date and time in UTC.
fn time(value: ValueRef<'_>) -> Option<Millis> {
    match value {
        ValueRef::Integer(millis) => (millis > 0).then_some(millis),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).ok()?;
            timestamp::parse(&format!("{}Z", text.replacen(' ', "T", 1)))
        }
        ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
    }
}

fn row_hash(table: usize, rowid: i64, changed: ValueRef<'_>) -> u64 {
    let changed = match changed {
        ValueRef::Integer(number) => xxh3_64(&number.to_le_bytes()),
        ValueRef::Real(number) => xxh3_64(&number.to_le_bytes()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => xxh3_64_with_seed(bytes, 1),
        ValueRef::Null => 0,
    };
    let row = [rowid.cast_unsigned(), changed, table as u64].map(u64::to_le_bytes);
    xxh3_64(row.as_flattened())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
