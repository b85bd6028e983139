//! `treelined stop`: ends the shared daemon, and waits for its end.

use super::failure::ShellError;
use super::options::Options;
use super::shared::{SharedDaemon, SocketOption};
use anyhow::Context;
use clap::Args;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;
use treelined_files::os::watch::Process;

/// How long to wait. Running requests may take 5 s to end, and then 3 s to answer that they were
/// cancelled.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug, Args)]
pub(crate) struct Stop {
    #[command(flatten)]
    socket: SocketOption,
}

pub(super) fn run(options: &Options, arguments: &Stop) -> anyhow::Result<ExitCode> {
    let shared = SharedDaemon::of(options, &arguments.socket, None)?;
    let Some(daemon) = shared.running()? else {
        return Ok(shared.none_runs());
    };
    let number = daemon.info.pid;
    match Process::open(number) {
        // The daemon is checked once more, since its process id may belong to another process by
        // now.
        Ok(process) if daemon.is_alive() => {
            process
                .terminate()
                .with_context(|| format!("end the daemon (pid {number})"))?;
            if !process.ends_within(PATIENCE).context("wait")? {
                let seconds = PATIENCE.as_secs();
                return Err(ShellError::failed(
                    format!("the daemon (pid {number}) has not ended after {seconds} s"),
                    format!("kill -9 {number}, which loses no answered request"),
                ));
            }
        }
        _ => {}
    }
    writeln!(io::stdout().lock(), "the daemon (pid {number}) has ended")?;
    Ok(ExitCode::SUCCESS)
}
