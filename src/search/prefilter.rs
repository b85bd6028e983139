//! Which stored lines cannot match, told by their bytes alone.
//!
//! Exact in one direction: a line that is passed over does not match. A line holds text as JSON writes it,
//! where any character may be an escape; so a needle is looked for by a run of characters that stand in a
//! literal as they read, and a line with escapes that stand for such characters is never passed over.

use super::fold::{FOLDED_TO_ASCII, folded, folded_to};
use aho_corasick::{AhoCorasick, Input, packed};
use memchr::memmem::Finder;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Seq};
use std::sync::LazyLock;

/// By what lines are told for one needle.
#[derive(Debug)]
pub struct Prefilter(Option<Search>);

/// What the bytes of a field say of a needle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It is not in the field.
    No,
    /// The decoded text decides.
    Maybe,
    /// It is in the field.
    Yes,
}

#[derive(Debug)]
struct Search {
    how: How,
    /// What stands around what is found, if that is more.
    run: Option<Run>,
    /// Whether it is the whole needle that is found.
    is_whole: bool,
    /// The other characters that may be folded to a part of what is looked for.
    others: Option<How>,
}

/// A part of a word in ASCII, whose case does not matter.
#[derive(Debug)]
struct Run {
    text: Vec<u8>,
    /// Where in it stands what is looked for first.
    at: usize,
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
/// Such patterns.
const MOST_PATTERNS: usize = 8;
/// Fewer bytes occur nearly everywhere.
const SHORTEST: usize = 2;
/// Bytes of a word that are compared before and behind the window.
const AROUND: usize = 16;
/// Bytes of the longest escape, without its last.
const ESCAPE: usize = 5;

impl Prefilter {
    /// Of a word, folded.
    pub fn folded(word: &[u8]) -> Self {
        let search = Search::ascii(word, WINDOW)
            .or_else(|| Search::beyond_ascii(word))
            .or_else(|| Search::ascii(word, SHORTEST));
        Self(search)
    }

    /// Of a text as it stands.
    pub fn literal(text: &str) -> Self {
        let run = longest_run(text.as_bytes());
        let is_whole = run.as_ref().is_some_and(|run| run.len() == text.len());
        Self::any_of(run.into_iter().collect(), is_whole)
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
        Self::any_of(either.unwrap_or_default(), false)
    }

    fn any_of(runs: Vec<Vec<u8>>, is_whole: bool) -> Self {
        Self(How::of(&runs).map(|how| Search {
            how,
            run: None,
            is_whole,
            others: None,
        }))
    }

    /// Whether the needle may be in the text of this line.
    pub fn passes(&self, line: &[u8]) -> bool {
        let Some(search) = &self.0 else { return true };
        search.next(line, 0).is_some() || search.may_hide(line)
    }

    /// Whether the needle is in this field, which is raw JSON.
    pub fn tell(&self, raw: &[u8]) -> Told {
        let Some(search) = &self.0 else {
            return Told::Maybe;
        };
        let mut from = 0;
        while let Some(at) = search.next(raw, from) {
            // Its first bytes may belong to an escape.
            let before = raw.get(at.saturating_sub(ESCAPE)..at).unwrap_or_default();
            match search.is_whole {
                true if !may_be_in_escape(before) => return Told::Yes,
                true => from = at + 1,
                false => return Told::Maybe,
            }
        }
        match from > 0 || search.may_hide(raw) {
            true => Told::Maybe,
            false => Told::No,
        }
    }
}

impl Search {
    /// By the rarest `len` bytes of ASCII of a word that stand together.
    fn ascii(word: &[u8], len: usize) -> Option<Self> {
        let is_plain = |byte: &u8| byte.is_ascii() && is_unescaped(char::from(*byte));
        let windows = word.windows(len).enumerate();
        let windows = windows.filter(|(_, window)| window.iter().all(is_plain));
        let rarity = |window: &[u8]| window.iter().map(|byte| commonness(*byte)).sum::<u32>();
        let (at, window) = windows.min_by_key(|(_, window)| rarity(window))?;
        let (before, rest) = word.split_at_checked(at)?;
        let behind = rest.get(len..)?;
        let before = before.iter().rev().take(AROUND);
        let before = before.take_while(|byte| is_plain(byte)).count();
        let behind = behind.iter().take(AROUND);
        let behind = behind.take_while(|byte| is_plain(byte)).count();
        let text = word.get(at - before..at + len + behind)?;
        Some(Self {
            how: How::of(&cases(window))?,
            run: (text.len() > len).then(|| Run {
                text: text.to_vec(),
                at: before,
            }),
            is_whole: text.len() == word.len(),
            others: How::of(&folded_into(text)),
        })
    }

