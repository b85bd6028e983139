//! A query as clients write it.

use super::fold::{folded_text, push_folded};
use super::prefilter::{Prefilter, pattern_literals};
use memchr::memmem::Finder;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// How to understand a query.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "SearchMode"))]
pub enum Mode {
    /// All words occur in the entry, whatever their case; `"…"` is one word.
    #[default]
    Words,
    /// The text occurs in one field of the entry exactly.
    Literal,
    /// The regular expression matches in one field; `^` and `$` match at line ends.
    Regex,
}

/// Most words of a query.
const MOST_WORDS: usize = 64;
/// The most bytes of a pattern. Compiling a longer pattern would take seconds before it turns out to be too large.
const LONGEST_PATTERN: usize = 64 << 10;
/// Most bytes of a compiled pattern.
const LARGEST_PATTERN: usize = 1 << 20;
/// Most levels of groups in a pattern.
const DEEPEST_PATTERN: u32 = 100;

#[derive(Debug)]
pub struct Query {
    pub(super) needles: Needles,
    /// The prefilter of each needle.
    pub(super) prefilters: Vec<Prefilter>,
    /// Returns the text of a field that the reader sees; `None` if the reader sees all fields whole. Only this text is
    /// compared.
    shown: Option<ShownText>,
}

/// Returns the text that a reader sees of a field; `None` if the reader sees all of it.
#[derive(Clone)]
pub struct ShownText(pub Arc<ShowText>);

type ShowText = dyn Fn(&str) -> Option<String> + Send + Sync;

impl fmt::Debug for ShownText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShownText")
    }
}

#[derive(Debug)]
pub(super) enum Needles {
    /// The words, in their folded form.
    Words(Vec<Finder<'static>>),
    Literal(Box<Finder<'static>>),
    Regex(Regex),
}

impl Query {
    /// Reads a query; `None` for an empty query, which matches everything. The error explains the fault in `text`.
    pub fn parse(text: &str, mode: Mode) -> Result<Option<Self>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let (needles, prefilters) = match mode {
            Mode::Words => {
                let words = words(text);
                if words.is_empty() {
                    return Ok(None);
                }
                if words.len() > MOST_WORDS {
                    return Err(format!("has more than {MOST_WORDS} words"));
                }
                let finders = words.iter().map(|word| Finder::new(word).into_owned());
                let prefilters = words.iter().map(|word| Prefilter::folded(word));
                (Needles::Words(finders.collect()), prefilters.collect())
            }
            Mode::Literal => {
                let finder = Finder::new(text.as_bytes()).into_owned();
                (
                    Needles::Literal(Box::new(finder)),
                    vec![Prefilter::literal(text)],
                )
            }
            Mode::Regex => {
                return Self::pattern(text).map(Some);
            }
        };
        Ok(Some(Self {
            needles,
            prefilters,
            shown: None,
        }))
    }

    /// A query that matches each entry with text, and marks nothing.
    pub fn any() -> Result<Self, String> {
        Self::pattern("")
    }

    fn pattern(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST_PATTERN {
            return Err(format!("has more than {LONGEST_PATTERN} bytes"));
        }
        let regex = RegexBuilder::new(text)
            .multi_line(true)
            .size_limit(LARGEST_PATTERN)
            .dfa_size_limit(LARGEST_PATTERN)
            .nest_limit(DEEPEST_PATTERN)
            .build();
        let regex = regex.map_err(|error| reason(&error))?;
        Ok(Self {
            needles: Needles::Regex(regex),
            prefilters: vec![Prefilter::pattern(text)],
            shown: None,
        })
    }

    /// Lists of folded texts. Each match has all texts of at least one list. `None` if no such lists are known.
    pub fn required_texts(&self) -> Option<Vec<Vec<String>>> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match &self.needles {
            Needles::Words(words) => {
                Some(vec![words.iter().map(|word| text(word.needle())).collect()])
            }
            Needles::Literal(literal) => Some(vec![vec![folded_text(&text(literal.needle()))]]),
            Needles::Regex(regex) => {
                let literals = pattern_literals(regex.as_str())?;
                // A text that ends within a character cannot be searched as text.
                let texts = literals
                    .into_iter()
                    .map(|literal| String::from_utf8(literal).ok());
                let texts = texts.collect::<Option<Vec<_>>>()?;
                Some(texts.iter().map(|text| vec![folded_text(text)]).collect())
            }
        }
    }

