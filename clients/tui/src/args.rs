//! The command line.

use crate::shell_error::{ShellError, USAGE};
use crate::theme::{Background, ThemeName};
use clap::Parser;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  treelined-tui                  the sessions of this directory
  treelined-tui \"A tour\"         a session by its name
  treelined-tui --latest         the session with the last activity

It draws on a terminal. Scripts read a tree with treelined tree --json.
Exit codes: 0 done, 1 failed, 2 wrong arguments or several sessions fit, 3 not found.";

/// Shows conversations of AI agents as trees, in a terminal.
#[derive(Debug, Parser)]
#[command(name = "treelined-tui", version, about, after_help = EXAMPLES)]
pub struct Args {
    /// A session: its file, its id, its name, or the beginning of its id (4 characters or more); a folder shows the
    /// list of its sessions [default: the list of this directory]
    pub session: Option<String>,

    /// Open the session with the last activity, of this directory if it has a session
    #[arg(long, conflicts_with = "session")]
    pub latest: bool,

    /// Session directory
    #[arg(long, value_name = "DIR")]
    pub session_dir: Option<PathBuf>,

    /// Summarizer: outline, llm, command or none [default: the configuration of treelined]
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

    /// Background of the terminal [default: the answer of the terminal]
    #[arg(long, value_enum)]
    pub background: Option<Background>,

    /// Colours
    #[arg(long, value_enum)]
    pub theme: Option<ThemeName>,

    /// Refused: other commands have it, and this program draws on a terminal
    #[arg(long, hide = true)]
    pub json: bool,
}

impl Args {
    /// Fails if the program cannot do what is asked.
    pub fn check(&self) -> Result<(), ShellError> {
        match self.json {
            true => Err(ShellError::new(
                USAGE,
                "treelined-tui draws on a terminal, and prints no JSON",
                "treelined tree --json",
            )),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_a_valid_command() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }

    /// All other commands have `--json`. Here it was once an unexpected argument, and the error did not say what to
    /// use.
    #[test]
    fn json_is_refused_with_the_command_that_prints_it() {
        let check = |args: &[&str]| Args::parse_from(args).check();
        assert_eq!(check(&["treelined-tui", "--latest"]), Ok(()));
        let error = check(&["treelined-tui", "--json"]).unwrap_err();
        assert_eq!((error.code, &*error.remedy), (2, "treelined tree --json"));
    }
}
