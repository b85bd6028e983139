//! A database of PostgreSQL as the servers of a team (schema/fleet.md "PostgreSQL"): a row per line. A position is the
//! number of a session's line.
//!
//! In reading order: `address` is where the database is, `tls` how it is reached safely, `refusal` the kind of each
//! failure. `pool` has the connections, `notices` the one on which daemons hear of each other's appends. `schema` makes
//! the tables, `facts` says what the database keeps. `log` keeps lines, with `append` and `read`; `followed` reads
//! on, `index` keeps the team's list, and `engine` joins them.

mod address;
mod append;
mod engine;
pub mod facts;
mod followed;
mod index;
mod log;
mod notices;
mod pool;
mod read;
mod refusal;
pub mod schema;
mod tls;

pub use self::log::PgLog;
