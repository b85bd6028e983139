//! The arguments: the options, and the commands with theirs.

#[cfg(feature = "nats")]
use super::fleet;
use super::options::Options;
use super::{
    call, completions, connect, demo, doctor, documents, export, import_request, label,
    late_writes, list, migrate, package, restore, search, serve, settings, shared, show, status,
    stop, tree, web,
};
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use treelined_files::log::late_writes::CARRY_OVER_COMMAND;
use treelined_files::os::running::LAUNCH_COMMAND;

const ABOUT: &str = "\
Keeps the conversations of AI agents as trees, for any client.

Without a command it is a daemon: it reads JSON-RPC 2.0 from stdin, one message a line (or with
Content-Length headers, as language servers do), and answers on stdout until stdin ends.";

const EXAMPLES: &str = "\
Examples:
  treelined demo                             a conversation of the kind, offline
  treelined import                           bring in the conversations of other tools
  treelined list --all                       the sessions of all directories
  treelined tree --latest                    draw the newest session of this directory
  treelined show \"A tour\"                   read a branch of a session
  treelined search build cache               find words in all sessions
  treelined export --latest --html -o a.html a page with the newest session of this directory
  treelined web                              show the sessions in a browser, live
  treelined call list_sessions --pretty      one call of the protocol
  treelined doctor --latest                  look for damage

SESSION is the path of a file, else an id, else a name, else the beginning of an id (4 characters
or more); --latest is the session of this directory with the last activity.

Exit codes: 0 done, 1 failed, 2 wrong arguments or several sessions fit, 3 not found,
130 interrupted. Commands whose codes differ say so in their help.

Environment:
  TREELINED_SESSION_DIR  where sessions are kept
  TREELINED_SOCKET       the socket of the shared daemon
  TREELINED_IDLE_EXIT    as --idle-exit of serve
  TREELINED_LOG_SERVERS  as --log; its password is not in the list of processes
  TREELINED_LOG          what is logged to stderr: error, warn (default), info, debug, trace
  NO_COLOR, COLUMNS      no colours; width of what is drawn
  PAGER                  what shows long output at a terminal [default: less]; cat for none";

/// Keeps the conversations of AI agents as trees, for any client: JSON-RPC on stdin and stdout
#[derive(Debug, Parser)]
#[command(name = "treelined", version, long_about = ABOUT, after_long_help = EXAMPLES)]
#[command(propagate_version = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub options: Options,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Speak JSON-RPC on stdin and stdout (the default), or on sockets
    Serve(serve::ServeArgs),
    /// Speak JSON-RPC with the shared daemon, on stdin and stdout
    Connect(connect::Connect),
    /// Show the sessions in a browser, live, with the shared daemon if one runs
    Web(web::Web),
    /// Show the shared daemon; exit code 3 if none runs
    Status(status::Status),
    /// End the shared daemon; exit code 3 if none runs
    Stop(stop::Stop),
    /// Leave the terminal and run this program with these arguments
    #[command(hide = true)]
    Detach(shared::Detach),
    /// List the sessions of this directory, or of all
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Read a branch of a session, from the first message to the last
    Show(show::ShowArgs),
    /// Make one call and print its result
    Call(call::CallArgs),
    /// Draw a session
    Tree(tree::TreeArgs),
    /// Find words in the entries of all sessions; exit code 1 if nothing is found
    Search(search::SearchArgs),
    /// Label an entry of a session, or remove its label
    Label(label::LabelArgs),
    /// Check session files and report what they contain; exit code 1 if anything is wrong
    Doctor(doctor::Doctor),
    /// Rewrite a session file of version 1 or 2 as version 3; the original is kept beside it
    Migrate(migrate::Migrate),
    /// Import the conversations of Claude Code, Codex, opencode, Gemini CLI, goose and pi
    Import(import_request::ImportArgs),
    /// Record what an ACP editor and an ACP agent say (the package treelined-acp)
    Acp(package::PackageArgs),
    /// Serve the conversations of this directory to an agent, over MCP (the package treelined-mcp)
    Mcp(package::PackageArgs),
    /// Write a session as a page, Markdown, text or a session file
    Export(export::ExportArgs),
    /// List deleted sessions, or bring one back
    Restore(restore::Restore),
    /// Send sessions to NATS JetStream
    #[cfg(feature = "nats")]
    Push(fleet::PushArgs),
    /// Bring sessions from NATS JetStream
    #[cfg(feature = "nats")]
    Pull(fleet::PullArgs),
    /// Write the JSON Schemas, the method list, the OpenRPC document and reference.md of this daemon
    Schema(documents::Schema),
    /// Write the man pages
    Man(documents::Man),
    /// Print a script that completes commands, methods and sessions in a shell
    Completions(completions::Completions),
    /// Print the settings in force and the source of each
    Config(settings::ConfigArgs),
    /// Show a conversation with a branch, offline
    Demo(demo::DemoArgs),
    /// Go on for a daemon that has ended while others wrote to a replaced file
    #[command(hide = true, name = CARRY_OVER_COMMAND)]
    CarryOver(late_writes::CarryOver),
    /// Become the program of an extension
    #[command(hide = true, name = LAUNCH_COMMAND)]
    Launch(LaunchArgs),
}

/// The arguments of a daemon on stdio. All others are wrong for it, help and version too.
#[derive(Debug, Parser)]
#[command(disable_help_flag = true)]
struct OptionsAlone {
    #[command(flatten)]
    options: Options,
}

#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// The process of the daemon
    pub parent: u32,
    #[arg(last = true, required = true)]
    pub argv: Vec<OsString>,
}

impl Arguments {
    /// Reads the arguments of the process, of which the first is its name. Those of a daemon on stdio are options
    /// alone, which are read without the commands: to make all commands takes a quarter of its start.
    pub(crate) fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        let begins_with_option = words.get(1).is_none_or(is_option);
        match begins_with_option.then(|| OptionsAlone::try_parse_from(words)) {
            Some(Ok(OptionsAlone { options })) => Ok(Self {
                command: None,
                options,
            }),
            _ => Self::try_parse_from(words),
        }
    }

    /// Whether an interrupt ends the command at once. Daemons end in order, and other programs by themselves.
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
        )
    }

    /// Whether the command shows what the session directory has.
    pub(super) fn reads_sessions(&self) -> bool {
        matches!(
            self.command,
            Some(
                Command::List(_)
                    | Command::Show(_)
                    | Command::Tree(_)
                    | Command::Search(_)
                    | Command::Label(_)
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

    /// The start of a daemon took 2.6 ms, of which the arguments of all commands were a quarter. They are left out where
    /// no command is named, which must change nothing else.
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
