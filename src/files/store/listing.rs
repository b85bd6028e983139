//! The row of one session in a list, made by reading its file once (session-file.md §5).
//!
//! This module has the row of `list_sessions`, and two ways to make it: from an opened session, or by one scan without
//! a tree. The scan works only for files in the form that this program writes. Most files have this form. The catalogue
//! keeps the rows.

use crate::log::OpenedLog;
use crate::log::body::Bodies;
use crate::log::header::Header;
use crate::log::ingest::Ingest;
use crate::log::lines::{self, Lines};
use crate::os::file::{Location, Status, status_of};
use crate::os::handle::HandleAccess;
use crate::store::native::{ContinuedIn, Elsewhere, ImportSource, Recorded, Records};
use hashbrown::{DefaultHashBuilder, HashTable, hash_table};
use std::hash::BuildHasher;
use std::path::PathBuf;
use treelined_core::entry::{Envelope, Facts, Kind, Line, MessageTime, Role, scan};
use treelined_core::error::{Kind as ErrorKind, Result};
use treelined_core::name;
use treelined_core::tags::Sorting;
use treelined_core::timestamp::{self, Millis};
use treelined_core::tree::{FilePlace, Flags, Node, Tree};
use treelined_core::view::{RowFacts, Subject};

/// The number of bytes that are read at a time to find a header.
const HEADER_CHUNK: usize = 4096;
/// The number of bytes that a scanner reads at a time: few enough to stay in the cache of the processor until they are
/// scanned.
const SCAN_CHUNK: usize = 256 << 10;

/// The row of one session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    pub path: PathBuf,
    /// `None` for a file that is not a session. Then `problem` is set.
    pub header: Option<Header>,
    pub name: Option<String>,
    /// The time of creation in Unix milliseconds.
    pub created: Millis,
    /// The time of the last activity in Unix milliseconds: the time of the last message of the user or the assistant;
    /// else the time of creation; else the time of the last write to the file.
    pub modified: Millis,
    /// The number of `message` entries, of all branches and roles.
    pub message_count: u64,
    /// The first message of the user, in the form for a row; empty if there is none.
    pub first_message: String,
    /// Where an import found the session; `None` for a session that was not imported.
    pub source: Option<ImportSource>,
    /// The sessions of agents that are recorded in this session; only the last ones.
    pub recorded: Vec<Recorded>,
    /// The conversations of other tools to which paths of this session were handed over; only the last ones.
    pub continued: Vec<ContinuedIn>,
    /// The tags in the file, and the place in git.
    pub sorting: Sorting,
    /// The reason why the file is not a session.
    pub problem: Option<ErrorKind>,
}

impl Listing {
    /// The row of the file at `location`, made from the result of opening it. Fails only if the file cannot be read at
    /// all.
    pub fn of(location: &Location, opened: Result<OpenedLog>) -> Result<Self> {
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind == ErrorKind::HeaderMissing => {
                return Self::of_broken(location, error.kind);
            }
            Err(error) => return Err(error),
        };
        let tree = &opened.tree;
        let header = opened.log.header().cloned();
        let started = header
            .as_ref()
            .and_then(|header| header.timestamp.as_deref());
        let created = started.and_then(timestamp::parse);
        let messages = || messages_of(tree);
        let bodies = opened.log.bodies();
        let said = last_said(tree, &bodies, messages())?;
        let modified = said.or(created).unwrap_or_else(|| written(location));
        let mut elsewhere = Elsewhere::of(tree, &bodies)?;
        let id = header.as_ref().map(|header| header.id.as_str());
        let recorded = Records::of(tree, &bodies, id.unwrap_or_default())?;
        Ok(Self {
            path: location.path(),
            name: tree.name().map(str::to_owned),
            created: created.unwrap_or(modified),
            modified,
            message_count: messages().count() as u64,
            first_message: first_message(tree, &bodies, messages())?,
            source: elsewhere.source.take(),
            sorting: std::mem::take(&mut elsewhere.sorting),
            recorded: recorded.finish(),
            continued: elsewhere.continued(),
            header,
            problem: None,
        })
    }

    fn of_broken(location: &Location, problem: ErrorKind) -> Result<Self> {
        let file = location.folder.file(&location.name, HandleAccess::Read)?;
        let modified = status_of(&file).map_or(0, millis);
        Ok(Self {
            path: location.path(),
            header: None,
            name: None,
            created: modified,
            modified,
            message_count: 0,
            first_message: String::new(),
            source: None,
            recorded: Vec::new(),
            continued: Vec::new(),
            sorting: Sorting::default(),
            problem: Some(problem),
        })
    }
}

