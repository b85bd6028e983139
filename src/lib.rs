//! treelined keeps the conversations of AI agents as trees, for any client: JSON-RPC on stdin and
//! stdout, one append-only JSONL file per session.
//!
//! The map, in reading order: the modules. README.md has the same list with the imports of each.
//!
//! Words:
//! - `error`: errors as clients see them, and the one table of their codes
//! - `budget`: what the daemon keeps for speed, and at most how many bytes of it
//! - `id`: ids of sessions and entries, and the seam to clock and randomness
//! - `clock`: the machine's clock and randomness; new session ids
//! - `timestamp`: instants, as text and as milliseconds
//! - `bytes`: plain fields of cache files
//! - `lock`: mutexes without poisoning
//! - `parallel`: maps ordered work on several threads
//! - `blocking`: runs work that may wait on a blocking thread
//! - `cancel`: cancels requests that wait
//! - `json`: raw JSON, read and edited without being re-serialized
//! - `shape`: the members of messages, by role, for checks and schema
//! - `terminal`: makes text safe for a terminal
//! - `name`: labels and session names on one line
//! - `entry`: one line of a session as plain data
//!
//! File:
//! - `os`: files, descriptors, processes and programs
//! - `cache`: files kept only for speed: written atomically, checked when read
//! - `log`: one session's file: reads, diagnostics, appends, migrations
//! - `durability`: the failures that an answered append survives
//! - `store`: the session directory: its rows, its trash and its watcher
//!
//! Tree:
//! - `tree`: parents, children, leaf, labels, moves and branches of one session
//! - `view`: the tree as rows for `get_tree`
//! - `context`: the messages that a model sees on a path
//! - `stats`: messages, tokens and cost of a session
//! - `tools`: the well-known tools of agents: main argument, files read and changed
//! - `search`: finds words and patterns in the text of entries
//!
//! Operations:
//! - `flow`: plans the lines that each operation writes
//! - `summary`: requests for summaries, prompts, the embedded outline, and the frame of a summary
//! - `summarizer`: runs the configured summarizer: outline, program or model
//! - `session`: log and tree together; the only code that changes both
//!
//! Clients:
//! - `wire`: every type that crosses the pipe
//! - `schema`: the documents made from `wire` and the method table
//! - `ask`: questions to clients, with one outcome each
//! - `stdio`: frames, and the one queue of all output
//! - `hooks`: the user's programs that answer and hear events
//! - `daemon`: what all connections share: open sessions, one ordered queue of requests each, notifications, questions
//! - `rpc`: the method table, and the way from a frame to a handler and back
//!
//! Program:
//! - `config`: settings: command line, environment, configuration file
//! - `cli`: arguments, the daemon, and the other commands
//!
//! README.md follows one request through them ("The source").

pub mod ask;
pub mod blocking;
pub mod budget;
pub mod bytes;
pub mod cache;
pub mod cancel;
pub mod cli;
pub mod clock;
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
pub(crate) mod parallel;
pub mod rpc;
pub mod schema;
pub mod search;
pub mod session;
pub mod shape;
pub mod stats;
pub mod stdio;
pub mod store;
pub mod summarizer;
pub mod summary;
pub mod terminal;
pub mod timestamp;
pub mod tools;
pub mod tree;
pub mod view;
pub mod wire;
