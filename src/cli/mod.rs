//! The command line: the daemon and the commands beside it.
//!
//! Owns arguments, the environment, logging and exit codes. In reading order: [`serve`] is the daemon
//! itself; [`daemon`] runs one as a child and calls it like any client, for [`call`], [`tree`], [`restore`]
//! and [`demo`]; [`doctor`] and [`migrate`] open a file without one; [`documents`] writes the schema and
//! completions; [`screen`], [`drawing`] and [`pretty`] format output.

mod call;
mod daemon;
mod demo;
mod doctor;
mod doctor_repair;
mod documents;
mod drawing;
mod late_writes;
mod migrate;
mod pretty;
mod restore;
mod screen;
mod serve;
mod story;
mod tree;

use crate::config::Config;
use crate::config::{self, DurabilityName, Flags, Settings, SummarizerName};
use crate::terminal;
use anyhow::Context;
use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum};
use rustix::process::Signal;
use serde_json::json;
use std::borrow::Cow;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

const ABOUT: &str = "\
Keeps the conversations of AI agents as trees, for any client.

Without a command it is a daemon: it reads JSON-RPC 2.0 from stdin, one message a line (or with
Content-Length headers, as language servers do), and answers on stdout until stdin ends.";

const EXAMPLES: &str = "\
Examples:
  treelined demo                             a conversation of the kind, offline
  treelined call list_sessions --pretty      one call
  treelined call get_context --open FILE     one call on a session
  treelined tree FILE --filter user-only     draw a session
  treelined doctor *.jsonl                   look for damage; exit code 1 if there is any

Environment:
  TREELINED_SESSION_DIR  where sessions are kept
  TREELINED_LOG          what is logged to stderr: error, warn (default), info, debug, trace
  NO_COLOR, COLUMNS      no colours; width of what is drawn";

/// Keeps the conversations of AI agents as trees, for any client: JSON-RPC on stdin and stdout
#[derive(Debug, Parser)]
#[command(name = "treelined", version, long_about = ABOUT, after_long_help = EXAMPLES)]
#[command(propagate_version = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub options: Options,
}

/// Options of a server. The configuration file sets those that are left out.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Options of the daemon and of commands that call one")]
pub struct Options {
    /// Configuration file, instead of treelined/config.toml in the platform's configuration folder
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Session directory; by default in the platform's data directory
    #[arg(long, global = true, value_name = "DIR")]
    pub session_dir: Option<PathBuf>,
    /// Summarizer that is used when no client gives a summary [default: none]
    #[arg(long, global = true, value_enum)]
    pub summarizer: Option<SummarizerName>,
    /// What an append survives once it is answered [default: interval]
    #[arg(long, global = true, value_enum)]
    pub durability: Option<DurabilityName>,
    /// Longest message that the daemon reads, in bytes [default: 67108864]
    #[arg(long, global = true, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(1024..=1 << 40))]
    pub max_frame_bytes: Option<u64>,
    /// Unread output above which the daemon stops reading, in bytes [default: 16777216]
    #[arg(long, global = true, value_name = "BYTES",
          value_parser = clap::value_parser!(u64).range(1024..=1 << 40))]
    pub max_queued_bytes: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Speak JSON-RPC on stdin and stdout (the default)
    Serve,
    /// Make one call and print its result
    Call(call::Call),
    /// Draw a session
    Tree(tree::Tree),
    /// Check session files and report what they contain; exit code 1 if anything is wrong
    Doctor(doctor::Doctor),
    /// Rewrite a session file of version 1 or 2 as version 3; the original is kept beside it
    Migrate(migrate::Migrate),
    /// List deleted sessions, or restore one
    Restore(restore::Restore),
    /// Write the schemas, the method list, the OpenRPC document and the reference of this daemon
    Schema(documents::Schema),
    /// Print a completion script
    Completions(documents::Completions),
    /// Print the settings and their origins
    Config,
    /// Show a conversation that goes back and continues, offline
    Demo,
}

/// Runs the command of the arguments.
pub fn run(arguments: Arguments) -> ExitCode {
    log_to_stderr();
    let outcome = outcome(&arguments);
    outcome.unwrap_or_else(|error| {
        if is_unread(&error) {
            return ExitCode::SUCCESS;
        }
        let message = format!("{error:#}");
        let mut stderr = io::stderr().lock();
        // There is no other place to report it.
        let _unsaid = writeln!(stderr, "treelined: {}", terminal::line(&message));
        ExitCode::FAILURE
    })
}

