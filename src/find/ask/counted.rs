//! The counts of a question's terms in one session file, the entries that have a term, and their scores.

use super::counts::{Counts, Posting, SessionCounts};
use super::entries::CountedEntry;
use super::request::AskRequest;
use super::segments::Row;
use crate::request::{FieldSet, SearchRequest};
use std::ops::Range;
use treelined_core::search::BranchFilter;
use treelined_core::search::ask::{
    Corpus, TermCount, TermScorer, UnitCounts, bounded_weight, recency, together,
};
use treelined_core::timestamp::Millis;

/// A session file with the counts of a question's terms.
pub(super) struct CountedFile {
    /// The number of the file.
    pub number: usize,
    /// Bytes that were read because the cache did not have them.
    pub scanned: u64,
    /// The counts of all terms of the file, if the search has counted them. The cache then keeps them.
    pub read: Option<Counts>,
    /// Whether the time was over before all of the file was read.
    pub is_unread: bool,
    /// The row of the file in the segments, if the counts come from there.
    pub row: Option<Row>,
    pub corpus: Corpus,
    /// The counts of the whole session, one for each term.
    session: Vec<UnitCounts>,
    /// The number of terms of each branch. A repeated term counts each time.
    branch_terms: Vec<u64>,
    /// Sorted by branch, then by term.
    branch_weights: Vec<BranchWeight>,
    /// Whether a record archives a branch, and whether the session has labels.
    has_archive: bool,
    has_labels: bool,
    /// The entries that have a term and pass the filters, in file order.
    found: Vec<FoundEntry>,
    /// The weights of the found entries, one entry after the other.
    weights: Vec<TermWeight>,
    pub count: Vec<TermCount>,
}

struct FoundEntry {
    entry: CountedEntry,
    /// The offset of the entry that a hit in this entry belongs to. A hit in a label belongs to the labelled entry.
    about: u64,
    is_label: bool,
    weights: Range<usize>,
}

/// The weight of a term of the question in an entry.
#[derive(Debug, Clone, Copy)]
struct TermWeight {
    /// The number of the term.
    term: u8,
    weight: u8,
}

/// The weight of a term of the question in a branch. Most branches have few terms, so only these terms are kept.
#[derive(Debug, Clone, Copy)]
struct BranchWeight {
    branch: u32,
    term: u8,
    weight: u32,
}

/// A term of the question in an entry.
struct FoundTerm {
    /// The number of the entry.
    row: u32,
    branch: u32,
    term: u8,
    weight: u8,
    /// Whether a searched field has the term.
    is_searched: bool,
}

/// An entry that may be a hit, by its counts. Its line is read later.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// The number of the file.
    pub file: usize,
    pub offset: u64,
    /// The score from the words of the entry.
    pub own: f64,
    /// The score from the words of all entries of the session together.
    pub together: f64,
    /// Whether its session has labels.
    pub has_labels: bool,
    /// Whether the entry has all words of the question, which may be a phrase there.
    pub has_all: bool,
}

impl Candidate {
    pub(super) fn score(&self) -> f64 {
        self.own + self.together
    }
}

impl CountedFile {
    /// A session without a term of the question.
    pub(super) fn without(number: usize, corpus: Corpus) -> Self {
        Self {
            number,
            scanned: 0,
            read: None,
            is_unread: false,
            row: None,
            corpus,
            session: Vec::new(),
            branch_terms: Vec::new(),
            branch_weights: Vec::new(),
            has_archive: false,
            has_labels: false,
            found: Vec::new(),
            weights: Vec::new(),
            count: Vec::new(),
        }
    }

    /// The entries of a session that have a term of the question and all facts.
    pub(super) fn of(number: usize, counts: &SessionCounts<'_>, filters: &SearchRequest) -> Self {
        let of_session = UnitCounts {
            weight: 0,
            terms: counts.corpus.terms,
        };
        let mut file = Self {
            session: vec![of_session; counts.terms.len()],
            branch_terms: counts.terms_of_branches(),
            has_archive: counts.has_archive,
            has_labels: !counts.labels.is_empty(),
            count: vec![TermCount::default(); counts.terms.len()],
            ..Self::without(number, counts.corpus)
        };
        let mut found = file.count_terms(counts, filters.fields);
        file.count_branches(&mut found);
        found.retain(|one| one.is_searched);
        found.sort_unstable_by_key(|one| (one.row, one.term));
        file.find(counts, filters, &found);
        file
    }

