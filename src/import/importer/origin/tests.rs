use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Keeps `text` as the file `path` of Codex. Returns the name of the origin.
fn keep(origins: &Origins, text: &[u8]) -> String {
    let mut writer = origins
        .side_writer(Tool::Codex, Path::new("/a/b.jsonl"))
        .unwrap();
    give(&mut writer, text);
    if !writer.settle().unwrap() {
        writer.begin_anew().unwrap();
        give(&mut writer, text);
        assert!(writer.settle().unwrap());
    }
    let name = writer.name.clone();
    assert_eq!(writer.finish().unwrap(), name);
    name
}

fn give(writer: &mut OriginWriter, text: &[u8]) {
    for chunk in text.chunks(300_000) {
        writer.push(chunk).unwrap();
    }
}

fn kept(origins: &Origins, name: &str) -> Vec<u8> {
    let mut reader = origins.reader(name).unwrap();
    let (len, hash) = (reader.kept_bytes(), reader.hash().to_owned());
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, len);
    assert_eq!(hex(&Sha256::digest(&bytes)), hash);
    bytes
}

fn text(len: usize) -> Vec<u8> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut byte = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        b'a' + (random % 16) as u8
    };
    (0..len).map(|_| byte()).collect()
}

fn files(session_dir: &Path, name: &str) -> Vec<String> {
    let folder = session_dir.join(FOLDER).join(name);
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn only_the_bytes_since_the_last_time_are_added() {
    let folder = tempfile::tempdir().unwrap();
    let origins = Origins::of(folder.path()).unwrap();
    let text = text(5 << 20);
    let mut names = Vec::new();
    for len in [3 << 20, 3 << 20, 4 << 20, 5 << 20] {
        names.push(keep(&origins, &text[..len]));
        assert_eq!(kept(&origins, names.last().unwrap()), text[..len]);
    }
    names.dedup();
    assert_eq!(names.len(), 1);
    let expected = ["1.zst", "2.zst", "3.zst", "manifest.jsonl"];
    assert_eq!(files(folder.path(), &names[0]), expected);
}

#[test]
fn a_source_that_grows_by_lines_has_few_segments() {
    let folder = tempfile::tempdir().unwrap();
    let origins = Origins::of(folder.path()).unwrap();
    let text = text(1 << 20);
    let mut name = String::new();
    for len in (1..=64).map(|n| n << 14) {
        name = keep(&origins, &text[..len]);
    }
    assert_eq!(kept(&origins, &name), text);
    assert!(files(folder.path(), &name).len() <= 4);
}

#[test]
fn a_rewritten_source_begins_a_folder_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let origins = Origins::of(folder.path()).unwrap();
    let first = keep(&origins, b"one\ntwo\n");
    let second = keep(&origins, b"one\nTWO\nthree\n");
    let third = keep(&origins, b"one\nTWO\n3\n");
    assert_eq!(second, format!("{first}-2"));
    assert_eq!(kept(&origins, &first), b"one\ntwo\n");
    assert_eq!(kept(&origins, &second), b"one\nTWO\nthree\n");
    assert_eq!(kept(&origins, &third), b"one\nTWO\n3\n");
    assert_eq!(keep(&origins, b"one\nTWO\n"), third, "a beginning of it");
}

/// After a crash at any point, the next import keeps the whole source.
#[test]
fn torn_segments_and_lines_of_the_manifest_are_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(3 << 20);
    let origins = Origins::of(folder.path()).unwrap();
    let name = keep(&origins, &text[..1 << 20]);
    keep(&origins, &text[..2 << 20]);
    let at = |file: &str| folder.path().join(FOLDER).join(&name).join(file);
    let manifest = fs::read(at("manifest.jsonl")).unwrap();
    for cut in [0, 10, manifest.len() / 2, manifest.len() - 1] {
        fs::write(at("manifest.jsonl"), &manifest[..cut]).unwrap();
        assert_eq!(keep(&origins, &text), name);
        assert_eq!(kept(&origins, &name), text);
    }
    for (segment, len) in [("1.zst", 0), ("1.zst", 77), ("2.zst", 5)] {
        if let Ok(file) = fs::File::options().write(true).open(at(segment)) {
            file.set_len(len).unwrap();
        }
        assert_eq!(keep(&origins, &text), name);
        assert_eq!(kept(&origins, &name), text);
    }
    fs::write(at("9.zst"), "left by a crash").unwrap();
    let longer = [&*text, b"more"].concat();
    keep(&origins, &longer);
    assert!(!at("9.zst").exists());
    assert_eq!(kept(&origins, &name), longer);
}

