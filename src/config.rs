//! What the program is set up with, and where each setting comes from: the command line before the
//! environment before the configuration file before what is built in.
//!
//! Owns the file's format (TOML; a key nobody knows is an error that names it) and its checks. Keys of
//! model providers are never in it: it names variables of the environment.

use crate::hooks::Hook;
use crate::program::{self, Program};
use crate::rpc::Config;
use crate::schema;
use crate::summarizer::conversation::Budget;
use crate::summarizer::llm::{Api, Key, Llm, Provider, Settings as LlmSettings};
use crate::summarizer::{ModelName, Summarizer};
use crate::sync::Durability;
use anyhow::{Context, anyhow, bail, ensure};
use etcetera::BaseStrategy;
use secrecy::SecretString;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the command line says; `None` where it says nothing.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub session_dir: Option<PathBuf>,
    pub summarizer: Option<SummarizerName>,
    pub durability: Option<DurabilityName>,
    /// Bytes.
    pub max_frame_bytes: Option<u64>,
    /// Bytes.
    pub max_queued_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SummarizerName {
    #[default]
    None,
    Outline,
    Command,
    Llm,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityName {
    Os,
    #[default]
    Interval,
    Always,
}

/// Reads variables of the environment.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Everything that is in force.
pub struct Settings {
    config: Config,
    /// For [`Settings::describe`]: section, key, value, origin.
    lines: Vec<(String, String, toml::Value, Origin)>,
    file: Option<PathBuf>,
}

/// Where a setting comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Flag,
    Environment,
    File,
    Default,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    session_dir: Option<PathBuf>,
    durability: Option<DurabilityName>,
    #[serde(default)]
    limits: LimitsSection,
    #[serde(default)]
    summarizer: SummarizerSection,
    #[serde(default)]
    hooks: Vec<HookSection>,
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
    /// Tokens that a model nobody knows takes in all.
    context_window: Option<u64>,
    /// Tokens kept free for prompt and answer.
    reserve_tokens: Option<u64>,
    command: Option<CommandSection>,
    #[serde(default)]
    llm: LlmSection,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandSection {
    argv: Vec<String>,
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
    /// The variable of the environment; empty: no key is needed.
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
    timeout_ms: Option<u64>,
    max_output_bytes: Option<u64>,
}

const LIMITS: std::ops::RangeInclusive<u64> = 1024..=1 << 40;
const MAX_FRAME_BYTES: u64 = 64 << 20;
const MAX_QUEUED_BYTES: u64 = 16 << 20;
const COMMAND_TIMEOUT_MS: u64 = 300_000;
const HOOK_TIMEOUT_MS: u64 = 10_000;
const MAX_OUTPUT_BYTES: u64 = 1 << 20;

impl Settings {
    /// Reads the configuration file and weighs everything. Fails where a setting is wrong, naming it.
    pub fn resolve(flags: &Flags, environment: Environment<'_>) -> anyhow::Result<Self> {
        let (path, file) = read_file(flags.config.as_deref())?;
        let folder = path.as_deref().and_then(Path::parent);
        let runs_programs = !file.hooks.is_empty() || file.summarizer.command.is_some();
        if let Some(path) = path.as_deref().filter(|_| runs_programs) {
            let checked = program::check_file(path);
            checked.map_err(|why| anyhow::anyhow!("{}, and it names programs to run", why))?;
        }
        let mut lines = Lines::default();
        let session_dir = session_dir(flags, environment, &file, folder, &mut lines)?;
        let durability = lines.pick(
            ("", "durability"),
            flags.durability,
            file.durability,
            DurabilityName::default(),
            |name| format!("{name:?}").to_lowercase().into(),
        );
        let bytes = |lines: &mut Lines, key, flag, file: Option<u64>, default| {
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
        let hooks = hooks(&file.hooks, &mut lines)?;
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
                max_frame_bytes,
                max_queued_bytes,
                cwd: cwd.display().to_string(),
            },
            lines: lines.0,
            file: path,
        })
    }

    pub fn into_config(self) -> Config {
        self.config
    }

    /// What is in force, as a configuration file that says the same, each line with where it comes
    /// from.
    pub fn describe(&self) -> String {
        let mut text = match &self.file {
            Some(path) => format!("# configuration file: {}\n", path.display()),
            None => "# no configuration file\n".to_owned(),
        };
        let mut section = "";
        for (of, key, value, origin) in &self.lines {
            // Each hook is a table of its own, and begins with its events.
            if of != section || (of == "[hooks]" && key == "events") {
                let _ = write!(text, "\n[{of}]\n");
                section = of;
            }
            let origin = match origin {
                Origin::Flag => "command line",
                Origin::Environment => "environment",
                Origin::File => "file",
                Origin::Default => "default",
            };
            let _ = writeln!(text, "{key} = {value} # {origin}");
        }
        text
    }
}

