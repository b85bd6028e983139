//! Finds the known words that have a word of the question as a part, such as `separate` for `rate`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The most known words that count for one word, and the most that are compared.
const MOST: usize = 8;
const MOST_KEPT: usize = 1 << 14;

/// Known words, each with the number of sessions that have it.
#[derive(Debug, Default)]
pub(super) struct Holders(BTreeMap<Box<str>, usize>);

impl Holders {
    /// Notes the known word `known` if `word` is a part of it.
    pub(super) fn note(&mut self, word: &str, known: &str, sessions: impl Fn() -> usize) {
        if !known.contains(word) {
            return;
        }
        let has_room = self.0.len() < MOST_KEPT;
        match self.0.get_mut(known) {
            Some(all) => *all += sessions(),
            None if has_room => {
                self.0.insert(known.into(), sessions());
            }
            None => {}
        }
    }

    /// Forgets the words that no counted session has.
    pub(super) fn forget_unused(&mut self) {
        self.0.retain(|_, sessions| *sessions > 0);
    }

    /// Whether a known word begins with `word`. If so, `word` is short for the known word.
    pub(super) fn begin_with(&self, word: &str) -> bool {
        let from = (Bound::Included(word), Bound::Unbounded);
        let next = self.0.range::<str, _>(from).next();
        next.is_some_and(|(known, _)| known.starts_with(word))
    }

    /// The known words that count: first the words that begin with `word`, then the words that most sessions have.
    pub(super) fn best(self, word: &str) -> Vec<String> {
        let mut all: Vec<_> = self.0.into_iter().collect();
        // The sort is stable, so words of equal rank stay in alphabetical order.
        all.sort_by_key(|(known, sessions)| Reverse((known.starts_with(word), *sessions)));
        let best = all.into_iter().take(MOST);
        best.map(|(known, _)| known.into()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_begin_with_it_are_first_and_then_those_of_most_sessions() {
        let mut holders = Holders::default();
        for (known, sessions) in [
            ("separate", 3),
            ("rates", 1),
            ("crated", 5),
            ("unused", 9),
            ("berated", 0),
        ] {
            holders.note("rate", known, || sessions);
        }
        holders.note("rate", "separate", || 3);
        holders.forget_unused();
        assert!(holders.begin_with("rate") && !holders.begin_with("sepr"));
        assert_eq!(holders.best("rate"), ["rates", "separate", "crated"]);
        let mut many = Holders::default();
        for number in 0..100 {
            many.note("a", &format!("a{number}"), || 1);
        }
        assert_eq!(many.best("a").len(), MOST);
    }
}
