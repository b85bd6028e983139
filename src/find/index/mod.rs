//! The search index: finds the parts of large session directories that may have a match (session-file.md §5.7).
//!
//! Owns the files `search*` in the cache. The index never decides a match: it excludes blocks of lines that cannot
//! match, and the scan reads the other blocks, the best blocks first. Lines that the index does not cover are scanned
//! too, so results do not depend on the index. [`words`] splits a text into words, [`segment`] is one file of the
//! index, with the sets of [`signature`], [`builder`] fills segments, [`lookup`] reads them, and [`manifest`] lists
//! them with the files that they cover.

mod builder;
mod damage;
mod lookup;
mod manifest;
mod segment;
mod signature;
mod words;

use super::file::{SearchedFile, SearchedPart};
use super::labels::{self, LabelledEntry};
use super::page::Ceiling;
use super::request::{EntryTest, SearchRequest};
use builder::{FileReader, LABEL_BYTES, LabelTexts};
use hashbrown::HashSet;
use lookup::{BlockQuery, Candidate, TextParts};
use manifest::{CoveredFile, Manifest, SegmentFile};
use segment::SegmentWriter;
use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;
use treelined_core::search::{FieldKind, Query, folded_text};
use treelined_files::cache::Cache;
use treelined_files::cancel::Cancel;
use treelined_files::log::fingerprint::Fingerprint;
use treelined_files::log::{self, Log};
use treelined_files::os::file::{Location, Status};
use treelined_files::os::handle::HandleAccess;
use treelined_files::parallel::{self, ThreadPlan};

/// Bytes of lines in a segment.
const SEGMENT: u64 = 512 << 20;
/// Bytes of different words in a segment; the writer has them in memory.
const VOCABULARY: usize = 16 << 20;
/// If the daemon ends while a segment has fewer bytes of lines than this, the segment is not kept.
const SMALLEST: u64 = 32 << 20;
/// The most segments. If there are more, the index is built again.
const MOST_SEGMENTS: usize = 64;
/// A segment that the list does not name is removed after this time.
const UNNAMED: Duration = Duration::from_secs(60);
/// The ending of segments' names.
const ENDING: &str = ".words";
/// The most threads that read segments.
const MAX_THREADS: usize = 8;

/// When an index is made, how large it may become, and how much a search reads with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexSettings {
    /// An index is made when all session files together have at least this number of bytes.
    pub from: u64,
    /// The limit of the index in bytes. Lines beyond it are scanned.
    pub most: u64,
    /// The bytes of the first batch, which has the best parts. Each later batch has twice as many bytes.
    pub first: u64,
    /// The most bytes that a search reads for its totals after it has its page.
    pub for_totals: u64,
}

impl IndexSettings {
    /// The defaults, unless `TREELINED_SEARCH_INDEX_FROM` says otherwise.
    pub fn of_environment() -> Self {
        let from = std::env::var("TREELINED_SEARCH_INDEX_FROM").ok();
        Self {
            from: from.and_then(|from| from.parse().ok()).unwrap_or(1 << 30),
            most: 4 << 30,
            first: 4 << 20,
            for_totals: 32 << 20,
        }
    }

    /// A segment is made when at least this number of bytes of lines is not in the index.
    fn worthwhile(self) -> u64 {
        (self.from / 16).max(1)
    }
}

