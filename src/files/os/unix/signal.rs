//! Signals to this process.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that asks the process to end.
pub struct EndSignal(Signal);

impl EndSignal {
    /// All of them: SIGTERM and SIGINT. Call it in a runtime.
    pub fn all() -> io::Result<Vec<Self>> {
        let kinds = [SignalKind::terminate(), SignalKind::interrupt()];
        let signals = kinds.into_iter().map(|kind| Ok(Self(signal(kind)?)));
        signals.collect()
    }

    /// SIGINT, which a person sends with Ctrl+C. Call it in a runtime.
    pub fn interrupt() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::interrupt())?))
    }

    /// Waits for the signal; false if none can come any more.
    pub async fn recv(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// Makes a write beyond the limit of a file's size fail instead of killing the process: a watched signal has
/// no other effect. Call it in a runtime.
pub fn outlive_the_size_limit() -> io::Result<()> {
    let size_limit = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    let _watched = signal(size_limit)?;
    Ok(())
}
