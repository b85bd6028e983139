//! The segments of a session directory: which are read, and when new ones are made.
//!
//! A list in the cache names the segments. Some sessions are in no segment, or have changed since their segment was
//! made. Their counts are read from a file for each session (`kept`). When there are enough of such sessions, they
//! become a new segment. A segment is given up when most of its sessions have changed. Its other sessions then go into
//! a new segment.

use super::counts::{Posting, SessionCounts, labels};
use super::entries::EntryList;
use super::kept::{self, KIND, KeptCounts};
use super::segment::{self, Segment, SegmentBuilder, SegmentSession, TermPostings};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use treelined_core::bytes::{Cursor, Fields};
use treelined_core::search::ask::Term;
use treelined_files::cache::{Cache, FormatName};
use treelined_files::cancel::Cancel;
use treelined_files::kept::{Kept, KeptPart};
use treelined_files::lock::lock;
use treelined_files::os::file::{Identity, Location, Status};
use treelined_files::store::Store;

const LIST: &str = "ask.list";
const FORMAT: &FormatName = b"treelined asking";
/// A segment is made when at least this number of sessions is in no segment.
const WORTHWHILE: usize = 64;
/// A segment is written when it has this number of bytes of kept counts. The writer has them in memory.
const SEGMENT: usize = 32 << 20;
/// Segments smaller than `SMALL` are joined when there are at least `MOST_SMALL` of them.
const SMALL: u64 = 8 << 20;
const MOST_SMALL: usize = 8;
/// The most bytes of all segments. The counts of sessions that do not fit stay in their own files.
const MOST: u64 = 4 << 30;
/// When the counts of a session are in a segment, and the session file has at most this size, the file with the counts
/// of only this session is removed. The session is counted again if it changes, or if its segment is given up.
const COUNTED_AGAIN: u64 = 4 << 20;
/// The bytes of a session in the table of rows.
const ROW_BYTES: usize = size_of::<Identity>() + size_of::<Vec<Row>>() + 2 * size_of::<Row>();
/// A segment that the list does not name is removed after this time.
const UNNAMED: Duration = Duration::from_secs(60);

/// The counts of terms that a daemon keeps in memory between questions.
#[derive(Default)]
pub struct AskIndex {
    loaded: Arc<Mutex<Arc<Segments>>>,
}

/// The segments that a list names.
pub(super) struct Segments {
    numbers: Vec<u64>,
    all: Vec<Arc<LoadedSegment>>,
    /// The segments that do not fit into memory.
    unread: Vec<u64>,
    /// Whether each segment of the list could be opened.
    are_whole: bool,
    rows: HashMap<Identity, Vec<Row>>,
    /// The memory of the segments; `None` if there was no memory to keep them.
    part: Option<KeptPart>,
}

impl Default for Segments {
    fn default() -> Self {
        Self {
            numbers: Vec::new(),
            all: Vec::new(),
            unread: Vec::new(),
            are_whole: true,
            rows: HashMap::new(),
            part: None,
        }
    }
}

struct LoadedSegment {
    number: u64,
    segment: Segment,
    /// Set when a part of the segment cannot be read.
    is_damaged: AtomicBool,
}

/// A session in a segment: the number of the segment among the loaded segments, and the number of the session in the
/// segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub segment: usize,
    pub session: u32,
}

impl AskIndex {
    /// The segments of a store with this cache; none without a cache.
    pub(super) fn of(&self, store: &Store, cache: Option<&Cache>) -> Arc<Segments> {
        let segments = cache.map(|cache| self.segments(cache, store.kept()));
        segments.unwrap_or_default()
    }

    /// The segments that the list names now. Opens the segments that are not in memory yet.
    pub(super) fn segments(&self, cache: &Cache, memory: &Arc<Kept>) -> Arc<Segments> {
        let numbers = listed(cache);
        let mut loaded = lock(&self.loaded);
        if loaded.numbers == numbers && !loaded.all.iter().any(|one| one.has_damage()) {
            if let Some(part) = &loaded.part {
                part.used();
            }
            return Arc::clone(&loaded);
        }
        let mut new = Segments::load(cache, numbers, &loaded, memory.most() / 4 * 3);
        *loaded = Arc::default();
        let all = Arc::downgrade(&self.loaded);
        new.part = memory.take(new.bytes(), move || {
            if let Some(all) = all.upgrade()
                && let Ok(mut loaded) = all.try_lock()
            {
                *loaded = Arc::default();
            }
        });
        let new = Arc::new(new);
        if new.part.is_some() {
            *loaded = Arc::clone(&new);
        }
        new
    }
}

