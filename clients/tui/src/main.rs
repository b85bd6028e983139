//! The program `treelined-tui`.

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use treelined_tui::app;
use treelined_tui::args::Args;
use treelined_tui::shell_error::ShellError;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) if error.use_stderr() => {
            let error = ShellError::of_usage(&error);
            report(&error);
            return ExitCode::from(error.code);
        }
        // This is the help or the version, and not an error. If the reader has left, it has read
        // enough.
        Err(help) => {
            let _unread = help.print();
            return ExitCode::SUCCESS;
        }
    };
    if let Err(error) = args.check() {
        report(&error);
        return ExitCode::from(error.code);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(app::run(args)),
        Err(error) => Err(ShellError::from(error.to_string())),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            report(&error);
            ExitCode::from(error.code)
        }
    }
}

fn report(error: &ShellError) {
    // If stderr is closed too, the exit code still reports the failure.
    let _written = writeln!(std::io::stderr(), "{error}");
}
