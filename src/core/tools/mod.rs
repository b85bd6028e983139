//! The well-known tools of agents: the argument that describes a call, and the files that a call reads or
//! changes.
//!
//! This module has the only table of these tools, with the names that several agents give them. It reads
//! raw JSON of any shape, even damaged.

mod call;
mod lines;
#[cfg(test)]
mod tests;

pub use call::{CallArguments, FileAccess, common_name};
pub(crate) use call::{Saying, saying};

pub use lines::{DIFFS, EDITS, LineCounts};
