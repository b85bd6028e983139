//! Reads the usage of one answer of a model from its entry.

use treelined_core::json;
use treelined_core::stats::{self, Tokens};
use treelined_core::timestamp::{self, Millis};
use treelined_core::tree::Tree;
use xxhash_rust::xxh3::Xxh3;

/// The most bytes of the name of a model or tool, because a client may write a name of any length. A longer name is
/// cut.
const NAME_BYTES: usize = 128;
/// The tool of entries that were not imported.
const OWN: &str = "treelined";

/// The usage of one answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// A hash that is equal for all copies of the answer.
    pub key: u64,
    /// The time of the answer; `None` if the entry has none.
    pub at: Option<Millis>,
    /// The provider and the model. Both are empty if the entry does not name a model, as in a summary.
    pub provider: String,
    pub model: String,
    pub tool: String,
    pub tokens: Tokens,
    /// The cost in dollars; `None` if no cost is recorded.
    pub cost: Option<f64>,
}

impl Answer {
    /// Reads the usage in an entry. `None` if the entry has no usage, or is a copy of another entry of its session.
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
        // The summary of a merge has `copiedFrom` too, but it is not a copy: its cost arose in this session.
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
            // Copies of a message are equal byte for byte.
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

/// The position of the entry from which an entry was copied.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    /// In the same session.
    Here,
    /// In another session, or in a part of this session that was not copied together with the copy. The text is the
    /// id of the entry there.
    Elsewhere(String),
}

/// Reads the raw `copiedFrom` of the entry with the id `own`.
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
