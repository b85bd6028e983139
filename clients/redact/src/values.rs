//! Secrets that are recognized by their values: values of variables, kept as salted hashes, and words of a person.

use crate::named::Names;
use crate::{Secret, is_behind, is_word_byte};
use aho_corasick::{AhoCorasick, MatchKind};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;

/// The fewest and the most bytes of a value. A shorter value often occurs as other text.
pub const VALUE_BYTES: std::ops::RangeInclusive<usize> = 12..=512;
/// The fewest and the most bytes of a word.
pub const WORD_BYTES: std::ops::RangeInclusive<usize> = 3..=512;
/// The most values that one program may add.
pub const MAX_VALUES: usize = 64;
/// The most words.
pub const MAX_WORDS: usize = 256;
/// The kind of the value of a variable.
pub const VARIABLE: &str = "variable";
/// The kind of a word that a person has added.
pub const WORD: &str = "word";

/// The number of bytes at the beginning of a value from which its check is computed.
const HEAD: usize = 8;

/// A value as a hash, for a program that must find the value without knowing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueHash {
    /// The length of the value in bytes.
    pub length: usize,
    /// 16 bits from the salt and the first 8 bytes of the value. Only text with this check needs the SHA-256.
    pub check: u16,
    /// SHA-256 of the salt and the value.
    pub sha256: [u8; 32],
}

impl ValueHash {
    /// The hash of a value. `None` if text is never searched for such a value: the length is outside of
    /// [`VALUE_BYTES`], or the value has blanks, double quotes, backslashes, or characters that are not ASCII.
    pub fn of(salt: &[u8], value: &str) -> Option<Self> {
        Self::with(Key::of(salt), salt, value.as_bytes())
    }

    fn with(key: Key, salt: &[u8], value: &[u8]) -> Option<Self> {
        let check = key.check(value)?;
        let is_findable =
            VALUE_BYTES.contains(&value.len()) && value.iter().copied().all(is_of_value);
        is_findable.then(|| Self {
            length: value.len(),
            check,
            sha256: sha256(salt, value),
        })
    }

    /// [`sha256`](Self::sha256) as hexadecimal digits.
    pub fn digits(&self) -> String {
        use fmt::Write;
        let mut digits = String::with_capacity(2 * self.sha256.len());
        for byte in self.sha256 {
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    }
}

/// The values of the variables whose names mean a secret or are in `also`; at most [`MAX_VALUES`]. Paths and addresses
/// are left out, since they only say where something is.
pub fn secret_variables(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    also: &[String],
) -> Vec<String> {
    let names = Names::new();
    let secret = |(name, value): (OsString, OsString)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        let is_secret = names.kind(&name).is_some() || also.contains(&name);
        let is_place = value.starts_with(['/', '~', '.']) || value.contains("://");
        let is_long = VALUE_BYTES.contains(&value.len());
        (is_secret && is_long && !is_place).then_some(value)
    };
    let variables = variables.into_iter().filter_map(secret);
    variables.take(MAX_VALUES).collect()
}

/// Values and words that are secrets in any context.
#[derive(Clone, Default)]
pub struct KnownValues {
    values: Option<ValueSet>,
    words: Option<Words>,
}

/// The values that have one salt.
#[derive(Clone)]
struct ValueSet {
    salt: Vec<u8>,
    key: Key,
    /// The set of checks, as bits.
    checks: Box<[u64]>,
    /// The hashes by the length of their values, the longest first.
    by_length: Vec<(usize, HashSet<[u8; 32]>)>,
}

#[derive(Clone)]
struct Words {
    finder: AhoCorasick,
    /// For each word, the lengths in bytes of the shorter words with which the word begins, the longest first.
    shorter: Vec<Vec<usize>>,
    /// Whether JSON may escape a character of a word, so that strings must be decoded.
    may_be_escaped: bool,
}

impl KnownValues {
    /// An empty set. The hashes that are added later must have this salt.
    pub fn new(salt: &[u8]) -> Self {
        let values = ValueSet {
            salt: salt.to_vec(),
            key: Key::of(salt),
            checks: vec![0; 1 << 10].into_boxed_slice(),
            by_length: Vec::new(),
        };
        Self {
            values: Some(values),
            words: None,
        }
    }