/// Excludes the parts of files that cannot match. Notes for each other part how good its best hit can be. Marks the
/// files that are plain.
pub(super) fn narrow(
    cache: &Cache,
    request: &SearchRequest,
    files: &mut [SearchedFile],
    cancel: &Cancel,
) {
    let (query, manifest) = (&request.query, Manifest::load(cache));
    if manifest.files.is_empty() {
        return;
    }
    let mut with_known_labels = HashSet::new();
    for file in &mut *files {
        let covered = manifest.files.get(&file.status.identity);
        let known = covered.filter(|covered| covered.known_labels(file.status).is_some());
        with_known_labels.extend(known.map(|covered| covered.key));
        let plain = covered.filter(|covered| {
            covered.is_plain
                && covered.status == file.status
                && covered.fingerprint.end() == file.status.size
        });
        file.is_plain = plain.is_some();
        let cwd = plain.and_then(|covered| covered.cwd.as_deref());
        file.is_in_directory = cwd.map(|cwd| request.takes_directory(cwd));
    }
    let texts = query.required_texts().unwrap_or_default();
    let blocks = candidates(
        cache,
        &manifest,
        &block_query(&manifest, request, &texts, &with_known_labels),
        cancel,
    );
    let Some(mut blocks) = blocks else {
        // A part of the index is missing, so the index is rebuilt in the background.
        forget(cache);
        return;
    };
    let mut test = EntryTest::new(request);
    for file in files {
        let Some(covered) = still_covered(&manifest, &file.location, file.status) else {
            continue;
        };
        let labelled = covered.known_labels(file.status);
        if labelled.is_none() && has_touched_label(covered, query, &texts) {
            file.is_plain = false;
            continue;
        }
        let mut touched = |entry: &&LabelledEntry| test.touches_label(&entry.label);
        file.labelled =
            labelled.map(|entries| entries.iter().filter(&mut touched).cloned().collect());
        let rest = covered.fingerprint.end()..file.status.size;
        let rest = SearchedPart {
            span: rest,
            ceiling: Ceiling::NONE,
        };
        let found = blocks.remove(&covered.key).into_iter().flatten();
        let labelled = file.labelled.iter().flatten();
        let labelled = labelled.filter(|entry| request.takes_time(entry.at));
        let labelled = labelled.map(|LabelledEntry { span, at, .. }| SearchedPart {
            span: span.clone(),
            ceiling: Ceiling::of_labelled(*at),
        });
        let parts = found.chain(labelled);
        file.parts = parts
            .chain((!rest.span.is_empty()).then_some(rest))
            .collect();
        file.parts.sort_unstable_by_key(|part| part.span.start);
    }
}

/// The conditions of a search. A match has all folded texts of at least one list in `texts`.
fn block_query<'q>(
    manifest: &Manifest,
    request: &'q SearchRequest,
    texts: &[Vec<String>],
    with_known_labels: &HashSet<u64>,
) -> BlockQuery<'q> {
    let parts = |texts: &Vec<String>| -> Vec<TextParts> {
        texts
            .iter()
            .filter_map(|text| TextParts::of(text))
            .collect()
    };
    let mut alternatives: Vec<Vec<TextParts>> = texts.iter().map(parts).collect();
    if alternatives.iter().any(Vec::is_empty) {
        alternatives.clear();
    }
    let tools = request.entries.iter();
    let tools = tools.filter_map(|filter| filter.tool.as_deref().map(folded_text));
    let mut test = EntryTest::new(request);
    let (mut labelled, mut named) = (HashSet::new(), HashSet::new());
    for covered in manifest.files.values() {
        let LabelTexts {
            texts,
            names,
            are_more,
        } = &covered.labels;
        let mut has_touched =
            |texts: &[String]| *are_more || texts.iter().any(|text| test.touches_label(text));
        if !request.fields.has(FieldKind::Labels) {
            continue;
        }
        if has_touched(names) {
            named.insert(covered.key);
        }
        if !with_known_labels.contains(&covered.key) && has_touched(texts) {
            named.insert(covered.key);
            labelled.insert(covered.key);
        }
    }
    BlockQuery {
        request,
        alternatives,
        required: tools
            .filter_map(|tool| TextParts::of_field(&tool))
            .collect(),
        labelled,
        named,
    }
}

