//! Sessions on three real nodes: `tests/fleet/run` starts them and names their folder in TREELINED_FLEET. Without it
//! each test is skipped, and says so.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod agents;
mod chaos;
mod compare;
mod daemon;
mod deleting;
mod failures;
mod live;
mod objects;
mod reads;
mod security;
mod single;
mod support;
mod team;
mod transfers;
