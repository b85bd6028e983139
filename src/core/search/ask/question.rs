//! A question in words, as a person types it.

use super::terms::{Form, Term, Token, Tokenizer};
use std::collections::HashMap;
use std::ops::Range;

/// English stop words. They count only in phrases, or if the question has no other words.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "been", "before", "but", "by", "can", "could", "did", "didn", "do", "does", "doesn", "don",
    "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i", "if", "in", "into",
    "is", "isn", "it", "its", "just", "me", "my", "no", "not", "of", "on", "or", "our", "out",
    "she", "should", "so", "some", "than", "that", "the", "their", "them", "then", "there",
    "these", "they", "this", "to", "up", "us", "was", "we", "were", "what", "when", "where",
    "which", "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
];
/// The most words of a question that count. From a longer question, such as a pasted stack trace, half of this number
/// is taken from the start and half from the end, since the message of an error is at one of the two ends.
const MOST_WORDS: usize = 64;
/// The most terms of a question. Their numbers fit into a byte.
const MOST_TERMS: usize = 250;
/// The weight of a part of an identifier. The weight of a word is 1.
const PART_WEIGHT: f64 = 0.5;
/// The weight of a whole identifier or path that has parts.
const WHOLE_WEIGHT: f64 = 1.5;
/// The weight of a known word that replaces a mistyped word.
const TAKEN_WEIGHT: f64 = 0.7;
/// The weight of a known word that has the word of the question as a part.
const INSIDE_WEIGHT: f64 = 0.2;
/// The largest edit distance between a mistyped word and its correction.
const MAX_DISTANCE: usize = 2;
/// Words with fewer letters are not corrected, since they are similar to too many others.
const MIN_LETTERS: usize = 4;
/// The fewest letters of a mistyped word that may differ from the known word by one edit, and by two edits, even if the
/// two words do not have the same letters.
const SURE_LETTERS: usize = 5;
const SURE_LETTERS_TWO: usize = 9;
/// A blank may be missing between two words. The fewest letters of the joined word, and the fewest bytes of each of the
/// two words.
const MIN_PAIR_LETTERS: usize = 8;
const MIN_PART_BYTES: usize = 4;
/// The fewest letters of a word that is searched inside other words.
const MIN_INSIDE_LETTERS: usize = 3;
/// The fewest words, with blanks between them, that can be a phrase. Two words are often next to each other by chance,
/// and so are the parts of one identifier.
const MIN_PHRASE_WORDS: usize = 3;

/// A question: its words in order, and the terms to search for.
#[derive(Debug, Clone)]
pub struct Question {
    /// The word at each position, case-folded, with its English ending.
    words: Vec<String>,
    /// The distance of each word from the word before it. It is 1, or more after characters that are not words.
    steps: Vec<u32>,
    /// Whether the question can be a phrase: it has enough words with blanks between them, and no word was left out or
    /// replaced.
    may_be_phrase: bool,
    /// The terms to search for, each once. Stop words are left out if there are other words.
    terms: Vec<QuestionTerm>,
    /// The positions of each term. Stop words have positions too.
    places: HashMap<Term, Vec<usize>>,
}

/// A term of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionTerm {
    pub term: Term,
    pub weight: f64,
    /// The position of its first word.
    pub word: usize,
    /// Whether the term is a plain word: neither a part of an identifier nor a whole identifier with parts.
    pub is_word: bool,
    /// Whether the term is a known word that has the word of the question as a part.
    pub is_inside: bool,
}

/// Known words that count in place of a word of a question.
#[derive(Debug, Clone, Copy)]
pub struct Taken<'w> {
    /// The index of the replaced term in [`Question::terms`].
    pub term: usize,
    /// A known word, or two known words with a blank between them.
    pub words: &'w str,
    /// Whether the word of the question is a part of the known word, and not a mistyped form of it.
    pub is_inside: bool,
}

impl Question {
    /// Reads a question; `None` if the text has no word.
    pub fn parse(text: &str) -> Option<Self> {
        let (question, spans) = Self::read(text);
        let half = MOST_WORDS / 2;
        let question = match (
            spans.get(half - 1),
            spans.get(spans.len().wrapping_sub(half)),
        ) {
            (Some(first), Some(last)) if spans.len() > MOST_WORDS => {
                let (first, last) = (text.get(..first.end)?, text.get(last.start..)?);
                let (question, _) = Self::read(&format!("{first}\n{last}"));
                Self {
                    may_be_phrase: false,
                    ..question
                }
            }
            _ => question,
        };
        (!question.is_empty()).then_some(question)
    }

