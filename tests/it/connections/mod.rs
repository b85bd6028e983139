//! Several connections to one daemon: protocol.md §10.

mod lifetime;
pub(crate) mod limits;
mod memory;
mod opening;
mod questions;
mod stalling;
mod turns;
mod watching;