    /// By characters outside of ASCII that stand together, in all cases.
    fn beyond_ascii(word: &[u8]) -> Option<Self> {
        let word = str::from_utf8(word).ok()?;
        let is_plain = |char: &char| !char.is_ascii() && is_unescaped(*char);
        let mut best: (usize, Vec<String>) = (0, Vec::new());
        for (start, _) in word.char_indices().filter(|(_, char)| is_plain(char)) {
            let (mut len, mut patterns) = (0, vec![String::new()]);
            let rest = word.get(start..).unwrap_or_default().chars();
            for char in rest.take(AROUND).take_while(is_plain) {
                let from = folded_to(char);
                let is_alone = from.iter().all(|from| folded(*from).count() == 1);
                if !is_alone || patterns.len() * from.len() > MOST_PATTERNS {
                    break;
                }
                let with = |before: &String| {
                    let with = from.iter().map(|char| format!("{before}{char}"));
                    with.collect::<Vec<_>>()
                };
                patterns = patterns.iter().flat_map(with).collect();
                len += char.len_utf8();
            }
            if len > best.0 {
                best = (len, patterns);
            }
        }
        let (len, mut patterns) = best;
        if len == 0 {
            let char = word.chars().find(is_plain)?;
            patterns = folded_to(char).iter().map(char::to_string).collect();
        }
        let patterns: Vec<_> = patterns.into_iter().map(String::into_bytes).collect();
        Some(Self {
            how: How::of(&patterns)?,
            run: None,
            is_whole: len == word.len(),
            others: None,
        })
    }

    /// Where the next one begins, from `from` on.
    fn next(&self, line: &[u8], mut from: usize) -> Option<usize> {
        let Some(run) = &self.run else {
            return self.how.next(line, from);
        };
        // Where a run has begun already, its window stands further behind.
        from += run.at;
        loop {
            let at = self.how.next(line, from)?.checked_sub(run.at)?;
            let text = line.get(at..at + run.text.len());
            if text.is_some_and(|text| text.eq_ignore_ascii_case(&run.text)) {
                return Some(at);
            }
            from = at + run.at + 1;
        }
    }

    /// Whether what is looked for may stand there otherwise than it reads.
    fn may_hide(&self, line: &[u8]) -> bool {
        let has_other = |others: &How| !line.is_ascii() && others.next(line, 0).is_some();
        has_plain_escape(line) || self.others.as_ref().is_some_and(has_other)
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

    /// Where the next match begins, from `from` on.
    fn next(&self, line: &[u8], from: usize) -> Option<usize> {
        match self {
            Self::One(finder) => Some(from + finder.find(line.get(from..)?)?),
            Self::Packed(searcher) => Some(from + searcher.find(line.get(from..)?)?.start()),
            Self::Any(searcher) => {
                let rest = line.get(from..)?;
                Some(from + searcher.find(Input::new(rest))?.start())
            }
        }
    }
}

/// The characters outside of ASCII whose folded form may be a part of this text, or have a part of it at
/// an end.
fn folded_into(text: &[u8]) -> Vec<Vec<u8>> {
    let may_be = |char: &&char| {
        let form: String = folded(**char).collect();
        let form = form.as_bytes();
        // `form` begins at `shift - form.len()` of the text.
        (1..form.len() + text.len()).any(|shift| {
            let in_form = form.get(form.len().saturating_sub(shift)..);
            let in_text = text.get(shift.saturating_sub(form.len())..);
            let mut both = in_form
                .into_iter()
                .flatten()
                .zip(in_text.into_iter().flatten());
            both.all(|(one, other)| one == other)
        })
    };
    let chars = FOLDED_TO_ASCII.iter().filter(may_be);
    chars.map(|char| char.to_string().into_bytes()).collect()
}

/// Whether the byte behind these may belong to an escape.
fn may_be_in_escape(before: &[u8]) -> bool {
    before.ends_with(b"\\") || before.windows(2).any(|two| two == br"\u")
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
    let mut ranks = (2..).zip(ORDER);
    let found = ranks.find(|(_, common)| **common == byte);
    found.map_or(1, |(rank, _)| rank)
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
