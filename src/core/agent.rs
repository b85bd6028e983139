//! The agents and services whose conversations can be imported: the only list of their names.

/// Passes the tools and their names to the macro `$list`. The agents that can continue a conversation come first.
#[macro_export]
macro_rules! each_tool {
    ($list:ident) => {
        $list! {
            [
                ClaudeCode = "claude-code",
                Codex = "codex",
                Opencode = "opencode",
                Gemini = "gemini",
                Goose = "goose",
                Pi = "pi",
            ]
            [
                QwenCode = "qwen-code",
                Cline = "cline",
                RooCode = "roo-code",
                KiloCode = "kilo-code",
                CopilotCli = "copilot-cli",
                // Copilot Chat in VS Code.
                VscodeChat = "vscode-chat",
                // The exports of accounts of ChatGPT and Claude.ai.
                ChatGpt = "chatgpt",
                ClaudeAi = "claude-ai",
            ]
        }
    };
}

macro_rules! tool {
    ([$($agent:ident = $agent_name:literal,)+] [$($other:ident = $other_name:literal,)+]) => {
        /// The tools whose conversations can be imported.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Tool {
            $($agent,)+
            $($other,)+
        }

        impl Tool {
            pub const ALL: [Self; 14] = [$(Self::$agent,)+ $(Self::$other,)+];

            /// The agents that can continue a conversation.
            pub const AGENTS: [Self; 6] = [$(Self::$agent,)+];

            /// The name in params, reports and `origin` members.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$agent => $agent_name,)+
                    $(Self::$other => $other_name,)+
                }
            }
        }
    };
}
each_tool!(tool);

impl Tool {
    /// Whether the tool's conversations are on the machine only as an export that the user has downloaded.
    pub fn is_export(self) -> bool {
        matches!(self, Self::ChatGpt | Self::ClaudeAi)
    }
}
