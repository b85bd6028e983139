//! The numbers of a session: messages, tokens and cost (protocol.md §15.5).

use crate::budget::STATS_BYTES;
use crate::bytes::part;
use crate::json::{self, Elements};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Sums over entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// Number of messages by role.
    pub messages: BTreeMap<String, u64>,
    pub tool_calls: u64,
    pub tokens: Tokens,
    pub cost: Cost,
    /// The use of each model, by provider and model. The name is empty if the entries have none.
    pub models: BTreeMap<String, BTreeMap<String, ModelUse>>,
}

/// The use of one model.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ModelUse {
    /// Number of its messages.
    pub messages: u64,
    pub tokens: Tokens,
    pub cost: Cost,
}

/// The cost of answers in dollars, in three parts: recorded, estimated, unknown (usage.md).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// The cost that tools have recorded; `None` if they have recorded none.
    pub recorded: Option<f64>,
    /// The cost of the answers that have no recorded cost, computed with the prices of models; `None` if there are no
    /// such answers.
    pub estimated: Option<f64>,
    /// Number of answers with tokens whose cost is unknown.
    pub unknown: u64,
}

impl Cost {
    /// Whether an answer has used tokens or has a recorded cost.
    pub fn says_something(&self) -> bool {
        self.known().is_some() || self.unknown > 0
    }

    /// The known cost; `None` if nothing is known.
    pub fn known(&self) -> Option<f64> {
        match (self.recorded, self.estimated) {
            (None, None) => None,
            (one, other) => Some(finite_sum(
                one.unwrap_or_default(),
                other.unwrap_or_default(),
            )),
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        let sum = |one: Option<f64>, other: Option<f64>| match (one, other) {
            (Some(one), Some(other)) => Some(finite_sum(one, other)),
            (one, other) => one.or(other),
        };
        self.recorded = sum(self.recorded, other.recorded);
        self.estimated = sum(self.estimated, other.estimated);
        self.unknown = self.unknown.saturating_add(other.unknown);
    }
}

/// The prices of models.
pub trait Prices: Send + Sync {
    /// The cost of these tokens of a model in dollars; `None` if the price is unknown.
    fn estimate(&self, provider: &str, model: &str, tokens: &Tokens) -> Option<f64>;
}

/// No prices: the cost of every model is unknown.
pub struct NoPrices;

impl Prices for NoPrices {
    fn estimate(&self, _provider: &str, _model: &str, _tokens: &Tokens) -> Option<f64> {
        None
    }
}

/// Tokens as providers report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        for (role, count) in other.messages {
            *self.messages.entry(role).or_default() += count;
        }
        self.tool_calls += other.tool_calls;
        self.tokens += other.tokens;
        self.cost += other.cost;
        for (provider, models) in other.models {
            let own = self.models.entry(provider).or_default();
            for (model, used) in models {
                *own.entry(model).or_default() += used;
            }
        }
    }
}

impl AddAssign for ModelUse {
    fn add_assign(&mut self, other: Self) {
        self.messages += other.messages;
        self.tokens += other.tokens;
        self.cost += other.cost;
    }
}

impl AddAssign for Tokens {
    /// Clients may write any number, so the sum saturates.
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

impl Stats {
    /// Adds an entry, and returns the use of this entry. A copy from another branch costs nothing: its original was
    /// counted.
    pub fn add(&mut self, entry: &[u8], prices: &dyn Prices) -> ModelUse {
        let names = [
            "message",
            "usage",
            "copiedFrom",
            "provider",
            "model",
            "merge",
        ];
        let [message, usage, copied_from, provider, model, merge] = json::get_each(entry, names);
        let mut of_entry = EntryUse {
            usage,
            provider,
            model,
            is_answer: false,
        };
        if let Some(message) = message {
            let names = ["role", "content", "usage", "provider", "model"];
            let [role, content, usage, provider, model] = json::get_each(message, names);
            let role = role.and_then(json::string);
            let role = role.as_deref().unwrap_or("unknown");
            match self.messages.get_mut(role) {
                Some(count) => *count += 1,
                None => drop(self.messages.insert(role.to_owned(), 1)),
            }
            self.tool_calls += tool_calls(content.unwrap_or_default());
            of_entry = EntryUse {
                usage: usage.or(of_entry.usage),
                provider,
                model,
                is_answer: role == "assistant",
            };
        }
        // A merged summary of a branch of another session was paid for in this session.
        if copied_from.is_some() && merge != Some(b"true") {
            return ModelUse::default();
        }
        let used = ModelUse {
            messages: u64::from(of_entry.is_answer),
            ..of_entry.usage.map(used).unwrap_or_default()
        };
        match used == ModelUse::default() {
            true => used,
            false => self.add_use(&of_entry, used, prices),
        }
    }

