//! Counts the terms of a question in all sessions, from the cache where it has them, and takes the best entries.

use super::counts::{CountedEntry, Counter, Counts, Posting};
use super::kept::KeptCounts;
use super::request::{AskRequest, fact};
use crate::request::SearchRequest;
use hashbrown::HashSet;
use std::cmp::Reverse;
use std::ops::ControlFlow;
use treelined_core::entry::ARCHIVED;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::search::BranchFilter;
use treelined_core::search::ask::{
    Corpus, Term, TermCount, UnitCounts, bounded_weight, recency, term_score, together, unit_score,
};
use treelined_core::timestamp::Millis;
use treelined_files::cache::Cache;
use treelined_files::cancel::Cancel;
use treelined_files::os::file::{Location, Status};
use treelined_files::os::handle::HandleAccess;
use treelined_files::parallel::{self, ThreadPlan};

const MAX_THREADS: usize = 8;
/// The most entries of one session that are looked at closely, and of all.
const OF_SESSION: usize = 8;
const OF_ALL: usize = 240;

/// A session file with the counts of a question's terms.
pub(super) struct CountedFile {
    /// The number of the file.
    pub number: usize,
    /// Bytes that were read because the cache did not have them.
    pub scanned: u64,
    /// Everything in them, if they were few; to be kept.
    pub read: Option<Counts>,
    corpus: Corpus,
    /// Of the whole session, by term.
    session: Vec<UnitCounts>,
    /// Of each branch that has a term, by term.
    branches: Vec<UnitCounts>,
    /// Whether an entry archives a branch.
    has_archive: bool,
    /// The entries that have a term and pass the filters.
    found: Vec<FoundEntry>,
    /// By entry and term.
    weights: Vec<u8>,
    count: Vec<TermCount>,
}

struct FoundEntry {
    entry: CountedEntry,
    /// Where its weights begin.
    at: usize,
}

/// An entry to look at closely.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// The number of the file.
    pub file: usize,
    pub offset: u64,
    /// What its own words give it.
    pub own: f64,
    /// What the words of all entries of its session give it together.
    pub together: f64,
}

impl Candidate {
    fn score(&self) -> f64 {
        self.own + self.together
    }
}

/// What is known of all files.
pub(super) struct Gathered {
    pub candidates: Vec<Candidate>,
    pub corpus: Corpus,
    /// By term.
    pub counts: Vec<TermCount>,
    /// The entries that have a term, and the sessions of these.
    pub entries: u64,
    pub sessions: u64,
    /// The entries found in each file.
    pub of_file: Vec<u64>,
}

/// Reads the counts of one file.
pub(super) struct Gatherer<'r> {
    pub request: &'r AskRequest,
    pub cache: Option<&'r Cache>,
    pub cancel: &'r Cancel,
    /// Whether all terms of the lines that the cache lacks are counted, to be kept.
    pub reads_all: bool,
}

