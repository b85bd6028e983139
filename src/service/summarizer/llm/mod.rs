//! The `llm` summarizer: asks a model over HTTP and streams its answer (semantics.md §3.3).
//!
//! This module chooses the model, applies time limits and retries, and decides whether an answer is a summary.
//! [`anthropic`] and [`openai`] know the requests and streams of their APIs. If a server sends text with a failure, the
//! error repeats only short identifiers of the text. [`secret`] removes the key from these identifiers and from
//! answers.
//!
//! This module uses `reqwest` and no client library for models. To decide whether an answer is a summary, it needs
//! three things: the reason why the answer ended, limits of time and size while the answer arrives, and `Retry-After`.
//! The crate `rig` drops the reason of a streamed answer (its issue 2248), `async-openai` supports only one API, and
//! `genai` brings a dozen APIs.

mod address;
mod anthropic;
mod api;
mod events;
mod openai;
mod pause;
mod secret;

use self::api::{EventContent, ModelFailure, Outgoing, StreamReader, identifier};
use super::shared::OnPiece;
use address::{endpoint, is_loopback};
use events::EventSplitter;
use futures_util::StreamExt;
use pause::retry_after;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url, redirect};
use secrecy::{ExposeSecret, SecretString};
use secret::Redactor;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use treelined_core::error::{Error, Kind};
use treelined_core::summary::conversation::TokenBudget;
use treelined_core::summary::{ModelName, Summary, SummaryRequest, prompt};

/// The longest response that is read, in bytes. All bytes count, not only the bytes of the answer's text.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// The most bytes that are read of the body of a failed response.
const MAX_FAILURE_BYTES: usize = 16 << 10;
/// The longest `Retry-After` for which the daemon waits. A longer `Retry-After` ends the attempts.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
/// The pause before the second attempt. It doubles for each further attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The known providers, and the settings that choose a model.
#[derive(Debug, Clone)]
pub struct LlmSettings {
    /// The providers, by the names that conversations use for them.
    pub providers: BTreeMap<String, Provider>,
    /// The model to ask if the conversation's own model cannot be asked.
    pub model: Option<ModelName>,
    /// Whether `model` is asked first. The conversation's own model is then asked only if `model` cannot be asked.
    pub prefer_configured: bool,
    /// The context windows of models in tokens, by model id. They override the built-in ones.
    pub context_windows: BTreeMap<String, u64>,
    /// The budget for models whose context window is unknown.
    pub budget: TokenBudget,
    /// The longest answer, in tokens, for APIs that require a limit.
    pub max_output_tokens: u64,
    pub connect_timeout: Duration,
    /// The longest time that a server may send no data.
    pub idle_timeout: Duration,
    /// The longest time for a summary, retries included.
    pub total_timeout: Duration,
    /// The number of attempts after the first one.
    pub retries: u32,
}

/// One provider.
#[derive(Debug, Clone)]
pub struct Provider {
    pub api: Api,
    /// The address to which the paths of the API are appended. Its query is sent too.
    pub base_url: Url,
    /// `None` if the provider needs no key.
    pub key: Option<ApiKey>,
}

/// The API whose requests and streams the provider uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    Anthropic,
    OpenAi,
}

/// A key and the name of its environment variable.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// The environment variable.
    pub variable: String,
    pub secret: Option<SecretString>,
}

/// A summarizer that asks models over HTTP, with its HTTP clients.
#[derive(Debug, Clone)]
pub struct Llm {
    client: Client,
    /// The client for servers on this machine. It uses no proxy. `None` if no provider is on this machine.
    direct: Option<Client>,
    settings: Arc<LlmSettings>,
}

impl Llm {
    /// Fails if the HTTP client cannot be made.
    pub fn new(settings: LlmSettings) -> Result<Self, reqwest::Error> {
        let builder = || {
            Client::builder()
                .connect_timeout(settings.connect_timeout)
                // A redirect could send the key to another server.
                .redirect(redirect::Policy::none())
                .user_agent(concat!("treelined/", env!("CARGO_PKG_VERSION")))
                .pool_max_idle_per_host(0)
        };
        let mut urls = settings.providers.values().map(|it| &it.base_url);
        let direct = urls.any(is_loopback).then(|| builder().no_proxy().build());
        Ok(Self {
            client: builder().build()?,
            direct: direct.transpose()?,
            settings: Arc::new(settings),
        })
    }

    /// The budget for the model that `summarize` would ask. `own` is the conversation's model.
    pub fn budget(&self, own: Option<&ModelName>) -> TokenBudget {
        let settings = &self.settings;
        let window = self.choose(own).ok().and_then(|(model, _)| {
            let id = model.model_id.as_str();
            let configured = settings.context_windows.get(id).copied();
            configured.or_else(|| known_window(id))
        });
        TokenBudget {
            context_window: window.unwrap_or(settings.budget.context_window),
            reserve_tokens: settings.budget.reserve_tokens,
        }
    }

