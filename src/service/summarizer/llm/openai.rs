//! OpenAI's Chat Completions API, which many other servers offer too: builds a request and reads its stream of events.

use super::api::{EventContent, ModelFailure, Outgoing, StreamReader, identifier};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};
use treelined_core::summary::Usage;
use treelined_core::summary::prompt::Prompt;

/// The request has no limit for the length of the answer, since servers use different names for that member.
pub(super) fn request(model_id: &str, prompt: &Prompt) -> Outgoing {
    let body = json!({
        "model": model_id,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": prompt.user},
        ],
    });
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Outgoing {
        path: "/chat/completions",
        headers,
        body: body.to_string().into_bytes(),
    }
}

/// The state of the reader of one stream.
#[derive(Default)]
pub(super) struct OpenAiReader {
    usage: Option<Usage>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct OpenAiChunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<OpenAiUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: OpenAiDelta,
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct OpenAiDelta {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<Value>>,
    function_call: Option<Value>,
}

#[derive(Deserialize)]
struct OpenAiUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

impl StreamReader for OpenAiReader {
    fn take(&mut self, data: &str) -> Result<EventContent, ModelFailure> {
        if data.trim() == "[DONE]" {
            return Ok(EventContent::End);
        }
        let chunk: OpenAiChunk =
            serde_json::from_str(data).map_err(|_| ModelFailure::BadResponse)?;
        if let Some(error) = chunk.error {
            let code = error.get("type").and_then(Value::as_str);
            return Err(ModelFailure::InStream(code.and_then(identifier)));
        }
        if let Some(counted) = chunk.usage {
            let cached = counted.prompt_tokens_details;
            let cached = cached.and_then(|details| details.cached_tokens);
            let cache_read = cached.unwrap_or_default();
            let prompt = counted.prompt_tokens.unwrap_or_default();
            self.usage = Some(Usage {
                input: prompt.saturating_sub(cache_read),
                output: counted.completion_tokens.unwrap_or_default(),
                cache_read,
                cache_write: 0,
            });
        }
        let Some(choice) = chunk.choices.into_iter().next() else {
            return Ok(EventContent::Nothing);
        };
        if choice.finish_reason.is_some() {
            self.finish_reason = choice.finish_reason;
        }
        let delta = choice.delta;
        let calls = delta.tool_calls.is_some_and(|calls| !calls.is_empty());
        if calls || delta.function_call.is_some_and(|call| !call.is_null()) {
            return Err(ModelFailure::ToolCall);
        }
        if delta.refusal.is_some_and(|refusal| !refusal.is_empty()) {
            return Err(ModelFailure::Refused);
        }
        Ok(match delta.content {
            Some(text) if !text.is_empty() => EventContent::Text(text),
            _ => EventContent::Nothing,
        })
    }

    fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn finish(self) -> Result<Option<Usage>, ModelFailure> {
        match self.finish_reason.as_deref() {
            Some("stop" | "eos") => Ok(self.usage),
            Some("length") => Err(ModelFailure::Truncated),
            Some("content_filter") => Err(ModelFailure::Refused),
            Some("tool_calls" | "function_call") => Err(ModelFailure::ToolCall),
            Some(_) => Err(ModelFailure::BadResponse),
            None => Err(ModelFailure::Cut),
        }
    }
}
