//! Finds the end of the value after a name, and distinguishes a secret from a variable, a placeholder or code.

use crate::name::{Gap, Kind};
use crate::phrase;
use std::ops::Range;

/// The most bytes of a value in quotes.
const LONGEST: usize = 4096;

/// The number of bytes of a value without quotes that decide whether it is a secret.
const JUDGED: usize = 256;

/// Values that replace a secret, or name its kind.
const PLACEHOLDERS: &[&str] = &[
    "changeme",
    "default",
    "disabled",
    "dummy",
    "empty",
    "enabled",
    "example",
    "fake",
    "false",
    "hidden",
    "insert",
    "invalid",
    "masked",
    "missing",
    "none",
    "null",
    "optional",
    "password",
    "passwd",
    "placeholder",
    "provided",
    "redacted",
    "replace",
    "required",
    "sample",
    "secret",
    "string",
    "todo",
    "token",
    "true",
    "undefined",
    "unset",
    "value",
    "your",
];

/// The value after a name.
#[derive(Debug)]
pub(crate) struct Value<'t> {
    pub shown: &'t [u8],
    /// The bytes of the value in the text.
    pub span: Range<usize>,
    pub is_quoted: bool,
    /// Whether the value follows `=` without blanks.
    pub is_tight: bool,
    /// Whether the value follows the `=` of a constant without blanks.
    pub is_attached: bool,
    /// Whether a bracket follows, as after the name of a function.
    pub is_called: bool,
    /// Whether the value is surrounded by code that rarely surrounds a secret without quotes.
    pub is_of_code: bool,
    /// Whether the value is in quotes after a sign, so that it may be a phrase of several words.
    pub may_have_blanks: bool,
    /// The number of bytes after `shown` that belong to the value, but do not decide whether it is a secret.
    pub rest: usize,
}

/// The value after a gap.
pub(crate) fn at<'t>(text: &'t [u8], gap: Gap) -> Option<Value<'t>> {
    let rest = text.get(gap.end..text.len().min(gap.end + LONGEST))?;
    let escapes = rest.iter().take_while(|byte| **byte == b'\\').count();
    let quote = rest
        .get(escapes)
        .copied()
        .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let value = |start: usize, length: usize, is_quoted: bool, more: usize| {
        let span = gap.end + start..gap.end + start + length;
        Some(Value {
            shown: text.get(span.clone())?,
            is_quoted,
            is_tight: gap.is_tight,
            is_attached: gap.is_attached,
            is_called: !is_quoted && matches!(text.get(span.end), Some(b'(' | b'[' | b'{')),
            is_of_code: !is_quoted
                && match text.get(span.end) {
                    Some(b'(' | b'[' | b'{') => true,
                    Some(b',' | b')') => !gap.is_attached,
                    Some(b';') => !gap.is_tight,
                    _ => gap.is_spaced,
                },
            may_have_blanks: is_quoted && !gap.needs_quotes && !gap.is_element,
            rest: more,
            span,
        })
    };
    if let Some(quote) = quote {
        let start = escapes + 1;
        let length = quoted(rest.get(start..)?, quote, escapes)?;
        return value(start, length, true, 0);
    }
    if gap.needs_quotes || escapes > 0 {
        return None;
    }
    if gap.is_element {
        let length = rest.iter().position(|byte| matches!(byte, b'<' | b'\n'))?;
        return value(0, length, rest.get(length) == Some(&b'<'), 0);
    }
    let length = plain_length(rest, gap);
    // A full stop or a colon at the end ends a sentence.
    let shown = rest.get(..length)?;
    let trimmed = shown.trim_ascii_end().len();
    let end = shown
        .get(..trimmed)?
        .iter()
        .rev()
        .take_while(|byte| matches!(byte, b'.' | b':' | b'!' | b'?'));
    let end = trimmed - end.count();
    let end = if gap.is_attached { length } else { end };
    // If a password ends with such marks, all of them are replaced.
    let marks = rest.get(end..length).unwrap_or_default().iter();
    let marks = marks.take_while(|byte| matches!(byte, b'!' | b'?') && !gap.is_of_url);
    value(0, end, false, marks.count())
}

/// The length of the judged part of a value without quotes.
fn plain_length(rest: &[u8], gap: Gap) -> usize {
    let judged = rest.get(..JUDGED).unwrap_or(rest);
    let mut at = 0;
    while let Some(byte) = judged.get(at) {
        let behind = judged.get(at + 1..).unwrap_or_default();
        let is_inside = match byte {
            _ if gap.is_of_url => false,
            // A `#` begins a comment only after a blank.
            b'#' => gap.is_tight && (at > 0 || gap.is_attached),
            b',' | b'&' => gap.is_attached && continues(behind),
            _ => false,
        };
        if ends(*byte) && !is_inside {
            break;
        }
        at += 1;
    }
    at
}

