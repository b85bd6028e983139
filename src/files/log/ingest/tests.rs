use super::*;
use crate::log::lines::Lines;
use std::collections::HashSet;
use std::io::Write;

const HEADER: &str = r#"{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}"#;

fn entry(number: usize, parent: &str) -> Vec<u8> {
    format!(r#"{{"type":"custom","id":"e{number}","parentId":{parent},"timestamp":"t","data":{{"type":"x"}}}}"#)
        .into_bytes()
}

/// Reads these bytes; returns the steps, the number of entries and the names of diagnostics.
fn read(content: &[u8]) -> (u64, usize, HashSet<&'static str>) {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    let (mut tree, mut ingest) = (Tree::new(), Ingest::default());
    let mut lines = Lines::new(&file, 0);
    while let Some(line) = lines.next().unwrap() {
        ingest.line(&mut tree, &Bodies::nothing(), &line).unwrap();
    }
    ingest.report_links(&tree);
    let kinds = ingest.diagnostics.iter().map(|found| found.damage.name());
    (ingest.steps, tree.entry_count(), kinds.collect())
}

/// A file with `count` lines, or pieces on one line, that cause a diagnostic of this kind.
fn damaged(kind: Damage, count: usize) -> Vec<u8> {
    let mut text = format!("{HEADER}\n").into_bytes();
    for number in 0..count {
        let (plain, next) = (entry(number, "null"), format!("\"e{}\"", number + 1));
        let line: Vec<u8> = match kind {
            Damage::TornTail => [&plain[..30], &plain].concat(),
            Damage::InvalidJson => [&b"{\"type\":\"x\",\"a\":["[..], &plain, b","].concat(),
            Damage::NotAnObject => b"42\n".to_vec(),
            Damage::InvalidUtf8 => [&plain[..plain.len() - 2], b",\"y\":\"\xff\"}}\n"].concat(),
            Damage::NulBytes => [&b"\0"[..], &plain].concat(),
            Damage::GluedLines => plain,
            Damage::DuplicateId => [entry(0, "null"), b"\n".to_vec()].concat(),
            Damage::OrphanParent => [entry(number, "\"gone\""), b"\n".to_vec()].concat(),
            Damage::ForwardParent => [entry(number, &next), b"\n".to_vec()].concat(),
            Damage::SelfParent => {
                [entry(number, &format!("\"e{number}\"")), b"\n".to_vec()].concat()
            }
            Damage::Cycle => [
                entry(number, &format!("\"e{}\"", number ^ 1)),
                b"\n".to_vec(),
            ]
            .concat(),
            Damage::SecondHeader => format!("{HEADER}\n").into_bytes(),
            Damage::MissingTrailingNewline => [&b"\n"[..], &plain].concat(),
            Damage::OversizedLine | Damage::DurabilityUnknown => Vec::new(),
        };
        text.extend_from_slice(&line);
    }
    match kind {
        Damage::TornTail => text.extend_from_slice(b"{\"torn"),
        Damage::MissingTrailingNewline => {}
        _ => text.push(b'\n'),
    }
    text
}

/// A damaged line of 0.2 MB once took 7.8 s to read, and a line of 0.9 MB more than 100 s: every piece was searched
/// from its start to the end of the line. Twice the input must take twice the steps, for every kind of damage.
#[test]
fn twice_the_damage_takes_twice_the_steps_for_every_kind() {
    let kinds = (0..15).filter_map(Damage::from_number);
    // The first of these kinds depends only on the length of a line, and no file causes the second kind.
    let kinds =
        kinds.filter(|kind| !matches!(kind, Damage::OversizedLine | Damage::DurabilityUnknown));
    for kind in kinds {
        let (once, twice) = (damaged(kind, 500), damaged(kind, 1000));
        let ((steps, entries, found), (more_steps, more_entries, _)) = (read(&once), read(&twice));
        assert!(found.contains(kind.name()), "{kind:?}: {found:?}");
        let growth = more_steps as f64 / steps as f64;
        assert!(growth < 2.1, "{kind:?}: {growth}");
        assert!(
            more_steps < 12 * twice.len() as u64,
            "{kind:?}: {more_steps}"
        );
        if !matches!(
            kind,
            Damage::NotAnObject | Damage::DuplicateId | Damage::SecondHeader
        ) {
            assert_eq!((entries, more_entries), (500, 1000), "{kind:?}");
        }
    }
}

/// A check that never fails would prove nothing.
#[test]
fn an_entry_on_which_the_tree_cannot_rely_is_refused() {
    let text = [
        HEADER.as_bytes(),
        &entry(0, "null"),
        &entry(1, "\"e0\""),
        b"",
    ]
    .join(&b'\n');
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&text).unwrap();
    let (mut tree, mut ingest) = (Tree::new(), Ingest::default());
    let mut lines = Lines::new(&file, 0);
    while let Some(line) = lines.next().unwrap() {
        ingest.line(&mut tree, &Bodies::nothing(), &line).unwrap();
    }
    let node = tree.node(1).unwrap();
    let place = tree.place(node);
    let is_refused = |before, refused, place| {
        let check = || check_added(&tree, before, Insertion { node, refused }, place);
        // A debug build panics.
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        checked.map_or(true, |checked| checked.is_err())
    };
    assert!(!is_refused(1, Flags::NONE, place));
    assert!(is_refused(0, Flags::NONE, place));
    assert!(is_refused(1, Flags::CYCLE, place));
    let elsewhere = FilePlace { offset: 0, ..place };
    assert!(is_refused(1, Flags::NONE, elsewhere));
}
