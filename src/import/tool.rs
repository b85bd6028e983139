//! The tools whose conversations can be imported.

/// The tools whose conversations can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    ClaudeCode,
    Codex,
    Opencode,
    Gemini,
    Goose,
    Pi,
}

impl Tool {
    pub const ALL: [Self; 6] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Opencode,
        Self::Gemini,
        Self::Goose,
        Self::Pi,
    ];

    /// The name in params, reports and `origin` members.
    pub fn name(self) -> &'static str {
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