/// Whether a value continues after a comma or `&`: no other assignment and no character code (`&quot;`) follows.
fn continues(behind: &[u8]) -> bool {
    let is_of_name =
        |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'#');
    let name = behind.iter().take_while(is_of_name).count();
    let begins = behind.first().is_some_and(|byte| !ends(*byte));
    begins && !matches!(behind.get(name), Some(b'=' | b':' | b';'))
}

/// The length of a quoted value on one line. Quotes inside the value have more backslashes.
fn quoted(rest: &[u8], quote: u8, escapes: usize) -> Option<usize> {
    let mut before = 0;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'\n' => return None,
            b'\\' => before += 1,
            byte => {
                if *byte == quote && before <= escapes {
                    return Some(at - before);
                }
                before = 0;
            }
        }
    }
    None
}

/// Whether a byte ends a value without quotes.
fn ends(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(
            byte,
            b'"' | b'\'' | b'`' | b'\\' | b',' | b';' | b'&' | b'|' | b'<' | b'>'
        )
        || matches!(byte, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'#')
}

impl Value<'_> {
    /// The range of the whole value in the text, also the bytes after the judged part.
    pub(crate) fn whole(&self, text: &[u8]) -> Range<usize> {
        let rest = text.get(self.span.end..).unwrap_or_default();
        let is_cut = !self.is_quoted && self.span.len() == JUDGED;
        let more = rest.iter().take_while(|byte| is_cut && !ends(**byte));
        self.span.start..self.span.end + self.rest + more.count()
    }

    /// Whether the value is a secret of this kind.
    pub(crate) fn is_secret(&self, kind: Kind) -> bool {
        let Ok(shown) = std::str::from_utf8(self.shown) else {
            return false;
        };
        let least = match kind {
            Kind::Password => 4,
            _ => 8,
        };
        if kind == Kind::Password && self.may_have_blanks && shown.contains(' ') {
            return phrase::is_secret(shown);
        }
        if shown.len() < least || is_placeholder(shown) || is_path(shown) {
            return false;
        }
        if kind == Kind::Auth {
            return (self.is_quoted || self.is_tight) && is_user_and_password(self.shown);
        }
        let marks = Marks::of(shown);
        if marks.blanks > 0 || marks.distinct < 4 {
            return false;
        }
        if !self.is_quoted && !self.is_attached && self.is_code(shown, &marks) {
            return false;
        }
        match kind {
            Kind::Password => self.is_password(shown, &marks),
            _ => marks.is_random(),
        }
    }

    /// Whether a value without quotes is code: a name, a member or a call.
    fn is_code(&self, shown: &str, marks: &Marks) -> bool {
        let is_member = shown
            .split(['.', ':'])
            .all(|part| is_identifier(part.trim_end_matches('?')));
        let is_name = shown.contains(['.', '_', ':']) && is_member && marks.digits < 4;
        let is_word = is_identifier(shown) && marks.digits < 2 && marks.turns < 6;
        let is_plain = is_identifier(shown) && self.is_of_code && marks.digits == 0
            || is_word && (self.is_of_code && !has_ending_digits(shown) || marks.digits == 0);
        let is_number = marks.letters == 0 && marks.symbols == 0 && marks.digits < 6;
        is_member && self.is_called
            || is_name && !self.is_tight
            || is_plain
            || is_number
            || shown.contains("->")
    }

    fn is_password(&self, shown: &str, marks: &Marks) -> bool {
        if marks.digits > 0 || marks.symbols > 0 {
            return true;
        }
        // A value of letters only may be a capitalized word of a form, or a name in source code.
        let is_word = shown.bytes().skip(1).all(|byte| !byte.is_ascii_uppercase());
        let is_label = is_word && shown.starts_with(|first: char| first.is_ascii_uppercase());
        self.is_attached && marks.letters >= 4
            || self.is_quoted && marks.letters >= 6 && !is_label && marks.joints == 0
    }
}

/// Counts of the characters of a value.
struct Marks {
    letters: usize,
    digits: usize,
    /// Changes between capitals and small letters.
    turns: usize,
    /// The characters `_`, `-` and `.`, which names have too.
    joints: usize,
    symbols: usize,
    blanks: usize,
    distinct: usize,
}

impl Marks {
    fn of(shown: &str) -> Self {
        let count = |is_one: fn(&u8) -> bool| shown.bytes().filter(is_one).count();
        let mut seen = [false; 256];
        for byte in shown.bytes() {
            if let Some(seen) = seen.get_mut(usize::from(byte)) {
                *seen = true;
            }
        }
        let letters: Vec<bool> = shown
            .bytes()
            .filter(u8::is_ascii_alphabetic)
            .map(|byte| byte.is_ascii_uppercase())
            .collect();
        Self {
            letters: letters.len(),
            digits: count(u8::is_ascii_digit),
            turns: letters
                .windows(2)
                .filter(|pair| pair.first() != pair.last())
                .count(),
            joints: count(|byte| matches!(byte, b'_' | b'-' | b'.')),
            symbols: count(|byte| {
                byte.is_ascii_punctuation() && !matches!(byte, b'_' | b'-' | b'.')
            }),
            blanks: count(u8::is_ascii_whitespace),
            distinct: seen.iter().filter(|seen| **seen).count(),
        }
    }

