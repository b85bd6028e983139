//! Finds the secrets in text, and replaces each by its kind (protocol.md §16). [`unseen`] lists the invisible
//! characters.
//!
//! The crate does no I/O. A filter and one automaton find the literals of all rules, and a pattern is tried only where
//! its literal is. The time is linear in the length of any text.

mod choices;
mod cookies;
mod key_block;
mod literal_filter;
mod name;
mod named;
mod parameters;
mod phrase;
mod rules;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;
pub mod unseen;
mod url;
mod value;
mod values;

/// The example of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use choices::{CHOSEN, Choices, ID_DIGITS, candidates};

use aho_corasick::{AhoCorasick, Anchored, Input, Match, MatchKind, StartKind};
use literal_filter::LiteralFilter;
use named::Names;
use regex::bytes::Regex;
use rules::{Check, End, RULES, Rule, Start};
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
pub use values::{
    KnownValues, MAX_VALUES, MAX_WORDS, VALUE_BYTES, VARIABLE, ValueHash, WORD, WORD_BYTES,
    secret_variables,
};

/// The members of an entry whose strings stay: they are ids, or other entries refer to them.
pub const ID_MEMBERS: [&str; 8] = [
    "id",
    "parentId",
    "targetId",
    "fromId",
    "firstKeptEntryId",
    "toolCallId",
    "sessionId",
    "entryId",
];
/// The members of an entry with JSON of tools and plugins. In this JSON no member is the id of an entry.
pub const FOREIGN_MEMBERS: [&str; 4] = ["arguments", "details", "data", "input"];

/// Replaces secrets, and shortens paths in a home directory.
pub struct Redactor {
    /// `None` if secrets are not replaced.
    searcher: Option<SecretSearcher>,
    values: KnownValues,
    choices: Choices,
    home: Option<HomePath>,
}

struct SecretSearcher {
    filter: LiteralFilter,
    literals: AhoCorasick,
    of_literal: Vec<OfLiteral>,
    /// The pattern of each of the [`RULES`].
    patterns: Vec<Regex>,
    names: Names,
}

/// Where one literal occurs in the definitions of secrets.
#[derive(Default)]
struct OfLiteral {
    /// The numbers of the rules that have the literal.
    rules: Vec<usize>,
    /// Whether the literal is a part of names of secrets.
    is_of_name: bool,
}

struct HomePath {
    path: String,
    finder: memchr::memmem::Finder<'static>,
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Secret {
    kind: &'static str,
    span: Range<usize>,
}

/// Is called with the kind and the text of each secret that is replaced.
pub type Report<'r> = &'r mut dyn FnMut(&'static str, &str);

/// A regular expression of the rules cannot be compiled, which is a defect of this crate.
#[derive(Debug)]
pub struct InvalidRules(String);

impl fmt::Display for InvalidRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rules of secrets are invalid: {}", self.0)
    }
}

impl std::error::Error for InvalidRules {}

impl Redactor {
    /// Makes a redactor. It replaces secrets if `redacts` is true, and shortens paths in `home`, if it is given, to
    /// `~`.
    pub fn new(redacts: bool, home: Option<&str>) -> Result<Self, InvalidRules> {
        let home = home.map(|home| home.trim_end_matches('/'));
        let searcher = redacts.then(SecretSearcher::new).transpose()?;
        Ok(Self {
            searcher,
            values: KnownValues::default(),
            choices: Choices::default(),
            home: home.filter(|home| home.len() > 1).map(|home| HomePath {
                path: home.to_owned(),
                finder: memchr::memmem::Finder::new(home).into_owned(),
            }),
        })
    }

    /// The redactor that also treats these values and words as secrets, if it replaces secrets.
    #[must_use]
    pub fn with_values(self, values: KnownValues) -> Self {
        Self { values, ..self }
    }

    /// The redactor that follows these decisions about single secrets, if it replaces secrets.
    #[must_use]
    pub fn with_choices(self, choices: Choices) -> Self {
        Self { choices, ..self }
    }

