//! Black-box tests of the daemon: the real program over real pipes, checked against the documents in
//! `schema/`. Each file or folder has one subject. `harness` runs the program, `fixture` makes its input.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a failed step fails the test and names its line"
)]

mod access;
mod across;
mod append;
mod ask;
mod born;
mod boundaries;
mod branch_summary;
mod cache;
mod cli;
mod command_summarizer;
mod commands;
mod compact;
mod config;
mod connections;
mod context;
mod continuing;
mod crash;
mod creating;
mod damage;
mod deleting;
mod documents;
mod endpoint;
mod errors;
mod export;
mod extensions;
mod faults;
mod fixture;
mod fork;
mod fork_faults;
mod fork_tree;
mod fuzz;
mod gates;
mod guide;
mod handshake;
mod harness;
mod hooks;
mod import;
mod interchange;
mod leaf;
mod listing;
mod llm;
mod memory;
mod methods;
mod migration;
mod model;
mod navigate;
mod old_versions;
mod open;
mod order;
mod paths;
mod people;
mod permissions;
mod readme;
mod render;
mod renderers;
mod repairing;
mod resources;
mod rights;
mod scale;
mod search;
mod search_index;
mod sessions;
mod sorting;
mod speed_rows;
mod stack;
mod steps;
mod teams;
mod transport;
mod tree;
mod turns;
mod unseen;
mod usage;
mod web;
mod words_of_rows;
mod writers;

use treelined_core::test_support::{random, sample};
