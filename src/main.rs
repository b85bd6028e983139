//! Arguments, logging to stderr, run, exit code. Everything else is the library's.

use clap::Parser;
use std::process::ExitCode;
use treelined::cli::Arguments;

/// The C library's allocator keeps what a large answer took, on each thread that made one; this one gives
/// it back to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => treelined::cli::run(arguments),
        Err(error) => treelined::cli::refuse(error),
    }
}