    /// Whether the redactor changes no text.
    pub fn keeps_text(&self) -> bool {
        self.searcher.is_none() && self.home.is_none()
    }

    /// The text with its secrets replaced.
    pub fn text<'t>(&self, text: &'t str, report: Report<'_>) -> Cow<'t, str> {
        let mut out = String::new();
        let mut done = 0;
        for (kind, span) in self.secrets(text) {
            out.push_str(text.get(done..span.start).unwrap_or_default());
            out.push_str(&mark(kind));
            report(kind, text.get(span.clone()).unwrap_or_default());
            done = span.end;
        }
        let redacted = match done {
            0 => Cow::Borrowed(text),
            _ => {
                out.push_str(text.get(done..).unwrap_or_default());
                Cow::Owned(out)
            }
        };
        match &self.home {
            Some(home) => home.shorten(redacted),
            None => redacted,
        }
    }

    /// The secrets of a text in their order: the kind of each, and its bytes. Empty if the redactor does not replace
    /// secrets.
    pub fn secrets<'t>(
        &'t self,
        text: &'t str,
    ) -> impl Iterator<Item = (&'static str, Range<usize>)> + 't {
        let bytes = text.as_bytes();
        let mut next = [const { NextSecret::Stale }; 4];
        let mut done = 0;
        std::iter::from_fn(move || {
            let searcher = self.searcher.as_ref()?;
            loop {
                let [formed, value, word, chosen] = &mut next;
                let formed = formed.behind(done, || searcher.next(bytes, done, done));
                let value = value.behind(done, || self.values.value(bytes, done));
                let word = word.behind(done, || self.values.word(bytes, done));
                let chosen = chosen.behind(done, || self.choices.next(text, done));
                let secret = first_of(first_of(formed, value), first_of(word, chosen))?;
                done = secret.span.end;
                let shown = text.get(secret.span.clone());
                if !shown.is_some_and(|shown| self.choices.keeps(shown)) {
                    return Some((secret.kind, secret.span));
                }
            }
        })
    }

    /// The kind of secret that a member of JSON has as its value, by the name of the member; `None` if the name does
    /// not mean a secret. If the form of the value shows a secret, [`text`](Self::text) finds this secret with its own
    /// kind.
    pub fn member(&self, name: &str, value: &str) -> Option<&'static str> {
        let kind = self.searcher.as_ref()?.names.kind(name)?;
        let is_secret = named::is_secret_member(kind, value) && !self.choices.keeps(value);
        is_secret.then(|| kind.name())
    }

    /// Whether any string in this raw JSON may change. Reads every byte once. JSON for which this is false need not be
    /// parsed.
    pub fn may_change(&self, json: &[u8]) -> bool {
        let has_secret = |searcher: &SecretSearcher| {
            has_escaped_text(json)
                || searcher.may_match(json)
                || has_secret_flag(searcher, json)
                || self.values.may_match(json)
                || !self.choices.replaced.is_empty()
        };
        self.searcher.as_ref().is_some_and(has_secret)
            || self
                .home
                .as_ref()
                .is_some_and(|home| has_escaped_text(json) || home.finder.find(json).is_some())
    }
}

/// The next secret of one search. The secret is kept until the other searches have passed its beginning. So each search
/// reads the text once.
enum NextSecret {
    Stale,
    Found(Option<Secret>),
}

impl NextSecret {
    /// The first secret that begins at or after `done`.
    fn behind(&mut self, done: usize, find: impl FnOnce() -> Option<Secret>) -> Option<Secret> {
        let is_stale = match self {
            Self::Stale => true,
            Self::Found(found) => found
                .as_ref()
                .is_some_and(|secret| secret.span.start < done),
        };
        if is_stale {
            *self = Self::Found(find());
        }
        match self {
            Self::Found(found) => found.clone(),
            Self::Stale => None,
        }
    }
}

/// The first of two secrets. Two secrets that overlap become one, of the kind of the first argument.
fn first_of(one: Option<Secret>, other: Option<Secret>) -> Option<Secret> {
    let (Some(one), Some(other)) = (&one, &other) else {
        return one.or(other);
    };
    if one.span.end <= other.span.start {
        return Some(one.clone());
    }
    if other.span.end <= one.span.start {
        return Some(other.clone());
    }
    Some(Secret {
        kind: one.kind,
        span: one.span.start.min(other.span.start)..one.span.end.max(other.span.end),
    })
}

