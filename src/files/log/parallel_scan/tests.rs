//! Tests that the result does not depend on how a file is divided.

use super::*;
use crate::log::body::Bodies;
use crate::log::ingest::Ingest;
use crate::log::lines::Lines;
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Write;
use treelined_core::tree::Tree;

/// A line's offset and bytes.
type Seen = (u64, Vec<u8>);

fn file_of(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

/// The terminated lines from `start` on, by the ordinary reader.
fn serial(file: &File, start: u64) -> Vec<Seen> {
    let mut lines = Lines::new(file, start);
    let mut seen = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        if line.terminated {
            seen.push((line.offset, line.bytes.unwrap().to_vec()));
        }
    }
    seen
}

/// The lines that a scan passes on. Their entries are compared with the entries that the line-by-line reader finds.
fn scanned(file: &File, start: u64, end: u64, division: Division) -> Vec<Seen> {
    let hasher = IdHasher::default();
    let mut seen = Vec::new();
    scan_ranges(file, start, end, division, &hasher, |range| {
        for scanned in range.lines() {
            let line = scanned.line();
            let bytes = line.bytes.unwrap();
            assert!(line.terminated);
            assert_eq!(line.len, bytes.len() as u64);
            assert_eq!(scanned.end(), line.offset + line.len + 1);
            if line.offset > 0 {
                assert_eq!(
                    scanned.entry,
                    ordinary(bytes, &hasher).as_ref().map(OwnedEntry::borrowed)
                );
            }
            seen.push((line.offset, bytes.to_vec()));
        }
        Ok(())
    })
    .unwrap();
    seen
}

/// The owned data of an [`OrdinaryEntry`].
struct OwnedEntry {
    id: String,
    parent: Option<String>,
    hash: IdHash,
    facts: PlainFacts,
    span: std::ops::Range<usize>,
}

impl OwnedEntry {
    fn borrowed(&self) -> OrdinaryEntry<'_> {
        OrdinaryEntry {
            id: &self.id,
            hash: self.hash,
            parent: self.parent.as_deref(),
            facts: &self.facts,
            start: self.span.start as u32,
            len: self.span.len() as u32,
        }
    }
}

/// The ordinary entry on a line, as the line-by-line reader finds it.
fn ordinary(line: &[u8], hasher: &IdHasher) -> Option<OwnedEntry> {
    let Ok(Line::Entry(envelope)) = scan::scan_line(str::from_utf8(line).ok()?.as_bytes()) else {
        return None;
    };
    let id = envelope.id.as_deref()?;
    Some(OwnedEntry {
        id: id.to_owned(),
        parent: match &envelope.parent {
            Parent::Absent => return None,
            Parent::Null => None,
            Parent::Id(id) => Some(id.to_string()),
        },
        hash: hasher.hash(id),
        facts: PlainFacts::of(&envelope)?,
        span: trimmed(line),
    })
}

