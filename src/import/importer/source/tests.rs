use super::*;
use crate::importer::origin::Origins;
use crate::importer::source::facts::{Extraction, Parts};
use crate::member::{Member, Record};
use std::fs;
use std::io::{Cursor, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use treelined_core::agent::Tool;
use treelined_files::os::file::Identity;

/// Collects the records of a source.
#[derive(Default)]
struct Collector(std::sync::Arc<std::sync::Mutex<Vec<String>>>);

impl Reader for Collector {
    fn record(&mut self, record: Record<'_>) {
        let text = String::from_utf8_lossy(record.bytes).into_owned();
        self.0.lock().unwrap().push(text);
    }
    fn finish(self: Box<Self>) -> Vec<Member> {
        Vec::new()
    }
}

fn source(path: &Path, medium: Medium) -> Source {
    let status = match fs::metadata(path) {
        Ok(_) => SourceStatus::of_file(regular::open(path).unwrap().1),
        Err(_) => SourceStatus {
            size: 0,
            modified: (0, 0),
            identity: Identity {
                device: 0,
                inode: 0,
            },
            version: 0,
        },
    };
    Source {
        kept: None,
        tool: Tool::Codex,
        path: path.to_owned(),
        part: None,
        status,
        medium,
        side_files: Vec::new(),
    }
}

const LINES: Medium = Medium::Plain(Layout::Lines);

fn scan(source: &Source, is_final: bool) -> Result<(Scan, Vec<String>), ScanFailure> {
    let mut reader = Collector::default();
    let scan = source.scan(&mut reader, None, is_final, Limits::NONE, &|_| {
        ControlFlow::Continue(())
    })?;
    let records = reader.0.lock().unwrap().clone();
    Ok((scan, records))
}

fn lines(count: usize) -> String {
    let line = |n| format!("{{\"n\":{n},\"text\":\"{}\"}}\n", "x".repeat(n % 300));
    (0..count).map(line).collect()
}

fn check_places(source: &Source, text: &str) {
    let (scan, records) = scan(source, false).unwrap();
    assert_eq!(scan.len as usize, text.len());
    assert_eq!(records, text.lines().collect::<Vec<_>>());
    let mut places = source.places(&scan).unwrap();
    let (mut bytes, mut at) = (Vec::new(), 0);
    let mut spans = Vec::new();
    for line in text.lines() {
        spans.push((at, line.len()));
        at += line.len() + 1;
    }
    for (at, len) in spans.iter().chain(spans.iter().rev().step_by(7)) {
        let place = Place {
            at: *at as u64,
            len: *len as u64,
        };
        places.read(place, &mut bytes).unwrap();
        assert_eq!(bytes, text.as_bytes()[*at..at + len]);
    }
    let beyond = Place {
        at: scan.len - 1,
        len: 2,
    };
    assert!(places.read(beyond, &mut bytes).is_err());
    let endless = Place {
        at: 1,
        len: u64::MAX,
    };
    assert!(places.read(endless, &mut bytes).is_err());
}

#[test]
fn records_and_places_of_plain_and_compressed_files_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let text = lines(20_000);
    let plain = folder.path().join("a.jsonl");
    fs::write(&plain, &text).unwrap();
    check_places(&source(&plain, LINES), &text);
    let compressed = folder.path().join("b.jsonl.zst");
    fs::write(
        &compressed,
        zstd::encode_all(Cursor::new(&text), 3).unwrap(),
    )
    .unwrap();
    check_places(&source(&compressed, Medium::Compressed), &text);
}

#[test]
fn a_spooled_source_above_the_limit_of_memory_is_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = lines(120_000);
    assert!(text.len() as u64 > 16 << 20);
    let path = folder.path().join("b.jsonl.zst");
    fs::write(&path, zstd::encode_all(Cursor::new(&text), 1).unwrap()).unwrap();
    check_places(&source(&path, Medium::Compressed), &text);
}

/// Codex compresses its files while other programs read them.
#[test]
fn a_file_that_is_compressed_meanwhile_is_still_read() {
    let folder = tempfile::tempdir().unwrap();
    let text = lines(10);
    let plain = folder.path().join("a.jsonl");
    fs::write(&plain, &text).unwrap();
    let before = source(&plain, LINES);
    let (scan_before, _) = scan(&before, false).unwrap();
    fs::write(
        folder.path().join("a.jsonl.zst"),
        zstd::encode_all(Cursor::new(&text), 3).unwrap(),
    )
    .unwrap();
    fs::remove_file(&plain).unwrap();
    check_places(&before, &text);
    let mut places = before.places(&scan_before).unwrap();
    let mut bytes = Vec::new();
    places.read(Place { at: 0, len: 5 }, &mut bytes).unwrap();
    assert_eq!(bytes, text.as_bytes()[..5]);
}

