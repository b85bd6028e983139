//! Finds the values of filters that no session and no entry has, such as a mistyped name of a tool. Also finds the
//! values that were perhaps meant.
//!
//! The kept words of a session have a line such as `tool:bash` for each value. Lines without kept words are read from
//! the session file.

use super::counts::{self, VALUES_LEFT_OUT, each_value, scanned};
use super::kept::KeptCounts;
use super::segments::{AskIndex, Row, Segments};
use super::vocabulary::NearWords;
use crate::request::SearchRequest;
use crate::searched::SearchedStore;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use treelined_core::entry::{Kind, Line};
use treelined_core::error::{Error, Result};
use treelined_core::name;
use treelined_core::suggest;
use treelined_files::cache::Cache;
use treelined_files::cancel::Cancel;
use treelined_files::log::lines::Lines;
use treelined_files::os::file::{Location, Status};
use treelined_files::os::handle::HandleAccess;

/// The most bytes of session files that are read for values. If more bytes have no kept words, no unknown values are
/// reported.
const MOST_BYTES: u64 = 256 << 20;
/// The most known values that are proposed.
const MOST: usize = 8;
/// The most values that complete a query.
const MOST_COMPLETED: usize = 20;

/// The values of filters in the text of the query that the searched sessions do not have. Each comes with known values:
/// similar values, or else the values that most sessions have. Empty if this cannot be decided in little time. If
/// `reads` is false, only kept words are used. Fails with `cancelled`.
pub fn unknown_values(
    searched: SearchedStore<'_>,
    index: &AskIndex,
    request: &SearchRequest,
    reads: bool,
    cancel: &Cancel,
) -> Result<Vec<NearWords>> {
    let of_sessions = of_sessions(searched, request)?;
    let wanted: Vec<(&str, &str)> = request.named_entries.values().collect();
    if !of_sessions.is_empty() || wanted.is_empty() {
        return Ok(of_sessions);
    }
    let cache = searched.store.cache();
    let segments = index.of(searched.store, cache.as_ref());
    let most = if reads { MOST_BYTES } else { 0 };
    let mut known = KnownValues::new(request, cache.as_ref(), most, cancel);
    known.add(&segments, &searched.files(request)?)?;
    if !known.is_whole {
        return Ok(Vec::new());
    }
    let unknown = wanted.into_iter().filter_map(|(name, value)| {
        let mut of_filter: BTreeMap<&str, usize> = BTreeMap::new();
        for (known, sessions) in &known.values {
            let known = known.split_once(':').filter(|(of, _)| *of == name);
            of_filter.extend(known.map(|(_, known)| (known, *sessions)));
        }
        let is_known = of_filter.contains_key(&*value.to_ascii_lowercase());
        (!is_known && value.len() <= counts::MOST_VALUE).then(|| near(name, value, &of_filter))
    });
    Ok(unknown.collect())
}

/// At most [`MOST_COMPLETED`] values of a filter (`tool`, `tag` or `git`) that begin with `typed`, as a query has them.
/// The values that most sessions have come first. Nothing is read except the list of sessions and the kept words, so
/// tools of new sessions may be missing. Fails with `cancelled`.
pub fn known_values(
    searched: SearchedStore<'_>,
    index: &AskIndex,
    request: &SearchRequest,
    (filter, typed): (&str, &str),
    cancel: &Cancel,
) -> Result<Vec<String>> {
    let mut of_filter: HashMap<String, usize> = HashMap::new();
    match filter {
        "tool" => {
            let cache = searched.store.cache();
            let segments = index.of(searched.store, cache.as_ref());
            let mut known = KnownValues::new(request, cache.as_ref(), 0, cancel);
            known.add_kept(&segments, &searched.files(request)?)?;
            let tools = known.values.iter();
            of_filter.extend(tools.filter_map(|(value, sessions)| {
                Some((value.strip_prefix("tool:")?.to_owned(), *sessions))
            }));
        }
        _ => {
            for row in searched.store.rows()?.iter() {
                let header = row.listing.header.as_ref();
                let cwd = header.map(|header| &*header.cwd).unwrap_or_default();
                let values = match filter {
                    _ if !request.takes_directory(cwd) => Vec::new(),
                    "tag" => row.tags().into_iter().collect(),
                    _ => row.listing.sorting.git.branch.iter().cloned().collect(),
                };
                for value in values {
                    *of_filter.entry(value).or_default() += 1;
                }
            }
        }
    }
    let typed = match filter {
        "tag" => typed.trim_start_matches('#'),
        _ => typed,
    };
    let typed = typed.to_lowercase();
    let mut values: Vec<(String, usize)> = of_filter.into_iter().collect();
    values.retain(|(value, _)| value.to_lowercase().starts_with(&typed));
    values.sort_by(|(one, a), (other, b)| (Reverse(a), one).cmp(&(Reverse(b), other)));
    values.truncate(MOST_COMPLETED);
    Ok(values
        .into_iter()
        .map(|(value, _)| in_query(&value))
        .collect())
}

