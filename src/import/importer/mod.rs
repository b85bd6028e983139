//! Imports the conversations of other tools: finds their files, keeps their bytes, and writes the sessions.
//!
//! Files of other tools are only read. The modules in reading order:
//!
//! - [`run`] is one import, from the search for sources to the report. [`discover`] finds the sources. [`source`]
//!   streams the records of a source and reads single places of it again. [`databases`] makes records for the tools
//!   that do not keep files of records, from [`sqlite`], [`json_tree`] and [`exports`].
//! - [`origin`] keeps the bytes of sources. [`ledger`] remembers what was imported, and [`rebuild`] restores lost
//!   lines of the ledger. [`gone`] finds sources that exist only as kept bytes.
//! - [`reading`] turns sources into members, that is conversations, and [`sides`] adds the facts from other files.
//!   [`relatives`] selects the sources that must be read together.
//! - [`home`] finds the sessions from which conversations were handed over. [`adopt`] finds the nodes that these
//!   sessions already have, because they were [`handed`] over or because a recorder wrote them ([`recorded`]).
//! - [`batch`] joins the members into sessions. [`create`] writes new sessions ([`new_file`]), and [`extend`] appends
//!   to existing ones ([`appender`]), also beside shed branches ([`shed`]); [`line`] makes the lines of both.
//! - [`report`] is the report of an import, and [`result`] collects it. [`repeat`] answers with the last report while
//!   nothing has changed. [`anew`] writes existing sessions again from the beginning.
//! - [`watch`] waits for changes, and [`hook`] imports for a tool's hook. [`limits`] has the limits on one source,
//!   and [`large`] the sources that exceed them. [`redaction`] replaces secrets. [`named`] finds an imported session
//!   by an id.

mod adopt;
mod anew;
mod appender;
mod batch;
mod create;
pub(crate) mod databases;
pub mod discover;
mod exports;
mod extend;
mod git;
mod gone;
mod groups;
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
mod shed;
mod sides;
pub(crate) mod source;
pub(crate) mod sqlite;
mod task_files;
pub mod watch;

mod held;
mod request;
#[cfg(test)]
mod tests;
