//! Removes the key from text that a server sends. The server has received the key, so it can send the key back.

use secrecy::{ExposeSecret, SecretString};

/// The shortest key that is removed, in bytes. A shorter key is often an ordinary word, such as a placeholder for
/// servers without keys. Normal text would lose that word.
const MIN_BYTES: usize = 12;
const INSTEAD: &str = "[redacted]";

/// Removes a key from text that arrives in pieces, wherever the pieces are cut.
pub(super) struct Redactor<'a> {
    key: Option<&'a str>,
    /// The end of the text, which may be the beginning of the key.
    held: String,
}

impl<'a> Redactor<'a> {
    pub(super) fn new(key: Option<&'a SecretString>) -> Self {
        let key = key.map(ExposeSecret::expose_secret);
        Self {
            key: key.filter(|key| key.len() >= MIN_BYTES),
            held: String::new(),
        }
    }

    /// Adds a piece and returns the text that cannot be part of the key.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let Some(key) = self.key else {
            return piece.to_owned();
        };
        self.held.push_str(piece);
        let mut safe = self.held.replace(key, INSTEAD);
        let begun = |length: &usize| {
            let beginning = key.get(..*length);
            beginning.is_some_and(|beginning| safe.ends_with(beginning))
        };
        let held = (1..key.len()).rev().find(begun).unwrap_or_default();
        self.held = safe.split_off(safe.len() - held);
        safe
    }

    /// The text that was kept until the end.
    pub(super) fn finish(self) -> String {
        self.held
    }

    /// The word, unless it contains the key.
    pub(super) fn word(&self, word: String) -> Option<String> {
        let holds = |key| word.contains(key);
        (!self.key.is_some_and(holds)).then_some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: &str, text: &str, expect: &str) {
        let key = SecretString::from(key);
        for size in 1..=text.len() {
            let mut redactor = Redactor::new(Some(&key));
            let mut said = String::new();
            for piece in text.as_bytes().chunks(size) {
                said.push_str(&redactor.push(std::str::from_utf8(piece).unwrap()));
            }
            said.push_str(&redactor.finish());
            assert_eq!(said, expect, "pieces of {size}");
        }
    }

    #[test]
    fn a_key_is_left_out_however_it_is_cut() {
        check(
            "sk-canary-1-canary-1",
            "a sk-canary-1-canary-1.",
            "a [redacted].",
        );
        check(
            "sk-canary-1-canary-1",
            "sk-canary-1-canary",
            "sk-canary-1-canary",
        );
        check("aaaaaaaaaaaab", "aaaaaaaaaaaaaaab", "aaa[redacted]");
        check("ollama", "an ollama", "an ollama");
    }

    #[test]
    fn a_word_with_the_key_in_it_is_none() {
        let key = SecretString::from("canary_canary_canary");
        let redactor = Redactor::new(Some(&key));
        assert_eq!(redactor.word("a_canary_canary_canary".into()), None);
        assert!(redactor.word("overloaded_error".into()).is_some());
    }
}
