//! Skips stored lines that cannot match, by their bytes alone.
//!
//! A matching line is never skipped, although JSON may write any character as an escape. So the prefilter searches a
//! run of characters that a string literal usually has unescaped, and never skips a line that has escapes for such
//! characters.

use super::fold::{FOLDED_TO_ASCII, folded, folded_to};
use aho_corasick::{AhoCorasick, Input, packed};
use memchr::memmem::Finder;
use memchr::{memchr, memrchr};
use regex_syntax::hir::literal::{ExtractKind, Extractor, Seq};
use std::ops::Range;

/// The byte search for one needle.
#[derive(Debug)]
pub(super) struct Prefilter(Option<Search>);

/// The result of a byte search in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// The needle is not in the field.
    No,
    /// The decoded text must be searched.
    Maybe,
    /// The needle is in the field.
    Yes,
}

#[derive(Debug)]
struct Search {
    how: How,
    /// The part of the word around the searched bytes, if the word is longer than the searched bytes.
    run: Option<Run>,
    /// Whether the bytes found are the whole needle.
    is_whole: bool,
    /// The rest of a word, if the bytes found are a part of it.
    rest: Option<Rest>,
    /// The search for other spellings of the needle: for escapes, and for other characters whose folded form may be
    /// part of the needle.
    hidden: How,
    /// The number of bytes that are searched. The more bytes, the fewer lines have them.
    len: usize,
}

/// A part of a word in ASCII letters of any case.
#[derive(Debug)]
struct Run {
    text: Vec<u8>,
    /// The offset in `text` of the bytes that are searched first.
    at: usize,
}

/// The characters of a word before and after the characters that are searched first.
#[derive(Debug)]
struct Rest {
    /// The characters before the window, from the nearest one to the first one of the word.
    before: Vec<char>,
    /// The number of characters that are searched first.
    window: usize,
    after: Vec<char>,
}

#[derive(Debug)]
enum How {
    One(Finder<'static>),
    Packed(packed::Searcher),
    Any(AhoCorasick),
}

/// The number of bytes of a word that are searched. In upper and lower case, these bytes have as many spellings as the
/// fastest search takes patterns.
const WINDOW: usize = 3;
/// The most patterns of the fastest search.
const MOST_PATTERNS: usize = 8;
/// Texts with fewer bytes occur in nearly all lines.
const SHORTEST: usize = 2;
/// The number of bytes of a word that are compared before and after the window.
const AROUND: usize = 16;
/// The length in bytes of the longest escape without its last byte.
const ESCAPE: usize = 5;

impl Prefilter {
    /// The prefilter for a word, which is folded.
    pub(super) fn folded(word: &[u8]) -> Self {
        let search = Search::ascii(word, WINDOW)
            .or_else(|| Search::beyond_ascii(word))
            .or_else(|| Search::ascii(word, SHORTEST));
        Self(search)
    }

    /// The prefilter for a literal text.
    pub(super) fn literal(text: &str) -> Self {
        let run = longest_run(text.as_bytes());
        let is_whole = run.as_ref().is_some_and(|run| run.len() == text.len());
        Self::any_of(run.into_iter().collect(), is_whole)
    }

    /// The prefilter for a valid pattern. The prefilter searches the text with which each match begins or ends, if such
    /// a text is known.
    pub(super) fn pattern(pattern: &str) -> Self {
        let literals = pattern_literals(pattern).unwrap_or_default();
        let runs = literals.iter().map(|literal| longest_run(literal));
        Self::any_of(runs.collect::<Option<Vec<_>>>().unwrap_or_default(), false)
    }

    fn any_of(runs: Vec<Vec<u8>>, is_whole: bool) -> Self {
        let len = runs.iter().map(Vec::len).min().unwrap_or_default();
        Self(Search::new(&runs, None, is_whole, len, Vec::new()))
    }