/// The length of the longest recognized flag in bytes, with its dashes and the quote after it.
const LONGEST_FLAG: usize = 128;

/// The name of a flag that is a separate argument, as in `["--password", "…"]`, where the next argument is its value.
/// `None` for other arguments.
pub fn flag(argument: &str) -> Option<&str> {
    let name = argument.strip_prefix("--")?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

/// The text that replaces a secret of this kind.
pub fn mark(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

/// Whether raw JSON has a string that is a flag whose value is secret.
fn has_secret_flag(searcher: &SecretSearcher, json: &[u8]) -> bool {
    memchr::memmem::find_iter(json, b"\"--").any(|quote| {
        let rest = json.get(quote + 1..).unwrap_or_default();
        let rest = rest.get(..LONGEST_FLAG).unwrap_or(rest);
        let end = memchr::memchr(b'"', rest).unwrap_or_default();
        let argument = rest
            .get(..end)
            .and_then(|text| std::str::from_utf8(text).ok());
        let name = argument.and_then(flag);
        name.is_some_and(|name| searcher.names.kind(name).is_some())
    })
}

/// Whether raw JSON has an escape of a printable ASCII character. A search in the bytes of such JSON may miss text.
fn has_escaped_text(json: &[u8]) -> bool {
    let mut rest = json;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        match rest.get(at + 1..) {
            Some([b'u', b'0', b'0', b'2'..=b'7', ..] | [b'/', ..]) => return true,
            Some([_, after @ ..]) => rest = after,
            _ => return false,
        }
    }
    false
}

impl HomePath {
    fn shorten<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        let mut out = String::new();
        let mut done = 0;
        for at in self.finder.find_iter(text.as_bytes()) {
            let end = at + self.path.len();
            // The path `/home/ada` must not be found in `/mnt/home/ada` or `/home/adam`, and `/root` not in `~/root`.
            let head = text.as_bytes().get(..at).unwrap_or_default();
            let rest = text.as_bytes().get(end..).unwrap_or_default();
            if head.last().is_some_and(|byte| ends_path(*byte)) || continues_name(rest) {
                continue;
            }
            out.push_str(text.get(done..at).unwrap_or_default());
            out.push('~');
            done = end;
        }
        if done == 0 {
            return text;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }
}

/// Whether a slash after this byte is in the middle of a path. A path may begin with a variable.
fn ends_path(byte: u8) -> bool {
    is_name_byte(byte) || matches!(byte, b'~' | b'.' | b'}' | b')' | b'*')
}

/// Whether a name continues at the start of `text`. A full stop may also end a sentence.
fn continues_name(text: &[u8]) -> bool {
    match text {
        [b'.', next, ..] | [next, ..] => is_name_byte(*next),
        [] => false,
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | 0x80..)
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_token_byte(byte: u8) -> bool {
    is_word_byte(byte) || byte == b'-'
}

impl SecretSearcher {
    fn new() -> Result<Self, InvalidRules> {
        let mut literals: Vec<String> = Vec::new();
        let mut of_literal: Vec<OfLiteral> = Vec::new();
        let of_rules = RULES.iter().enumerate().flat_map(|(number, rule)| {
            let literals = rule.literals.iter();
            literals.map(move |literal| ((*literal).to_owned(), Some(number)))
        });
        let of_names = Names::literals().into_iter().map(|literal| (literal, None));
        for (literal, rule) in of_rules.chain(of_names) {
            let known = literals.iter().position(|known| *known == literal);
            let at = known.unwrap_or(literals.len());
            if known.is_none() {
                literals.push(literal);
                of_literal.push(OfLiteral::default());
            }
            if let Some(entry) = of_literal.get_mut(at) {
                entry.rules.extend(rule);
                entry.is_of_name |= rule.is_none();
            }
        }
        let patterns = RULES.iter().map(|rule| {
            let pattern = format!("^(?:{})", rule.pattern);
            let built = regex::bytes::RegexBuilder::new(&pattern)
                .unicode(false)
                .build();
            built.map_err(|error| InvalidRules(error.to_string()))
        });
        let searcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .start_kind(StartKind::Anchored)
            .build(&literals);
        Ok(Self {
            filter: LiteralFilter::new(&literals),
            literals: searcher.map_err(|error| InvalidRules(error.to_string()))?,
            of_literal,
            patterns: patterns.collect::<Result<_, _>>()?,
            names: Names::new(),
        })
    }

    /// The first secret at or after `at`. It does not begin before `done`.
    fn next(&self, text: &[u8], mut at: usize, done: usize) -> Option<Secret> {
        loop {
            let hit = self.literal(text, at)?;
            let of_literal = self.of_literal.get(hit.pattern().as_usize())?;
            let formed = self.formed(of_literal, text, hit.start(), done);
            let secret = formed.or_else(|| {
                let is_named = of_literal.is_of_name;
                is_named
                    .then(|| self.named(text, hit.start(), done))
                    .flatten()
            });
            if secret.is_some() {
                return secret;
            }
            // Other literals may begin inside this one.
            at = hit.start() + 1;
        }
    }

    /// The secret that is recognized by its form and whose literal is at `at`.
    fn formed(&self, literal: &OfLiteral, text: &[u8], at: usize, done: usize) -> Option<Secret> {
        let mut rules = literal.rules.iter();
        rules.find_map(|number| self.secret(*number, text, at, done))
    }

    /// The secret whose name has a part at `at`. If the form of a secret is known, the form decides its kind.
    fn named(&self, text: &[u8], at: usize, done: usize) -> Option<Secret> {
        let (kind, span) = self.names.secret(text, at)?;
        let kind = kind.name();
        (span.start >= done && !self.has_form(text, at..span.end)).then_some(Secret { kind, span })
    }

    /// Whether a secret that is recognized by its form begins in this part of a text.
    fn has_form(&self, text: &[u8], part: Range<usize>) -> bool {
        let mut at = part.start;
        while let Some(hit) = self.literal(text, at).filter(|hit| hit.start() < part.end) {
            let literal = self.of_literal.get(hit.pattern().as_usize());
            let formed = literal.and_then(|it| self.formed(it, text, hit.start(), part.start));
            if formed.is_some_and(|secret| secret.span.start < part.end) {
                return true;
            }
            at = hit.start() + 1;
        }
        false
    }

    /// The first literal at or after `at`.
    fn literal(&self, text: &[u8], mut at: usize) -> Option<Match> {
        loop {
            at = self.filter.next(text, at)?;
            let here = Input::new(text).span(at..text.len());
            let found = self.literals.find(here.anchored(Anchored::Yes));
            if found.is_some() {
                return found;
            }
            at += 1;
        }
    }

    /// Whether raw JSON may have a secret. Escapes may be between the parts of a pattern.
    fn may_match(&self, raw: &[u8]) -> bool {
        let mut at = 0;
        while let Some(hit) = self.literal(raw, at) {
            let literal = self.of_literal.get(hit.pattern().as_usize());
            let is_named = |it: &OfLiteral| it.is_of_name && self.names.may_have(raw, hit.start());
            if literal.is_some_and(is_named) {
                return true;
            }
            // JSON escapes spaces, quotes, and the line breaks of keys and commands, so their bytes differ in raw JSON.
            let has_spaces = |rule: &Rule| {
                matches!(rule.check, Check::KeyBlock)
                    || rule.pattern.contains(r"\t")
                    || rule.kind == "password"
            };
            let is_candidate = |number: &usize| match RULES.get(*number) {
                Some(rule) if has_spaces(rule) => true,
                Some(rule) if rule.check == Check::Url => {
                    url::credentials(raw, hit.start(), true).is_some()
                }
                _ => self.secret(*number, raw, hit.start(), 0).is_some(),
            };
            let rules = literal.map(|literal| &literal.rules);
            if rules.into_iter().flatten().any(is_candidate) {
                return true;
            }
            at = hit.start() + 1;
        }
        false
    }

    /// The secret that a rule finds, whose literal is at `at`.
    fn secret(&self, number: usize, text: &[u8], at: usize, done: usize) -> Option<Secret> {
        let rule: &Rule = RULES.get(number)?;
        let start = start_of(rule.start, text, at).filter(|start| *start >= done)?;
        let kind = rule.kind;
        if rule.check == Check::Url {
            let span = url::credentials(text, start, false)?;
            return Some(Secret { kind, span });
        }
        let found = self.patterns.get(number)?.captures(text.get(start..)?)?;
        let secret = found.get(1).or_else(|| found.get(0))?;
        let mut span = start + secret.start()..start + secret.end();
        match rule.end {
            End::Word if text.get(span.end).copied().is_some_and(is_word_byte) => return None,
            End::Run => {
                let rest = text.get(span.end..).unwrap_or_default();
                span.end += rest.iter().take_while(|byte| is_token_byte(**byte)).count();
            }
            End::Word | End::Anywhere => {}
        }
        let shown = text.get(span.clone())?;
        match rule.check {
            Check::Nothing => {}
            Check::Digit if !shown.iter().any(u8::is_ascii_digit) => return None,
            Check::Digit | Check::Url => {}
            Check::Parameters => span.end = parameters::end(text, span.start)?,
            Check::SomeParameters => {
                span.end = parameters::end(text, span.start)?;
                if !parameters::has_secret(text.get(span.clone())?) {
                    return None;
                }
            }
            Check::Cookies => span.end = cookies::end(text, span.start)?,
            Check::KeyBlock => span.end = key_block::end(text, span.clone())?,
        }
        Some(Secret { kind, span })
    }
}

fn start_of(start: Start, text: &[u8], at: usize) -> Option<usize> {
    match start {
        Start::Word => (!is_behind(text, at, is_word_byte)).then_some(at),
        Start::Token => (!is_behind(text, at, is_token_byte)).then_some(at),
        Start::Anywhere => Some(at),
        Start::Before(count) => {
            let start = at.checked_sub(count)?;
            (!is_behind(text, start, is_word_byte)).then_some(start)
        }
        Start::Digits => {
            // Longer numbers are not ids of bots.
            let head = text.get(at.saturating_sub(16)..at)?;
            let digits = head.iter().rev().take_while(|byte| byte.is_ascii_digit());
            let start = at - digits.count();
            (!is_behind(text, start, is_word_byte)).then_some(start)
        }
    }
}

/// Whether the byte before `at` satisfies `is_one` and does not end an escape. Escapes are `\n` and `\u0022` in
/// strings, `%22` in URLs, and colour codes of terminals, also without their first byte.
fn is_behind(text: &[u8], at: usize, is_one: impl Fn(u8) -> bool) -> bool {
    let head = text.get(at.saturating_sub(ESCAPE)..at).unwrap_or_default();
    let Some((last, before)) = head.split_last().filter(|(last, _)| is_one(**last)) else {
        return false;
    };
    let is_control =
        before.last() == Some(&b'\\') && matches!(last, b'n' | b'r' | b't' | b'b' | b'f');
    let numbers = before
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b';');
    let before_numbers = before.get(..before.len() - numbers.count());
    let is_of_terminal =
        last.is_ascii_alphabetic() && before_numbers.is_some_and(|it| it.ends_with(b"["));
    !(is_control || is_of_terminal || ends_with_code(head))
}

/// Whether the text ends with the code of a character: `\u0022`, `\x22` or `%22`.
fn ends_with_code(text: &[u8]) -> bool {
    [(&b"\\u"[..], 4), (b"\\x", 2), (b"%", 2)]
        .iter()
        .any(|(start, digits)| {
            let (code, digits) = text.split_at(text.len().saturating_sub(*digits));
            code.ends_with(start) && digits.iter().all(u8::is_ascii_hexdigit)
        })
}

/// The length of the longest escape in bytes.
const ESCAPE: usize = 32;