    /// Reads all words of a text. Also returns the spans of the words.
    fn read(text: &str) -> (Self, Vec<Range<usize>>) {
        let (mut words, mut spans, mut terms) = (Vec::new(), Vec::new(), Vec::new());
        let mut places: HashMap<Term, Vec<usize>> = HashMap::new();
        let (mut common, mut numbers) = (Vec::new(), HashMap::new());
        let (mut steps, mut before) = (Vec::new(), 0);
        Tokenizer::default().each(text, |token| {
            if token.form != Form::Whole {
                // Number the words consecutively: the tokenizer's positions have gaps.
                let next = words.len();
                let pair = *numbers.entry(token.position).or_insert(next);
                if pair == next {
                    words.push(token.letters.to_owned());
                    spans.push(token.span.clone());
                    steps.push(token.position - before);
                    before = token.position;
                }
                places.entry(token.term).or_default().push(pair);
            }
            let weight = match token.form {
                Form::Word => 1.0,
                Form::Part => PART_WEIGHT,
                Form::Whole => WHOLE_WEIGHT,
            };
            let term = QuestionTerm {
                term: token.term,
                weight,
                word: numbers.get(&token.position).copied().unwrap_or_default(),
                is_word: token.form == Form::Word,
                is_inside: false,
            };
            let is_common = token.form == Form::Word && is_common(token.letters);
            let of: &mut Vec<QuestionTerm> = if is_common { &mut common } else { &mut terms };
            let has_room = of.len() <= MOST_WORDS * 2;
            match of.iter_mut().find(|one| one.term == term.term) {
                Some(same) => same.weight = same.weight.max(term.weight),
                None if has_room => of.push(term),
                None => {}
            }
        });
        if terms.is_empty() {
            terms = common;
        }
        let question = Self {
            words,
            steps,
            may_be_phrase: text.split_whitespace().nth(MIN_PHRASE_WORDS - 1).is_some(),
            terms,
            places,
        };
        (question, spans)
    }

    /// The question, in which each of these known words replaces its term.
    pub fn with_taken<'w>(&self, taken: impl IntoIterator<Item = Taken<'w>>) -> Self {
        let (mut question, mut replaced) = (self.clone(), Vec::new());
        for one in taken {
            let Some(old) = self.terms.get(one.term) else {
                continue;
            };
            replaced.push(old.term);
            question.may_be_phrase = false;
            question.places.remove(&old.term);
            let places = self.places(old.term);
            let weight = match one.is_inside {
                true => INSIDE_WEIGHT,
                false => TAKEN_WEIGHT,
            };
            for new in terms_of(one.words) {
                // A part of a word is not a word of a phrase.
                if !one.is_inside {
                    question.places.entry(new).or_default().extend(places);
                }
                if question.number(new).is_none() && question.terms.len() < MOST_TERMS {
                    question.terms.push(QuestionTerm {
                        term: new,
                        weight: old.weight * weight,
                        is_inside: one.is_inside,
                        ..old.clone()
                    });
                }
            }
        }
        question.terms.retain(|one| !replaced.contains(&one.term));
        question
    }

    pub fn terms(&self) -> &[QuestionTerm] {
        &self.terms
    }

    /// The word at a position, case-folded.
    pub fn word(&self, position: usize) -> &str {
        self.words.get(position).map_or("", String::as_str)
    }

    /// The number of words, stop words included.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no word. A parsed question has at least one word.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The distance of a word from the word before it.
    pub(super) fn step(&self, position: usize) -> u32 {
        self.steps.get(position).copied().unwrap_or(1)
    }

    /// Whether a run of this number of words is the whole question as a phrase.
    pub(super) fn is_phrase(&self, run: usize) -> bool {
        self.may_be_phrase && run == self.len() && run >= MIN_PHRASE_WORDS
    }

    /// For each of [`Question::terms`], whether an entry must have the term to have the question as a phrase. `None` if
    /// the question cannot be a phrase.
    pub fn of_phrase(&self) -> Option<Vec<bool>> {
        let terms = self.terms.iter();
        // A whole identifier may be several words in the entry.
        self.is_phrase(self.len())
            .then(|| terms.map(|one| !self.places(one.term).is_empty()).collect())
    }

    /// The positions of a term.
    pub(super) fn places(&self, term: Term) -> &[usize] {
        self.places.get(&term).map_or(&[], Vec::as_slice)
    }

    /// For a term that is a known word with the word of the question as a part: the span of this part in a token, in
    /// bytes of the text. If the token is another form of the known word without this part, the span is the whole
    /// token. `None` for any other term.
    pub(super) fn part_of(&self, number: usize, token: &Token<'_>) -> Option<Range<usize>> {
        let term = self.terms.get(number).filter(|term| term.is_inside)?;
        let (word, span) = (self.word(term.word), token.span.clone());
        let at = token.letters.find(word);
        let at = at.filter(|_| token.letters.len() == span.len());
        Some(at.map_or(span.clone(), |at| {
            span.start + at..span.start + at + word.len()
        }))
    }

    /// The index of a term in [`Question::terms`].
    pub fn number(&self, term: Term) -> Option<usize> {
        self.terms.iter().position(|one| one.term == term)
    }
}

