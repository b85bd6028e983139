//! The terms of a text: words, identifiers whole and in parts, paths, and pairs of CJK characters.

use super::known::{KnownWords, hash};
use crate::search::fold::folded_text;
use std::ops::Range;

/// The hash of the folded letters of a term. If the term is a word, its English ending is left out. Indexes store the
/// hash, so it must not depend on the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// The form of a term in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A word, or a part of a path.
    Word,
    /// A part of an identifier, such as `tree` of `getTree` or `get_tree`.
    Part,
    /// An identifier or path that has parts, as a whole.
    Whole,
}

/// A term at its position in a text.
#[derive(Debug)]
pub struct Token<'t> {
    pub term: Term,
    pub form: Form,
    /// The span of the token in the text, in bytes.
    pub span: Range<usize>,
    /// The number of words and parts before it. A whole identifier or path has the number of its first part.
    pub position: u32,
    /// Its folded letters, with the English ending.
    pub letters: &'t str,
}

/// Runs of more bytes are data (keys, hashes, encoded files), and not words.
const LONGEST: usize = 64;
/// The most parts that an identifier or path may have to be a term as a whole.
const MOST_PARTS: usize = 16;

/// The term of a fact about an entry that is not text, such as its tool. No text contains this term.
pub fn term_of_fact(name: &str, value: &str) -> Term {
    Term(hash(format!("\0{name}\0{value}").as_bytes()))
}

/// Splits texts into terms. The memory is used again for each text.
#[derive(Debug, Default)]
pub struct Tokenizer {
    letters: String,
    known: KnownWords,
    /// The parts of the run that is being read, each with the number of its segment.
    parts: Vec<(Range<usize>, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    /// A letter outside ASCII that has no case.
    Letter,
    Cjk,
    /// Joins the parts of an identifier.
    Underscore,
    /// Joins the segments of a path or version.
    Joint,
    Other,
}

const fn class_of_byte(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        b'_' => Class::Underscore,
        b'.' | b'/' => Class::Joint,
        _ => Class::Other,
    }
}

fn class(char: char) -> Class {
    match char {
        '\0'..='\x7f' => u8::try_from(char).map_or(Class::Other, class_of_byte),
        '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{2fa1f}' => Class::Cjk,
        _ if char.is_lowercase() => Class::Lower,
        _ if char.is_uppercase() => Class::Upper,
        _ if char.is_alphanumeric() => Class::Letter,
        _ => Class::Other,
    }
}

/// The class of the character at a position, and its length in bytes; `Other` at the end of the text.
#[inline]
fn class_at(text: &str, at: usize) -> (Class, usize) {
    match text.as_bytes().get(at) {
        Some(byte) if byte.is_ascii() => (class_of_byte(*byte), 1),
        _ => {
            let char = text.get(at..).and_then(|rest| rest.chars().next());
            char.map_or((Class::Other, 1), |char| (class(char), char.len_utf8()))
        }
    }
}

/// The end of the word at a position, if the word is plain: all letters are ASCII letters in one case, except that the
/// first may be a capital letter, and nothing joins the word to another word. Most words are plain.
#[inline]
fn end_of_plain(text: &str, at: usize) -> Option<usize> {
    let rest = text.as_bytes().get(at + 1..)?;
    let is_inside = |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inside = rest.iter().take_while(is_inside).count();
    let is_end = match rest.get(inside) {
        Some(b'\'') => false,
        Some(byte) => byte.is_ascii() && class_of_byte(*byte) == Class::Other,
        None => true,
    };
    is_end.then_some(at + 1 + inside)
}

impl Class {
    fn is_word(self) -> bool {
        matches!(self, Self::Lower | Self::Upper | Self::Digit | Self::Letter)
    }
}

