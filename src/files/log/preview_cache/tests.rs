//! Tests that a preview equals the preview of the current line or is missing, whatever the cache
//! contains.

use super::*;
use crate::log::state::Log;
use crate::os::file::{Folder, Location};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

const COUNT: usize = 3 * BLOCK - 5;
/// Bytes of a line up to its text.
const LINE: usize = 136;

/// A session directory with one file in it.
struct PreviewFixture {
    folder: tempfile::TempDir,
    cache: Cache,
}

fn line(number: usize, more: usize) -> String {
    format!(
        r#"{{"type":"message","id":"e{number:05}","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z","message":{{"role":"user","content":"text {number:05}{}"}}}}"#,
        " more".repeat(more)
    )
}

impl PreviewFixture {
    /// A session whose lines have this many words.
    fn new(words: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = Folder::open_to_stay(folder.path()).unwrap();
        let cache = Cache::of(Arc::new(root));
        let session = Self { folder, cache };
        let header = r#"{"type":"session","version":3,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/c"}"#;
        let lines = (0..COUNT).map(|number| line(number, words) + "\n");
        fs::write(
            session.path(),
            format!("{header}\n{}", lines.collect::<String>()),
        )
        .unwrap();
        session
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("s.jsonl")
    }

    fn kept(&self) -> PathBuf {
        let listed = fs::read_dir(self.folder.path().join(".cache")).unwrap();
        let paths: Vec<_> = listed.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(paths.len(), 1, "{paths:?}");
        paths[0].clone()
    }

    /// Opens the file as a newly started daemon does.
    fn open(&self) -> (Bodies, Vec<FilePlace>) {
        let location = Location::of_path(&self.path()).unwrap();
        let opened = Log::open(location).unwrap();
        let tree = &opened.tree;
        let nodes = (0..tree.node_count()).map(|number| tree.node(number).unwrap());
        let places = nodes.map(|node| tree.place(node)).collect();
        (opened.log.bodies(), places)
    }

    /// Makes previews of all entries. A preview is a part of the line with its bytes reversed.
    fn make(&self) {
        let (bodies, places) = self.open();
        let last = places.last().unwrap();
        let end = last.offset + u64::from(last.len) + 1;
        let mut making = PreviewWriter::begin(&self.cache, &bodies, places.len(), end).unwrap();
        for places in places.chunks(BLOCK) {
            let (first, last) = (places[0], places[places.len() - 1]);
            let lines = FilePlace {
                offset: first.offset,
                len: (last.offset - first.offset) as u32 + last.len,
            };
            let mut block = BlockBuilder::new(lines, &bodies.read(lines).unwrap());
            for place in places {
                block.push(*place, |out| out.extend(reversed(&bodies, *place)));
            }
            making.push(&block.finish()).unwrap();
        }
        making.finish().unwrap();
    }

    /// The number of previews; checks that each is correct.
    #[track_caller]
    fn check(&self) -> usize {
        let (bodies, places) = self.open();
        load(&self.cache, &bodies);
        let Some(mut reader) = PreviewReader::of(&bodies) else {
            return 0;
        };
        let is_there = |(number, place): &(usize, &FilePlace)| match reader.get(*number, **place) {
            Some(preview) => {
                assert_eq!(preview, reversed(&bodies, **place), "entry {number}");
                true
            }
            None => false,
        };
        places.iter().enumerate().filter(is_there).count()
    }
}

fn reversed(bodies: &Bodies, place: FilePlace) -> Vec<u8> {
    let line = bodies.read(place).unwrap();
    line[..LINE].iter().rev().copied().collect()
}

