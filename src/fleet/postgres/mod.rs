//! PostgreSQL as the servers of a team (schema/fleet.md "PostgreSQL"): each line is a row. A position is the number of
//! a line in its session.
//!
//! In reading order: `address` is the address of the database, `tls` makes connections safe, and `refusal` converts
//! failures to errors. `pool` has the connections, and `notices` has the connection on which daemons learn of each
//! other's appends. `schema` makes the tables, `facts` checks the settings of the database, and `probe` which
//! servers answer. `log` is a connected
//! database, with `append` and `read`. `erasing` erases a session, `quiet` finds sessions without activity, `followed`
//! follows one, `index` keeps the team's list, `pages` reads pages of it, `texts` searches all sessions, and `engine`
//! joins all of these.

mod address;
mod append;
mod engine;
mod erasing;
pub mod facts;
mod followed;
mod index;
mod log;
mod notices;
mod pages;
mod pool;
pub mod probe;
mod quiet;
mod read;
mod refusal;
pub mod schema;
mod texts;
mod tls;

pub use self::log::PgLog;