impl Gatherer<'_> {
    /// The counts of a file; `None` if its session is not in the directory of the request.
    pub(super) fn file(
        &self,
        number: usize,
        location: &Location,
        status: Status,
    ) -> Result<Option<CountedFile>> {
        let terms: Vec<Term> = self
            .request
            .question
            .terms()
            .iter()
            .map(|one| one.term)
            .collect();
        let facts = self.request.facts();
        let archives = archives();
        let looked_up = || terms.iter().chain(&facts).chain([&archives]);
        let kept = self.cache.and_then(|cache| KeptCounts::open(cache, status));
        let is_current = kept
            .as_ref()
            .is_some_and(|kept| kept.status == status && kept.fingerprint.end() == status.size);
        let failed = |error: &std::io::Error| match error.kind() {
            std::io::ErrorKind::Interrupted => Error::cancelled(),
            _ => Error::io(&format!("read {}", location.path().display()), error),
        };
        let (kept, file) = match is_current {
            true => (kept, None),
            false => {
                let file = location.folder.file(&location.name, HandleAccess::Read);
                let file = file?;
                let still = kept.filter(|kept| kept.fingerprint.matches(&file, status));
                (still, Some(file))
            }
        };
        let of_kept = kept.as_ref().and_then(|kept| of_kept(kept, looked_up()));
        let start = match (&of_kept, &kept) {
            (Some(_), Some(kept)) => kept.fingerprint.end(),
            _ => 0,
        };
        let before = of_kept.unwrap_or_default();
        let (is_whole, scanned) = (start == 0, status.size.saturating_sub(start));
        let counts = match file {
            None if start > 0 => before,
            file => {
                let opened = || location.folder.file(&location.name, HandleAccess::Read);
                let file = file.map_or_else(opened, Ok)?;
                let only: HashSet<Term> = looked_up().copied().collect();
                let reads_all = self.reads_all && is_whole;
                let counter = Counter::new((!reads_all).then_some(&only), before);
                let counts = counter.read(&file, start..status.size, self.cancel);
                counts.map_err(|error| failed(&error))?
            }
        };
        let cwd = counts.cwd.as_deref().unwrap_or_default();
        if !self.request.filters.takes_directory(cwd) {
            return Ok(None);
        }
        let mut counted = self.counted(number, &counts, &terms, &facts);
        counted.scanned = scanned;
        counted.read = (self.reads_all && is_whole && scanned > 0).then_some(counts);
        Ok(Some(counted))
    }

    fn counted(
        &self,
        number: usize,
        counts: &Counts,
        terms: &[Term],
        facts: &[Term],
    ) -> CountedFile {
        let (entries, of_terms) = (&counts.entries, terms.len());
        let texts = entries.iter().filter(|entry| entry.terms > 0);
        let corpus = Corpus {
            entries: texts.clone().count() as u64,
            sessions: 1,
            branches: u64::from(counts.branches),
            terms: texts.map(|entry| u64::from(entry.terms)).sum(),
        };
        let mut weights = vec![0_u8; entries.len() * of_terms];
        let of_session = UnitCounts {
            weight: 0,
            terms: corpus.terms,
        };
        let mut session = vec![of_session; of_terms];
        let mut branches = vec![UnitCounts::default(); counts.branches as usize * of_terms];
        let mut count = vec![TermCount::default(); of_terms];
        let fields = self.request.filters.fields;
        for (column, term) in terms.iter().enumerate() {
            for posting in counts.postings.get(term).map_or(&[][..], Vec::as_slice) {
                let row = posting.entry as usize;
                let Some(entry) = entries.get(row) else {
                    continue;
                };
                let bounded = bounded_weight(posting.weight, posting.fields);
                let weight = u64::from(bounded);
                let branch = entry.branch as usize * of_terms + column;
                if let Some(branch) = branches.get_mut(branch) {
                    count_in(&mut count, column, |count| {
                        count.branches += u64::from(branch.weight == 0);
                    });
                    branch.weight += weight;
                }
                if let Some(session) = session.get_mut(column) {
                    session.weight += weight;
                }
                count_in(&mut count, column, |count| count.entries += 1);
                if fields.has_any(posting.fields)
                    && let Some(weight) = weights.get_mut(row * of_terms + column)
                {
                    *weight = bounded;
                }
            }
        }
        for (count, session) in count.iter_mut().zip(&session) {
            count.sessions = u64::from(session.weight > 0);
        }
        for entry in entries {
            let at = entry.branch as usize * of_terms;
            for branch in branches.get_mut(at..at + of_terms).unwrap_or_default() {
                branch.terms += u64::from(entry.terms);
            }
        }
        CountedFile {
            number,
            scanned: 0,
            read: None,
            found: self.found(counts, facts, &weights, of_terms),
            corpus,
            session,
            branches,
            weights,
            count,
            has_archive: counts.postings.contains_key(&archives()),
        }
    }

    /// The entries with a term that pass the filters of which the counts know.
    fn found(
        &self,
        counts: &Counts,
        facts: &[Term],
        weights: &[u8],
        of_terms: usize,
    ) -> Vec<FoundEntry> {
        let of_facts: Vec<&[Posting]> = facts
            .iter()
            .map(|fact| counts.postings.get(fact).map_or(&[][..], Vec::as_slice))
            .collect();
        let mut found = Vec::new();
        for (row, entry) in counts.entries.iter().enumerate() {
            let at = row * of_terms;
            let own = weights.get(at..at + of_terms).unwrap_or_default();
            if own.iter().all(|weight| *weight == 0) {
                continue;
            }
            let has = |postings: &&[Posting]| {
                let found = postings.binary_search_by_key(&row, |one| one.entry as usize);
                found.is_ok()
            };
            let is_in_time = entry
                .at
                .is_none_or(|at| self.request.filters.takes_time(at));
            if is_in_time && of_facts.iter().all(has) {
                found.push(FoundEntry { entry: *entry, at });
            }
        }
        found
    }
}

