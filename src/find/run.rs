//! A running search: batches of files are scanned, then the sessions that may be on the page are opened.

use super::file::{SearchedFile, SearchedPart};
use super::index::IndexSettings;
use super::outcome::{SearchOutcome, SearchWatch, Totals, UnreadFile};
use super::page::{Ceiling, Key, Page};
use super::request::SearchRequest;
use super::scan::{FileMatches, FileRange, MatchingLine, Scanner};
use super::session::{self, SessionHits};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::search::BranchFilter;
use treelined_files::cancel::Cancel;
use treelined_files::parallel::{self, ThreadPlan};
use treelined_files::store::{Store, listing};

/// The most threads that read files.
const MAX_THREADS: usize = 16;
/// If the files have fewer bytes than this together, one thread reads them.
const FOR_ONE_THREAD: u64 = 1 << 20;
/// The bytes that one thread scans at a time.
const RANGE: u64 = 4 << 20;
/// The least cost of a part of a file, in bytes. To open a file takes as long as to scan this number of bytes.
const SMALLEST_PART: u64 = 16 << 10;
/// The bytes of the first batch. Its sessions are opened after the batch was scanned, so the first hits arrive then.
const FIRST_BATCH: u64 = 32 << 20;
/// The most bytes of a later batch. Each batch is twice as large as the batch before, since threads wait for each other
/// at the end of a batch.
const LARGEST_BATCH: u64 = 512 << 20;
/// If the index says which parts are best, this number of bytes is scanned before the first sessions are opened. Until
/// then, better hits would displace most of the hits that were found.
const BEFORE_OPENING: u64 = 64 << 20;

/// The threads for files that have `bytes` bytes together.
fn plan_for(bytes: u64) -> ThreadPlan {
    match bytes < FOR_ONE_THREAD {
        true => ThreadPlan::up_to(1),
        false => ThreadPlan::up_to(MAX_THREADS),
    }
}

/// A running search.
pub(super) struct SearchRun<'s> {
    store: &'s Store,
    request: &'s SearchRequest,
    cancel: &'s Cancel,
    page: Page,
    totals: Totals,
    partial: Vec<UnreadFile>,
}

/// A file, and its parts that are scanned together.
struct FileBatch<'f> {
    /// The number of the file.
    number: usize,
    file: &'f SearchedFile,
    /// The spans of the parts, ascending and disjoint.
    spans: Vec<Range<u64>>,
    /// The number of parts in these spans.
    parts: usize,
}

/// The state of a file in a search.
#[derive(Default)]
struct FileProgress {
    /// The number of parts that are not scanned yet.
    left: usize,
    /// The matches in the scanned parts; empty once all parts are scanned.
    found: FileMatches,
    /// The number of hits among these matches.
    hits: u64,
    /// Whether its session is in the directory of the request; `None` if that is unknown.
    is_in_directory: Option<bool>,
}

/// A file with matching lines.
struct MatchedFile<'f> {
    number: usize,
    file: &'f SearchedFile,
    found: FileMatches,
    /// The keys of all hits, if the matching lines alone decide them.
    keys: Option<Vec<Key>>,
}

/// A part of a file that must be scanned.
struct RankedPart<'f> {
    /// The number of the file.
    number: usize,
    part: &'f SearchedPart,
    rank: Rank,
}

/// The order in which parts are scanned: first the parts whose hits are unknown, then the parts that may have the best
/// hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    ceiling: Reverse<Ceiling>,
    /// The number of the file. If the best possible hit of the part is known, this is the number of the file in the
    /// order of paths.
    number: usize,
    offset: u64,
}

impl PartialEq for RankedPart<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for RankedPart<'_> {}

impl PartialOrd for RankedPart<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RankedPart<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}

impl RankedPart<'_> {
    /// The first key that a hit of the part can have.
    fn first_key(&self, files: &[SearchedFile]) -> Option<Key> {
        let path = files.get(self.number)?.location.path();
        let path: Arc<str> = path.to_string_lossy().into();
        Some(self.part.ceiling.first_key(&path, self.part.span.start))
    }
}

/// The parts of files. The heap returns first the parts that may have the best hits. A page needs few of many parts, so
/// they are not sorted as a whole.
fn best_first(files: &[SearchedFile]) -> BinaryHeap<Reverse<RankedPart<'_>>> {
    let path = |file: &SearchedFile| file.location.path().to_string_lossy().into_owned();
    let paths: Vec<String> = files.iter().map(path).collect();
    let mut sorted: Vec<&String> = paths.iter().collect();
    sorted.sort_unstable();
    let mut parts = Vec::new();
    for (number, (file, path)) in files.iter().zip(&paths).enumerate() {
        let place = sorted.partition_point(|other| *other < path);
        parts.extend(file.parts.iter().map(|part| {
            // Of parts with unknown hits, the part of the file that was changed last comes first. Other equal parts
            // come in the order of paths, as their hits do.
            let of_file = if part.ceiling.is_known() {
                place
            } else {
                number
            };
            Reverse(RankedPart {
                number,
                part,
                rank: Rank {
                    ceiling: Reverse(part.ceiling),
                    number: of_file,
                    offset: part.span.start,
                },
            })
        }));
    }
    parts.into()
}

