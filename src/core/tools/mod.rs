//! The well-known tools of agents: the argument that describes a call, and the files that a call reads or
//! changes.
//!
//! Owns the one table of these tools, by the names that several agents give them. Reads raw JSON of any
//! shape, damaged too.

mod call;
mod lines;
#[cfg(test)]
mod tests;

pub use call::{CallArguments, FileAccess, common_name};
pub(crate) use call::{Saying, saying};

pub use lines::{DIFFS, EDITS, LineCounts};
