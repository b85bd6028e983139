//! The segments of a session directory: which are read, and when new ones are made.
//!
//! A list in the cache names them. Sessions that are in no segment, or have changed since, are read from their own files;
//! when there are enough of them, they become a segment. A segment of which most sessions have changed is given up, and its
//! other sessions go into the next one.

use super::counts::Counts;
use super::kept::KeptCounts;
use super::segment::{self, Segment, SegmentBuilder, SegmentSession, TermPostings};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use treelined_core::budget::SEGMENT_BYTES;
use treelined_core::bytes::{Cursor, Fields};
use treelined_core::search::ask::Term;
use treelined_files::cache::{Cache, FormatName};
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::os::file::{Identity, Location, Status};

const LIST: &str = "ask.list";
const FORMAT: &FormatName = b"treelined asking";
/// The sessions outside of segments that are enough for one.
const WORTHWHILE: usize = 64;
/// The bytes of kept counts in a segment; the writer has them in memory.
const SEGMENT: usize = 32 << 20;
/// Segments smaller than `SMALL` are joined when there are at least `MOST_SMALL` of them.
const SMALL: u64 = 8 << 20;
const MOST_SMALL: usize = 8;
/// The most bytes of all segments. Sessions that do not fit are read from their own files.
const MOST: u64 = 4 << 30;
/// The time for which a segment that no list names is kept.
const UNNAMED: Duration = Duration::from_secs(60);

/// The counts of terms that a daemon keeps in memory between questions.
#[derive(Default)]
pub struct AskIndex {
    loaded: Mutex<Arc<Segments>>,
}

/// The segments that a list names.
pub(super) struct Segments {
    numbers: Vec<u64>,
    all: Vec<Arc<LoadedSegment>>,
    /// The segments that do not fit into memory.
    unread: Vec<u64>,
    /// Whether none of them is damaged or missing.
    are_whole: bool,
    rows: HashMap<Identity, Vec<Row>>,
}

impl Default for Segments {
    fn default() -> Self {
        Self {
            numbers: Vec::new(),
            all: Vec::new(),
            unread: Vec::new(),
            are_whole: true,
            rows: HashMap::new(),
        }
    }
}

struct LoadedSegment {
    number: u64,
    segment: Segment,
    /// Set when a part of it cannot be read.
    is_damaged: AtomicBool,
}

/// A session in a segment: the number of the segment among those that are loaded, and its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub segment: usize,
    pub session: u32,
}

impl AskIndex {
    /// The segments as they are now.
    pub(super) fn segments(&self, cache: &Cache) -> Arc<Segments> {
        let numbers = listed(cache);
        let mut loaded = lock(&self.loaded);
        if loaded.numbers != numbers || loaded.all.iter().any(|one| one.has_damage()) {
            *loaded = Arc::new(Segments::load(cache, numbers, &loaded));
        }
        Arc::clone(&loaded)
    }
}

/// The numbers of the segments.
fn listed(cache: &Cache) -> Vec<u64> {
    let read = || {
        let list = cache.open(LIST, FORMAT)?;
        let mut fields = Cursor::new(&list.summary);
        let numbers = fields.list(Cursor::u64)?;
        fields.is_at_end().then_some(numbers)
    };
    read().unwrap_or_default()
}