/// A session with lines of all kinds, damaged ones and copies of entries among them.
fn awkward_session() -> Vec<u8> {
    let mut content =
        b"{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"\",\"cwd\":\"/\"}\n"
            .to_vec();
    let ids = ["a", "b", "c", "d\\u00fc", "a", "e", "a"];
    for number in 0..400_usize {
        let id = match number % 11 {
            // An id that an earlier line has, on lines with the same bytes and on lines with other bytes.
            3 => "same-0".to_owned(),
            7 => format!("same-{}", number / 40),
            _ => format!("{}-{number}", ids[number % ids.len()]),
        };
        let parent = match number % 13 {
            0 => "null".to_owned(),
            1 => format!("\"{id}\""),
            2 => format!("\"a-{}\"", number + 10),
            3 => "7".to_owned(),
            _ => format!("\"{}-{}\"", ids[(number - 1) % ids.len()], number - 1),
        };
        let (kind, rest) = match number % 17 {
            0 => (
                "label",
                format!(r#","targetId":"a-{}","label":"l""#, number / 2),
            ),
            1 => ("branch_summary", format!(r#","fromId":"a-{}""#, number / 3)),
            2 => (
                "custom",
                r#","customType":"treelined.leaf","data":{"from":null}"#.to_owned(),
            ),
            3 => ("custom_message", r#","display":false"#.to_owned()),
            4 => (
                "message",
                r#","message":{"role":"toolResult","isError":true}"#.to_owned(),
            ),
            5 => ("unheard of", r#","x":[1.5e3,"\ud800"]"#.to_owned()),
            6 => ("session", String::new()),
            _ => (
                "message",
                format!(
                    r#","message":{{"role":"user","content":"{}"}}"#,
                    "x".repeat(number)
                ),
            ),
        };
        let time = match number % 5 {
            0 => "yesterday",
            _ => "2025-01-01T00:00:00.000Z",
        };
        let line = format!(
            r#" {{"type":"{kind}","id":"{id}","parentId":{parent},"timestamp":"{time}"{rest}}} "#
        );
        let line = if number % 29 == 0 {
            &line[..line.len() / 2]
        } else {
            &line
        };
        content.extend_from_slice(line.as_bytes());
        content.push(b'\n');
    }
    content
}

#[test]
fn several_threads_make_the_same_tree_as_one() {
    let content = awkward_session();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    std::fs::write(&path, &content).unwrap();
    let file = File::open(&path).unwrap();
    let bodies = || {
        let file = std::sync::Arc::new(File::open(&path).unwrap());
        Bodies::file(
            Ok(file),
            Default::default(),
            Default::default(),
            None,
            3,
            Default::default(),
        )
    };
    let mut seen = Vec::new();
    for range in [None, Some(1), Some(700), Some(1 << 20)] {
        let (mut tree, mut ingest) = (Tree::new(), Ingest::default());
        let bodies = bodies();
        match range {
            Some(range) => {
                let division = Division {
                    helpers: 2,
                    range,
                    overhang: 1 << 20,
                };
                let hasher = tree.id_hasher().clone();
                scan_ranges(&file, 0, content.len() as u64, division, &hasher, |range| {
                    tree.reserve(range.expected);
                    tree.prefetch(range.hashes());
                    for line in range.lines() {
                        ingest.scanned_line(&mut tree, &bodies, &line)?;
                    }
                    Ok(())
                })
                .unwrap();
            }
            None => {
                let mut lines = Lines::new(&file, 0);
                while let Some(line) = lines.next().unwrap() {
                    assert!(ingest.line(&mut tree, &bodies, &line).unwrap());
                }
            }
        }
        ingest.report_links(&tree);
        let rows: Vec<String> = (0..tree.node_count())
            .filter_map(|number| tree.node(number))
            .map(|node| {
                let (id, parent) = (tree.id(node), tree.parent(node));
                let (kind, role) = (tree.kind(node), tree.role(node));
                let (flags, at, place) = (tree.flags(node), tree.timestamp(node), tree.place(node));
                let children = tree.children(Some(node));
                let label = tree.label(node).map(|label| &label.text);
                format!("{id} {parent:?} {kind:?} {role:?} {flags:?} {at:?} {place:?} {children:?} {label:?}")
            })
            .collect();
        assert!(rows.len() > 250, "{}", rows.len());
        assert!(ingest.diagnostics.len() > 50);
        seen.push((
            rows,
            ingest.diagnostics,
            ingest.lines,
            tree.file_leaf(),
            tree.revision(),
        ));
    }
    for other in &seen[1..] {
        assert_eq!(*other, seen[0]);
    }
}

fn a_line() -> impl Strategy<Value = Vec<u8>> {
    let entry = (any::<u16>(), 0..3usize, ".{0,40}").prop_map(|(id, kind, text)| {
        let text = serde_json::to_string(&text).unwrap();
        let rest = [
            format!(r#""type":"message","message":{{"role":"user","content":{text}}}"#),
            format!(r#""type":"label","targetId":"{id:x}","label":{text}"#),
            format!(r#""type":"custom","customType":{text},"\u0069d":"x""#),
        ];
        format!(
            r#"{{"id":"{id:x}","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z",{}}}"#,
            rest[kind]
        )
        .into_bytes()
    });
    prop_oneof![
        4 => entry,
        1 => Just(Vec::new()),
        1 => vec(any::<u8>().prop_filter("no line break", |byte| *byte != b'\n'), 0..60),
        1 => Just(br#"{"type":"message","id":"torn","#.to_vec()),
    ]
}

proptest! {
    #[test]
    fn any_division_finds_the_same_lines(
        lines in vec(a_line(), 0..40),
        tail in a_line(),
        range in 1..400u64,
        helpers in 0..3usize,
        skip in 0..4usize,
    ) {
        let mut content = Vec::new();
        let mut start = 0;
        for (number, line) in lines.iter().enumerate() {
            if number == skip {
                start = content.len() as u64;
            }
            content.extend_from_slice(line);
            content.push(b'\n');
        }
        content.extend_from_slice(&tail);
        let file = file_of(&content);
        let division = Division { helpers, range, overhang: 1 << 20 };
        prop_assert_eq!(
            scanned(&file, start, content.len() as u64, division),
            serial(&file, start)
        );
    }

    /// A line too long for a range, or a file shorter than expected, ends the scan after the lines before it.
    #[test]
    fn a_line_out_of_reach_ends_the_scan(
        lines in vec(a_line(), 1..20),
        range in 1..200u64,
        overhang in 0..60u64,
        missing in 0..300u64,
    ) {
        let mut content = lines.join(&b'\n');
        content.push(b'\n');
        let file = file_of(&content);
        let division = Division { helpers: 1, range, overhang };
        let scanned = scanned(&file, 0, content.len() as u64 + missing, division);
        let serial = serial(&file, 0);
        prop_assert_eq!(&scanned[..], &serial[..scanned.len()]);
        if missing == 0 && lines.iter().all(|line| (line.len() as u64) < overhang) {
            prop_assert_eq!(scanned.len(), serial.len());
        }
    }
}

#[test]
fn an_error_of_the_caller_ends_the_scan() {
    let file = file_of(b"{}\n".repeat(1000).as_slice());
    let division = Division {
        helpers: 2,
        range: 16,
        overhang: 16,
    };
    let mut count = 0;
    let ended = scan_ranges(&file, 0, 3000, division, &IdHasher::default(), |range| {
        for _line in range.lines() {
            count += 1;
            if count == 500 {
                return Err(treelined_core::error::Error::cancelled());
            }
        }
        Ok(())
    });
    assert!(ended.is_err());
    assert_eq!(count, 500);
}
