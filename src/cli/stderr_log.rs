//! The log on stderr. For a detached daemon, stderr is a file.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use tracing_subscriber::EnvFilter;
use treelined_core::terminal;
use treelined_files::os::stream::stderr;
use treelined_service::endpoint::log_file;

/// Logs to stderr, since stdout carries the protocol. `TREELINED_LOG` sets the level; the default is
/// warnings.
pub(super) fn log_to_stderr() {
    let filter = EnvFilter::builder()
        .with_env_var("TREELINED_LOG")
        .with_default_directive(tracing::level_filters::LevelFilter::WARN.into())
        .from_env_lossy();
    // The errors of a command report the failures that `async_nats` would log.
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

/// Writes log lines to stderr with control characters made visible, since a line may contain a path or the
/// output of another program.
struct StderrLog;

/// Whether stderr is the log file of a detached daemon, whose size is limited.
static IS_FILE: AtomicBool = AtomicBool::new(false);

/// Limits the size of the log. It is called if stderr is the log file of a detached daemon.
pub(super) fn limit_file() {
    IS_FILE.store(true, Ordering::Relaxed);
}

impl Write for StderrLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = terminal::line(text.trim_end());
        let mut locked = io::stderr().lock();
        writeln!(locked, "{text}")?;
        if IS_FILE.load(Ordering::Relaxed) {
            log_file::keep_small(&stderr()?)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