/// Whether a word counts only in phrases: an English stop word, or a single letter or digit. Every version number has
/// single digits.
fn is_common(word: &str) -> bool {
    word.len() == 1 || STOP_WORDS.binary_search(&word).is_ok()
}

/// The terms of the words and of the parts of identifiers in a text, in order. Identifiers as a whole are left out.
pub fn words_in(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    Tokenizer::default().each(text, |token| {
        terms.extend((token.form != Form::Whole).then_some(token.term));
    });
    terms
}

/// The terms of plain words.
fn terms_of(words: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    Tokenizer::default().each(words, |token| terms.push(token.term));
    terms
}

/// A word that was perhaps mistyped. It is compared with many known words.
#[derive(Debug, Clone, Copy)]
pub struct MistypedWord<'w> {
    word: &'w str,
    /// The number of its letters, and their set.
    len: usize,
    letters: u32,
    /// The largest distance of a near word.
    most: usize,
}

impl<'w> MistypedWord<'w> {
    pub fn new(word: &'w str) -> Self {
        let len = word.chars().count();
        let is_short = len < MIN_LETTERS * 2 - 1;
        Self {
            word,
            len,
            letters: letters(word),
            most: if is_short { 1 } else { MAX_DISTANCE },
        }
    }

    /// Whether a known word with this length in bytes and this set of letters ([`letter`]) may be near.
    pub fn may_be_near(&self, len: usize, letters: u32) -> bool {
        // An edit changes the set by at most two letters. So most words are excluded without a comparison. Nearly all
        // letters with two cases have one or two bytes.
        let bytes = self.most << ((self.letters | letters) & OTHER);
        self.len >= MIN_LETTERS
            && self.word.len().abs_diff(len) <= bytes
            && (self.letters ^ letters).count_ones() as usize <= self.most * 2
    }

    /// The word as it was typed, case-folded.
    pub fn text(&self) -> &'w str {
        self.word
    }

    /// Whether a known word with this length in bytes and this set of letters ([`letter`]) may be a part of this word.
    /// Perhaps a blank between two words is missing.
    pub fn may_have_part(&self, len: usize, letters: u32) -> bool {
        self.len >= MIN_PAIR_LETTERS
            && (MIN_PART_BYTES..=self.word.len() - MIN_PART_BYTES).contains(&len)
            && letters & !self.letters == 0
    }

    /// Whether a known word with this length in bytes and this set of letters ([`letter`]) may have this word as a
    /// part.
    pub fn may_be_inside(&self, len: usize, letters: u32) -> bool {
        self.len >= MIN_INSIDE_LETTERS && len > self.word.len() && self.letters & !letters == 0
    }

    /// Whether a known word begins with the same letter. Few people mistype the first letter of a word.
    pub fn begins_as(&self, known: &str) -> bool {
        self.word.chars().next() == known.chars().next()
    }

    /// Whether a known word at this distance is surely the word that the person meant, and is not near by chance. Both
    /// words must begin with the same letter. In addition, they must have the same letters, or this word must be long.
    pub fn is_surely(&self, known: &str, distance: usize) -> bool {
        let is_long = self.len
            >= if distance < 2 {
                SURE_LETTERS
            } else {
                SURE_LETTERS_TWO
            };
        self.begins_as(known) && (is_long || self.has_letters_of(known))
    }

    /// Whether a known word has the same letters. Most mistyped words lack or repeat a letter that is also elsewhere in
    /// the word, or have two letters in the wrong order.
    pub fn has_letters_of(&self, known: &str) -> bool {
        let has_all = |word: &str, letters: &str| letters.chars().all(|one| word.contains(one));
        has_all(self.word, known) && has_all(known, self.word)
    }

    /// Returns the edit distance to a known word: the number of letters to change, add, remove or swap. `None` if the
    /// distance is larger than 2, or larger than 1 for a short word. `None` also for equal words, and if this word has
    /// fewer than `MIN_LETTERS` letters.
    pub fn distance(&self, known: &str) -> Option<usize> {
        if self.word == known || !self.may_be_near(known.len(), letters(known)) {
            return None;
        }
        let distance = strsim::damerau_levenshtein(self.word, known);
        (distance <= self.most).then_some(distance)
    }
}

/// The set of the letters of a word.
fn letters(word: &str) -> u32 {
    word.bytes().fold(0, |set, byte| set | letter(byte))
}

/// The bit of all letters outside ASCII in a set of letters. No ASCII letter has this bit.
const OTHER: u32 = 1;

/// The bit of a letter in a set of letters, by a byte of the letter. Several letters share a bit.
pub fn letter(byte: u8) -> u32 {
    match byte.is_ascii() {
        true => 1 << (byte & 31),
        false => OTHER,
    }
}
