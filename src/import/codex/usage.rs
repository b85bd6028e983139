//! Finds the tokens of each response, in its own record or from running totals.

use super::record::number;
use std::fmt::Write;
use treelined_core::json;

/// The tokens of one response, or of all responses so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tokens {
    /// All input tokens, including the tokens that were read from the cache or written to it.
    input: u64,
    cached: u64,
    cache_write: u64,
    output: u64,
    total: u64,
}

impl Tokens {
    fn parse(object: &[u8]) -> Option<Self> {
        let names = [
            "input_tokens",
            "cached_input_tokens",
            "cache_write_input_tokens",
            "output_tokens",
            "total_tokens",
        ];
        let members = json::get_each(object, names);
        members.iter().flatten().next()?;
        let [input, cached, cache_write, output, total] =
            members.map(|member| member.and_then(number));
        let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
        Some(Self {
            input,
            cached: cached.unwrap_or(0),
            cache_write: cache_write.unwrap_or(0),
            output,
            total: total.unwrap_or(input.saturating_add(output)),
        })
    }

    /// The tokens that were added since `earlier`. `None` if a number is smaller than before: in this case the total
    /// has started again.
    fn since(self, earlier: Self) -> Option<Self> {
        Some(Self {
            input: self.input.checked_sub(earlier.input)?,
            cached: self.cached.checked_sub(earlier.cached)?,
            cache_write: self.cache_write.checked_sub(earlier.cache_write)?,
            output: self.output.checked_sub(earlier.output)?,
            total: self.total.checked_sub(earlier.total)?,
        })
    }

    pub(super) fn total(self) -> u64 {
        self.total
    }

    /// Appends the member `usage` of an entry.
    pub(super) fn push(self, out: &mut String) {
        let fresh = self.input.saturating_sub(self.cached);
        let _ = write!(
            out,
            ",\"usage\":{{\"input\":{},\"output\":{},\"cacheRead\":{},\"cacheWrite\":{},\"totalTokens\":{}}}",
            fresh.saturating_sub(self.cache_write),
            self.output,
            self.cached,
            self.cache_write,
            self.total,
        );
    }
}

/// The usage of a rollout so far.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Whether responses have their own records. Totals are then ignored.
    has_records: bool,
    total: Option<Tokens>,
    /// The tokens of the latest response. They are about the size of the context.
    pub(super) latest: Option<Tokens>,
}

impl Meter {
    /// Reads a `token_usage_record`, and returns the usage of its response.
    pub(super) fn record(&mut self, payload: &[u8]) -> Option<Tokens> {
        self.has_records = true;
        let usage = Tokens::parse(json::get(payload, "usage")?)?;
        self.latest = Some(usage);
        Some(usage)
    }

    /// Reads a `token_count`, and returns the usage of its response. A total may be repeated, and the first total of a
    /// fork includes the tokens of its parent.
    pub(super) fn count(&mut self, payload: &[u8]) -> Option<Tokens> {
        let info = json::get(payload, "info")?;
        let [total, last] = json::get_each(info, ["total_token_usage", "last_token_usage"]);
        let total = Tokens::parse(total?)?;
        let last = last.and_then(Tokens::parse);
        let before = self.total.replace(total);
        if self.has_records || before == Some(total) {
            return None;
        }
        let usage = match before {
            Some(before) => total.since(before).or(last),
            None => last.or(Some(total)),
        };
        self.latest = usage;
        usage
    }
}
