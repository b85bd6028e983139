//! Ranks entries of all sessions by a question (protocol.md §3.16, mode `ask`).
//!
//! Owns the files `*.terms`, `ask.list` and `ask-*.counts` in the cache. `counts` counts the terms of a session, and
//! `kept` keeps the counts in the cache. A `segment` has the counts of many sessions together, and `segments` has the
//! list of all segments. A search counts the lines that have no counts yet, so it finds a new entry at once. `filtered`
//! applies the filters that need the tree of a session. `counted` and `gather` take the best entries by the counts, and
//! `answer` reads these entries. `ranking` keeps the result for the pages after the first page. `lines` ranks lines
//! that are not from session files.

mod answer;
mod bound;
mod copies;
mod counted;
mod counts;
mod entries;
mod filtered;
mod gather;
mod glued;
mod in_files;
mod inside;
mod kept;
mod lines;
mod ranked;
mod ranking;
mod request;
mod segment;
mod segments;
#[cfg(test)]
mod tests;
mod update;
mod values;
mod vocabulary;

pub use lines::{RankedLines, rank_lines};
pub use ranked::{MoreHits, Ranking, RankingPage};
use ranking::Rankings;
pub use request::{AskRequest, Phrases};
pub use segments::AskIndex;
pub use values::{known_values, unknown_values};
pub use vocabulary::NearWords;

use crate::outcome::{SearchWatch, Totals, UnreadFile};
use crate::searched::SearchedStore;
use counted::CountedFile;
use counts::Counts;
use gather::Gatherer;
use segments::Segments;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use treelined_core::error::{Kind, Result};
use treelined_core::search::ask::Taken;
use treelined_core::timestamp::Millis;
use treelined_files::cache::Cache;
use treelined_files::cancel::Cancel;
use treelined_files::os::file::{Location, Status};
use treelined_files::store::Store;
use vocabulary::KnownWords;

/// If at most this number of bytes has no counts yet, the search counts all terms of these bytes. If there are more, it
/// counts only the terms of the question.
const READ_ALL: u64 = 16 << 20;

/// The data that a daemon keeps in memory between questions.
pub struct AskState {
    /// The last rankings, for their next pages.
    pub rankings: Rankings,
    /// The counts of terms.
    pub index: AskIndex,
}

impl AskState {
    /// `daemon` is the name of the daemon.
    pub fn new(daemon: &str) -> Self {
        Self {
            rankings: Rankings::new(daemon),
            index: AskIndex::default(),
        }
    }
}

/// Ranks the entries of all sessions of the store. `index` must be the same for all questions to one store. The age of
/// an entry is the time between the entry and `now`. Fails with `cancelled`; with `sessionNotFound` if the session of
/// the request does not exist; and if the session directory cannot be read.
pub fn ask(
    searched: SearchedStore<'_>,
    index: &AskIndex,
    request: &Arc<AskRequest>,
    now: Millis,
    cancel: &Cancel,
    watch: &mut SearchWatch<'_>,
) -> Result<Ranking> {
    let until = request
        .read_time
        .and_then(|time| Instant::now().checked_add(time));
    let store = searched.store;
    let files = searched.files(&request.filters)?;
    let total: u64 = files.iter().map(|(_, status)| status.size).sum();
    let cache = store.cache();
    let segments = index.of(store, cache.as_ref());
    let missing = cache
        .as_ref()
        .map_or(total, |cache| update::missing(cache, &segments, &files));
    let mut asked = AskedFiles {
        cache: cache.as_ref(),
        segments: &segments,
        files: &files,
        missing,
        until,
        read: HashMap::new(),
        partial: Vec::new(),
    };
    let mut progress = |bytes| (watch.on_progress)(bytes, total);
    let mut counted = asked.count(request, cancel, &mut progress)?;
    let mut scanned_bytes = scanned(&counted);
    let mut near_words = asked.near_words(request, &counted, cancel)?;
    let taken = taken(request, &near_words);
    let request = taken.as_ref().unwrap_or(request);
    near_words.retain(|words| !words.near.is_empty());
    if taken.is_some() {
        counted = asked.count(request, cancel, &mut |_| {})?;
        scanned_bytes += scanned(&counted);
    }
    let AskedFiles {
        mut partial, read, ..
    } = asked;
    if let Some(phrases) = &request.phrases {
        let terms = phrases.terms(&request.question);
        counted.iter_mut().for_each(|file| file.require(&terms));
    }
    filtered::filter(
        searched,
        request,
        &files,
        &mut counted,
        cancel,
        &mut partial,
    )?;
    let gathered = gather::best(request, &counted, files.len(), now);
    let totals = Totals {
        sessions: gathered.sessions,
        entries: gathered.entries,
        scanned_bytes,
        are_least: true,
        unread: counted.iter().filter(|file| file.is_unread).count() as u64,
        shed: searched.shed(&request.filters)?,
    };
    if let Some(cache) = cache {
        let update = Update {
            cache,
            segments: Arc::clone(&segments),
            files: &files,
            missing,
        };
        update.begin(store, request, read);
    }
    drop(counted);
    let mut ranking = Ranking::new(Arc::clone(request), gathered, totals);
    ranking.near_words = near_words;
    ranking.begin(&files, partial);
    Ok(ranking)
}

