//! The numbers of a session: messages, tokens and cost (`get_stats`, protocol.md §3).

use crate::budget::STATS_BYTES;
use crate::bytes::part;
use crate::json::{self, Elements};
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Sums over entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Stats {
    /// Number of messages by role.
    pub messages: BTreeMap<String, u64>,
    pub tool_calls: u64,
    pub tokens: Tokens,
    /// In the currency of the `usage` objects.
    pub cost: f64,
}

/// Tokens as providers report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
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
        self.cost = finite_sum(self.cost, other.cost);
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
    /// Adds an entry. The cost of a copy from another branch was counted with its original.
    pub(crate) fn add(&mut self, entry: &[u8]) {
        let [message, usage, copied_from] =
            json::get_each(entry, ["message", "usage", "copiedFrom"]);
        let mut of_message = None;
        if let Some(message) = message {
            let [role, content, usage] = json::get_each(message, ["role", "content", "usage"]);
            let role = role.and_then(json::string);
            let role = role.as_deref().unwrap_or("unknown");
            match self.messages.get_mut(role) {
                Some(count) => *count += 1,
                None => drop(self.messages.insert(role.to_owned(), 1)),
            }
            self.tool_calls += tool_calls(content.unwrap_or_default());
            of_message = usage;
        }
        if copied_from.is_some() {
            return;
        }
        if let Some(usage) = of_message.or(usage) {
            let number = |raw: Option<&[u8]>| raw.map_or(0, whole);
            let [input, output, cache_read, cache_write, cost] = json::get_each(
                usage,
                ["input", "output", "cacheRead", "cacheWrite", "cost"],
            );
            self.tokens += Tokens {
                input: number(input),
                output: number(output),
                cache_read: number(cache_read),
                cache_write: number(cache_write),
            };
            let total = cost.and_then(|cost| json::get(cost, "total"));
            let total = total.and_then(decimal).filter(|total| total.is_finite());
            self.cost = finite_sum(self.cost, total.unwrap_or_default());
        }
    }
}

/// Bytes counted for a role besides its name.
const ROLE_BYTES: usize = 64;

/// The sums over the first entries of a session, kept so that the next request counts only later entries.
#[derive(Clone, Default)]
pub(crate) struct PrefixStats {
    /// The tree ([`Tree::origin`](crate::tree::Tree::origin)) that these entries are in.
    pub origin: u64,
    /// Number of entries counted, in file order.
    pub count: usize,
    pub stats: Stats,
}

impl PrefixStats {
    /// These sums if they are of the tree `origin`, else sums over no entries of that tree.
    pub(crate) fn for_tree(&self, origin: u64) -> Self {
        match self.origin == origin {
            true => self.clone(),
            false => Self {
                origin,
                ..Self::default()
            },
        }
    }

    /// Whether the sums may be kept: a client can invent any number of roles.
    pub(crate) fn fits_budget(&self) -> bool {
        let roles = self.stats.messages.keys();
        roles.map(|role| role.len() + ROLE_BYTES).sum::<usize>() <= STATS_BYTES
    }
}

fn tool_calls(content: &[u8]) -> u64 {
    let Ok(mut blocks) = Elements::open(content, 0) else {
        return 0;
    };
    let mut calls = 0;
    while let Ok(Some(span)) = blocks.next() {
        let block = part(content, span);
        let kind = json::get(block, "type").and_then(json::string);
        calls += u64::from(kind.as_deref() == Some("toolCall"));
    }
    calls
}

/// Adds two numbers without overflow: JSON has no infinity.
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