fn outcome(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let options = &arguments.options;
    // `config` and `doctor` must work with an invalid configuration; every other command fails early.
    if !matches!(
        arguments.command,
        Some(Command::Config | Command::Doctor(_))
    ) {
        config::check(options.config.as_deref())?;
    }
    match &arguments.command {
        None | Some(Command::Serve) => serve::run(options),
        Some(Command::Call(call)) => call::run(options, call),
        Some(Command::Tree(tree)) => tree::run(options, tree),
        Some(Command::Doctor(doctor)) => doctor::run(options, doctor),
        Some(Command::Migrate(migrate)) => migrate::run(options, migrate),
        Some(Command::Restore(restore)) => restore::run(options, restore),
        Some(Command::Schema(schema)) => documents::schema(schema),
        Some(Command::Completions(completions)) => documents::completions(completions),
        Some(Command::Config) => print_config(options),
        Some(Command::Demo) => demo::run(options),
    }
}

/// Prints an error in the arguments, or the help that they request. Control characters of the arguments are
/// replaced.
pub fn refuse(error: clap::Error) -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let shown: Vec<_> = arguments.iter().map(|text| terminal::line(text)).collect();
    let is_plain = shown.iter().all(|text| matches!(text, Cow::Borrowed(_)));
    let error = match is_plain {
        true => error,
        false => Arguments::try_parse_from(shown.iter().map(|text| &**text))
            .err()
            .unwrap_or(error),
    };
    // There is no other place to report it.
    let _unsaid = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Returns whether the reader of stdout has ended, as `head` does; that is no error.
fn is_unread(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The name of a session on the command line.
#[derive(Debug, Clone)]
pub enum SessionName {
    Path(PathBuf),
    Id(String),
}

impl FromStr for SessionName {
    type Err = Infallible;

    /// Text with a slash, with the ending of session files, or that names a file is a path; else it is an id.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let path = Path::new(text);
        let is_path = text.contains('/') || text.ends_with(".jsonl") || path.is_file();
        Ok(match is_path {
            true => Self::Path(path.to_owned()),
            false => Self::Id(text.to_owned()),
        })
    }
}

impl SessionName {
    /// Returns the params of `open_session`.
    fn to_open(&self, mode: &str) -> String {
        let params = match self {
            Self::Path(path) => json!({ "path": path.display().to_string(), "mode": mode }),
            Self::Id(id) => json!({ "sessionId": id, "mode": mode }),
        };
        params.to_string()
    }
}

/// Logs to stderr, since stdout carries the protocol. `TREELINED_LOG` sets the level, `warn` by default.
fn log_to_stderr() {
    let filter = EnvFilter::builder()
        .with_env_var("TREELINED_LOG")
        .with_default_directive(tracing::level_filters::LevelFilter::WARN.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Log)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .init();
}

/// Stderr for one line at a time, without control characters: a line may contain a path or the output of a
/// program.
struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = terminal::line(text.trim_end());
        writeln!(io::stderr().lock(), "{text}")?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Options {
    fn config(&self) -> anyhow::Result<Config> {
        self.settings()?.into_config()
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let flags = Flags {
            config: self.config.clone(),
            session_dir: self.session_dir.clone(),
            summarizer: self.summarizer,
            durability: self.durability,
            max_frame_bytes: self.max_frame_bytes,
            max_queued_bytes: self.max_queued_bytes,
        };
        Settings::resolve(&flags, &|name| std::env::var_os(name))
    }

    /// Returns the same options as arguments, for a child daemon.
    fn as_arguments(&self) -> Vec<OsString> {
        let named = |value: Option<PossibleValue>| value.map(|value| value.get_name().into());
        let number = |value: Option<u64>| value.map(|value| value.to_string().into());
        let given: [(&str, Option<OsString>); 6] = [
            ("--config", self.config.clone().map(Into::into)),
            ("--session-dir", self.session_dir.clone().map(Into::into)),
            (
                "--summarizer",
                named(self.summarizer.and_then(|name| name.to_possible_value())),
            ),
            (
                "--durability",
                named(self.durability.and_then(|name| name.to_possible_value())),
            ),
            ("--max-frame-bytes", number(self.max_frame_bytes)),
            ("--max-queued-bytes", number(self.max_queued_bytes)),
        ];
        let given = given
            .into_iter()
            .filter_map(|(name, value)| Some([name.into(), value?]));
        given.flatten().collect()
    }
}

fn print_config(options: &Options) -> anyhow::Result<ExitCode> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(options.settings()?.describe().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Makes a runtime for a command with little to wait for.
fn small_runtime() -> anyhow::Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .enable_io()
        .build();
    runtime.context("start the runtime")
}

/// Makes a write beyond the limit of a file's size fail instead of killing the process: a handled signal
/// does nothing else. Must be called in a runtime.
fn outlive_the_size_limit() -> anyhow::Result<()> {
    let size_limit = SignalKind::from_raw(Signal::XFSZ.as_raw());
    let _watched = signal(size_limit).context("watch signals")?;
    Ok(())
}
