//! Counts the terms of a question in all sessions, and takes the best entries. Counts that are in the cache are read
//! from there.

use super::counted::{Candidate, CountedFile};
use super::counts::{self, Counter, Counts, labels};
use super::kept::{self, KeptCounts};
use super::request::AskRequest;
use super::segments::{FoundSession, FoundTerms, Segments};
use hashbrown::HashSet;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::time::Instant;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::search::ask::{Corpus, Term, TermCount, TermScorer};
use treelined_core::timestamp::Millis;
use treelined_files::cache::Cache;
use treelined_files::cancel::Cancel;
use treelined_files::os::file::{Location, Status};
use treelined_files::os::handle::HandleAccess;
use treelined_files::parallel::{self, ThreadPlan};

const MAX_THREADS: usize = 8;
/// The number of files that one thread counts at a time.
const PART: usize = 16;
/// The most candidates of one session, and of all sessions together.
const OF_SESSION: usize = 8;
const OF_ALL: usize = 240;
/// The most additional candidates that have all words of the question. They may have the question as a phrase.
const OF_PHRASE: usize = 64;

/// The counts of all files together.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub candidates: Vec<Candidate>,
    pub corpus: Corpus,
    /// The counts of each term.
    pub counts: Vec<TermCount>,
    /// The number of entries that have a term, and the number of sessions with such entries.
    pub entries: u64,
    pub sessions: u64,
    /// The number of entries that were found in each file.
    pub of_file: Vec<u64>,
    /// The score of a phrase: an entry that has the question as a phrase comes before all others.
    pub of_phrase: f64,
}

/// Reads the counts of one file.
pub(super) struct Gatherer<'r> {
    pub request: &'r AskRequest,
    pub cache: Option<&'r Cache>,
    pub cancel: &'r Cancel,
    /// Whether all terms are counted in the files without counts, so that the cache can keep them.
    pub reads_all: bool,
    /// The time after which no more lines are read. If it is set, the newest file is read first, and the counts of each
    /// file are kept at once, so that a later question finds more.
    pub until: Option<Instant>,
    /// The counts that were read for this question before.
    pub read: &'r HashMap<usize, Counts>,
    /// The terms that were found in the segments.
    pub found: FoundTerms<'r>,
    pub segments: &'r Segments,
}

