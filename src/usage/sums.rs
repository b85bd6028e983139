//! Adds up the usage of answers.

use crate::answer::Answer;
use crate::prices::Prices;
use treelined_core::stats::{Cost, Prices as _, Tokens};

/// The sums over some answers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sums {
    /// The number of answers. Summaries that a model has written count too.
    pub answers: u64,
    /// The number of answers without recorded tokens.
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

    /// The number of tokens of all kinds.
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