/// The file named, which must be there, or the one in the platform's configuration directory, which
/// need not.
fn read_file(named: Option<&Path>) -> anyhow::Result<(Option<PathBuf>, File)> {
    let path = match named {
        Some(path) => Some(std::path::absolute(path).context("--config")?),
        None => etcetera::choose_base_strategy()
            .ok()
            .map(|base| base.config_dir().join("treelined").join("config.toml")),
    };
    let Some(path) = path else {
        return Ok((None, File::default()));
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => {
            return Ok((None, File::default()));
        }
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let file = parse(&text).with_context(|| path.display().to_string())?;
    Ok((Some(path), file))
}

/// Errors name the line and the key, and show nothing of the line: somebody may have put a secret there.
fn parse(text: &str) -> anyhow::Result<File> {
    let line = |error: &toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        before.unwrap_or_default().matches('\n').count() + 1
    };
    let toml = toml::Deserializer::parse(text)
        .map_err(|error| anyhow!("line {}: {}", line(&error), error.message()))?;
    serde_path_to_error::deserialize(toml).map_err(|error| {
        let key = error.path().to_string();
        let error = error.into_inner();
        anyhow!("line {}: {key}: {}", line(&error), error.message())
    })
}

fn session_dir(
    flags: &Flags,
    environment: Environment<'_>,
    file: &File,
    folder: Option<&Path>,
    lines: &mut Lines,
) -> anyhow::Result<PathBuf> {
    let named = environment("TREELINED_SESSION_DIR").filter(|dir| !dir.is_empty());
    let (dir, origin) = if let Some(dir) = &flags.session_dir {
        (dir.clone(), Origin::Flag)
    } else if let Some(dir) = named {
        (PathBuf::from(dir), Origin::Environment)
    } else if let Some(dir) = &file.session_dir {
        (folder.unwrap_or(Path::new("")).join(dir), Origin::File)
    } else {
        let base = etcetera::choose_base_strategy();
        let base = base.context("no home directory; give --session-dir")?;
        let dir = base.data_dir().join("treelined").join("sessions");
        (dir, Origin::Default)
    };
    let dir = std::path::absolute(dir).context("the session directory")?;
    let shown = dir.display().to_string();
    lines.push(("", "session_dir"), shown.into(), origin);
    Ok(dir)
}