/// The first message of the user, in the form for a row; empty if there is none.
pub fn first_message_of(opened: &OpenedLog) -> Result<String> {
    let tree = &opened.tree;
    first_message(tree, &opened.log.bodies(), messages_of(tree))
}

pub fn messages_of(tree: &Tree) -> impl Iterator<Item = Node> {
    tree.entries()
        .filter(|node| tree.kind(*node) == Kind::Message)
}

/// The time at which the file was last written, in Unix milliseconds.
fn written(location: &Location) -> Millis {
    location.status().map_or(0, millis)
}

/// The time of the last change, rounded as pi lists it: pi calculates in floating point, where a time up to 122 ns
/// below half a millisecond is rounded up.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a file's time is far from the ends of the range"
)]
fn millis(status: Status) -> Millis {
    let (seconds, nanoseconds) = status.modified;
    let exact = seconds as f64 * 1000.0 + nanoseconds as f64 / 1e6;
    (exact + 0.5).floor() as Millis
}

/// The latest time in these entries at which the user or the assistant sent a message.
fn last_said(
    tree: &Tree,
    bodies: &Bodies,
    messages: impl Iterator<Item = Node>,
) -> Result<Option<Millis>> {
    let mut reader = bodies.reader();
    let mut last = LastMessageTime::default();
    for node in messages.filter(|node| matches!(tree.role(*node), Role::User | Role::Assistant)) {
        let entry = reader.entry(&bodies.fetch(tree, node)?)?;
        if let Ok(Line::Entry(envelope)) = scan::scan_line(&entry) {
            last.take(&envelope);
        }
    }
    Ok(last.time())
}

/// The latest time of a message of the user or the assistant.
#[derive(Default)]
struct LastMessageTime(Option<Millis>);

impl LastMessageTime {
    fn take(&mut self, entry: &Envelope<'_>) {
        let Facts::Message { said, .. } = entry.facts else {
            return;
        };
        let time = match said {
            MessageTime::Never => None,
            MessageTime::At(time) => Some(time),
            MessageTime::WithEntry => entry.timestamp.as_deref().and_then(timestamp::parse),
        };
        self.0 = self.0.max(time);
    }

    /// The time; `None` if it is from a clock that was never set.
    fn time(&self) -> Option<Millis> {
        self.0.filter(|time| *time > 0)
    }
}

/// The first message of the user in these entries, in the form for a row; empty if there is none.
pub fn first_message(
    tree: &Tree,
    bodies: &Bodies,
    nodes: impl Iterator<Item = Node>,
) -> Result<String> {
    let is_users =
        |node: &Node| tree.kind(*node) == Kind::Message && tree.role(*node) == Role::User;
    for node in nodes.filter(is_users) {
        let line = text_of(&bodies.entry(&bodies.fetch(tree, node)?)?);
        if !line.is_empty() {
            return Ok(line);
        }
    }
    Ok(String::new())
}

/// The text of a message of the user, in the form for a row; empty if a tool wrote it.
fn text_of(entry: &[u8]) -> String {
    let subject = Subject {
        kind: Kind::Message,
        role: Role::User,
        flags: Flags::default(),
        calls: false,
    };
    let facts = RowFacts::of_line(entry, subject);
    facts.prompt().unwrap_or_default().to_owned()
}

/// The session id in the header of a file. The file is read only up to its header.
pub fn header_id(location: &Location) -> Option<String> {
    header(location).map(|header| header.id)
}

/// The header of a file. The file is read only up to its header.
pub fn header(location: &Location) -> Option<Header> {
    let file = location
        .folder
        .file(&location.name, HandleAccess::Read)
        .ok()?;
    let mut lines = Lines::in_chunks(&file, 0, HEADER_CHUNK);
    let (mut tree, mut ingest) = (Tree::new(), Ingest::default());
    while let Some(line) = lines.next().ok()? {
        ingest.line(&mut tree, &Bodies::nothing(), &line).ok()?;
        if ingest.header.is_some() {
            return ingest.header;
        }
    }
    None
}