impl LoadedSegment {
    fn has_damage(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Notes damage.
    fn whole<T>(&self, read: Option<T>) -> Option<T> {
        if read.is_none() {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl Segments {
    /// Opens the segments that `before` does not have. Damaged ones are left out, and those that do not fit.
    fn load(cache: &Cache, numbers: Vec<u64>, before: &Self) -> Self {
        let (mut all, mut unread, mut are_whole) = (Vec::new(), Vec::new(), true);
        let mut left = SEGMENT_BYTES;
        for number in &numbers {
            let known = before.all.iter().find(|one| one.number == *number);
            let opened = match known {
                Some(known) if known.has_damage() => None,
                Some(known) => Some(Arc::clone(known)),
                None => Segment::open(cache, *number, left).map(|segment| {
                    Arc::new(LoadedSegment {
                        number: *number,
                        segment,
                        is_damaged: AtomicBool::new(false),
                    })
                }),
            };
            let Some(opened) = opened else {
                are_whole = false;
                continue;
            };
            match left.checked_sub(opened.segment.bytes()) {
                Some(rest) => {
                    left = rest;
                    all.push(opened);
                }
                None => unread.push(*number),
            }
        }
        let mut rows: HashMap<Identity, Vec<Row>> = HashMap::new();
        for (segment, loaded) in all.iter().enumerate() {
            for (session, of) in (0..).zip(&loaded.segment.sessions) {
                let row = Row { segment, session };
                rows.entry(of.status.identity).or_default().push(row);
            }
        }
        Self {
            numbers,
            all,
            unread,
            are_whole,
            rows,
        }
    }

    /// The names of the segments that are read.
    #[cfg(test)]
    pub(super) fn files(&self) -> Vec<String> {
        self.all
            .iter()
            .map(|one| segment::name(one.number))
            .collect()
    }

    fn are_whole(&self) -> bool {
        self.are_whole && !self.all.iter().any(|one| one.has_damage())
    }

    /// Where the session of a file with this status is.
    pub(super) fn row(&self, status: Status) -> Option<Row> {
        let rows = self.rows.get(&status.identity)?;
        let is_current = |row: &&Row| {
            let session = self.session(**row);
            session.is_some_and(|session| session.status == status)
        };
        rows.iter().find(is_current).copied()
    }

    pub(super) fn session(&self, row: Row) -> Option<&SegmentSession> {
        let of = self.all.get(row.segment)?;
        of.segment.sessions.get(row.session as usize)
    }

    /// The words of each segment, a line each, with the number of the segment.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, &Segment, Vec<u8>)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(number, loaded)| {
            let words = loaded.whole(loaded.segment.words())?;
            Some((number, &loaded.segment, words))
        })
    }

    /// Looks up the terms of a question, and others, in the segments that have a session of these files.
    pub(super) fn look_up(
        &self,
        terms: &[Term],
        others: &[Term],
        files: &[(Location, Status)],
    ) -> FoundTerms<'_> {
        let rows = files.iter().filter_map(|(_, status)| self.row(*status));
        let needed: HashSet<usize> = rows.map(|row| row.segment).collect();
        let found = |(number, loaded): (usize, &Arc<LoadedSegment>)| {
            let look = |terms: &[Term]| -> Option<Vec<(Term, TermPostings)>> {
                let postings = |term: &Term| Some((*term, loaded.segment.postings(*term)?));
                terms.iter().map(postings).collect()
            };
            let read = || loaded.whole(look(terms).zip(look(others)));
            needed.contains(&number).then(read).flatten()
        };
        FoundTerms {
            segments: self,
            by_segment: self.all.iter().enumerate().map(found).collect(),
        }
    }
}

type Found = Vec<(Term, TermPostings)>;

/// The postings of the terms of a question, and of facts, by segment; `None` for one that is damaged or not needed.
pub(super) struct FoundTerms<'s> {
    segments: &'s Segments,
    by_segment: Vec<Option<(Found, Found)>>,
}

/// The counts of a session in a segment.
pub(super) enum FoundSession {
    /// It has no term of the question.
    Without,
    With(Counts),
}

impl FoundTerms<'_> {
    /// `None` if they cannot be read.
    pub(super) fn session(&self, row: Row) -> Option<FoundSession> {
        let (terms, others) = self.by_segment.get(row.segment)?.as_ref()?;
        if !terms.iter().any(|(_, postings)| postings.has(row.session)) {
            return Some(FoundSession::Without);
        }
        let loaded = self.segments.all.get(row.segment)?;
        let session = self.segments.session(row)?;
        let mut counts = Counts {
            cwd: session.cwd.clone(),
            branches: u32::try_from(session.corpus.branches).ok()?,
            has_archive: session.has_archive,
            end: session.status.size,
            entries: loaded.whole(loaded.segment.entries(session))?,
            ..Counts::default()
        };
        for (term, postings) in terms.iter().chain(others) {
            let postings = loaded.whole(postings.of_session(row.session))?;
            if !postings.is_empty() {
                counts.postings.insert(*term, postings);
            }
        }
        Some(FoundSession::With(counts))
    }
}

