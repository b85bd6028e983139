//! A running search: batches of files are scanned, then the sessions that may be on the page are opened.

use super::page::{Key, Page};
use super::request::SearchRequest;
use super::scan::{FileMatches, FileRange, MatchingLine, Scanner};
use super::session::{self, SessionHits};
use super::{BranchFilter, SearchOutcome, SearchWatch, SearchedFile, Totals, UnreadFile};
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::parallel::{self, ThreadPlan};
use crate::store::{Store, listing};
use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Most threads that read files.
const MAX_THREADS: usize = 16;
/// The bytes of files that make another thread worthwhile.
const FOR_ONE_THREAD: u64 = 1 << 20;
/// The bytes that one thread scans at a time.
const RANGE: u64 = 4 << 20;
/// The bytes that are scanned before their sessions are opened: the first hits arrive after them.
const FIRST_BATCH: u64 = 32 << 20;
/// The same for later batches, which double: threads wait for each other at the end of each.
const LARGEST_BATCH: u64 = 512 << 20;

/// The threads for files of so many bytes.
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

/// A file with matching lines.
type MatchedFile<'f> = (&'f SearchedFile, FileMatches);

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

    /// The files whose sessions are in the directory of the request.
    pub(super) fn in_directory(&self, files: Vec<SearchedFile>) -> Result<Vec<SearchedFile>> {
        if self.request.cwd.is_none() {
            return Ok(files);
        }
        let is_in = |(): &mut (), number: usize| {
            let file = files.get(number)?;
            let header = listing::header(&file.location)?;
            Some(self.request.takes_directory(&header.cwd))
        };
        let mut taken = Vec::with_capacity(files.len());
        let plan = ThreadPlan::up_to(MAX_THREADS);
        let done = parallel::map_in_order(
            files.len(),
            plan,
            || (),
            is_in,
            |is_in| {
                // A file without a readable header is searched, so that its problem is reported.
                taken.push(is_in.unwrap_or(true));
                self.unless_cancelled()
            },
        );
        completed(done)?;
        let with_files = files.into_iter().zip(taken);
        Ok(with_files
            .filter_map(|(file, is_in)| is_in.then_some(file))
            .collect())
    }

    /// Searches these files.
    pub(super) fn files(
        &mut self,
        files: Vec<SearchedFile>,
        watch: &mut SearchWatch<'_>,
    ) -> Result<()> {
        let total = files.iter().map(SearchedFile::bytes).sum();
        let mut files = files.into_iter().peekable();
        let mut most = FIRST_BATCH;
        while files.peek().is_some() {
            let mut bytes = 0;
            let mut batch = Vec::new();
            while let Some(file) = files.next_if(|_| bytes < most) {
                bytes += file.bytes();
                batch.push(file);
            }
            most = LARGEST_BATCH.min(most * 2);
            let matched = self.matched(&batch, total, watch)?;
            let open = self.count_behind_page(matched);
            self.open(&open, watch)?;
        }
        Ok(())
    }

    /// The files with matches, after a scan.
    fn matched<'f>(
        &mut self,
        files: &'f [SearchedFile],
        total: u64,
        watch: &mut SearchWatch<'_>,
    ) -> Result<Vec<MatchedFile<'f>>> {
        let mut matched = Vec::new();
        for (file, found) in files.iter().zip(self.scan(files, total, watch)?) {
            match found {
                Ok(found) if found.is_empty() => {}
                Ok(found) => matched.push((file, found)),
                Err(kind) => self.unread(file, kind),
            }
        }
        Ok(matched)
    }

    fn unread(&mut self, file: &SearchedFile, kind: Kind) {
        let path = file.location.path();
        self.partial.push(UnreadFile { path, kind });
    }

    /// Counts the hits of the files that cannot be on the page, and returns the others. Only files whose hits follow
    /// from their lines are counted without being opened.
    fn count_behind_page<'f>(&mut self, matched: Vec<MatchedFile<'f>>) -> Vec<MatchedFile<'f>> {
        let (request, page) = (self.request, &mut self.page);
        let keys: Vec<Option<Vec<Key>>> = matched
            .iter()
            .map(|(file, found)| line_keys(request, file, found))
            .collect();
        let bound = page.bound_with(keys.iter().flatten().flatten().cloned());
        let mut open = Vec::new();
        for (file, keys) in matched.into_iter().zip(keys) {
            let is_within = |key: &Key| bound.as_ref().is_none_or(|bound| key <= bound);
            let is_behind = |keys: &Vec<Key>| !keys.iter().any(is_within);
            match keys.filter(is_behind) {
                Some(keys) => {
                    self.totals.sessions += u64::from(!keys.is_empty());
                    self.totals.entries += keys.len() as u64;
                    page.pass(keys.into_iter());
                }
                None => open.push(file),
            }
        }
        open
    }

    /// Opens sessions, and takes their hits.
    fn open(&mut self, matched: &[MatchedFile<'_>], watch: &mut SearchWatch<'_>) -> Result<()> {
        let (store, request, cancel) = (self.store, self.request, self.cancel);
        let bound = self.page.bound();
        let open = |(): &mut (), number: usize| {
            let (file, found) = matched.get(number)?;
            let bound = bound.get();
            let bound = bound.as_ref();
            Some(session::hits(store, request, cancel, file, found, bound))
        };
        let plan = plan_for(matched.iter().map(|(file, _)| file.status.size).sum());
        let (mut files, mut failure) = (matched.iter().map(|(file, _)| *file), None);
        let done = parallel::map_in_order(
            matched.len(),
            plan,
            || (),
            open,
            |hits| {
                match (hits, files.next()) {
                    (Some(Ok(SessionHits { count, best })), _) => {
                        self.totals.sessions += u64::from(count > 0);
                        self.totals.entries += count;
                        for (key, hit) in best {
                            self.page.take(key, hit, watch.on_hit);
                        }
                    }
                    (Some(Err(error)), Some(file)) if error.kind != Kind::Cancelled => {
                        self.unread(file, error.kind);
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
        failure.map_or_else(|| completed(done), Err)
    }

    /// The matches in each file, or the reason why it could not be read.
    fn scan(
        &mut self,
        files: &[SearchedFile],
        total: u64,
        watch: &mut SearchWatch<'_>,
    ) -> Result<Vec<Result<FileMatches, Kind>>> {
        let mut ranges = Vec::new();
        for (file, searched) in files.iter().enumerate() {
            for (part, span) in searched.parts.iter().enumerate() {
                let grows = part + 1 == searched.parts.len() && span.end >= searched.status.size;
                ranges.extend(FileRange::divide(file, span, RANGE, grows));
            }
        }
        let scan = |scanner: &mut Scanner<'_>, number: usize| {
            let range = ranges.get(number)?;
            Some(scanner.scan(&files.get(range.file)?.location, range))
        };
        let scanner = || Scanner::new(self.request, self.cancel);
        let mut all: Vec<Result<FileMatches, Kind>> = Vec::new();
        all.resize_with(files.len(), || Ok(FileMatches::default()));
        let plan = plan_for(files.iter().map(SearchedFile::bytes).sum());
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

/// Fails with `cancelled` if the work broke off.
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

/// The keys of all hits of a file, if they follow from its matching lines.
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
        // An entry without a time has that of the header.
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