fn scanned(counted: &[CountedFile]) -> u64 {
    counted.iter().map(|file| file.scanned).sum()
}

/// The request with known words that replace other words; `None` if no word is replaced.
fn taken(request: &AskRequest, near_words: &[NearWords]) -> Option<Arc<AskRequest>> {
    let mut taken = near_words.iter().flat_map(taken_for).peekable();
    taken.peek()?;
    let question = request.question.with_taken(taken);
    let request = request.clone();
    Some(Arc::new(AskRequest {
        question,
        ..request
    }))
}

/// The words that replace a word.
fn taken_for(near: &NearWords) -> impl Iterator<Item = Taken<'_>> {
    let term = near.term;
    let mistyped = near.taken.iter().map(|words| (words, false));
    let inside = near.inside.iter().map(|words| (words, true));
    mistyped.chain(inside).map(move |(words, is_inside)| Taken {
        term,
        words,
        is_inside,
    })
}

/// The files in which the terms of a question are counted.
struct AskedFiles<'f> {
    cache: Option<&'f Cache>,
    segments: &'f Segments,
    files: &'f [(Location, Status)],
    /// The bytes without counts.
    missing: u64,
    /// The time after which no more lines are read.
    until: Option<Instant>,
    /// The counts that were read, by the numbers of their files; to be kept.
    read: HashMap<usize, Counts>,
    /// Files that could not be read.
    partial: Vec<UnreadFile>,
}

impl AskedFiles<'_> {
    /// Counts the terms of a question in all files.
    fn count(
        &mut self,
        request: &AskRequest,
        cancel: &Cancel,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Vec<CountedFile>> {
        let gatherer = Gatherer {
            request,
            cache: self.cache,
            cancel,
            reads_all: self.missing <= READ_ALL,
            until: self.until,
            read: &self.read,
            found: self
                .segments
                .look_up(&request.terms(), &request.facts(), self.files),
            segments: self.segments,
        };
        let mut partial = Vec::new();
        let unread = |location: &Location, kind: Kind| {
            let path = location.path();
            partial.push(UnreadFile { path, kind });
        };
        let mut counted = gather::all(&gatherer, self.files, unread, progress)?;
        let read = counted.iter_mut();
        let read = read.filter_map(|file| Some((file.number, file.read.take()?)));
        self.read.extend(read);
        self.partial = partial;
        Ok(counted)
    }

    /// The near words of each word of the question that no entry has.
    fn near_words(
        &self,
        request: &AskRequest,
        counted: &[CountedFile],
        cancel: &Cancel,
    ) -> Result<Vec<NearWords>> {
        let known = KnownWords {
            cache: self.cache,
            segments: self.segments,
            files: self.files,
            counted,
            read: &self.read,
        };
        let (_, counts) = gather::sums(request, counted);
        vocabulary::near_words(request, &counts, &known, cancel)
    }
}

/// The files whose counts may be missing in the cache.
struct Update<'f> {
    cache: Cache,
    segments: Arc<Segments>,
    files: &'f [(Location, Status)],
    /// The bytes without counts.
    missing: u64,
}

impl Update<'_> {
    /// Starts to make the missing counts in the background, together with the counts that the search has already made.
    fn begin(self, store: &Store, request: &AskRequest, read: HashMap<usize, Counts>) {
        let is_of_all = request.filters.session.is_none();
        let are_all = is_of_all && request.filters.tag.is_none();
        let is_due = are_all && segments::is_due(&self.segments, self.files);
        if !(is_due || is_of_all && self.missing > 0) {
            return;
        }
        let (cache, segments, files) = (self.cache, self.segments, self.files.to_vec());
        store.index_in_background(move |ending| {
            let files = (&*files, are_all);
            if let Err(error) = update::update(&cache, &segments, files, &read, ending) {
                tracing::info!(%error, "the counts of terms could not be brought up to date");
            }
        });
    }
}
