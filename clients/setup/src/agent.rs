//! The agents, and their names.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// An agent whose conversations treelined keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Agent {
    ClaudeCode,
    Codex,
    Opencode,
    Gemini,
    Goose,
    Pi,
}

impl Agent {
    pub(crate) const ALL: [Self; 6] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Opencode,
        Self::Gemini,
        Self::Goose,
        Self::Pi,
    ];

    /// The name in options and units.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
            Self::Pi => "pi",
        }
    }
}
