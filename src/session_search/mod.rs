//! Searches the sessions of the session directory, open or not (protocol.md §3.16).
//!
//! In reading order: [`request`] is one search; [`scan`] finds the matching lines of files; [`session`] turns the lines
//! of one session into hits, with the [`branch`] of each; [`page`] sorts hits and keeps the best. The search reads the
//! files themselves, so results are current. A session is opened only if a line of its file matches.

mod branch;
mod index;
mod page;
mod request;
mod scan;
mod session;
#[cfg(test)]
mod tests;

pub(crate) use branch::{Branch, BranchFilter};
pub(crate) use index::IndexSettings;
pub(crate) use page::{Hit, Key};
pub(crate) use request::{EntryFilter, FieldSet, SearchRequest};

use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::os::file::{Location, Status};
use crate::parallel::{self, ThreadPlan};
use crate::store::Store;
use crate::store::listing;
use page::Page;
use scan::{FileMatches, FileRange, Scanner};
use session::SessionHits;
use std::cmp::Reverse;
use std::iter;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

/// Most threads that read files.
const MAX_THREADS: usize = 16;
/// The bytes of files that make another thread worthwhile.
const FOR_ONE_THREAD: u64 = 1 << 20;
/// The bytes that one thread scans at a time.
const RANGE: u64 = 4 << 20;
/// The bytes that are scanned before their sessions are opened: the first hits arrive after them.
const BATCH: u64 = 64 << 20;

/// The result of a search.
#[derive(Debug, Default)]
pub(crate) struct SearchOutcome {
    /// The best hits after the cursor, in order.
    pub hits: Vec<(Key, Hit)>,
    pub totals: Totals,
    /// Whether more hits follow.
    pub has_more: bool,
    /// Files that could not be searched.
    pub partial: Vec<UnreadFile>,
}

/// Sums over all pages of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Sessions with a hit.
    pub sessions: u64,
    /// Entries that are hits.
    pub entries: u64,
    /// The bytes of files that the scan read.
    pub scanned_bytes: u64,
}

/// A file that could not be searched, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnreadFile {
    pub path: PathBuf,
    pub kind: Kind,
}

/// A file to search, and its parts to scan.
#[derive(Debug)]
pub(crate) struct SearchedFile {
    pub location: Location,
    pub status: Status,
    /// Ascending and disjoint, in bytes from the start of the file. The last one reaches to the end of a file that
    /// grows.
    pub parts: Vec<Range<u64>>,
}

/// The sessions to search: the store, and the settings of the index.
#[derive(Clone, Copy)]
pub(crate) struct SearchedStore<'s> {
    pub store: &'s Store,
    pub index: IndexSettings,
}

impl SearchedFile {
    fn whole(location: Location, status: Status) -> Self {
        Self {
            parts: iter::once(0..status.size).collect(),
            location,
            status,
        }
    }

    fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.end - part.start).sum()
    }
}

/// The threads for files of so many bytes.
fn plan_for(bytes: u64) -> ThreadPlan {
    match bytes < FOR_ONE_THREAD {
        true => ThreadPlan::up_to(1),
        false => ThreadPlan::up_to(MAX_THREADS),
    }
}

/// Searches all sessions of the store, the most recently changed files first. `on_hit` receives each hit that is among
/// the best so far; a better one may displace it later. Fails with `cancelled`, and if the session directory cannot be
/// read.
pub(crate) fn search(
    searched: SearchedStore<'_>,
    request: &SearchRequest,
    cancel: &Cancel,
    on_hit: &mut dyn FnMut(&Hit),
) -> Result<SearchOutcome> {
    let SearchedStore { store, index } = searched;
    let mut files = store.session_files()?;
    files.sort_by(|(a, one), (b, other)| {
        let by_time = Reverse(one.modified).cmp(&Reverse(other.modified));
        by_time.then_with(|| a.path().cmp(&b.path()))
    });
    let bytes: u64 = files.iter().map(|(_, status)| status.size).sum();
    let whole = |(at, status): &(Location, Status)| SearchedFile::whole(at.clone(), *status);
    let mut searched: Vec<SearchedFile> = files.iter().map(whole).collect();
    if let Some(cache) = store.cache().filter(|_| bytes >= index.from) {
        index::narrow(&cache, &request.query, &mut searched, cancel);
        searched.retain(|file| !file.parts.is_empty());
        store.index_in_background(move |ending| {
            if let Err(error) = index::update(&cache, index, &files, ending) {
                tracing::info!(%error, "the search index could not be brought up to date");
            }
        });
    }
    if cancel.is_cancelled() {
        return Err(Error::cancelled());
    }
    let mut run = SearchRun {
        store,
        request,
        cancel,
        page: Page::new(request.limit, request.after.clone()),
        totals: Totals::default(),
        partial: Vec::new(),
    };
    let mut files = run.in_directory(searched)?.into_iter().peekable();
    while files.peek().is_some() {
        let mut bytes = 0;
        let mut batch = Vec::new();
        while let Some(file) = files.next_if(|_| bytes < BATCH) {
            bytes += file.bytes();
            batch.push(file);
        }
        run.batch(&batch, on_hit)?;
    }
    Ok(run.finish())
}