    /// The number of bytes that are searched; 0 if all lines pass.
    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |search| search.len)
    }

    /// Passes to `each`, in order, the lines in `lines` that may have the needle, with their offsets. All other lines
    /// together cost one search for the bytes, and one search for other spellings.
    pub(super) fn each_passing<'a>(&self, lines: &'a [u8], mut each: impl FnMut(usize, &'a [u8])) {
        let Some(search) = &self.0 else {
            let mut at = 0;
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                each(at, line.strip_suffix(b"\n").unwrap_or(line));
                at += line.len();
            }
            return;
        };
        let mut from = 0;
        let mut found = search.next(lines, 0);
        let mut hidden = search.next_hidden(lines, 0);
        while let Some(at) = found.into_iter().chain(hidden).min() {
            let before = lines.get(from..at).unwrap_or_default();
            let start = from + memrchr(b'\n', before).map_or(0, |at| at + 1);
            let rest = lines.get(at..).unwrap_or_default();
            let end = at + memchr(b'\n', rest).unwrap_or(rest.len());
            each(start, lines.get(start..end).unwrap_or_default());
            from = end;
            if found.is_some_and(|at| at < end) {
                found = search.next(lines, end);
            }
            if hidden.is_some_and(|at| at < end) {
                hidden = search.next_hidden(lines, end);
            }
        }
    }

    /// Whether the text of this line may have the needle.
    pub(super) fn passes(&self, line: &[u8]) -> bool {
        let Some(search) = &self.0 else { return true };
        search.next(line, 0).is_some() || search.may_hide(line)
    }

    /// Whether this field (raw JSON) contains the needle.
    pub(super) fn tell(&self, raw: &[u8]) -> Presence {
        let Some(search) = &self.0 else {
            return Presence::Maybe;
        };
        let (mut from, mut is_open) = (0, false);
        while let Some(at) = search.next(raw, from) {
            let (start, told) = match &search.rest {
                Some(rest) => rest.presence(raw, at),
                None if search.is_whole => (at, Presence::Yes),
                None => (at, Presence::Maybe),
            };
            // The first bytes of the match may be part of an escape.
            let before = start.saturating_sub(ESCAPE)..start;
            let is_escape = may_be_in_escape(raw.get(before).unwrap_or_default());
            match told {
                Presence::Yes if !is_escape => return Presence::Yes,
                Presence::Maybe => return Presence::Maybe,
                Presence::Yes => is_open = true,
                Presence::No => {}
            }
            from = at + 1;
        }
        match is_open || search.may_hide(raw) {
            true => Presence::Maybe,
            false => Presence::No,
        }
    }
}

impl Search {
    /// A search for `patterns`; `None` if there are none. `others` are other spellings of any part of the needle.
    fn new(
        patterns: &[Vec<u8>],
        run: Option<Run>,
        is_whole: bool,
        len: usize,
        mut others: Vec<Vec<u8>>,
    ) -> Option<Self> {
        others.push(br"\u".to_vec());
        Some(Self {
            how: How::of(patterns)?,
            run,
            is_whole,
            rest: None,
            hidden: How::of(&others)?,
            len,
        })
    }

    /// Searches the rarest `len` adjacent ASCII bytes of a word.
    fn ascii(word: &[u8], len: usize) -> Option<Self> {
        let is_plain = |byte: &u8| byte.is_ascii() && is_unescaped(char::from(*byte));
        let windows = word.windows(len).enumerate();
        let windows = windows.filter(|(_, window)| window.iter().all(is_plain));
        let rarity = |window: &[u8]| window.iter().map(|byte| commonness(*byte)).sum::<u32>();
        let (at, window) = windows.min_by_key(|(_, window)| rarity(window))?;
        let (before, rest) = word.split_at_checked(at)?;
        let after = rest.get(len..)?;
        let before = before.iter().rev().take(AROUND);
        let before = before.take_while(|byte| is_plain(byte)).count();
        let after = after.iter().take(AROUND);
        let after = after.take_while(|byte| is_plain(byte)).count();
        let range = at - before..at + len + after;
        let text = word.get(range.clone())?;
        let run = (text.len() > len).then(|| Run {
            text: text.to_vec(),
            at: before,
        });
        let is_whole = text.len() == word.len();
        let others = folded_into(text);
        let search = Self::new(&cases(window), run, is_whole, text.len(), others)?;
        let word = str::from_utf8(word).ok().filter(|_| !is_whole);
        Some(Self {
            rest: word.and_then(|word| Rest::of(word, range)),
            ..search
        })
    }

    /// Searches adjacent characters outside ASCII, in all cases.
    fn beyond_ascii(word: &[u8]) -> Option<Self> {
        let word = str::from_utf8(word).ok()?;
        let is_plain = |char: &char| !char.is_ascii() && is_unescaped(*char);
        // The best range of characters so far, and its patterns.
        let mut best: (Range<usize>, Vec<String>) = (0..0, Vec::new());
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
            if len > best.0.len() {
                best = (start..start + len, patterns);
            }
        }
        let (window, mut patterns) = best;
        if window.is_empty() {
            let char = word.chars().find(is_plain)?;
            patterns = folded_to(char).iter().map(char::to_string).collect();
        }
        let patterns: Vec<_> = patterns.into_iter().map(String::into_bytes).collect();
        let search = Self::new(&patterns, None, false, window.len(), Vec::new())?;
        Some(Self {
            rest: Rest::of(word, window),
            ..search
        })
    }

    /// The start of the next match, from `from` on.
    fn next(&self, line: &[u8], mut from: usize) -> Option<usize> {
        let Some(run) = &self.run else {
            return self.how.next(line, from);
        };
        // A run that starts at or after `from` has its searched bytes at or after this offset.
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

    /// The next offset, from `from` on, where the line may have a part of the needle in another spelling: an escape
    /// (except the escape of a control character), or a character that folds to a part of the needle.
    fn next_hidden(&self, line: &[u8], mut from: usize) -> Option<usize> {
        loop {
            let at = self.hidden.next(line, from)?;
            match line.get(at..at + 6) {
                Some(escape) if escape.first() == Some(&b'\\') => {
                    if is_plain_escape(escape) {
                        return Some(at);
                    }
                    from = at + 2;
                }
                // The rest of the line is too short for an escape.
                None if line.get(at) == Some(&b'\\') => from = at + 2,
                _ => return Some(at),
            }
        }
    }

    /// Whether the line may have the needle in another spelling.
    fn may_hide(&self, line: &[u8]) -> bool {
        self.next_hidden(line, 0).is_some()
    }
}

