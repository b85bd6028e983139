//! Reads all sessions once, so that later hooks find their text quickly. A hook has too little time for sessions that
//! were never listed or indexed. So it starts another process, which continues after the hook has ended.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, io};
use treelined_client::{DaemonArgs, SessionSearchMode};

/// The time that the process has, in milliseconds.
const MOST: u64 = 3_600_000;

/// Starts the process. The process continues when the agent ends the hook.
pub fn start(daemon: &DaemonArgs) -> io::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["--recall", "--index"]);
    if let Some(folder) = &daemon.session_dir {
        command.arg("--session-dir").arg(folder);
    }
    command.arg("--daemon").arg(&daemon.daemon);
    let silent = command.stdin(Stdio::null()).stdout(Stdio::null());
    silent.stderr(Stdio::null()).process_group(0).spawn()?;
    Ok(())
}

/// Lists all sessions and makes their index, unless another process does so. If the process is stopped, the work until
/// then is kept.
pub async fn read_all(daemon: &DaemonArgs) -> anyhow::Result<()> {
    let lock = File::create(lock_path(daemon))?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    let builder = daemon.builder();
    let builder = builder.client_info(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let client = builder.spawn().await?;
    client.list_sessions().limit(1).await?;
    // The answer does not matter. The question makes the daemon read the sessions, and the daemon keeps what it has
    // read.
    let question = client.search("recall").mode(SessionSearchMode::Ask);
    question.limit(0).read_ms(MOST).await?;
    client.close().await?;
    Ok(())
}

/// One lock for each session directory.
fn lock_path(daemon: &DaemonArgs) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    daemon.session_dir.hash(&mut hasher);
    let folder = env::var_os("XDG_RUNTIME_DIR").map_or_else(env::temp_dir, PathBuf::from);
    folder.join(format!("treelined-recall-{:016x}.lock", hasher.finish()))
}
