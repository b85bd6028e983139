//! A person's decisions about single secrets, and the search for text that looks like a secret but is not replaced.
//!
//! A secret is named by an id, a salted hash of it, so that a decision is not another copy of the secret.

use crate::Secret;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;

/// The kind of a text that a person has chosen to replace.
pub const CHOSEN: &str = "chosen";
/// The number of characters of an id.
pub const ID_DIGITS: usize = 16;

/// The lengths, in bytes, of text that may look like a secret. A longer run is data.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=128;

/// The ids of the secrets that stay, and of the texts that are replaced.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// The salt of the ids.
    pub salt: Vec<u8>,
    /// Ids of secrets that stay.
    pub kept: HashSet<String>,
    /// The ids of other texts that are replaced.
    pub replaced: HashSet<String>,
}

impl Choices {
    /// The id of a secret.
    pub fn id(&self, secret: &str) -> String {
        let hash = Sha256::new()
            .chain_update(&self.salt)
            .chain_update(b"\0")
            .chain_update(secret);
        let mut id = String::with_capacity(ID_DIGITS);
        for byte in hash.finalize().iter().take(ID_DIGITS / 2) {
            let _ = write!(id, "{byte:02x}");
        }
        id
    }

    pub(crate) fn keeps(&self, secret: &str) -> bool {
        !self.kept.is_empty() && self.kept.contains(&self.id(secret))
    }

    /// The first chosen text at or after `at`.
    pub(crate) fn next(&self, text: &str, at: usize) -> Option<Secret> {
        if self.replaced.is_empty() {
            return None;
        }
        let is_chosen = |span: &Range<usize>| {
            let text = text.get(span.clone());
            text.is_some_and(|text| self.replaced.contains(&self.id(text)))
        };
        let span = candidates(text, at).find(is_chosen)?;
        Some(Secret { kind: CHOSEN, span })
    }
}

/// The parts of a text, from `at` on, that look like a secret: runs of letters and digits that look generated. Hashes,
/// UUIDs, paths, words and long data are left out.
pub fn candidates(text: &str, at: usize) -> impl Iterator<Item = Range<usize>> + '_ {
    let bytes = text.as_bytes();
    let mut from = at;
    std::iter::from_fn(move || {
        loop {
            let rest = bytes.get(from..)?;
            let start = from + rest.iter().position(|byte| is_in_run(*byte))?;
            let run = bytes.get(start..)?.iter();
            let end = start + run.take_while(|byte| is_in_run(**byte)).count();
            from = end;
            if bytes.get(start..end).is_some_and(looks_random) {
                return Some(start..end);
            }
        }
    })
}

fn is_in_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=' | b'.' | b'~')
}

fn looks_random(run: &[u8]) -> bool {
    // A path begins with a slash.
    if !LENGTHS.contains(&run.len()) || run.starts_with(b"/") || run.starts_with(b"~/") {
        return false;
    }
    let digits = run.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = run.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    // The part after a prefix such as `rs_`.
    let last = run
        .rsplit(|byte| matches!(byte, b'_' | b'-' | b'.' | b'/'))
        .next();
    let is_hash = |part: &[u8]| part.iter().all(u8::is_ascii_hexdigit);
    let is_uuid = run.len() == 36 && run.split(|byte| *byte == b'-').all(is_hash);
    let changes = run.windows(2).filter(|pair| match pair {
        [one, other] => class(*one) != class(*other),
        _ => false,
    });
    let signs = run.len() - digits - letters;
    digits >= 2
        && letters >= 4
        && signs * 6 <= run.len()
        && !is_uuid
        && !last.is_some_and(|part| part.len() >= 12 && is_hash(part))
        // In random letters and digits, 8 to 12 of 20 neighbouring pairs have two classes. In names and paths, at most
        // 7 do.
        && changes.count() * 20 >= run.len() * 7
}

/// The class of a character: lowercase, uppercase, digit, or other.
fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    }
}