impl<'s> SearchRun<'s> {
    pub(super) fn new(store: &'s Store, request: &'s SearchRequest, cancel: &'s Cancel) -> Self {
        Self {
            store,
            request,
            cancel,
            page: Page::new(request.limit, request.after.clone()),
            totals: Totals::default(),
            partial: Vec::new(),
        }
    }

    /// Searches these files, first the parts that may have the best hits. When no other part can have a hit on the
    /// page, the search ends, unless so little is left that it can count all hits.
    pub(super) fn files(
        &mut self,
        files: &[SearchedFile],
        index: IndexSettings,
        watch: &mut SearchWatch<'_>,
    ) -> Result<()> {
        let mut progress: Vec<FileProgress> = files.iter().map(FileProgress::of).collect();
        let mut parts = best_first(files);
        let total: u64 = files.iter().map(SearchedFile::bytes).sum();
        let is_narrowed = parts.iter().any(|part| part.0.part.ceiling.is_known());
        let (mut left, mut most) = (
            total,
            if is_narrowed {
                index.first
            } else {
                FIRST_BATCH
            },
        );
        let mut waiting = Vec::new();
        while let Some(Reverse(best)) = parts.peek() {
            let first = best.first_key(files).filter(|_| left > index.for_totals);
            if first.is_some_and(|first| self.is_full_before(&first, &waiting)) {
                self.page.stop();
                self.totals.are_least = true;
                break;
            }
            let (mut bytes, mut cost, mut batch) = (0, 0, BTreeMap::new());
            while cost < most
                && let Some(Reverse(RankedPart { number, part, .. })) = parts.pop()
            {
                let len = part.span.end - part.span.start;
                bytes += len;
                cost += len.max(SMALLEST_PART);
                let spans: &mut Vec<Range<u64>> = batch.entry(number).or_default();
                spans.push(part.span.clone());
            }
            left -= bytes;
            most = LARGEST_BATCH.min(most * 2);
            let batch = self.batch(files, batch, &mut progress)?;
            let mut matched = self.matched(&batch, &mut waiting, &mut progress, total, watch)?;
            matched.append(&mut waiting);
            if is_narrowed && total - left < BEFORE_OPENING {
                (waiting, matched) = matched.into_iter().partition(|it| it.keys.is_some());
            }
            let open = self.count_behind_page(matched, &mut progress);
            self.open(open, &mut progress, watch)?;
        }
        let open = self.count_behind_page(waiting, &mut progress);
        self.open(open, &mut progress, watch)?;
        self.totals.entries = progress.iter().map(|file| file.hits).sum();
        self.totals.sessions = progress.iter().filter(|file| file.hits > 0).count() as u64;
        Ok(())
    }

