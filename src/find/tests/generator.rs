//! Random sessions and random needles for them.

use super::model::{ModelEntry, Needle};
use std::fmt::Write;

/// A linear congruential generator with the same numbers in each run.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

const PIECES: &[&str] = &[
    "cargo",
    "Test",
    "parseError",
    "src/lib.rs",
    "snake_case_name",
    "a\\b",
    "\"quoted\"",
    "the",
    "build",
    "fails",
    "日本語",
    "検索",
    "中文字符",
    "한국어",
    "Straße",
    "GRÜSSE",
    "σας",
    "ΣΑΣ",
    "\u{212a}elvin",
    "ﬁne",
    "İx",
    "😀",
    "👩‍👩‍👧",
    "🦀",
    "\u{1b}[31m",
    "tab\there",
    "5 + 3",
    "https://x.org/a?b=c",
    "é",
    "e\u{301}",
    "\u{2028}",
    "\u{7f}",
    "0x1F",
    "42",
    "error",
    "E0425",
    "naïve",
    "ǅ",
    "ŉ",
    "type",
    "label",
    "message",
];

fn text(random: &mut Random) -> String {
    let mut out = String::new();
    for _ in 0..random.below(8) {
        out.push_str(random.one(PIECES));
        out.push_str(random.one(&[" ", " ", "", "\n", "  ", ", "]));
    }
    out
}

/// A string literal; some characters are escaped, and some escapes are halves of a surrogate pair.
fn literal(random: &mut Random, text: &str) -> String {
    let mut out = String::from("\"");
    let often = random.below(12) + 2;
    for char in text.chars() {
        let escape = random.below(often * 3) == 0;
        match char {
            '"' | '\\' => write!(out, "\\{char}").unwrap(),
            '\n' => out.push_str("\\n"),
            '/' if escape => out.push_str("\\/"),
            char if escape || char.is_control() => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    match random.below(2) {
                        0 => write!(out, "\\u{unit:04x}").unwrap(),
                        _ => write!(out, "\\u{unit:04X}").unwrap(),
                    }
                }
            }
            char => out.push(char),
        }
        if random.below(400) == 0 {
            out.push_str(random.one(&["\\ud83d", "\\uDE00"]));
        }
    }
    out + "\""
}

/// The lines of a session with branches.
pub(crate) fn session(random: &mut Random, id: &str, entries: usize) -> String {
    let cwd = random.one(&["/home/ada/project", "/home/ada/project/sub/", "/home/bob"]);
    let mut out = format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"{cwd}\"}}\n"
    );
    for number in 0..entries {
        let parent = match (number, random.below(5)) {
            (0, _) => "null".to_owned(),
            (_, 0) => format!("\"e{}\"", random.below(number)),
            _ => format!("\"e{}\"", number - 1),
        };
        let mut value = || {
            let text = text(random);
            literal(random, &text)
        };
        let (a, b, c) = (value(), value(), value());
        let target = random.below(number.max(1));
        let body = match random.below(12) {
            0..3 => {
                format!("\"type\":\"message\",\"message\":{{\"role\":\"user\",\"content\":{a}}}")
            }
            3 | 4 => format!(
                "\"type\":\"message\",\"message\":{{\"content\":[{{\"type\":\"thinking\",\"thinking\":{a}}},{{\"type\":\"text\",\"text\":{b}}},{{\"type\":\"toolCall\",\"id\":\"c\",\"name\":\"bash\",\"arguments\":{{\"command\":{c},\"n\":[-4711]}}}}],\"role\":\"assistant\"}}"
            ),
            5 | 6 => format!(
                "\"type\":\"message\",\"message\":{{\"role\":\"toolResult\",\"toolCallId\":\"c\",\"toolName\":\"bash\",\"content\":[{{\"type\":\"text\",\"text\":{a}}},{{\"type\":\"text\",\"text\":{b}}}]}}"
            ),
            7 => format!("\"type\":\"branch_summary\",\"fromId\":\"e{target}\",\"summary\":{a}"),
            8 => format!("\"type\":\"label\",\"targetId\":\"e{target}\",\"label\":{a}"),
            9 => format!(
                "\"type\":\"custom\",\"customType\":\"x.y\",\"data\":{{\"a\":[{a},7],\"b\":{b}}}"
            ),
            10 => format!(
                "\"type\":\"custom\",\"customType\":\"note\",\"data\":{{\"targetId\":\"e{target}\",\"reason\":{a}}}"
            ),
            _ => format!(
                "\"type\":\"custom_message\",\"customType\":\"x.y\",\"display\":true,\"content\":{a}"
            ),
        };
        let time = format!(
            "2026-0{}-1{}T08:00:00.000Z",
            random.below(9) + 1,
            random.below(10)
        );
        let (kind, rest) = body.split_once(',').unwrap();
        writeln!(
            out,
            "{{{kind},\"id\":\"e{number}\",\"parentId\":{parent},\"timestamp\":\"{time}\",{rest}}}"
        )
        .unwrap();
    }
    out
}

/// A random needle. Most needles are taken from the text of an entry.
pub(super) fn needle(random: &mut Random, entries: &[ModelEntry]) -> Needle {
    let entry = &entries[random.below(entries.len())];
    let part = |random: &mut Random| -> String {
        let (_, text) = match entry.fields.is_empty() {
            true => return random.one(PIECES).to_owned(),
            false => &entry.fields[random.below(entry.fields.len())],
        };
        let len = text.chars().count();
        let (from, most) = (random.below(len), random.below(9) + 1);
        let part: String = text.chars().skip(from).take(most).collect();
        match (random.below(4), part.is_empty()) {
            (_, true) => random.one(PIECES).to_owned(),
            (0, _) => part.to_uppercase(),
            _ => part,
        }
    };
    match random.below(8) {
        0 | 1 => Needle::Literal(part(random)),
        2 => Needle::Regex(regex::escape(&part(random))),
        3 => {
            let (one, other) = (regex::escape(&part(random)), regex::escape(&part(random)));
            let join = random.one(&[".*", "|", r"\s+", r"\b", "[^x]?", ""]);
            let flags = random.one(&["", "(?i)", "(?s)", "^"]);
            Needle::Regex(format!("{flags}{one}{join}{other}"))
        }
        _ => {
            let count = random.below(3) + 1;
            Needle::Words((0..count).map(|_| part(random)).collect())
        }
    }
}
