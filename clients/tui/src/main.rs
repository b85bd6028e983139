//! The program `treelined-tui`.

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use treelined_tui::{app, args::Args};

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(app::run(args)),
        Err(error) => Err(error.to_string()),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            // If stderr is closed too, the exit code still reports the failure.
            let _written = writeln!(std::io::stderr(), "treelined-tui: {error}");
            ExitCode::FAILURE
        }
    }
}