    /// Adds values by their hashes, at most [`MAX_VALUES`]. Without a salt it adds nothing.
    pub fn add_hashes(&mut self, hashes: impl IntoIterator<Item = ValueHash>) {
        if let Some(values) = &mut self.values {
            for hash in hashes.into_iter().take(MAX_VALUES) {
                values.add(hash);
            }
        }
    }

    /// Adds values as they are. Values that text is not searched for are left out. Without a salt it adds nothing.
    pub fn add_values(&mut self, added: impl IntoIterator<Item = String>) {
        if let Some(values) = &mut self.values {
            for value in added.into_iter().take(MAX_VALUES) {
                if let Some(hash) = ValueHash::with(values.key, &values.salt, value.as_bytes()) {
                    values.add(hash);
                }
            }
        }
    }

    /// Replaces the words by at most [`MAX_WORDS`] words. Words whose length is outside of [`WORD_BYTES`] are left out.
    pub fn set_words(&mut self, words: &[String]) {
        let words = words.iter().filter(|word| WORD_BYTES.contains(&word.len()));
        let words: Vec<&String> = words.take(MAX_WORDS).collect();
        let is_escaped = |byte: u8| !byte.is_ascii() || matches!(byte, b'"' | b'\\' | ..=0x1f);
        let may_be_escaped = words.iter().any(|word| word.bytes().any(is_escaped));
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(&words);
        let shorter = words.iter().map(|word| shorter_words(word, &words));
        let shorter = shorter.collect();
        // An automaton of so few words can always be built.
        let finder = finder.ok().filter(|_| !words.is_empty());
        self.words = finder.map(|finder| Words {
            finder,
            shorter,
            may_be_escaped,
        });
    }

    /// The first value at or after `at`.
    pub(crate) fn value(&self, text: &[u8], at: usize) -> Option<Secret> {
        self.values
            .as_ref()
            .and_then(|values| values.next(text, at))
    }

    /// The first word at or after `at`.
    pub(crate) fn word(&self, text: &[u8], at: usize) -> Option<Secret> {
        self.words.as_ref().and_then(|words| words.next(text, at))
    }

    /// Whether raw JSON may have a value or a word.
    pub(crate) fn may_match(&self, json: &[u8]) -> bool {
        let is_escaped =
            |words: &Words| words.may_be_escaped && memchr::memchr(b'\\', json).is_some();
        self.words.as_ref().is_some_and(is_escaped)
            || self.word(json, 0).is_some()
            || self.value(json, 0).is_some()
    }
}

/// The lengths of the words with which this word begins, in bytes.
fn shorter_words(word: &str, words: &[&String]) -> Vec<usize> {
    let begins = |other: &&&String| {
        let head = word.as_bytes().get(..other.len());
        other.len() < word.len()
            && head.is_some_and(|head| head.eq_ignore_ascii_case(other.as_bytes()))
    };
    let mut shorter: Vec<usize> = words
        .iter()
        .filter(begins)
        .map(|other| other.len())
        .collect();
    shorter.sort_unstable_by(|a, b| b.cmp(a));
    shorter.dedup();
    shorter
}

impl fmt::Debug for KnownValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownValues").finish_non_exhaustive()
    }
}

impl ValueSet {
    fn add(&mut self, hash: ValueHash) {
        let (word, bit) = place(hash.check);
        if let Some(word) = self.checks.get_mut(word) {
            *word |= bit;
        }
        let known = |(length, _): &(usize, _)| hash.length.cmp(length);
        let at = match self.by_length.binary_search_by(known) {
            Ok(at) => at,
            Err(at) => {
                self.by_length.insert(at, (hash.length, HashSet::new()));
                at
            }
        };
        if let Some((_, values)) = self.by_length.get_mut(at) {
            values.insert(hash.sha256);
        }
    }

    fn next(&self, text: &[u8], at: usize) -> Option<Secret> {
        if self.by_length.is_empty() {
            return None;
        }
        let mut from = at;
        loop {
            let rest = text.get(from..)?;
            let start = from + rest.iter().position(|byte| is_of_value(*byte))?;
            let run = text.get(start..)?.iter();
            let end = start + run.take_while(|byte| is_of_value(**byte)).count();
            let found = self.in_run(text, start, end);
            if found.is_some() {
                return found;
            }
            from = end;
        }
    }

