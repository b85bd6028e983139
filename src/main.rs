//! Arguments, logging to stderr, run, exit code. Everything else is the library's.

use clap::Parser;
use std::process::ExitCode;
use treelined::cli::Arguments;

fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => treelined::cli::run(arguments),
        Err(error) => treelined::cli::refuse(error),
    }
}