    /// Adds the entries that have a term and pass those filters that the counts can decide. A label always passes here,
    /// since the filters apply to the entry that it labels.
    fn find(&mut self, counts: &SessionCounts<'_>, filters: &SearchRequest, terms: &[FoundTerm]) {
        self.weights.reserve_exact(terms.len());
        for terms in terms.chunk_by(|one, other| one.row == other.row) {
            let Some(row) = terms.first().map(|one| one.row) else {
                continue;
            };
            let Some(entry) = counts.entries.get(row) else {
                continue;
            };
            let has = |postings: &[Posting]| {
                let found = postings.binary_search_by_key(&row, |one| one.entry);
                found.is_ok()
            };
            let is_label = has(&counts.labels);
            let is_in_time = entry.at.is_none_or(|at| filters.takes_time(at));
            let passes = is_in_time && counts.facts.iter().all(|fact| has(fact));
            if !(is_label || passes) {
                continue;
            }
            let start = self.weights.len();
            self.weights.extend(terms.iter().map(|one| TermWeight {
                term: one.term,
                weight: one.weight,
            }));
            self.found.push(FoundEntry {
                entry,
                about: entry.offset,
                is_label,
                weights: start..self.weights.len(),
            });
        }
    }

    /// Adds up the weight of each term in the session, and counts the entries that have it. Returns one item for each
    /// term of each entry.
    fn count_terms(&mut self, counts: &SessionCounts<'_>, fields: FieldSet) -> Vec<FoundTerm> {
        let postings = counts.terms.iter().map(|postings| postings.len());
        let mut found = Vec::with_capacity(postings.sum());
        let of_terms = self.session.iter_mut().zip(&mut self.count);
        for (number, (postings, (session, count))) in
            (0_u8..).zip(counts.terms.iter().zip(of_terms))
        {
            for posting in postings.iter() {
                let Some(entry) = counts.entries.get(posting.entry) else {
                    continue;
                };
                let weight = bounded_weight(posting.weight, posting.fields);
                session.weight += u64::from(weight);
                count.entries += 1;
                found.push(FoundTerm {
                    row: posting.entry,
                    branch: entry.branch,
                    term: number,
                    weight,
                    is_searched: fields.has_any(posting.fields),
                });
            }
            count.sessions = u64::from(session.weight > 0);
        }
        found
    }

    /// Adds up the weight of each term in each branch, and counts the branches that have it.
    fn count_branches(&mut self, found: &mut [FoundTerm]) {
        found.sort_unstable_by_key(|one| (one.branch, one.term));
        let is_same = |one: &FoundTerm, other: &FoundTerm| {
            (one.branch, one.term) == (other.branch, other.term)
        };
        for same in found.chunk_by(is_same) {
            let Some(FoundTerm { branch, term, .. }) = same.first() else {
                continue;
            };
            self.branch_weights.push(BranchWeight {
                branch: *branch,
                term: *term,
                weight: same.iter().map(|one| u32::from(one.weight)).sum(),
            });
            if let Some(count) = self.count.get_mut(usize::from(*term)) {
                count.branches += 1;
            }
        }
    }

    /// The number of entries that were found. An entry and its label count once.
    pub(super) fn entries(&self) -> u64 {
        let own = |found: &&FoundEntry| !found.is_label;
        let is_found = |about: u64| {
            let found = self
                .found
                .binary_search_by_key(&about, |one| one.entry.offset);
            found.is_ok()
        };
        let labels = self.found.iter().filter(|found| found.is_label);
        let labels = labels.filter(|label| !is_found(label.about)).count();
        (self.found.iter().filter(own).count() + labels) as u64
    }

    /// Keeps only the found entries that have all of these terms, which are named by their numbers.
    pub(super) fn require(&mut self, terms: &[usize]) {
        let Self { found, weights, .. } = self;
        found.retain(|found| {
            let own = weights.get(found.weights.clone()).unwrap_or_default();
            let has = |term: &usize| own.iter().any(|one| usize::from(one.term) == *term);
            terms.iter().all(has)
        });
    }

    /// The offsets of the entries that were found, ascending; `None` unless the filters need the tree of the session or
    /// the line of an entry.
    pub(super) fn to_filter(&self, request: &AskRequest) -> Option<Vec<u64>> {
        let filters = &request.filters;
        let has_times = filters.since.is_some() || filters.until.is_some();
        let lacks_time = |found: &FoundEntry| found.entry.at.is_none();
        let is_open = self.found.iter().any(|found| found.is_label)
            || filters.branches != BranchFilter::All
            || filters.without.is_some()
            || request.phrases.is_some()
            || self.has_archive && !filters.archived
            || has_times && self.found.iter().any(lacks_time);
        let offsets = self.found.iter().map(|found| found.entry.offset);
        (is_open && !self.found.is_empty()).then(|| offsets.collect())
    }

    /// Keeps only the found entries at these offsets, which ascend. The second offset of each pair is the offset of the
    /// entry that the hit belongs to.
    pub(super) fn keep(&mut self, places: &[(u64, u64)]) {
        self.found.retain_mut(|found| {
            let place = places.binary_search_by_key(&found.entry.offset, |(own, _)| *own);
            let kept = place.ok().and_then(|place| places.get(place));
            if let Some((_, about)) = kept {
                found.about = *about;
            }
            kept.is_some()
        });
    }

