//! The passage of a text that answers a question best: the passage with the most words of the question, where these
//! words are nearest to each other.

use super::question::Question;
use super::terms::{Form, Tokenizer};
use crate::search::excerpt::Excerpt;
use std::collections::BTreeSet;
use std::ops::Range;

/// The longest span of a passage, in bytes of the text.
const WINDOW: usize = 170;
/// The most occurrences in a text that are compared. A text with more occurrences has the words everywhere, so further
/// occurrences would change nothing.
const MOST_PLACES: usize = 1 << 16;

/// An occurrence of a word of the question in a text.
#[derive(Debug, Clone)]
struct Place {
    span: Range<usize>,
    /// The index of the term in the question; `None` for a stop word.
    term: Option<usize>,
    position: u32,
    form: Form,
}

/// The best passage of a text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Passage {
    /// The spans of its words in bytes, ascending and disjoint.
    pub places: Vec<Range<usize>>,
    /// The sum of the weights of its terms.
    pub weight: f64,
    /// The length of the longest run of words that follow each other in the text as they do in the question. The run
    /// may be anywhere in the text.
    pub run: usize,
    /// Whether this run has all words of the question, as they were typed.
    pub is_phrase: bool,
    /// The number of words between the first and the last word of the passage.
    pub extent: u32,
    /// The number of different terms in the passage.
    pub terms: usize,
    /// The number of these terms that occur in the passage as words, and not only as parts of identifiers.
    pub uncut: usize,
    /// The positions of the words of the question that the passage has only as parts of other words, ascending.
    pub inside: Vec<usize>,
}

/// Finds passages in texts. The memory is used again for each text.
pub struct Reader<'q> {
    question: &'q Question,
    /// The weight of each term of the question.
    weights: Vec<f64>,
    tokenizer: Tokenizer,
    places: Vec<Place>,
    /// For each word of the question: the position where it was seen last, and the length of the run
    /// that ends there.
    runs: Vec<(u32, usize)>,
}

