//! The hash of a path (session-file.md §4.6): over what every agent gives back, whatever the form in which it keeps it.

use super::path::{Message, ModelPart, Part};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The hash of the path, in hexadecimal digits.
pub fn hash(messages: &[Message]) -> String {
    let mut parts = Parts::default();
    for message in messages {
        match message {
            Message::User(said) => parts.texts(b'u', &said.parts),
            Message::Model(said) => {
                for part in &said.parts {
                    match part {
                        ModelPart::Text(text) => parts.push(b'a', text),
                        ModelPart::Call(call) => parts.push(b'c', &call.name),
                    }
                }
            }
            Message::Results(results) => {
                for result in results {
                    parts.end();
                    parts.texts(b'r', &result.parts);
                }
            }
        }
    }
    parts.finish()
}

/// The parts of messages, hashed in order.
#[derive(Default)]
struct Parts {
    hasher: Sha256,
    /// The letter of the part that may go on.
    letter: Option<u8>,
}

impl Parts {
    fn texts(&mut self, letter: u8, parts: &[Part]) {
        for part in parts {
            if let Part::Text(text) = part {
                self.push(letter, text);
            }
        }
    }

    /// Adds a text without its white space. Of calls each one is a part.
    fn push(&mut self, letter: u8, text: &str) {
        let mut words = text.split_whitespace().peekable();
        if words.peek().is_none() {
            return;
        }
        if self.letter != Some(letter) || letter == b'c' {
            self.end();
            self.hasher.update([letter]);
            self.letter = Some(letter);
        }
        for word in words {
            self.hasher.update(word);
        }
    }

    fn end(&mut self) {
        if self.letter.take().is_some() {
            self.hasher.update([0]);
        }
    }

    fn finish(mut self) -> String {
        self.end();
        let mut digits = String::with_capacity(64);
        for byte in self.hasher.finalize() {
            let _infallible = write!(digits, "{byte:02x}");
        }
        digits
    }
}
