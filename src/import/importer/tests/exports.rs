//! Exports of accounts: one file has the conversations of years.

use super::*;
use crate::importer::discover::Request;
use flate2::{Compression, Crc, write::DeflateEncoder};
use serde_json::json;
use std::io::Write;

fn export() -> String {
    fs::read_to_string(fixture("chatgpt/conversations.json")).unwrap()
}

fn conversations() -> Vec<Value> {
    serde_json::from_str(&export()).unwrap()
}

/// A conversation with these turns on one path.
fn talk(id: &str, turns: usize) -> Value {
    let mut mapping = serde_json::Map::new();
    let mut above = Value::Null;
    for number in 0..2 * turns {
        let key = format!("{id}-{number}");
        let role = ["user", "assistant"][number % 2];
        let content = json!({"content_type": "text", "parts": [format!("{key} says")]});
        let message = json!({"author": {"role": role}, "create_time": number, "content": content});
        mapping.insert(
            key.clone(),
            json!({"message": message, "parent": above, "children": []}),
        );
        above = json!(key);
    }
    json!({"title": id, "create_time": 1, "update_time": turns, "mapping": mapping, "current_node": above, "id": id})
}

/// A `.zip` with these files. Files with an even index are packed, the others are stored.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    for (number, (name, bytes)) in files.iter().enumerate() {
        let mut crc = Crc::new();
        crc.update(bytes);
        let (method, stored) = match number % 2 {
            1 => (0_u16, bytes.to_vec()),
            _ => {
                let mut packer = DeflateEncoder::new(Vec::new(), Compression::best());
                packer.write_all(bytes).unwrap();
                (8, packer.finish().unwrap())
            }
        };
        let mut facts = Vec::new();
        facts.extend(20_u16.to_le_bytes());
        facts.extend(0_u16.to_le_bytes());
        facts.extend(method.to_le_bytes());
        facts.extend([0; 4]);
        facts.extend(crc.sum().to_le_bytes());
        facts.extend(u32::try_from(stored.len()).unwrap().to_le_bytes());
        facts.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        facts.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        facts.extend(0_u16.to_le_bytes());
        list.extend(b"PK\x01\x02\x14\x00");
        list.extend(&facts);
        list.extend([0; 10]);
        list.extend(u32::try_from(out.len()).unwrap().to_le_bytes());
        list.extend(name.bytes());
        out.extend(b"PK\x03\x04");
        out.extend(&facts);
        out.extend(name.bytes());
        out.extend(stored);
    }
    let at = u32::try_from(out.len()).unwrap();
    out.extend(&list);
    out.extend(b"PK\x05\x06\x00\x00\x00\x00");
    let count = u16::try_from(files.len()).unwrap().to_le_bytes();
    out.extend([count, count].concat());
    out.extend(u32::try_from(list.len()).unwrap().to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0; 2]);
    out
}

fn origins(home: &Home) -> usize {
    fs::read_dir(home.sessions().join(".origins"))
        .unwrap()
        .count()
}

/// The kind and the message of each failure.
fn failures(report: &ImportReport) -> Vec<(String, String)> {
    let failed = report.files.iter().filter_map(|file| file.error.as_ref());
    failed
        .map(|error| (error.kind.clone(), error.message.clone()))
        .collect()
}

#[test]
fn each_conversation_is_a_session() {
    let home = Home::new(Tool::ChatGpt);
    home.write("conversations.json", export());
    let done = home.try_import(|request| request.from = None).unwrap();
    assert_eq!(failures(&done), []);
    assert_eq!(done.totals.files, 12);
    // One of the conversations has no text.
    assert_eq!((done.totals.sessions, done.totals.created), (11, 11));
    let cache = done
        .sessions
        .iter()
        .find(|row| row.name.as_deref() == Some("The cache"));
    let cache = cache.unwrap();
    assert_eq!((cache.branches, cache.entries_added), (2, 8));
    assert_eq!(
        path_of(cache).last().unwrap()["message"]["content"][0]["text"],
        "Done."
    );
    let again = home.import();
    assert_eq!(
        (again.totals.unchanged, again.totals.entries_added),
        (12, 0)
    );
}