/// The fact of an entry that archives a branch.
fn archives() -> Term {
    fact("type", ARCHIVED)
}

/// What the cache has of these terms; `None` if it is damaged.
fn of_kept<'t>(kept: &KeptCounts, terms: impl Iterator<Item = &'t Term>) -> Option<Counts> {
    let mut counts = Counts {
        cwd: kept.cwd.clone(),
        branches: kept.branches,
        end: kept.fingerprint.end(),
        entries: kept.entries()?,
        ..Counts::default()
    };
    for term in terms {
        let postings = kept.postings(*term)?;
        if !postings.is_empty() {
            counts.postings.insert(*term, postings);
        }
    }
    Some(counts)
}

fn count_in(counts: &mut [TermCount], column: usize, change: impl FnOnce(&mut TermCount)) {
    if let Some(count) = counts.get_mut(column) {
        change(count);
    }
}

/// The counts of all files, in order; `failed` receives those that cannot be read.
pub(super) fn all(
    gatherer: &Gatherer<'_>,
    files: &[(Location, Status)],
    mut failed: impl FnMut(&Location, Kind),
    mut progress: impl FnMut(u64),
) -> Result<Vec<CountedFile>> {
    let mut counted = Vec::new();
    let count = |(): &mut (), number: usize| {
        let (location, status) = files.get(number)?;
        Some((number, gatherer.file(number, location, *status)))
    };
    let plan = ThreadPlan::up_to(if files.len() < 4 { 1 } else { MAX_THREADS });
    let plan = ThreadPlan {
        ahead: plan.ahead * 4,
        ..plan
    };
    let mut passed = 0;
    let done = parallel::map_in_order(
        files.len(),
        plan,
        || (),
        count,
        |one| {
            let Some((number, result)) = one else {
                return ControlFlow::Continue(());
            };
            passed += files.get(number).map_or(0, |(_, status)| status.size);
            progress(passed);
            match (result, files.get(number)) {
                (Ok(one), _) => counted.extend(one),
                (Err(error), Some((location, _))) if error.kind != Kind::Cancelled => {
                    failed(location, error.kind);
                }
                (Err(_), _) => return ControlFlow::Break(()),
            }
            match gatherer.cancel.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        },
    );
    match done {
        ControlFlow::Continue(()) => Ok(counted),
        ControlFlow::Break(()) => Err(Error::cancelled()),
    }
}

/// The best entries of all files.
pub(super) fn best(
    request: &AskRequest,
    files: &[CountedFile],
    of_files: usize,
    now: Millis,
) -> Gathered {
    let terms = request.question.terms();
    let mut corpus = Corpus::default();
    let mut counts = vec![TermCount::default(); terms.len()];
    for file in files {
        corpus.entries += file.corpus.entries;
        corpus.sessions += file.corpus.sessions;
        corpus.branches += file.corpus.branches;
        corpus.terms += file.corpus.terms;
        for (all, own) in counts.iter_mut().zip(&file.count) {
            all.entries += own.entries;
            all.branches += own.branches;
            all.sessions += own.sessions;
        }
    }
    let of_one = match request.filters.session {
        Some(_) => OF_ALL,
        None => OF_SESSION,
    };
    let (mut candidates, mut of_file) = (Vec::new(), vec![0; of_files]);
    for file in files {
        if let Some(of_file) = of_file.get_mut(file.number) {
            *of_file = file.found.len() as u64;
        }
        let mut own = file.candidates(request, &corpus, &counts, now);
        take_best(&mut own, of_one);
        candidates.append(&mut own);
    }
    take_best(&mut candidates, OF_ALL);
    Gathered {
        candidates,
        corpus,
        counts,
        entries: files.iter().map(|file| file.found.len() as u64).sum(),
        sessions: files.iter().filter(|file| !file.found.is_empty()).count() as u64,
        of_file,
    }
}

