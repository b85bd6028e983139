//! The settings of the program and their sources: the command line, then the environment, then the
//! configuration file, then the defaults.
//!
//! Owns the file's format (TOML; an unknown key is an error that names it) and its checks. The file never holds
//! keys of model providers, only the names of environment variables.

mod file;
mod lines;
mod paths;
mod programs;
mod renderers;

pub(crate) use file::check;

use self::renderers::{RendererSection, renderers};
use crate::durability::Durability;
use crate::extensions::Extension;
use crate::hooks::Hook;
use crate::renderers::Renderer;
use crate::summarizer::Summarizer;
use crate::summarizer::llm::{Api, ApiKey, Llm, LlmSettings, Provider};
use crate::summary::ModelName;
use crate::summary::conversation::TokenBudget;
use anyhow::{Context, anyhow, bail, ensure};
use file::ConfigFile;
use lines::{SettingLines, SettingOrigin};
use paths::{session_dir, socket};
use programs::{extensions, hooks, program};
use secrecy::SecretString;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The settings of one daemon.
#[derive(Debug, Clone)]
pub struct Config {
    pub session_dir: PathBuf,
    pub durability: Durability,
    pub summarizer: Option<Summarizer>,
    pub hooks: Vec<Hook>,
    /// The clients that a serving daemon starts.
    pub extensions: Vec<Extension>,
    /// The looks of custom messages, by custom type.
    pub renderers: BTreeMap<String, Renderer>,
    /// Bytes.
    pub max_frame_bytes: usize,
    /// Bytes.
    pub max_queued_bytes: usize,
    /// The working directory of sessions that name none.
    pub cwd: String,
}

