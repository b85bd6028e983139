//! The names of tools as values of options.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use treelined_import::Tool;

/// The tool with this name; `None` if there is none.
pub(super) fn tool_of(name: &str) -> Option<Tool> {
    Tool::ALL.into_iter().find(|tool| tool.name() == name)
}

/// Reads the name of a tool that has hooks.
pub(super) fn agent() -> impl TypedValueParser<Value = Tool> {
    let names = PossibleValuesParser::new(Tool::AGENTS.map(Tool::name));
    names.try_map(|name| tool_of(&name).ok_or("not a tool"))
}

/// Reads the name of a tool, or the word `auto`.
pub(super) fn tool_or_auto() -> PossibleValuesParser {
    let names = Tool::ALL.map(Tool::name).into_iter().chain(["auto"]);
    PossibleValuesParser::new(names)
}

/// Reads the name of an agent that can continue a conversation, or the value of `word`.
pub(super) fn agent_or(word: &'static str) -> PossibleValuesParser {
    let names = Tool::AGENTS.map(Tool::name).into_iter().chain([word]);
    PossibleValuesParser::new(names)
}
