//! The arguments: the options of every command, and the commands of the table of commands.

use super::help;
use super::options::Options;
pub(super) use super::table::Command;
use clap::Parser;
use std::ffi::OsString;

const ABOUT: &str = "\
Keeps the conversations of AI agents as trees, for any client.

Without a command it is a daemon: it reads JSON-RPC 2.0 from stdin, one message a line (or with \
Content-Length headers, as language servers do), and answers on stdout until stdin ends.";

const WORDS: &str = "\
SESSION is the path of a file, else an id, else a name, else the beginning of an id (4 characters or more). \
Without SESSION, a command takes the session of this directory with the last activity.
ENTRY is an id, else a label, else the beginning of an id (4 characters or more).
`treelined COMMAND --help` has the options of a command, with examples.

Exit codes: 0 done, 1 failed, 2 wrong arguments or several fit, 3 not found, 130 interrupted. Commands whose codes differ \
say so in their help.";

const ENVIRONMENT: &str = "
Environment:
  TREELINED_CONFIG       like --config
  TREELINED_SESSION_DIR  where sessions are kept
  TREELINED_SOCKET       the socket of the shared daemon
  TREELINED_IDLE_EXIT    like --idle-exit of serve
  TREELINED_LOG_SERVERS  like --log; the list of processes does not show its password
  TREELINED_LOG          what is logged to stderr: error, warn (default), info, debug, trace
  NO_COLOR, COLUMNS      no colours; width of what is drawn
  PAGER                  what shows long output at a terminal [default: less]; cat for none";

/// Keeps the conversations of AI agents as trees, for any client: JSON-RPC on stdin and stdout
#[derive(Debug, Parser)]
#[command(name = "treelined", version, long_about = ABOUT)]
#[command(after_help = WORDS, after_long_help = [WORDS, ENVIRONMENT].join("\n"))]
#[command(propagate_version = true, help_template = help::template())]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub options: Options,
}

/// The arguments of a daemon on stdio, which are only options. All other arguments are refused here, also `--help` and
/// `--version`.
#[derive(Debug, Parser)]
#[command(disable_help_flag = true)]
struct OptionsAlone {
    #[command(flatten)]
    options: Options,
}

impl Arguments {
    /// Reads the arguments of the process; the first one is the name of the program. If there are only options, as for
    /// a daemon on stdio, the commands are not made. Making them would take a quarter of the time in which the daemon
    /// starts.
    pub(crate) fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        let begins_with_option = words.get(1).is_none_or(is_option);
        let read = match begins_with_option.then(|| OptionsAlone::try_parse_from(words)) {
            Some(Ok(OptionsAlone { options })) => Self {
                command: None,
                options,
            },
            _ => Self::try_parse_from(words)?,
        };
        Ok(Self {
            options: read.options.with_environment(),
            ..read
        })
    }

    /// Whether an interrupt ends the command at once. Daemons end in order, and programs of other packages end by
    /// themselves.
    pub(super) fn ends_at_interrupt(&self) -> bool {
        let Some(command) = &self.command else {
            return false;
        };
        !matches!(
            command,
            Command::Serve(_)
                | Command::Connect(_)
                | Command::Web(_)
                | Command::Detach(_)
                | Command::Launch(_)
                | Command::Acp(_)
                | Command::Mcp(_)
                | Command::Setup(_)
                | Command::Files(_)
                | Command::Tui(_)
        )
    }

    /// Whether the command shows content of the session directory.
    pub(super) fn reads_sessions(&self) -> bool {
        matches!(
            self.command,
            Some(
                Command::List(_)
                    | Command::Show(_)
                    | Command::Tree(_)
                    | Command::Search(_)
                    | Command::Branches(_)
                    | Command::Compare(_)
                    | Command::Stats(_)
                    | Command::Usage(_)
                    | Command::Go(_)
                    | Command::Undo(_)
                    | Command::Redo(_)
                    | Command::Continue(_)
                    | Command::Label(_)
                    | Command::NameBranch(_)
                    | Command::Archive(_)
                    | Command::Btw(_)
                    | Command::Keep(_)
                    | Command::Unarchive(_)
                    | Command::Shed(_)
                    | Command::Unshed(_)
                    | Command::Name(_)
                    | Command::Tag(_)
                    | Command::Pin(_)
                    | Command::ArchiveSession(_)
                    | Command::Remove(_)
                    | Command::Erase(_)
                    | Command::Purge(_)
                    | Command::Du(_)
                    | Command::Mv(_)
                    | Command::Export(_)
                    | Command::Doctor(_)
                    | Command::Restore(_)
            )
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The start of a daemon once took 2.6 ms, a quarter of which was for the arguments of all commands. If no command
    /// is named, these arguments are not made. This must change nothing else.
    #[test]
    fn options_alone_are_read_as_they_are_beside_commands() {
        for line in [
            "",
            "--no-pager",
            "--session-dir list --durability os",
            "--session-dir=/x --summarizer outline --max-frame-bytes 2048",
            "--max-frame-bytes 1",
            "--durability nothing",
            "--session-dir",
            "--no-such-option",
            "--help",
            "-h",
            "--version",
            "--no-pager list --all",
            "list --no-pager",
            "lst",
            "serve --listen unix",
            "-- list",
        ] {
            let words: Vec<OsString> = ["treelined"]
                .into_iter()
                .chain(line.split_whitespace())
                .map(Into::into)
                .collect();
            let shown = |read: Result<Arguments, clap::Error>| match read {
                Ok(arguments) => format!("{arguments:?}"),
                Err(error) => error.render().to_string(),
            };
            let expected = shown(Arguments::try_parse_from(&words));
            assert_eq!(shown(Arguments::read(&words)), expected, "{line}");
        }
    }
}