/// The directory, the tag and the git branch that the query names, if no session has them.
fn of_sessions(searched: SearchedStore<'_>, request: &SearchRequest) -> Result<Vec<NearWords>> {
    let SearchRequest {
        named_directory,
        tag,
        git,
        ..
    } = request;
    if named_directory.is_none() && tag.is_none() && git.is_none() {
        return Ok(Vec::new());
    }
    let mut known: [BTreeMap<String, usize>; 3] = Default::default();
    let [directories, tags, branches] = &mut known;
    for row in searched.store.rows()?.iter() {
        let header = row.listing.header.as_ref();
        let cwd = header.map(|header| &*header.cwd).unwrap_or_default();
        if !request.takes_directory_but_named(cwd) {
            continue;
        }
        *directories.entry(name::directory(cwd)).or_default() += 1;
        for tag in row.tags() {
            *tags.entry(tag).or_default() += 1;
        }
        if let Some(branch) = &row.listing.sorting.git.branch {
            *branches.entry(branch.clone()).or_default() += 1;
        }
    }
    let mut unknown = Vec::new();
    let [directories, tags, branches] = &known;
    if let Some(named) = named_directory
        && !directories.keys().any(|known| (named.has.0)(known))
    {
        let (named, known) = (&named.written, directories.keys().map(String::as_str));
        let near = suggest::nearest(named, known);
        unknown.push(unknown_value("cwd", named, near.into_iter().collect()));
    }
    for (name, value, known) in [("tag", tag, tags), ("git", git, branches)] {
        if let Some(value) = value.as_ref().filter(|value| !known.contains_key(*value)) {
            let known = known.iter().map(|(known, sessions)| (&**known, *sessions));
            unknown.push(near(name, value, &known.collect()));
        }
    }
    Ok(unknown)
}

/// An unknown value with the values that were perhaps meant. `known` has the number of sessions of each value.
fn near(name: &str, value: &str, known: &BTreeMap<&str, usize>) -> NearWords {
    let has_part = |known: &str| {
        let mut parts = known.split(|c: char| !c.is_alphanumeric());
        parts.any(|part| {
            suggest::nearest(value, [part]).is_some() || part.eq_ignore_ascii_case(value)
        })
    };
    let mut near: Vec<&str> = suggest::nearest(value, known.keys().copied())
        .into_iter()
        .collect();
    let mut others: Vec<(&str, usize)> = known
        .iter()
        .map(|(known, count)| (*known, *count))
        .collect();
    others.sort_by_key(|(known, sessions)| (Reverse(*sessions), *known));
    if near.is_empty() {
        near.extend(
            others
                .iter()
                .map(|(known, _)| *known)
                .filter(|known| has_part(known)),
        );
    }
    if near.is_empty() {
        near.extend(others.iter().map(|(known, _)| *known));
    }
    near.truncate(MOST);
    unknown_value(name, value, near)
}

fn unknown_value(name: &str, value: &str, near: Vec<&str>) -> NearWords {
    NearWords {
        word: written(name, value),
        near: near.into_iter().map(|known| written(name, known)).collect(),
        taken: None,
        inside: Vec::new(),
        term: 0,
    }
}

/// A filter as a person writes it (protocol.md §3.19).
fn written(name: &str, value: &str) -> String {
    format!("{name}:{}", in_query(value))
}

/// A value as a query has it.
fn in_query(value: &str) -> String {
    match value.contains(char::is_whitespace) {
        true => format!("\"{value}\""),
        false => value.to_owned(),
    }
}

