//! The process of the daemon: its stderr and its end.

use crate::connection::{Connection, EndGuard, lock};
use crate::error::Disconnected;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr};

/// A function that is called with each line of the daemon's log.
pub(crate) type OnLog = Arc<dyn Fn(&str) + Send + Sync>;

/// How many of the last bytes of the daemon's stderr an error quotes.
const LAST_WORDS: usize = 4096;

/// The longest line of the log in bytes.
const MAX_LINE: u64 = 64 * 1024;

/// How long to wait for the remaining output after the process has ended.
pub(crate) const DRAIN: Duration = Duration::from_secs(1);

/// The reason for the end of a connection that has no process.
pub(crate) const CLOSED: &str = "the connection was closed";

/// Waits until the daemon ends, kills it if necessary, and then ends the connection.
pub(crate) async fn supervise(
    mut child: Child,
    stderr: Option<ChildStderr>,
    on_log: Option<OnLog>,
    connection: Arc<Connection>,
    grace: Duration,
) {
    let EndGuard(connection) = &EndGuard(connection);
    let words = Arc::new(Mutex::new(VecDeque::new()));
    let logged = tokio::spawn(log(stderr, on_log, Arc::clone(&words)));
    let ended = tokio::select! {
        ended = child.wait() => Some(ended),
        // The daemon has closed its output, or the client was closed. In both cases the daemon
        // should end by itself.
        () = connection.is_read.cancelled() => None,
        _ = connection.over() => None,
        () = connection.is_killed.cancelled() => None,
    };
    let mut reason = "the daemon has ended";
    let ended = match ended {
        Some(ended) => ended,
        None => tokio::select! {
            ended = child.wait() => ended,
            () = tokio::time::sleep(grace) => kill(&mut child, &mut reason).await,
            () = connection.is_killed.cancelled() => kill(&mut child, &mut reason).await,
        },
    };
    // Output from before the end still counts. A process that the daemon left running may keep the
    // pipes open.
    let _ = tokio::time::timeout(DRAIN, connection.is_read.cancelled()).await;
    let _ = tokio::time::timeout(DRAIN, logged).await;
    connection.end(Disconnected {
        reason: match &ended {
            Ok(_) => reason.to_owned(),
            Err(error) => format!("{reason}: {error}"),
        },
        status: ended.ok(),
        last_words: last_words(&lock(&words)),
    });
}

async fn kill(
    child: &mut Child,
    reason: &mut &'static str,
) -> std::io::Result<std::process::ExitStatus> {
    *reason = "the daemon did not end and was killed";
    child.start_kill()?;
    child.wait().await
}

/// Reads stderr continuously, so that the daemon never blocks on it.
async fn log(stderr: Option<ChildStderr>, on_log: Option<OnLog>, words: Arc<Mutex<VecDeque<u8>>>) {
    let Some(stderr) = stderr else { return };
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    // A line that is longer than the limit is delivered in pieces.
    while let Ok(1..) = (&mut stderr)
        .take(MAX_LINE)
        .read_until(b'\n', &mut line)
        .await
    {
        {
            let mut words = lock(&words);
            words.extend(&line);
            let surplus = words.len().saturating_sub(LAST_WORDS);
            words.drain(..surplus);
        }
        if let Some(on_log) = &on_log {
            on_log(String::from_utf8_lossy(&line).trim_end_matches('\n'));
        }
        line.clear();
    }
}

fn last_words(words: &VecDeque<u8>) -> String {
    let words: Vec<u8> = words.iter().copied().collect();
    String::from_utf8_lossy(&words).trim().to_owned()
}

/// Waits for the end of a connection to a daemon that this client did not start.
pub(crate) async fn watch_attached(connection: Arc<Connection>) {
    let EndGuard(connection) = &EndGuard(connection);
    tokio::select! {
        () = connection.is_read.cancelled() => {
            connection.end(Disconnected::because(CLOSED));
        }
        () = connection.is_killed.cancelled() => {
            connection.end(Disconnected::because("the daemon did not end"));
        }
        _ = connection.over() => (),
    }
}
