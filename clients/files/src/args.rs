//! The command line.

use crate::exclude::Limits;
use crate::navigate::Navigations;
use crate::space;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use treelined_client::{Client, DaemonArgs, OnFailure};

/// Saves the files of a folder at each turn of an agent, and restores them.
///
/// It is off until `on` is run in a folder. Files are saved beside your repository, which is only read. Files that a rule
/// leaves out, and new files over 2 MiB, are neither saved nor removed.
#[derive(Parser)]
#[command(name = "treelined-files", version)]
pub struct Args {
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Where files are saved [default: treelined/files in the state folder of the platform]
    #[arg(long, env = "TREELINED_FILES", value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// The space that stays free on the disk, in MiB
    #[arg(
        long,
        env = "TREELINED_FILES_FREE",
        value_name = "MIB",
        default_value_t = 5_120
    )]
    pub free: u32,
    #[command(subcommand)]
    pub command: Command,
}

impl Args {
    /// The limits of all roots.
    pub fn limits(&self) -> Limits {
        Limits {
            free: u64::from(self.free) << 20,
            ..Limits::USUAL
        }
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Begin to save the files of a folder; in a repository of git, of its whole working tree
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
        /// Delete the saved files
        #[arg(long)]
        delete: bool,
    },
    /// Save the files at the turns of all sessions, until interrupted
    Watch {
        /// Speak with the daemon on stdin and stdout, as its extension
        #[arg(long)]
        extension: bool,
        /// Ask at a navigation whether to restore the files too; the extension needs sessions = "all"
        #[arg(long, requires = "extension")]
        offer: bool,
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
        /// Also files that no turn of the session has changed
        #[arg(long)]
        all: bool,
    },
    /// Bring the files back to an entry; it shows the changes and asks
    Restore {
        #[command(flatten)]
        at: EntryArgs,
        /// Also files that no turn of the session has changed
        #[arg(long)]
        all: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Undo the last restore of a folder
    Undo {
        /// The folder
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Also files that have changed since the restore
        #[arg(long)]
        all: bool,
        /// Undo the last undo
        #[arg(long)]
        redo: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show the space that saved files take
    Du,
    /// Drop the oldest saved files of each folder until the rest takes at most this many bytes
    Prune {
        /// The most bytes
        #[arg(long, value_name = "BYTES", default_value_t = space::BUDGET)]
        budget: u64,
    },
}

#[derive(clap::Args)]
pub struct SessionArgs {
    /// The session by its id, the beginning of its id, or its file [default: the newest of the working directory]
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
}

#[derive(clap::Args)]
pub struct EntryArgs {
    /// The entry by its id, its label or the beginning of its id [default: the leaf]
    pub entry: Option<String>,
    #[command(flatten)]
    pub session: SessionArgs,
}

impl EntryArgs {
    pub fn named(&self) -> (Option<&str>, Option<&str>) {
        (self.session.session.as_deref(), self.entry.as_deref())
    }
}

impl Args {
    /// Connects to the daemon on stdin and stdout.
    pub async fn attach(&self, navigations: Option<&Navigations>) -> anyhow::Result<Client> {
        let builder = Client::builder();
        let mut builder = builder.client_info("treelined-files", env!("CARGO_PKG_VERSION"));
        if let Some(navigations) = navigations.cloned() {
            let answer = move |event, question| navigations.clone().answer(event, question);
            // The answer is the user's choice and not a guard, so a failure does not stop the navigation.
            builder = builder.answer_tree(answer).on_failure(OnFailure::Proceed);
        }
        let (daemon, to) = (tokio::io::stdin(), tokio::io::stdout());
        Ok(builder.attach(daemon, to).await?)
    }

    /// Connects to a daemon. `shared` connects to the shared daemon, whose notifications are needed.
    pub async fn client(&self, shared: bool) -> anyhow::Result<Client> {
        let mut daemon = self.daemon.clone();
        daemon.shared |= shared;
        let builder = daemon.builder();
        let builder = builder.client_info("treelined-files", env!("CARGO_PKG_VERSION"));
        Ok(builder.spawn().await?)
    }
}