/// The values of the searched sessions.
struct KnownValues<'r> {
    request: &'r SearchRequest,
    cache: Option<&'r Cache>,
    cancel: &'r Cancel,
    /// The bytes of session files that may still be read.
    left: u64,
    /// The number of sessions that have a value, such as `tool:bash`.
    values: HashMap<String, usize>,
    /// Whether all values are known.
    is_whole: bool,
}

impl<'r> KnownValues<'r> {
    fn new(
        request: &'r SearchRequest,
        cache: Option<&'r Cache>,
        left: u64,
        cancel: &'r Cancel,
    ) -> Self {
        Self {
            request,
            cache,
            cancel,
            left,
            values: HashMap::new(),
            is_whole: true,
        }
    }

    /// Adds the values in kept words. No session file is read.
    fn add_kept(&mut self, segments: &Segments, files: &[(Location, Status)]) -> Result<()> {
        let mut rows = HashSet::new();
        for (_, status) in files {
            if self.cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            match segments.row(*status) {
                Some(row) => rows.extend(self.in_directory(segments, row)),
                None => {
                    let kept = self
                        .cache
                        .and_then(|cache| KeptCounts::open(cache, *status));
                    kept.iter().for_each(|kept| self.of_kept(kept));
                }
            }
        }
        self.of_segments(segments, &rows);
        Ok(())
    }

    /// The row of a session, if the session is searched.
    fn in_directory(&self, segments: &Segments, row: Row) -> Option<Row> {
        let session = segments.session(row)?;
        let cwd = session.cwd.as_deref().unwrap_or_default();
        self.request.takes_directory(cwd).then_some(row)
    }

    fn of_kept(&mut self, kept: &KeptCounts) {
        let cwd = kept.cwd.as_deref().unwrap_or_default();
        if self.request.takes_directory(cwd) {
            self.of_words(&kept.vocabulary().unwrap_or_default());
        }
    }

    fn add(&mut self, segments: &Segments, files: &[(Location, Status)]) -> Result<()> {
        let mut rows = HashSet::new();
        for (location, status) in files {
            if self.cancel.is_cancelled() {
                return Err(Error::cancelled());
            }
            if !self.is_whole {
                return Ok(());
            }
            let row = segments.row(*status);
            match row.and_then(|row| Some((row, segments.session(row)?))) {
                Some((row, session)) => {
                    let cwd = session.cwd.as_deref().unwrap_or_default();
                    rows.extend(self.request.takes_directory(cwd).then_some(row));
                }
                // The search has reported a file that cannot be read.
                None => self.is_whole &= self.of_file(location, *status).is_ok(),
            }
        }
        self.of_segments(segments, &rows);
        Ok(())
    }

    fn of_segments(&mut self, segments: &Segments, rows: &HashSet<Row>) {
        if rows.is_empty() {
            return;
        }
        for (number, segment, words) in segments.words() {
            let Some(of_words) = segment.sessions_of_words() else {
                self.is_whole = false;
                return;
            };
            for (line, word) in words.split(|byte| *byte == b'\n').enumerate() {
                if !word.contains(&b':') {
                    continue;
                }
                let sessions = of_words.of(line).unwrap_or_default();
                let sessions = sessions.into_iter().filter(|session| {
                    let session = *session;
                    rows.contains(&Row {
                        segment: number,
                        session,
                    })
                });
                self.note(word, sessions.count());
            }
        }
    }

    /// Adds the values of a session that is in no segment.
    fn of_file(&mut self, location: &Location, status: Status) -> io::Result<()> {
        let kept = self.cache.and_then(|cache| KeptCounts::open(cache, status));
        if let Some(kept) = kept.as_ref().filter(|kept| kept.is_current(status)) {
            self.of_kept(kept);
            return Ok(());
        }
        let file = location.folder.file(&location.name, HandleAccess::Read);
        let file = file.map_err(io::Error::other)?;
        if self.request.leaves_directories_out() {
            let cwd = counts::directory(&file, status.size)?;
            if !self
                .request
                .takes_directory(cwd.as_deref().unwrap_or_default())
            {
                return Ok(());
            }
        }
        let kept = kept.filter(|kept| kept.fingerprint.matches(&file, status));
        let words = kept.and_then(|kept| Some((kept.fingerprint.end(), kept.vocabulary()?)));
        let (start, words) = words.unwrap_or_default();
        let span = start..status.size;
        let Some(left) = self.left.checked_sub(span.end.saturating_sub(span.start)) else {
            self.is_whole = false;
            return Ok(());
        };
        self.left = left;
        let mut values = read(&file, span, self.cancel)?;
        let words = words.split(|byte| *byte == b'\n');
        let words = words.filter(|word| word.contains(&b':'));
        values.extend(words.map(|word| String::from_utf8_lossy(word).into_owned()));
        for value in values {
            self.note(value.as_bytes(), 1);
        }
        Ok(())
    }

