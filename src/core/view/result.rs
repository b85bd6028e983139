//! Summarizes a tool result: its most informative line, the number of its lines, and how many tests failed.
//!
//! Texts are read as they are written inside string literals, in one pass. Reminders that an agent puts into results,
//! and the tags around a text, are left out.

use crate::json;
use memchr::memmem::{self, Finder};
use std::sync::LazyLock;

/// The line to search for. Lines without a letter or a digit do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    First,
    Last,
}

/// The facts that are read from a text of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Told<'a> {
    /// The line as written inside the string literal; `None` if no line counts.
    pub line: Option<&'a [u8]>,
    /// The number of lines up to the last one that is not blank.
    pub lines: u32,
    /// The tests that the output of a command counts.
    pub tests: TestCounts,
}

/// The tests that a command has run, as its output counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TestCounts {
    pub failed: u32,
    pub passed: u32,
}

impl TestCounts {
    pub(super) fn add(&mut self, other: Self) {
        self.failed = self.failed.saturating_add(other.failed);
        self.passed = self.passed.saturating_add(other.passed);
    }

    /// The counts as text; `None` if no tests were counted.
    pub(super) fn told(self) -> Option<String> {
        match self {
            Self {
                failed: 0,
                passed: 0,
            } => None,
            Self { failed: 0, passed } => Some(format!("{passed} passed")),
            Self { failed, .. } => Some(format!("{failed} failed")),
        }
    }
}

const REMINDER: &[u8] = b"<system-reminder>";
const REMINDER_END: &[u8] = b"</system-reminder>";
static FIND_REMINDER: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(REMINDER_END));

/// Whether an agent or a runtime has added this line to the output of a tool. Such a line is used only if there is no
/// other line. The first byte alone decides for most lines.
fn is_added(line: &[u8]) -> bool {
    let start: &[u8] = match line.first() {
        Some(b'C') => b"Chunk ID: ",
        Some(b'D') => b"Debugger attached.",
        Some(b'E') => b"Exit code ",
        Some(b'O') => b"Output:",
        Some(b'P') => b"Process Group PGID:",
        Some(b'R') => b"REMINDER: You MUST",
        Some(b'W') => b"Waiting for the debugger to disconnect...",
        Some(b'a') => b"agentId: ",
        _ => return false,
    };
    line.starts_with(start)
}

/// Reads a text. If the end of the literal is missing, the first line of the text must be complete. With `is_command`
/// the text is the output of a command, and its tests are counted.
pub(super) fn told(inside: &[u8], is_cut: bool, which: Which, is_command: bool) -> Told<'_> {
    let has_reminder = FIND_REMINDER.find(inside).is_some();
    let (mut told, mut added) = (Told::default(), None);
    let (mut number, mut is_inside) = (0, false);
    let mut rest = Some(inside);
    while let Some(text) = rest {
        let (mut line, after) = next_line(text);
        rest = after;
        if has_reminder && !without_reminder(&mut line, &mut is_inside) {
            continue;
        }
        number += 1;
        let is_whole = after.is_some() || !is_cut;
        let line = untagged(trimmed(line));
        if line.is_empty() {
            continue;
        }
        told.lines = number;
        if is_command && let Some(tests) = tests(line) {
            told.tests.add(tests);
        }
        if !(is_whole || which == Which::Last) || !counts(line) {
            continue;
        }
        let place = if is_added(line) {
            &mut added
        } else {
            &mut told.line
        };
        if which == Which::Last || place.is_none() {
            *place = Some(line);
        }
        if which == Which::First && !is_command && told.line.is_some() {
            return told;
        }
    }
    told.line = told.line.or(added);
    told
}