    /// The entries that were found, with their scores. `scorers` has the scorer of each term.
    pub(super) fn candidates(
        &self,
        request: &AskRequest,
        scorers: &[TermScorer],
        now: Millis,
    ) -> Vec<Candidate> {
        if self.found.is_empty() {
            return Vec::new();
        }
        let of_session = scorers.iter().zip(&self.session);
        let of_session: Vec<f64> = of_session.map(|(one, unit)| one.session(*unit)).collect();
        let of_phrase = request.question.of_phrase();
        // The highest score that any entry has for each term.
        let mut best = vec![0.0; request.question.terms().len()];
        let found = self.found.iter();
        let mut candidates: Vec<Candidate> = found
            .map(|found| Candidate {
                file: self.number,
                offset: found.entry.offset,
                own: self.score(request, scorers, &of_session, found, &mut best)
                    * recency(found.entry.at.unwrap_or(0), now),
                together: 0.0,
                has_labels: self.has_labels,
                has_all: of_phrase
                    .as_ref()
                    .is_some_and(|terms| self.has_all(found, terms)),
            })
            .collect();
        let together = together(best);
        for candidate in &mut candidates {
            candidate.together = together;
        }
        candidates
    }

    /// Whether an entry has all of these terms of the question.
    fn has_all(&self, found: &FoundEntry, terms: &[bool]) -> bool {
        let own = self.weights.get(found.weights.clone()).unwrap_or_default();
        let is_of = |one: &&TermWeight| terms.get(usize::from(one.term)) == Some(&true);
        own.iter().filter(is_of).count() == terms.iter().filter(|is_of| **is_of).count()
    }

    fn score(
        &self,
        request: &AskRequest,
        scorers: &[TermScorer],
        of_session: &[f64],
        found: &FoundEntry,
        best: &mut [f64],
    ) -> f64 {
        let terms = request.question.terms();
        let mut own = self.weights.get(found.weights.clone()).unwrap_or_default();
        let mut branch = self.of_branch(found.entry.branch);
        let branch_terms = self.branch_terms.get(found.entry.branch as usize);
        let of_terms = terms.iter().zip(scorers).zip(of_session.iter().zip(best));
        (0_u8..)
            .zip(of_terms)
            .map(|(number, ((term, scorer), (of_session, best)))| {
                let own = next_of(&mut own, |one| (one.term == number).then_some(one.weight));
                let branch = next_of(&mut branch, |one| {
                    (one.term == number).then_some(one.weight)
                });
                let of_entry = scorer.entry(UnitCounts {
                    weight: own.map_or(0, u64::from),
                    terms: u64::from(found.entry.terms),
                });
                let of_branch = scorer.branch(UnitCounts {
                    weight: branch.map_or(0, u64::from),
                    terms: branch_terms.copied().unwrap_or_default(),
                });
                *best = best.max(term.weight * of_entry);
                term.weight * (of_entry + (of_session + of_branch))
            })
            .sum()
    }

    /// The weights of the terms in a branch.
    fn of_branch(&self, branch: u32) -> &[BranchWeight] {
        let weights = self.branch_weights.as_slice();
        let start = weights.partition_point(|one| one.branch < branch);
        let of_branch = weights.get(start..).unwrap_or_default();
        let count = of_branch
            .iter()
            .take_while(|one| one.branch == branch)
            .count();
        of_branch.get(..count).unwrap_or_default()
    }
}

/// If `weight` returns a weight for the first item of the list, removes the item and returns the weight.
fn next_of<T, W>(list: &mut &[T], weight: impl FnOnce(&T) -> Option<W>) -> Option<W> {
    let (first, rest) = list.split_first()?;
    let weight = weight(first)?;
    *list = rest;
    Some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::request;
    use treelined_core::search::Mode;
    use treelined_core::search::ask::Term;

    /// A table of all branches and all words once took 1 GiB for a million roots and 64 words.
    #[test]
    fn memory_follows_from_the_terms_that_are_there() {
        const ROOTS: u32 = 10_000;
        let terms: Vec<Term> = (0..64).map(Term).collect();
        let mut counts = Counts {
            branches: ROOTS,
            ..Counts::default()
        };
        for number in 0..ROOTS {
            counts.entries.push(CountedEntry {
                offset: u64::from(number),
                at: None,
                terms: 1,
                branch: number,
                id: u64::from(number),
                has_child: false,
            });
            let of_term = counts.postings.entry(Term(u64::from(number % 64)));
            of_term.or_default().push(Posting {
                entry: number,
                weight: 8,
                fields: 1,
            });
        }
        let filters = request("x", Mode::Words);
        let file = CountedFile::of(0, &counts.of_terms(&terms, &[]), &filters);
        assert_eq!(file.branch_weights.len(), ROOTS as usize);
        assert_eq!(file.weights.len(), ROOTS as usize);
        assert_eq!(file.entries(), u64::from(ROOTS));
        assert_eq!(file.count[1].branches, file.count[1].entries);
    }
}
