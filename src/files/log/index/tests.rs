//! Tests that an opened session equals the file, whatever the cache contains.

use super::*;
use crate::cache::forge_checksums;
use crate::cancel::Cancel;
use crate::os::file::Folder;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use treelined_core::tree::Node;

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/c"}"#;

/// A session directory with one file in it.
struct IndexFixture {
    folder: tempfile::TempDir,
    cache: Cache,
}

impl IndexFixture {
    fn new(content: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.jsonl"), content).unwrap();
        let root = Folder::open_to_stay(folder.path()).unwrap();
        let cache = Cache::of(Arc::new(root));
        Self { folder, cache }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("s.jsonl")
    }

    fn append(&self, bytes: &[u8]) {
        let mut file = fs::File::options().append(true).open(self.path()).unwrap();
        file.write_all(bytes).unwrap();
    }

    fn location(&self) -> Location {
        Location::of_path(&self.path()).unwrap()
    }

    /// Opens the file as the daemon does, with an index for any size. Returns the session as text, and whether an index
    /// was written.
    fn open(&self) -> (String, bool) {
        let (opened, index) =
            Log::open_indexed_from(self.location(), &self.cache, 1, &Cancel::new()).unwrap();
        if let Some(index) = &index {
            index.write(&self.cache);
        }
        (shown(&opened), index.is_some())
    }

    fn open_plainly(&self) -> String {
        shown(&Log::open(self.location()).unwrap())
    }

    fn index_path(&self) -> PathBuf {
        let cached = fs::read_dir(self.folder.path().join(".cache")).unwrap();
        let mut paths = cached.map(|entry| entry.unwrap().path());
        paths.next().unwrap()
    }

    #[track_caller]
    fn check(&self) {
        assert_eq!(self.open().0, self.open_plainly());
    }
}

/// All data of an opened session.
fn shown(opened: &OpenedLog) -> String {
    use std::fmt::Write;
    let tree = &opened.tree;
    let mut out = String::new();
    let ids = |nodes: Vec<Node>| {
        nodes
            .iter()
            .map(|node| tree.id(*node))
            .collect::<Vec<_>>()
            .join(",")
    };
    for number in 0..tree.node_count() {
        let node = tree.node(number).unwrap();
        writeln!(
            out,
            "{} {:?} {:?} {:?} {:?} {:?} {:?} [{}] {:?} found {:?}",
            tree.id(node),
            tree.parent(node).map(|parent| tree.id(parent)),
            tree.kind(node),
            tree.role(node),
            tree.flags(node),
            tree.timestamp(node),
            tree.place(node),
            ids(tree.children(Some(node))),
            tree.label(node)
                .map(|label| (&label.text, tree.id(label.entry))),
            tree.find_any(tree.id(node)).map(|found| found.number()),
        )
        .unwrap();
    }
    writeln!(
        out,
        "roots {} leaf {:?} {:?} name {:?} entries {} moves {:?} undo {:?} redo {:?} links {:?} records {}",
        ids(tree.children(None)),
        tree.leaf(),
        tree.file_leaf(),
        tree.name(),
        tree.entry_count(),
        tree.moves().log(),
        tree.moves().undo_target(tree),
        tree.moves().redo_target(tree),
        tree.link_reports(),
        tree.has_leaf_records(),
    )
    .unwrap();
    writeln!(out, "{:?} {:?}", opened.diagnostics, opened.log.header()).unwrap();
    let LogStorage::File(log) = &opened.log.store else {
        panic!("a file");
    };
    let place = (log.end, log.ends_in_break, log.torn_at, log.header_at);
    writeln!(
        out,
        "{place:?} {:?} {}",
        log.header_line, opened.log.ingest.lines
    )
    .unwrap();
    out
}

fn message(id: &str, parent: &str, text: &str) -> String {
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2025-01-01T00:00:00.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    )
}

/// A session of three entries, opened once.
fn indexed() -> IndexFixture {
    let lines = [
        HEADER.to_owned(),
        message("a1", "null", "one"),
        message("b1", "\"a1\"", "two"),
        message("c1", "\"b1\"", "three"),
    ];
    let place = IndexFixture::new((lines.join("\n") + "\n").as_bytes());
    assert!(place.open().1);
    place
}

