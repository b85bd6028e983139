//! Generates sessions of a realistic shape, the same bytes on every machine: integers only, with a seed each.
//!
//! The [`library`](crate::library) stores them. Entries have about 2 KB on average and a median near 800
//! bytes, with a tail to 120 KB: prompts, answers with tool calls, results, some images. About every fifty
//! entries the conversation goes back and continues on another branch, a third of the times with a summary of
//! the old branch. There are labels, compactions, changes of model, and entries of plugins.

use std::io::{self, Write};

/// Changes whenever the same arguments generate other bytes. Stored sessions of another version are generated
/// again.
pub const EDITION: u32 = 2;

/// Unix milliseconds of the first entry: 2026-01-01.
const START_MS: u64 = 1_767_225_600_000;
/// JSON-escaped bytes from which all text is cut.
const TEXT_BYTES: usize = 1 << 19;

/// Facts about a generated session, to check answers.
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

/// `n` small entries, all but the first below the first.
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

/// Seven seconds apart on average.
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
    treelined::internals::timestamp::format(i64::try_from(ms).unwrap_or(i64::MAX))
}

/// A conversation under construction.
struct Talk<'a> {
    n: u32,
    text: &'a Text,
    random: Random,
    messages: u64,
    /// The path from the root to the tip, with what may follow each entry.
    path: Vec<(u32, Next)>,
    next: Next,
    since_compaction: u32,
    /// Tool calls of the last answer without a result.
    open_calls: Vec<(String, &'static str)>,
    /// Set if the next entry is a summary of the branch that ended at this entry.
    left: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    User,
    Result,
    Assistant,
}

const TOOLS: [&str; 5] = ["read", "bash", "edit", "grep", "write"];
const MODELS: [&str; 3] = ["claude-sonnet-4-5", "claude-opus-4-5", "gpt-5.2"];

/// Sizes of texts in bytes, by per mille of all texts, interpolated linearly.
const PROMPT: [(u32, u32); 6] = [
    (0, 12),
    (300, 60),
    (700, 260),
    (900, 900),
    (990, 6_000),
    (1000, 30_000),
];
const ANSWER: [(u32, u32); 6] = [
    (0, 20),
    (300, 90),
    (700, 320),
    (900, 900),
    (990, 5_000),
    (1000, 30_000),
];
const OUTPUT: [(u32, u32); 8] = [
    (0, 20),
    (200, 180),
    (500, 640),
    (750, 2_100),
    (900, 5_000),
    (970, 12_000),
    (998, 50_000),
    (1000, 116_000),
];

impl<'a> Talk<'a> {
    fn new(n: u32, text: &'a Text, seed: u64) -> Self {
        Self {
            n,
            text,
            random: Random(seed),
            messages: 0,
            path: Vec::new(),
            next: Next::User,
            since_compaction: 0,
            open_calls: Vec::new(),
            left: None,
        }
    }

    fn entry(&mut self, line: &mut String, number: u32) {
        // The last two entries are a prompt and its answer.
        let ending = number + 2 >= self.n;
        if number + 2 == self.n {
            self.next = Next::User;
            self.open_calls.clear();
        }
        if !ending && self.left.is_none() && self.path.len() > 8 && self.random.one_in(50) {
            self.go_back();
        }
        let parent = self.path.last().map(|(tip, _)| *tip);
        let at_ms = stamp_ms(number);
        self.since_compaction += 1;
        let kind = if ending { "message" } else { self.kind(number) };
        begin(line, kind, number, parent, at_ms);
        match kind {
            "message" => self.message(line, at_ms, number + 1 == self.n),
            "model_change" => {
                let model = self.random.pick(&MODELS);
                line.push_str(&format!(
                    ",\"provider\":\"anthropic\",\"modelId\":\"{model}\""
                ));
            }
            "thinking_level_change" => {
                let level = self.random.pick(&["off", "low", "medium", "high"]);
                line.push_str(&format!(",\"thinkingLevel\":\"{level}\""));
            }
            "label" => {
                let target = self.some_on_path(20);
                line.push_str(&format!(
                    ",\"targetId\":\"{}\",\"label\":\"checkpoint {number}\"",
                    entry_id(target)
                ));
            }
            "compaction" => {
                self.since_compaction = 0;
                let kept = self.some_on_path(40);
                let tokens = 90_000 + self.random.below(60_000);
                line.push_str(&format!(",\"summary\":\"{}", "## Goal\\n"));
                self.text.push(line, &mut self.random, 3_000);
                line.push_str(&format!(
                    "\",\"firstKeptEntryId\":\"{}\",\"tokensBefore\":{tokens},\"details\":{{\"readFiles\":[\"src/main.rs\"],\"modifiedFiles\":[]}}",
                    entry_id(kept)
                ));
            }
            "branch_summary" => {
                let from = self.left.take().unwrap_or_default();
                line.push_str(&format!(
                    ",\"fromId\":\"{}\",\"summary\":\"",
                    entry_id(from)
                ));
                self.text.push(line, &mut self.random, 1_600);
                line.push('"');
            }
            "custom_message" => {
                line.push_str(",\"customType\":\"notes\",\"content\":\"");
                self.text.push(line, &mut self.random, 300);
                line.push_str("\",\"display\":true");
            }
            "usage" => {
                line.push_str(",\"kind\":\"cache_warm\",\"provider\":\"anthropic\",\"model\":\"claude-sonnet-4-5\",\"usage\":");
                self.usage(line);
            }
            _ => line.push_str(&format!(
                ",\"customType\":\"todo\",\"data\":{{\"open\":{},\"done\":[1,2,3]}}",
                self.random.below(20)
            )),
        }
        line.push('}');
        self.path.push((number, self.next));
    }

