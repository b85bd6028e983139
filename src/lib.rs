//! treelined keeps the conversations of AI agents as trees, for any client: JSON-RPC on stdin and
//! stdout, one append-only JSONL file per session.
//!
//! The map, in reading order:
//!
//! - **The words.** [`error`]: what can go wrong, and the one table of codes. [`budget`]: what is kept, and
//!   how many bytes of it. [`id`]: ids, and the seam to clock and randomness. [`timestamp`]: instants.
//!   [`shape`]: what a message looks like, by role. [`json`]: raw JSON, read and edited without being
//!   re-serialized. [`terminal`]: text made safe to show. [`name`]: labels and session names on one line.
//! - **The file.** [`log`]: one session's file: scanning, diagnostics, appending, migrating. [`sync`]:
//!   when what is written is durable. [`store`]: the directory of all sessions. [`listing`]: a file's
//!   row in a list. [`cache`]: what is kept on disk only to be quick. [`catalogue`]: those rows, kept.
//!   [`watch`]: hearing that others have written.
//! - **The tree**, pure. [`tree`]: parents, children, leaf, labels, moves. [`branches`]: where they end
//!   and fork. [`view`]: the tree as clients look at it. [`context`]: a path as a model sees it.
//!   [`stats`]: what it cost. [`tools`]: what is known of the tools that agents call.
//!   [`search`]: finding text in entries.
//! - **What is done with it.** [`flow`]: what each operation writes, planned and pure. [`summarizer`]: who
//!   writes summaries. [`session`]: log and tree together, the only code that changes both.
//! - **The conversation with clients.** [`wire`]: every type that crosses the pipe. [`schema`]: the
//!   documents made from them. [`ask`]: questions to clients, one outcome each. [`cancel`]: stopping what
//!   waits. [`rpc`]: the method table, and the way from a frame to a session and back. [`stdio`]: frames,
//!   and the one queue of everything that goes out. [`process`]: noticing that the client is dead.
//! - **The program.** [`cli`]: arguments, serving, and the commands. [`config`]: the configuration file.
//!   [`hooks`]: programs of the user's that answer and hear events. [`program`]: running them.
//!
//! One call through the house, `navigate_tree`: [`stdio`] cuts a frame; [`rpc`] finds the method, decodes
//! its params and takes its session's turn; [`flow`] plans; [`ask`] puts the question and waits without
//! the turn; [`flow`] makes lines of the answer and the summary; [`session`] checks that the leaf still
//! stands where it did and commits them in one write; [`rpc`] tells everyone, then answers.

pub mod ask;
pub mod branches;
pub mod budget;
pub mod cache;
pub mod cancel;
pub mod catalogue;
pub mod cli;
pub mod config;
pub mod context;
pub mod error;
pub mod flow;
pub mod hooks;
pub mod id;
pub mod json;
pub mod listing;
pub mod log;
pub mod name;
pub mod process;
pub mod program;
pub mod rpc;
pub mod schema;
pub mod search;
pub mod session;
pub mod shape;
pub mod stats;
pub mod stdio;
pub mod store;
pub mod summarizer;
pub mod sync;
pub mod terminal;
pub mod timestamp;
pub mod tools;
pub mod tree;
pub mod view;
pub mod watch;
pub mod wire;
