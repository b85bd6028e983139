//! `treelined doctor --origin`: checks that the kept bytes of a session's sources are complete, and that the entries of
//! the session come from them (session-file.md §5.9).

use super::screen::{Screen, Style};
use super::words::count;
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use treelined_core::error::Result;
use treelined_core::json;
use treelined_core::terminal;
use treelined_import::importer::named;
use treelined_import::importer::origin::{OriginReader, Origins};
use treelined_import::member::Place;
use treelined_import::records::{Piece, Splitter};

/// The most folders between a session file and its session directory.
const LEVELS: usize = 2;
const CHUNK: usize = 256 << 10;

/// The `origin` of an entry.
#[derive(Deserialize)]
struct EntryOrigin {
    #[serde(default)]
    source: String,
    #[serde(default)]
    ranges: Vec<(u64, u64)>,
}

/// The records of one kept source.
#[derive(Default)]
struct KeptRecords {
    /// The offsets and lengths of the records, ascending.
    places: Vec<Place>,
    /// Objects inside records, by their ranges. An entry may name such a range, since a record may repeat a part of a
    /// conversation as an object.
    inner: HashSet<(u64, u64)>,
    unparsable: u64,
    is_document: bool,
    hash: String,
    len: u64,
}

/// Checks the kept sources of the entries of a session. Returns the number of problems.
pub(super) fn examine(screen: &mut Screen, session: &Path) -> io::Result<u64> {
    let session = fs::canonicalize(session)?;
    let text = fs::read(&session)?;
    let own = origins_of(&text);
    if own.is_empty() {
        return Ok(0);
    }
    let is_dir = |above: &&Path| Origins::existing(above).is_ok();
    let Some(folder) = session.ancestors().skip(1).take(LEVELS).find(is_dir) else {
        let problem = "none of its sources is kept";
        return problem_line(screen, problem).map(|()| 1);
    };
    let origins = Origins::existing(folder)?;
    let all = with_other_sessions(folder, &session, &own);
    let mut problems = 0;
    let id = session_id(&text);
    for (source, ranges) in &own {
        if origins.reader(source).is_err() && named::is_forgotten(folder, &id, source) {
            let note =
                "its bytes are not kept any more, since treelined import --forget has deleted them";
            source_line(screen, source, note)?;
            continue;
        }
        let found = match origins.reader(source) {
            Ok(reader) => {
                // If a source was rewritten, each entry names the version of the source from which it was imported.
                let is_rewritten = own.keys().any(|other| is_other_version(other, source));
                let report = match is_rewritten {
                    true => Vec::new(),
                    false => report_of(&text),
                };
                check(reader, ranges, all.get(source), report)
            }
            Err(error) => Err(error),
        };
        let (facts, found) = match found {
            Ok(found) => found,
            Err(error) => (String::new(), vec![error.message.into_owned()]),
        };
        source_line(screen, source, &facts)?;
        for problem in &found {
            problem_line(screen, problem)?;
        }
        problems += found.len() as u64;
    }
    Ok(problems)
}

fn source_line(screen: &mut Screen, source: &str, facts: &str) -> io::Result<()> {
    let name = screen.style(Style::Dim, &format!("{:<9}", "origin"));
    let line = format!("{source}: {facts}");
    writeln!(screen, "  {name}{}", terminal::line(&line))
}

/// The session id in the header; empty if there is none.
fn session_id(text: &[u8]) -> String {
    let header = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let id = json::get(header, "id").and_then(json::string);
    id.map(|id| id.to_string()).unwrap_or_default()
}

fn problem_line(screen: &mut Screen, problem: &str) -> io::Result<()> {
    let kind = screen.style(Style::Red, "origin");
    writeln!(screen, "  {kind}: {}", terminal::line(problem))
}

/// The ranges that the entries of a session file name, by source.
fn origins_of(text: &[u8]) -> BTreeMap<String, Vec<Place>> {
    let mut origins: BTreeMap<String, Vec<Place>> = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        if memmem::find(line, b"\"origin\"").is_none() {
            continue;
        }
        let origin = json::get(line, "origin").map(serde_json::from_slice::<EntryOrigin>);
        if let Some(Ok(EntryOrigin { source, ranges })) = origin
            && !source.is_empty()
        {
            let places = ranges.into_iter().map(|(at, len)| Place { at, len });
            origins.entry(source).or_default().extend(places);
        }
    }
    origins
}

