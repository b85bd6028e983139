//! The program `treelined-mcp`.

mod clean;
mod conversations;
mod cuts;
mod finding;
mod history;
mod notes;
mod portable;
mod reading;
mod recall;
mod request;
mod scope;
mod server;
mod text;
mod words;

use anyhow::Context;
use clap::Parser;
use history::History;
use recall::{Hook, ahead};
use scope::Scope;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use treelined_client::{AccessParams, AccessRight, Client, DaemonArgs};
use treelined_redact::{KnownValues, Redactor, secret_variables};

/// Serves the conversations of treelined to an agent, over MCP on stdin and stdout.
///
/// The agent finds what was tried before, also in branches that were left, and why they were left. It can read
/// the sessions of the working directory; with --allow-notes it can leave labels, notes and names. It can never
/// move, compact or delete.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Serve the sessions of all directories, not only of the working directory and below
    #[arg(long)]
    all: bool,
    /// Let the agent label entries, leave notes and name sessions
    #[arg(long)]
    allow_notes: bool,
    /// Show secrets in old text, such as tokens and private keys, and do not replace them
    #[arg(long)]
    show_secrets: bool,
    /// The session that the agent is in, by its id [default: the newest of the working directory]
    #[arg(long, env = "TREELINED_SESSION", value_name = "ID")]
    session: Option<String>,
    /// Answer the hook of an agent on stdin with what the sessions of this directory say, and end
    #[arg(long, conflicts_with_all = ["all", "allow_notes", "show_secrets"])]
    recall: bool,
    /// With --recall: end after this many seconds, also without an answer. The agent waits for it
    #[arg(long, value_name = "SECONDS", default_value_t = 4, requires = "recall", value_parser = clap::value_parser!(u64).range(1..=3600))]
    within: u64,
    /// With --recall: answer no hook; read all sessions once, so that later hooks answer quickly
    #[arg(long, requires = "recall")]
    index: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) if error.use_stderr() && std::env::args_os().any(|it| it == "--recall") => {
            return ExitCode::SUCCESS;
        }
        Err(error) => error.exit(),
    };
    let is_recall = args.recall;
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        // A recall never fails for the agent.
        Err(_) if is_recall => ExitCode::SUCCESS,
        Err(error) => {
            // If stderr is closed too, the exit code still reports the failure.
            let _written = writeln!(std::io::stderr(), "treelined-mcp: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.context("start the runtime")?;
    match args.recall {
        true if args.index => runtime.block_on(ahead::read_all(&args.daemon)),
        true => runtime.block_on(recall(args)),
        false => runtime.block_on(serve(args)),
    }
}

async fn recall(args: Args) -> anyhow::Result<()> {
    let within = Duration::from_secs(args.within);
    let ends = Instant::now() + within;
    // An agent may keep stdin open. The end of the program does not wait for this thread.
    let (read, hook) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || drop(read.send(Hook::read())));
    let Some(hook) = timeout_at(ends, hook).await?? else {
        return Ok(());
    };
    let daemon = args.daemon.clone();
    let answer = async {
        let running = running(&args.daemon, within / 4).await;
        let history = history(args, hook.directory(), running).await?;
        let answered = hook.answer(&history, ends).await;
        history.end().await?;
        answered.map_err(|failure| anyhow::anyhow!("{failure}"))
    };
    // If a hook has too little time, this starts a process with more time.
    if timeout_at(ends, answer).await.unwrap_or(Ok(true))? {
        ahead::start(&daemon)?;
    }
    Ok(())
}

/// The fewest rights with which this program works. The daemon refuses everything else, even if an agent misuses this
/// program. Secrets are replaced here, since the answers say how many were replaced.
fn least(allows_notes: bool) -> AccessParams {
    AccessParams {
        may: Some(match allows_notes {
            true => AccessRight::Append,
            false => AccessRight::Read,
        }),
        directories: None,
        redact: Some(false),
    }
}

/// A connection to the shared daemon, if one runs: it has the index in memory.
async fn running(daemon: &DaemonArgs, within: Duration) -> Option<Client> {
    // With --shared, the daemon is started if none runs, and keeps running for the next hook.
    let builder = match daemon.shared {
        true => return None,
        false => daemon.builder().arg("connect"),
    };
    let builder = builder.client_info(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let builder = builder.access(least(false));
    timeout(within, builder.spawn()).await.ok()?.ok()
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let cwd = std::env::current_dir().context("find the working directory")?;
    let allows_notes = args.allow_notes;
    let history = history(args, cwd, None).await?;
    server::serve(history, allows_notes).await
}

/// The sessions of a directory, or of all directories. If `running` is a connection, the sessions are read through it.
async fn history(args: Args, cwd: PathBuf, running: Option<Client>) -> anyhow::Result<History> {
    let cwd = cwd.canonicalize().context("find the working directory")?;
    let builder = args.daemon.builder();
    let builder = builder.client_info(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let builder = builder.access(least(args.allow_notes));
    let mut values = KnownValues::new(b"of the server");
    values.add_values(secret_variables(std::env::vars_os(), &[]));
    if !args.show_secrets {
        values.set_words(&words::configured(std::env::var_os("TREELINED_CONFIG"))?);
    }
    let redactor = Redactor::new(!args.show_secrets, None)?.with_values(values);
    let client = match running {
        Some(client) => client,
        None => builder.spawn().await?,
    };
    let scope = Scope::new((!args.all).then_some(cwd));
    Ok(History::new(client, scope, args.session, redactor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_a_valid_command() {
        Args::command().debug_assert();
    }
}