#[test]
fn a_zip_is_read_in_place_and_numbered_files_are_one_export() {
    let home = Home::new(Tool::ChatGpt);
    home.write(
        "export.zip",
        fs::read(fixture("chatgpt/numbered/export.zip")).unwrap(),
    );
    let done = home.try_import(|request| request.from = None).unwrap();
    assert_eq!(failures(&done), []);
    assert_eq!(done.totals.created, 3);
    // The same conversations without a `.zip`, and in a `.zip` that is packed differently.
    home.write(
        "conversations.json",
        serde_json::to_string(&conversations()[..3]).unwrap(),
    );
    let one = serde_json::to_vec(&conversations()[..2]).unwrap();
    let other = serde_json::to_vec(&conversations()[2..3]).unwrap();
    let files: [(&str, &[u8]); 3] = [
        ("a/conversations-000.json", &one),
        ("a/conversations-001.json", &other),
        ("a/conversations-x.json", b"no"),
    ];
    home.write("other.zip", zip(&files));
    let kept = origins(&home);
    let again = home.import();
    assert_eq!(failures(&again), []);
    assert_eq!((again.totals.created, again.totals.entries_added), (0, 0));
    assert_eq!(origins(&home), kept, "the same bytes are kept once");
}

#[test]
fn a_later_export_adds_only_new_turns() {
    let home = Home::new(Tool::ChatGpt);
    let write = |name: &str, talks: &[Value]| {
        home.write(name, serde_json::to_string_pretty(talks).unwrap())
    };
    let first = write("first.json", &[talk("a", 2), talk("b", 1)]);
    let done = home.import();
    assert_eq!((done.totals.created, done.totals.entries_added), (2, 8));
    // The first file was deleted, as users delete downloads.
    fs::remove_file(first).unwrap();
    write("later.json", &[talk("b", 1), talk("a", 3), talk("c", 1)]);
    let done = home.import();
    assert_eq!(done.totals.created, 1);
    let added = |name: &str, done: &ImportReport| {
        let row = done.sessions.iter().find(|row| row.native_id == name);
        row.unwrap().entries_added
    };
    assert_eq!([added("a", &done), added("b", &done)], [2, 0]);
    let a = done
        .sessions
        .iter()
        .find(|row| row.native_id == "a")
        .unwrap();
    assert_eq!(path_of(a).len(), 6);
    assert_eq!(done.totals.revised, 0);
    // Both exports are in one import. The older one has the later name.
    let home = Home::new(Tool::ChatGpt);
    home.write("1.json", serde_json::to_string(&[talk("a", 3)]).unwrap());
    home.write("2.json", serde_json::to_string(&[talk("a", 2)]).unwrap());
    let done = home.import();
    let a = done
        .sessions
        .iter()
        .find(|row| row.native_id == "a")
        .unwrap();
    assert_eq!((done.totals.created, path_of(a).len()), (1, 6));
}

/// There are more conversations than are read together.
#[test]
fn a_large_export_is_read_in_parts() {
    let home = Home::new(Tool::ChatGpt);
    let talks: Vec<Value> = (0..60)
        .map(|number| talk(&format!("t{number}"), 3))
        .collect();
    home.write("conversations.json", serde_json::to_string(&talks).unwrap());
    let done = home.import();
    assert_eq!((done.totals.created, done.totals.entries_added), (60, 420));
    assert_eq!(home.import().totals.unchanged, 60);
    // An older and a later export are in one import.
    let home = Home::new(Tool::ChatGpt);
    let later: Vec<Value> = (0..60)
        .map(|number| talk(&format!("t{number}"), 4))
        .collect();
    home.write("later.json", serde_json::to_string(&later).unwrap());
    home.write("older.json", serde_json::to_string(&talks).unwrap());
    let done = home.import();
    assert_eq!((done.totals.created, done.totals.entries_added), (60, 540));
    assert!(done.sessions.iter().all(|row| path_of(row).len() == 8));
}

