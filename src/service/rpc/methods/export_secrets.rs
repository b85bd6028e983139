//! The choices of a client about secrets in an export (protocol.md §16).

use std::collections::HashSet;
use treelined_core::error::{Error, Result};
use treelined_redact::{
    Choices, ID_DIGITS, KnownValues, MAX_VALUES, MAX_WORDS, VALUE_BYTES, ValueHash, WORD_BYTES,
};
use treelined_wire::{self as wire, ExportSessionParams};

/// The most ids in each of `keep` and `replace`.
const MAX_IDS: usize = 1000;

/// The secrets that a client knows. The secrets that the daemon knows get the same salt, so that text is searched once
/// for both.
pub(super) fn known_values(values: Option<&wire::SecretValues>) -> Result<KnownValues> {
    let Some(values) = values else {
        return Ok(KnownValues::new(b"of the daemon"));
    };
    let refuse = |reason: &'static str| Error::invalid_params("values", reason);
    if !(16..=128).contains(&values.salt.len()) {
        return Err(refuse("needs a salt of 16 to 128 bytes"));
    }
    if values.hashes.len() > MAX_VALUES {
        return Err(refuse("has more than 64 hashes: leave some out"));
    }
    let hashes: Option<Vec<ValueHash>> = values.hashes.iter().map(value_hash).collect();
    let hashes = hashes.ok_or_else(|| {
        refuse("needs a length from 12 to 512, a check of 16 bits, and 64 hexadecimal digits for each value")
    })?;
    let mut known = KnownValues::new(values.salt.as_bytes());
    known.add_hashes(hashes);
    Ok(known)
}

fn value_hash(value: &wire::SecretValue) -> Option<ValueHash> {
    let length = usize::try_from(value.length).ok()?;
    let mut sha256 = [0; 32];
    let digits = value.sha256.as_bytes();
    if digits.len() != 2 * sha256.len() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in sha256.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    VALUE_BYTES.contains(&length).then_some(ValueHash {
        length,
        check: u16::try_from(value.check).ok()?,
        sha256,
    })
}

/// Fails if the export has nothing to review, or if there are too many words, or words that are too short or too long.
pub(super) fn check_review(params: &ExportSessionParams, is_jsonl: bool) -> Result<()> {
    if params.review == Some(true) && (is_jsonl || params.redact == Some(false)) {
        let reason = "this export replaces nothing: take another format, and leave `redact` out";
        return Err(Error::invalid_params("review", reason));
    }
    let words = params.words.as_deref().unwrap_or_default();
    if words.len() > MAX_WORDS || !words.iter().all(|word| WORD_BYTES.contains(&word.len())) {
        let reason = "has at most 256 words, of 3 to 512 bytes";
        return Err(Error::invalid_params("words", reason));
    }
    Ok(())
}

/// The decisions about single secrets.
pub(super) fn choices(params: &ExportSessionParams) -> Result<Choices> {
    Ok(Choices {
        salt: Vec::new(),
        kept: ids("keep", params.keep.as_ref())?,
        replaced: ids("replace", params.replace.as_ref())?,
    })
}

fn ids(field: &'static str, ids: Option<&Vec<String>>) -> Result<HashSet<String>> {
    let ids = ids.map(Vec::as_slice).unwrap_or_default();
    let is_id = |id: &String| {
        let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
        id.len() == ID_DIGITS && id.bytes().all(is_digit)
    };
    if ids.len() > MAX_IDS || !ids.iter().all(is_id) {
        let reason = "has at most 1,000 ids, each as `review` names it";
        return Err(Error::invalid_params(field, reason));
    }
    Ok(ids.iter().cloned().collect())
}