impl Rest {
    /// `None` if the window is empty: a character of the word may then be a part of another character's folded form.
    fn of(word: &str, window: Range<usize>) -> Option<Self> {
        let searched = word.get(window.clone()).filter(|text| !text.is_empty())?;
        Some(Self {
            before: word.get(..window.start)?.chars().rev().collect(),
            window: searched.chars().count(),
            after: word.get(window.end..)?.chars().collect(),
        })
    }

    /// Whether the rest of the word is around the characters found at `at`. Also returns the start of the word.
    fn presence(&self, raw: &[u8], at: usize) -> (usize, Presence) {
        let text = simdutf8::basic::from_utf8(raw).ok();
        let Some((before, found)) = text.and_then(|text| text.split_at_checked(at)) else {
            return (at, Presence::Maybe);
        };
        let after = same(&self.after, found.chars().skip(self.window));
        let start = before.char_indices().rev().take(self.before.len()).last();
        let start = start.map_or(at, |(start, _)| start);
        let told = match same(&self.before, before.chars().rev()) {
            Presence::Yes => after,
            Presence::Maybe if after != Presence::No => Presence::Maybe,
            Presence::Maybe | Presence::No => Presence::No,
        };
        (start, told)
    }
}

/// Whether the characters fold to the expected ones. The answer is `Maybe` at an escape, and at a character that folds
/// to several.
fn same(expected: &[char], mut chars: impl Iterator<Item = char>) -> Presence {
    for expected in expected {
        let Some(char) = chars.next() else {
            return Presence::No;
        };
        let mut form = folded(char);
        match (form.next(), form.next()) {
            _ if !is_unescaped(*expected) || char == '\\' => return Presence::Maybe,
            (Some(one), None) if one == *expected => {}
            (Some(_), None) => return Presence::No,
            _ => return Presence::Maybe,
        }
    }
    Presence::Yes
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

    /// The start of the next match, from `from` on.
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

/// For a valid pattern, the texts that every match begins with, or that every match ends with; `None` if neither is
/// known. Each text is long enough to be searched.
pub(super) fn pattern_literals(pattern: &str) -> Option<Vec<Vec<u8>>> {
    let parser = regex_syntax::ParserBuilder::new().multi_line(true).build();
    let hir = { parser }.parse(pattern).ok()?;
    let literals = |seq: Seq| {
        let literals = seq.literals()?.iter().map(|literal| literal.as_bytes());
        let literals: Vec<Vec<u8>> = literals.map(<[u8]>::to_vec).collect();
        let are_long = literals
            .iter()
            .all(|literal| longest_run(literal).is_some());
        (are_long && !literals.is_empty()).then_some(literals)
    };
    let mut extractor = Extractor::new();
    let prefixes = literals(extractor.extract(&hir));
    prefixes.or_else(|| literals(extractor.kind(ExtractKind::Suffix).extract(&hir)))
}

/// The characters outside ASCII whose folded form may be part of this text, or overlap one of its ends.
fn folded_into(text: &[u8]) -> Vec<Vec<u8>> {
    let may_be = |char: &&char| {
        let form: String = folded(**char).collect();
        let form = form.as_bytes();
        // The folded form begins at the offset `shift - form.len()` of the text.
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

/// Whether the byte after `before` may belong to an escape.
fn may_be_in_escape(before: &[u8]) -> bool {
    before.ends_with(b"\\") || before.windows(2).any(|two| two == br"\u")
}

/// Whether a string literal usually has the character unescaped (it may still be written as `\u…`).
fn is_unescaped(char: char) -> bool {
    !matches!(
        char,
        '"' | '\\' | '/' | '\u{7f}' | char::REPLACEMENT_CHARACTER
    ) && !char.is_control()
}

/// The longest run of characters in a text that a string literal usually has unescaped; `None` if all runs are too
/// short to be useful.
fn longest_run(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.utf8_chunks().map(|chunk| chunk.valid());
    let runs = text.flat_map(|valid| valid.split(|char| !is_unescaped(char)));
    let longest = runs.max_by_key(|run| run.len())?;
    (longest.len() >= SHORTEST).then(|| longest.as_bytes().to_vec())
}

/// All spellings of a folded ASCII text in upper and lower case letters.
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

/// How common a byte is in the text of agents. This is an estimate.
fn commonness(byte: u8) -> u32 {
    const ORDER: &[u8] = b"zqxjkvbpygwfmuclhdrsianot e";
    let mut ranks = (2..).zip(ORDER);
    let found = ranks.find(|(_, common)| **common == byte);
    found.map_or(1, |(rank, _)| rank)
}

/// Whether these six bytes are a `\u` escape of anything but a control character.
fn is_plain_escape(escape: &[u8]) -> bool {
    let digits = escape.get(2..).unwrap_or_default();
    digits.iter().all(u8::is_ascii_hexdigit) && !matches!(digits, [b'0', b'0', b'0' | b'1', _])
}
