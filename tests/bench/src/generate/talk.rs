//! A conversation that works with tools, goes back and branches.

use super::random::Random;
use super::text::Text;
use super::{begin, entry_id, stamp_ms};

/// A conversation under construction.
pub(super) struct Talk<'a> {
    n: u32,
    text: &'a Text,
    random: Random,
    pub(super) messages: u64,
    /// The path from the root to the tip, with the kind of entry that can follow each entry.
    path: Vec<(u32, Next)>,
    next: Next,
    since_compaction: u32,
    /// The tool calls of the last answer that have no result yet.
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

/// The sizes of texts in bytes, each with the share of texts up to this size, in per mille. Other shares are
/// interpolated linearly.
pub(super) const PROMPT: [(u32, u32); 6] = [
    (0, 12),
    (300, 60),
    (700, 260),
    (900, 900),
    (990, 6_000),
    (1000, 30_000),
];
pub(super) const ANSWER: [(u32, u32); 6] = [
    (0, 20),
    (300, 90),
    (700, 320),
    (900, 900),
    (990, 5_000),
    (1000, 30_000),
];
pub(super) const OUTPUT: [(u32, u32); 8] = [
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
    pub(super) fn new(n: u32, text: &'a Text, seed: u64) -> Self {
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

    /// Appends the line of the entry with this number, without its line feed.
    pub(super) fn entry(&mut self, line: &mut String, number: u32) {
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
