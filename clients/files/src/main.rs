//! The program `treelined-files`.

mod apply;
mod args;
mod at;
mod changes;
mod commands;
mod exclude;
mod follow;
mod foreign;
mod git;
mod held;
mod journal;
mod left_out;
mod name;
mod navigate;
mod offer;
mod open;
mod place;
mod record;
mod restore;
mod session;
mod show;
mod snapshot;
mod space;
mod state;
#[cfg(test)]
mod tests;
mod tidy;
mod undo;

use anyhow::Context;
use args::{Args, Command};
use clap::Parser;
use state::State;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            // If stderr is closed too, the exit code still reports the failure.
            let error = show::safe(&format!("{error:#}"));
            let _written = writeln!(std::io::stderr(), "treelined-files: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let state = State::new(args.state.as_deref(), args.limits())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.context("start the runtime")?;
    match &args.command {
        Command::On { folder } => commands::on(&state, folder)?,
        Command::Off { folder, delete } => commands::off(&state, folder, *delete)?,
        Command::Watch { extension, offer } => {
            runtime.block_on(commands::watch(args, &state, *extension, *offer))?;
        }
        Command::Save { session } => {
            let session = session.session.as_deref();
            runtime.block_on(commands::save(args, &state, session))?;
        }
        Command::Open { at, into } => {
            runtime.block_on(commands::open(args, &state, at.named(), into))?;
        }
        Command::Diff { at, all } => {
            runtime.block_on(commands::diff(args, &state, at.named(), *all))?;
        }
        Command::Restore { at, all, yes } => {
            let choices = (*all, *yes);
            return runtime.block_on(commands::restore(args, &state, at.named(), choices));
        }
        Command::Undo {
            folder,
            all,
            redo,
            yes,
        } => return commands::undo(&state, folder, (*redo, *all, *yes)),
        Command::Du => commands::du(&state)?,
        Command::Prune { budget } => commands::prune(&state, *budget)?,
    }
    Ok(ExitCode::SUCCESS)
}
