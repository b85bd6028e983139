//! One answer of a model, read from its entry.

use treelined_core::json;
use treelined_core::stats::{self, Tokens};
use treelined_core::timestamp::{self, Millis};
use treelined_core::tree::Tree;
use xxhash_rust::xxh3::Xxh3;

/// Names of models and tools are cut behind so many bytes: a client can write any.
const NAME_BYTES: usize = 128;
/// The tool of entries that no import has written.
const OWN: &str = "treelined";

/// What an answer has used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// Equal for all copies of an answer.
    pub key: u64,
    /// When it was given; `None` if no time is written.
    pub at: Option<Millis>,
    /// Both are empty for entries that do not name their model, such as summaries.
    pub provider: String,
    pub model: String,
    pub tool: String,
    pub tokens: Tokens,
    /// In dollars; `None` if none is recorded.
    pub cost: Option<f64>,
}

impl Answer {
    /// The answer of an entry; `None` if it has used nothing, or is a copy of another entry of its session.
    pub(crate) fn read(entry: &[u8], tree: &Tree) -> Option<Self> {
        let names = [
            "id",
            "timestamp",
            "message",
            "usage",
            "copiedFrom",
            "merge",
            "origin",
            "provider",
            "model",
        ];
        let [
            id,
            timestamp,
            message,
            usage,
            copied_from,
            merge,
            origin,
            provider,
            model,
        ] = json::get_each(entry, names);
        let id = id.and_then(json::string).unwrap_or_default();
        // The summary of a branch of another session was paid for here.
        let source = copied_from.filter(|_| merge != Some(b"true"));
        let source = source.and_then(|raw| source_of(raw, &id, tree));
        if source == Some(Source::Here) {
            return None;
        }
        let [role, own_usage, sent, own_provider, own_model] = message.map_or([None; 5], |raw| {
            json::get_each(raw, ["role", "usage", "timestamp", "provider", "model"])
        });
        let is_answer = role.and_then(json::string).as_deref() == Some("assistant");
        let usage = own_usage.or(usage);
        if usage.is_none() && !is_answer {
            return None;
        }
        let used = usage.map(stats::used).unwrap_or_default();
        if !is_answer && used.tokens == Tokens::default() && used.cost.recorded.is_none() {
            return None;
        }
        let sent = sent.and_then(whole);
        let key = match (message, &sent, &source) {
            // The copies of a message are equal to the byte.
            (Some(message), Some(_), _) => hash(&[message]),
            (Some(message), None, Some(Source::Elsewhere(source))) => {
                hash(&[source.as_bytes(), message])
            }
            (Some(message), None, _) => hash(&[id.as_bytes(), message]),
            (None, ..) => hash(&[
                id.as_bytes(),
                timestamp.unwrap_or_default(),
                usage.unwrap_or_default(),
            ]),
        };
        let written = || timestamp::parse(&timestamp.and_then(json::string)?);
        let tool = origin.and_then(|origin| json::get(origin, "tool"));
        Some(Self {
            key,
            at: sent.or_else(written),
            provider: name(own_provider.or(provider)),
            model: name(own_model.or(model)),
            tool: match name(tool) {
                tool if tool.is_empty() => OWN.to_owned(),
                tool => tool,
            },
            tokens: used.tokens,
            cost: used.cost.recorded,
        })
    }

    pub(crate) fn has_used_tokens(&self) -> bool {
        self.tokens != Tokens::default()
    }
}

/// Where the entry is that an entry was copied from.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// Another entry of the same session.
    Here,
    /// An entry of this id in another session, or in a part of this one that was not copied with the copy.
    Elsewhere(String),
}

/// The source of a copy with the id `own`, from the raw `copiedFrom`.
fn source_of(copied_from: &[u8], own: &str, tree: &Tree) -> Option<Source> {
    let of_session = || json::get(copied_from, "entryId").and_then(json::string);
    match json::string(copied_from) {
        Some(id) if id != own && tree.find(&id).is_some() => Some(Source::Here),
        Some(id) => Some(Source::Elsewhere(id.into_owned())),
        None => of_session().map(|id| Source::Elsewhere(id.into_owned())),
    }
}

fn whole(raw: &[u8]) -> Option<Millis> {
    let number: f64 = std::str::from_utf8(raw).ok()?.parse().ok()?;
    let is_time = number.is_finite() && number > 0.0;
    is_time.then(|| i64::try_from(json::saturated(number)).unwrap_or(i64::MAX))
}

fn name(raw: Option<&[u8]>) -> String {
    let text = raw.and_then(json::string).unwrap_or_default();
    match text.len() > NAME_BYTES {
        false => text.into_owned(),
        true => {
            let end = (0..=NAME_BYTES)
                .rev()
                .find(|end| text.is_char_boundary(*end));
            let begin = text.get(..end.unwrap_or_default()).unwrap_or_default();
            format!("{begin}…")
        }
    }
}

fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = Xxh3::new();
    for part in parts {
        hash.update(&part.len().to_le_bytes());
        hash.update(part);
    }
    hash.digest()
}
