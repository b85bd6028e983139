//! Generates session files of Claude Code, with a record for each part of an answer, and with results that are written
//! twice.

use super::random::Random;
use super::talk::{ANSWER, OUTPUT, PROMPT};
use super::text::Text;
use super::{Facts, stamp_ms, timestamp};
use std::io::{self, Write};

/// A conversation of at least `bytes` bytes. Half of its bytes are outputs of tools and their copies.
pub fn claude_code(out: &mut impl Write, seed: u64, bytes: u64, text: &Text) -> io::Result<Facts> {
    let mut talk = Records {
        session: claude_code_id(seed),
        text,
        random: Random(seed),
        facts: Facts::default(),
        line: String::new(),
    };
    while talk.facts.bytes < bytes {
        talk.turn(out)?;
    }
    Ok(talk.facts)
}

/// The id of the session with this seed.
pub fn claude_code_id(seed: u64) -> String {
    uuid(&mut Random(seed))
}

struct Records<'a> {
    session: String,
    text: &'a Text,
    random: Random,
    facts: Facts,
    line: String,
}

impl Records<'_> {
    /// A prompt, some calls with their results, and an answer.
    fn turn(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.begin("user");
        self.line
            .push_str(",\"message\":{\"role\":\"user\",\"content\":\"");
        self.push_text(&PROMPT);
        self.line.push_str("\"},\"permissionMode\":\"default\"");
        self.end(out)?;
        for call in 0..1 + self.random.below(8) {
            let id = format!("{:08x}{call:02}", self.facts.entries);
            if self.random.one_in(2) {
                self.part(
                    &id,
                    "{\"type\":\"thinking\",\"thinking\":\"",
                    Self::thinking,
                );
                self.end(out)?;
            }
            self.part(&id, "{\"type\":\"tool_use\"", |records| {
                records.call(&id);
            });
            self.end(out)?;
            self.hook(&id);
            self.end(out)?;
            self.result(&id);
            self.end(out)?;
        }
        let id = format!("{:08x}", self.facts.entries);
        self.part(&id, "{\"type\":\"text\",\"text\":\"", |records| {
            records.push_text(&ANSWER);
            records.line.push('"');
        });
        self.end(out)
    }

    fn begin(&mut self, kind: &str) {
        let uuid = uuid(&mut self.random);
        let parent = match self.facts.leaf.is_empty() {
            true => "null".to_owned(),
            false => format!("\"{}\"", self.facts.leaf),
        };
        let at = u32::try_from(self.facts.entries).unwrap_or(u32::MAX);
        self.line.push_str(&format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/bench\",\"sessionId\":\"{}\",\"version\":\"2.1.37\",\"gitBranch\":\"main\",\"type\":\"{kind}\",\"uuid\":\"{uuid}\",\"timestamp\":\"{}\"",
            self.session,
            timestamp(stamp_ms(at))
        ));
        self.facts.leaf = uuid;
    }

    fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.line.push('}');
        self.facts.entries += 1;
        self.facts.end_line(out, &mut self.line)
    }

    /// A record with one part of an answer. `content` writes everything after `head` except the last brace.
    fn part(&mut self, id: &str, head: &str, content: impl FnOnce(&mut Self)) {
        self.begin("assistant");
        self.line.push_str(&format!(
            ",\"message\":{{\"model\":\"claude-sonnet-4-5-20250929\",\"id\":\"msg_{id}\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{head}"
        ));
        content(self);
        let (cached, output) = (self.random.below(120_000), self.random.below(2_000));
        self.line.push_str(&format!(
            "}}],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{{\"input_tokens\":10,\"cache_creation_input_tokens\":271,\"cache_read_input_tokens\":{cached},\"cache_creation\":{{\"ephemeral_5m_input_tokens\":271,\"ephemeral_1h_input_tokens\":0}},\"output_tokens\":{output},\"service_tier\":\"standard\"}}}},\"requestId\":\"req_{id}\""
        ));
    }

    fn thinking(&mut self) {
        self.push_text(&ANSWER);
        self.line.push_str("\",\"signature\":\"");
        self.text.push_base64(&mut self.line, &mut self.random, 600);
        self.line.push('"');
    }

    fn call(&mut self, id: &str) {
        self.line.push_str(&format!(
            ",\"id\":\"toolu_{id}\",\"name\":\"Bash\",\"input\":{{\"command\":\""
        ));
        self.push_text(&ANSWER);
        self.line.push_str("\"}");
    }

    fn hook(&mut self, id: &str) {
        self.begin("progress");
        self.line.push_str(&format!(
            ",\"data\":{{\"type\":\"hook_progress\",\"hookEvent\":\"PostToolUse\",\"hookName\":\"PostToolUse:Bash\",\"command\":\"callback\"}},\"parentToolUseID\":\"toolu_{id}\",\"toolUseID\":\"toolu_{id}\""
        ));
    }

    fn result(&mut self, id: &str) {
        self.begin("user");
        self.line.push_str(&format!(
            ",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_{id}\",\"type\":\"tool_result\",\"content\":\""
        ));
        let begun = self.line.len();
        self.push_text(&OUTPUT);
        let output = self.line[begun..].to_owned();
        self.line.push_str(&format!(
            "\",\"is_error\":false}}]}},\"toolUseResult\":{{\"stdout\":\"{output}\",\"stderr\":\"\",\"interrupted\":false,\"isImage\":false}}"
        ));
    }

    fn push_text(&mut self, sizes: &[(u32, u32)]) {
        let size = self.random.size(sizes) as usize;
        self.text.push(&mut self.line, &mut self.random, size);
    }
}

fn uuid(random: &mut Random) -> String {
    let mut part = || random.below(u32::MAX);
    let (first, second, third, fourth) = (part(), part(), part(), part());
    format!(
        "{first:08x}-{:04x}-4{:03x}-8{:03x}-{:04x}{fourth:08x}",
        second >> 16,
        second & 0xfff,
        third >> 20,
        third & 0xffff
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn records_are_below_earlier_ones_and_results_come_after_their_calls() {
        let mut out = Vec::new();
        let facts = claude_code(&mut out, 7, 300_000, &Text::default()).unwrap();
        assert_eq!(facts.bytes, out.len() as u64);
        assert!((300_000..700_000).contains(&facts.bytes), "{}", facts.bytes);
        let (mut seen, mut calls) = (HashSet::new(), HashSet::new());
        for line in String::from_utf8(out).unwrap().lines() {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(record["sessionId"], claude_code_id(7));
            if let Some(parent) = record["parentUuid"].as_str() {
                assert!(seen.contains(parent), "{line}");
            }
            assert!(seen.insert(record["uuid"].as_str().unwrap().to_owned()));
            let content = &record["message"]["content"][0];
            if content["type"] == "tool_use" {
                calls.insert(content["id"].clone());
            }
            if content["type"] == "tool_result" {
                assert!(calls.contains(&content["tool_use_id"]), "{line}");
            }
        }
        assert_eq!(facts.entries, seen.len() as u64);
        assert!(calls.len() > 10);
    }
}
