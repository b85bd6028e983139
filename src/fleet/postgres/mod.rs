//! PostgreSQL as the servers of a team (schema/fleet.md "PostgreSQL"): each line is a row. A position is the number of
//! a line in its session.
//!
//! In reading order: `address` is the address of the database, `tls` makes connections safe, and `refusal` converts
//! failures to errors. `pool` has the connections, and `notices` has the connection for notifications of appends of
//! other daemons. `schema` makes the tables, `facts` checks the settings of the database, and `probe` finds which
//! servers answer. `log` is a connected database, with `append` and `read`. `erasing` erases a session, `quiet` finds
//! sessions without activity, and `followed` follows a session. `index` keeps the team's list, `pages` reads pages of
//! that list, `texts` searches all sessions, and `engine` joins all of these.

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
