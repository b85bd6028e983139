//! Finds the places of a text where a literal may begin, by its first three bytes.

/// A set of hashes of three bytes, kept as bits so that it fits into the fastest cache.
pub(crate) struct LiteralFilter {
    starts: Box<[u64; WORDS]>,
}

/// The number of words in a set of 16-bit hashes.
const WORDS: usize = 1 << 10;

impl LiteralFilter {
    /// Literals have at least two bytes.
    pub(crate) fn new(literals: &[impl AsRef<str>]) -> Self {
        let mut starts = Box::new([0; WORDS]);
        for literal in literals {
            let literal = literal.as_ref();
            debug_assert!(literal.len() > 1);
            let byte = |at: usize| literal.as_bytes().get(at).copied();
            let (first, second) = (byte(0).unwrap_or_default(), byte(1).unwrap_or_default());
            let third = byte(2).map_or(0..=u8::MAX, |third| third..=third);
            for third in third {
                let (word, bit) = place([first, second, third, 0]);
                if let Some(word) = starts.get_mut(word) {
                    *word |= bit;
                }
            }
        }
        Self { starts }
    }

    /// The first position at or after `at` where a literal may begin.
    pub(crate) fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let rest = text.get(at..)?;
        // One load for each position is faster than an automaton, in which each step waits for the step before.
        let found = rest.windows(4).position(|bytes| {
            let (word, bit) = bytes.first_chunk().copied().map(place).unwrap_or_default();
            self.starts.get(word).is_some_and(|word| word & bit != 0)
        });
        // The last positions have too few bytes for the filter.
        let last = rest.len().saturating_sub(3);
        let found = found.or((last < rest.len()).then_some(last))?;
        Some(at + found)
    }
}

/// The word and the bit of the first three of these bytes.
#[inline]
fn place(bytes: [u8; 4]) -> (usize, u64) {
    let three = u32::from_le_bytes(bytes) & 0x00ff_ffff;
    // The high bits of this product depend on all bytes.
    let hash = three.wrapping_mul(0x9e37_79b1) >> 16;
    ((hash >> 6) as usize, 1 << (hash & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_of_a_literal_is_passed() {
        let literals = ["SK", "sk-", "://"];
        let filter = LiteralFilter::new(&literals);
        let text = b"SK a sk-b http://c SKsk-://SKS";
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(place) = filter.next(text, at) {
            found.push(place);
            at = place + 1;
        }
        for place in 0..text.len() {
            let is_literal = literals
                .iter()
                .any(|literal| text[place..].starts_with(literal.as_bytes()));
            assert!(!is_literal || found.contains(&place), "{place}");
        }
        assert!(found.len() < text.len() / 2, "{found:?}");
        assert_eq!(filter.next(b"", 0), None);
        assert_eq!(filter.next(b"SK", 2), None);
    }
}
