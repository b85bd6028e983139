//! Text for messages: words within a JSON string.

use super::random::Random;

/// JSON-escaped bytes from which all text is cut.
const TEXT_BYTES: usize = 1 << 19;

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
    pub(super) fn push(&self, line: &mut String, random: &mut Random, size: usize) {
        let last = self.words.len().saturating_sub(size + 64);
        let begin = self.start_from(random.below(last as u32) as usize);
        let end = self.start_from(begin + size.max(1));
        line.push_str(&self.words[begin..end]);
    }

    fn start_from(&self, at: usize) -> usize {
        let index = self.starts.partition_point(|start| *start < at);
        self.starts.get(index).copied().unwrap_or(self.words.len())
    }

    pub(super) fn push_base64(&self, line: &mut String, random: &mut Random, size: usize) {
        let begin = random.below((self.base64.len() - size) as u32) as usize;
        line.push_str(&self.base64[begin..begin + size]);
    }
}
