//! How the sources of each tool are laid out.

use crate::records::Layout;
use crate::tool::Tool;

/// The arrangement of records in the files of a tool. Gemini CLI writes documents and lines, with either ending.
pub(crate) fn layout(tool: Tool) -> Layout {
    match tool {
        Tool::Gemini => Layout::Document,
        _ => Layout::Lines,
    }
}