    /// Whether the page is full, and no hit from `first` on can be on it. The hits of sessions that wait to be opened
    /// count too.
    fn is_full_before(&self, first: &Key, waiting: &[MatchedFile<'_>]) -> bool {
        let keys = waiting.iter().flat_map(|file| &file.keys).flatten();
        let bound = self.page.bound_with(keys.cloned());
        bound.is_some_and(|bound| *first > bound)
    }

    /// The files of a batch whose sessions are in the directory of the request.
    fn batch<'f>(
        &self,
        files: &'f [SearchedFile],
        spans: BTreeMap<usize, Vec<Range<u64>>>,
        progress: &mut [FileProgress],
    ) -> Result<Vec<FileBatch<'f>>> {
        let spans = spans.into_iter();
        let mut batch: Vec<FileBatch<'f>> = spans
            .filter_map(|(number, spans)| {
                Some(FileBatch {
                    number,
                    file: files.get(number)?,
                    parts: spans.len(),
                    spans: joined(spans),
                })
            })
            .collect();
        if !self.request.leaves_directories_out() {
            return Ok(batch);
        }
        let known = |one: &FileBatch<'_>| progress.get(one.number)?.is_in_directory;
        let open: Vec<&FileBatch<'_>> = batch.iter().filter(|one| known(one).is_none()).collect();
        let is_in = |(): &mut (), number: usize| {
            let header = listing::header(&open.get(number)?.file.location)?;
            Some(self.request.takes_directory(&header.cwd))
        };
        let mut taken = Vec::with_capacity(open.len());
        let plan = ThreadPlan::up_to(MAX_THREADS);
        let done = parallel::map_in_order(
            open.len(),
            plan,
            || (),
            is_in,
            |is_in| {
                // A file without a readable header is searched, so that its problem is reported. If the request has a
                // test of directories, such a file is left out, since the client may have no access to it.
                taken.push(is_in.unwrap_or(self.request.within.is_none()));
                self.unless_cancelled()
            },
        );
        completed(done)?;
        let numbers: Vec<usize> = open.iter().map(|one| one.number).collect();
        for (number, is_in) in numbers.into_iter().zip(taken) {
            if let Some(progress) = progress.get_mut(number) {
                progress.is_in_directory = Some(is_in);
            }
        }
        let is_in = |one: &FileBatch<'_>| progress.get(one.number)?.is_in_directory;
        batch.retain(|one| is_in(one) != Some(false));
        Ok(batch)
    }

    /// Scans a batch, and returns the files with matches. If such a file waits to be opened, it is returned with all
    /// its matches.
    fn matched<'f>(
        &mut self,
        batch: &[FileBatch<'f>],
        waiting: &mut Vec<MatchedFile<'f>>,
        progress: &mut [FileProgress],
        total: u64,
        watch: &mut SearchWatch<'_>,
    ) -> Result<Vec<MatchedFile<'f>>> {
        let mut matched = Vec::new();
        for (batched, found) in batch.iter().zip(self.scan(batch, total, watch)?) {
            let FileBatch { number, file, .. } = *batched;
            match found {
                Ok(found) if found.is_empty() => {}
                Ok(found) => {
                    let waits = waiting.iter().position(|it| it.number == number);
                    let before = match waits {
                        Some(at) => Some(waiting.swap_remove(at).found),
                        None => progress
                            .get_mut(number)
                            .map(|it| std::mem::take(&mut it.found)),
                    };
                    let found = match before {
                        Some(before) => before.joined(found),
                        None => found,
                    };
                    matched.push(MatchedFile {
                        number,
                        file,
                        keys: line_keys(self.request, file, &found),
                        found,
                    });
                }
                Err(kind) => self.unread(file, kind),
            }
            if let Some(progress) = progress.get_mut(number) {
                progress.left = progress.left.saturating_sub(batched.parts);
            }
        }
        Ok(matched)
    }

    fn unread(&mut self, file: &SearchedFile, kind: Kind) {
        let path = file.location.path();
        if !self.partial.iter().any(|file| file.path == path) {
            self.partial.push(UnreadFile { path, kind });
        }
    }

    /// Counts the hits of the files that have no hit on the page, and returns the other files, which must be opened. A
    /// file is counted without being opened only if its matching lines alone decide its hits.
    fn count_behind_page<'f>(
        &mut self,
        matched: Vec<MatchedFile<'f>>,
        progress: &mut [FileProgress],
    ) -> Vec<MatchedFile<'f>> {
        let page = &mut self.page;
        let keys = matched.iter().flat_map(|file| &file.keys).flatten();
        let bound = page.bound_with(keys.cloned());
        let mut open = Vec::new();
        for mut file in matched {
            let is_within = |key: &Key| bound.as_ref().is_none_or(|bound| key <= bound);
            let is_behind = |keys: &Vec<Key>| !keys.iter().any(is_within);
            match file.keys.take().filter(is_behind) {
                Some(keys) => {
                    if let Some(progress) = progress.get_mut(file.number) {
                        progress.take(keys.len() as u64, file.found);
                    }
                    page.pass(keys.into_iter());
                }
                None => open.push(file),
            }
        }
        open
    }

    /// Opens sessions, and takes their hits.
    fn open(
        &mut self,
        matched: Vec<MatchedFile<'_>>,
        progress: &mut [FileProgress],
        watch: &mut SearchWatch<'_>,
    ) -> Result<()> {
        let (store, request, cancel) = (self.store, self.request, self.cancel);
        let bound = self.page.bound();
        let open = |(): &mut (), number: usize| {
            let MatchedFile { file, found, .. } = matched.get(number)?;
            let bound = bound.get();
            let bound = bound.as_ref();
            Some(session::hits(store, request, cancel, file, found, bound))
        };
        let plan = plan_for(matched.iter().map(|it| it.file.status.size).sum());
        let (mut files, mut failure) = (matched.iter(), None);
        let done = parallel::map_in_order(
            matched.len(),
            plan,
            || (),
            open,
            |hits| {
                match (hits, files.next()) {
                    (Some(Ok(SessionHits { count, best })), file) => {
                        let progress = file.and_then(|file| progress.get_mut(file.number));
                        if let Some(progress) = progress {
                            progress.hits = count;
                        }
                        for (key, hit) in best {
                            self.page.take(key, hit, watch.on_hit);
                        }
                    }
                    (Some(Err(error)), Some(file)) if error.kind != Kind::Cancelled => {
                        self.unread(file.file, error.kind);
                    }
                    (Some(Err(error)), _) => failure = Some(error),
                    (None, _) => {}
                }
                match failure.is_some() {
                    true => ControlFlow::Break(()),
                    false => self.unless_cancelled(),
                }
            },
        );
        for MatchedFile { number, found, .. } in matched {
            if let Some(progress) = progress.get_mut(number) {
                progress.take(progress.hits, found);
            }
        }
        failure.map_or_else(|| completed(done), Err)
    }

    /// The matches in each file, or the reason why it could not be read.
    fn scan(
        &mut self,
        batch: &[FileBatch<'_>],
        total: u64,
        watch: &mut SearchWatch<'_>,
    ) -> Result<Vec<Result<FileMatches, Kind>>> {
        let mut ranges = Vec::new();
        for (file, batched) in batch.iter().enumerate() {
            for span in &batched.spans {
                let grows = span.end >= batched.file.status.size;
                ranges.extend(FileRange::divide(file, span, RANGE, grows));
            }
        }
        let scan = |scanner: &mut Scanner<'_>, number: usize| {
            let range = ranges.get(number)?;
            Some(scanner.scan(batch.get(range.file)?.file, range))
        };
        let scanner = || Scanner::new(self.request, self.cancel);
        let mut all: Vec<Result<FileMatches, Kind>> = Vec::new();
        all.resize_with(batch.len(), || Ok(FileMatches::default()));
        let plan = plan_for(
            ranges
                .iter()
                .map(|range| range.span.end - range.span.start)
                .sum(),
        );
        let plan = ThreadPlan {
            ahead: plan.ahead * 4,
            ..plan
        };
        let (mut of_results, totals) = (ranges.iter(), &mut self.totals);
        let cancel = self.cancel;
        let done = parallel::map_in_order(ranges.len(), plan, scanner, scan, |found| {
            let of = of_results.next().and_then(|range| all.get_mut(range.file));
            match (of, found) {
                (Some(Ok(file)), Some(Ok(found))) => {
                    totals.scanned_bytes += found.scanned_bytes;
                    (watch.on_progress)(totals.scanned_bytes, total);
                    file.add(found);
                }
                (Some(file), Some(Err(error))) => *file = Err(error.kind),
                _ => {}
            }
            break_if_cancelled(cancel)
        });
        completed(done)?;
        Ok(all)
    }

    fn unless_cancelled(&self) -> ControlFlow<()> {
        break_if_cancelled(self.cancel)
    }

    pub(super) fn finish(self) -> SearchOutcome {
        let (hits, has_more) = self.page.finish();
        SearchOutcome {
            hits,
            totals: self.totals,
            has_more,
            partial: self.partial,
        }
    }
}

