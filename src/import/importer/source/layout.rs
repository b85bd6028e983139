//! How the sources of each tool are laid out.

use crate::records::Layout;
use crate::tool::Tool;

/// The layout of records in the files of a tool. Gemini CLI writes both whole documents and lines, in files with the
/// same endings.
pub(crate) fn layout(tool: Tool) -> Layout {
    match tool {
        Tool::Gemini => Layout::Document,
        _ => Layout::Lines,
    }
}