#[test]
fn an_index_is_used_and_extended() {
    let place = indexed();
    assert!(!place.open().1, "nothing new");
    place.append(format!("{}\n", message("d1", "\"a1\"", "four")).as_bytes());
    let (shown, wrote) = place.open();
    assert!(wrote && shown.contains("d1 Some(\"a1\")"));
    place.check();
    let (opened, _) =
        Log::open_indexed_from(place.location(), &place.cache, 1, &Cancel::new()).unwrap();
    let status = place.location().status().unwrap();
    let restored = restore(&place.location(), status, &place.cache).unwrap();
    assert_eq!(restored.tree.node_count(), opened.tree.node_count());
}

/// An index is not used for another file, or after the file was changed.
#[test]
fn a_stale_index_is_not_believed() {
    let content = |place: &IndexFixture| fs::read_to_string(place.path()).unwrap();
    let rewrite = |place: &IndexFixture, text: &str| fs::write(place.path(), text).unwrap();

    let place = indexed();
    rewrite(&place, &content(&place).replace("two", "2 2"));
    place.check();

    let place = indexed();
    rewrite(&place, &content(&place).replace("b1", "x1"));
    place.append(format!("{}\n", message("d1", "\"c1\"", "four")).as_bytes());
    place.check();

    let place = indexed();
    let text = content(&place);
    rewrite(&place, text.get(..text.len() - 30).unwrap());
    place.check();

    let place = indexed();
    let text = content(&place);
    rewrite(
        &place,
        text.get(..text.rfind("{\"type\"").unwrap()).unwrap(),
    );
    place.check();

    // The index of another file is stored under the name of the index of this file.
    let place = indexed();
    let other =
        IndexFixture::new(format!("{HEADER}\n{}\n", message("z9", "null", "other")).as_bytes());
    other.open();
    fs::copy(other.index_path(), place.index_path()).unwrap();
    place.check();
}

/// A file longer than the compared ends is changed in the middle and then appended to.
#[test]
fn a_file_edited_in_place_and_grown_is_read_anew() {
    let mut lines = vec![HEADER.to_owned()];
    lines.extend((0..2000).map(|n| message(&format!("e{n:05}"), "null", &"x".repeat(100))));
    let text = lines.join("\n") + "\n";
    let place = IndexFixture::new(text.as_bytes());
    assert!(place.open().1);
    // Every id in the middle changes, since only a sample of the ids is compared.
    let edited = text.replace("\"e010", "\"f010");
    assert_ne!(edited, text);
    fs::write(place.path(), edited).unwrap();
    place.append(format!("{}\n", message("last", "null", "")).as_bytes());
    place.check();
}

#[test]
fn a_damaged_index_is_not_believed() {
    let place = indexed();
    let path = place.index_path();
    let whole = fs::read(&path).unwrap();
    let expected = place.open_plainly();
    let status = place.location().status().unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, &flipped).unwrap();
        assert!(
            restore(&place.location(), status, &place.cache).is_none(),
            "byte {at}"
        );
    }
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        assert!(
            restore(&place.location(), status, &place.cache).is_none(),
            "length {len}"
        );
    }
    fs::write(&path, [whole.as_slice(), b"x"].concat()).unwrap();
    assert!(restore(&place.location(), status, &place.cache).is_none());
    assert_eq!(place.open(), (expected.clone(), true), "and made again");
    assert!(restore(&place.location(), status, &place.cache).is_some());
    fs::remove_dir_all(place.folder.path().join(".cache")).unwrap();
    assert_eq!(place.open(), (expected, true), "missing, too");
}

/// An index that others may have written is ignored.
#[test]
fn an_index_that_others_can_write_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let place = indexed();
    let status = place.location().status().unwrap();
    assert!(restore(&place.location(), status, &place.cache).is_some());
    fs::set_permissions(place.index_path(), fs::Permissions::from_mode(0o620)).unwrap();
    assert!(restore(&place.location(), status, &place.cache).is_none());
    let away = place.folder.path().join("away");
    fs::rename(place.index_path(), &away).unwrap();
    fs::set_permissions(&away, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(
        &away,
        place
            .folder
            .path()
            .join(".cache")
            .join(KIND.name_for(status.identity)),
    )
    .unwrap();
    assert!(restore(&place.location(), status, &place.cache).is_none());
}

