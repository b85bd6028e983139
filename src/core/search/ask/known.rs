//! A cache from words to the hashes of their stems. A word is found in the cache much faster than its stem is computed.

use super::stem::stem;

/// The number of words that the cache keeps. A new word replaces the word that has the same slot.
const SLOTS: usize = 1 << 12;
/// The longest word that is cached, in bytes.
const LETTERS: usize = 24;

/// The letters of a word, with zeros after them, and the hash of its stem. An empty slot has only zeros, since no word
/// is empty.
#[derive(Debug, Clone, Copy, Default)]
struct KnownWord {
    letters: [u8; LETTERS],
    term: u64,
}

/// The words that were read last, with the hashes of their stems.
#[derive(Debug, Default)]
pub(super) struct KnownWords {
    /// The words, by the hash of their letters. Empty before the first word.
    slots: Vec<KnownWord>,
    stem: String,
}

impl KnownWords {
    /// The hash of the stem of a word, which is in folded letters.
    pub(super) fn term(&mut self, word: &str) -> u64 {
        let mut letters = [0; LETTERS];
        let start = letters.get_mut(..word.len());
        let Some(start) = start.filter(|start| !start.is_empty()) else {
            return stemmed(&mut self.stem, word);
        };
        start.copy_from_slice(word.as_bytes());
        if self.slots.is_empty() {
            self.slots = vec![KnownWord::default(); SLOTS];
        }
        let Some(slot) = self.slots.get_mut(slot_of(&letters)) else {
            return stemmed(&mut self.stem, word);
        };
        // An empty slot has only zeros, so it equals no word.
        if slot.letters != letters {
            let term = stemmed(&mut self.stem, word);
            *slot = KnownWord { letters, term };
        }
        slot.term
    }
}

/// Hashes bytes (FNV-1a).
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(start, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn stemmed(memory: &mut String, word: &str) -> u64 {
    memory.clear();
    memory.push_str(word);
    stem(memory);
    hash(memory.as_bytes())
}

fn slot_of(letters: &[u8; LETTERS]) -> usize {
    let (words, _) = letters.as_chunks::<8>();
    let mixed = words.iter().fold(0_u64, |hash, word| {
        (hash.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(0x517c_c1b7_2722_0a95)
    });
    (mixed >> 52) as usize
}
