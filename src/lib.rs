//! treelined keeps the conversations of AI agents as trees, for any client: JSON-RPC on stdin and
//! stdout, one append-only JSONL file per session.
//!
//! The modules, in reading order. README.md has the same list with the imports of each.
//!
//! Words:
//! - `error`: errors as clients see them, and the one table of their codes
//! - `budget`: what the daemon keeps for speed, and at most how many bytes of it
//! - `id`: ids of sessions and entries, and the interface to clock and randomness
//! - `clock`: the machine's clock and randomness; new session ids
//! - `timestamp`: instants, as text and as milliseconds
//! - `bytes`: parts of byte strings, and plain fields of cache files
//! - `lock`: mutexes without poisoning
//! - `parallel`: maps ordered work on several threads
//! - `blocking`: runs work that may wait on a blocking thread
//! - `cancel`: cancels requests that wait
//! - `json`: raw JSON, read and edited without being re-serialized
//! - `shape`: the members of messages, by role, for checks and schema
//! - `terminal`: makes text safe for a terminal
//! - `name`: labels and session names on one line
//! - `team`: the sessions of a log as other machines see them
//! - `suggest`: finds the known name that somebody probably meant by a wrong one
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
//! - `renderers`: how custom messages look: templates over the members of an entry
//! - `render`: entries as blocks to show: HTML of Markdown, code, diffs, images, tool calls
//! - `context`: the messages that a model sees on a path
//! - `stats`: messages, tokens and cost of a session
//! - `tools`: the well-known tools of agents: main argument, files read and changed
//! - `search`: finds words and patterns in the text of entries
//! - `redact`: replaces the secrets in entries; the crate of `clients/redact` finds them
//!
//! Operations:
//! - `import`: the conversations of other tools as nodes and entries
//! - `importer`: finds the sources of other tools, keeps their bytes and writes the sessions
//! - `flow`: plans the lines that each operation writes
//! - `summary`: requests for summaries, prompts, the embedded outline, and the frame of a summary
//! - `summarizer`: runs the configured summarizer: outline, program or model
//! - `session`: log and tree together; the only code that changes both
//! - `session_search`: searches the sessions of the session directory
//! - `session_render`: renders entries of a session: reads their bodies, and finds the results of calls
//!
//! Clients:
//! - `wire`: every type that crosses the pipe
//! - `schema`: the documents made from `wire` and the method table
//! - `ask`: questions to clients, with one outcome each
//! - `peers`: questions of one connection to others, with one outcome each
//! - `commands`: the commands that connections offer: names, limits and owners
//! - `people`: questions and messages to a person: limits, and the answers that fit
//! - `stdio`: frames, and the one queue of all output
//! - `hooks`: the user's programs that answer and receive events
//! - `extensions`: clients that the daemon starts, restarts and ends
//! - `daemon`: what all connections share: open sessions, one ordered queue of requests each, notifications, questions
//! - `page`: the page of `clients/web`, and the policy under which browsers run it
//! - `export`: sessions as pages, Markdown, text and session files
//! - `rpc`: the method table, and the way from a frame to a handler and back
//!
//! Program:
//! - `web`: the page and the WebSocket for browsers
//! - `endpoint`: the shared daemon's socket: its place, lock, runtime file and users
//! - `config`: settings: command line, environment, configuration file
//! - `fleet`: sessions on NATS JetStream, with the feature `nats`
//! - `serve`: connections on stdio, sockets and the WebSocket, their threads, and the end of the daemon
//! - `cli`: arguments, and the commands
//!
//! README.md follows one request through them ("The source").

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

mod cli;
mod config;
mod imports;

use std::process::ExitCode;

/// Runs the program with the arguments of the process, and returns its exit code.
pub fn run() -> ExitCode {
    if cli::completes() {
        return ExitCode::SUCCESS;
    }
    let words: Vec<_> = std::env::args_os().collect();
    match cli::Arguments::read(&words) {
        Ok(arguments) => cli::run(arguments),
        Err(error) => cli::refuse(error),
    }
}
