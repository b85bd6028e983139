//! The texts of messages as parts, and their hash (session-file.md §4.6). Every agent returns the same parts,
//! whatever the form in which it stores messages.

use super::blocks::{Block, blocks};
use super::loss::Losses;
use super::path::{Message, ModelPart, Part};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use treelined_core::json;

/// A part: a letter for its kind, and its text without white space. The text is never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) letter: u8,
    pub(crate) text: String,
}

impl Said {
    /// A part; `None` if the text is only white space.
    pub(crate) fn new(letter: u8, text: &str) -> Option<Self> {
        let text: String = text.split_whitespace().collect();
        (!text.is_empty()).then_some(Self { letter, text })
    }

    /// Whether a text of this kind may continue in the next part.
    pub(crate) fn goes_on(letter: u8) -> bool {
        matches!(letter, b'u' | b'a')
    }
}

/// The hash of a path, in hexadecimal digits.
pub fn hash(messages: &[Message]) -> String {
    let mut hash = PathHash::default();
    for said in messages.iter().flat_map(parts).flatten() {
        hash.push(&said);
    }
    hash.digits()
}

/// The parts of a message. A message with results has a list for each result.
pub(crate) fn parts(message: &Message) -> Vec<Vec<Said>> {
    match message {
        Message::User(said) => vec![texts(b'u', &said.parts)],
        Message::Model(said) => {
            let parts = said.parts.iter().filter_map(|part| match part {
                ModelPart::Text(text) => Said::new(b'a', text),
                ModelPart::Call(call) => Said::new(b'c', &call.name),
            });
            vec![parts.collect()]
        }
        Message::Results(results) => {
            let results = results.iter();
            results
                .map(|result| joined(texts(b'r', &result.parts)))
                .collect()
        }
    }
}

/// The parts of a stored message, which is raw JSON. Only messages of a user, a model or a tool have parts.
pub(crate) fn parts_of(message: &[u8]) -> Vec<Said> {
    let role = json::get(message, "role").and_then(json::string);
    let letter = match role.as_deref() {
        Some("user") => b'u',
        Some("assistant") => b'a',
        Some("toolResult") => b'r',
        _ => return Vec::new(),
    };
    let content = json::get(message, "content").unwrap_or_default();
    let blocks = blocks(content, &mut Losses::default()).into_iter();
    let parts = blocks.filter_map(|block| match block {
        Block::Part(Part::Text(text)) => Said::new(letter, &text),
        Block::Call { name, .. } => Said::new(b'c', &name),
        Block::Part(Part::Image { .. }) | Block::Thought(_) => None,
    });
    let parts = parts.collect();
    match letter {
        b'r' => joined(parts),
        _ => parts,
    }
}

fn texts(letter: u8, parts: &[Part]) -> Vec<Said> {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Said::new(letter, text),
        Part::Image { .. } => None,
    });
    texts.collect()
}

/// Joins the texts of one result into one part.
fn joined(parts: Vec<Said>) -> Vec<Said> {
    let text: String = parts.iter().map(|said| said.text.as_str()).collect();
    Said::new(b'r', &text).into_iter().collect()
}

/// The hash of parts, which are added in order.
#[derive(Default, Clone)]
pub(crate) struct PathHash {
    hasher: Sha256,
    /// The kind of the last part, if it may continue in the next part.
    letter: Option<u8>,
}

impl PathHash {
    pub(crate) fn push(&mut self, said: &Said) {
        if self.letter != Some(said.letter) || !Said::goes_on(said.letter) {
            self.end();
            self.hasher.update([said.letter]);
            self.letter = Some(said.letter);
        }
        self.hasher.update(&said.text);
    }

    fn end(&mut self) {
        if self.letter.take().is_some() {
            self.hasher.update([0]);
        }
    }

    /// The hash of all added parts, in hexadecimal digits.
    pub(crate) fn digits(mut self) -> String {
        self.end();
        let mut digits = String::with_capacity(64);
        for byte in self.hasher.finalize() {
            let _infallible = write!(digits, "{byte:02x}");
        }
        digits
    }
}
