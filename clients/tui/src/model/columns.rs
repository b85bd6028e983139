//! The columns with time and tokens beside the rows of the tree. Rows do not have the tokens, so the tokens of
//! visible answers are requested.

use crate::message::Effect;
use crate::message::{Kind, Row};
use std::collections::HashMap;

/// The most entries whose tokens are kept.
const KEPT: usize = 10_000;

/// The columns at the right of the tree.
#[derive(Debug, Default)]
pub struct EntryColumns {
    pub shown: bool,
    /// The tokens by entry; `None` if the entry used no tokens.
    tokens: HashMap<String, Option<u64>>,
    /// Whether a request is open.
    asked: bool,
}

impl EntryColumns {
    /// Requests the tokens of those rows whose tokens are unknown.
    pub fn want<'a>(&mut self, rows: impl Iterator<Item = &'a Row>) -> Option<Effect> {
        if !self.shown || self.asked {
            return None;
        }
        let missing =
            rows.filter(|row| row.kind == Kind::Assistant && !self.tokens.contains_key(&row.id));
        let ids: Vec<String> = missing.map(|row| row.id.clone()).collect();
        self.asked = !ids.is_empty();
        self.asked.then_some(Effect::GetTokens { ids })
    }

    /// Stores the answer.
    pub fn arrived(&mut self, tokens: Vec<(String, Option<u64>)>) {
        self.asked = false;
        if self.tokens.len() > KEPT {
            self.tokens.clear();
        }
        self.tokens.extend(tokens);
    }

    /// Call this if the open request will get no answer.
    pub fn abandon(&mut self) {
        self.asked = false;
    }

    /// Returns the tokens of a row, formatted; empty if there are none.
    pub fn tokens(&self, row: &Row) -> String {
        let known = self.tokens.get(&row.id).copied().flatten();
        let tokens = row.tokens.or(known);
        tokens.map(crate::time::tokens).unwrap_or_default()
    }
}
