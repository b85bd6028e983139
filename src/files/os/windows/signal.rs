//! Signals to this process.

use std::io;
use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, CtrlShutdown};
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

/// A signal that asks the process to end.
pub(crate) enum EndSignal {
    Interrupt(CtrlC),
    Break(CtrlBreak),
    Close(CtrlClose),
    Shutdown(CtrlShutdown),
}

impl EndSignal {
    /// All of them. Call it in a runtime.
    pub(crate) fn all() -> io::Result<Vec<Self>> {
        Ok(vec![
            Self::Interrupt(ctrl_c()?),
            Self::Break(ctrl_break()?),
            Self::Close(ctrl_close()?),
            Self::Shutdown(ctrl_shutdown()?),
        ])
    }

    /// Ctrl+C. Call it in a runtime.
    pub(crate) fn interrupt() -> io::Result<Self> {
        Ok(Self::Interrupt(ctrl_c()?))
    }

    /// Waits for the signal; false if none can come any more.
    pub(crate) async fn recv(&mut self) -> bool {
        let signal = match self {
            Self::Interrupt(signal) => signal.recv().await,
            Self::Break(signal) => signal.recv().await,
            Self::Close(signal) => signal.recv().await,
            Self::Shutdown(signal) => signal.recv().await,
        };
        signal.is_some()
    }
}

/// Does nothing: there is no such signal.
pub(crate) fn outlive_the_size_limit() -> io::Result<()> {
    Ok(())
}