impl<'q> Reader<'q> {
    /// `weights` has the weight of each term of the question.
    pub fn new(question: &'q Question, weights: Vec<f64>) -> Self {
        Self {
            question,
            weights,
            tokenizer: Tokenizer::default(),
            places: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// The best passage of a text; `None` if the text has no word of the question that counts.
    pub fn passage(&mut self, text: &str) -> Option<Passage> {
        let run = self.find(text);
        let best = self.best()?;
        let places = self.places.get(best.clone()).unwrap_or_default();
        let mut seen = vec![None; self.weights.len()];
        for place in places {
            if let Some(seen) = place.term.and_then(|term| seen.get_mut(term)) {
                *seen = Some(*seen == Some(true) || place.form != Form::Part);
            }
        }
        let weights = self.weights.iter().zip(&seen);
        let weight = weights
            .filter(|(_, seen)| seen.is_some())
            .map(|(weight, _)| weight);
        let of_terms = self.question.terms().iter().zip(&seen);
        let inside = of_terms.filter(|(term, seen)| term.is_inside && seen.is_some());
        let inside: BTreeSet<usize> = inside.map(|(term, _)| term.word).collect();
        let positions = places.iter().map(|place| place.position);
        let first = positions.clone().min().unwrap_or_default();
        Some(Passage {
            weight: weight.sum(),
            run,
            is_phrase: self.question.is_phrase(run),
            extent: positions.max().unwrap_or_default() - first,
            terms: seen.iter().flatten().count(),
            uncut: seen.iter().flatten().filter(|is_uncut| **is_uncut).count(),
            places: disjoint(places.iter().map(|place| place.span.clone())),
            inside: inside.into_iter().collect(),
        })
    }

    /// Finds the occurrences of the question's words. Returns the length of the longest run of these words.
    fn find(&mut self, text: &str) -> usize {
        let Self {
            question,
            tokenizer,
            places,
            runs,
            ..
        } = self;
        places.clear();
        runs.clear();
        runs.resize(question.len(), (u32::MAX, 0));
        let mut longest = 0;
        tokenizer.each(text, |token| {
            let of_words = question.places(token.term);
            let term = question.number(token.term);
            if of_words.is_empty() && term.is_none() {
                return;
            }
            if token.form != Form::Whole {
                // The words of the token are handled from the last to the first, so that a run which ends at this token
                // does not also begin at it.
                for word in of_words.iter().rev() {
                    let before = word.checked_sub(1).and_then(|before| runs.get(before));
                    let step = question.step(*word);
                    let before = before.filter(|(at, _)| at.wrapping_add(step) == token.position);
                    let run = before.map_or(0, |(_, run)| *run) + 1;
                    longest = longest.max(run);
                    if let Some(own) = runs.get_mut(*word) {
                        *own = (token.position, run);
                    }
                }
            }
            if places.len() < MOST_PLACES {
                let inside = term.and_then(|term| question.part_of(term, token));
                places.push(Place {
                    term,
                    position: token.position,
                    form: inside.as_ref().map_or(token.form, |_| Form::Part),
                    span: inside.unwrap_or_else(|| token.span.clone()),
                });
            }
        });
        longest
    }

    /// The occurrences in the best passage. The best passage has the most weight. Of passages with equal weight, the
    /// shortest is the best, and of equally short ones the first.
    fn best(&self) -> Option<Range<usize>> {
        let mut counts = vec![0_u32; self.weights.len()];
        let weight_of = |term: usize| self.weights.get(term).copied().unwrap_or_default();
        let (mut weight, mut first) = (0.0, 0);
        let mut best: Option<(f64, usize, Range<usize>)> = None;
        for (last, place) in self.places.iter().enumerate() {
            if let Some(term) = place.term
                && let Some(count) = counts.get_mut(term)
            {
                weight += if *count == 0 { weight_of(term) } else { 0.0 };
                *count += 1;
            }
            // Drop words at the start that occur again later in the passage, or that are too far from
            // its end.
            while let Some(start) = self.places.get(first).filter(|_| first < last) {
                let is_far = place.span.end.saturating_sub(start.span.start) > WINDOW;
                let count = start.term.and_then(|term| counts.get_mut(term));
                let is_needed = count.as_ref().is_some_and(|count| **count == 1);
                if is_needed && !is_far {
                    break;
                }
                if let Some(count) = count {
                    *count = count.saturating_sub(1);
                    weight -= if *count == 0 {
                        start.term.map_or(0.0, weight_of)
                    } else {
                        0.0
                    };
                }
                first += 1;
            }
            let start = self.places.get(first).map_or(0, |start| start.span.start);
            let len = place.span.end.saturating_sub(start);
            let is_better = best.as_ref().is_none_or(|(most, least, _)| {
                weight > most + 1e-9 || weight > most - 1e-9 && len < *least
            });
            if place.term.is_some() && is_better {
                best = Some((weight, len, first..last + 1));
            }
        }
        best.map(|(.., places)| places)
    }

    /// The excerpt of a text around a passage, with marks on all words of the question that it shows.
    pub fn excerpt(&mut self, text: &str, passage: &Passage) -> Excerpt {
        let first = passage.places.first().map_or(0, |place| place.start);
        let last = passage.places.last().map_or(first, |place| place.end);
        // Only words near the passage get marks, since the excerpt shows no other words.
        let near = self.places.iter().filter(|place| place.term.is_some());
        let marks = near.map(|place| place.span.clone());
        let marks = marks.filter(|span| span.start + 4096 > first && span.start < last + 4096);
        Excerpt::around(text, first, disjoint(marks))
    }
}

/// The ranges in order; overlapping ranges are joined.
fn disjoint(spans: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = spans.collect();
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut all: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => all.push(span),
        }
    }
    all
}