/// If the cache cannot be written, sessions open as without a cache.
#[test]
fn without_a_cache_nothing_changes() {
    let place = indexed();
    fs::remove_dir_all(place.folder.path().join(".cache")).unwrap();
    fs::write(place.folder.path().join(".cache"), "a file").unwrap();
    let expected = place.open_plainly();
    assert_eq!(place.open(), (expected, true));
}

/// A label may come before its target, and a later line may have the same id as the label. The first label once took
/// effect nevertheless, so one entry set two labels. When the label was removed, the index decided which of the two was
/// removed.
#[test]
fn a_label_that_is_replaced_before_its_target_is_read_labels_nothing() {
    let label = |target: &str| {
        format!(
            r#"{{"type":"label","id":"l","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z","targetId":"{target}","label":"x"}}"#
        )
    };
    let entry = |id: &str| message(id, "null", "m");
    let lines = [HEADER, &label("a"), &label("b"), &entry("a"), &entry("b")];
    let place = IndexFixture::new(format!("{}\n", lines.join("\n")).as_bytes());
    place.check();
    place.check();
    let labels = |shown: &str| shown.matches(r#"("x", "l")"#).count();
    assert_eq!(labels(&place.open_plainly()), 1);
    place.append(format!("{}\n", entry("l")).as_bytes());
    place.check();
    assert_eq!(labels(&place.open_plainly()), 0);
}

/// Lines of all kinds, whole and damaged, that name each other at random.
fn a_line() -> impl Strategy<Value = String> {
    let id = || (0..14u8).prop_map(|n| format!("i{n}"));
    let parent =
        || prop_oneof![1 => Just("null".to_owned()), 6 => id().prop_map(|id| format!("\"{id}\""))];
    let entry = move |kind: &'static str, rest: BoxedStrategy<String>| {
        (id(), parent(), rest).prop_map(move |(id, parent, rest)| {
            format!(r#"{{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"2025-01-01T00:00:00.000Z"{rest}}}"#)
        })
    };
    let naming = move |member: &'static str, rest: &'static str| {
        id().prop_map(move |id| format!(r#","{member}":"{id}"{rest}"#))
            .boxed()
    };
    prop_oneof![
        6 => (id(), parent(), "[a-z]{0,9}").prop_map(|(id, parent, text)| message(&id, &parent, &text)),
        2 => entry("label", naming("targetId", r#","label":"x""#)),
        1 => entry("label", naming("targetId", "")),
        1 => entry("session_info", Just(r#","name":"n""#.to_owned()).boxed()),
        1 => entry("branch_summary", naming("fromId", r#","summary":"s""#)),
        1 => entry("compaction", naming("firstKeptEntryId", r#","summary":"s","tokensBefore":7"#)),
        2 => entry("custom", naming("from", r#","customType":"treelined.leaf","data":{"from":"i3","cause":"undo"}"#)),
        1 => "[ -~]{0,30}",
        1 => Just(r#"{"type":"message","id":"torn","par"#.to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// An opened log that grows and is reopened many times equals one reading of the whole file.
    #[test]
    fn an_opened_session_equals_its_file(
        parts in vec((vec(a_line(), 0..12), any::<bool>()), 1..5),
    ) {
        let place = IndexFixture::new(format!("{HEADER}\n").as_bytes());
        for (lines, ends_in_break) in parts {
            place.append(lines.join("\n").as_bytes());
            if ends_in_break {
                place.append(b"\n");
            }
            prop_assert_eq!(place.open().0, place.open_plainly());
            prop_assert_eq!(place.open().0, place.open_plainly());
        }
    }

    /// A forged index with a valid checksum may give wrong data for the session of its author. It must never make
    /// opening fail.
    #[test]
    fn no_forged_index_makes_opening_fail(
        at in any::<prop::sample::Index>(),
        bytes in vec(any::<u8>(), 1..9),
    ) {
        let place = indexed();
        let path = place.index_path();
        let mut forged = fs::read(&path).unwrap();
        let at = at.index(forged.len() - 32);
        for (to, from) in forged.iter_mut().skip(at).zip(bytes) {
            *to = from;
        }
        forge_checksums(&mut forged);
        fs::write(&path, &forged).unwrap();
        let (opened, _) = Log::open_indexed_from(place.location(), &place.cache, 1, &Cancel::new()).unwrap();
        prop_assert!(!shown(&opened).is_empty());
        for number in 0..opened.tree.node_count() {
            opened.tree.path(opened.tree.node(number));
        }
    }
}