    fn of_words(&mut self, words: &[u8]) {
        for word in words.split(|byte| *byte == b'\n') {
            if word.contains(&b':') {
                self.note(word, 1);
            }
        }
    }

    fn note(&mut self, value: &[u8], sessions: usize) {
        if sessions == 0 {
            return;
        }
        let value = String::from_utf8_lossy(value);
        self.is_whole &= value != VALUES_LEFT_OUT;
        *self.values.entry(value.into_owned()).or_default() += sessions;
    }
}

/// The values in the lines of a part of a file.
fn read(file: &File, span: Range<u64>, cancel: &Cancel) -> io::Result<HashSet<String>> {
    let mut values = HashSet::new();
    let mut lines = Lines::new(file, span.start).with_cancel(cancel);
    while let Some(line) = lines.next()? {
        if !line.terminated || line.offset >= span.end {
            break;
        }
        let Some(Line::Entry(entry)) = line.bytes.and_then(scanned) else {
            continue;
        };
        if entry.kind != Kind::LeafRecord {
            each_value(line.bytes.unwrap_or_default(), entry.kind, |name, value| {
                values.extend(counts::value_word(entry.kind, name, value));
            });
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::kept;
    use crate::request::EntryFilter;
    use crate::tests::{NO_INDEX, request};
    use std::fmt::Write;
    use std::fs;
    use treelined_core::search::Mode;
    use treelined_files::store::Store;

    const TYPES: usize = 200;

    /// The answer for an unknown tool, in a store with one session. The session has `types` types; [`TYPES`] of them
    /// have more than 16 KiB together.
    fn unknown(types: usize, are_counted: bool, reads: bool) -> Vec<NearWords> {
        let folder = tempfile::tempdir().unwrap();
        let mut text = concat!(
            r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/c"}"#,
            "\n",
            r#"{"type":"message","id":"m","parentId":null,"message":{"role":"toolResult","toolName":"Bash","content":"x"}}"#,
            "\n",
        )
        .to_owned();
        for number in 0..types {
            let name = "x".repeat(100);
            writeln!(
                text,
                r#"{{"type":"custom","customType":"{name}{number}","id":"e{number}","parentId":"m"}}"#
            )
            .unwrap();
        }
        fs::write(folder.path().join("s.jsonl"), text).unwrap();
        let store = Store::new(folder.path().to_owned());
        let filters = SearchRequest {
            named_entries: EntryFilter {
                tool: Some("bsh".to_owned()),
                ..EntryFilter::default()
            },
            ..request("x", Mode::Words)
        };
        let (store, index) = (&store, AskIndex::default());
        let searched = SearchedStore {
            store,
            index: NO_INDEX,
        };
        let cancel = Cancel::new();
        if are_counted {
            let (location, status) = searched.files(&filters).unwrap().remove(0);
            kept::count(&store.cache().unwrap(), &location, status, &cancel).unwrap();
        }
        unknown_values(searched, &index, &filters, reads, &cancel).unwrap()
    }

    /// "No entry has this tool" must not be reported if only some sessions were read.
    #[test]
    fn nothing_is_said_of_values_that_were_not_all_read() {
        for (types, are_counted, reads) in
            [(0, true, false), (0, false, true), (TYPES, false, true)]
        {
            let unknown = unknown(types, are_counted, reads);
            let [one] = &*unknown else {
                panic!("{types} {are_counted} {reads}: {unknown:?}");
            };
            assert_eq!(
                (&*one.word, &*one.near),
                ("tool:bsh", &["tool:bash".to_owned()][..])
            );
        }
        assert!(unknown(0, false, false).is_empty());
        assert!(unknown(TYPES, true, true).is_empty());
    }
}
