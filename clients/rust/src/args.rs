//! The options of a program that starts a daemon, for clap.

use crate::builder::Builder;
use crate::client::Client;
use std::path::PathBuf;

/// The options that say which daemon a program uses. They are flattened into the arguments of the
/// program.
#[derive(Debug, Clone, clap::Args)]
pub struct DaemonArgs {
    /// The session directory
    #[arg(long, value_name = "FOLDER")]
    pub session_dir: Option<PathBuf>,
    /// Use the shared daemon, and start one if none runs
    #[arg(long)]
    pub shared: bool,
    /// The program of the daemon
    #[arg(
        long,
        env = "TREELINED_BIN",
        value_name = "PROGRAM",
        default_value = "treelined"
    )]
    pub daemon: PathBuf,
}

impl DaemonArgs {
    /// Returns a builder for this daemon.
    pub fn builder(&self) -> Builder {
        let mut builder = Client::builder().program(&self.daemon);
        if let Some(folder) = &self.session_dir {
            builder = builder.session_dir(folder);
        }
        match self.shared {
            true => builder.shared(),
            false => builder,
        }
    }
}
