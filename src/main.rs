//! treelined keeps the conversations of AI agents as trees, for any client: JSON-RPC on stdin and
//! stdout, one append-only JSONL file per session.
//!
//! The program has its arguments and commands in [`cli`], its settings in [`config`], and the parts that it gives the
//! daemon in [`wiring`]. The rest is in the crates of this folder; README.md ("The source") lists them in reading order,
//! and follows one request through them.

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
mod wiring;

use std::process::ExitCode;

fn main() -> ExitCode {
    if cli::completes() {
        return ExitCode::SUCCESS;
    }
    let words: Vec<_> = std::env::args_os().collect();
    match cli::Arguments::read(&words) {
        Ok(arguments) => cli::run(arguments),
        Err(error) => cli::refuse(error),
    }
}