    /// Asks the model. Fails with `summarizerUnavailable` if no model can be asked. Any other failure is
    /// `summarizerFailed`, with [`ModelFailure::cause`] as `details.cause`.
    pub async fn summarize(
        &self,
        request: &SummaryRequest,
        own: Option<&ModelName>,
        hear: OnPiece<'_>,
    ) -> Result<Summary, Error> {
        let (model, provider) = self.choose(own)?;
        let asked = self.attempts(model, provider, request, hear);
        match tokio::time::timeout(self.settings.total_timeout, asked).await {
            Ok(Ok(summary)) => Ok(summary),
            Ok(Err(failure)) => Err(failure.into_error(model)),
            Err(_) => Err(ModelFailure::Timeout("total").into_error(model)),
        }
    }

    /// Chooses between the conversation's own model and the configured model. Takes the first model that can be asked,
    /// in the configured order.
    fn choose<'a>(
        &'a self,
        own: Option<&'a ModelName>,
    ) -> Result<(&'a ModelName, &'a Provider), Error> {
        let configured = self.settings.model.as_ref();
        let order = match self.settings.prefer_configured {
            true => [configured, own],
            false => [own, configured],
        };
        let mut why = "the conversation names no model, and none is configured".to_owned();
        for model in order.into_iter().flatten() {
            let name = &model.provider;
            match self.settings.providers.get(name) {
                None => why = format!("the provider {name:?} is not configured"),
                Some(Provider {
                    key:
                        Some(ApiKey {
                            variable,
                            secret: None,
                        }),
                    ..
                }) => why = format!("{variable} is not set"),
                Some(provider) => return Ok((model, provider)),
            }
        }
        Err(Error::new(
            Kind::SummarizerUnavailable,
            format!("no model can be asked for a summary: {why}"),
        ))
    }

    /// Repeats the request until a summary is complete. After a piece of text was given to `hear`, a failure is final.
    async fn attempts(
        &self,
        model: &ModelName,
        provider: &Provider,
        request: &SummaryRequest,
        hear: OnPiece<'_>,
    ) -> Result<Summary, ModelFailure> {
        let has_spoken = AtomicBool::new(false);
        let heard = |text: &str| {
            has_spoken.store(true, Ordering::Relaxed);
            hear(text);
        };
        let mut pause = FIRST_PAUSE;
        for _ in 0..self.settings.retries {
            let failure = match self.attempt(model, provider, request, &heard).await {
                Ok(summary) => return Ok(summary),
                Err(failure) => failure,
            };
            let wait = match failure.retry_after() {
                Some(after) if after > MAX_RETRY_AFTER => return Err(failure),
                Some(after) => after,
                None => pause,
            };
            if has_spoken.load(Ordering::Relaxed) || !failure.is_passing() {
                return Err(failure);
            }
            tokio::time::sleep(wait).await;
            pause *= 2;
        }
        self.attempt(model, provider, request, &heard).await
    }

    async fn attempt(
        &self,
        model: &ModelName,
        provider: &Provider,
        request: &SummaryRequest,
        hear: OnPiece<'_>,
    ) -> Result<Summary, ModelFailure> {
        let prompt = prompt::prompt(request);
        let Outgoing {
            path,
            mut headers,
            body,
        } = match provider.api {
            Api::Anthropic => {
                anthropic::request(&model.model_id, &prompt, self.settings.max_output_tokens)
            }
            Api::OpenAi => openai::request(&model.model_id, &prompt),
        };
        let key = provider.key.as_ref().and_then(|key| key.secret.as_ref());
        if let Some(key) = key {
            let (name, prefix) = match provider.api {
                Api::Anthropic => ("x-api-key", ""),
                Api::OpenAi => ("authorization", "Bearer "),
            };
            let value = format!("{prefix}{}", key.expose_secret());
            let mut value = HeaderValue::from_str(&value).map_err(|_| ModelFailure::BadKey)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let url = endpoint(&provider.base_url, path);
        let direct = self.direct.as_ref().filter(|_| is_loopback(&url));
        let client = direct.unwrap_or(&self.client);
        let send = client.post(url).headers(headers).body(body).send();
        let response = self
            .within_idle(send)
            .await?
            .map_err(|error| match error.is_timeout() {
                true => ModelFailure::Timeout("connect"),
                false => ModelFailure::Connect,
            })?;
        let redactor = Redactor::new(key);
        if response.status() != StatusCode::OK {
            return Err(self.refusal(response).await.redacted(&redactor));
        }
        let answer = match provider.api {
            Api::Anthropic => {
                let reader = anthropic::AnthropicReader::default();
                self.read(response, reader, redactor, hear).await
            }
            Api::OpenAi => {
                let reader = openai::OpenAiReader::default();
                self.read(response, reader, redactor, hear).await
            }
        }?;
        match answer.text.trim().is_empty() {
            true => Err(ModelFailure::Empty),
            false => Ok(answer),
        }
    }

    async fn read(
        &self,
        response: Response,
        mut reader: impl StreamReader,
        mut redactor: Redactor<'_>,
        hear: OnPiece<'_>,
    ) -> Result<Summary, ModelFailure> {
        // A response that is not an event stream is not retried, since the next response would be of the same kind.
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let mut is_stream = content_type.is_none_or(|it| it.starts_with("text/event-stream"));
        let mut chunks = response.bytes_stream();
        let mut events = EventSplitter::default();
        let mut text = String::new();
        let mut pass_on = |piece: String| {
            if !piece.is_empty() {
                hear(&piece);
                text.push_str(&piece);
            }
        };
        let mut total = 0;
        'events: loop {
            while let Some(data) = events.next() {
                is_stream = true;
                let piece = reader.take(&data);
                match piece.map_err(|failure| failure.redacted(&redactor))? {
                    EventContent::Text(piece) => pass_on(redactor.push(&piece)),
                    EventContent::Nothing => {}
                    EventContent::End => break 'events,
                }
            }
            let chunk = match self.within_idle(chunks.next()).await? {
                Some(chunk) => chunk.map_err(|_| ModelFailure::Cut)?,
                None if reader.is_complete() => break,
                None if is_stream => return Err(ModelFailure::Cut),
                None => return Err(ModelFailure::BadResponse),
            };
            total += chunk.len();
            if total > MAX_ANSWER_BYTES {
                return Err(ModelFailure::TooLong);
            }
            events.push(&chunk)?;
        }
        let usage = reader.finish()?;
        pass_on(redactor.finish());
        Ok(Summary { text, usage })
    }

    async fn within_idle<T>(&self, work: impl Future<Output = T>) -> Result<T, ModelFailure> {
        let done = tokio::time::timeout(self.settings.idle_timeout, work).await;
        done.map_err(|_| ModelFailure::Timeout("idle"))
    }

    /// The error for a response other than 200.
    async fn refusal(&self, response: Response) -> ModelFailure {
        let status = response.status();
        let retry_after = retry_after(response.headers());
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        while body.len() < MAX_FAILURE_BYTES
            && let Ok(Some(Ok(chunk))) = self.within_idle(chunks.next()).await
        {
            body.extend_from_slice(&chunk);
        }
        ModelFailure::Status {
            status,
            retry_after,
            code: error_code(&body),
        }
    }
}

