//! The tables of control characters in other languages equal the table of `treelined_redact::unseen` (protocol.md
//! §1.5).

use crate::readme::root;
use std::fs;
use treelined_redact::unseen::{is_control, is_unseen};

/// The ranges of all control characters, as first and last code point.
fn controls() -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for char in ('\0'..=char::MAX).filter(|char| is_control(*char)) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == u32::from(char) => *last += 1,
            _ => ranges.push((u32::from(char), u32::from(char))),
        }
    }
    ranges
}

/// The ranges as the content of a character class. `escaped` writes a code point.
fn class(escaped: impl Fn(u32) -> String) -> String {
    let ranges = controls()
        .into_iter()
        .map(|(first, last)| match first == last {
            true => escaped(first),
            false => format!("{}-{}", escaped(first), escaped(last)),
        });
    ranges.collect()
}

fn typescript(code: u32) -> String {
    match code > 0xffff {
        true => format!("\\u{{{code:x}}}"),
        false => format!("\\u{code:04x}"),
    }
}

fn lisp(code: u32) -> String {
    match code > 0xffff {
        true => format!("\\U{code:08X}"),
        false => format!("\\u{code:04X}"),
    }
}

fn lua() -> String {
    let ranges = controls();
    // ASCII controls become pictures, so they are not in the table.
    let ranges = ranges.iter().filter(|(_, last)| *last > 0x7f);
    let ranges =
        ranges.map(|(first, last)| format!("  {{ 0x{:x}, 0x{last:x} }},\n", first.max(&0x80)));
    ranges.collect()
}

/// Five programs once had five different tables, and some let characters through that others removed. With
/// `TREELINED_UPDATE=1` the test writes the tables instead.
#[test]
fn every_client_has_the_table_of_control_characters() {
    let tables = [
        (
            "clients/web/src/text/visible.ts",
            "const CONTROLS =\n  /[",
            "]/gu;",
            class(typescript),
        ),
        (
            "clients/vscode/src/core/text.ts",
            "const CONTROLS =\n  /[",
            "]/gu;",
            class(typescript),
        ),
        (
            "clients/nvim/lua/treelined/utf8.lua",
            "local CONTROLS = {\n",
            "}\n\n",
            lua(),
        ),
        (
            "clients/emacs/treelined-row.el",
            "(defconst treelined-row--controls\n  \"[",
            "]\"",
            class(lisp),
        ),
    ];
    for (path, before, after, table) in tables {
        let text = fs::read_to_string(root(path)).unwrap();
        let start = text.find(before).expect(path) + before.len();
        let end = start + text[start..].find(after).unwrap();
        if std::env::var_os("TREELINED_UPDATE").is_some() {
            fs::write(root(path), [&text[..start], &table, &text[end..]].concat()).unwrap();
            continue;
        }
        let stale = "stale: TREELINED_UPDATE=1 cargo test --test it every_client_has_the_table";
        assert_eq!(text[start..end], table, "{path}: {stale}");
    }
}

#[test]
fn characters_that_people_write_are_seen() {
    let written = "Grüße, 漢字, עברית, العربية, हिन्दी, 한국어, ไทย, ½ – “…” → ✓ 🌳";
    let unseen: String = written.chars().filter(|char| is_unseen(*char)).collect();
    assert_eq!(unseen, "");
    assert!(
        !"👩‍💻 ❤️".contains(is_control),
        "emoji stay whole in a terminal"
    );
}
