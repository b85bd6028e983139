//! The command line: arguments, the environment, logging and exit codes.
//!
//! In reading order: [`serve`] is the daemon. [`daemon`] runs one as a child and is its client, for [`call`],
//! [`list`], [`show`], [`tree`], [`search`], [`label`], [`restore`] and [`demo`]. [`doctor`] and [`migrate`] open a file without a daemon.
//! [`connect`], [`web`], [`status`] and [`stop`] find the shared daemon by [`shared`].
//! `fleet` copies sessions to a stream and from it.
//! [`documents`] writes generated files. [`screen`], [`drawing`], [`progress`] and [`pretty`] format output.
//! [`session_choice`] finds the session that a person names, [`completions`] offers them to a shell. [`failure`] shows
//! errors, and has the exit codes; [`usage`] makes them of wrong arguments, and shows the help. [`interrupt`] ends a
//! command.

mod bash;
mod call;
mod completions;
mod connect;
mod daemon;
mod demo;
mod doctor;
mod doctor_import;
mod doctor_json;
mod doctor_origin;
mod doctor_repair;
mod documents;
mod drawing;
mod export;
mod failure;
#[cfg(feature = "nats")]
mod fleet;
mod import;
mod import_watch;
mod interrupt;
mod label;
mod late_writes;
mod list;
mod list_team;
mod migrate;
mod package;
mod pretty;
mod progress;
mod restore;
mod scratch;
mod screen;
mod search;
mod serve;
mod session_choice;
mod session_dir;
mod settings;
mod shared;
mod show;
mod status;
mod stop;
mod story;
#[cfg(feature = "nats")]
mod team;
mod tree;
mod usage;
mod web;

pub(crate) use self::usage::refuse;

use self::failure::{ShellError, USAGE};
use crate::config::Config;
use crate::config::{self, ConfigFlags, DurabilityName, LOG_VARIABLE, Settings, SummarizerName};
use anyhow::Context;
use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Runtime;
use tracing_subscriber::EnvFilter;
use treelined_core::terminal;
use treelined_files::log::late_writes::CARRY_OVER_COMMAND;
use treelined_files::os::running::{self, LAUNCH_COMMAND};
use treelined_files::os::stream::stderr;
use treelined_service::endpoint::log_file;

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

/// The option of the log, without dashes.
const LOG: &str = "log";

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

/// The daemon's options. The configuration file gives those left out.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Options {
    /// Write long output to the terminal at once, without a pager
    #[arg(long, global = true)]
    pub no_pager: bool,
    /// The configuration file, in place of treelined/config.toml in the platform's folder for them
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where sessions are kept; the platform's data directory if not given
    #[arg(long, global = true, value_name = "DIR")]
    pub session_dir: Option<PathBuf>,
    /// The summarizer for summaries that no client writes [default: outline]
    #[arg(long, global = true, value_enum, hide_short_help = true)]
    pub summarizer: Option<SummarizerName>,
    /// The failures that an answered append survives [default: interval]
    #[arg(long, global = true, value_enum, hide_short_help = true)]
    pub durability: Option<DurabilityName>,
    /// Longest message that is read, in bytes [default: 67108864]
    #[arg(long, global = true, value_name = "BYTES", hide_short_help = true,
          value_parser = clap::value_parser!(u64).range(1024..=1 << 40))]
    pub max_frame_bytes: Option<u64>,
    /// Unread output above which reading pauses, in bytes [default: 16777216]
    #[arg(long, global = true, value_name = "BYTES", hide_short_help = true,
          value_parser = clap::value_parser!(u64).range(1024..=1 << 40))]
    pub max_queued_bytes: Option<u64>,
    /// The log of all sessions: addresses of NATS servers, joined by commas, or files for none [default: that of
    /// [log.nats]]
    #[cfg(feature = "nats")]
    #[arg(long, global = true, value_name = "URLS", hide_short_help = true)]
    pub log: Option<String>,
}

// The options of a command are made once its name is read.
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
    Import(import::ImportArgs),
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

