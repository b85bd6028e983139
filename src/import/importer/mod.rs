//! Imports the conversations of other tools: finds their files, keeps their bytes, and writes the sessions.
//!
//! Files of other tools are only read. In reading order: [`run`] is one import; [`discover`] finds the sources;
//! [`source`] streams one and reads places of it, with [`databases`] ([`sqlite`], [`json_tree`], [`exports`]) for tools that
//! keep no files of records; [`origin`] keeps the bytes; [`ledger`] remembers what was imported, and
//! [`rebuild`] what it has lost; [`gone`] finds sources that exist only as kept bytes; [`reading`] makes members of
//! sources, with [`sides`] for what other files say of them, and [`relatives`] says which belong together;
//! [`home`] finds sessions from which conversations were handed over, and [`adopt`] the nodes that these have already, by
//! what was [`handed`] over;
//! [`batch`] joins them; [`create`] writes new sessions ([`new_file`]) and [`extend`] what is new in old ones, with the lines of
//! [`line`]; [`report`] is what is reported, as [`result`] sums it up, and [`repeat`] reports it
//! again while nothing changes; [`anew`] is for sessions that are replaced. [`watch`] waits until there is something to import again;
//! [`hook`] imports what a tool's hook asks for. [`limits`] says what one source may become, and [`large`] which ones exceed it.
//! [`redaction`] replaces secrets in what is written. [`named`] finds a session that was imported.

mod adopt;
mod anew;
mod batch;
mod create;
mod databases;
pub mod discover;
mod exports;
mod extend;
mod git;
mod gone;
mod handed;
mod home;
pub mod hook;
pub(crate) mod json_tree;
pub mod large;
pub(crate) mod ledger;
pub mod limits;
mod line;
pub mod named;
pub(crate) mod names;
mod native;
mod new_file;
mod open_nodes;
pub mod origin;
mod reading;
mod rebuild;
mod recorded;
pub mod redaction;
mod relatives;
pub mod repeat;
pub mod report;
mod result;
pub mod run;
mod sides;
pub(crate) mod source;
pub(crate) mod sqlite;
pub mod watch;

mod held;
mod request;
#[cfg(test)]
mod tests;
