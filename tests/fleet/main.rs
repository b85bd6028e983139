//! Sessions on three real nodes: `tests/fleet/run` starts them and names their folder in TREELINED_FLEET. Without it
//! each test is skipped, and says so.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod agents;
mod chaos;
mod clocks;
mod compare;
mod daemon;
mod deleting;
mod failures;
mod first_steps;
mod foreign;
mod live;
mod members;
mod objects;
mod proxy;
mod queue;
mod reads;
mod security;
mod single;
mod support;
mod team;
mod transfers;
