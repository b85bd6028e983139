//! Generates sessions of a realistic shape. The bytes are the same on every machine, since each session has a seed and
//! the generator uses integers only.
//!
//! The [`library`](crate::library) stores them. The entries are prompts, answers with tool calls, results, and some
//! images. Their average size is about 2 KB, the median is near 800 bytes, and the largest have 120 KB. About every
//! fifty entries the conversation goes back and continues on another branch. In one third of these cases there is a
//! summary of the old branch. There are labels, compactions, changes of model, and entries of plugins.

mod claude_code;
mod random;
mod talk;
mod text;

pub use claude_code::{claude_code, claude_code_id};
pub use text::{Text, push_word};

use std::io::{self, Write};
use talk::Talk;

/// Change this number whenever the same arguments generate other bytes. Stored sessions with another number are
/// generated again.
pub const EDITION: u32 = 2;

/// Unix milliseconds of the first entry: 2026-01-01.
const START_MS: u64 = 1_767_225_600_000;

/// Facts about a generated session, with which answers are checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Entries without the header.
    pub entries: u64,
    pub messages: u64,
    pub bytes: u64,
    /// The id of the last entry.
    pub leaf: String,
}

/// The id of the entry with this number. Different numbers have different ids.
pub fn entry_id(number: u32) -> String {
    // Every step of this mixing can be reversed.
    let mut id = number.wrapping_add(0x9e37_79b9);
    id = (id ^ (id >> 16)).wrapping_mul(0x85eb_ca6b);
    id = (id ^ (id >> 13)).wrapping_mul(0xc2b2_ae35);
    format!("{:08x}", id ^ (id >> 16))
}

/// `n` small entries in a chain.
pub fn chain(out: &mut impl Write, session: &str, n: u32) -> io::Result<Facts> {
    small(out, session, n, |number| number.checked_sub(1))
}

/// `n` small entries: a root with `n` − 1 children.
pub fn wide(out: &mut impl Write, session: &str, n: u32) -> io::Result<Facts> {
    small(out, session, n, |number| (number > 0).then_some(0))
}

fn small(
    out: &mut impl Write,
    session: &str,
    n: u32,
    parent: impl Fn(u32) -> Option<u32>,
) -> io::Result<Facts> {
    let mut facts = Facts::default();
    let mut line = header(session);
    for number in 0..n {
        facts.end_line(out, &mut line)?;
        let role = match number % 2 {
            0 => "\"user\"",
            _ => "\"assistant\",\"provider\":\"anthropic\",\"model\":\"claude-sonnet-4-5\"",
        };
        begin(
            &mut line,
            "message",
            number,
            parent(number),
            stamp_ms(number),
        );
        line.push_str(&format!(
            ",\"message\":{{\"role\":{role},\"content\":[{{\"type\":\"text\",\"text\":\"entry {number}\"}}]}}}}"
        ));
        facts.entries += 1;
        facts.messages += 1;
        facts.leaf = entry_id(number);
    }
    facts.end_line(out, &mut line)?;
    Ok(facts)
}

/// A conversation of `n` entries. It ends with an answer, so that it can be forked at any of its last
/// entries.
pub fn conversation(
    out: &mut impl Write,
    session: &str,
    n: u32,
    text: &Text,
    seed: u64,
) -> io::Result<Facts> {
    let mut facts = Facts::default();
    let mut line = header(session);
    let mut talk = Talk::new(n, text, seed);
    for number in 0..n {
        facts.end_line(out, &mut line)?;
        talk.entry(&mut line, number);
        facts.leaf = entry_id(number);
    }
    facts.end_line(out, &mut line)?;
    facts.entries = n.into();
    facts.messages = talk.messages;
    Ok(facts)
}

impl Facts {
    fn end_line(&mut self, out: &mut impl Write, line: &mut String) -> io::Result<()> {
        line.push('\n');
        self.bytes += line.len() as u64;
        out.write_all(line.as_bytes())?;
        line.clear();
        Ok(())
    }
}

fn header(session: &str) -> String {
    format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{session}\",\"timestamp\":\"{}\",\"cwd\":\"/bench\"}}",
        timestamp(START_MS)
    )
}

/// The time of an entry. Entries are seven seconds apart on average.
fn stamp_ms(number: u32) -> u64 {
    START_MS + u64::from(number) * 7000 + u64::from(number) * 7919 % 6000
}

/// The members that all types of entries have.
fn begin(line: &mut String, kind: &str, number: u32, parent: Option<u32>, at_ms: u64) {
    let parent = parent.map_or("null".to_owned(), |parent| {
        format!("\"{}\"", entry_id(parent))
    });
    line.push_str(&format!(
        "{{\"type\":\"{kind}\",\"id\":\"{}\",\"parentId\":{parent},\"timestamp\":\"{}\"",
        entry_id(number),
        timestamp(at_ms)
    ));
}

fn timestamp(ms: u64) -> String {
    treelined_core::timestamp::format(i64::try_from(ms).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn generated(n: u32) -> (Facts, String) {
        let mut out = Vec::new();
        let facts = conversation(&mut out, "s", n, &Text::default(), 1).unwrap();
        (facts, String::from_utf8(out).unwrap())
    }

    #[test]
    fn the_same_bytes_every_time() {
        assert_eq!(generated(500), generated(500));
    }

    #[test]
    fn lines_are_entries_below_earlier_ones() {
        let (facts, text) = generated(5_000);
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 5_001);
        assert_eq!(facts.bytes, text.len() as u64);
        let mut seen = HashSet::new();
        let mut messages = 0;
        for line in &lines[1..] {
            for reference in ["parentId", "targetId", "firstKeptEntryId", "fromId"] {
                if let Some(id) = line[reference].as_str() {
                    assert!(seen.contains(id), "{line}");
                }
            }
            assert!(
                seen.insert(line["id"].as_str().unwrap().to_owned()),
                "{line}"
            );
            messages += u64::from(line["type"] == "message");
        }
        assert_eq!(facts.messages, messages);
    }

    #[test]
    fn the_shape_that_was_asked_for() {
        let (facts, text) = generated(20_000);
        let mut sizes: Vec<usize> = text.lines().map(str::len).collect();
        sizes.sort_unstable();
        let mean = facts.bytes / facts.entries;
        assert!((1_800..2_200).contains(&mean), "mean {mean}");
        let median = sizes[sizes.len() / 2];
        assert!((700..900).contains(&median), "median {median}");
        let longest = sizes[sizes.len() - 1];
        assert!((80_000..125_000).contains(&longest), "longest {longest}");
        for (kind, at_least) in [
            ("compaction", 20),
            ("branch_summary", 80),
            ("label", 5),
            ("custom", 20),
        ] {
            let count = text.matches(&format!("{{\"type\":\"{kind}\"")).count();
            assert!(count >= at_least, "{count} of {kind}");
        }
    }
}