    fn add_use(&mut self, of: &EntryUse<'_>, mut used: ModelUse, prices: &dyn Prices) -> ModelUse {
        let [provider, model] =
            [of.provider, of.model].map(|raw| raw.and_then(json::string).unwrap_or_default());
        if used.cost.recorded.is_none() && used.tokens != Tokens::default() {
            used.cost.estimated = prices.estimate(&provider, &model, &used.tokens);
            used.cost.unknown = u64::from(used.cost.estimated.is_none());
        }
        self.tokens += used.tokens;
        self.cost += used.cost;
        // Copy the names only for a new model.
        if let Some(known) = self.models.get_mut(&*provider)
            && let Some(known) = known.get_mut(&*model)
        {
            *known += used;
            return used;
        }
        let models = self.models.entry(provider.into_owned()).or_default();
        models.insert(model.into_owned(), used);
        used
    }
}

/// The raw values of an entry about the model that it used.
struct EntryUse<'a> {
    usage: Option<&'a [u8]>,
    provider: Option<&'a [u8]>,
    model: Option<&'a [u8]>,
    /// Whether the entry is a message of the model.
    is_answer: bool,
}

/// The tokens and the recorded cost of a `usage` object. A cost of 0 counts as unknown: imports write 0 if the tool
/// has not recorded the cost.
pub fn used(usage: &[u8]) -> ModelUse {
    let number = |raw: Option<&[u8]>| raw.map_or(0, whole);
    let names = ["input", "output", "cacheRead", "cacheWrite", "cost"];
    let [input, output, cache_read, cache_write, cost] = json::get_each(usage, names);
    let total = cost.and_then(|cost| json::get(cost, "total"));
    let total = total.and_then(decimal);
    let recorded = total.filter(|total| total.is_finite() && *total > 0.0);
    ModelUse {
        messages: 0,
        tokens: Tokens {
            input: number(input),
            output: number(output),
            cache_read: number(cache_read),
            cache_write: number(cache_write),
        },
        cost: Cost {
            recorded,
            ..Cost::default()
        },
    }
}

/// The longest pause, in milliseconds, that counts as time of the conversation.
const LONGEST_PAUSE: i64 = 10 * 60 * 1000;

/// The first and last time of entries, in Unix milliseconds, and the time that the conversation took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSpan {
    pub start: i64,
    pub end: i64,
    /// The sum of the times between successive entries, without long pauses. In milliseconds.
    pub active: u64,
}

impl TimeSpan {
    /// The time span of entries written at these times; `None` without entries.
    pub fn of(mut times: Vec<i64>) -> Option<Self> {
        times.sort_unstable();
        let (start, end) = (*times.first()?, *times.last()?);
        let later = times.get(1..).unwrap_or_default();
        let pauses = times
            .iter()
            .zip(later)
            .map(|(one, next)| next.saturating_sub(*one));
        let active = pauses.filter(|pause| *pause <= LONGEST_PAUSE);
        let active = active.fold(0_u64, |sum, pause| sum.saturating_add(pause.unsigned_abs()));
        Some(Self { start, end, active })
    }
}

/// The bytes that are counted for a role in addition to its name.
const ROLE_BYTES: usize = 64;
/// The bytes that are counted for a model in addition to its name.
const MODEL_BYTES: usize = 128;

/// The sums over the first entries of a session. They are kept, so that the next request counts only later entries.
#[derive(Clone, Default)]
pub struct PrefixStats {
    /// The tree ([`Tree::origin`](crate::tree::Tree::origin)) that these entries are in.
    pub origin: u64,
    /// Number of entries counted, in file order.
    pub count: usize,
    pub stats: Stats,
}

