//! Imports one conversation when a hook of its tool says that a turn has ended, without a search for other
//! conversations (protocol.md §3.17).
//!
//! [`request`] reads the input of a hook ([`event`]), finds the files ([`place`]), and writes a request into
//! `.imports/requests` ([`requests`]). [`take`] imports the requested files. The hook starts [`take`] in the
//! background. If another import is running at this time, that import calls [`take`] at its end. [`log`] writes a line
//! for each failure, because the stderr of a hook is not shown.

mod event;
mod git;
pub mod log;
mod place;
mod requests;
mod take;
#[cfg(test)]
mod tests;

use event::HookEvent;
pub use event::MAX_INPUT;
use requests::{Request, Requests};
use std::path::Path;
pub use take::take;
use treelined_core::agent::Tool;
use treelined_core::error::Result;

/// Writes a request for the conversation that a hook names. Fails with `invalidParams` if the input names no
/// conversation, or a file that is not a conversation of the tool.
pub fn request(session_dir: &Path, tool: Tool, input: &[u8]) -> Result<()> {
    let event = HookEvent::read(input)?;
    let paths = place::files(tool, &event, &|name| std::env::var_os(name))?;
    let place = event.folder.as_deref().and_then(git::place_of);
    Requests::of(session_dir)?.add(&Request {
        tool,
        paths,
        git: event.session.zip(place),
        has_ended: event.has_ended,
    })
}