/// `error.type` or `error.code` in the body of a response. Only a short identifier is returned, since other text might
/// have the key in it.
fn error_code(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let error = body.get("error")?;
    let code = ["type", "code"]
        .iter()
        .find_map(|name| error.get(name)?.as_str())?;
    identifier(code)
}

/// The built-in context window of a model in tokens, by the beginning of its id.
fn known_window(model_id: &str) -> Option<u64> {
    const WINDOWS: [(&str, u64); 12] = [
        ("claude-", 200_000),
        ("gpt-5", 400_000),
        ("gpt-4.1", 1_047_576),
        ("gpt-4o", 128_000),
        ("gpt-4-turbo", 128_000),
        ("gpt-3.5", 16_385),
        ("o1", 200_000),
        ("o3", 200_000),
        ("o4", 200_000),
        ("gemini-", 1_048_576),
        ("deepseek-", 128_000),
        ("mistral-large", 128_000),
    ];
    let id = model_id.rsplit('/').next().unwrap_or(model_id);
    let known = WINDOWS.iter().find(|(start, _)| id.starts_with(start));
    known.map(|(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_identifiers_of_a_failure_are_repeated() {
        let code = |body: &str| error_code(body.as_bytes());
        let plain = r#"{"error":{"type":"not_found_error","message":"sk-canary"}}"#;
        assert_eq!(code(plain).as_deref(), Some("not_found_error"));
        assert_eq!(code(r#"{"error":{"code":"sk-canary-1"}}"#), None);
        assert_eq!(code(r#"{"error":"sk"}"#), None);
        assert_eq!(code("<html>"), None);
    }

    #[test]
    fn windows_are_known_by_the_beginning_of_the_name() {
        assert_eq!(known_window("claude-sonnet-4-5"), Some(200_000));
        assert_eq!(known_window("anthropic/claude-x"), Some(200_000));
        assert_eq!(known_window("llama3"), None);
    }
}