/// Removes reminders from a line; returns `false` if the line has nothing else. `is_inside` says whether the line
/// begins inside a reminder, and is set for the next line.
fn without_reminder(line: &mut &[u8], is_inside: &mut bool) -> bool {
    if *is_inside {
        let Some(end) = memmem::find(line, REMINDER_END) else {
            return false;
        };
        *is_inside = false;
        *line = line.get(end + REMINDER_END.len()..).unwrap_or_default();
        return !trimmed(line).is_empty();
    }
    if let Some(start) = memmem::find(line, REMINDER) {
        *is_inside = memmem::find(line, REMINDER_END).is_none();
        *line = line.get(..start).unwrap_or_default();
        return !trimmed(line).is_empty();
    }
    if let Some(end) = memmem::find(line, REMINDER_END) {
        *line = line.get(..end).unwrap_or_default();
        return !trimmed(line).is_empty();
    }
    true
}

fn trimmed(line: &[u8]) -> &[u8] {
    let mut line = line.trim_ascii();
    while let Some(rest) = line.strip_prefix(br"\t") {
        line = rest.trim_ascii();
    }
    line
}

/// A line without the tags around it; empty if the line is only a tag.
fn untagged(line: &[u8]) -> &[u8] {
    let Some((tag, rest)) = line.strip_prefix(b"<").and_then(split_tag) else {
        return line;
    };
    match (rest, tag) {
        (b"", _) => b"",
        (rest, tag) => {
            let text = rest
                .strip_suffix(b">")
                .and_then(|text| text.strip_suffix(tag));
            text.and_then(|text| text.strip_suffix(b"</"))
                .unwrap_or(line)
        }
    }
}

/// The name of a tag, and the text after its end.
fn split_tag(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"/").unwrap_or(text);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let end = text
        .iter()
        .position(|byte| !is_name(byte))
        .filter(|end| *end > 0)?;
    let (name, rest) = text.split_at_checked(end)?;
    Some((name, rest.strip_prefix(b">")?))
}

/// The tests that a line counts: in the formats of cargo, nextest, pytest, jest, vitest and mocha. A failure of Go
/// counts as one test.
fn tests(line: &[u8]) -> Option<TestCounts> {
    if line.starts_with(b"--- FAIL") {
        return Some(TestCounts {
            failed: 1,
            passed: 0,
        });
    }
    let start = line
        .iter()
        .position(|byte| !matches!(byte, b'=' | b' ' | b'#'))?;
    let line = line.get(start..)?;
    let counts = match line.first()? {
        b'0'..=b'9' => true,
        b'S' => line.starts_with(b"Summary ["),
        b'T' => line.starts_with(b"Tests:") || line.starts_with(b"Tests "),
        b't' => line.starts_with(b"test result:"),
        _ => false,
    };
    if !counts {
        return None;
    }
    let (mut tests, mut found, mut number) = (TestCounts::default(), false, None);
    for word in line
        .split(|byte| !byte.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        let known = match word {
            b"failed" | b"failing" => Some(&mut tests.failed),
            b"passed" | b"passing" => Some(&mut tests.passed),
            _ => None,
        };
        if let (Some(number), Some(known)) = (number, known) {
            *known = number;
            found = true;
        }
        number = std::str::from_utf8(word)
            .ok()
            .and_then(|word| word.parse().ok());
    }
    found.then_some(tests)
}