/// The options of the command line; `None` for those not given.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigFlags {
    pub config: Option<PathBuf>,
    pub session_dir: Option<PathBuf>,
    pub socket: Option<PathBuf>,
    pub summarizer: Option<SummarizerName>,
    pub durability: Option<DurabilityName>,
    /// Bytes.
    pub max_frame_bytes: Option<u64>,
    /// Bytes.
    pub max_queued_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SummarizerName {
    #[default]
    None,
    Outline,
    Command,
    Llm,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DurabilityName {
    Os,
    #[default]
    Interval,
    Always,
}

/// Looks up an environment variable.
pub(crate) type EnvironmentLookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The settings in force, and where each comes from.
pub(crate) struct Settings {
    config: Config,
    socket: Option<PathBuf>,
    lines: SettingLines,
    file: Option<PathBuf>,
    /// The reason why the file must not be used.
    refused: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSections {
    session_dir: Option<PathBuf>,
    socket: Option<PathBuf>,
    durability: Option<DurabilityName>,
    #[serde(default)]
    limits: LimitsSection,
    #[serde(default)]
    summarizer: SummarizerSection,
    #[serde(default)]
    hooks: Vec<HookSection>,
    #[serde(default)]
    extensions: Vec<ExtensionSection>,
    #[serde(default)]
    renderers: BTreeMap<String, RendererSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitsSection {
    max_frame_bytes: Option<u64>,
    max_queued_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SummarizerSection {
    r#use: Option<SummarizerName>,
    /// The context window, in tokens, of a model that has no known one.
    context_window: Option<u64>,
    /// Tokens reserved for prompt and answer.
    reserve_tokens: Option<u64>,
    command: Option<CommandSection>,
    #[serde(default)]
    llm: LlmSection,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandSection {
    argv: Vec<String>,
    /// Environment variables that the program gets besides the usual ones.
    env: Option<Vec<String>>,
    timeout_ms: Option<u64>,
    max_output_bytes: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LlmSection {
    provider: Option<String>,
    model: Option<String>,
    prefer_configured: Option<bool>,
    max_output_tokens: Option<u64>,
    connect_timeout_ms: Option<u64>,
    idle_timeout_ms: Option<u64>,
    total_timeout_ms: Option<u64>,
    retries: Option<u64>,
    #[serde(default)]
    context_windows: BTreeMap<String, u64>,
    #[serde(default)]
    providers: BTreeMap<String, ProviderSection>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderSection {
    api: Option<ApiName>,
    base_url: Option<String>,
    /// The environment variable; empty if no key is needed.
    key_env: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ApiName {
    Anthropic,
    OpenAi,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HookSection {
    events: Vec<String>,
    argv: Vec<String>,
    /// Environment variables that the program gets besides the usual ones.
    env: Option<Vec<String>>,
    on_failure: Option<OnFailureName>,
    timeout_ms: Option<u64>,
    max_output_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OnFailureName {
    #[default]
    Cancel,
    Proceed,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExtensionSection {
    name: String,
    argv: Vec<String>,
    sessions: Option<SessionsName>,
    /// Names of before events.
    answers: Option<Vec<String>>,
    on_failure: Option<OnFailureName>,
    /// Environment variables that the program gets besides the usual ones.
    env: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SessionsName {
    #[default]
    Own,
    All,
}

/// Built-in providers: name, API, address, variable of the key.
const PROVIDERS: [(&str, ApiName, &str, &str); 2] = [
    (
        "anthropic",
        ApiName::Anthropic,
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
    ),
    (
        "openai",
        ApiName::OpenAi,
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
    ),
];

const LIMITS: std::ops::RangeInclusive<u64> = 1024..=1 << 40;
const MAX_FRAME_BYTES: u64 = 64 << 20;
const MAX_QUEUED_BYTES: u64 = 16 << 20;
const COMMAND_TIMEOUT_MS: u64 = 300_000;
const HOOK_TIMEOUT_MS: u64 = 10_000;
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

impl Settings {
    /// Reads the configuration file and combines all sources. Fails if a setting is wrong, naming it.
    pub(crate) fn resolve(
        flags: &ConfigFlags,
        environment: EnvironmentLookup<'_>,
    ) -> anyhow::Result<Self> {
        let ConfigFile {
            path,
            file,
            refused,
        } = file::read(flags.config.as_deref())?;
        let folder = path.as_deref().and_then(Path::parent);
        let mut lines = SettingLines::default();
        let session_dir = session_dir(flags, environment, &file, folder, &mut lines)?;
        let socket = socket(flags, environment, &file, folder, &mut lines)?;
        let durability = lines.pick(
            ("", "durability"),
            flags.durability,
            file.durability,
            DurabilityName::default(),
            |name| format!("{name:?}").to_lowercase().into(),
        );
        let bytes = |lines: &mut SettingLines, key, flag, file: Option<u64>, default| {
            let value = lines.number(("limits", key), flag, file, default);
            ensure!(
                LIMITS.contains(&value),
                "limits.{key}: must be from {} to {}",
                LIMITS.start(),
                LIMITS.end()
            );
            anyhow::Ok(usize::try_from(value)?)
        };
        let limits = &file.limits;
        let max_frame_bytes = bytes(
            &mut lines,
            "max_frame_bytes",
            flags.max_frame_bytes,
            limits.max_frame_bytes,
            MAX_FRAME_BYTES,
        )?;
        let max_queued_bytes = bytes(
            &mut lines,
            "max_queued_bytes",
            flags.max_queued_bytes,
            limits.max_queued_bytes,
            MAX_QUEUED_BYTES,
        )?;
        let summarizer = summarizer(flags, environment, &file.summarizer, &mut lines)?;
        let keys = key_variables(&file.summarizer.llm);
        let hooks = hooks(&file.hooks, path.as_deref(), &keys, &mut lines)?;
        let extensions = extensions(&file.extensions, path.as_deref(), &keys, &mut lines)?;
        let renderers = renderers(&file.renderers, &mut lines)?;
        let cwd = std::env::current_dir().context("the working directory")?;
        Ok(Self {
            config: Config {
                session_dir,
                durability: match durability {
                    DurabilityName::Os => Durability::Os,
                    DurabilityName::Interval => Durability::Interval,
                    DurabilityName::Always => Durability::Always,
                },
                summarizer,
                hooks,
                extensions,
                renderers,
                max_frame_bytes,
                max_queued_bytes,
                cwd: cwd.display().to_string(),
            },
            socket,
            lines,
            file: path,
            refused,
        })
    }

    /// The value of a setting in force, and whether it is the default; `None` if there is no such setting.
    pub(crate) fn value(&self, section: &str, key: &str) -> Option<(String, bool)> {
        self.lines.value(section, key)
    }

    /// The configuration file that was read.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub(crate) fn session_dir(&self) -> &Path {
        &self.config.session_dir
    }

    /// The given socket of the shared daemon.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Fails if the file must not be used.
    pub(crate) fn into_config(self) -> anyhow::Result<Config> {
        match self.refused {
            Some(why) => Err(anyhow!(why)),
            None => Ok(self.config),
        }
    }

    /// The current settings as an equivalent configuration file; each line has its source and its problem, if any.
    pub(crate) fn describe(&self) -> String {
        let mut text = match &self.file {
            Some(path) => format!("configuration file: {}", path.display()),
            None => "no configuration file".to_owned(),
        };
        text = lines::comment(&text);
        if let Some(why) = &self.refused {
            text.push_str(&lines::comment(why));
        }
        self.lines.describe(&mut text);
        text
    }

    /// Problems that do not prevent the daemon from running, such as programs that cannot be started.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &str> {
        self.lines.notes()
    }

    /// All problems, and the file that they are in.
    pub(crate) fn complaints(&self) -> (Option<&Path>, Vec<&str>) {
        let refused = self.refused.as_deref().into_iter();
        (
            self.file.as_deref(),
            refused.chain(self.problems()).collect(),
        )
    }
}

fn summarizer(
    flags: &ConfigFlags,
    environment: EnvironmentLookup<'_>,
    section: &SummarizerSection,
    lines: &mut SettingLines,
) -> anyhow::Result<Option<Summarizer>> {
    let of = "summarizer";
    let name = lines.pick(
        (of, "use"),
        flags.summarizer,
        section.r#use,
        SummarizerName::default(),
        |name| format!("{name:?}").to_lowercase().into(),
    );
    let known = TokenBudget::default();
    let window = section.context_window;
    let context_window = lines.number((of, "context_window"), None, window, known.context_window);
    let reserve = section.reserve_tokens;
    let reserve_tokens = lines.number((of, "reserve_tokens"), None, reserve, known.reserve_tokens);
    let budget = TokenBudget {
        context_window,
        reserve_tokens,
    };
    let command = match &section.command {
        Some(command) => Some(program(
            (&command.argv[..], command.env.as_deref()),
            &key_variables(&section.llm),
            lines.milliseconds(
                ("summarizer.command", "timeout_ms"),
                command.timeout_ms,
                COMMAND_TIMEOUT_MS,
            ),
            lines.number(
                ("summarizer.command", "max_output_bytes"),
                None,
                command.max_output_bytes,
                MAX_OUTPUT_BYTES,
            ),
            ("summarizer.command", lines),
        )?),
        None => None,
    };
    Ok(match name {
        SummarizerName::None => None,
        SummarizerName::Outline => Some(Summarizer::Outline),
        SummarizerName::Command => Some(Summarizer::Command {
            program: command.context("summarizer.command.argv: is missing")?,
            budget,
        }),
        SummarizerName::Llm => {
            let settings = llm(environment, &section.llm, budget, lines)?;
            Some(Summarizer::Llm(
                Llm::new(settings).context("the model client")?,
            ))
        }
    })
}

fn llm(
    environment: EnvironmentLookup<'_>,
    section: &LlmSection,
    budget: TokenBudget,
    lines: &mut SettingLines,
) -> anyhow::Result<LlmSettings> {
    let of = "summarizer.llm";
    let model = match (&section.provider, &section.model) {
        (Some(provider), Some(model)) => {
            lines.push(
                (of, "provider"),
                provider.clone().into(),
                SettingOrigin::File,
            );
            lines.push((of, "model"), model.clone().into(), SettingOrigin::File);
            Some(ModelName {
                provider: provider.clone(),
                model_id: model.clone(),
            })
        }
        (None, None) => None,
        (Some(_), None) => bail!("summarizer.llm.model: is missing beside provider"),
        (None, Some(_)) => bail!("summarizer.llm.provider: is missing beside model"),
    };
    let prefer = section.prefer_configured;
    let prefer_configured = lines.pick((of, "prefer_configured"), None, prefer, false, |prefer| {
        prefer.into()
    });
    let settings = LlmSettings {
        model,
        prefer_configured,
        budget,
        context_windows: section.context_windows.clone(),
        max_output_tokens: lines.number(
            (of, "max_output_tokens"),
            None,
            section.max_output_tokens,
            8192,
        ),
        connect_timeout: lines.milliseconds(
            (of, "connect_timeout_ms"),
            section.connect_timeout_ms,
            10_000,
        ),
        idle_timeout: lines.milliseconds((of, "idle_timeout_ms"), section.idle_timeout_ms, 60_000),
        total_timeout: lines.milliseconds(
            (of, "total_timeout_ms"),
            section.total_timeout_ms,
            300_000,
        ),
        retries: u32::try_from(
            lines
                .number((of, "retries"), None, section.retries, 3)
                .min(10),
        )?,
        providers: providers(environment, section, lines)?,
    };
    for (model, window) in &section.context_windows {
        let window = toml::Value::Integer(i64::try_from(*window)?);
        lines.push(
            ("summarizer.llm.context_windows", model),
            window,
            SettingOrigin::File,
        );
    }
    if let Some(model) = &settings.model {
        let name = &model.provider;
        let is_known = settings.providers.contains_key(name);
        ensure!(
            is_known,
            "summarizer.llm.provider: no provider {name:?} is configured"
        );
    }
    Ok(settings)
}

/// The built-in providers and those of the file, which may override them.
fn providers(
    environment: EnvironmentLookup<'_>,
    section: &LlmSection,
    lines: &mut SettingLines,
) -> anyhow::Result<BTreeMap<String, Provider>> {
    let mut names: Vec<&str> = PROVIDERS.iter().map(|(name, ..)| *name).collect();
    let configured = section.providers.keys().map(String::as_str);
    names.extend(configured.filter(|name| !PROVIDERS.iter().any(|(known, ..)| known == name)));
    let mut providers = BTreeMap::new();
    let none = ProviderSection::default();
    for name in names {
        let given = section.providers.get(name).unwrap_or(&none);
        let known = PROVIDERS.iter().find(|(known, ..)| *known == name);
        let of = format!("summarizer.llm.providers.{}", lines::key(name));
        let missing = |key: &str| format!("{of}.{key}: is missing");
        let api = given.api.or(known.map(|(_, api, ..)| *api));
        let api = api.with_context(|| missing("api"))?;
        let base_url = given
            .base_url
            .as_deref()
            .or(known.map(|(_, _, url, _)| *url));
        let base_url = base_url.with_context(|| missing("base_url"))?;
        let url = reqwest::Url::parse(base_url).with_context(|| format!("{of}.base_url"))?;
        let is_http = matches!(url.scheme(), "http" | "https");
        ensure!(
            is_http,
            "{of}.base_url: must begin with http:// or https://"
        );
        // The address is shown to users and sent, so it must hold no secret.
        let is_bare = url.username().is_empty() && url.password().is_none();
        ensure!(is_bare, "{of}.base_url: must not hold a user or a password");
        let variable = given.key_env.as_deref().or(known.map(|(.., key)| *key));
        let variable = variable.filter(|variable| !variable.is_empty());
        let origin = |is_given: bool| match is_given {
            true => SettingOrigin::File,
            false => SettingOrigin::Default,
        };
        let api_name = match api {
            ApiName::Anthropic => "anthropic",
            ApiName::OpenAi => "openai",
        };
        lines.push((&of, "api"), api_name.into(), origin(given.api.is_some()));
        lines.push(
            (&of, "base_url"),
            base_url.into(),
            origin(given.base_url.is_some()),
        );
        let shown = variable.unwrap_or_default();
        lines.push(
            (&of, "key_env"),
            shown.into(),
            origin(given.key_env.is_some()),
        );
        let key = variable.map(|variable| ApiKey {
            variable: variable.to_owned(),
            secret: environment(variable)
                .and_then(|key| key.into_string().ok())
                .filter(|key| !key.trim().is_empty())
                .map(|key| SecretString::from(key.trim().to_owned())),
        });
        let provider = Provider {
            api: match api {
                ApiName::Anthropic => Api::Anthropic,
                ApiName::OpenAi => Api::OpenAi,
            },
            base_url: url,
            key,
        };
        providers.insert(name.to_owned(), provider);
    }
    Ok(providers)
}

/// The environment variables that hold keys.
fn key_variables(section: &LlmSection) -> Vec<String> {
    let built_in = PROVIDERS.iter().map(|(.., variable)| *variable);
    let configured = section.providers.values();
    let configured = configured.filter_map(|provider| provider.key_env.as_deref());
    built_in.chain(configured).map(str::to_owned).collect()
}
