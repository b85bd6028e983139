//! The daemon as a process: what it writes to stderr, and its end.

use crate::connection::{Connection, EndsWith, lock};
use crate::error::Disconnected;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr};

/// Takes a line of the daemon's log.
pub(crate) type OnLog = Arc<dyn Fn(&str) + Send + Sync>;

/// How much of what the daemon last wrote to stderr goes into an error, in bytes.
const LAST_WORDS: usize = 4096;

/// Longest line of the log, in bytes.
const MAX_LINE: u64 = 64 * 1024;

/// After the end of the process: how long its output may still be on its way.
const DRAIN: Duration = Duration::from_secs(1);

/// The reason where no process tells one.
pub(crate) const CLOSED: &str = "the connection was closed";

/// Waits for the end of the daemon, sees to it where need be, and tells everyone.
pub(crate) async fn supervise(
    mut child: Child,
    stderr: Option<ChildStderr>,
    on_log: Option<OnLog>,
    connection: Arc<Connection>,
    grace: Duration,
) {
    let EndsWith(connection) = &EndsWith(connection);
    let words = Arc::new(Mutex::new(VecDeque::new()));
    let logged = tokio::spawn(log(stderr, on_log, Arc::clone(&words)));
    let ended = tokio::select! {
        ended = child.wait() => Some(ended),
        // It says no more, or nobody listens: then it should end by itself.
        () = connection.is_read.cancelled() => None,
        _ = connection.over() => None,
        () = connection.is_killed.cancelled() => None,
    };
    let mut reason = "the daemon has ended";
    let ended = match ended {
        Some(ended) => ended,
        None => tokio::select! {
            ended = child.wait() => ended,
            () = tokio::time::sleep(grace) => killed(&mut child, &mut reason).await,
            () = connection.is_killed.cancelled() => killed(&mut child, &mut reason).await,
        },
    };
    // What it has said before counts. A process of its own that it has left behind may hold the pipes.
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

async fn killed(
    child: &mut Child,
    reason: &mut &'static str,
) -> std::io::Result<std::process::ExitStatus> {
    *reason = "the daemon did not end and was killed";
    child.start_kill()?;
    child.wait().await
}

/// Reads the log, so that the daemon never waits for somebody to do it.
async fn log(stderr: Option<ChildStderr>, on_log: Option<OnLog>, words: Arc<Mutex<VecDeque<u8>>>) {
    let Some(stderr) = stderr else { return };
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    // A longer line is given in pieces.
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

/// Waits for the end of a connection to a daemon that somebody else started.
pub(crate) async fn attend(connection: Arc<Connection>) {
    let EndsWith(connection) = &EndsWith(connection);
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
