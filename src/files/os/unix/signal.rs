//! Signals to this process.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that asks this process to end.
pub struct EndSignal(Signal);

impl EndSignal {
    /// Both signals: SIGTERM and SIGINT. Call this within a runtime.
    pub fn all() -> io::Result<Vec<Self>> {
        let kinds = [SignalKind::terminate(), SignalKind::interrupt()];
        let signals = kinds.into_iter().map(|kind| Ok(Self(signal(kind)?)));
        signals.collect()
    }

    /// SIGINT, which a person sends with Ctrl+C. Call this within a runtime.
    pub fn interrupt() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::interrupt())?))
    }

    /// Waits for the signal; returns false if no signal can arrive any more.
    pub async fn recv(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// Handles SIGXFSZ, the signal for a file that exceeds the size limit. With the handler, the write fails and the signal
/// does not kill the process. Call this within a runtime.
pub fn outlive_the_size_limit() -> io::Result<()> {
    let size_limit = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let _watched = signal(size_limit)?;
    Ok(())
}