/// A running search.
struct SearchRun<'s> {
    store: &'s Store,
    request: &'s SearchRequest,
    cancel: &'s Cancel,
    page: Page,
    totals: Totals,
    partial: Vec<UnreadFile>,
}

impl SearchRun<'_> {
    /// The files whose sessions are in the directory of the request.
    fn in_directory(&self, files: Vec<SearchedFile>) -> Result<Vec<SearchedFile>> {
        if self.request.cwd.is_none() {
            return Ok(files);
        }
        let is_in = |(): &mut (), number: usize| {
            let file = files.get(number)?;
            let header = listing::header(&file.location)?;
            Some(self.request.takes_directory(&header.cwd))
        };
        // A file without a readable header is searched, so that its problem is reported.
        let taken = self.on_all_cores(files.len(), is_in)?;
        let taken = taken.into_iter().map(|is_in| is_in.unwrap_or(true));
        let with_files = files.into_iter().zip(taken);
        Ok(with_files
            .filter_map(|(file, is_in)| is_in.then_some(file))
            .collect())
    }

    fn batch(&mut self, files: &[SearchedFile], on_hit: &mut dyn FnMut(&Hit)) -> Result<()> {
        let matches = self.scan(files)?;
        let matched: Vec<(&SearchedFile, FileMatches)> = files
            .iter()
            .zip(matches)
            .filter_map(|(file, found)| match found {
                Ok(found) => (!found.is_empty()).then_some((file, found)),
                Err(kind) => {
                    self.partial.push(UnreadFile {
                        path: file.location.path(),
                        kind,
                    });
                    None
                }
            })
            .collect();
        let (store, request, cancel) = (self.store, self.request, self.cancel);
        let page = &mut self.page;
        let bound = page.bound();
        let open = |(): &mut (), number: usize| {
            let (file, found) = matched.get(number)?;
            let bound = bound.get();
            Some(session::hits(
                store,
                request,
                cancel,
                file,
                found,
                bound.as_ref(),
            ))
        };
        let plan = plan_for(matched.iter().map(|(file, _)| file.status.size).sum());
        let (mut number, mut failure) = (0, None);
        let (totals, partial) = (&mut self.totals, &mut self.partial);
        let done = parallel::map_in_order(
            matched.len(),
            plan,
            || (),
            open,
            |hits| {
                let file = matched.get(number).map(|(file, _)| *file);
                number += 1;
                match (hits, file) {
                    (Some(Ok(SessionHits { count, best })), _) => {
                        totals.sessions += u64::from(count > 0);
                        totals.entries += count;
                        for (key, hit) in best {
                            page.take(key, hit, on_hit);
                        }
                    }
                    (Some(Err(error)), Some(file)) if error.kind != Kind::Cancelled => {
                        let path = file.location.path();
                        partial.push(UnreadFile {
                            path,
                            kind: error.kind,
                        });
                    }
                    (Some(Err(error)), _) => failure = Some(error),
                    (None, _) => {}
                }
                match failure.is_some() || cancel.is_cancelled() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        );
        match (done, failure) {
            (_, Some(error)) => Err(error),
            (ControlFlow::Break(()), None) => Err(Error::cancelled()),
            (ControlFlow::Continue(()), None) => Ok(()),
        }
    }

    /// The matches in each file, or the reason why it could not be read.
    fn scan(&mut self, files: &[SearchedFile]) -> Result<Vec<Result<FileMatches, Kind>>> {
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
        let (mut number, cancel) = (0, self.cancel);
        let totals = &mut self.totals;
        let plan = plan_for(files.iter().map(SearchedFile::bytes).sum());
        let plan = ThreadPlan {
            ahead: plan.ahead * 4,
            ..plan
        };
        let done = parallel::map_in_order(ranges.len(), plan, scanner, scan, |found| {
            let of = ranges.get(number).and_then(|range| all.get_mut(range.file));
            number += 1;
            match (of, found) {
                (Some(Ok(file)), Some(Ok(found))) => {
                    totals.scanned_bytes += found.scanned_bytes;
                    file.add(found);
                }
                (Some(file), Some(Err(error))) => *file = Err(error.kind),
                _ => {}
            }
            match cancel.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        match done {
            ControlFlow::Continue(()) => Ok(all),
            ControlFlow::Break(()) => Err(Error::cancelled()),
        }
    }

    fn on_all_cores<T: Send>(
        &self,
        count: usize,
        work: impl Fn(&mut (), usize) -> T + Sync,
    ) -> Result<Vec<T>> {
        let mut all = Vec::with_capacity(count);
        let plan = ThreadPlan::up_to(MAX_THREADS);
        let done = parallel::map_in_order(
            count,
            plan,
            || (),
            work,
            |one| {
                all.push(one);
                match self.cancel.is_cancelled() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        );
        match done {
            ControlFlow::Continue(()) => Ok(all),
            ControlFlow::Break(()) => Err(Error::cancelled()),
        }
    }

    fn finish(self) -> SearchOutcome {
        let (hits, has_more) = self.page.finish();
        SearchOutcome {
            hits,
            totals: self.totals,
            has_more,
            partial: self.partial,
        }
    }
}