/// The text before the next line break, and the text after it, if there is one.
fn next_line(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let escapes = |at: usize| {
        let slash = at + json::first_of(text.get(at..)?, br"\");
        (slash < text.len()).then_some(slash)
    };
    let mut at = 0;
    while let Some(slash) = escapes(at) {
        let escape = text.get(slash..).unwrap_or_default();
        let length = match escape.get(1) {
            Some(b'n' | b'r') => 2,
            Some(b'u')
                if matches!(
                    escape.get(2..6),
                    Some(b"000a" | b"000A" | b"000d" | b"000D")
                ) =>
            {
                6
            }
            _ => {
                at = slash + 2;
                continue;
            }
        };
        let line = text.get(..slash).unwrap_or_default();
        return (line, escape.get(length..));
    }
    (text, None)
}

fn counts(line: &[u8]) -> bool {
    if line.first().is_some_and(u8::is_ascii_alphanumeric) {
        return true;
    }
    let mut rest = line;
    while let Some((char, length)) = json::first_char(rest) {
        if char.is_alphanumeric() {
            return true;
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(inside: &str, which: Which) -> &str {
        let line = told(inside.as_bytes(), false, which, false).line;
        std::str::from_utf8(line.unwrap_or_default()).unwrap()
    }

    #[test]
    fn the_first_or_last_line_with_a_letter_or_digit() {
        let check = |inside: &str, first: &str, last: &str| {
            assert_eq!(line(inside, Which::First), first, "{inside}");
            assert_eq!(line(inside, Which::Last), last, "{inside}");
        };
        check("", "", "");
        check("one", "one", "one");
        check(r"\n--\none\ntwo\n\n---\n", "one", "two");
        check(r"10%\r20%\r\n", "10%", "20%");
        check(r"\u000aone\u000d\u2514 é", "one", r"\u2514 é");
        // The letter of an escape does not count; an escaped backslash escapes nothing.
        check(r"\t\b\f\n\\n", r"\\n", r"\\n");
        check(r"a\\\nb", r"a\\", "b");
        check(r"\u001b\n\u0061", r"\u0061", r"\u0061");
    }

    #[test]
    fn a_first_line_without_its_end_does_not_count() {
        let line = |inside: &'static str| told(inside.as_bytes(), true, Which::First, false).line;
        assert_eq!(line(r"one"), None);
        assert_eq!(line(r"--\none"), None);
        assert_eq!(line(r"one\n"), Some(&b"one"[..]));
        assert_eq!(line(r"one\"), None);
    }

    /// Rows of `Read` once ended in `</system-reminder>`.
    #[test]
    fn what_agents_add_to_a_result_does_not_tell() {
        let reminded = r"  1→a\n  2→b\n\n<system-reminder>\nIs it malware?\n</system-reminder>\n";
        assert_eq!(line(reminded, Which::Last), "2→b");
        assert_eq!(
            told(reminded.as_bytes(), false, Which::Last, false).lines,
            2
        );
        assert_eq!(
            line(r"a<system-reminder>x</system-reminder>", Which::Last),
            "a"
        );
        assert_eq!(line(r"a\nof one</system-reminder>", Which::Last), "of one");
        assert_eq!(
            line(r"<system-reminder>x\ny</system-reminder>", Which::First),
            ""
        );
        let failed = "<tool_use_error>File does not exist.</tool_use_error>";
        assert_eq!(line(failed, Which::First), "File does not exist.");
        assert_eq!(
            line(r"Exit code 1\nno such file", Which::First),
            "no such file"
        );
        assert_eq!(line("Exit code 1", Which::First), "Exit code 1");
        // If an editor debugs the commands of its terminal, Node.js prints these lines around the output of each
        // command.
        let debugged =
            r"Debugger attached.\nbuilt in 2 s\nWaiting for the debugger to disconnect...\n";
        assert_eq!(line(debugged, Which::Last), "built in 2 s");
        assert_eq!(line(r"<html>\nx\n</html>", Which::Last), "x");
        assert_eq!(line("a <b> c", Which::Last), "a <b> c");
        assert_eq!(line("<b>c</i>", Which::Last), "<b>c</i>");
    }

    #[test]
    fn tests_are_counted_as_their_runners_count_them() {
        let check = |inside: &str, failed: u32, passed: u32| {
            let tests = told(inside.as_bytes(), false, Which::Last, true).tests;
            assert_eq!(tests, TestCounts { failed, passed }, "{inside}");
        };
        let cargo = r"test result: ok. 5 passed; 0 failed; 0 ignored\ntest result: FAILED. 2 passed; 3 failed;";
        check(cargo, 3, 7);
        check("==== 3 failed, 10 passed in 0.12s ====", 3, 10);
        check("Tests:       1 failed, 2 passed, 3 total", 1, 2);
        check(
            "     Summary [   0.1s] 13 tests run: 10 passed, 3 failed",
            3,
            10,
        );
        check(r"--- FAIL: TestA (0.00s)\n--- FAIL: TestB\nFAIL", 2, 0);
        check(r"10 passing\n2 failing", 2, 10);
        check(r"c0ffee1 fix 3 failed tests\n12 files", 0, 0);
    }
}
