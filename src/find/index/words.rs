//! Splits a text into the words of the index, and a query into the pieces of words that a match needs.
//!
//! Words are runs of letters and digits of the folded text, so paths and identifiers with `_` are split. Long runs are
//! cut into overlapping windows, and runs of Chinese, Japanese and Korean into overlapping pairs of characters. A query
//! finds any part of a text, so the first and the last word of a query may be only a part of a word of the index. A
//! [`Piece`] says at which ends its text is the end of a word.

use treelined_core::search::folded_text;
use xxhash_rust::xxh3::xxh3_64;

/// Characters of the longest word.
const WINDOW: usize = 24;
/// The overlap of windows, in characters. Each part of a run that is not longer than the overlap is inside one window.
const OVERLAP: usize = WINDOW / 2;

/// Bytes of a word that count for the joint with its neighbor.
const JOINT: usize = 3;

/// A part of a text that a match needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub text: String,
    /// Whether a word of the index begins with it.
    pub is_start: bool,
    /// Whether a word of the index ends with it.
    pub is_end: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    /// A character of a script without spaces between words.
    Dense,
    Other,
}

fn class(char: char) -> Class {
    match char {
        char if !char.is_alphanumeric() => Class::Other,
        '\u{2e80}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}' => Class::Dense,
        _ => Class::Letter,
    }
}

/// The runs of characters of one class in a folded text.
fn runs(folded: &str) -> impl Iterator<Item = (Class, &str)> {
    let mut rest = folded;
    std::iter::from_fn(move || {
        let of = class(rest.chars().next()?);
        let end = rest.char_indices().find(|(_, char)| class(*char) != of);
        let end = end.map_or(rest.len(), |(at, _)| at);
        let (run, after) = rest.split_at_checked(end)?;
        rest = after;
        Some((of, run))
    })
}

/// Receives the words of texts, and the joints between the words.
pub(super) trait WordTaker {
    fn word(&mut self, word: &str);

    /// Receives the hash of a joint: the end of one run of characters and the beginning of the next one.
    fn joint(&mut self, hash: u64);
}

/// Passes the words of a text to `taker`.
pub(super) fn each_word(text: &str, taker: &mut impl WordTaker) {
    let folded = folded_text(text);
    let mut before = None;
    for (class, run) in runs(&folded) {
        match class {
            Class::Letter => windows(run, WINDOW, OVERLAP, &mut |word| taker.word(word)),
            Class::Dense => windows(run, 2, 1, &mut |word| taker.word(word)),
            Class::Other => continue,
        }
        if let Some(before) = before.replace(run) {
            taker.joint(joint(before, run));
        }
    }
}

/// The hash of the end of one run and of the start of the next one. A run that is shorter than [`JOINT`] counts whole.
fn joint(before: &str, after: &str) -> u64 {
    let mut bytes = [b'\n'; 2 * JOINT];
    let (end, start) = bytes.split_at_mut(JOINT);
    let (before, after) = (before.as_bytes(), after.as_bytes());
    let from = before.len().saturating_sub(JOINT);
    let last = before.get(from..).unwrap_or_default();
    let first = after.get(..JOINT.min(after.len())).unwrap_or_default();
    end.iter_mut()
        .rev()
        .zip(last.iter().rev())
        .for_each(|(to, byte)| *to = *byte);
    start
        .iter_mut()
        .zip(first)
        .for_each(|(to, byte)| *to = *byte);
    xxh3_64(&bytes)
}

/// The hashes of the joints that each text with this folded part has.
pub(super) fn joints(folded: &str) -> Vec<u64> {
    let runs: Vec<(Class, &str)> = runs(folded).collect();
    let numbered = runs.iter().enumerate();
    let words: Vec<(usize, &str)> = numbered
        .filter(|(_, (class, _))| *class != Class::Other)
        .map(|(number, (_, run))| (number, *run))
        .collect();
    let pairs = words.iter().zip(words.iter().skip(1));
    let known = pairs.filter(|((first, before), (last, after))| {
        // The text may continue beyond the ends of the part.
        (before.len() >= JOINT || *first > 0) && (after.len() >= JOINT || last + 1 < runs.len())
    });
    known
        .map(|((_, before), (_, after))| joint(before, after))
        .collect()
}