/// The numbers of the segments in the list; none if the list is missing or damaged.
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

    /// Returns `read`. If `read` is `None`, marks the segment as damaged.
    fn whole<T>(&self, read: Option<T>) -> Option<T> {
        if read.is_none() {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        read
    }
}

impl Segments {
    /// Opens the segments that `before` does not have. Leaves out damaged segments, and segments that do not fit into
    /// `most` bytes.
    fn load(cache: &Cache, numbers: Vec<u64>, before: &Self, most: usize) -> Self {
        let (mut all, mut unread, mut are_whole) = (Vec::new(), Vec::new(), true);
        let mut left = most;
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
            part: None,
        }
    }

    fn bytes(&self) -> usize {
        let segments = self
            .all
            .iter()
            .map(|one| one.segment.bytes())
            .sum::<usize>();
        segments + self.rows.len() * ROW_BYTES
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

    /// The row of the session whose file has this status.
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

    /// For each segment: its number, the segment, and its words, one on each line.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, &Segment, Vec<u8>)> {
        let all = self.all.iter().enumerate();
        all.filter_map(|(number, loaded)| {
            let words = loaded.whole(loaded.segment.words())?;
            Some((number, &loaded.segment, words))
        })
    }

    /// Looks up the terms and the facts of a question, and the fact of labels. Reads only the segments that have a
    /// session of these files.
    pub(super) fn look_up(
        &self,
        terms: &[Term],
        facts: &[Term],
        files: &[(Location, Status)],
    ) -> FoundTerms<'_> {
        let others = [facts, &[labels()]].concat();
        let rows = files.iter().filter_map(|(_, status)| self.row(*status));
        let needed: HashSet<usize> = rows.map(|row| row.segment).collect();
        let found = |(number, loaded): (usize, &Arc<LoadedSegment>)| {
            let look = |terms: &[Term]| -> Option<Vec<(Term, TermPostings)>> {
                let postings = |term: &Term| Some((*term, loaded.segment.postings(*term)?));
                terms.iter().map(postings).collect()
            };
            let read = || loaded.whole(look(terms).zip(look(&others)));
            needed.contains(&number).then(read).flatten()
        };
        FoundTerms {
            segments: self,
            by_segment: self.all.iter().enumerate().map(found).collect(),
        }
    }
}

type Found = Vec<(Term, TermPostings)>;

/// For each segment, the postings of the terms of a question, and the postings of its facts and of labels; `None` for a
/// segment that is damaged or not needed.
pub(super) struct FoundTerms<'s> {
    segments: &'s Segments,
    by_segment: Vec<Option<(Found, Found)>>,
}

/// The counts of a session in a segment.
pub(super) enum FoundSession<'s> {
    /// The session has no term of the question.
    Without,
    With(SessionCounts<'s>),
}

impl<'s> FoundTerms<'s> {
    /// The counts of a session; `None` if they cannot be read.
    pub(super) fn session(&self, row: Row) -> Option<FoundSession<'s>> {
        let (terms, others) = self.by_segment.get(row.segment)?.as_ref()?;
        if !terms.iter().any(|(_, postings)| postings.has(row.session)) {
            return Some(FoundSession::Without);
        }
        let loaded = self.segments.all.get(row.segment)?;
        let session = self.segments.session(row)?;
        let of = |found: &[(Term, TermPostings)]| -> Option<Vec<Cow<'s, [Posting]>>> {
            let postings = found.iter();
            let postings = postings.map(|(_, all)| all.of_session(row.session).map(Cow::from));
            loaded.whole(postings.collect())
        };
        let mut facts = of(others)?;
        Some(FoundSession::With(SessionCounts {
            corpus: session.corpus,
            has_archive: session.has_archive,
            entries: EntryList::Packed(loaded.whole(loaded.segment.entries(session))?),
            terms: of(terms)?,
            labels: facts.pop().unwrap_or_default(),
            facts,
        }))
    }
}

/// Whether segments must be made. `files` must have the files of all sessions.
pub(super) fn is_due(segments: &Segments, files: &[(Location, Status)]) -> bool {
    let is_outside = |status: Status| status.size > 0 && segments.row(status).is_none();
    let outside = files.iter().filter(|(_, status)| is_outside(*status));
    !segments.are_whole() || segments.unread.is_empty() && outside.count() >= WORTHWHILE
}

/// Makes segments of the sessions that are in no segment, if there are enough of them.
pub(super) fn update(
    cache: &Cache,
    segments: &Segments,
    files: &[(Location, Status)],
    cancel: &Cancel,
) -> io::Result<()> {
    if !is_due(segments, files) {
        return Ok(());
    }
    let mut writer = SegmentsWriter::new(cache, segments, files);
    for (location, status) in files {
        if cancel.is_cancelled() {
            break;
        }
        if !writer.is_kept(*status) {
            writer.add(location, *status, cancel)?;
        }
    }
    writer.finish()
}

