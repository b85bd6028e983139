//! Finds the two known words of a word that was typed without the blank between them.

use std::collections::BTreeMap;
use treelined_core::search::ask::MistypedWord;

/// The fewest letters of a part that was mistyped too. Shorter parts are similar to too many words.
const LEAST_MISTYPED: usize = 5;
/// The most parts of a question that are compared with all known words.
const MOST_PARTS: usize = 16;

/// The known words that a word begins or ends with. The key is the length of the beginning in bytes, and the value is
/// the number of sessions that have the known word.
#[derive(Debug, Default)]
pub(super) struct Parts {
    beginnings: BTreeMap<usize, usize>,
    endings: BTreeMap<usize, usize>,
}

impl Parts {
    /// Notes a known word if the word begins or ends with it.
    pub(super) fn note(&mut self, word: &str, known: &str, sessions: impl Fn() -> usize) {
        let place = word.len().saturating_sub(known.len());
        if word.starts_with(known) {
            *self.beginnings.entry(known.len()).or_default() += sessions();
        }
        if word.ends_with(known) {
            *self.endings.entry(place).or_default() += sessions();
        }
    }

    /// Forgets the words that no counted session has.
    pub(super) fn forget_unused(&mut self) {
        self.beginnings.retain(|_, sessions| *sessions > 0);
        self.endings.retain(|_, sessions| *sessions > 0);
    }

    /// The two known words that the word consists of. If there are several pairs, returns the pair whose shorter word
    /// is the longest.
    pub(super) fn pair(&self, word: &str) -> Option<String> {
        let both = self.beginnings.keys();
        let both = both.filter(|place| self.endings.contains_key(place));
        let place = both.max_by_key(|place| shorter(word, **place))?;
        let (beginning, ending) = word.split_at_checked(*place)?;
        Some(format!("{beginning} {ending}"))
    }
}

fn shorter(word: &str, place: usize) -> usize {
    place.min(word.len().saturating_sub(place))
}

/// The rest of a word that begins or ends with a known word.
pub(super) struct Rest<'q> {
    /// The index of the word among the words of the search.
    pub of: usize,
    known: &'q str,
    rest: &'q str,
    is_ending: bool,
}

/// The rest of a word for each known word that it begins or ends with. The longest known words are first.
pub(super) fn rests<'q>(of: usize, word: &'q str, parts: &Parts) -> Vec<Rest<'q>> {
    let beginnings = parts.beginnings.keys().map(|place| (*place, true));
    let endings = parts.endings.keys().map(|place| (*place, false));
    let rests = beginnings.chain(endings).filter_map(|(place, is_ending)| {
        let (beginning, ending) = word.split_at_checked(place)?;
        let (known, rest) = match is_ending {
            true => (beginning, ending),
            false => (ending, beginning),
        };
        (rest.len() >= LEAST_MISTYPED).then_some(Rest {
            of,
            known,
            rest,
            is_ending,
        })
    });
    let mut rests: Vec<_> = rests.collect();
    rests.sort_by_key(|rest| std::cmp::Reverse(rest.known.len()));
    rests.truncate(MOST_PARTS);
    rests
}

impl<'q> Rest<'q> {
    pub(super) fn mistyped(&self) -> MistypedWord<'q> {
        MistypedWord::new(self.rest)
    }

    /// Returns the known word, the word of `near` that is nearest to the rest, and the distance of that word from the
    /// rest. `near` has known words near to the rest, each with its distance and its number of sessions.
    pub(super) fn pair(&self, near: &BTreeMap<String, (usize, usize)>) -> Option<(usize, String)> {
        let mistyped = self.mistyped();
        let (near, (distance, _)) = near
            .iter()
            .filter(|(near, _)| mistyped.begins_as(near))
            .min_by_key(|(_, (distance, sessions))| (*distance, usize::MAX - *sessions))?;
        let pair = match self.is_ending {
            true => format!("{} {near}", self.known),
            false => format!("{near} {}", self.known),
        };
        Some((*distance, pair))
    }
}