impl Gatherer<'_> {
    /// The counts of a file; `None` if its session is not in the directory of the request.
    fn file(
        &self,
        number: usize,
        location: &Location,
        status: Status,
    ) -> Result<Option<CountedFile>> {
        match self.in_segment(number, status) {
            Some(found) => Ok(found),
            None => self.in_own_file(number, location, status),
        }
    }

    /// Like `file`, from the segments only. The outer `None` says that no segment has the session in its present state.
    fn in_segment(&self, number: usize, status: Status) -> Option<Option<CountedFile>> {
        let row = self.segments.row(status)?;
        let session = self.segments.session(row)?;
        let (filters, cwd) = (&self.request.filters, session.cwd.as_deref());
        if !filters.takes_directory(cwd.unwrap_or_default()) {
            return Some(None);
        }
        let mut counted = match self.found.session(row)? {
            FoundSession::Without => CountedFile::without(number, session.corpus),
            FoundSession::With(counts) => CountedFile::of(number, &counts, filters),
        };
        counted.row = Some(row);
        Some(Some(counted))
    }

    /// Like `file`, from the kept counts of the session. Lines without counts are read from the session file.
    fn in_own_file(
        &self,
        number: usize,
        location: &Location,
        status: Status,
    ) -> Result<Option<CountedFile>> {
        let (terms, facts) = (self.request.terms(), self.request.facts());
        let filters = &*self.request.filters;
        if let Some(read) = self.read.get(&number) {
            let counts = read.of_terms(&terms, &facts);
            return Ok(Some(CountedFile::of(number, &counts, filters)));
        }
        let labels = labels();
        let looked_up = || terms.iter().chain(&facts).chain([&labels]);
        let kept = self.cache.and_then(|cache| KeptCounts::open(cache, status));
        let is_current = kept.as_ref().is_some_and(|kept| kept.is_current(status));
        let (kept, file) = match is_current {
            true => (kept, None),
            false => {
                let file = location.folder.file(&location.name, HandleAccess::Read)?;
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
        let is_whole = start == 0;
        let counts = match file {
            None if !is_whole => before,
            file => {
                let opened = || location.folder.file(&location.name, HandleAccess::Read);
                let file = file.map_or_else(opened, Ok)?;
                let only: HashSet<Term> = looked_up().copied().collect();
                let only = (!self.counts_all(is_whole)).then_some(&only);
                let counter = Counter::new(only, before);
                match self.rest(counter, start, &file, location, status)? {
                    Some(counts) => counts,
                    None => return Ok(None),
                }
            }
        };
        let cwd = counts.cwd.as_deref().unwrap_or_default();
        if !filters.takes_directory(cwd) {
            return Ok(None);
        }
        let mut counted = CountedFile::of(number, &counts.of_terms(&terms, &facts), filters);
        let end = self.until.map_or(status.size, |_| counts.end);
        counted.scanned = end.saturating_sub(start);
        counted.is_unread = end < status.size;
        let is_read = self.reads_all && is_whole && counted.scanned > 0 && !counted.is_unread;
        counted.read = is_read.then_some(counts);
        Ok(Some(counted))
    }

    /// Whether all terms of a file are counted. `is_whole` says whether the file is read from its start.
    fn counts_all(&self, is_whole: bool) -> bool {
        is_whole && (self.reads_all || self.until.is_some())
    }

    /// Counts the lines of a file from `start` on; `None` if its session is not in the directory of the request.
    fn rest(
        &self,
        counter: Counter<'_>,
        start: u64,
        file: &File,
        location: &Location,
        status: Status,
    ) -> Result<Option<Counts>> {
        let failed = |error: &std::io::Error| match error.kind() {
            std::io::ErrorKind::Interrupted => Error::cancelled(),
            _ => Error::io(&format!("read {}", location.path().display()), error),
        };
        let filters = &self.request.filters;
        // The header has the directory of the session, which decides whether the other lines must be read.
        if start == 0 && filters.leaves_directories_out() {
            let directory = counts::directory(file, status.size);
            let directory = directory.map_err(|error| failed(&error))?;
            if !filters.takes_directory(directory.as_deref().unwrap_or_default()) {
                return Ok(None);
            }
        }
        let is_kept = start == 0 && self.until.is_some();
        let end = match is_kept {
            true => status.size.min(kept::MOST),
            false => status.size,
        };
        let counter = counter.until(self.until);
        let counts = counter.read(file, start..end, self.cancel);
        let counts = counts.map_err(|error| failed(&error))?;
        if let Some(cache) = self.cache.filter(|_| is_kept && counts.end > 0)
            && let Err(error) = kept::keep(cache, location, status, &counts)
        {
            tracing::info!(%error, "the counts of terms could not be kept");
        }
        Ok(Some(counts))
    }
}

/// The kept counts of these terms; `None` if they are damaged.
fn of_kept<'t>(kept: &KeptCounts, terms: impl Iterator<Item = &'t Term>) -> Option<Counts> {
    let (entries, records) = kept.entries()?;
    let mut counts = Counts {
        cwd: kept.cwd.clone(),
        branches: kept.branches,
        has_archive: kept.has_archive,
        end: kept.fingerprint.end(),
        entries,
        records,
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

/// The counts of all files, in order. `failed` receives the files that cannot be read.
pub(super) fn all(
    gatherer: &Gatherer<'_>,
    files: &[(Location, Status)],
    mut failed: impl FnMut(&Location, Kind),
    mut progress: impl FnMut(u64),
) -> Result<Vec<CountedFile>> {
    let mut counted = Vec::new();
    let mut order: Vec<(usize, &(Location, Status))> = files.iter().enumerate().collect();
    if gatherer.until.is_some() {
        order.sort_by_key(|(_, (_, status))| Reverse(status.modified));
    }
    let count = |(): &mut (), part: usize| {
        let files = order.iter().skip(part * PART).take(PART);
        let count = |(number, (location, status)): &(usize, &(Location, Status))| {
            (*number, gatherer.file(*number, location, *status))
        };
        files.map(count).collect::<Vec<_>>()
    };
    let parts = files.len().div_ceil(PART);
    let plan = ThreadPlan::up_to(if parts < 2 { 1 } else { MAX_THREADS });
    let plan = ThreadPlan {
        ahead: plan.ahead * 2,
        ..plan
    };
    let mut passed = 0;
    let mut take = |(number, result): (usize, Result<Option<CountedFile>>)| {
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
    };
    let done = parallel::map_in_order(
        parts,
        plan,
        || (),
        count,
        |part| part.into_iter().try_for_each(&mut take),
    );
    match done {
        ControlFlow::Continue(()) => Ok(counted),
        ControlFlow::Break(()) => Err(Error::cancelled()),
    }
}

/// The sizes of all files together, and the counts of each term of the question.
pub(super) fn sums(request: &AskRequest, files: &[CountedFile]) -> (Corpus, Vec<TermCount>) {
    let mut corpus = Corpus::default();
    let mut counts = vec![TermCount::default(); request.question.terms().len()];
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
    (corpus, counts)
}

/// The best entries of all files.
pub(super) fn best(
    request: &AskRequest,
    files: &[CountedFile],
    of_files: usize,
    now: Millis,
) -> Gathered {
    best_in(request, files, of_files, now, sums(request, files))
}

/// Like [`best`], with these sizes and counts of terms.
pub(super) fn best_in(
    request: &AskRequest,
    files: &[CountedFile],
    of_files: usize,
    now: Millis,
    (corpus, counts): (Corpus, Vec<TermCount>),
) -> Gathered {
    let of_one = match request.filters.session {
        Some(_) => OF_ALL,
        None => OF_SESSION,
    };
    let scorers = counts.iter().map(|count| TermScorer::new(&corpus, *count));
    let scorers: Vec<TermScorer> = scorers.collect();
    let (mut candidates, mut of_file) = (Vec::new(), vec![0; of_files]);
    for file in files {
        if let Some(of_file) = of_file.get_mut(file.number) {
            *of_file = file.entries();
        }
        let mut own = file.candidates(request, &scorers, now);
        take_best(&mut own, of_one);
        candidates.append(&mut own);
    }
    take_best(&mut candidates, OF_ALL);
    Gathered {
        candidates,
        corpus,
        counts,
        entries: of_file.iter().sum(),
        sessions: of_file.iter().filter(|entries| **entries > 0).count() as u64,
        of_file,
        of_phrase: 0.0,
    }
}

/// Keeps the `most` candidates with the highest scores. Of the other candidates that have all words of the question,
/// also keeps the [`OF_PHRASE`] highest. Sorts the kept candidates.
fn take_best(candidates: &mut Vec<Candidate>, most: usize) {
    let order = |one: &Candidate, other: &Candidate| {
        let by_score =
            Reverse(OrderedScore(one.score())).cmp(&Reverse(OrderedScore(other.score())));
        by_score.then_with(|| (one.file, one.offset).cmp(&(other.file, other.offset)))
    };
    if candidates.len() > most {
        candidates.select_nth_unstable_by(most, order);
        let mut others = candidates.split_off(most);
        others.retain(|one| one.has_all);
        others.sort_unstable_by(order);
        candidates.extend(others.into_iter().take(OF_PHRASE));
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