/// Writes the segments of an update.
struct SegmentsWriter<'s> {
    cache: &'s Cache,
    segments: &'s Segments,
    /// The numbers of the segments that stay, and of the new segments.
    numbers: Vec<u64>,
    /// Undamaged segments that are given up. The list names them until their sessions are in other segments.
    given_up: Vec<u64>,
    /// The bytes that new segments may take.
    left: u64,
    next: u64,
    builder: SegmentBuilder,
    /// The sessions in `builder` (`waiting`), and the sessions in new segments (`written`).
    waiting: Vec<Status>,
    written: Vec<Status>,
}

impl<'s> SegmentsWriter<'s> {
    fn new(cache: &'s Cache, segments: &'s Segments, files: &[(Location, Status)]) -> Self {
        let kept = worth_keeping(segments, files);
        let bytes = kept.iter().map(|one| one.segment.file_bytes()).sum();
        let mut numbers: Vec<u64> = kept.iter().map(|one| one.number).collect();
        numbers.extend(&segments.unread);
        let whole = segments.all.iter().filter(|one| !one.has_damage());
        let given_up = whole.map(|one| one.number);
        Self {
            cache,
            segments,
            given_up: given_up.filter(|one| !numbers.contains(one)).collect(),
            numbers,
            left: MOST.saturating_sub(bytes),
            next: segments.numbers.iter().max().map_or(0, |last| last + 1),
            builder: SegmentBuilder::default(),
            waiting: Vec::new(),
            written: Vec::new(),
        }
    }

    /// Whether the session is in a segment that stays.
    fn is_kept(&self, status: Status) -> bool {
        let own = self.segments.row(status);
        let own = own.and_then(|row| self.segments.all.get(row.segment));
        own.is_some_and(|own| self.numbers.contains(&own.number))
    }

    fn add(&mut self, location: &Location, status: Status, cancel: &Cancel) -> io::Result<()> {
        let whole = || {
            let kept = KeptCounts::open(self.cache, status);
            kept.filter(|kept| kept.is_current(status))
        };
        let mut counts = whole();
        if counts.is_none() && self.segments.row(status).is_some() {
            kept::count(self.cache, location, status, cancel)?;
            counts = whole();
        }
        // Counts that are damaged are made again by the next question.
        if counts.is_some_and(|counts| self.builder.add(&counts).is_some()) {
            self.waiting.push(status);
        }
        match self.builder.bytes >= SEGMENT {
            true => self.write(),
            false => Ok(()),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let builder = std::mem::take(&mut self.builder);
        let (bytes, waiting) = (builder.bytes as u64, std::mem::take(&mut self.waiting));
        if builder.len() == 0 || bytes > self.left {
            return Ok(());
        }
        self.left -= bytes;
        builder.write(self.cache, self.next)?;
        self.written.extend(waiting);
        self.numbers.push(self.next);
        self.next += 1;
        save(self.cache, &[&*self.numbers, &self.given_up].concat())
    }

    /// Writes the last segment and the list, and removes the files that they replace.
    fn finish(mut self) -> io::Result<()> {
        // If a segment is given up or was lost, its sessions go into a new segment even if they are few. Other sessions
        // wait until there are enough of them.
        let known = self.numbers.len() + self.given_up.len();
        let has_lost = known < self.segments.numbers.len();
        if has_lost || !self.given_up.is_empty() || self.builder.len() >= WORTHWHILE {
            self.write()?;
        }
        save(self.cache, &self.numbers)?;
        let is_unnamed = |name: &str| {
            let mut numbers = self.numbers.iter();
            segment::is_name(name) && !numbers.any(|number| segment::name(*number) == name)
        };
        self.cache.remove_old(UNNAMED, is_unnamed)?;
        for status in self.written.iter().filter(|one| one.size <= COUNTED_AGAIN) {
            self.cache.remove(&KIND, status.identity);
        }
        Ok(())
    }
}

/// Writes the list.
pub(super) fn save(cache: &Cache, numbers: &[u64]) -> io::Result<()> {
    let mut list = Fields::default();
    list.count(numbers.len());
    numbers.iter().for_each(|number| list.u64(*number));
    cache.write(LIST, FORMAT, &list.0, &[])
}

/// The segments that stay. At least half of the sessions of such a segment have not changed, and it is not damaged.
/// Small segments stay only if there are fewer than `MOST_SMALL` of them.
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
