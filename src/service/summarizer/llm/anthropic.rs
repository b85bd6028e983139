//! Anthropic's Messages API: builds a request and reads its stream of events.

use super::api::{EventContent, ModelFailure, Outgoing, StreamReader, identifier};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;
use serde_json::json;
use treelined_core::summary::Usage;
use treelined_core::summary::prompt::Prompt;

pub(super) fn request(model_id: &str, prompt: &Prompt, max_tokens: u64) -> Outgoing {
    let body = json!({
        "model": model_id,
        "max_tokens": max_tokens,
        "stream": true,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
    });
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    Outgoing {
        path: "/v1/messages",
        headers,
        body: body.to_string().into_bytes(),
    }
}

/// The state of the reader of one stream.
#[derive(Default)]
pub(super) struct AnthropicReader {
    usage: Option<Usage>,
    stop_reason: Option<String>,
    is_over: bool,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: AnthropicMessage,
    },
    ContentBlockStart {
        content_block: AnthropicBlock,
    },
    ContentBlockDelta {
        delta: AnthropicDelta,
    },
    MessageDelta {
        delta: Ending,
        usage: Option<AnthropicUsage>,
    },
    MessageStop,
    Error {
        error: Fault,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct AnthropicMessage {
    usage: Option<AnthropicUsage>,
}

#[derive(Deserialize)]
struct AnthropicBlock {
    r#type: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct AnthropicDelta {
    r#type: String,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Ending {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Fault {
    r#type: Option<String>,
}

#[derive(Deserialize)]
struct AnthropicUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl StreamReader for AnthropicReader {
    fn take(&mut self, data: &str) -> Result<EventContent, ModelFailure> {
        let event: Event = serde_json::from_str(data).map_err(|_| ModelFailure::BadResponse)?;
        match event {
            Event::MessageStart { message } => self.count(message.usage),
            Event::ContentBlockStart { content_block } => {
                if content_block.r#type.ends_with("tool_use") {
                    return Err(ModelFailure::ToolCall);
                }
                if content_block.r#type == "text" {
                    return Ok(EventContent::Text(content_block.text.unwrap_or_default()));
                }
            }
            Event::ContentBlockDelta { delta } if delta.r#type == "text_delta" => {
                return Ok(EventContent::Text(delta.text.unwrap_or_default()));
            }
            Event::MessageDelta { delta, usage } => {
                self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
                self.count(usage);
            }
            Event::MessageStop => {
                self.is_over = true;
                return Ok(EventContent::End);
            }
            Event::Error { error } => {
                let code = error.r#type.as_deref().and_then(identifier);
                return Err(ModelFailure::InStream(code));
            }
            Event::ContentBlockDelta { .. } | Event::Other => {}
        }
        Ok(EventContent::Nothing)
    }

    fn is_complete(&self) -> bool {
        self.is_over
    }

    fn finish(self) -> Result<Option<Usage>, ModelFailure> {
        match self.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence") => Ok(self.usage),
            Some("max_tokens" | "model_context_window_exceeded" | "pause_turn") => {
                Err(ModelFailure::Truncated)
            }
            Some("tool_use") => Err(ModelFailure::ToolCall),
            Some("refusal") => Err(ModelFailure::Refused),
            Some(_) => Err(ModelFailure::BadResponse),
            None => Err(ModelFailure::Cut),
        }
    }
}

impl AnthropicReader {
    /// Adds token counts. Later counts replace earlier ones.
    fn count(&mut self, counted: Option<AnthropicUsage>) {
        let Some(counted) = counted else {
            return;
        };
        let usage = self.usage.get_or_insert_default();
        for (known, new) in [
            (&mut usage.input, counted.input_tokens),
            (&mut usage.output, counted.output_tokens),
            (&mut usage.cache_read, counted.cache_read_input_tokens),
            (&mut usage.cache_write, counted.cache_creation_input_tokens),
        ] {
            *known = new.unwrap_or(*known);
        }
    }
}