/// The ranges that the entries of all sessions name in these sources, since forks and subagents have the same sources.
fn with_other_sessions(
    folder: &Path,
    session: &Path,
    own: &BTreeMap<String, Vec<Place>>,
) -> BTreeMap<String, Vec<Place>> {
    let mut all = own.clone();
    let list = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = list(folder).map(|entry| entry.path()).collect();
    let inner: Vec<PathBuf> = files.iter().filter(|path| path.is_dir()).cloned().collect();
    for inner in inner {
        files.extend(list(&inner).map(|entry| entry.path()));
    }
    let is_session = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
    for file in files
        .iter()
        .filter(|file| is_session(file) && *file != session)
    {
        let Ok(text) = fs::read(file) else {
            continue;
        };
        let has = |source: &String| memmem::find(&text, source.as_bytes()).is_some();
        if own.keys().any(has) {
            for (source, places) in origins_of(&text) {
                if let Some(all) = all.get_mut(&source) {
                    all.extend(places);
                }
            }
        }
    }
    all
}

/// Whether two different names belong to the same source, before and after it was rewritten.
fn is_other_version(name: &str, other: &str) -> bool {
    let base = |name: &str| name.split('-').next().map(str::to_owned);
    name != other && base(name) == base(other)
}

/// The files in the report of a session's last import.
fn report_of(text: &[u8]) -> Vec<Value> {
    let mut lines = text.split(|byte| *byte == b'\n').rev();
    let files = lines.find_map(|line| {
        memmem::find(line, b"\"import\"")?;
        json::get_path(line, &["data", "import", "report", "files"])
    });
    let files = files.map(serde_json::from_slice);
    files.and_then(Result::ok).unwrap_or_default()
}

/// The facts about one source, and its problems.
fn check(
    reader: OriginReader,
    ranges: &[Place],
    all: Option<&Vec<Place>>,
    report: Vec<Value>,
) -> Result<(String, Vec<String>)> {
    let (path, length, hash) = (
        reader.path().to_owned(),
        reader.kept_bytes(),
        reader.hash().to_owned(),
    );
    let kept = read(reader, ranges);
    let mut problems = Vec::new();
    let kept = match kept {
        Ok(kept) => kept,
        Err(error) => {
            problems.push(format!("its segments cannot be read: {error}"));
            return Ok((path, problems));
        }
    };
    if kept.len != length || kept.hash != hash {
        problems.push("its segments are not the bytes that the manifest says".to_owned());
    }
    let is_whole = |place: &&Place| kept.number_of(**place).is_some();
    let wrong = ranges.len() - ranges.iter().filter(is_whole).count();
    if wrong > 0 {
        let wrong = count(wrong as u64, "range", "ranges");
        problems.push(format!("{wrong} of its entries are not whole records"));
    }
    let used = all
        .into_iter()
        .flatten()
        .filter_map(|place| kept.number_of(*place));
    let used = used.collect::<HashSet<usize>>().len() as u64;
    let records = kept.places.len() as u64;
    let mut facts = format!(
        "{path}: {}, {used} in entries",
        count(records, "record", "records")
    );
    let report = report
        .iter()
        .find(|file| file.get("path").and_then(Value::as_str) == Some(&path));
    if let Some(report) = report {
        let number = |name: &str| report.get(name).and_then(Value::as_u64).unwrap_or(0);
        let types = report.get("originOnly").and_then(Value::as_object);
        let only: u64 = types
            .into_iter()
            .flat_map(|types| types.values())
            .filter_map(Value::as_u64)
            .sum();
        let repeated = number("duplicates");
        facts.push_str(&format!(", {only} in the origin only, {repeated} repeated"));
        let is_same = number("records") == records && number("held") == 0;
        // A JSON document is one record, and its messages are parts of this record.
        let is_document = (used, records) == (1, 1);
        if is_same && !is_document && used + only + repeated != records {
            problems.push(format!(
                "{used} + {only} + {repeated} records are accounted for, of {records}"
            ));
        }
    }
    let unparsable = count(
        kept.unparsable,
        "unparsable stretch",
        "unparsable stretches",
    );
    facts.push_str(&format!(", {unparsable}"));
    Ok((facts, problems))
}

fn read(mut reader: OriginReader, ranges: &[Place]) -> io::Result<KeptRecords> {
    let mut kept = KeptRecords::default();
    let mut splitter = Splitter::new(reader.layout());
    let mut hash = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut ranges = ranges.to_vec();
    ranges.sort_by_key(|place| place.at);
    let (places, unparsable) = (&mut kept.places, &mut kept.unparsable);
    let inner = &mut kept.inner;
    let mut take = |piece: Piece<'_>| match piece {
        Piece::Text(_) => {}
        Piece::Record(record) => {
            let len = record.bytes.len() as u64;
            let first = ranges.partition_point(|place| place.at <= record.at);
            let inside = ranges.get(first..).unwrap_or_default().iter();
            let inside = inside.take_while(|place| place.at < record.at + len);
            inner.extend(
                inside
                    .filter(|place| is_object(record.bytes, place.at - record.at, place.len))
                    .map(|place| (place.at, place.len)),
            );
            places.push(Place { at: record.at, len });
        }
        Piece::Unparsable(..) => *unparsable += 1,
    };
    loop {
        let read = reader.read(&mut chunk)?;
        let Some(bytes) = chunk.get(..read).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        hash.update(bytes);
        splitter.push(bytes, &mut take);
    }
    kept.len = splitter.finish(true, &mut take);
    kept.is_document = splitter.is_document();
    let hash = hash.finalize();
    kept.hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(kept)
}

