//! Sums over answers.

use crate::answer::Answer;
use crate::prices::Prices;
use treelined_core::stats::{Cost, Prices as _, Tokens};

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

impl Sums {
    pub(crate) fn add(&mut self, answer: &Answer, prices: &Prices) {
        self.answers += 1;
        self.tokens += answer.tokens;
        let mut cost = Cost {
            recorded: answer.cost,
            ..Cost::default()
        };
        if answer.cost.is_none() && answer.has_used_tokens() {
            cost.estimated = prices.estimate(&answer.provider, &answer.model, &answer.tokens);
            cost.unknown = u64::from(cost.estimated.is_none());
        }
        self.cost += cost;
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
