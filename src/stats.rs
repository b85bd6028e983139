//! What a session has cost and holds (`get_stats`, protocol.md §3). Pure, over delivered entries.

use crate::context::agent::Message;
use crate::context::content;
use crate::json::{self, Elements};
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::{Mutex, PoisonError};

/// Sums over entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// Messages by role.
    pub messages: BTreeMap<String, u64>,
    pub tool_calls: u64,
    pub tokens: Tokens,
    /// In the currency of the `usage` objects.
    pub cost: f64,
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
        self.cost = finite_sum(self.cost, other.cost);
    }
}

impl AddAssign for Tokens {
    /// Clients write any number: a sum stays at what can be written.
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

impl Stats {
    /// Counts an entry. What a copy from another branch cost has been counted with its original.
    pub fn add(&mut self, entry: &[u8]) {
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

/// The sums over the first entries of a session.
#[derive(Clone, Default)]
pub struct Counted {
    /// Of the tree these entries are in.
    pub origin: u64,
    /// Entries, in file order.
    pub count: usize,
    pub stats: Stats,
}

/// What was counted last, kept so that asking again reads only what has come since.
#[derive(Default)]
pub struct LastCount(Mutex<Counted>);

impl LastCount {
    /// Nothing counted yet, if it was of another tree.
    pub fn get(&self, origin: u64) -> Counted {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match last.origin == origin {
            true => last.clone(),
            false => Counted {
                origin,
                ..Counted::default()
            },
        }
    }

    pub fn set(&self, counted: &Counted) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = counted.clone();
    }
}

/// The size of a context in tokens: what the provider counted last, and an estimate of what has come
/// since (⌈characters/4⌉, an image as 1,200). Counts with messages before `counted_from` were of
/// another context and are not believed.
pub fn context_tokens(messages: &[Vec<u8>], counted_from: usize) -> u64 {
    let mut since = 0;
    for (at, message) in messages.iter().enumerate().rev() {
        if at >= counted_from
            && let Some(counted) = counted(message)
        {
            return counted + since;
        }
        since += content::estimated_tokens(&Message::of(message));
    }
    since
}

/// What the provider counted with an assistant message that ended well.
fn counted(message: &[u8]) -> Option<u64> {
    let text = |name: &str| json::get(message, name).and_then(json::string);
    if text("role").as_deref() != Some("assistant")
        || matches!(text("stopReason").as_deref(), Some("aborted" | "error"))
    {
        return None;
    }
    let usage = json::get(message, "usage")?;
    let number = |name: &str| json::get(usage, name).map_or(0, whole);
    let total = match number("totalTokens") {
        0 => number("input") + number("output") + number("cacheRead") + number("cacheWrite"),
        total => total,
    };
    (total > 0).then_some(total)
}

fn tool_calls(content: &[u8]) -> u64 {
    let Ok(mut blocks) = Elements::open(content, 0) else {
        return 0;
    };
    let mut calls = 0;
    while let Ok(Some(span)) = blocks.next() {
        let block = content.get(span).unwrap_or_default();
        let kind = json::get(block, "type").and_then(json::string);
        calls += u64::from(kind.as_deref() == Some("toolCall"));
    }
    calls
}

/// JSON has no infinity.
fn finite_sum(one: f64, other: f64) -> f64 {
    (one + other).clamp(f64::MIN, f64::MAX)
}

fn whole(raw: &[u8]) -> u64 {
    decimal(raw)
        .filter(|number| number.is_finite())
        .map_or(0, |number| number as u64)
}

fn decimal(raw: &[u8]) -> Option<f64> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}