#[test]
fn they_are_kept_and_replaced() {
    let session = PreviewFixture::new(100);
    assert_eq!(session.check(), 0);
    session.make();
    assert_eq!(session.check(), COUNT);
    let (bodies, places) = session.open();
    load(&session.cache, &bodies).unwrap();
    let mut reader = PreviewReader::of(&bodies).unwrap();
    // The previews are read backwards, then in a scattered order.
    for number in (0..COUNT).rev().chain((0..COUNT).map(|n| n * 7 % COUNT)) {
        assert!(reader.get(number, places[number]).is_some());
    }
    assert!(reader.get(3, places[4]).is_none());
    assert!(reader.get(COUNT, places[4]).is_none());
    // The previews are replaced while the old ones are being read.
    session.make();
    assert!(reader.get(0, places[0]).is_some());
    assert_eq!(session.check(), COUNT);
    crate::log::remove_cached(&Location::of_path(&session.path()).unwrap(), &session.cache);
    assert_eq!(session.check(), 0);
}

#[test]
fn of_a_file_that_has_changed_only_the_same_lines_count() {
    let session = PreviewFixture::new(100);
    session.make();
    let append = |text: &str| {
        let file = fs::File::options().append(true).open(session.path());
        file.unwrap().write_all(text.as_bytes()).unwrap();
    };
    append(&(line(COUNT, 0) + "\n"));
    assert_eq!(session.check(), COUNT);
    // The middle of the file is edited in place.
    let text = fs::read_to_string(session.path()).unwrap();
    let edited = text.replace("text 00200", "edit 00200");
    fs::write(session.path(), &edited).unwrap();
    assert_eq!(session.check(), COUNT - BLOCK);
    // The file is edited without a change of its length.
    let session = PreviewFixture::new(100);
    session.make();
    fs::write(
        session.path(),
        fs::read_to_string(session.path())
            .unwrap()
            .replace("text 00200", "edit 00200"),
    )
    .unwrap();
    assert_eq!(session.check(), 0);
    // The file is cut, or another file replaces it.
    session.make();
    fs::write(session.path(), &text[..text.len() / 2]).unwrap();
    assert_eq!(session.check(), 0);
    let (session, other) = (PreviewFixture::new(100), PreviewFixture::new(100));
    session.make();
    other.make();
    fs::copy(other.kept(), session.kept()).unwrap();
    assert_eq!(session.check(), 0);
}

#[test]
fn damaged_ones_are_none() {
    use std::os::unix::fs::PermissionsExt;
    let session = PreviewFixture::new(0);
    session.make();
    let path = session.kept();
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len())
        .step_by(257)
        .chain(whole.len() - 220..whole.len())
    {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, &flipped).unwrap();
        // A damaged preview is missing, and its block with it.
        assert!(session.check() <= COUNT - (COUNT - 2 * BLOCK), "byte {at}");
    }
    for len in (0..whole.len()).step_by(5003) {
        fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(session.check(), 0, "length {len}");
    }
    fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
    assert_eq!(session.check(), 0);
    fs::write(&path, &whole).unwrap();
    assert_eq!(session.check(), COUNT);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
    assert_eq!(session.check(), 0, "others may have written it");
}

#[test]
fn a_preview_that_is_too_long_is_left_out() {
    let mut block = BlockBuilder::new(FilePlace { offset: 0, len: 0 }, b"");
    let place = FilePlace { offset: 7, len: 1 };
    block.push(place, |out| out.extend(vec![b'x'; LONGEST + 1]));
    block.push(place, |out| out.push(b'y'));
    let block = block.finish();
    assert_eq!(block.bytes, [0, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, b'y']);
}

// The name of the list of sessions once had the same ending as the names of previews. So the list was counted as a
// preview, and removed as the oldest one.
#[test]
fn previews_do_not_displace_other_cache_files() {
    let session = PreviewFixture::new(0);
    crate::store::catalogue::save(&session.cache, &[]);
    let list = session.kept();
    let listed = fs::File::open(&list).unwrap();
    listed.set_modified(std::time::UNIX_EPOCH).unwrap();
    for number in 0..KIND.most {
        let name = format!("{number}{}", KIND.ending);
        fs::write(list.with_file_name(name), "").unwrap();
    }
    session.make();
    assert!(list.exists());
    let folder = list.parent().unwrap();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1 + KIND.most);
}
