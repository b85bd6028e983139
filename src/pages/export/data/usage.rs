//! The tokens and the cost of messages.

use treelined_core::json;

/// Tokens and cost of one message or of several.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Usage {
    /// The tokens that were not read from a cache. Tokens that were written to a cache are
    /// included.
    pub fresh: u64,
    pub cached: u64,
    pub output: u64,
    /// The cost in dollars; 0 if it is unknown.
    pub cost: f64,
}

impl Usage {
    /// The usage of a message; `None` if it has no tokens and no cost.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        let usage = json::get(message, "usage")?;
        let number = |name| whole(json::get(usage, name));
        let cost = json::get_path(usage, &["cost", "total"]).and_then(number_of);
        let found = Self {
            fresh: number("input") + number("cacheWrite"),
            cached: number("cacheRead"),
            output: number("output"),
            cost: cost
                .filter(|cost| cost.is_finite() && *cost > 0.0)
                .unwrap_or_default(),
        };
        (found.fresh + found.cached + found.output > 0).then_some(found)
    }

    pub(super) fn add(&mut self, other: Self) {
        self.fresh += other.fresh;
        self.cached += other.cached;
        self.output += other.output;
        self.cost += other.cost;
    }
}

fn number_of(raw: &[u8]) -> Option<f64> {
    std::str::from_utf8(raw).ok()?.parse().ok()
}

/// A whole number of at most 2^32, so that every reader represents the sums exactly.
fn whole(raw: Option<&[u8]>) -> u64 {
    let number = raw.and_then(number_of).unwrap_or_default();
    json::saturated(number).min(1 << 32)
}