/// The blocks of each file that may have a match, by the key of the file; `None` if a segment cannot be used.
fn candidates(
    cache: &Cache,
    manifest: &Manifest,
    query: &BlockQuery<'_>,
    cancel: &Cancel,
) -> Option<HashMap<u64, Vec<SearchedPart>>> {
    let look = |(): &mut (), number: usize| {
        let SegmentFile { name, status } = manifest.segments.get(number)?;
        let at = cache.location(name).filter(|at| is_intact(at, *status))?;
        let file = at.folder.file(&at.name, HandleAccess::Read).ok()?;
        let found = lookup::candidates(&file, query);
        let unusable = |error: &io::Error| tracing::info!(%error, name, "a segment is unusable");
        found.inspect_err(unusable).ok()
    };
    let mut by_file: HashMap<u64, Vec<SearchedPart>> = HashMap::new();
    let plan = ThreadPlan::up_to(MAX_THREADS);
    let done = parallel::map_in_order(
        manifest.segments.len(),
        plan,
        || (),
        look,
        |found| {
            let Some(found) = found.filter(|_| !cancel.is_cancelled()) else {
                return ControlFlow::Break(());
            };
            for found in found {
                let Candidate {
                    file,
                    span,
                    ceiling,
                } = found;
                let parts = by_file.entry(file).or_default();
                parts.push(SearchedPart { span, ceiling });
            }
            ControlFlow::Continue(())
        },
    );
    // A cancelled search ignores the result.
    (done.is_continue() || cancel.is_cancelled()).then_some(by_file)
}

/// Whether the file of a segment is unchanged. A program that changes the file also changes its modification time.
fn is_intact(at: &Location, status: Status) -> bool {
    at.status().is_ok_and(|now| now == status)
}

/// The part of a file that the index covers, if the file still begins with these bytes.
fn still_covered<'m>(
    manifest: &'m Manifest,
    location: &Location,
    status: Status,
) -> Option<&'m CoveredFile> {
    let covered = manifest.files.get(&status.identity)?;
    if covered.status == status {
        return Some(covered);
    }
    let file = location
        .folder
        .file(&location.name, HandleAccess::Read)
        .ok()?;
    covered
        .fingerprint
        .matches(&file, status)
        .then_some(covered)
}

/// Whether a label of the file may be part of a match. The entry that it labels may be in another block.
fn has_touched_label(covered: &CoveredFile, query: &Query, texts: &[Vec<String>]) -> bool {
    let LabelTexts {
        texts: labels,
        are_more,
        ..
    } = &covered.labels;
    let is_in = |label: &String| {
        let label = folded_text(label);
        texts.iter().flatten().any(|text| label.contains(text))
    };
    query.all() > 1 && (*are_more || labels.iter().any(is_in))
}

/// Deletes the index.
fn forget(cache: &Cache) {
    if let Err(error) = Manifest::default().save(cache) {
        tracing::info!(%error, "the search index could not be given up");
    }
}

/// Updates the index for these files, as far as the limit allows. If the update is killed or cancelled, the finished
/// segments remain.
pub(crate) fn update(
    cache: &Cache,
    settings: IndexSettings,
    files: &[(Location, Status)],
    cancel: &Cancel,
) -> io::Result<()> {
    let mut manifest = Manifest::load(cache);
    let is_usable = |segment: &SegmentFile| {
        let at = cache.location(&segment.name);
        at.is_some_and(|at| is_intact(&at, segment.status))
    };
    let is_whole = manifest.segments.iter().all(is_usable);
    if !is_whole || manifest.segments.len() > MOST_SEGMENTS {
        manifest = Manifest::default();
    }
    let mut open = Vec::new();
    for (location, status) in files {
        let start = match still_covered(&manifest, location, *status) {
            Some(covered) => covered.fingerprint.end(),
            None => {
                manifest.files.remove(&status.identity);
                0
            }
        };
        if start < status.size {
            open.push((location, *status, start));
        }
    }
    let bytes: u64 = open
        .iter()
        .map(|(_, status, start)| status.size - start)
        .sum();
    if bytes < settings.worthwhile() {
        return Ok(());
    }
    let mut open = open.into_iter().peekable();
    let mut kept: u64 = manifest
        .segments
        .iter()
        .map(|segment| segment.status.size)
        .sum();
    if kept < settings.most {
        remove_others(cache, &manifest)?;
    }
    while open.peek().is_some() && kept < settings.most && !cancel.is_cancelled() {
        let mut next = NextSegment::begin(cache)?;
        while next.has_room()
            && !cancel.is_cancelled()
            && let Some((location, status, start)) = open.next()
        {
            let labelled = save_side_index(cache, location, cancel)?;
            next.add(&mut manifest, (location, status), start, labelled, cancel)?;
        }
        cache.prune(&log::index::KIND)?;
        if cancel.is_cancelled() && next.bytes < SMALLEST {
            return Ok(());
        }
        kept += next.publish(cache, &mut manifest)?;
    }
    Ok(())
}

