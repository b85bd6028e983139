//! The names of tools in options.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use treelined_import::Tool;

/// The tool of this name; `None` if it is not one.
pub(super) fn tool_of(name: &str) -> Option<Tool> {
    Tool::ALL.into_iter().find(|tool| tool.name() == name)
}

/// Reads the name of a tool.
pub(super) fn tool() -> impl TypedValueParser<Value = Tool> {
    let names = PossibleValuesParser::new(Tool::ALL.map(Tool::name));
    names.try_map(|name| tool_of(&name).ok_or("not a tool"))
}

/// Reads the name of a tool, or another word.
pub(super) fn tool_or(word: &'static str) -> PossibleValuesParser {
    let names = Tool::ALL.map(Tool::name).into_iter().chain([word]);
    PossibleValuesParser::new(names)
}
