//! `[prices."provider/model"]`: the prices of models, for `treelined usage`.

use super::lines::{self, SettingLines, SettingOrigin};
use anyhow::ensure;
use serde::Deserialize;
use std::collections::BTreeMap;
use treelined_usage::Price;

/// The prices of a model in dollars for a million tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceSection {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

/// The prices, by `provider/model` or by the name of the model.
pub(super) fn prices(
    sections: &BTreeMap<String, PriceSection>,
    lines: &mut SettingLines,
) -> anyhow::Result<BTreeMap<String, Price>> {
    let mut all = BTreeMap::new();
    for (model, section) in sections {
        let of = format!("prices.{}", lines::key(model));
        let PriceSection {
            input,
            output,
            cache_read,
            cache_write,
        } = *section;
        let members = [
            ("input", input),
            ("output", output),
            ("cache_read", cache_read),
            ("cache_write", cache_write),
        ];
        for (key, price) in members {
            if let Some(price) = price {
                ensure!(
                    price.is_finite() && price >= 0.0,
                    "{of}.{key}: must be dollars for a million tokens, 0 or more"
                );
                lines.push((&of, key), price.into(), SettingOrigin::File);
            }
        }
        let price = Price {
            input,
            output,
            cache_read,
            cache_write,
            until: None,
        };
        all.insert(model.clone(), price);
    }
    Ok(all)
}
