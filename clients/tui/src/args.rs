//! The command line.

use crate::message::Target;
use crate::theme::Background;
use clap::Parser;
use std::path::{Path, PathBuf};

/// The conversations of AI agents as trees, in a terminal.
#[derive(Debug, Parser)]
#[command(name = "treelined-tui", version, about)]
pub struct Args {
    /// A session's id, or the path of its file; without it the list of sessions.
    pub session: Option<String>,

    /// Open the session that was used last: of this directory if there is one.
    #[arg(long, conflicts_with = "session")]
    pub latest: bool,

    /// The session directory.
    #[arg(long, value_name = "DIR")]
    pub session_dir: Option<PathBuf>,

    /// Who writes summaries: outline, llm or command; treelined's own configuration if left out.
    #[arg(long, value_name = "WHO")]
    pub summarizer: Option<String>,

    /// The daemon's program.
    #[arg(long, value_name = "PROGRAM", env = "TREELINED_BIN")]
    pub daemon: Option<PathBuf>,

    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// What is behind the text; the terminal is asked if left out.
    #[arg(long, value_enum)]
    pub background: Option<Background>,
}

impl Args {
    /// What to open.
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

/// Whether the user means a file: ids have neither separators nor this ending.
fn is_path(given: &str) -> bool {
    given.contains('/') || given.ends_with(".jsonl") || Path::new(given).is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_ids_are_told_apart() {
        let target = |args: &[&str]| Args::parse_from([&["treelined-tui"], args].concat()).target();
        assert_eq!(target(&[]), None);
        assert_eq!(target(&["--latest"]), Some(Target::Latest));
        assert_eq!(target(&["0198-a.b"]), Some(Target::Id("0198-a.b".into())));
        assert_eq!(target(&["/s/x"]), Some(Target::Path("/s/x".into())));
        assert!(matches!(target(&["x.jsonl"]), Some(Target::Path(path)) if path.starts_with('/')));
    }
}