impl CountedFile {
    /// The places of the entries that were found, ascending, if only their session's tree tells which pass the filters.
    pub(super) fn to_filter(&self, filters: &SearchRequest) -> Option<Vec<u64>> {
        let has_times = filters.since.is_some() || filters.until.is_some();
        let lacks_time = |found: &FoundEntry| found.entry.at.is_none();
        let is_open = filters.branches != BranchFilter::All
            || filters.without.is_some()
            || self.has_archive && !filters.archived
            || has_times && self.found.iter().any(lacks_time);
        let offsets = self.found.iter().map(|found| found.entry.offset);
        (is_open && !self.found.is_empty()).then(|| offsets.collect())
    }

    /// Keeps the found entries at these places, which ascend.
    pub(super) fn keep(&mut self, places: &[u64]) {
        let found = &mut self.found;
        found.retain(|found| places.binary_search(&found.entry.offset).is_ok());
    }

    fn candidates(
        &self,
        request: &AskRequest,
        corpus: &Corpus,
        counts: &[TermCount],
        now: Millis,
    ) -> Vec<Candidate> {
        // The best that any entry has of each term.
        let mut best = vec![0.0; request.question.terms().len()];
        let found = self.found.iter();
        let mut candidates: Vec<Candidate> = found
            .map(|found| Candidate {
                file: self.number,
                offset: found.entry.offset,
                own: self.score(request, corpus, counts, found, &mut best)
                    * recency(found.entry.at.unwrap_or(0), now),
                together: 0.0,
            })
            .collect();
        let together = together(best);
        for candidate in &mut candidates {
            candidate.together = together;
        }
        candidates
    }

    fn score(
        &self,
        request: &AskRequest,
        corpus: &Corpus,
        counts: &[TermCount],
        found: &FoundEntry,
        best: &mut [f64],
    ) -> f64 {
        let terms = request.question.terms();
        let weights = self.weights.get(found.at..).unwrap_or_default();
        let branch = found.entry.branch as usize * terms.len();
        let branches = self.branches.get(branch..).unwrap_or_default();
        let of_terms = terms.iter().zip(counts).zip(weights);
        let of_terms = of_terms.zip(self.session.iter().zip(branches));
        of_terms
            .zip(best)
            .map(|((((term, count), weight), (session, branch)), best)| {
                let entry = UnitCounts {
                    weight: u64::from(*weight),
                    terms: u64::from(found.entry.terms),
                };
                let of_entry = term_score(corpus, *count, entry);
                *best = best.max(term.weight * of_entry);
                term.weight * (of_entry + unit_score(corpus, *count, *session, *branch))
            })
            .sum()
    }
}

/// Keeps so many of the highest score, in order.
fn take_best(candidates: &mut Vec<Candidate>, most: usize) {
    let order = |one: &Candidate, other: &Candidate| {
        let by_score =
            Reverse(OrderedScore(one.score())).cmp(&Reverse(OrderedScore(other.score())));
        by_score.then_with(|| (one.file, one.offset).cmp(&(other.file, other.offset)))
    };
    if candidates.len() > most {
        candidates.select_nth_unstable_by(most, order);
        candidates.truncate(most);
    }
    candidates.sort_unstable_by(order);
}

/// A score that can be sorted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OrderedScore(pub f64);

impl Eq for OrderedScore {}

impl PartialOrd for OrderedScore {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedScore {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