/// Writes the side index of a session, so that it opens faster when it has a hit on a page. Returns the labelled
/// entries of the session, if their labels have at most `LABEL_BYTES` bytes together.
fn save_side_index(
    cache: &Cache,
    location: &Location,
    cancel: &Cancel,
) -> io::Result<Option<Vec<LabelledEntry>>> {
    // A session that cannot be opened is reported by the searches that find its lines.
    let Ok((opened, index)) = Log::open_indexed(location.clone(), cache, cancel) else {
        return Ok(None);
    };
    if let Some(index) = index {
        index.save(cache)?;
    }
    let labelled = labels::labelled_entries(&opened).ok();
    Ok(labelled.filter(|all| all.iter().map(|one| one.label.len()).sum::<usize>() <= LABEL_BYTES))
}

/// Removes segments that the list does not name. Keeps new segments, since another process may be about to write a list
/// that names them.
fn remove_others(cache: &Cache, manifest: &Manifest) -> io::Result<()> {
    let is_named = |name: &str| manifest.segments.iter().any(|segment| segment.name == name);
    cache.remove_old(UNNAMED, |name| name.ends_with(ENDING) && !is_named(name))
}

/// The segment that is being written.
struct NextSegment {
    temporary: treelined_files::os::temporary::Temporary,
    at: Location,
    writer: SegmentWriter,
    /// Bytes of lines.
    bytes: u64,
    files: Vec<(Status, CoveredFile)>,
}

impl NextSegment {
    fn begin(cache: &Cache) -> io::Result<Self> {
        let name = format!(
            "search-{}{ENDING}",
            treelined_files::clock::new_session_id()
        );
        let (temporary, at) = cache.temporary(&name)?;
        Ok(Self {
            temporary,
            at,
            writer: SegmentWriter::new(),
            bytes: 0,
            files: Vec::new(),
        })
    }

    fn has_room(&self) -> bool {
        self.bytes < SEGMENT && self.writer.vocabulary_bytes() < VOCABULARY
    }

    /// Adds the lines of a file from `start` on.
    fn add(
        &mut self,
        manifest: &mut Manifest,
        (location, status): (&Location, Status),
        start: u64,
        labelled: Option<Vec<LabelledEntry>>,
        cancel: &Cancel,
    ) -> io::Result<()> {
        // The scan reads a file that cannot be read here, and reports it.
        let Ok(file) = location.folder.file(&location.name, HandleAccess::Read) else {
            return Ok(());
        };
        let before = manifest.files.get(&status.identity).filter(|_| start > 0);
        let (labels, cwd) = before
            .map(|covered| (covered.labels.clone(), covered.cwd.clone()))
            .unwrap_or_default();
        let key = match before {
            Some(covered) => covered.key,
            None => {
                manifest.next_key += 1;
                manifest.next_key
            }
        };
        let span = start..status.size;
        let mut reader = FileReader::new(&mut self.writer, key, labels, cwd);
        let end = reader.read(&file, span, cancel)?;
        let (labels, cwd, is_plain) = reader.finish();
        self.bytes += end - start;
        if let Some(fingerprint) = Fingerprint::of(&file, status, end).filter(|_| end > start) {
            let covered = CoveredFile {
                key,
                fingerprint,
                status,
                is_plain,
                cwd,
                labels,
                labelled,
            };
            self.files.push((status, covered));
        }
        Ok(())
    }

    /// Makes the segment part of the index; returns its size in bytes.
    fn publish(self, cache: &Cache, manifest: &mut Manifest) -> io::Result<u64> {
        self.writer.finish(self.temporary.file())?;
        self.temporary.name(&self.at)?;
        let status = self.at.status()?;
        manifest.segments.push(SegmentFile {
            name: self.at.name.to_string_lossy().into_owned(),
            status,
        });
        let files = self.files.into_iter();
        manifest
            .files
            .extend(files.map(|(status, covered)| (status.identity, covered)));
        manifest.save(cache)?;
        Ok(status.size)
    }
}