    /// Passes to `each`, in order, each line in `lines` that may have all needles, with its offset.
    pub fn each_candidate<'a>(&self, lines: &'a [u8], mut each: impl FnMut(usize, &'a [u8])) {
        let prefilters = self.prefilters.iter().enumerate();
        let Some((rarest, prefilter)) = prefilters.max_by_key(|(_, prefilter)| prefilter.len())
        else {
            return;
        };
        prefilter.each_passing(lines, |at, line| {
            let mut others = self.prefilters.iter().enumerate();
            if others.all(|(number, other)| number == rarest || other.passes(line)) {
                each(at, line);
            }
        });
    }

    /// Compares only the text that a reader sees, so that a search does not reveal the rest.
    #[must_use]
    pub fn for_reader(self, shown: Option<ShownText>) -> Self {
        Self { shown, ..self }
    }

    pub(super) fn hides_text(&self) -> bool {
        self.shown.is_some()
    }

    /// The text of a field that is compared.
    pub(super) fn shown_of<'t>(&self, field: &'t str) -> Cow<'t, str> {
        let shown = self.shown.as_ref().and_then(|shown| (shown.0)(field));
        shown.map_or(Cow::Borrowed(field), Cow::Owned)
    }

    /// All needles, one bit each.
    pub fn all(&self) -> u64 {
        u64::MAX >> (64 - self.prefilters.len().clamp(1, 64))
    }
}

/// The last line of the message. The lines before it show the pattern with a mark below, which needs line breaks.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => {
            format!("is a pattern of more than {limit} bytes when compiled")
        }
        error => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let last = last.strip_prefix("error: ").unwrap_or(last);
            format!("is not a regular expression: {last}")
        }
    }
}

/// The phrases of a text, each in its quotes.
pub fn quoted(text: &str) -> String {
    let mut phrases = String::new();
    each_word(text, |word, is_phrase| {
        if is_phrase {
            phrases.extend(["\"", word, "\" "]);
        }
        true
    });
    phrases
}

/// The words and phrases of `text`, folded, each once.
fn words(text: &str) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    each_word(text, |word, _| {
        let mut folded = Vec::with_capacity(word.len());
        push_folded(&mut folded, word);
        if !folded.is_empty() && !words.contains(&folded) {
            words.push(folded);
        }
        words.len() <= MOST_WORDS
    });
    words
}

/// Passes each word and each phrase of `text` to `see`, and whether it is a phrase, until `see` returns false. The end
/// of the text also closes a phrase.
fn each_word<'t>(text: &'t str, mut see: impl FnMut(&'t str, bool) -> bool) {
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (phrase, word) = (rest.strip_prefix('"'), rest.split_once(char::is_whitespace));
        let (word, after) = match phrase {
            Some(phrase) => phrase.split_once('"').unwrap_or((phrase, "")),
            None => word.unwrap_or((rest, "")),
        };
        rest = after.trim_start();
        if !see(word, phrase.is_some()) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_phrases_are_quoted() {
        assert_eq!(
            quoted(r#"why "cargo  Test" fails 5" "open end"#),
            "\"cargo  Test\" \"open end\" "
        );
        assert_eq!(quoted("no phrase"), "");
    }

    #[test]
    fn white_space_separates_words_and_quotes_hold_them_together() {
        let check = |text: &str, expected: &[&str]| {
            let words = words(text)
                .into_iter()
                .map(|word| String::from_utf8(word).unwrap());
            assert_eq!(words.collect::<Vec<_>>(), expected, "{text}");
        };
        check("", &[]);
        check(" \t\n", &[]);
        check(" One  TWO one ", &["one", "two"]);
        check(r#"a "b  C" d"#, &["a", "b  c", "d"]);
        check(r#""open end "#, &["open end "]);
        check(r#""" "" x"#, &["x"]);
        check(r#"it's 5"x"#, &["it's", r#"5"x"#]);
        check("/a b/", &["/a", "b/"]);
    }

    #[test]
    fn an_invalid_query_is_explained() {
        let parse = |text: &str, mode| Query::parse(text, mode).map(|query| query.is_some());
        assert_eq!(parse("(", Mode::Words), Ok(true));
        assert_eq!(parse("(", Mode::Literal), Ok(true));
        let unclosed = Err("is not a regular expression: unclosed group".to_owned());
        assert_eq!(parse("(", Mode::Regex), unclosed);
        let large = parse(r"(\pL{100}){100}", Mode::Regex).unwrap_err();
        assert!(large.starts_with("is a pattern of more than"), "{large}");
        assert!(parse(&"(".repeat(200), Mode::Regex).is_err());
        let words: Vec<_> = (0..=MOST_WORDS).map(|word| word.to_string()).collect();
        assert!(parse(&words.join(" "), Mode::Words).is_err());
        assert_eq!(parse("", Mode::Regex), Ok(false));
        assert_eq!(parse("  ", Mode::Words), Ok(false));
        assert_eq!(parse(" ", Mode::Literal), Ok(true));
    }
}