impl PrefixStats {
    /// These sums if they belong to the tree `origin`, else empty sums for that tree.
    pub fn for_tree(&self, origin: u64) -> Self {
        match self.origin == origin {
            true => self.clone(),
            false => Self {
                origin,
                ..Self::default()
            },
        }
    }

    /// Whether the sums are small enough to be kept. A client can invent any number of roles.
    pub fn fits_budget(&self) -> bool {
        let roles = self.stats.messages.keys();
        let models = self.stats.models.iter();
        let models = models.flat_map(|(provider, models)| {
            let models = models.keys().map(|model| model.len() + MODEL_BYTES);
            models.chain([provider.len() + ROLE_BYTES])
        });
        let bytes = roles.map(|role| role.len() + ROLE_BYTES).chain(models);
        bytes.sum::<usize>() <= STATS_BYTES
    }
}

fn tool_calls(content: &[u8]) -> u64 {
    let Ok(mut blocks) = Elements::open(content, 0) else {
        return 0;
    };
    let mut calls = 0;
    while let Ok(Some(span)) = blocks.next_value() {
        let block = part(content, span);
        let kind = json::get(block, "type").and_then(json::string);
        calls += u64::from(kind.as_deref() == Some("toolCall"));
    }
    calls
}

/// Adds two numbers without overflow, since JSON has no infinity.
fn finite_sum(one: f64, other: f64) -> f64 {
    (one + other).clamp(f64::MIN, f64::MAX)
}

/// A number of tokens; 0 if the value is not a number.
pub(crate) fn whole(raw: &[u8]) -> u64 {
    decimal(raw)
        .filter(|number| number.is_finite())
        .map_or(0, json::saturated)
}

fn decimal(raw: &[u8]) -> Option<f64> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneDollar;

    impl Prices for OneDollar {
        fn estimate(&self, _provider: &str, model: &str, _tokens: &Tokens) -> Option<f64> {
            (model == "known").then_some(1.0)
        }
    }

    /// A cost that no tool had recorded once counted as 0 in the sum.
    #[test]
    fn a_cost_is_recorded_estimated_or_unknown() {
        let cost = |model: &str, usage: &str| {
            let entry = format!(
                r#"{{"type":"message","message":{{"role":"assistant","content":[],"model":"{model}","usage":{usage}}}}}"#
            );
            let mut stats = Stats::default();
            stats.add(entry.as_bytes(), &OneDollar);
            let Cost {
                recorded,
                estimated,
                unknown,
            } = stats.cost;
            (recorded, estimated, unknown)
        };
        let zero = r#"{"input":1,"cost":{"total":0}}"#;
        assert_eq!(
            cost("known", r#"{"input":1,"cost":{"total":2.5}}"#),
            (Some(2.5), None, 0)
        );
        assert_eq!(cost("known", zero), (None, Some(1.0), 0));
        assert_eq!(cost("other", zero), (None, None, 1));
        assert_eq!(cost("known", "{}"), (None, None, 0), "nothing was used");
        let mut sum = Cost::default();
        assert_eq!(sum.known(), None);
        for one in [f64::MAX, f64::MAX] {
            sum += Cost {
                recorded: Some(one),
                estimated: Some(1.0),
                unknown: 1,
            };
        }
        assert_eq!((sum.known(), sum.unknown), (Some(f64::MAX), 2));
    }

    #[test]
    fn pauses_do_not_count_as_time() {
        let minute = 60_000;
        assert_eq!(TimeSpan::of(vec![]), None);
        let span = |times: &[i64]| {
            let span = TimeSpan::of(times.to_vec()).unwrap();
            (span.start, span.end, span.active)
        };
        assert_eq!(span(&[5]), (5, 5, 0));
        // The order of the entries has no effect. A pause of ten minutes counts as time of the conversation.
        assert_eq!(span(&[minute, 0, 11 * minute]), (0, 11 * minute, 660_000));
        assert_eq!(
            span(&[0, minute, 11 * minute + 1]),
            (0, 11 * minute + 1, 60_000)
        );
        assert_eq!(span(&[i64::MIN, i64::MAX]), (i64::MIN, i64::MAX, 0));
    }
}
