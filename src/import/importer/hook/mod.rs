//! The import of one conversation, without a search of all others, when a hook of its tool says that a turn has ended
//! (protocol.md §3.17).
//!
//! [`request`] reads the input of a hook, finds the files ([`event`], [`place`]) and leaves a request in `.imports/requests`
//! ([`requests`]). [`take`] imports the requested files: in the background for the hook, and at the end of an import that has kept
//! it waiting. [`log`] keeps a line for each failure, since nobody sees the stderr of a hook.

mod event;
mod git;
pub mod log;
mod place;
mod requests;
mod take;
#[cfg(test)]
mod tests;

use crate::tool::Tool;
use event::HookEvent;
pub use event::MAX_INPUT;
use requests::{Request, Requests};
use std::path::Path;
pub use take::take;
use treelined_core::error::Result;

/// Leaves a request for the conversation of which a hook speaks. `invalidParams` if it speaks of none, or of a file that
/// is not one of its tool's.
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
