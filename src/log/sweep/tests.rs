//! However a file is divided, what is found in it is what one reader of it finds.

use super::*;
use crate::log::lines::Lines;
use proptest::collection::vec;
use proptest::prelude::*;
use std::io::Write;

/// A line's place, its bytes, and its envelope by the ordinary way.
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

/// The lines that a sweep hands out; each envelope is compared with the ordinary way's.
fn swept(file: &File, start: u64, end: u64, plan: Plan) -> Vec<Seen> {
    let mut seen = Vec::new();
    sweep(file, start, end, plan, |line, envelope| {
        let bytes = line.bytes.unwrap();
        assert!(line.terminated);
        assert_eq!(line.len, bytes.len() as u64);
        if let Some(envelope) = envelope {
            assert!(str::from_utf8(bytes).is_ok());
            assert_eq!(Ok(Line::Entry(envelope)), scan::scan_line(bytes));
        }
        seen.push((line.offset, bytes.to_vec()));
        Ok(())
    })
    .unwrap();
    seen
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
    fn any_division_finds_the_same(
        lines in vec(a_line(), 0..40),
        tail in a_line(),
        range in 1..400usize,
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
        let plan = Plan { helpers, range, overhang: 1 << 20 };
        prop_assert_eq!(
            swept(&file, start, content.len() as u64, plan),
            serial(&file, start)
        );
    }

    /// Where a line is too long, or the file shorter than it was: the lines before, none after.
    #[test]
    fn what_is_not_for_it_ends_it(
        lines in vec(a_line(), 1..20),
        range in 1..200usize,
        overhang in 0..60usize,
        missing in 0..300u64,
    ) {
        let mut content = lines.join(&b'\n');
        content.push(b'\n');
        let file = file_of(&content);
        let plan = Plan { helpers: 1, range, overhang };
        let swept = swept(&file, 0, content.len() as u64 + missing, plan);
        let serial = serial(&file, 0);
        prop_assert_eq!(&swept[..], &serial[..swept.len()]);
        if missing == 0 && lines.iter().all(|line| line.len() < overhang) {
            prop_assert_eq!(swept.len(), serial.len());
        }
    }
}

#[test]
fn an_error_ends_it() {
    let file = file_of(b"{}\n".repeat(1000).as_slice());
    let plan = Plan {
        helpers: 2,
        range: 16,
        overhang: 16,
    };
    let mut count = 0;
    let ended = sweep(&file, 0, 3000, plan, |_, _| {
        count += 1;
        match count {
            500 => Err(crate::error::Error::cancelled()),
            _ => Ok(()),
        }
    });
    assert!(ended.is_err());
    assert_eq!(count, 500);
}