/// Passes windows of `size` characters that begin every `step` characters, until a window reaches the end of the run.
fn windows(run: &str, size: usize, step: usize, each: &mut impl FnMut(&str)) {
    if run.len() <= size {
        return each(run);
    }
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).collect();
    for from in (0..starts.len()).step_by(step) {
        let start = starts.get(from).copied().unwrap_or(run.len());
        let end = starts.get(from + size).copied();
        each(run.get(start..end.unwrap_or(run.len())).unwrap_or_default());
        if from + size >= starts.len() {
            break;
        }
    }
}

/// The pieces that occur in the words of each text with this folded part.
pub(super) fn pieces(folded: &str) -> Vec<Piece> {
    let runs: Vec<(Class, &str)> = runs(folded).collect();
    let mut pieces = Vec::new();
    for (number, (class, run)) in runs.iter().enumerate() {
        // The text may continue beyond the ends of the part.
        let (is_start, is_end) = (number > 0, number + 1 < runs.len());
        let count = run.chars().count();
        match class {
            Class::Other => {}
            Class::Dense if count > 1 => windows(run, 2, 1, &mut |pair| {
                pieces.push(Piece {
                    text: pair.to_owned(),
                    is_start: true,
                    is_end: true,
                });
            }),
            Class::Dense => pieces.push(Piece {
                text: (*run).to_owned(),
                is_start: false,
                is_end: false,
            }),
            Class::Letter if count > OVERLAP => pieces.push(Piece {
                text: run.chars().take(OVERLAP).collect(),
                is_start,
                is_end: false,
            }),
            Class::Letter => pieces.push(Piece {
                text: (*run).to_owned(),
                is_start,
                is_end,
            }),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct FoundWords {
        words: Vec<String>,
        joints: Vec<u64>,
    }

    impl WordTaker for FoundWords {
        fn word(&mut self, word: &str) {
            self.words.push(word.to_owned());
        }

        fn joint(&mut self, hash: u64) {
            self.joints.push(hash);
        }
    }

    fn found(text: &str) -> FoundWords {
        let mut found = FoundWords::default();
        each_word(text, &mut found);
        found
    }

    fn words(text: &str) -> Vec<String> {
        found(text).words
    }

    #[test]
    fn text_is_split_at_everything_but_letters_and_digits() {
        assert_eq!(
            words("src/Lib.rs: snake_case x2"),
            ["src", "lib", "rs", "snake", "case", "x2"]
        );
        assert_eq!(words("日本語abc 한"), ["日本", "本語", "abc", "한"]);
        let long = "a1".repeat(20);
        let windows = words(&long);
        assert_eq!(windows.len(), 3);
        assert!(
            windows
                .iter()
                .all(|window| window.len() >= 13 && window.len() <= 24)
        );
        assert_eq!(words(" 😀 — "), [""; 0]);
    }

    /// The index must not lose a match: the words of a text contain each piece of any part of the text.
    #[test]
    fn the_pieces_and_joints_of_any_part_of_a_text_are_in_its_words() {
        let text = "The Straße/to_parseError2 日本語のabc漢, aVeryLongIdentifierThatIsCutIntoSeveralWindowsOfTheSameLength é한국어";
        let FoundWords {
            words,
            joints: all_joints,
        } = found(text);
        assert_eq!(joints("was cut into").len(), 2);
        assert_eq!(joints("a cut b").len(), 0);
        let folded: Vec<char> = folded_text(text).chars().collect();
        for from in 0..folded.len() {
            for to in from + 1..=folded.len() {
                let part: String = folded[from..to].iter().collect();
                for joint in joints(&part) {
                    assert!(all_joints.contains(&joint), "a joint of {part:?}");
                }
                for piece in pieces(&part) {
                    let is_in = |word: &String| match (piece.is_start, piece.is_end) {
                        (true, true) => *word == piece.text,
                        (true, false) => word.starts_with(&piece.text),
                        (false, true) => word.ends_with(&piece.text),
                        (false, false) => word.contains(&piece.text),
                    };
                    assert!(words.iter().any(is_in), "{piece:?} of {part:?}");
                }
            }
        }
    }
}
