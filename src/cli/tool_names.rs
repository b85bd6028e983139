//! The names of tools in options.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use treelined_import::Tool;

/// The tool of this name; `None` if it is not one.
pub(super) fn tool_of(name: &str) -> Option<Tool> {
    Tool::ALL.into_iter().find(|tool| tool.name() == name)
}

/// Reads the name of a tool that has hooks.
pub(super) fn agent() -> impl TypedValueParser<Value = Tool> {
    let names = PossibleValuesParser::new(Tool::AGENTS.map(Tool::name));
    names.try_map(|name| tool_of(&name).ok_or("not a tool"))
}

/// Reads the name of a tool, or `auto`.
pub(super) fn tool_or_auto() -> PossibleValuesParser {
    let names = Tool::ALL.map(Tool::name).into_iter().chain(["auto"]);
    PossibleValuesParser::new(names)
}

/// Reads the name of an agent in which a conversation can go on, or another word.
pub(super) fn agent_or(word: &'static str) -> PossibleValuesParser {
    let names = Tool::AGENTS.map(Tool::name).into_iter().chain([word]);
    PossibleValuesParser::new(names)
}
