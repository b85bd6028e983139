//! The excerpt of a field around its match.

use super::fields::each_field;
use super::fold::{push_folded, push_folded_char};
use super::matcher::{Matcher, decoded};
use super::query::{Needles, Query};
use crate::entry::Kind;
use crate::terminal::is_control;
use memchr::memmem::Finder;
use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

/// Longest excerpt, in characters.
pub(crate) const EXCERPT_CHARS: usize = 200;
/// Characters shown before the first match.
const BEFORE: usize = 60;
/// The most characters of the field that an excerpt reads. Without this limit, a long run of white space would be read
/// whole.
const LOOKED_THROUGH: usize = 4000;
/// The longest word that is not cut, in characters. Identifiers and paths are words.
const WORD: usize = 64;
/// The sign in place of text that was cut.
const CUT: char = '…';
/// The number of bytes of a field that are folded at first. The number is doubled until there is a match.
const FOLDED_FIRST: usize = 256;
/// The most marked ranges of an excerpt.
const MOST_RANGES: usize = 16;

/// An excerpt of a field on one line, and the ranges of the matches in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excerpt {
    /// White space and control characters outside ASCII are folded to single spaces. ASCII control characters are
    /// removed. The text begins or ends with `…` where the field has more text.
    pub text: String,
    /// Ranges in characters (Unicode scalar values) of the text, ascending and disjoint.
    pub ranges: Vec<Range<usize>>,
}

/// A character of the field, and its position in the excerpt.
struct ExcerptChar {
    /// Its offset in the text that was read, in bytes.
    at: usize,
    before: usize,
    after: usize,
}

impl Excerpt {
    /// The excerpt of a field; `None` if the field has no match.
    pub fn of(query: &Query, field: &str) -> Self {
        let field = &*query.shown_of(field);
        let first = query.first_in(field).unwrap_or_default();
        Self::from(field, first, |start, end| {
            query.places(field, start, first, end)
        })
    }

    /// The beginning of a field.
    pub fn beginning(field: &str) -> Self {
        Self::around(field, 0, Vec::new())
    }

    /// The excerpt of a field around the byte `first`, with the ranges `places` marked, which are in bytes and
    /// ascending.
    pub(super) fn around(field: &str, first: usize, places: Vec<Range<usize>>) -> Self {
        Self::from(field, first, |start, end| {
            let places = places.into_iter().filter(|place| place.start >= start);
            let from_start = places.map(|place| place.start - start..place.end - start);
            from_start.take_while(|place| place.start < end).collect()
        })
    }

    /// The excerpt around the byte `first`. `places(start, end)` returns the matches after `start` that begin before
    /// `end`.
    fn from(
        field: &str,
        first: usize,
        places: impl FnOnce(usize, usize) -> Vec<Range<usize>>,
    ) -> Self {
        let (before, _) = field.split_at_checked(first).unwrap_or((field, ""));
        let start = before.char_indices().rev().take(BEFORE).last();
        let start = whole_words(before, start.map_or(first, |(at, _)| at));
        let (before, rest) = field.split_at_checked(start).unwrap_or((field, ""));
        let is_cut = before.chars().any(is_shown);
        let (text, shown) = one_line(rest, first - start, is_cut);
        let last = shown.last().map_or(0, |shown| shown.at);
        let last_char = rest.get(last..).and_then(|rest| rest.chars().next());
        let shown_end = last + last_char.map_or(0, char::len_utf8);
        let found = places(start, shown_end);
        let (whole, cut): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|place| place.end <= shown_end);
        // A part of a match is marked only if no whole match is shown.
        let places = if whole.is_empty() { cut } else { whole };
        let places = places.into_iter().filter_map(|place| {
            let from = shown.partition_point(|shown| shown.at < place.start);
            let until = shown.partition_point(|shown| shown.at < place.end);
            let first = shown.get(from).map_or(0, |shown| shown.before);
            let last = until.checked_sub(1).and_then(|at| shown.get(at));
            let end = last.map_or(0, |shown| shown.after);
            (from < until && first < end).then_some(first..end)
        });
        let places = places.collect();
        Self {
            text,
            ranges: apart(places),
        }
    }
}

/// Finds the field with the most needles; of equal fields, the first one.
pub struct BestField<'q> {
    query: &'q Query,
    matcher: Matcher<'q>,
    found: u32,
    field: String,
}

impl<'q> BestField<'q> {
    pub fn new(query: &'q Query) -> Self {
        Self {
            query,
            matcher: Matcher::new(query),
            found: 0,
            field: String::new(),
        }
    }

    /// Examines a field. Breaks if no later field can be better.
    pub fn see(&mut self, field: Cow<'_, str>) -> ControlFlow<()> {
        self.matcher.begin(0);
        let _seen = self.matcher.see(&field);
        self.take(|| field.into_owned())
    }