    /// Whether the characters look like a token: digits among letters, or letters of changing case. Words joined by
    /// hyphens do not look like a token.
    fn is_random(&self) -> bool {
        let size = self.letters + self.digits + self.joints + self.symbols;
        // Many digits may follow the point of a measured number: `55.749067000000004`.
        let is_number = self.letters == 0 && self.symbols == 0 && (size < 16 || self.joints == 1);
        match self.digits {
            0 => self.distinct >= 8 && size >= 16 && self.turns >= size / 4,
            1 => self.distinct >= 6 && (size >= 12 && self.joints * 6 <= size || self.symbols > 1),
            _ => self.distinct >= 5 && !is_number,
        }
    }
}

/// Whether a value is a variable, a template, or a word that stands for a secret.
fn is_placeholder(shown: &str) -> bool {
    let starts = [
        "$", "{", "<", "%", "(", "[", "*", "@{", "#{", "&", "!", "...", "…", "env:", "op://",
        "vault:", "file:", "arn:",
    ];
    let is_variable = starts.iter().any(|start| shown.starts_with(start)) && !is_escaped(shown);
    let has_template = ["${", "{{", "<your", "$(", "%s", "[redacted"]
        .iter()
        .any(|part| shown.contains(part));
    let lower = shown.to_ascii_lowercase();
    let is_filler = |part: &str| {
        part.bytes()
            .all(|byte| matches!(byte, b'x' | b'*' | b'.' | b'0' | b'-' | b'_' | b'?'))
    };
    let words = || lower.split(|char: char| !char.is_ascii_alphanumeric());
    let says = words().any(|word| is_stand_in(word) || word == "my");
    let ends_filled = lower.ends_with("xxxx")
        || lower.ends_with("...")
        || lower.ends_with('…')
        || lower.contains("xxxxx");
    let counts = lower.ends_with("1234567890") && lower.len() < 24 && lower.starts_with("abc");
    is_variable
        || has_template
        || is_filler(&lower)
        || ends_filled
        || counts
        || says && !has_long_part(&lower)
}

/// Whether a word stands for a secret. If digits follow, `password` may be a secret: `password123`.
fn is_stand_in(word: &str) -> bool {
    let plain = word.trim_end_matches(|char: char| char.is_ascii_digit());
    let is_weak = matches!(plain, "password" | "passwd" | "secret" | "token");
    PLACEHOLDERS.contains(&if is_weak { word } else { plain })
}

/// Whether a value that begins like a variable is a password after all: `$2b$10$…`, `!Pa55word`.
fn is_escaped(shown: &str) -> bool {
    let rest = shown.get(1..).unwrap_or_default();
    match shown.as_bytes() {
        [b'$', next, ..] => next.is_ascii_digit(),
        [b'!' | b'%' | b'&' | b'*' | b'(' | b'[', ..] => {
            let marks = Marks::of(rest);
            marks.digits > 0
                && marks.letters > 0
                && marks.distinct >= 6
                && !rest.ends_with(['%', ')', ']', '}'])
        }
        _ => false,
    }
}

/// Whether a value has a part that is so long that the value must be a token.
fn has_long_part(lower: &str) -> bool {
    let mut parts = lower.split(|char: char| !char.is_ascii_alphanumeric());
    parts.any(|part| part.len() >= 20 && part.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Whether a value is a path or a URL. Other rules find the secrets in these.
fn is_path(shown: &str) -> bool {
    let starts = ["/", "./", "../", "~/", "http://", "https://", "urn:"];
    starts.iter().any(|start| shown.starts_with(start)) && !shown.ends_with('=')
        || shown.contains("://")
}

fn is_identifier(part: &str) -> bool {
    let mut bytes = part.bytes();
    let begins = |first: u8| first.is_ascii_alphabetic() || first == b'_';
    bytes.next().is_some_and(begins)
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether the value is five or more small letters and then only digits, as in `hunter2`. Names in source code rarely
/// have this form.
fn has_ending_digits(shown: &str) -> bool {
    let letters = shown.bytes().take_while(u8::is_ascii_lowercase).count();
    let rest = shown.get(letters..).unwrap_or_default();
    letters >= 5 && !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the text is the base64 of a user name, a colon and a password.
fn is_user_and_password(text: &[u8]) -> bool {
    let mut bits: u32 = 0;
    let mut held = 0;
    let mut colon = false;
    for byte in text.iter().take_while(|byte| **byte != b'=') {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return false,
        };
        bits = (bits << 6 | u32::from(digit)) & 0xffff;
        held += 6;
        if held >= 8 {
            held -= 8;
            let char = (bits >> held) & 0xff;
            if !(0x20..0x7f).contains(&char) {
                return false;
            }
            colon |= char == u32::from(b':');
        }
    }
    colon
}