    fn kind(&mut self, number: u32) -> &'static str {
        match number {
            0 => return "model_change",
            1 => return "thinking_level_change",
            _ => {}
        }
        if self.left.is_some() {
            return "branch_summary";
        }
        if self.next != Next::User || self.path.len() < 8 {
            return "message";
        }
        if self.since_compaction > 400 {
            return "compaction";
        }
        match self.random.below(400) {
            0 => "label",
            10..16 => "model_change",
            16..22 => "thinking_level_change",
            22..28 => "custom",
            28..34 => "custom_message",
            34..42 => "usage",
            _ => "message",
        }
    }

    /// Goes back to an entry with a complete answer, up to about 30 entries above.
    fn go_back(&mut self) {
        let old = self.path.last().map(|(tip, _)| *tip);
        for _ in 0..2 + self.random.below(28) {
            if self.path.len() > 4 {
                self.path.pop();
            }
        }
        while self.path.len() > 4
            && self
                .path
                .last()
                .is_some_and(|(_, next)| *next != Next::User)
        {
            self.path.pop();
        }
        self.next = Next::User;
        self.open_calls.clear();
        if self.random.one_in(3) {
            self.left = old;
        }
    }

    /// The id of one of the last `among` entries of the path.
    fn some_on_path(&mut self, among: usize) -> u32 {
        let back = self.random.below(among.min(self.path.len()).max(1) as u32) as usize;
        self.path
            .get(self.path.len() - 1 - back)
            .map_or(0, |(number, _)| *number)
    }

    fn message(&mut self, line: &mut String, at_ms: u64, last: bool) {
        self.messages += 1;
        line.push_str(",\"message\":{\"role\":");
        match self.next {
            Next::User => {
                line.push_str("\"user\",\"content\":[{\"type\":\"text\",\"text\":\"");
                self.push_text(line, &PROMPT);
                line.push_str("\"}");
                if self.random.one_in(300) {
                    self.image(line);
                }
                line.push(']');
                self.next = Next::Assistant;
            }
            Next::Assistant => self.answer(line, at_ms, last),
            Next::Result => {
                let (id, tool) = self.open_calls.pop().unwrap_or_default();
                let is_error = self.random.one_in(25);
                line.push_str(&format!(
                    "\"toolResult\",\"toolCallId\":\"{id}\",\"toolName\":\"{tool}\",\"content\":[{{\"type\":\"text\",\"text\":\""
                ));
                self.push_text(line, &OUTPUT);
                line.push_str("\"}");
                if self.random.one_in(600) {
                    self.image(line);
                }
                line.push_str(&format!("],\"isError\":{is_error}"));
                if self.open_calls.is_empty() {
                    self.next = Next::Assistant;
                }
            }
        }
        line.push_str(&format!(",\"timestamp\":{at_ms}}}"));
    }

    fn answer(&mut self, line: &mut String, at_ms: u64, last: bool) {
        let calls = if last || self.random.below(10) < 3 {
            0
        } else {
            1 + self.random.below(2)
        };
        line.push_str("\"assistant\",\"content\":[");
        if self.random.one_in(4) {
            line.push_str("{\"type\":\"thinking\",\"thinking\":\"");
            self.push_text(line, &ANSWER);
            line.push_str("\",\"thinkingSignature\":\"");
            self.text.push_base64(line, &mut self.random, 120);
            line.push_str("\"},");
        }
        if calls == 0 || self.random.one_in(2) {
            line.push_str("{\"type\":\"text\",\"text\":\"");
            self.push_text(line, &ANSWER);
            line.push_str("\"},");
        }
        for call in 0..calls {
            let (id, tool) = (format!("toolu_{at_ms:x}{call}"), *self.random.pick(&TOOLS));
            line.push_str(&format!(
                "{{\"type\":\"toolCall\",\"id\":\"{id}\",\"name\":\"{tool}\",\"arguments\":{{\"path\":\"src/module_{}.rs\"",
                self.random.below(90)
            ));
            if matches!(tool, "edit" | "write" | "bash") {
                line.push_str(",\"text\":\"");
                self.push_text(line, &ANSWER);
                line.push('"');
            }
            line.push_str("}},");
            self.open_calls.push((id, tool));
        }
        self.open_calls.reverse();
        line.pop();
        let model = MODELS[0];
        line.push_str(&format!(
            "],\"api\":\"anthropic-messages\",\"provider\":\"anthropic\",\"model\":\"{model}\",\"usage\":"
        ));
        self.usage(line);
        let reason = if calls == 0 { "stop" } else { "toolUse" };
        line.push_str(&format!(",\"stopReason\":\"{reason}\""));
        self.next = if calls == 0 { Next::User } else { Next::Result };
    }

    fn usage(&mut self, line: &mut String) {
        let (input, output) = (self.random.below(4000), self.random.below(2000));
        let cached = self.random.below(120_000);
        line.push_str(&format!(
            "{{\"input\":{input},\"output\":{output},\"cacheRead\":{cached},\"cacheWrite\":0,\"totalTokens\":{},\"cost\":{{\"input\":0.00{input:04},\"output\":0.0{output:04},\"cacheRead\":0.01,\"cacheWrite\":0,\"total\":0.05}}}}",
            input + output + cached
        ));
    }

    fn push_text(&mut self, line: &mut String, sizes: &[(u32, u32)]) {
        let size = self.random.size(sizes);
        self.text.push(line, &mut self.random, size as usize);
    }

    fn image(&mut self, line: &mut String) {
        let size = 20_000 + self.random.below(90_000);
        line.push_str(",{\"type\":\"image\",\"data\":\"");
        self.text.push_base64(line, &mut self.random, size as usize);
        line.push_str("\",\"mimeType\":\"image/png\"}");
    }
}