/// Makes the rows of files one after the other, reusing memory.
#[derive(Default)]
pub(crate) struct RowScanner {
    buffer: Vec<u8>,
    /// The hashes of the ids that were found in the present file.
    ids: HashTable<u64>,
    hasher: DefaultHashBuilder,
}

impl RowScanner {
    /// The row of a file; it equals the row that [`Listing::of`] makes. `None` if opening the file might find more than
    /// this scan.
    pub(crate) fn row(&mut self, location: &Location) -> Option<Listing> {
        let file = location
            .folder
            .file(&location.name, HandleAccess::Read)
            .ok()?;
        let buffer = std::mem::take(&mut self.buffer);
        let mut lines = Lines::in_chunks(&file, 0, SCAN_CHUNK).with_buffer(buffer);
        self.ids.clear();
        let found = self.scan(&mut lines);
        self.buffer = lines.into_buffer();
        let (header, found) = found?;
        let started = header.timestamp.as_deref().and_then(timestamp::parse);
        let said = found.last_said.time();
        let modified = said.or(started).unwrap_or_else(|| written(location));
        let mut elsewhere = found.elsewhere;
        Some(Listing {
            path: location.path(),
            name: found.name,
            created: started.unwrap_or(modified),
            modified,
            message_count: found.messages,
            first_message: found.first_message,
            source: elsewhere.source.take(),
            sorting: std::mem::take(&mut elsewhere.sorting),
            recorded: found.records.finish(),
            continued: elsewhere.continued(),
            header: Some(header),
            problem: None,
        })
    }

    fn scan(&mut self, lines: &mut Lines<'_>) -> Option<(Header, RowContent)> {
        let (header, title) = header_of(&lines.next().ok()??)?;
        let mut found = RowContent {
            name: title,
            ..RowContent::default()
        };
        while let Some(line) = lines.next().ok()? {
            let text = whole(&line)?;
            match scan::scan_line(text).ok()? {
                Line::Entry(envelope) => {
                    self.is_new(envelope.id.as_deref()?)?;
                    found.take(&envelope, text, &header.id);
                }
                Line::Blank => {}
                Line::Header(_) | Line::Title(_) => return None,
            }
        }
        Some((header, found))
    }

    /// `None` if an earlier entry may have the same id. Two different ids have the same hash with a probability of
    /// 2^-64.
    fn is_new(&mut self, id: &str) -> Option<()> {
        let hash = self.hasher.hash_one(id);
        let same = |known: &u64| *known == hash;
        match self.ids.entry(hash, same, |known| *known) {
            hash_table::Entry::Occupied(_) => None,
            hash_table::Entry::Vacant(place) => {
                place.insert(hash);
                Some(())
            }
        }
    }
}

/// The bytes of a line, if it is complete and in UTF-8.
fn whole<'a>(line: &lines::RawLine<'a>) -> Option<&'a [u8]> {
    let text = line.bytes.filter(|_| line.terminated)?;
    simdutf8::basic::from_utf8(text).ok().map(str::as_bytes)
}

/// The header and the title in the first line, if this program could have written it.
fn header_of(line: &lines::RawLine<'_>) -> Option<(Header, Option<String>)> {
    let text = whole(line)?;
    let is_bare = text.first() == Some(&b'{') && text.last() == Some(&b'}');
    match scan::scan_line(text).ok().filter(|_| is_bare)? {
        // Version 1 is excluded, since its entries have no ids.
        Line::Header(header) if header.version > 1 => {
            let title = header.title.as_deref().map(str::trim).map(str::to_owned);
            let owned = std::borrow::Cow::into_owned;
            let place = FilePlace {
                offset: 0,
                len: u32::try_from(text.len()).ok()?,
            };
            let header = Header {
                id: owned(header.id?),
                version: header.version,
                timestamp: header.timestamp.map(owned),
                cwd: header.cwd.map(owned).unwrap_or_default(),
                parent_session: header.parent_session.map(owned),
                parent_entry_id: header.parent_entry_id.map(owned),
                spawned_by: header.spawned_by,
                place,
            };
            Some((header, title.filter(|title| !title.is_empty())))
        }
        _ => None,
    }
}

/// The part of a row that comes from the entries of a file.
#[derive(Default)]
struct RowContent {
    last_said: LastMessageTime,
    name: Option<String>,
    messages: u64,
    first_message: String,
    elsewhere: Elsewhere,
    records: Records,
}

