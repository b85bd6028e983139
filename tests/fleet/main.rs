//! Sessions on real servers. `tests/fleet/run` starts three nodes of NATS, whose folder is in TREELINED_FLEET, or a
//! server of PostgreSQL with a standby, whose folder is in TREELINED_FLEET_POSTGRES. Without both variables each test
//! is skipped, and says so.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod agents;
mod authors;
mod backups;
mod chaos;
mod clocks;
mod compare;
mod daemon;
mod database;
mod deleting;
mod erasing;
mod failures;
mod first_steps;
mod foreign;
mod live;
mod many;
mod members;
mod objects;
mod proxy;
mod queue;
mod reads;
mod refill;
mod retention;
mod rows;
mod security;
mod single;
mod support;
mod team;
mod texts;
mod transfers;
