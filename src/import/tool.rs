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
    QwenCode,
    Cline,
    RooCode,
    KiloCode,
    CopilotCli,
    /// Copilot Chat in VS Code.
    VscodeChat,
    /// The export of an account of ChatGPT.
    ChatGpt,
    /// The export of an account of Claude.ai.
    ClaudeAi,
}

impl Tool {
    pub const ALL: [Self; 14] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Opencode,
        Self::Gemini,
        Self::Goose,
        Self::Pi,
        Self::QwenCode,
        Self::Cline,
        Self::RooCode,
        Self::KiloCode,
        Self::CopilotCli,
        Self::VscodeChat,
        Self::ChatGpt,
        Self::ClaudeAi,
    ];

    /// The agents that can continue a conversation.
    pub const AGENTS: [Self; 6] = [
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
            Self::QwenCode => "qwen-code",
            Self::Cline => "cline",
            Self::RooCode => "roo-code",
            Self::KiloCode => "kilo-code",
            Self::CopilotCli => "copilot-cli",
            Self::VscodeChat => "vscode-chat",
            Self::ChatGpt => "chatgpt",
            Self::ClaudeAi => "claude-ai",
        }
    }

    /// Whether the tool's conversations are on the machine only as an export that the user has downloaded.
    pub(crate) fn is_export(self) -> bool {
        matches!(self, Self::ChatGpt | Self::ClaudeAi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treelined_core::search::complete;

    #[test]
    fn completions_of_a_search_know_each_tool() {
        let items = complete("source:", usize::MAX).items.into_iter();
        let names: Vec<String> = items.map(|item| item.text).collect();
        assert_eq!(names, Tool::ALL.map(Tool::name));
    }
}