/// Whether this range of a record is an object.
fn is_object(record: &[u8], at: u64, len: u64) -> bool {
    let (Ok(at), Ok(len)) = (usize::try_from(at), usize::try_from(len)) else {
        return false;
    };
    let stretch = record.get(at..).and_then(|rest| rest.get(..len));
    stretch.is_some_and(|bytes| {
        bytes.starts_with(b"{") && json::value_span(bytes).is_ok_and(|span| span == (0..len))
    })
}

impl KeptRecords {
    /// The number of the record at a position. Inside a document, the number of the record that contains the position.
    fn number_of(&self, place: Place) -> Option<usize> {
        let after = self.places.partition_point(|record| record.at <= place.at);
        let number = after.checked_sub(1)?;
        let record = self.places.get(number)?;
        let is_inside = place.at.saturating_add(place.len) <= record.at + record.len;
        let is_whole =
            *record == place || self.is_document || self.inner.contains(&(place.at, place.len));
        (is_whole && is_inside).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treelined_import::Tool;

    /// A session directory with one kept source and a session with these ranges.
    fn session(ranges: &str, report: &str) -> (tempfile::TempDir, PathBuf, String) {
        let folder = tempfile::tempdir().unwrap();
        let origins = Origins::of(folder.path()).unwrap();
        let mut writer = origins
            .side_writer(Tool::Codex, Path::new("/c/a.jsonl"))
            .unwrap();
        writer
            .push(b"{\"a\":1}\n{\"b\":2}\nbad\n{\"c\":3}\n")
            .unwrap();
        assert!(writer.settle().unwrap());
        let name = writer.finish().unwrap();
        fs::create_dir(folder.path().join("--w--")).unwrap();
        let path = folder.path().join("--w--/s.jsonl");
        let entry = format!(
            "{{\"type\":\"message\",\"origin\":{{\"tool\":\"codex\",\"source\":\"{name}\",\"ranges\":{ranges}}}}}\n"
        );
        let leaf = format!(
            "{{\"type\":\"custom\",\"data\":{{\"cause\":\"import\",\"import\":{{\"report\":{{\"files\":[{report}]}}}}}}}}\n"
        );
        fs::write(&path, entry + &leaf).unwrap();
        (folder, path, name)
    }

    fn problems(path: &Path) -> u64 {
        examine(&mut Screen::new(), path).unwrap()
    }

    const REPORT: &str = r#"{"path":"/c/a.jsonl","records":3,"originOnly":{"x":1},"duplicates":0}"#;

    #[test]
    fn whole_origins_have_no_problems() {
        let (_folder, path, _) = session("[[0,7],[8,7]]", REPORT);
        assert_eq!(problems(&path), 0);
    }

    #[test]
    fn ranges_beside_records_missing_records_and_damage_are_problems() {
        let (_folder, path, _) = session("[[0,7],[8,6]]", "");
        assert_eq!(problems(&path), 1, "half a record");
        let (_folder, path, _) = session("[[0,7]]", REPORT);
        assert_eq!(problems(&path), 1, "a record is nowhere");
        let (folder, path, name) = session("[[0,7],[8,7]]", REPORT);
        let segment = folder.path().join(".origins").join(name).join("1.zst");
        let mut bytes = fs::read(&segment).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x40;
        fs::write(&segment, bytes).unwrap();
        assert_eq!(problems(&path), 1, "a damaged segment");
        fs::remove_dir_all(folder.path().join(".origins")).unwrap();
        assert_eq!(problems(&path), 1, "nothing is kept");
    }

    #[test]
    fn records_in_entries_of_other_sessions_count() {
        let (folder, path, name) = session("[[0,7]]", REPORT);
        let other = format!(
            "{{\"type\":\"message\",\"origin\":{{\"source\":\"{name}\",\"ranges\":[[8,7]]}}}}\n"
        );
        fs::write(folder.path().join("--w--/t.jsonl"), other).unwrap();
        assert_eq!(problems(&path), 0);
    }
}