impl Tokenizer {
    /// Passes each term of a text to `see`, in order. A whole identifier or path comes after its parts.
    pub fn each(&mut self, text: &str, mut see: impl FnMut(&Token<'_>)) {
        let (mut at, mut position) = (0, 0);
        while at < text.len() {
            let (class, len) = class_at(text, at);
            at = match class {
                Class::Cjk => self.cjk(text, at, &mut position, &mut see),
                _ if class.is_word() => match end_of_plain(text, at).filter(|_| len == 1) {
                    Some(end) => {
                        self.token(text, at..end, Form::Word, position, &mut see);
                        position += 1;
                        end
                    }
                    None => self.run(text, at, &mut position, &mut see),
                },
                _ => at + len,
            };
        }
    }

    /// Reads a run of CJK characters; passes each character and each pair of neighbours. Returns the end of the run.
    fn cjk(
        &mut self,
        text: &str,
        start: usize,
        position: &mut u32,
        see: &mut impl FnMut(&Token<'_>),
    ) -> usize {
        let rest = text.get(start..).unwrap_or_default();
        let mut before = None;
        let mut end = start;
        for (offset, char) in rest.char_indices() {
            if class(char) != Class::Cjk {
                break;
            }
            let at = start + offset;
            end = at + char.len_utf8();
            self.token(text, at..end, Form::Part, *position, see);
            if let Some(before) = before {
                self.token(
                    text,
                    before..end,
                    Form::Word,
                    position.saturating_sub(1),
                    see,
                );
            }
            *position += 1;
            before = Some(at);
        }
        // Leave a gap, so that words of another script after this run are not its neighbours.
        *position += 1;
        end
    }

    /// Reads a run of joined words, such as an identifier or a path; returns its end.
    fn run(
        &mut self,
        text: &str,
        start: usize,
        position: &mut u32,
        see: &mut impl FnMut(&Token<'_>),
    ) -> usize {
        let end = self.split(text, start);
        let parts = std::mem::take(&mut self.parts);
        let (mut first, mut segments) = (0, 0);
        while let Some((span, segment)) = parts.get(first) {
            let rest = parts.get(first..).unwrap_or_default();
            let count = rest.iter().take_while(|(_, of)| of == segment).count();
            let own = rest.get(..count).unwrap_or_default();
            let form = if count > 1 { Form::Part } else { Form::Word };
            let at = *position;
            for (span, _) in own {
                self.token(text, span.clone(), form, *position, see);
                *position += 1;
            }
            let last = own.last().map_or(span.end, |(span, _)| span.end);
            if (2..=MOST_PARTS).contains(&count) {
                self.token(text, span.start..last, Form::Whole, at, see);
            }
            first += count;
            segments += 1;
        }
        if (2..=MOST_PARTS).contains(&segments) && parts.len() <= MOST_PARTS {
            let count = u32::try_from(parts.len()).unwrap_or_default();
            self.path(text, &parts, position.saturating_sub(count), see);
        }
        self.parts = parts;
        end
    }

    /// Passes a path as a whole, and its last name.
    fn path(
        &mut self,
        text: &str,
        parts: &[(Range<usize>, usize)],
        position: u32,
        see: &mut impl FnMut(&Token<'_>),
    ) {
        let (Some((first, _)), Some((last, _))) = (parts.first(), parts.last()) else {
            return;
        };
        let span = first.start..last.end;
        self.token(text, span.clone(), Form::Whole, position, see);
        let path = text.get(span.clone()).unwrap_or_default();
        if let Some(slash) = path.rfind('/') {
            let name = span.start + slash + 1..span.end;
            let before = parts.partition_point(|(part, _)| part.start < name.start);
            let in_name = parts.get(before..).unwrap_or_default();
            let of_one = in_name.first().map(|(_, segment)| segment);
            if in_name.last().map(|(_, segment)| segment) != of_one {
                let before = u32::try_from(before).unwrap_or_default();
                self.token(text, name, Form::Whole, position + before, see);
            }
        }
    }

    /// Finds the parts of the run that begins at `start`; returns its end.
    fn split(&mut self, text: &str, start: usize) -> usize {
        self.parts.clear();
        let (mut part, mut segment, mut before) = (start, 0, Class::Other);
        let mut end = start;
        let (mut class, mut len) = class_at(text, start);
        while end < text.len() {
            let at = end;
            let (next, next_len) = class_at(text, at + len);
            match class {
                Class::Underscore | Class::Joint if next.is_word() => {
                    self.close(part..at, segment);
                    segment += usize::from(class == Class::Joint);
                    part = at + len;
                }
                _ if class.is_word() => {
                    let is_capital = next == Class::Lower;
                    let begins_hump = class == Class::Upper
                        && match before {
                            Class::Lower => true,
                            Class::Upper | Class::Digit => is_capital,
                            _ => false,
                        };
                    if begins_hump && at > part {
                        self.close(part..at, segment);
                        part = at;
                    }
                }
                _ => break,
            }
            before = class;
            end = at + len;
            (class, len) = (next, next_len);
        }
        self.close(part..end, segment);
        // The endings `'s`, `n't` and the like are not words.
        let tail = text.get(end..).unwrap_or_default();
        let ending = tail.strip_prefix(['\'', '’']).unwrap_or(tail);
        let letters = ending.bytes().take_while(u8::is_ascii_alphabetic).count();
        let is_ending = ending.len() < tail.len() && (1..=2).contains(&letters);
        if is_ending {
            end + (tail.len() - ending.len()) + letters
        } else {
            end
        }
    }

    fn close(&mut self, span: Range<usize>, segment: usize) {
        if !span.is_empty() {
            self.parts.push((span, segment));
        }
    }

    fn token(
        &mut self,
        text: &str,
        span: Range<usize>,
        form: Form,
        position: u32,
        see: &mut impl FnMut(&Token<'_>),
    ) {
        if span.len() > LONGEST {
            return;
        }
        let stored = text.get(span.clone()).unwrap_or_default();
        self.letters.clear();
        if stored.is_ascii() {
            self.letters.push_str(stored);
            self.letters.make_ascii_lowercase();
            // `getTree` and `get_tree` are one term.
            if form == Form::Whole {
                self.letters.retain(|letter| letter != '_');
            }
        } else {
            self.letters.push_str(&folded_text(stored));
        }
        see(&Token {
            term: Term(self.known.term(&self.letters)),
            form,
            span,
            position,
            letters: &self.letters,
        });
    }
}