    /// Examines the fields of a stored line, until no later field can be better. Most fields need not be decoded.
    pub fn see_line(&mut self, line: &[u8], kind: Kind) -> ControlFlow<()> {
        let mut seen = ControlFlow::Continue(());
        each_field(line, kind, |raw| {
            self.matcher.begin(0);
            let _seen = self.matcher.see_raw(raw);
            seen = self.take(|| decoded(raw).into_owned());
            seen
        });
        seen
    }

    /// Keeps the field that the matcher has just searched, if it is better than the best one so far.
    fn take(&mut self, field: impl FnOnce() -> String) -> ControlFlow<()> {
        let found = self.matcher.found().count_ones();
        if found > self.found {
            self.found = found;
            self.field = field();
        }
        match self.found == self.query.all().count_ones() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// The excerpt of the best field; `None` if no field has a match.
    pub fn excerpt(&self) -> Option<Excerpt> {
        (self.found > 0).then(|| Excerpt::of(self.query, &self.field))
    }
}

/// The end of the word at `at`, or its start if the first match is in the same word; `at` if this word is too long.
/// `text` is the text before the first match.
fn whole_words(text: &str, at: usize) -> usize {
    let (before, rest) = text.split_at_checked(at).unwrap_or((text, ""));
    if before.is_empty() || before.ends_with(char::is_whitespace) {
        return at;
    }
    let mut chars = rest.char_indices().take(WORD);
    if let Some((space, _)) = chars.find(|(_, char)| char.is_whitespace()) {
        return at + space;
    }
    // The word is at least as long as its part before the match.
    let Some(room) = WORD.checked_sub(rest.chars().count()) else {
        return at;
    };
    let mut chars = before.char_indices().rev().take(room + 1);
    match chars.find(|(_, char)| char.is_whitespace()) {
        Some((space, char)) => space + char.len_utf8(),
        None if before.chars().nth(room).is_none() => 0,
        None => at,
    }
}

/// Whether a character separates words: white space, or a control character outside ASCII. If such a control character
/// were only removed, the words around it would be joined. ASCII control characters do not separate words, since codes
/// for colours can be inside a word.
fn is_gap(char: char) -> bool {
    char.is_whitespace() || char == '\u{feff}' || !char.is_ascii() && is_control(char)
}

fn is_shown(char: char) -> bool {
    !is_gap(char) && !is_control(char)
}

/// The part of a text that an excerpt contains. The first match begins at the byte `first`. `is_cut` says whether the
/// excerpt leaves out text before this part.
fn one_line(text: &str, first: usize, is_cut: bool) -> (String, Vec<ExcerptChar>) {
    let mut line = String::with_capacity(EXCERPT_CHARS);
    line.extend(is_cut.then_some(CUT));
    let start = usize::from(is_cut);
    let (mut length, mut gap) = (start, false);
    let mut shown = Vec::with_capacity(EXCERPT_CHARS);
    for (number, (at, char)) in text.char_indices().enumerate() {
        let is_shown = is_shown(char);
        let spaced = usize::from(is_shown && gap && length > start);
        let is_full = is_shown && length + spaced >= EXCERPT_CHARS || number == LOOKED_THROUGH;
        let rest = text.get(at..).unwrap_or_default();
        if is_full {
            if rest.chars().any(self::is_shown) {
                cut(&mut line, &mut shown, first, spaced > 0);
            }
            break;
        }
        let before = length + spaced;
        if is_shown {
            if spaced > 0 {
                line.push(' ');
            }
            line.push(char);
            length = before + 1;
            gap = false;
        } else {
            gap |= is_gap(char);
        }
        shown.push(ExcerptChar {
            at,
            before,
            after: length,
        });
    }
    (line, shown)
}

/// Cuts off the end of a line, so that the sign for cut text fits. Cuts between two words after `first`, if such a
/// position is near.
fn cut(line: &mut String, shown: &mut Vec<ExcerptChar>, first: usize, is_at_word: bool) {
    let fits = |char: &ExcerptChar| char.after < EXCERPT_CHARS;
    let most = shown.partition_point(fits);
    // Whether a space precedes the character with this number.
    let begins_word = |number: usize| {
        let char = shown.get(number);
        let before = number.checked_sub(1).and_then(|before| shown.get(before));
        match (before, char) {
            (Some(before), Some(char)) => before.after < char.before,
            (_, None) => is_at_word,
            (None, _) => false,
        }
    };
    let mut ends = (most.saturating_sub(WORD)..=most).rev();
    let is_behind = |number: usize| shown.get(number).is_none_or(|char| char.at > first);
    let end = ends.find(|end| begins_word(*end) && is_behind(*end));
    shown.truncate(end.unwrap_or(most));
    let length = shown.last().map_or(0, |last| last.after);
    if let Some((at, _)) = line.char_indices().nth(length) {
        line.truncate(at);
    }
    line.push(CUT);
}

/// The ranges in order, with overlapping ranges merged, and at most `MOST_RANGES` of them.
fn apart(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.sort_unstable_by_key(|place| (place.start, place.end));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for place in places {
        if let Some(last) = apart.last_mut()
            && place.start < last.end
        {
            last.end = last.end.max(place.end);
        } else if apart.len() < MOST_RANGES {
            apart.push(place);
        }
    }
    apart
}

/// The offset of the first of these words in a field, in bytes of the folded field. Folds little more than the text
/// before the word, since most matches in a long field are near the beginning.
fn first_folded(words: &[Finder<'_>], field: &str) -> Option<usize> {
    let longest = words.iter().map(|word| word.needle().len()).max()?;
    let mut folded = Vec::new();
    let (mut rest, mut part) = (field, FOLDED_FIRST);
    loop {
        while !rest.is_char_boundary(part.min(rest.len())) {
            part += 1;
        }
        let (text, after) = rest.split_at_checked(part).unwrap_or((rest, ""));
        push_folded(&mut folded, text);
        rest = after;
        let first = words.iter().filter_map(|word| word.find(&folded)).min();
        // A longer word may begin before the word that was found, and end after the folded text.
        match first.filter(|first| rest.is_empty() || first + longest <= folded.len()) {
            Some(first) => return Some(first),
            None if rest.is_empty() => return None,
            None => part = folded.len(),
        }
    }
}

impl Query {
    /// The offset of the first match in a field, in bytes.
    fn first_in(&self, field: &str) -> Option<usize> {
        match &self.needles {
            Needles::Literal(literal) => literal.find(field.as_bytes()),
            Needles::Regex(regex) => regex.find(field).map(|found| found.start()),
            Needles::Words(words) => {
                let first = first_folded(words, field)?;
                // Each ASCII character is folded to one byte, so the offsets are the same.
                if field.get(..=first).is_some_and(str::is_ascii) {
                    return Some(first);
                }
                let mut length = Vec::new();
                let mut passed = 0;
                let mut chars = field.char_indices();
                let found = chars.find(|(_, char)| {
                    length.clear();
                    push_folded_char(&mut length, *char);
                    passed += length.len();
                    passed > first
                });
                found.map(|(at, _)| at)
            }
        }
    }

    /// The matches from `first` on that begin before `end`. Both are offsets in bytes from `start`.
    fn places(&self, field: &str, start: usize, first: usize, end: usize) -> Vec<Range<usize>> {
        let from_start = |place: Range<usize>| place.start - start..place.end - start;
        let rest = field.get(start..).unwrap_or_default();
        match &self.needles {
            Needles::Literal(literal) => {
                let found = literal.find_iter(rest.as_bytes());
                let found = found.take_while(|at| *at < end).take(MOST_RANGES);
                found.map(|at| at..at + literal.needle().len()).collect()
            }
            Needles::Regex(regex) => {
                let mut places = Vec::new();
                let mut at = first;
                while let Some(found) = regex.find_at(field, at)
                    && found.start() - start < end
                    && places.len() < MOST_RANGES
                {
                    places.push(from_start(found.range()));
                    let next = field
                        .get(found.end()..)
                        .and_then(|rest| rest.chars().next());
                    at = match (found.is_empty(), next) {
                        (false, _) => found.end(),
                        (true, Some(char)) => found.end() + char.len_utf8(),
                        (true, None) => break,
                    };
                }
                places
            }
            Needles::Words(words) => {
                // A match may extend beyond `end`.
                let longest = words
                    .iter()
                    .map(|word| word.needle().len())
                    .max()
                    .unwrap_or(0);
                let limit = end.saturating_add(longest);
                let size = limit.min(rest.len());
                let (mut folded, mut from) = (Vec::with_capacity(size), Vec::with_capacity(size));
                for (at, char) in rest.char_indices().take_while(|(at, _)| *at < limit) {
                    push_folded_char(&mut folded, char);
                    from.resize(folded.len(), at..at + char.len_utf8());
                }
                let found = |word: &Finder<'_>| {
                    let len = word.needle().len();
                    let found = word
                        .find_iter(&folded)
                        .filter_map(|at| Some(from.get(at)?.start..from.get(at + len - 1)?.end));
                    found.take(MOST_RANGES).collect::<Vec<_>>()
                };
                words.iter().flat_map(found).collect()
            }
        }
    }
}
