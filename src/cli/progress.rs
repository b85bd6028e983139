//! Calls with a progress bar on stderr.

use super::daemon::{ChildDaemon, Incoming, RawJson};
use super::failure::ErrorResponse;
use serde::Deserialize;
use serde_json::json;
use std::io::{self, IsTerminal, Write};

/// The width of the progress bar in columns.
const BAR: u8 = 30;
const MEGABYTE: f64 = 1e6;

/// Whether stderr is a terminal that can show a progress bar.
pub(super) fn is_wanted() -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stderr().is_terminal() && !is_dumb
}

/// Introduces this program to the daemon as a client that receives progress.
pub(super) fn introduce(daemon: &mut ChildDaemon, name: &str) -> anyhow::Result<()> {
    let client = json!({
        "protocolVersion": 1,
        "clientInfo": { "name": name, "version": env!("CARGO_PKG_VERSION") },
        "capabilities": { "progress": {} },
    });
    daemon.call("initialize", &client.to_string())?;
    Ok(())
}

/// Makes a call. If `is_drawn`, draws its progress, which is in bytes.
pub(super) fn call_with_progress(
    daemon: &mut ChildDaemon,
    method: &str,
    params: &str,
    is_drawn: bool,
) -> anyhow::Result<RawJson> {
    let wanted = daemon.send(method, params)?;
    loop {
        match daemon.receive()? {
            Incoming::Response { id, outcome } if id == wanted => {
                if is_drawn {
                    write!(io::stderr(), "\r\x1b[K")?;
                }
                return outcome.map_err(|error| ErrorResponse(error).into());
            }
            Incoming::Notification { method, params } if method == "progress" && is_drawn => {
                draw(params.get())?;
            }
            _ => {}
        }
    }
}

/// Draws the progress bar on stderr.
fn draw(params: &str) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Progress {
        /// Bytes that are read.
        progress: f64,
        /// Bytes to read.
        total: Option<f64>,
    }
    let Ok(Progress { progress, total }) = serde_json::from_str(params) else {
        return Ok(());
    };
    let total = total.unwrap_or(progress).max(1.0);
    let columns = 1..=BAR;
    let is_done = |column: &u8| f64::from(*column) <= progress / total * f64::from(BAR);
    let bar = "█".repeat(columns.filter(is_done).count());
    let (read, all) = (progress / MEGABYTE, total / MEGABYTE);
    let width = usize::from(BAR);
    write!(
        io::stderr(),
        "\r\x1b[K{bar:░<width$} {read:.0} of {all:.0} MB"
    )?;
    Ok(())
}