impl RowContent {
    fn take(&mut self, entry: &Envelope<'_>, text: &[u8], session_id: &str) {
        if entry.kind == Kind::LeafRecord {
            return self.elsewhere.take(text);
        }
        if entry.kind == Kind::Custom {
            self.records.take(text, session_id);
        }
        self.last_said.take(entry);
        if let Facts::SessionInfo { name } = &entry.facts {
            self.name = name.as_deref().and_then(name::given);
        }
        if entry.kind == Kind::Message {
            self.messages += 1;
            let is_users = matches!(
                entry.facts,
                Facts::Message {
                    role: Role::User,
                    ..
                }
            );
            if is_users && self.first_message.is_empty() {
                self.first_message = text_of(text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use proptest::prelude::*;
    use std::fs;
    use std::path::Path;

    /// Checks that a scan makes either the row that opening the file makes, or no row. Returns whether it makes a row.
    #[track_caller]
    fn agrees(scanner: &mut RowScanner, path: &Path) -> bool {
        let location = Location::of_path(path).unwrap();
        let scanned = scanner.row(&location);
        let opened = Listing::of(&location, Log::open(location.clone()));
        match scanned {
            Some(scanned) => {
                assert_eq!(scanned, opened.unwrap(), "{}", path.display());
                true
            }
            None => false,
        }
    }

    /// Rows that use the time of the file were once compared with the rows of pi for files that had just been written.
    /// About one in 8,000 such files has a time for which the two programs rounded differently. The expected numbers
    /// are the results of `fs.statSync(file).mtime.getTime()`.
    #[test]
    fn the_time_of_a_file_is_rounded_as_javascript_rounds_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("session.jsonl");
        let file = fs::File::create(&path).unwrap();
        let location = Location::of_path(&path).unwrap();
        for (nanoseconds, expected) in [
            (123_499_800, 1_795_867_829_123),
            (123_499_900, 1_795_867_829_124),
            (123_500_000, 1_795_867_829_124),
            (999_999_999, 1_795_867_830_000),
        ] {
            let at = std::time::UNIX_EPOCH + std::time::Duration::new(1_795_867_829, nanoseconds);
            file.set_modified(at).unwrap();
            assert_eq!(written(&location), expected, "{nanoseconds}");
        }
    }

    #[test]
    fn a_scan_agrees_with_an_opening_on_every_kind_of_damage() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
        let mut scanner = RowScanner::default();
        let mut scanned = 0;
        for file in fs::read_dir(data).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "jsonl") {
                scanned += usize::from(agrees(&mut scanner, &path));
            }
        }
        assert!(scanned > 0, "none of them was scanned");
    }

    const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/c"}"#;

