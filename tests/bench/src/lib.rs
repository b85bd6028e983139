//! The parts of the bench. `main.rs` measures treelined, pi and the machine in turns and prints a table;
//! `bin/count.rs` runs fixed operations whose instructions are counted.
//!
//! - [`generate`]: sessions, the same on every machine;
//! - [`library`]: the sessions on disk, generated once.

pub mod generate;
pub mod library;
