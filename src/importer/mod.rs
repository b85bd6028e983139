//! Imports the conversations of other tools: finds their files, keeps their bytes, and writes the sessions.
//!
//! It only reads what belongs to other tools. In reading order: [`discover`] finds the sources; [`source`] streams one and
//! reads places of it; [`origin`] keeps the bytes; [`ledger`] remembers what was imported.

pub(crate) mod origin;
pub(crate) mod source;

use crate::import::Tool;
use source::Extraction;

/// The extraction of a tool that keeps its sessions in databases or in folders of small files.
pub(crate) fn extraction(_tool: Tool) -> Option<&'static dyn Extraction> {
    None
}
