//! The prices of models: the prices of the user, and the table `prices.tsv`.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;
use treelined_core::stats::{self, Tokens};

const TABLE: &str = include_str!("prices.tsv");

/// The price of a million tokens of each kind, in dollars. If an answer has used a kind of token that has no price, the
/// cost of the answer is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Price {
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
    /// The most input tokens for which this price holds. Tokens of the cache count too.
    pub until: Option<u64>,
}

/// The prices of models.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    /// The prices of the user, by `provider/model` or by model.
    own: BTreeMap<String, Price>,
    /// The prices of the table, by the first part of the provider's name and by model. The table is read on demand.
    listed: OnceLock<Listed>,
}

type Listed = HashMap<&'static str, HashMap<&'static str, Price>>;

impl stats::Prices for Prices {
    fn estimate(&self, provider: &str, model: &str, tokens: &Tokens) -> Option<f64> {
        self.of(provider, model)?.cost(tokens)
    }
}

impl Prices {
    /// Uses the prices of the user (`own`) first, and then the table.
    pub fn new(own: BTreeMap<String, Price>) -> Self {
        Self {
            own,
            listed: OnceLock::new(),
        }
    }

    /// The source of the table and its day, as a text for the user.
    pub fn source() -> &'static str {
        let first = TABLE.lines().next().unwrap_or_default();
        let said = first.trim_start_matches("# ").split(". ").next();
        said.unwrap_or_default()
    }

    fn of(&self, provider: &str, model: &str) -> Option<&Price> {
        let own = self.own.get(&format!("{provider}/{model}"));
        let own = own.or_else(|| self.own.get(model));
        own.or_else(|| self.listed(provider, model))
    }

    /// The price in the table. `openai-codex` has the same prices as `openai`. A provider with another name may sell
    /// the same model at another price.
    fn listed(&self, provider: &str, model: &str) -> Option<&Price> {
        let listed = provider.split('-').next().unwrap_or_default();
        self.listed.get_or_init(table).get(listed)?.get(model)
    }
}

impl Price {
    fn cost(&self, tokens: &Tokens) -> Option<f64> {
        let Tokens {
            input,
            output,
            cache_read,
            cache_write,
        } = *tokens;
        let sent = input.saturating_add(cache_read).saturating_add(cache_write);
        if self.until.is_some_and(|until| sent > until) {
            return None;
        }
        let parts = [
            (input, self.input),
            (output, self.output),
            (cache_read, self.cache_read),
            (cache_write, self.cache_write),
        ];
        let parts = parts.into_iter().filter(|(tokens, _)| *tokens > 0);
        let dollars: Option<f64> = parts
            .map(|(tokens, price)| Some(tokens as f64 * price? / 1e6))
            .sum();
        dollars.filter(|dollars| dollars.is_finite())
    }
}

fn table() -> Listed {
    let mut listed: Listed = HashMap::new();
    for (provider, model, price) in TABLE.lines().skip(2).filter_map(row) {
        listed.entry(provider).or_default().insert(model, price);
    }
    listed
}

fn row(line: &'static str) -> Option<(&'static str, &'static str, Price)> {
    let cells: Vec<&'static str> = line.split('\t').collect();
    let [provider, model, input, output, read, write, until] = cells[..] else {
        return None;
    };
    let price = Price {
        input: input.parse().ok(),
        output: output.parse().ok(),
        cache_read: read.parse().ok(),
        cache_write: write.parse().ok(),
        until: until.parse().ok(),
    };
    Some((provider, model, price))
}

#[cfg(test)]
mod tests {
    use super::*;
    use treelined_core::stats::Prices as _;

    #[test]
    fn every_row_of_the_table_is_read() {
        let rows = TABLE.lines().skip(2).count();
        let table = table();
        let listed: Vec<&Price> = table.values().flat_map(HashMap::values).collect();
        assert_eq!(listed.len(), rows);
        for price in listed {
            assert!(price.input.is_some() && price.output.is_some(), "{price:?}");
        }
        assert!(
            Prices::source().contains(": litellm "),
            "{}",
            Prices::source()
        );
    }

    #[test]
    fn what_has_no_price_is_unknown() {
        let own = Price {
            input: Some(1.0),
            output: Some(2.0),
            until: Some(1_000_000),
            ..Price::default()
        };
        let prices = Prices::new(BTreeMap::from([("local".to_owned(), own)]));
        let tokens = |input, output, cache_read| Tokens {
            input,
            output,
            cache_read,
            cache_write: 0,
        };
        let of_local = |tokens| prices.estimate("ollama", "local", &tokens);
        assert_eq!(of_local(tokens(500_000, 250_000, 0)), Some(1.0));
        assert_eq!(of_local(tokens(500_000, 250_000, 1)), None);
        assert_eq!(of_local(tokens(1_000_001, 0, 0)), None);
        let one = tokens(1, 0, 0);
        assert!(
            prices
                .estimate("anthropic", "claude-opus-4-5", &one)
                .is_some()
        );
        assert!(prices.estimate("openai-codex", "gpt-5", &one).is_some());
        // Histories have answers of models that are no longer sold. The cost of these answers was once unknown.
        let older = [
            ("anthropic", "claude-sonnet-4-20250514", 3.0),
            ("anthropic", "claude-opus-4-1-20250805", 15.0),
            ("anthropic", "claude-3-7-sonnet-20250219", 3.0),
            ("openai", "o1-preview", 15.0),
            ("google", "gemini-2.5-pro-preview-05-06", 1.25),
        ];
        for (provider, model, price) in older {
            let cost = prices.estimate(provider, model, &tokens(1_000, 0, 0));
            assert_eq!(cost, Some(price / 1e3), "{model}");
        }
        assert_eq!(
            prices.estimate("amazon-bedrock", "claude-opus-4-5", &one),
            None
        );
        assert_eq!(
            prices.estimate("anthropic", "claude-unheard-of", &one),
            None
        );
    }
}
