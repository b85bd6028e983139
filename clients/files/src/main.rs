//! The program `treelined-files`.

mod apply;
mod commands;
mod exclude;
mod follow;
mod git;
mod name;
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

use anyhow::Context;
use clap::{Parser, Subcommand};
use state::State;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use treelined_client::{Client, DaemonArgs};

/// Saves the files of a folder at each turn of an agent, and brings them back.
///
/// It is off until `on` is run in a folder. Files are saved beside your repository, which is only read. Files that a rule
/// leaves out, and new files over 2 MiB, are neither saved nor removed.
#[derive(Parser)]
#[command(name = "treelined-files", version)]
struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Where files are saved [default: treelined/files in the platform's folder for states]
    #[arg(long, env = "TREELINED_FILES", value_name = "FOLDER")]
    state: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Begin to save the files of a folder: the working tree of git that holds it, else the folder
    On {
        /// The folder
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Stop saving the files of a folder
    Off {
        /// The folder
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Delete what is saved
        #[arg(long)]
        delete: bool,
    },
    /// Save the files at the turns of all sessions, until it is ended
    Watch {
        /// Speak with the daemon on stdin and stdout, as its extension
        #[arg(long)]
        extension: bool,
    },
    /// Save the files now, at the last message of a session
    Save {
        #[command(flatten)]
        session: SessionArgs,
    },
    /// Write the files as they were at an entry into another folder
    Open {
        #[command(flatten)]
        at: EntryArgs,
        /// The folder; it does not exist or is empty
        #[arg(long, value_name = "DIR")]
        into: PathBuf,
    },
    /// Show what a restore would change
    Diff {
        #[command(flatten)]
        at: EntryArgs,
        /// Files that no turn of the session has changed, too
        #[arg(long)]
        all: bool,
    },
    /// Bring the files back to an entry; it shows the changes and asks
    Restore {
        #[command(flatten)]
        at: EntryArgs,
        /// Files that no turn of the session has changed, too
        #[arg(long)]
        all: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Take the last restore of a folder back
    Undo {
        /// The folder
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show the space that saved files take
    Du,
    /// Drop the oldest saved files until a folder's take at most a number of bytes
    Prune {
        /// The bytes
        #[arg(long, value_name = "BYTES", default_value_t = space::BUDGET)]
        budget: u64,
    },
}

#[derive(clap::Args)]
struct SessionArgs {
    /// The session by its id, the beginning of it, or its file [default: the newest of the working directory]
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
}

#[derive(clap::Args)]
struct EntryArgs {
    /// The entry by its id, its label or the beginning of its id [default: the leaf]
    entry: Option<String>,
    #[command(flatten)]
    session: SessionArgs,
}

impl EntryArgs {
    fn named(&self) -> (Option<&str>, Option<&str>) {
        (self.session.session.as_deref(), self.entry.as_deref())
    }
}

impl Args {
    /// A client of the daemon at stdin and stdout.
    async fn attach(&self) -> anyhow::Result<Client> {
        let builder = Client::builder();
        let builder = builder.client_info("treelined-files", env!("CARGO_PKG_VERSION"));
        let (daemon, to) = (tokio::io::stdin(), tokio::io::stdout());
        Ok(builder.attach(daemon, to).await?)
    }

    /// A client of a daemon; of the shared one, if its notifications are needed.
    async fn client(&self, shared: bool) -> anyhow::Result<Client> {
        let mut daemon = self.daemon.clone();
        daemon.shared |= shared;
        let builder = daemon.builder();
        let builder = builder.client_info("treelined-files", env!("CARGO_PKG_VERSION"));
        Ok(builder.spawn().await?)
    }
}

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
    let state = State::new(args.state.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.context("start the runtime")?;
    match &args.command {
        Command::On { folder } => commands::on(&state, folder)?,
        Command::Off { folder, delete } => commands::off(&state, folder, *delete)?,
        Command::Watch { extension } => {
            runtime.block_on(commands::watch(args, &state, *extension))?;
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
        Command::Undo { folder, yes } => return commands::undo(&state, folder, *yes),
        Command::Du => commands::du(&state)?,
        Command::Prune { budget } => commands::prune(&state, *budget)?,
    }
    Ok(ExitCode::SUCCESS)
}