/// Whether there is a segment to make for these files, which are those of all sessions.
pub(super) fn is_due(segments: &Segments, files: &[(Location, Status)]) -> bool {
    let is_outside = |status: Status| status.size > 0 && segments.row(status).is_none();
    let outside = files.iter().filter(|(_, status)| is_outside(*status));
    !segments.are_whole() || segments.unread.is_empty() && outside.count() >= WORTHWHILE
}

/// Makes segments of the sessions that are in none, if there are enough of them.
pub(super) fn update(
    cache: &Cache,
    segments: &Segments,
    files: &[(Location, Status)],
    cancel: &Cancel,
) -> io::Result<()> {
    if !is_due(segments, files) {
        return Ok(());
    }
    let kept = worth_keeping(segments, files);
    let is_given_up = kept.len() + segments.unread.len() < segments.numbers.len();
    let mut numbers: Vec<u64> = kept.iter().map(|one| one.number).collect();
    numbers.extend(&segments.unread);
    let mut left = MOST.saturating_sub(kept.iter().map(|one| one.segment.file_bytes()).sum());
    let mut next = segments.numbers.iter().max().map_or(0, |last| last + 1);
    let mut builder = SegmentBuilder::default();
    let mut finish = |builder: SegmentBuilder| -> io::Result<()> {
        let bytes = builder.bytes as u64;
        if builder.len() == 0 || bytes > left {
            return Ok(());
        }
        left -= bytes;
        builder.write(cache, next)?;
        numbers.push(next);
        next += 1;
        save(cache, &numbers)
    };
    for (_, status) in files {
        if cancel.is_cancelled() {
            break;
        }
        let is_inside = segments.row(*status).is_some_and(|row| {
            let own = segments.all.get(row.segment);
            own.is_some_and(|own| kept.iter().any(|one| one.number == own.number))
        });
        if is_inside {
            continue;
        }
        let counts = KeptCounts::open(cache, *status);
        let whole = counts.filter(|kept| kept.is_current(*status));
        if let Some(whole) = whole {
            // Counts that are damaged are made again by the next question.
            let _damaged = builder.add(&whole);
        }
        if builder.bytes >= SEGMENT {
            finish(std::mem::take(&mut builder))?;
        }
    }
    // The sessions of a segment that is given up stay in one; others wait until there are more of them.
    if is_given_up || builder.len() >= WORTHWHILE {
        finish(builder)?;
    }
    let is_named = |name: &str| numbers.iter().any(|number| segment::name(*number) == name);
    save(cache, &numbers)?;
    cache.remove_old(UNNAMED, |name| segment::is_name(name) && !is_named(name))
}

/// Writes the list.
pub(super) fn save(cache: &Cache, numbers: &[u64]) -> io::Result<()> {
    let mut list = Fields::default();
    list.count(numbers.len());
    numbers.iter().for_each(|number| list.u64(*number));
    cache.write(LIST, FORMAT, &list.0, &[])
}

/// The segments that stay: whole ones of which at least half of the sessions have not changed, and small ones only if they are few.
fn worth_keeping<'s>(
    segments: &'s Segments,
    files: &[(Location, Status)],
) -> Vec<&'s LoadedSegment> {
    let mut current = vec![0; segments.all.len()];
    for (_, status) in files {
        let row = segments.row(*status);
        if let Some(of) = row.and_then(|row| current.get_mut(row.segment)) {
            *of += 1;
        }
    }
    let whole = segments.all.iter().zip(current);
    let whole = whole
        .filter(|(one, current)| !one.has_damage() && *current * 2 >= one.segment.sessions.len());
    let mut kept: Vec<&LoadedSegment> = whole.map(|(one, _)| &**one).collect();
    let is_small = |one: &&LoadedSegment| one.segment.file_bytes() < SMALL;
    if kept.iter().filter(|one| is_small(one)).count() >= MOST_SMALL {
        kept.retain(|one| !is_small(one));
    }
    kept
}
