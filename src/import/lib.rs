//! Imports the conversations of other tools. The records of a tool's files become a tree of nodes, each node becomes
//! an entry, and the entries become sessions.
//!
//! Files of other tools are only read. Every byte that was imported is kept, so that a session can be made again
//! after a tool has removed its files. Entries that an import has written stay as they are.
//!
//! The [`Format`] of a tool has two halves. A reader turns the records of one source into [`Member`]s, without the
//! bodies of their nodes. A mapper makes the entry of one node from the bytes of its records. Both halves are pure.
//! Each tool has one folder here. [`importer`] finds the sources, keeps their bytes, and writes the sessions. This
//! crate promises no interface to other programs.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

mod chatgpt;
mod claude_ai;
mod claude_code;
mod cline;
pub(crate) mod codex;
pub(crate) mod copilot_cli;
pub(crate) mod family;
mod gemini;
pub(crate) mod goose;
pub(crate) mod ids;
pub mod importer;
pub(crate) mod mapping;
pub mod member;
mod message;
pub mod neutral;
pub(crate) mod opencode;
mod order;
pub(crate) mod pi;
mod qwen;
mod reader;
pub mod records;
#[cfg(test)]
pub(crate) mod tests;
mod value;
pub(crate) mod vscode_chat;
pub mod whole;

use reader::Format;
pub use treelined_core::agent::Tool;

/// The format of a tool.
pub(crate) fn format(tool: Tool) -> &'static dyn Format {
    match tool {
        Tool::ClaudeCode => &claude_code::ClaudeCode,
        Tool::Codex => &codex::CodexFormat,
        Tool::Opencode => &opencode::Opencode,
        Tool::Gemini => &gemini::Gemini,
        Tool::Goose => &goose::Goose,
        Tool::Pi => &pi::PiFormat,
        Tool::QwenCode => &qwen::Qwen,
        Tool::Cline | Tool::RooCode | Tool::KiloCode => &cline::Cline,
        Tool::CopilotCli => &copilot_cli::CopilotCli,
        Tool::VscodeChat => &vscode_chat::VscodeChat,
        Tool::ChatGpt => &chatgpt::ChatGpt,
        Tool::ClaudeAi => &claude_ai::ClaudeAi,
    }
}
