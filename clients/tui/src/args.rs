//! The command line.

use crate::message::Target;
use crate::theme::{Background, ThemeName};
use clap::Parser;
use std::path::{Path, PathBuf};

/// Shows conversations of AI agents as trees, in a terminal.
#[derive(Debug, Parser)]
#[command(name = "treelined-tui", version, about)]
pub struct Args {
    /// Id of a session, or path of its file; without it the program shows the list of sessions
    pub session: Option<String>,

    /// Open the session used last, one of this directory if there is any
    #[arg(long, conflicts_with = "session")]
    pub latest: bool,

    /// Session directory
    #[arg(long, value_name = "DIR")]
    pub session_dir: Option<PathBuf>,

    /// Summarizer: outline, llm or command; treelined's own configuration if left out
    #[arg(long, value_name = "WHO")]
    pub summarizer: Option<String>,

    /// Program of the daemon
    #[arg(long, value_name = "PROGRAM", env = "TREELINED_BIN")]
    pub daemon: Option<PathBuf>,

    /// Share the daemon of the session directory with other clients; it is started if none runs
    #[arg(long)]
    pub shared: bool,

    /// Share the daemon of this socket
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,

    /// Configuration file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Background of the terminal; the terminal is asked if left out
    #[arg(long, value_enum)]
    pub background: Option<Background>,

    /// Colours
    #[arg(long, value_enum)]
    pub theme: Option<ThemeName>,
}

impl Args {
    /// Returns the session to open first; `None` for the list.
    pub fn target(&self) -> Option<Target> {
        match &self.session {
            _ if self.latest => Some(Target::Latest),
            Some(given) if is_path(given) => {
                let path = std::path::absolute(given).unwrap_or_else(|_| given.into());
                Some(Target::Path(path.to_string_lossy().into_owned()))
            }
            Some(given) => Some(Target::Id(given.clone())),
            None => None,
        }
    }
}

/// Returns whether the argument is a path. Ids have no separators and do not end in `.jsonl`.
fn is_path(given: &str) -> bool {
    given.contains('/') || given.ends_with(".jsonl") || Path::new(given).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_a_valid_command() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn paths_and_ids_are_distinguished() {
        let target = |args: &[&str]| Args::parse_from([&["treelined-tui"], args].concat()).target();
        assert_eq!(target(&[]), None);
        assert_eq!(target(&["--latest"]), Some(Target::Latest));
        assert_eq!(target(&["0198-a.b"]), Some(Target::Id("0198-a.b".into())));
        assert_eq!(target(&["/s/x"]), Some(Target::Path("/s/x".into())));
        assert!(matches!(target(&["x.jsonl"]), Some(Target::Path(path)) if path.starts_with('/')));
    }
}