    /// The first value in a run of bytes that values may have.
    fn in_run(&self, text: &[u8], start: usize, end: usize) -> Option<Secret> {
        let last = (end + 1).checked_sub(*VALUE_BYTES.start())?;
        (start..last).find_map(|at| {
            let (word, bit) = place(self.key.check(text.get(at..)?)?);
            let is_candidate = self.checks.get(word).is_some_and(|word| word & bit != 0);
            (is_candidate && begins_run(text, at, is_of_word))
                .then(|| self.at(text, at, end))
                .flatten()
        })
    }

    /// The longest value at a position.
    fn at(&self, text: &[u8], at: usize, most: usize) -> Option<Secret> {
        self.by_length.iter().find_map(|(length, values)| {
            let span = at..at + length;
            let value = text.get(span.clone())?;
            let is_here = span.end <= most
                && ends_run(text, span.end, is_of_word)
                && values.contains(&sha256(&self.salt, value));
            is_here.then_some(Secret {
                kind: VARIABLE,
                span,
            })
        })
    }
}

impl Words {
    fn next(&self, text: &[u8], mut at: usize) -> Option<Secret> {
        loop {
            let here = aho_corasick::Input::new(text).span(at..text.len());
            let found = self.finder.find(here)?;
            at = found.start();
            if begins_run(text, at, is_of_number_or_name) {
                let shorter = self.shorter.get(found.pattern().as_usize());
                let shorter = shorter.into_iter().flatten().map(|length| at + length);
                let mut ends = std::iter::once(found.end()).chain(shorter);
                if let Some(end) = ends.find(|end| ends_run(text, *end, is_of_number_or_name)) {
                    let span = at..end;
                    return Some(Secret { kind: WORD, span });
                }
            }
            at += 1;
        }
    }
}

/// The numbers that turn a salt and a text into a check.
#[derive(Clone, Copy)]
struct Key(u64, u64);

impl Key {
    fn of(salt: &[u8]) -> Self {
        let hash = sha256(salt, b"check");
        let number = |at: usize| {
            let bytes = hash.get(at..at + 8).and_then(|bytes| bytes.first_chunk());
            bytes.copied().map_or(0, u64::from_le_bytes)
        };
        Self(number(0), number(8) | 1)
    }

    /// The check of the first bytes of a text; `None` if the text is too short.
    fn check(self, text: &[u8]) -> Option<u16> {
        let head = u64::from_le_bytes(*text.first_chunk::<HEAD>()?);
        // The high bits of this product depend on all bytes.
        let mixed = (head ^ self.0).wrapping_mul(self.1) >> 48;
        u16::try_from(mixed).ok()
    }
}

/// The index of the word and the bit for a check.
fn place(check: u16) -> (usize, u64) {
    (usize::from(check >> 6), 1 << (check & 63))
}

fn sha256(salt: &[u8], value: &[u8]) -> [u8; 32] {
    Sha256::new()
        .chain_update(salt)
        .chain_update(value)
        .finalize()
        .into()
}

/// Whether JSON and people write this byte without an escape.
fn is_of_value(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\')
}

/// Whether a match may begin at `at`: no run of bytes that `is_of` accepts crosses this position.
fn begins_run(text: &[u8], at: usize, is_of: fn(u8) -> bool) -> bool {
    let is_in = text.get(at).copied().is_some_and(is_of);
    !(is_in && is_behind(text, at, is_of))
}

fn ends_run(text: &[u8], end: usize, is_of: fn(u8) -> bool) -> bool {
    let is_in = |at: usize| text.get(at).copied().is_some_and(is_of);
    !(is_in(end) && end.checked_sub(1).is_some_and(is_in))
}

/// Whether the byte belongs to a word. Every byte of a letter of another script belongs to a word.
fn is_of_word(byte: u8) -> bool {
    is_word_byte(byte) || !byte.is_ascii()
}

/// Whether the byte continues a number or a name: the word `acme` is also found in `acme_db`.
fn is_of_number_or_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii()
}