fn summarizer(
    flags: &Flags,
    environment: Environment<'_>,
    section: &SummarizerSection,
    lines: &mut Lines,
) -> anyhow::Result<Option<Summarizer>> {
    let of = "summarizer";
    let name = lines.pick(
        (of, "use"),
        flags.summarizer,
        section.r#use,
        SummarizerName::default(),
        |name| format!("{name:?}").to_lowercase().into(),
    );
    let known = Budget::default();
    let window = section.context_window;
    let context_window = lines.number((of, "context_window"), None, window, known.context_window);
    let reserve = section.reserve_tokens;
    let reserve_tokens = lines.number((of, "reserve_tokens"), None, reserve, known.reserve_tokens);
    let budget = Budget {
        context_window,
        reserve_tokens,
    };
    let command = match &section.command {
        Some(command) => Some(program(
            &command.argv,
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
    environment: Environment<'_>,
    section: &LlmSection,
    budget: Budget,
    lines: &mut Lines,
) -> anyhow::Result<LlmSettings> {
    let of = "summarizer.llm";
    let model = match (&section.provider, &section.model) {
        (Some(provider), Some(model)) => {
            lines.push((of, "provider"), provider.clone().into(), Origin::File);
            lines.push((of, "model"), model.clone().into(), Origin::File);
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
        let key = format!("{:?}", model);
        let window = toml::Value::Integer(i64::try_from(*window)?);
        lines.push(
            ("summarizer.llm.context_windows", &key),
            window,
            Origin::File,
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

/// Those built in, and those of the file, which may change them.
fn providers(
    environment: Environment<'_>,
    section: &LlmSection,
    lines: &mut Lines,
) -> anyhow::Result<BTreeMap<String, Provider>> {
    let built_in = [
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
    let mut names: Vec<&str> = built_in.iter().map(|(name, ..)| *name).collect();
    let configured = section.providers.keys().map(String::as_str);
    names.extend(configured.filter(|name| !built_in.iter().any(|(known, ..)| known == name)));
    let mut providers = BTreeMap::new();
    let none = ProviderSection::default();
    for name in names {
        let given = section.providers.get(name).unwrap_or(&none);
        let known = built_in.iter().find(|(known, ..)| *known == name);
        let of = format!("summarizer.llm.providers.{name}");
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
        // It is shown and would be sent as a secret that nobody protects.
        let is_bare = url.username().is_empty() && url.password().is_none();
        ensure!(is_bare, "{of}.base_url: must not hold a user or a password");
        let variable = given.key_env.as_deref().or(known.map(|(.., key)| *key));
        let variable = variable.filter(|variable| !variable.is_empty());
        let origin = |is_given: bool| match is_given {
            true => Origin::File,
            false => Origin::Default,
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
        let key = variable.map(|variable| Key {
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

fn hooks(sections: &[HookSection], lines: &mut Lines) -> anyhow::Result<Vec<Hook>> {
    let mut hooks = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        for event in &section.events {
            let silent = matches!(event.as_str(), "summary_delta" | "progress" | "events_lost");
            let is_known = schema::notification_names().any(|name| name == event) && !silent;
            ensure!(
                is_known,
                "hooks[{index}].events: no event {event:?} can be listened to"
            );
        }
        let events = section.events.iter().map(|event| event.as_str().into());
        let events = toml::Value::Array(events.collect());
        lines.push(("[hooks]", "events"), events, Origin::File);
        let of = "[hooks]";
        let timeout = lines.milliseconds((of, "timeout_ms"), section.timeout_ms, HOOK_TIMEOUT_MS);
        let max = section.max_output_bytes;
        let max = lines.number((of, "max_output_bytes"), None, max, MAX_OUTPUT_BYTES);
        let program = program(&section.argv, timeout, max, (of, lines));
        let program = program.with_context(|| format!("hooks[{index}]"))?;
        let checked = program.check_files();
        checked.map_err(|why| anyhow::anyhow!("hooks[{index}] is refused: {why}"))?;
        hooks.push(Hook {
            events: section.events.clone(),
            program,
        });
    }
    Ok(hooks)
}

fn program(
    argv: &[String],
    timeout: Duration,
    max_output_bytes: u64,
    (of, lines): (&str, &mut Lines),
) -> anyhow::Result<Program> {
    ensure!(!argv.is_empty(), "{of}.argv: names no program");
    let shown = argv.iter().map(|argument| argument.as_str().into());
    lines.push(
        (of, "argv"),
        toml::Value::Array(shown.collect()),
        Origin::File,
    );
    Ok(Program {
        argv: argv.to_vec(),
        timeout,
        max_output_bytes: usize::try_from(max_output_bytes)?,
    })
}

/// What [`Settings::describe`] will say.
#[derive(Default)]
struct Lines(Vec<(String, String, toml::Value, Origin)>);

impl Lines {
    fn push(&mut self, (of, key): (&str, &str), value: toml::Value, origin: Origin) {
        self.0.push((of.to_owned(), key.to_owned(), value, origin));
    }

    fn pick<T: Copy>(
        &mut self,
        at: (&str, &str),
        flag: Option<T>,
        file: Option<T>,
        default: T,
        shown: impl FnOnce(T) -> toml::Value,
    ) -> T {
        let (value, origin) = match (flag, file) {
            (Some(value), _) => (value, Origin::Flag),
            (None, Some(value)) => (value, Origin::File),
            (None, None) => (default, Origin::Default),
        };
        self.push(at, shown(value), origin);
        value
    }

    fn number(
        &mut self,
        at: (&str, &str),
        flag: Option<u64>,
        file: Option<u64>,
        default: u64,
    ) -> u64 {
        let shown = |value| toml::Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
        self.pick(at, flag, file, default, shown)
    }

    fn milliseconds(&mut self, at: (&str, &str), file: Option<u64>, default: u64) -> Duration {
        Duration::from_millis(self.number(at, None, file, default))
    }
}
