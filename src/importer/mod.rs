//! Imports the conversations of other tools: finds their files, keeps their bytes, and writes the sessions.
//!
//! It only reads what belongs to other tools. In reading order: [`discover`] finds the sources; [`source`] streams one and
//! reads places of it, of which [`sqlite`] and [`json_tree`] make those of databases and folders; [`origin`] keeps the bytes;
//! [`ledger`] remembers what was imported.

pub(crate) mod json_tree;
pub(crate) mod native;
pub(crate) mod origin;
pub(crate) mod source;
pub(crate) mod sqlite;