#[test]
fn a_file_that_is_gone_is_a_failure_of_this_source_only() {
    let folder = tempfile::tempdir().unwrap();
    let gone = source(&folder.path().join("gone.jsonl"), LINES);
    match scan(&gone, false) {
        Err(ScanFailure::Source(failure)) => assert_eq!(failure.kind, "notFound"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_growing_file_is_read_up_to_its_last_line_break() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, "{\"a\":1}\n{\"b\":").unwrap();
    let (growing, records) = scan(&source(&path, LINES), false).unwrap();
    assert_eq!((growing.len, records.len()), (8, 1));
    let (whole, _) = scan(&source(&path, LINES), true).unwrap();
    assert_eq!(whole.unparsable, [Place { at: 8, len: 5 }]);
    assert_eq!(whole.len, 13);
}

/// The places of records are refused if the file was rewritten meanwhile. With these places, the body of an entry would
/// come from another record than the record that its origin names.
#[test]
fn places_of_a_file_that_was_rewritten_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, lines(10)).unwrap();
    let source = source(&path, LINES);
    let (scan, _) = scan(&source, false).unwrap();
    fs::write(&path, lines(11)).unwrap();
    assert!(source.places(&scan).is_ok(), "it only grew");
    fs::write(&path, lines(11).replace("\"n\":2,", "\"m\":2,")).unwrap();
    match source.places(&scan) {
        Err(ScanFailure::Source(failure)) => assert_eq!(failure.kind, "changed"),
        _ => panic!("not refused"),
    }
}

#[test]
fn links_folders_and_pipes_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.jsonl");
    fs::write(&file, "{}\n").unwrap();
    let link = folder.path().join("link.jsonl");
    symlink(&file, &link).unwrap();
    let pipe = folder.path().join("pipe.jsonl");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert!(regular::open(&file).is_ok());
    for path in [&link, &pipe, &folder.path().to_owned()] {
        assert!(regular::open(path).is_err(), "{path:?}");
    }
}

#[test]
fn the_beginning_of_a_damaged_compressed_file_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl.zst");
    let text = lines(20_000);
    let compressed = zstd::encode_all(Cursor::new(&text), 3).unwrap();
    fs::write(&path, &compressed[..compressed.len() / 2]).unwrap();
    let (scan, records) = scan(&source(&path, Medium::Compressed), false).unwrap();
    assert!(scan.damage.is_some());
    assert!(!records.is_empty() && text.starts_with(&records.join("\n")));
}

#[test]
fn a_break_of_the_progress_cancels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, lines(10_000)).unwrap();
    let mut reader = Collector::default();
    let cancelled = source(&path, LINES).scan(&mut reader, None, false, Limits::NONE, &|bytes| {
        assert!(bytes > 0);
        ControlFlow::Break(())
    });
    assert!(matches!(cancelled, Err(ScanFailure::Import(_))));
}

/// Makes lines from rows.
struct Rows;

impl Extraction for Rows {
    fn parts(&self, _path: &Path) -> Result<Parts, SourceFailure> {
        Ok(Parts::default())
    }
    fn write(
        &self,
        _path: &Path,
        part: &str,
        _most: u64,
        out: &mut dyn Write,
    ) -> Result<(), ScanFailure> {
        for line in lines(part.parse().unwrap()).lines() {
            writeln!(out, "{line}").expect("the scan goes on");
        }
        Ok(())
    }
}

#[test]
fn an_extraction_is_a_source_like_any_other() {
    static ROWS: Rows = Rows;
    let folder = tempfile::tempdir().unwrap();
    let mut rows = source(&folder.path().join("x.db"), Medium::Extracted(&ROWS));
    rows.part = Some("5000".to_owned());
    check_places(&rows, &lines(5000));
    assert!(rows.name().ends_with("x.db#5000"));
}

#[test]
fn the_origin_gets_exactly_the_bytes_that_were_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let origins = Origins::of(&folder.path().join("sessions")).unwrap();
    let keep = |text: &str, is_final: bool| {
        fs::write(&path, text).unwrap();
        let source = source(&path, LINES);
        let mut origin = origins.writer(&source).unwrap();
        let mut reader = Collector::default();
        let go_on = |_| ControlFlow::Continue(());
        let scan = source.scan(
            &mut reader,
            Some(&mut origin),
            is_final,
            Limits::NONE,
            &go_on,
        );
        let (scan, name) = (scan.unwrap(), origin.finish().unwrap());
        let mut kept = Vec::new();
        let mut reader = origins.reader(&name).unwrap();
        reader.read_to_end(&mut kept).unwrap();
        let hash: [u8; 32] = Sha256::digest(&kept[..scan.len as usize]).into();
        assert_eq!(scan.prefix_hash, hash);
        (String::from_utf8(kept).unwrap(), name)
    };
    let (kept, first) = keep("{\"a\":1}\n{\"b\"", false);
    assert_eq!(kept, "{\"a\":1}\n");
    let grown = format!("{{\"a\":1}}\n{}", lines(9000));
    assert_eq!(keep(&grown, false), (grown.clone(), first.clone()));
    let torn = format!("{grown}{{\"c");
    assert_eq!(keep(&torn, true), (torn.clone(), first.clone()));
    let again = keep(&torn, false);
    assert_eq!(
        again,
        (torn.clone(), first.clone()),
        "nothing is taken away"
    );
    let other = format!("{{\"z\":1}}\n{grown}");
    let (kept, second) = keep(&other, false);
    assert_eq!(kept, other);
    assert_ne!(second, first);
    assert_eq!(keep(&other, false), (other, second));
}
