//! Finds the credentials in URLs. Slashes and characters may be escaped, as in JSON in a string:
//! `https:\/\/ada:p\u00e4ss@host`.

use std::ops::Range;

/// The most bytes of the credentials.
const LONGEST: usize = 1024;
/// The most backslashes before an escaped character. Each level of nesting doubles their number.
const MOST_BACKSLASHES: usize = 8;
/// A user name with a digit and at least this number of bytes is taken for a token.
const TOKEN: usize = 16;

/// The secret of the URL whose `://` begins at `at`: the password, a token that is used as the user name, or both. The
/// slashes may be escaped. In raw JSON one character may have six bytes.
pub(super) fn credentials(text: &[u8], at: usize, is_raw: bool) -> Option<Range<usize>> {
    let start = skip_slash(text, at + 1).and_then(|next| skip_slash(text, next))?;
    let authority = text.get(start..authority_end(text, start))?;
    let length = last_at_sign(authority).filter(|length| is_raw || *length <= LONGEST)?;
    let shown = authority.get(..length)?;
    let secret = match shown.iter().position(|byte| *byte == b':') {
        Some(colon) => {
            let (user, password) = (shown.get(..colon)?, shown.get(colon + 1..)?);
            match password {
                _ if user.iter().any(is_of_sentence) => return None,
                b"" => 0..colon,
                // Some services take the token as the user name.
                b"x-oauth-basic" => 0..length,
                _ if is_token(user) => 0..length,
                _ => colon + 1..length,
            }
        }
        // Only HTTP uses tokens without passwords: in `ssh://ada@host`, `ada` is a user name.
        None if !is_http(text.get(..at)?) || shown == b"git" => return None,
        None if shown.iter().any(is_of_sentence) => return None,
        None => 0..length,
    };
    let is_secret = authority
        .get(secret.clone())
        .is_some_and(|secret| !secret.is_empty() && !is_placeholder(secret));
    is_secret.then(|| start + secret.start..start + secret.end)
}

/// The position after a slash. Backslashes may escape the slash.
fn skip_slash(text: &[u8], at: usize) -> Option<usize> {
    let slash = at + backslashes(text, at);
    (text.get(slash) == Some(&b'/')).then_some(slash + 1)
}

fn backslashes(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let some = rest.iter().take(MOST_BACKSLASHES);
    some.take_while(|byte| **byte == b'\\').count()
}

/// The end of the authority, which begins with the user name at `at`.
fn authority_end(text: &[u8], mut at: usize) -> usize {
    while let Some(byte) = text.get(at) {
        at += match byte {
            b'\\' => match escaped_character(text, at) {
                Some(length) => length,
                None => return at,
            },
            byte if is_end(*byte) => return at,
            _ => 1,
        };
    }
    at
}

/// The length of a character code such as `\u00e4`; `None` if there is no code, or if its character ends the authority.
fn escaped_character(text: &[u8], at: usize) -> Option<usize> {
    let code = at + backslashes(text, at);
    let digits = text.get(code + 1..code + 5)?;
    if text.get(code) != Some(&b'u') {
        return None;
    }
    let number = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    let ends = u8::try_from(number).is_ok_and(is_end);
    (!ends).then_some(code + 5 - at)
}

fn is_end(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`')
}

/// The position of the last `@` before a host. The `@` before the digest of a container image does not count.
fn last_at_sign(authority: &[u8]) -> Option<usize> {
    let is_before_host = |at: &usize| {
        let host = authority.get(at + 1..).unwrap_or_default();
        let begins = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'[' | b'$' | b'{' | b'\\' | 0x80..)
        };
        host.first().is_some_and(begins) && !host.starts_with(b"sha256:")
    };
    memchr::memrchr_iter(b'@', authority).find(is_before_host)
}

/// Whether the byte cannot be in a user name or a token. Such a byte separates a URL from an e-mail address after it.
fn is_of_sentence(byte: &u8) -> bool {
    matches!(byte, b'(' | b')' | b'[' | b']' | b',')
}

fn is_token(user: &[u8]) -> bool {
    let is_one = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    user.len() >= TOKEN && user.iter().all(is_one) && user.iter().any(u8::is_ascii_digit)
}

fn is_http(text: &[u8]) -> bool {
    let ends_with = |scheme: &[u8]| {
        let start = text.len().checked_sub(scheme.len());
        let end = start.and_then(|start| text.get(start..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(scheme))
    };
    ends_with(b"http") || ends_with(b"https")
}

/// Whether a secret is a variable of a template, or consists of stars.
fn is_placeholder(secret: &[u8]) -> bool {
    let starts = [&b"${"[..], b"{", b"$(", b"[redacted:"];
    let is_name = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let is_variable = |name: &[u8]| !name.is_empty() && name.iter().all(is_name);
    starts.iter().any(|start| secret.starts_with(start))
        || secret.strip_prefix(b"$").is_some_and(is_variable)
        || secret.iter().all(|byte| *byte == b'*')
}
