//! The answer to a question: its hits in order, one page at a time. A session is opened only when one of its hits can
//! be on the page.

use super::answer::{self, RankedHit};
use super::bound;
use super::copies;
use super::counted::Candidate;
use super::gather::{Gathered, OrderedScore};
use super::in_files::in_files;
use super::request::AskRequest;
use super::vocabulary::NearWords;
use crate::outcome::{Totals, UnreadFile};
use crate::page::Hit;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use treelined_core::error::Result;
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::os::file::{Location, Status};
use treelined_files::store::Store;

/// The most hits of a ranking.
const MOST_HITS: usize = 200;
/// The number of sessions that are opened at a time.
const OPENED: usize = 8;

/// The best hits for a question, in order.
#[derive(Debug)]
pub struct Ranking {
    pub totals: Totals,
    /// The words of the question that no entry has, each with the words that were perhaps meant.
    pub near_words: Vec<NearWords>,
    request: Arc<AskRequest>,
    gathered: Gathered,
    /// The number of entries that were found in each file with a candidate.
    entries: HashMap<usize, u64>,
    /// Locked while a page is made.
    found: Mutex<FoundHits>,
}

/// The part of a ranking that is known.
#[derive(Debug, Default)]
struct FoundHits {
    /// The sessions that are not open yet. The session that can have the best hit is the last one.
    rest: Vec<UnopenedSession>,
    /// The hits of the opened sessions, in order, each with the number of its file.
    hits: Vec<(usize, RankedHit)>,
    /// Files that could not be searched.
    partial: Vec<UnreadFile>,
}

#[derive(Debug)]
struct UnopenedSession {
    file: usize,
    at: (Location, Status),
    candidates: Vec<Candidate>,
    /// No hit of the session has a higher score.
    bound: f64,
    /// Whether the bound was found with the lines of the candidates.
    is_read: bool,
}

/// Hits of a ranking.
#[derive(Debug, Default)]
pub struct RankingPage {
    pub hits: Vec<Hit>,
    /// Whether more hits follow these.
    pub has_more: bool,
    /// The sessions of these hits that have more entries with words of the question.
    pub more: Vec<MoreHits>,
    /// Files that could not be searched.
    pub partial: Vec<UnreadFile>,
}

/// Entries of a session that are not among the hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoreHits {
    pub session_id: String,
    pub count: u64,
}

impl Ranking {
    pub(super) fn new(request: Arc<AskRequest>, gathered: Gathered, totals: Totals) -> Self {
        Self {
            totals,
            near_words: Vec::new(),
            request,
            gathered,
            entries: HashMap::new(),
            found: Mutex::default(),
        }
    }

    /// Finds the bound of each session with a candidate. `partial` has the files that could not be searched so far.
    pub(super) fn begin(&mut self, files: &[(Location, Status)], partial: Vec<UnreadFile>) {
        let mut of_files: BTreeMap<usize, Vec<Candidate>> = BTreeMap::new();
        for candidate in std::mem::take(&mut self.gathered.candidates) {
            of_files.entry(candidate.file).or_default().push(candidate);
        }
        let entries = std::mem::take(&mut self.gathered.of_file);
        let entries_of = |file: &usize| Some((*file, *entries.get(*file)?));
        self.entries = of_files.keys().filter_map(entries_of).collect();
        let apart = of_files.values();
        let apart = apart.map(|candidates| bound::apart(&self.request, candidates));
        self.gathered.of_phrase = apart.fold(0.0, f64::max);
        let rest = of_files.into_iter().filter_map(|(file, candidates)| {
            Some(UnopenedSession {
                file,
                at: files.get(file)?.clone(),
                bound: bound::unread(&self.request, self.gathered.of_phrase, &candidates),
                is_read: false,
                candidates,
            })
        });
        let mut rest: Vec<UnopenedSession> = rest.collect();
        rest.sort_by_key(|session| OrderedScore(session.bound));
        *lock(&self.found) = FoundHits {
            rest,
            hits: Vec::new(),
            partial,
        };
    }

    /// The hits at these positions of the ranking. Fails with `cancelled`.
    pub fn page(
        &self,
        store: &Store,
        places: Range<usize>,
        cancel: &Cancel,
    ) -> Result<RankingPage> {
        let mut found = lock(&self.found);
        // One additional hit shows whether another page follows.
        let wanted = places.end.saturating_add(1).min(MOST_HITS);
        while !places.is_empty() && !found.has(wanted) {
            if found.next().iter().all(|session| session.is_read) {
                self.open_some(&mut found, store, cancel)?;
            } else {
                self.read_some(&mut found, cancel)?;
            }
        }
        let kept = found.kept();
        let of_page = kept.iter().skip(places.start).take(places.len());
        let of_page: Vec<&(usize, RankedHit)> = of_page.collect();
        Ok(RankingPage {
            has_more: kept.len() > places.end,
            more: self.more(kept, &of_page),
            hits: of_page
                .into_iter()
                .map(|(_, one)| one.hit.clone())
                .collect(),
            partial: found.partial.clone(),
        })
    }

    /// Reads the candidates of the sessions that can have the best of the missing hits. This lowers the bounds of most
    /// sessions, since their words are not as near to each other as possible. These sessions need not be opened yet.
    fn read_some(&self, found: &mut FoundHits, cancel: &Cancel) -> Result<()> {
        let (request, gathered) = (&self.request, &self.gathered);
        let look = |session: &UnopenedSession, location: &Location| match session.is_read {
            true => Ok(session.bound),
            false => bound::read(request, gathered, location, &session.candidates),
        };
        let bounds = found.in_next(look, cancel)?;
        let next = found.take_next();
        for (session, bound) in next.into_iter().zip(bounds) {
            // A file that could not be read has no bound.
            if let Some(bound) = bound {
                let session = UnopenedSession {
                    bound,
                    is_read: true,
                    ..session
                };
                let at = found.rest.partition_point(|one| one.bound <= bound);
                found.rest.insert(at, session);
            }
        }
        Ok(())
    }

