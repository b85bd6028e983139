//! `treelined connect`: connects stdin and stdout to the shared daemon, byte for byte.

use super::failure::ShellError;
use super::options::Options;
use super::shared::{self, SharedDaemon, SocketOption};
use crate::config::IdleTime;
use anyhow::Context;
use clap::Args;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use treelined_files::os::ready::{is_readable, wait_to_read};
pub(crate) use treelined_files::os::socket::Stream;
use treelined_files::os::stream::{stdin, stdout};
use treelined_files::os::watch::Process;
use treelined_service::endpoint::runtime_file::FoundInfo;
use treelined_service::endpoint::{START_TIMEOUT, reach};

/// The number of bytes that are copied at a time.
const BLOCK: usize = 64 << 10;
/// How long a process may take to end after its connections have ended.
const DEATH: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  treelined connect --start      in place of `treelined`, for clients that share a daemon")]
pub(crate) struct Connect {
    /// Start a daemon with these options if none runs
    #[arg(long)]
    start: bool,
    /// End the started daemon after this time without a connection, such as 10m [default: never]
    #[arg(long, value_name = "TIME")]
    idle_exit: Option<IdleTime>,
    #[command(flatten)]
    socket: SocketOption,
}

pub(super) fn run(options: &Options, arguments: &Connect) -> anyhow::Result<ExitCode> {
    let shared = SharedDaemon::of(options, &arguments.socket, arguments.idle_exit)?;
    let stream = match arguments.start {
        true => reach::find_or_start(&shared.place, |lock| shared.start(options, lock))?,
        false => match reach::find(&shared.place)? {
            Some(stream) => stream,
            None => return Ok(shared.none_runs()),
        },
    };
    // With socket activation, connecting starts the daemon.
    if shared.running()?.is_none() {
        reach::probe(&shared.place)?;
    }
    let Some(daemon) = shared.running()? else {
        return Err(shared.has_no_runtime_file());
    };
    shared::check_version(&daemon.info)?;
    shared.check_options(options, &daemon.info)?;
    let process = Process::open(daemon.info.pid).ok();
    let process = process.ok_or_else(|| gone(daemon.info.pid))?;
    match copy(&shared, stream, (&daemon, &process))? {
        CopyEnd::Done => Ok(ExitCode::SUCCESS),
        CopyEnd::DaemonGone => Err(gone(daemon.info.pid)),
    }
}

fn gone(pid: u32) -> anyhow::Error {
    let message = format!("the daemon (pid {pid}) has ended");
    ShellError::failed(
        message,
        "treelined connect --start, which starts another one",
    )
}

/// The reason why the copying ended.
enum CopyEnd {
    /// Stdin has ended and all answers were read; or the daemon has ended this connection; or the reader of stdout
    /// is gone.
    Done,
    DaemonGone,
}

/// Copies stdin to the connection in a thread, and the connection to stdout in this thread, until the connection
/// ends.
fn copy(
    shared: &SharedDaemon,
    stream: Stream,
    (daemon, process): (&FoundInfo, &Process),
) -> anyhow::Result<CopyEnd> {
    let input_ended = Arc::new(AtomicBool::new(false));
    let to_daemon = stream.try_clone().context("copy the connection")?;
    let ended = Arc::clone(&input_ended);
    let input = stdin().context("open the standard streams")?;
    let send = move || {
        // The other direction notices the end of the connection.
        let _ended = pass(input, &to_daemon);
        ended.store(true, Ordering::Release);
        let _gone = to_daemon.shutdown(Shutdown::Write);
    };
    thread::Builder::new()
        .name("stdin".into())
        .spawn(send)
        .context("start a thread")?;
    if !is_readable(&stream, START_TIMEOUT).context("wait")? {
        // Nothing has arrived. Either the client has sent nothing that has an answer, or the daemon does not run
        // any more.
        reach::probe(&shared.place)?;
    }
    let output = stdout().context("open the standard streams")?;
    match pass(PolledInput(&stream), output) {
        Ok(()) if input_ended.load(Ordering::Acquire) => Ok(CopyEnd::Done),
        Err(CopyError::Write) => Ok(CopyEnd::Done),
        // The daemon ends a connection after `shutdown`. A connection also ends if the daemon itself ends. Then the
        // daemon removes its runtime file first, and its process may end much later on a busy machine.
        Ok(()) | Err(CopyError::Read) => {
            let is_gone = process.ends_within(DEATH).context("wait")? || !daemon.is_alive();
            match is_gone {
                true => Ok(CopyEnd::DaemonGone),
                false => Ok(CopyEnd::Done),
            }
        }
    }
}

/// The connection. It is read only when bytes have arrived: on Linux a thread that is blocked in `recv` also wakes
/// up when the daemon reads a request, which costs a third of the time of a short call.
struct PolledInput<'a>(&'a Stream);

impl Read for PolledInput<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        wait_to_read(self.0)?;
        self.0.read(bytes)
    }
}

/// The side of a copy that failed.
enum CopyError {
    Read,
    Write,
}

/// Copies until the end of the input.
fn pass(mut from: impl Read, mut to: impl Write) -> Result<(), CopyError> {
    let mut block = vec![0; BLOCK];
    loop {
        let read = match from.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Err(CopyError::Read),
        };
        let bytes = block.get(..read).unwrap_or_default();
        to.write_all(bytes).map_err(|_| CopyError::Write)?;
    }
}