#[test]
fn what_is_whole_of_a_torn_export_is_imported() {
    let home = Home::new(Tool::ChatGpt);
    let text = serde_json::to_string(&[talk("a", 1), talk("b", 1)]).unwrap();
    home.write("torn.json", &text[..text.len() - 20]);
    let done = home.import();
    assert_eq!((done.totals.created, done.totals.failed), (1, 1));
    let [(kind, message)] = &*failures(&done) else {
        panic!("{:?}", done.files);
    };
    assert_eq!(kind, "importFailed");
    assert!(message.contains("download it again"), "{message}");
    // The failure is reported again. When the file is whole, the other conversations are imported.
    assert_eq!(home.import().totals.failed, 1);
    home.write("torn.json", text);
    let done = home.import();
    assert_eq!((done.totals.created, done.totals.failed), (1, 0));
}

#[test]
fn damaged_and_hostile_files_are_named() {
    let talks = serde_json::to_vec(&[talk("a", 1)]).unwrap();
    let whole = zip(&[("conversations.json", &talks)]);
    let mut damaged = whole.clone();
    damaged[60] ^= 0xff;
    let mut encrypted = whole.clone();
    let line = memchr::memmem::rfind(&encrypted, b"PK\x01\x02").unwrap();
    encrypted[line + 8] |= 1;
    let blanks = [&b"["[..], &vec![b' '; 20 << 20]].concat();
    let cases: [(&str, Vec<u8>, &str); 7] = [
        (
            "torn.zip",
            whole[..whole.len() - 30].to_vec(),
            "importFailed",
        ),
        ("damaged.zip", damaged, "importFailed"),
        ("encrypted.zip", encrypted, "importFailed"),
        (
            "bomb.zip",
            zip(&[("conversations.json", &blanks)]),
            "importFailed",
        ),
        ("photos.zip", zip(&[("cat.png", b"")]), "importFailed"),
        ("other.json", b"[{\"a\":1}]".to_vec(), "unrecognized"),
        ("number.json", b"[1]".to_vec(), "importFailed"),
    ];
    for (name, bytes, expected) in cases {
        let home = Home::new(Tool::ChatGpt);
        let path = home.write(name, bytes);
        let done = home
            .try_import(|request| request.paths = vec![path])
            .unwrap();
        let found = failures(&done);
        assert_eq!(found.len(), 1, "{name}");
        assert_eq!(found[0].0, expected, "{name}: {}", found[0].1);
        assert_eq!(done.totals.created, 0, "{name}");
    }
}

/// The list of a `.zip` may name positions beyond the end of the file, or the position of the list itself. Whichever
/// byte is cut or changed, the reader returns a result or an error.
#[test]
fn no_byte_of_a_zip_breaks_the_reader() {
    let talks = serde_json::to_vec(&[talk("a", 1)]).unwrap();
    let whole = zip(&[
        ("conversations.json", &talks),
        ("conversations-1.json", b"[]"),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.zip");
    let extraction = crate::importer::databases::extraction(Tool::ChatGpt).unwrap();
    let list = memchr::memmem::find(&whole, b"PK\x01\x02").unwrap();
    for at in (0..46).chain(list..whole.len()) {
        let mut changed = whole.clone();
        changed[at] ^= 0xff;
        fs::write(&path, &changed).unwrap();
        let _named = extraction.parts(&path);
        fs::write(&path, &whole[..at]).unwrap();
        let _named = extraction.parts(&path);
    }
    fs::write(&path, &whole).unwrap();
    assert_eq!(extraction.parts(&path).unwrap().parts.len(), 1);
}

#[test]
fn an_export_is_recognized_by_its_content() {
    let home = Home::new(Tool::ChatGpt);
    home.write("backup.txt", export());
    home.write(
        "archive",
        zip(&[("x/conversations.json", export().as_bytes())]),
    );
    home.write("photos.zip", zip(&[("cat.png", b"")]));
    home.write("list.json", "[{\"name\":\"not a conversation\"}]");
    home.write("one.json", talk("single", 1).to_string());
    let request = Request {
        from: None,
        paths: vec![home.root.path().join("files")],
    };
    let ledger = Default::default();
    let found = crate::importer::discover::discover(&request, &home.sessions(), &ledger).unwrap();
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    // Both exports have the same conversations.
    assert_eq!(found.sources.len(), 12 + 1);
    assert!(
        found
            .sources
            .iter()
            .all(|source| source.tool == Tool::ChatGpt)
    );
}
