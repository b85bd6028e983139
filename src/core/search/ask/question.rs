//! A question as people type it.

use super::terms::{Form, Term, Tokenizer};
use std::collections::HashMap;

/// Words of English that say little; they count only in phrases, or if the question has no others.
const COMMON: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "been", "before", "but", "by", "can", "could", "did", "do", "does", "for", "from", "had",
    "has", "have", "he", "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "just", "me", "my", "of", "on", "or", "our", "she", "should", "so", "some", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "to", "up", "us", "was",
    "we", "were", "what", "when", "where", "which", "who", "whom", "whose", "why", "will", "with",
    "would", "you", "your",
];
/// Most words of a question.
const MOST_WORDS: usize = 64;
/// The weight of an identifier's part beside the whole.
const PART: f64 = 0.5;
/// The weight of an identifier as a whole.
const WHOLE: f64 = 1.5;
/// The most letters by which a word may differ from a known one.
const NEAR: usize = 2;
/// Words of fewer letters are near too many others.
const SHORTEST: usize = 4;

/// A question: its words in order, and the terms to look up.
#[derive(Debug)]
pub struct Question {
    /// The word at each position: its letters as typed, folded.
    words: Vec<String>,
    /// The terms that count, each once.
    terms: Vec<QuestionTerm>,
    /// The positions of each term, common ones too.
    places: HashMap<Term, Vec<usize>>,
}

/// A term of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionTerm {
    pub term: Term,
    pub weight: f64,
    /// The position of its first word.
    pub word: usize,
    /// Whether it is a word of the question, and not a part or a whole of an identifier.
    pub is_word: bool,
}

impl Question {
    /// `None` if the text has no word. The error explains what is wrong with it.
    pub fn parse(text: &str) -> Result<Option<Self>, String> {
        let (mut words, mut terms) = (Vec::new(), Vec::<QuestionTerm>::new());
        let mut places: HashMap<Term, Vec<usize>> = HashMap::new();
        let (mut common, mut numbers) = (Vec::new(), HashMap::new());
        Tokenizer::default().each(text, |token| {
            if token.form != Form::Whole {
                // Positions of a question are those of its words: a gap in the text is none.
                let next = words.len();
                let pair = *numbers.entry(token.position).or_insert(next);
                if pair == next {
                    words.push(token.letters.to_owned());
                }
                places.entry(token.term).or_default().push(pair);
            }
            let weight = match token.form {
                Form::Word => 1.0,
                Form::Part => PART,
                Form::Whole => WHOLE,
            };
            let term = QuestionTerm {
                term: token.term,
                weight,
                word: numbers.get(&token.position).copied().unwrap_or_default(),
                is_word: token.form == Form::Word,
            };
            let is_common =
                token.form == Form::Word && COMMON.binary_search(&token.letters).is_ok();
            let of = if is_common { &mut common } else { &mut terms };
            let has_room = of.len() <= MOST_WORDS * 2;
            match of.iter_mut().find(|one| one.term == term.term) {
                Some(same) => same.weight = same.weight.max(term.weight),
                None if has_room => of.push(term),
                None => {}
            }
        });
        if words.len() > MOST_WORDS {
            return Err(format!("has more than {MOST_WORDS} words"));
        }
        if terms.is_empty() {
            terms = common;
        }
        Ok((!words.is_empty()).then_some(Self {
            words,
            terms,
            places,
        }))
    }

    pub fn terms(&self) -> &[QuestionTerm] {
        &self.terms
    }

    /// The letters of the word at a position.
    pub fn word(&self, position: usize) -> &str {
        self.words.get(position).map_or("", String::as_str)
    }

    /// The number of words, common ones too.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there is no word; a parsed question has one.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The positions of a term.
    pub(super) fn places(&self, term: Term) -> &[usize] {
        self.places.get(&term).map_or(&[], Vec::as_slice)
    }

    /// The number of a term in [`Question::terms`].
    pub fn number(&self, term: Term) -> Option<usize> {
        self.terms.iter().position(|one| one.term == term)
    }
}

/// How near a known word is to a wrong one: the number of letters to change, add, remove or exchange, at most 2. `None`
/// if it is not near.
pub fn near_words(wrong: &str, known: &str) -> Option<usize> {
    let (one, other) = (wrong.len(), known.len());
    if one < SHORTEST || one.abs_diff(other) > NEAR || wrong == known {
        return None;
    }
    let most = if one < SHORTEST * 2 - 1 { 1 } else { NEAR };
    let distance = strsim::damerau_levenshtein(wrong, known);
    (distance <= most).then_some(distance)
}