#[test]
fn an_abandoned_writer_keeps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let origins = Origins::of(folder.path()).unwrap();
    let name = keep(&origins, b"one\n");
    let mut writer = origins
        .side_writer(Tool::Codex, Path::new("/a/b.jsonl"))
        .unwrap();
    give(&mut writer, &[b"one\n".to_vec(), text(3 << 20)].concat());
    drop(writer);
    assert_eq!(kept(&origins, &name), b"one\n");
    assert_eq!(files(folder.path(), &name), ["1.zst", "manifest.jsonl"]);
}

#[test]
fn origins_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = folder.path().join("sessions");
    let origins = Origins::of(&sessions).unwrap();
    let name = keep(&origins, b"one\n");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let origin = sessions.join(FOLDER).join(&name);
    for (path, expected) in [
        (sessions.join(FOLDER), 0o700),
        (origin.clone(), 0o700),
        (origin.join("1.zst"), 0o600),
        (origin.join("manifest.jsonl"), 0o600),
    ] {
        assert_eq!(mode(&path), expected, "{path:?}");
    }
}

#[test]
fn only_folders_of_origins_are_removed_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let origins = Origins::of(folder.path()).unwrap();
    let name = keep(&origins, b"one\n");
    fs::create_dir(folder.path().join("other")).unwrap();
    for wrong in ["", "..", "../other", "/etc", "a/b", "zz"] {
        assert!(!origins.remove(wrong).unwrap(), "{wrong}");
        assert!(origins.reader(wrong).is_err());
    }
    assert!(origins.remove(&name).unwrap());
    assert!(!origins.remove(&name).unwrap());
    assert!(folder.path().join("other").exists());
}

#[test]
fn a_file_that_belongs_to_a_source_is_kept_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let origins = Origins::of(&folder.path().join("sessions")).unwrap();
    let file = folder.path().join("toolu_1.txt");
    let output = text(3 << 20);
    for (content, generation) in [(&output[..1 << 20], 1), (&output[..], 1), (b"other", 2)] {
        fs::write(&file, content).unwrap();
        for _ in 0..2 {
            origins.keep_side_file(Tool::ClaudeCode, &file).unwrap();
        }
        let writer = origins.side_writer(Tool::ClaudeCode, &file).unwrap();
        assert_eq!(writer.generation, generation);
        assert_eq!(kept(&origins, &writer.name), content);
    }
    fs::remove_file(&file).unwrap();
    origins.keep_side_file(Tool::ClaudeCode, &file).unwrap();
}

/// Once, after a power cut, the ledger had a source whose kept bytes were not named yet. The source was not read
/// again, and a temporary file stayed in its folder. The next import must see such files without opening each folder.
#[test]
fn unfinished_files_are_in_the_folder_of_all_origins_and_removed_there() {
    let session_dir = tempfile::tempdir().unwrap();
    let origins = Origins::of(session_dir.path()).unwrap();
    let mut writer = origins
        .side_writer(Tool::Codex, Path::new("/a/b.jsonl"))
        .unwrap();
    give(&mut writer, &text(2 * BLOCK));
    let is_temporary = |name: &String| temporary::is_temporary(OsStr::new(name));
    let unfinished = || -> Vec<String> {
        let all = files(session_dir.path(), "").into_iter();
        all.filter(is_temporary).collect()
    };
    let inner = files(session_dir.path(), &writer.name);
    assert!(!inner.iter().any(is_temporary), "{inner:?}");
    let [name] = &unfinished()[..] else {
        panic!("{:?}", unfinished());
    };
    Origins::names(session_dir.path());
    assert_eq!(
        unfinished(),
        std::slice::from_ref(name),
        "its writer is alive"
    );
    assert!(writer.settle().unwrap());
    writer.finish().unwrap();
    assert!(unfinished().is_empty());
    // A kill leaves the file like this: no process holds the lock of its writer.
    let left = session_dir.path().join(FOLDER).join(name);
    fs::write(&left, "a segm").unwrap();
    Origins::names(session_dir.path());
    assert!(!left.exists());
}
