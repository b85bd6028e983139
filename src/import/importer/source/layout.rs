//! How the sources of each tool are laid out.

use crate::records::Layout;
use treelined_core::agent::Tool;

/// The layout of records in the files of a tool. Gemini CLI and VS Code write both whole documents and lines.
pub(crate) fn layout(tool: Tool) -> Layout {
    match tool {
        Tool::Gemini | Tool::VscodeChat => Layout::Document,
        _ => Layout::Lines,
    }
}
