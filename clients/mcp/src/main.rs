//! The program `treelined-mcp`.

mod clean;
mod cuts;
mod finding;
mod history;
mod notes;
mod portable;
mod reading;
mod request;
mod scope;
mod server;
mod text;

use anyhow::Context;
use clap::Parser;
use history::History;
use scope::Scope;
use std::io::Write;
use std::process::ExitCode;
use treelined_client::DaemonArgs;
use treelined_redact::Redactor;

/// Serves the conversations of treelined to an agent, over MCP on stdin and stdout.
///
/// The agent finds what was tried before, in branches that were left too, and why they were left. It can read
/// the sessions of the working directory; with --allow-notes it can leave labels, notes and names. It can never
/// move, compact or delete.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Serve the sessions of all directories, not only those of the working directory and below
    #[arg(long)]
    all: bool,
    /// Let the agent label entries, leave notes and name sessions
    #[arg(long)]
    allow_notes: bool,
    /// Show secrets in old text, such as tokens and private keys, instead of replacing them
    #[arg(long)]
    show_secrets: bool,
    /// The session that the agent is in, by its id [default: the newest of the working directory]
    #[arg(long, env = "TREELINED_SESSION", value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    daemon: DaemonArgs,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
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
    runtime.context("start the runtime")?.block_on(serve(args))
}

async fn serve(args: Args) -> anyhow::Result<()> {
    let cwd = std::env::current_dir().context("find the working directory")?;
    let builder = args.daemon.builder();
    let builder = builder.client_info(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let redactor = Redactor::new(!args.show_secrets, None)?;
    let client = builder.spawn().await?;
    let cwd = cwd.canonicalize().context("find the working directory")?;
    let scope = Scope::new((!args.all).then_some(cwd));
    let history = History::new(client.clone(), scope, args.session, redactor);
    let served = server::serve(history, args.allow_notes).await;
    client.close().await?;
    served
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