/// Prints words for a shell that completes a command line, if one has asked. Returns whether one has.
pub(crate) fn completes() -> bool {
    completions::answer()
}

/// Runs the command that the arguments name.
pub(crate) fn run(arguments: Arguments) -> ExitCode {
    log_to_stderr();
    if arguments.ends_at_interrupt() {
        interrupt::watch();
    }
    outcome(&arguments).unwrap_or_else(|error| match is_unread(&error) {
        true => ExitCode::SUCCESS,
        false => ShellError::of(&error).report(),
    })
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
    fn ends_at_interrupt(&self) -> bool {
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
}

fn outcome(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let options = &arguments.options;
    // If another user could write the configuration file, the command fails: it runs neither with the file
    // nor without it.
    if !matches!(
        arguments.command,
        Some(Command::Config(_) | Command::Doctor(_) | Command::Launch(_) | Command::CarryOver(_))
    ) {
        config::check(options.config.as_deref()).map_err(|error| in_settings(&error))?;
    }
    session_dir::check(options, arguments.command.as_ref());
    match &arguments.command {
        None => serve::run(options, &serve::ServeArgs::default()),
        Some(Command::Serve(args)) => serve::run(options, args),
        Some(Command::Connect(connect)) => connect::run(options, connect),
        Some(Command::Web(web)) => web::run(options, web),
        Some(Command::Status(status)) => status::run(options, status),
        Some(Command::Stop(stop)) => stop::run(options, stop),
        Some(Command::Detach(detach)) => detach.run(),
        Some(Command::CarryOver(command)) => command.run(),
        Some(Command::List(list)) => list::run(options, list),
        Some(Command::Show(show)) => show::run(options, show),
        Some(Command::Call(call)) => call::run(options, call),
        Some(Command::Tree(tree)) => tree::run(options, tree),
        Some(Command::Search(search)) => search::run(options, search),
        Some(Command::Label(args)) => label::run(options, args),
        Some(Command::Doctor(doctor)) => doctor::run(options, doctor),
        Some(Command::Migrate(migrate)) => migrate::run(options, migrate),
        Some(Command::Import(import)) => import::run(options, import),
        Some(Command::Acp(args)) => package::run(options, "treelined-acp", args),
        Some(Command::Mcp(args)) => package::run(options, "treelined-mcp", args),
        Some(Command::Export(export)) => export::run(options, export),
        Some(Command::Restore(restore)) => restore::run(options, restore),
        #[cfg(feature = "nats")]
        Some(Command::Push(args)) => fleet::push(options, args),
        #[cfg(feature = "nats")]
        Some(Command::Pull(args)) => fleet::pull(options, args),
        Some(Command::Schema(schema)) => documents::schema(schema),
        Some(Command::Man(man)) => documents::man(man),
        Some(Command::Completions(completions)) => completions::run(completions),
        Some(Command::Config(args)) => settings::run(options, args),
        Some(Command::Demo(demo)) => demo::run(options, demo),
        Some(Command::Launch(args)) => Err(running::launch(args.parent, &args.argv).into()),
    }
}

/// The settings, unless they must not be used, or name a log that this build cannot keep.
fn usable(settings: Settings) -> anyhow::Result<Config> {
    let config = settings.into_config()?;
    if cfg!(not(feature = "nats")) && config.nats.is_some() {
        let remedy = format!("{WITH_NATS}; {LOG_VARIABLE}=files keeps sessions in files only");
        let message = without_nats("the log of [log.nats] or of its variable");
        return Err(ShellError::new(USAGE, message, remedy).into());
    }
    Ok(config)
}

/// How a person comes by a program that keeps sessions on NATS JetStream.
const WITH_NATS: &str =
    "install treelined from a package, or by cargo install --path . --features nats";

/// The error of a program without the feature `nats` for something that needs it.
fn without_nats(what: &str) -> String {
    format!("{what} needs NATS JetStream, and this treelined was built without the feature nats")
}

/// The error of the settings, whose message names the file, the variable or the option.
fn in_settings(error: &anyhow::Error) -> anyhow::Error {
    let remedy = "mend it there, or name another file with --config FILE";
    ShellError::failed(format!("{error:#}"), remedy)
}

/// Whether the error is a broken pipe of stdout: its reader, such as `head`, has read enough.
fn is_unread(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Logs to stderr, since stdout carries the protocol. `TREELINED_LOG` sets the level, by default warnings.
fn log_to_stderr() {
    let filter = EnvFilter::builder()
        .with_env_var("TREELINED_LOG")
        .with_default_directive(tracing::level_filters::LevelFilter::WARN.into())
        .from_env_lossy();
    // The errors of a command say it.
    #[cfg(feature = "nats")]
    let filter = match std::env::var_os("TREELINED_LOG") {
        None => filter.add_directive("async_nats=off".parse().unwrap_or_default()),
        Some(_) => filter,
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| StderrLog)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .init();
}

/// Writes log lines to stderr with control characters made visible: a line may hold a path, or output of
/// another program.
struct StderrLog;

/// Whether stderr is the log file of a detached daemon, whose size is limited.
static LOGS_TO_FILE: AtomicBool = AtomicBool::new(false);

impl Write for StderrLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = terminal::line(text.trim_end());
        let mut locked = io::stderr().lock();
        writeln!(locked, "{text}")?;
        if LOGS_TO_FILE.load(Ordering::Relaxed) {
            log_file::keep_small(&stderr()?)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Options {
    fn config(&self) -> anyhow::Result<Config> {
        usable(self.settings()?)
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        self.settings_with(None)
    }

    /// The settings of a command that has the option `--socket`.
    fn settings_with(&self, socket: Option<&Path>) -> anyhow::Result<Settings> {
        let flags = ConfigFlags {
            config: self.config.clone(),
            session_dir: self.session_dir.clone(),
            socket: socket.map(Path::to_owned),
            summarizer: self.summarizer,
            durability: self.durability,
            max_frame_bytes: self.max_frame_bytes,
            max_queued_bytes: self.max_queued_bytes,
            log: self.log(),
        };
        Settings::resolve(&flags, &|name| std::env::var_os(name))
            .map_err(|error| in_settings(&error))
    }

    #[cfg(feature = "nats")]
    fn log(&self) -> Option<String> {
        self.log.clone()
    }

    #[cfg(not(feature = "nats"))]
    #[allow(clippy::unused_self, reason = "as with the feature")]
    fn log(&self) -> Option<String> {
        None
    }

    /// The given options: names without dashes, and values.
    fn given(&self) -> Vec<(&'static str, OsString)> {
        let named = |value: Option<PossibleValue>| value.map(|value| value.get_name().into());
        let number = |value: Option<u64>| value.map(|value| value.to_string().into());
        let all: [(&str, Option<OsString>); 7] = [
            ("config", self.config.clone().map(Into::into)),
            ("session-dir", self.session_dir.clone().map(Into::into)),
            (
                "summarizer",
                named(self.summarizer.and_then(|name| name.to_possible_value())),
            ),
            (
                "durability",
                named(self.durability.and_then(|name| name.to_possible_value())),
            ),
            ("max-frame-bytes", number(self.max_frame_bytes)),
            ("max-queued-bytes", number(self.max_queued_bytes)),
            (LOG, self.log().map(Into::into)),
        ];
        let given = all
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        given.collect()
    }

    /// The same options as arguments for a child daemon, but for [`Self::as_variable`].
    fn as_arguments(&self) -> Vec<OsString> {
        let given = self.given().into_iter();
        given
            .filter(|(name, _)| *name != LOG)
            .flat_map(|(name, value)| [format!("--{name}").into(), value])
            .collect()
    }

    /// The option that may have a password, as an environment variable for a child daemon: all users see arguments.
    fn as_variable(&self) -> Option<(&'static str, String)> {
        self.log().map(|log| (LOG_VARIABLE, log))
    }
}

/// A single-threaded runtime for commands that wait for little.
fn small_runtime() -> anyhow::Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .enable_io()
        .build();
    runtime.context("start the runtime")
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