/// Text within a JSON string, to be cut at words.
pub struct Text {
    words: String,
    /// The offsets in `words` at which words begin.
    starts: Vec<usize>,
    base64: String,
}

/// Prose, code and the output of programs. One word in thirty is not ASCII.
const WORDS: [&str; 60] = [
    "the",
    "of",
    "a",
    "to",
    "function",
    "returns",
    "error",
    "value",
    "test",
    "build",
    "which",
    "is",
    "called",
    "with",
    "before",
    "after",
    "entry",
    "session",
    "file",
    "line",
    "and",
    "not",
    "parser",
    "index",
    "should",
    "fails",
    "because",
    "cache",
    "module",
    "import",
    "let mut",
    "fn main()",
    "self.state",
    "=>",
    "{\\n    ",
    "}\\n",
    ";\\n",
    "\\n\\n",
    "\\\"quoted\\\"",
    "\\t",
    "//",
    "match",
    "return",
    "if",
    "else",
    "0x7f",
    "42",
    "3.14",
    "C:\\\\path",
    "/usr/lib/x86_64",
    "warning:",
    "error[E0308]:",
    "--> src/main.rs:12:5",
    "|",
    "```rust\\n",
    "- [ ]",
    "**bold**",
    "naïve",
    "数据",
    "🙂",
];

impl Default for Text {
    fn default() -> Self {
        let mut random = Random(0x7465_7874);
        let (mut words, mut starts) = (String::with_capacity(TEXT_BYTES + 64), Vec::new());
        while words.len() < TEXT_BYTES {
            starts.push(words.len());
            // Rare words are at the end of the list.
            let among = if random.one_in(10) {
                WORDS.len()
            } else {
                WORDS.len() - 3
            };
            words.push_str(WORDS[random.below(among as u32) as usize]);
            words.push(' ');
        }
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let base64 = (0..TEXT_BYTES)
            .map(|_| char::from(alphabet[random.below(64) as usize]))
            .collect();
        Self {
            words,
            starts,
            base64,
        }
    }
}

impl Text {
    /// About `size` bytes of whole words.
    pub fn push(&self, line: &mut String, random: &mut Random, size: usize) {
        let last = self.words.len().saturating_sub(size + 64);
        let begin = self.start_from(random.below(last as u32) as usize);
        let end = self.start_from(begin + size.max(1));
        line.push_str(&self.words[begin..end]);
    }

    fn start_from(&self, at: usize) -> usize {
        let index = self.starts.partition_point(|start| *start < at);
        self.starts.get(index).copied().unwrap_or(self.words.len())
    }

    fn push_base64(&self, line: &mut String, random: &mut Random, size: usize) {
        let begin = random.below((self.base64.len() - size) as u32) as usize;
        line.push_str(&self.base64[begin..begin + size]);
    }
}

/// The random generator SplitMix64.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit.max(1))) >> 32) as u32
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len() as u32) as usize]
    }

    fn size(&mut self, sizes: &[(u32, u32)]) -> u32 {
        let at = self.below(1000);
        let upper = sizes
            .partition_point(|(mille, _)| *mille <= at)
            .min(sizes.len() - 1);
        let ((from, low), (to, high)) = (sizes[upper - 1], sizes[upper]);
        let span = u64::from(high - low) * u64::from(at - from) / u64::from(to - from);
        low + span as u32
    }
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
