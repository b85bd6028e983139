//! treelined keeps the conversations of AI agents as trees, for any client: JSON-RPC on stdin and
//! stdout, one append-only JSONL file per session.
//!
//! The map, in reading order:
//!
//! - **The words.** [`error`]: what can go wrong, and the one table of codes. [`budget`]: what is kept, and
//!   how many bytes of it. [`id`]: ids, and the seam to clock and randomness. [`timestamp`]: instants.
//!   [`shape`]: what a message looks like, by role. [`json`]: raw JSON, read and edited without being
//!   re-serialized. [`terminal`]: text made safe to show. [`name`]: labels and session names on one line.
//!   [`entry`]: one line of a session as plain data. [`bytes`]: plain fields of cache files. [`lock`]: mutexes.
//! - **The file.** [`os`]: files, descriptors and processes, safely. [`cache`]: files kept only for speed.
//!   [`log`]: one session's file: reading, diagnostics, appending, migrating. [`durability`]: how much of a
//!   failure an append survives. [`store`]: the directory of all sessions, its rows, its trash and its watcher.
//! - **The tree**, pure. [`tree`]: parents, children, leaf, labels, moves, branches. [`view`]: the tree as clients
//!   look at it. [`context`]: a path as a model sees it. [`stats`]: what it cost. [`tools`]: what is known of the
//!   tools that agents call. [`search`]: finding text in entries.
//! - **What is done with it.** [`flow`]: what each operation writes, planned and pure. [`summarizer`]: who
//!   writes summaries. [`session`]: log and tree together, the only code that changes both.
//! - **The conversation with clients.** [`wire`]: every type that crosses the pipe. [`schema`]: the
//!   documents made from them. [`ask`]: questions to clients, one outcome each. [`cancel`]: stopping what
//!   waits. [`daemon`]: the open sessions, and one queue of requests each. [`rpc`]: the method table, and the way from a frame to a session and back. [`stdio`]: frames,
//!   and the one queue of everything that goes out.
//! - **The program.** [`cli`]: arguments, serving, and the commands. [`config`]: the configuration file.
//!   [`hooks`]: programs of the user's that answer and hear events.
//!
//! One call through the house, `navigate_tree`: [`stdio`] cuts a frame; [`rpc`] finds the method, decodes
//! its params and waits in its session's queue ([`daemon`]); [`flow`] plans; [`ask`] puts the question and waits outside
//! the queue; [`flow`] makes lines of the answer and the summary; [`session`] checks that the leaf still
//! stands where it did and commits them in one write; [`rpc`] tells everyone, then answers.

pub mod ask;
pub mod budget;
pub mod bytes;
pub mod cache;
pub mod cancel;
pub mod cli;
pub mod config;
pub mod context;
pub mod daemon;
pub mod durability;
pub mod entry;
pub mod error;
pub mod flow;
pub mod hooks;
pub mod id;
pub mod json;
pub mod lock;
pub mod log;
pub mod name;
pub mod os;
pub mod rpc;
pub mod schema;
pub mod search;
pub mod session;
pub mod shape;
pub mod stats;
pub mod stdio;
pub mod store;
pub mod summarizer;
pub mod terminal;
pub mod timestamp;
pub mod tools;
pub mod tree;
pub mod view;
pub mod wire;
