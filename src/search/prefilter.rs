//! Which stored lines cannot match, told by their bytes alone.
//!
//! Exact in one direction: a line that is passed over does not match. A line holds text as JSON writes it,
//! where any character may be an escape; so a needle is looked for by a run of characters that stand in a
//! literal as they read, and a line with escapes that stand for such characters is never passed over.

use super::fold::FOLDED_TO_ASCII;
use aho_corasick::{AhoCorasick, packed};
use memchr::memmem::Finder;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Seq};
use std::sync::LazyLock;

/// By what lines are told for one needle.
#[derive(Debug)]
pub struct Prefilter(Option<Search>);

#[derive(Debug)]
struct Search {
    how: How,
    /// Whether letters outside of ASCII may be folded to what is looked for.
    is_folded: bool,
}

#[derive(Debug)]
enum How {
    One(Finder<'static>),
    Packed(packed::Searcher),
    Any(AhoCorasick),
}

/// Bytes of a word by which it is looked for: in all cases these may have, they are as many patterns
/// as the quickest search takes.
const WINDOW: usize = 3;
/// Fewer bytes occur nearly everywhere.
const SHORTEST: usize = 2;

static FOLDED: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
    let texts = FOLDED_TO_ASCII.iter().map(char::to_string);
    texts.map(|text| Finder::new(&text).into_owned()).collect()
});

impl Prefilter {
    /// Of a word, folded.
    pub fn folded(word: &[u8]) -> Self {
        let is_plain = |byte: &u8| byte.is_ascii() && is_unescaped(char::from(*byte));
        let windows = (SHORTEST..=WINDOW).rev().find_map(|len| {
            let windows = word
                .windows(len)
                .filter(|window| window.iter().all(is_plain));
            windows.min_by_key(|window| window.iter().map(|byte| commonness(*byte)).sum::<u32>())
        });
        let search = windows.and_then(|window| {
            let how = How::of(&cases(window))?;
            Some(Search {
                how,
                is_folded: true,
            })
        });
        Self(search)
    }

    /// Of a text as it stands.
    pub fn literal(text: &str) -> Self {
        Self::any_of(longest_run(text.as_bytes()).into_iter().collect())
    }

    /// Of a valid pattern: what each match begins or ends with, if that can be told.
    pub fn pattern(pattern: &str) -> Self {
        let parser = regex_syntax::ParserBuilder::new().multi_line(true).build();
        let Ok(hir) = { parser }.parse(pattern) else {
            return Self(None);
        };
        let runs = |seq: Seq| {
            let literals = seq.literals()?.iter();
            let runs = literals.map(|literal| longest_run(literal.as_bytes()));
            runs.collect::<Option<Vec<_>>>()
                .filter(|runs| !runs.is_empty())
        };
        let mut extractor = Extractor::new();
        let prefixes = runs(extractor.extract(&hir));
        let either = prefixes.or_else(|| runs(extractor.kind(ExtractKind::Suffix).extract(&hir)));
        Self::any_of(either.unwrap_or_default())
    }

    fn any_of(runs: Vec<Vec<u8>>) -> Self {
        Self(How::of(&runs).map(|how| Search {
            how,
            is_folded: false,
        }))
    }

    /// Whether the needle may be in the text of this line.
    pub fn passes(&self, line: &[u8]) -> bool {
        let Some(search) = &self.0 else { return true };
        search.how.finds(line)
            || has_plain_escape(line)
            || (search.is_folded && !line.is_ascii() && has_folded(line))
    }
}

impl How {
    fn of(patterns: &[Vec<u8>]) -> Option<Self> {
        match patterns {
            [] => None,
            [one] => Some(Self::One(Finder::new(one).into_owned())),
            several => match packed::Searcher::new(several) {
                Some(packed) => Some(Self::Packed(packed)),
                None => AhoCorasick::new(several).ok().map(Self::Any),
            },
        }
    }

    fn finds(&self, line: &[u8]) -> bool {
        match self {
            Self::One(finder) => finder.find(line).is_some(),
            Self::Packed(searcher) => searcher.find(line).is_some(),
            Self::Any(searcher) => searcher.is_match(line),
        }
    }
}

/// Whether a character stands in a literal as it reads, unless it is written as `\u…`.
fn is_unescaped(char: char) -> bool {
    !matches!(
        char,
        '"' | '\\' | '/' | '\u{7f}' | char::REPLACEMENT_CHARACTER
    ) && !char.is_control()
}

/// The longest run of characters in a text that stand in a literal as they read; `None` if it is too
/// short to tell by.
fn longest_run(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.utf8_chunks().map(|chunk| chunk.valid());
    let runs = text.flat_map(|valid| valid.split(|char| !is_unescaped(char)));
    let longest = runs.max_by_key(|run| run.len())?;
    (longest.len() >= SHORTEST).then(|| longest.as_bytes().to_vec())
}

/// All that a folded text of ASCII may be in upper and lower case.
fn cases(folded: &[u8]) -> Vec<Vec<u8>> {
    let mut cases = vec![Vec::new()];
    for byte in folded {
        let upper = byte.to_ascii_uppercase();
        let uppers = (upper != *byte).then(|| {
            let with = |case: &Vec<u8>| [case.as_slice(), &[upper]].concat();
            cases.iter().map(with).collect::<Vec<_>>()
        });
        cases.iter_mut().for_each(|case| case.push(*byte));
        cases.extend(uppers.into_iter().flatten());
    }
    cases
}

/// How common a byte is in what agents write, roughly.
fn commonness(byte: u8) -> u32 {
    const ORDER: &[u8] = b"zqxjkvbpygwfmuclhdrsianot e";
    match ORDER.iter().position(|common| *common == byte) {
        Some(at) => at as u32 + 2,
        None => 1,
    }
}

/// Whether the line has an escape of four digits that stands for anything but a control character, as
/// nearly all of them do.
fn has_plain_escape(line: &[u8]) -> bool {
    static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br"\u"));
    ESCAPE.find_iter(line).any(|at| {
        let digits = line.get(at + 2..at + 6).unwrap_or_default();
        !matches!(digits, [b'0', b'0', b'0' | b'1', _])
    })
}

fn has_folded(line: &[u8]) -> bool {
    FOLDED.iter().any(|folded| folded.find(line).is_some())
}
