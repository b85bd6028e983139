//! Black-box tests of the daemon: the real binary over real pipes, judged by its documents
//! in `schema/` (protocol, session file, semantics). One file per subject; `harness` drives the binary, `fixture` makes
//! what goes in.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that stumbles fails, and says where"
)]

mod append;
mod branch_summary;
mod cache;
mod command;
mod compact;
mod config;
mod context;
mod crash;
mod creating;
mod damage;
mod decided;
mod deleting;
mod documents;
mod errors;
mod faults;
mod fixture;
mod fork;
mod fork_faults;
mod fork_tree;
mod fuzz;
mod handshake;
mod harness;
mod hooks;
mod interchange;
mod lane;
mod leaf;
mod llm;
mod memory;
mod migration;
mod model;
mod navigate;
mod open;
mod real_input;
mod regressions;
mod repairing;
mod resources;
mod safety;
mod scale;
mod scripted;
mod sessions;
mod stack;
mod transport;
mod tree;
mod turns;
mod waiting;
mod writers;
