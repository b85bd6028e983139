//! The sections of the configuration file.

use super::flags::SummarizerName;
use super::idle_time::IdleTime;
use super::keep_time::KeepTime;
use super::prices::PriceSection;
use super::renderers::RendererSection;
use super::team::{LogSection, TeamSection};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use treelined_core::durability::DurabilityPolicy;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSections {
    pub(super) session_dir: Option<PathBuf>,
    pub(super) socket: Option<PathBuf>,
    pub(super) idle_exit: Option<IdleTime>,
    pub(super) durability: Option<DurabilityPolicy>,
    #[serde(default)]
    pub(super) access: BTreeMap<String, AccessSection>,
    #[serde(default)]
    pub(super) limits: LimitsSection,
    #[serde(default)]
    pub(super) summarizer: SummarizerSection,
    #[serde(default)]
    pub(super) hooks: Vec<HookSection>,
    #[serde(default)]
    pub(super) extensions: Vec<ExtensionSection>,
    #[serde(default)]
    pub(super) renderers: BTreeMap<String, RendererSection>,
    #[serde(default)]
    pub(super) prices: BTreeMap<String, PriceSection>,
    #[serde(default)]
    pub(super) redact: RedactSection,
    #[serde(default)]
    pub(super) trash: TrashSection,
    pub(super) author: Option<AuthorSection>,
    pub(super) team: Option<TeamSection>,
    #[serde(default)]
    pub(super) log: LogSection,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccessSection {
    pub(super) socket: Option<PathBuf>,
    /// The file with the token for the WebSocket.
    pub(super) token_file: Option<PathBuf>,
    /// For these clients, only the sessions in these directories or below exist.
    pub(super) directories: Vec<PathBuf>,
    pub(super) may: Option<MayName>,
    /// Whether secrets are replaced.
    pub(super) redact: Option<bool>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MayName {
    #[default]
    Read,
    Append,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RedactSection {
    /// Words that exports replace wherever they occur.
    #[serde(default)]
    pub(super) words: Vec<String>,
}

/// Leaves the words out of the output of `Debug`, since they are secrets.
impl std::fmt::Debug for RedactSection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedactSection").finish_non_exhaustive()
    }
}

/// The writer that entries name. With this section, entries of sessions without a team name it too.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuthorSection {
    pub(super) name: Option<String>,
    pub(super) host: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrashSection {
    /// How long a deleted session stays in the trash before `treelined purge --expired` removes it.
    pub(super) keep: Option<KeepTime>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsSection {
    pub(super) max_frame_bytes: Option<u64>,
    pub(super) max_queued_bytes: Option<u64>,
    pub(super) max_working_bytes: Option<u64>,
    pub(super) max_kept_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SummarizerSection {
    pub(super) r#use: Option<SummarizerName>,
    /// The context window, in tokens, of a model whose window is unknown.
    pub(super) context_window: Option<u64>,
    /// The number of tokens reserved for the prompt and the answer.
    pub(super) reserve_tokens: Option<u64>,
    pub(super) command: Option<CommandSection>,
    #[serde(default)]
    pub(super) llm: LlmSection,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandSection {
    pub(super) argv: Vec<String>,
    /// The environment variables that the program gets in addition to the usual ones.
    pub(super) env: Option<Vec<String>>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_output_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LlmSection {
    pub(super) provider: Option<String>,
    pub(super) model: Option<String>,
    pub(super) prefer_configured: Option<bool>,
    pub(super) max_output_tokens: Option<u64>,
    pub(super) connect_timeout_ms: Option<u64>,
    pub(super) idle_timeout_ms: Option<u64>,
    pub(super) total_timeout_ms: Option<u64>,
    pub(super) retries: Option<u64>,
    #[serde(default)]
    pub(super) context_windows: BTreeMap<String, u64>,
    #[serde(default)]
    pub(super) providers: BTreeMap<String, ProviderSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderSection {
    pub(super) api: Option<ApiName>,
    pub(super) base_url: Option<String>,
    /// The environment variable with the key; empty if no key is needed.
    pub(super) key_env: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ApiName {
    Anthropic,
    OpenAi,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HookSection {
    pub(super) events: Vec<String>,
    pub(super) argv: Vec<String>,
    /// The environment variables that the program gets in addition to the usual ones.
    pub(super) env: Option<Vec<String>>,
    pub(super) on_failure: Option<OnFailureName>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_output_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnFailureName {
    #[default]
    Cancel,
    Proceed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExtensionSection {
    pub(super) name: String,
    pub(super) argv: Vec<String>,
    pub(super) sessions: Option<SessionsName>,
    pub(super) may: Option<ExtensionMayName>,
    /// The names of the before events that it answers.
    pub(super) answers: Option<Vec<String>>,
    pub(super) on_failure: Option<OnFailureName>,
    /// The environment variables that the program gets in addition to the usual ones.
    pub(super) env: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ExtensionMayName {
    Read,
    #[default]
    Append,
    All,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SessionsName {
    #[default]
    Own,
    All,
}

pub(super) const HOOK_TIMEOUT_MS: u64 = 10_000;

pub(super) const MAX_OUTPUT_BYTES: u64 = 1 << 20;
