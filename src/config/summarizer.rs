//! The settings of the summarizer: its kind, its program, and the providers of models.

use super::flags::{ConfigFlags, EnvironmentLookup, SummarizerName};
use super::lines::{self, SettingLines, SettingOrigin};
use super::programs::program;
use super::sections::{ApiName, LlmSection, MAX_OUTPUT_BYTES, ProviderSection, SummarizerSection};
use anyhow::{Context, bail, ensure};
use secrecy::SecretString;
use std::collections::BTreeMap;
use treelined_core::summary::ModelName;
use treelined_core::summary::conversation::TokenBudget;
use treelined_service::summarizer::Summarizer;
use treelined_service::summarizer::llm::{Api, ApiKey, Llm, LlmSettings, Provider};

/// The built-in providers: name, API, address, and the environment variable of the key.
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

const COMMAND_TIMEOUT_MS: u64 = 300_000;

pub(super) fn summarizer(
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

/// The built-in providers, and the providers of the file, which may override them.
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
        // The address is sent and shown to users, so it must not contain a secret.
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

/// The environment variables that have keys and passwords.
pub(super) fn key_variables(section: &LlmSection) -> Vec<String> {
    let built_in = PROVIDERS.iter().map(|(.., variable)| *variable);
    let configured = section.providers.values();
    let configured = configured.filter_map(|provider| provider.key_env.as_deref());
    let all = built_in.chain(configured).chain([super::team::VARIABLE]);
    all.map(str::to_owned).collect()
}
