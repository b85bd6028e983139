//! Sums over answers.

use crate::answer::Answer;
use crate::prices::Prices;
use treelined_core::stats::Tokens;

/// Sums over answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sums {
    /// Number of answers, and of summaries that a model has written.
    pub answers: u64,
    /// Those of them for which no tokens are recorded.
    pub without_tokens: u64,
    pub tokens: Tokens,
    pub cost: Cost,
}

/// The cost of answers in dollars, by what is known of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// What tools have recorded; `None` if they have recorded none.
    pub recorded: Option<f64>,
    /// What answers without a recorded cost have cost by the prices of their models; `None` if there are none such.
    pub estimated: Option<f64>,
    /// Number of answers with tokens whose cost is unknown.
    pub unknown: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, answer: &Answer, prices: &Prices) {
        self.answers += 1;
        self.tokens += answer.tokens;
        if answer.cost > 0.0 {
            add(&mut self.cost.recorded, answer.cost);
        } else if answer.has_used_tokens() {
            match prices.estimate(&answer.provider, &answer.model, &answer.tokens) {
                Some(cost) => add(&mut self.cost.estimated, cost),
                None => self.cost.unknown += 1,
            }
        }
        self.without_tokens += u64::from(!answer.has_used_tokens());
    }

    /// All tokens.
    pub fn all_tokens(&self) -> u64 {
        let Tokens {
            input,
            output,
            cache_read,
            cache_write,
        } = self.tokens;
        [output, cache_read, cache_write]
            .iter()
            .fold(input, |sum, count| sum.saturating_add(*count))
    }
}

impl Cost {
    /// What is known of the cost; `None` if nothing is.
    pub fn known(&self) -> Option<f64> {
        match (self.recorded, self.estimated) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or_default() + other.unwrap_or_default()),
        }
    }
}

fn add(sum: &mut Option<f64>, cost: f64) {
    // JSON has no infinity.
    *sum = Some((sum.unwrap_or_default() + cost).min(f64::MAX));
}