    /// Opens the sessions that can have the best of the missing hits.
    fn open_some(&self, found: &mut FoundHits, store: &Store, cancel: &Cancel) -> Result<()> {
        let (request, gathered) = (&self.request, &self.gathered);
        let look = |session: &UnopenedSession, location: &Location| {
            let candidates = &session.candidates;
            answer::hits(store, request, gathered, location, candidates, cancel)
        };
        let opened = found.in_next(look, cancel)?;
        let next = found.take_next();
        for (session, hits) in next.into_iter().zip(opened) {
            let hits = hits.into_iter().flatten();
            found.hits.extend(hits.map(|hit| (session.file, hit)));
        }
        found.hits.sort_by_key(|(file, RankedHit { hit, .. })| {
            (Reverse(OrderedScore(hit.score)), Reverse(hit.at), *file)
        });
        if self.request.filters.session.is_none() {
            copies::remove(&mut found.hits, store)?;
        }
        Ok(())
    }

    /// For each session of a page: how many of its entries are not hits of the ranking. All hits of a session become
    /// known at the same time.
    fn more(&self, kept: &[(usize, RankedHit)], page: &[&(usize, RankedHit)]) -> Vec<MoreHits> {
        let mut shown: HashMap<usize, u64> = HashMap::new();
        for (file, _) in kept {
            *shown.entry(*file).or_default() += 1;
        }
        let mut more: BTreeMap<usize, MoreHits> = BTreeMap::new();
        for (file, RankedHit { hit, .. }) in page {
            let all = self.entries.get(file).copied().unwrap_or_default();
            let left = all.saturating_sub(shown.get(file).copied().unwrap_or_default());
            if left > 0 {
                more.entry(*file).or_insert_with(|| MoreHits {
                    session_id: hit.session_id.clone(),
                    count: left,
                });
            }
        }
        more.into_values().collect()
    }

    /// The number of sessions that were not opened yet.
    #[cfg(test)]
    pub(super) fn unopened(&self) -> usize {
        lock(&self.found).rest.len()
    }

    /// The approximate number of bytes of memory that the ranking takes.
    pub(super) fn bytes(&self) -> usize {
        let found = lock(&self.found);
        let hits: usize = found.hits.iter().map(|(_, one)| bytes_of(&one.hit)).sum();
        let rest = found.rest.iter().map(|session| {
            size_of::<UnopenedSession>() + size_of::<Candidate>() * session.candidates.len()
        });
        hits + rest.sum::<usize>()
    }
}

impl FoundHits {
    /// The sessions that can have the best of the missing hits.
    fn next(&self) -> &[UnopenedSession] {
        let left = self.rest.len().saturating_sub(OPENED);
        self.rest.get(left..).unwrap_or_default()
    }

    /// Removes the sessions that `next` returns.
    fn take_next(&mut self) -> Vec<UnopenedSession> {
        self.rest.split_off(self.rest.len().saturating_sub(OPENED))
    }

    /// Calls `look` for the sessions that `next` returns. Returns each result, in order; `None` for a file that cannot
    /// be read. Adds such files to `partial`.
    fn in_next<T: Send>(
        &mut self,
        look: impl Fn(&UnopenedSession, &Location) -> Result<T> + Sync,
        cancel: &Cancel,
    ) -> Result<Vec<Option<T>>> {
        let next = self.next();
        let wanted: Vec<(usize, &UnopenedSession)> = next.iter().enumerate().collect();
        let files: Vec<(Location, Status)> =
            next.iter().map(|session| session.at.clone()).collect();
        let mut all: Vec<Option<T>> = next.iter().map(|_| None).collect();
        let mut partial = Vec::new();
        let look = |session: &&UnopenedSession, location: &Location| look(session, location);
        for (number, found) in in_files(&wanted, &files, cancel, &mut partial, look)? {
            if let Some(place) = all.get_mut(number) {
                *place = Some(found);
            }
        }
        self.partial.extend(partial);
        Ok(all)
    }

    /// The hits that are in the ranking so far.
    fn kept(&self) -> &[(usize, RankedHit)] {
        self.hits.get(..MOST_HITS).unwrap_or(&self.hits)
    }

    /// Whether the first `wanted` hits of the ranking are known.
    fn has(&self, wanted: usize) -> bool {
        let Some(next) = self.rest.last() else {
            return true;
        };
        let last = wanted.checked_sub(1).and_then(|last| self.hits.get(last));
        // An unopened session may have a newer entry with an equal score.
        last.is_some_and(|(_, one)| one.hit.score > next.bound)
    }
}

fn bytes_of(hit: &Hit) -> usize {
    let left = hit.branch.left.iter();
    let said = left.flat_map(|left| {
        let reason = left.reason.iter().map(|it| &it.said);
        left.instead.iter().chain(reason)
    });
    let in_turn = hit.branch.in_turn.iter().flat_map(|left| &left.newest);
    let in_turn = in_turn.flat_map(|one| {
        let reason = one.reason.iter().map(|it| &it.said);
        one.end.iter().chain(reason)
    });
    let said = said.chain(in_turn);
    size_of::<Hit>()
        + hit.session_id.len()
        + hit.session_name.len()
        + hit.entry_id.len()
        + hit.excerpt.text.len()
        + hit.inside.iter().map(String::len).sum::<usize>()
        + said
            .map(|said| said.text.len() + said.entry_id.len())
            .sum::<usize>()
}
