//! Text for messages: words, escaped as in a JSON string.

use super::random::Random;

/// JSON-escaped bytes from which all text is cut.
const TEXT_BYTES: usize = 1 << 19;

/// Text, escaped as in a JSON string, from which pieces of whole words are cut.
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

/// The number of different words of a [`Text::prose`], a power of two.
const PROSE_WORDS: u32 = 1 << 20;
/// Bytes from which prose is cut.
const PROSE_BYTES: usize = 64 << 20;

impl Default for Text {
    fn default() -> Self {
        let mut random = Random(0x7465_7874);
        Self::of(TEXT_BYTES, &mut random, |words, random| {
            // Rare words are at the end of the list.
            let among = if random.one_in(10) {
                WORDS.len()
            } else {
                WORDS.len() - 3
            };
            words.push_str(WORDS[random.below(among as u32) as usize]);
        })
    }
}

impl Text {
    /// Text of a million different words. The frequency of the n-th word is proportional to 1/n (Zipf's law).
    pub fn prose() -> Self {
        let mut random = Random(0x7072_6f73);
        Self::of(PROSE_BYTES, &mut random, |words, random| {
            let power = 1 << random.below(PROSE_WORDS.ilog2());
            push_word(words, power + random.below(power));
        })
    }

    fn of(bytes: usize, random: &mut Random, push: impl Fn(&mut String, &mut Random)) -> Self {
        let (mut words, mut starts) = (String::with_capacity(bytes + 64), Vec::new());
        while words.len() < bytes {
            starts.push(words.len());
            push(&mut words, random);
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

/// Appends the word with this rank. Ranks begin at 1, and frequent words are shorter.
pub fn push_word(to: &mut String, rank: u32) {
    let mut rest = rank;
    while rest > 0 {
        let (consonants, vowels) = (b"bdfghklmnprstvwz", b"aeiouy");
        to.push(char::from(consonants[rest as usize % consonants.len()]));
        rest /= consonants.len() as u32;
        to.push(char::from(vowels[rest as usize % vowels.len()]));
        rest /= vowels.len() as u32;
    }
}