impl FileProgress {
    fn of(file: &SearchedFile) -> Self {
        Self {
            left: file.parts.len(),
            is_in_directory: file.is_in_directory,
            ..Self::default()
        }
    }

    /// Keeps the matches so far, if parts of the file are not scanned yet.
    fn take(&mut self, hits: u64, found: FileMatches) {
        self.hits = hits;
        if self.left > 0 {
            self.found = found;
        }
    }
}

/// Joins adjacent spans.
fn joined(mut spans: Vec<Range<u64>>) -> Vec<Range<u64>> {
    spans.sort_unstable_by_key(|span| span.start);
    let mut all: Vec<Range<u64>> = Vec::new();
    for span in spans {
        match all.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => all.push(span),
        }
    }
    all
}

/// Fails with `cancelled` if the work ended early.
fn completed(done: ControlFlow<()>) -> Result<()> {
    match done {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::cancelled()),
    }
}

fn break_if_cancelled(cancel: &Cancel) -> ControlFlow<()> {
    match cancel.is_cancelled() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// The keys of all hits of a file, if its matching lines alone decide them.
fn line_keys(
    request: &SearchRequest,
    file: &SearchedFile,
    found: &FileMatches,
) -> Option<Vec<Key>> {
    let is_enough = file.is_plain
        && request.branches == BranchFilter::All
        && found.damaged.is_empty()
        && !found.has_labels;
    if !is_enough {
        return None;
    }
    let path: Arc<str> = file.location.path().to_string_lossy().into();
    let mut keys = Vec::with_capacity(found.lines.len());
    for MatchingLine { span, score, at } in &found.lines {
        // An entry without a time has the time of the header, which is not known here.
        let at = (*at)?;
        if request.takes_time(at) {
            keys.push(Key {
                score: Reverse(*score),
                at: Reverse(at),
                path: Arc::clone(&path),
                offset: span.start,
            });
        }
    }
    Some(keys)
}