    /// Lines of all kinds. Some ids are from a small set, so that they come twice.
    fn line() -> impl Strategy<Value = String> {
        let id = prop_oneof![30 => "[a-z]{4}", 1 => "[ab]"];
        let time = prop_oneof![
            4 => "2026-0[1-9]-[12][0-9]T0[0-9]:00:00\\.000Z",
            1 => Just("2026-05-05T10:00:00+02:00".to_owned()),
            1 => Just("yesterday".to_owned()),
        ];
        let rest = prop_oneof![
            6 => Just(r#""type":"message","message":{"role":"user","content":"a\u2028  b\nc"}"#),
            6 => Just(r#""type":"message","message":{"role":"user","content":[{"type":"image"}]}"#),
            6 => Just(
                r#""type":"message","message":{"role":"user","content":[{"type":"text","text":"t"}]}"#
            ),
            6 => Just(r#""type":"message","message":{"role":"assistant","content":[]}"#),
            3 => Just(r#""type":"message","message":{"role":"assistant","timestamp":1900000000000}"#),
            3 => Just(r#""type":"message","message":{"role":"user","content":"t","timestamp":1800000000000.5}"#),
            3 => Just(r#""type":"message","message":{"timestamp":-5,"role":"assistant","content":null}"#),
            6 => Just(r#""type":"message","message":{"role":"hookMessage","content":"h"}"#),
            6 => Just(r#""type":"message""#),
            6 => Just(r#""type":"session_info","name":"n \ud83d\ude00""#),
            6 => Just(r#""type":"session_info","name":"""#),
            3 => Just(r#""type":"session_info","name":" \t ""#),
            3 => Just(r#""type":"session_info","name":"\n a\u001bb ""#),
            6 => Just(r#""type":"session_info""#),
            6 => Just(r#""type":"label","targetId":"a","label":"l""#),
            6 => Just(r#""type":"custom","customType":"treelined.leaf","data":{"from":null}"#),
            3 => Just(r#""type":"custom","customType":"treelined.leaf","data":{"continuation":{"id":"c","entryId":"e","tool":"codex","nativeId":"n"}}"#),
            3 => Just(r#""type":"custom","customType":"treelined.leaf","data":{"continuation":{"id":"d","entryId":"e","tool":"goose"}}"#),
            3 => Just(r##""type":"custom","customType":"treelined.tags","data":{"add":["#a","b"],"remove":["c"]}"##),
            3 => Just(r#""type":"custom","customType":"treelined.git","data":{"branch":"main"}"#),
            6 => Just(r#""type":"custom","customType":"acp.session","data":{"agent":"a","sessionId":"n"}"#),
            1 => Just(r#""type":"session","version":3"#),
            6 => Just(r#""type":"new","x":1e400"#),
            1 => Just(r#""no":"type""#),
        ];
        let entry = (id, time, rest).prop_map(|(id, time, rest)| {
            format!(r#"{{{rest},"id":"{id}","parentId":null,"timestamp":"{time}"}}"#)
        });
        prop_oneof![
            12 => entry,
            1 => Just(String::new()),
            1 => Just("  \r".to_owned()),
        ]
    }

    fn file() -> impl Strategy<Value = Vec<u8>> {
        let header = prop_oneof![
            8 => Just(HEADER.to_owned()),
            1 => Just(HEADER.replace("\"version\":3", "\"version\":2")),
            1 => Just(HEADER.replace("\"version\":3", "\"version\":1")),
            1 => Just(HEADER.replace("\"version\":3", "\"version\":9")),
            1 => Just(HEADER.replace("\"cwd\"", "\"title\":\" t \",\"cwd\"")),
            1 => Just(format!("{{\"type\":\"title\",\"title\":\"t\"}}\n{HEADER}")),
            1 => Just(format!("\0\0{HEADER} garbage")),
            1 => Just(format!("\u{feff}{HEADER}")),
            1 => Just(format!(" {HEADER} ")),
            1 => Just(String::new()),
        ];
        let damage = prop_oneof![
            6 => Just(None),
            1 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(Some),
        ];
        let lines = prop::collection::vec(line(), 0..12);
        (header, lines, prop::bool::weighted(0.9), damage).prop_map(
            |(header, lines, ends, damage)| {
                let mut text = header;
                for line in lines {
                    text.push('\n');
                    text.push_str(&line);
                }
                if ends {
                    text.push('\n');
                }
                let mut bytes = text.into_bytes();
                if let Some((at, byte)) = damage
                    && !bytes.is_empty()
                {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
                bytes
            },
        )
    }

    #[test]
    fn a_scan_agrees_with_an_opening_on_any_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let mut scanner = RowScanner::default();
        let mut scanned = 0;
        let config = ProptestConfig::with_cases(300);
        let mut runner = proptest::test_runner::TestRunner::new(config);
        let cell = std::cell::RefCell::new((&mut scanner, &mut scanned));
        runner
            .run(&file(), |bytes| {
                fs::write(&path, bytes).unwrap();
                let (scanner, scanned) = &mut *cell.borrow_mut();
                **scanned += usize::from(agrees(scanner, &path));
                Ok(())
            })
            .unwrap();
        assert!(scanned > 50, "only {scanned} were scanned");
    }

    /// A line that needs many reads, and a line that is longer than all lines before it.
    #[test]
    fn a_scan_agrees_with_an_opening_on_long_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let mut text = HEADER.to_owned();
        for (number, len) in [10, 3 * SCAN_CHUNK, 5, SCAN_CHUNK - 40].iter().enumerate() {
            text.push_str(&format!(
                "\n{{\"type\":\"message\",\"id\":\"m{number}\",\"parentId\":null,\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{{\"role\":\"user\",\"content\":\"{}\"}}}}",
                "x".repeat(*len)
            ));
        }
        text.push('\n');
        fs::write(&path, &text).unwrap();
        let mut scanner = RowScanner::default();
        assert!(agrees(&mut scanner, &path));
        assert!(agrees(&mut scanner, &path), "with the same memory again");
    }
}
