//! The number of lines that a call adds to files and removes from them, if its arguments show it.

use super::call::{CallArguments, FileAccess, elements};
use crate::json;
use std::borrow::Cow;

/// The names that agents give to the text before and after an edit.
pub const EDITS: &[[&str; 2]] = &[
    ["oldText", "newText"],
    ["old_string", "new_string"],
    ["oldString", "newString"],
    ["old_str", "new_str"],
];
/// The arguments that may have a unified diff.
pub const DIFFS: [&str; 3] = ["diff", "patch", "unified_diff"];
/// The arguments that have the whole text of a file.
pub(crate) const WRITTEN: [&str; 3] = ["content", "file_text", "contents"];
/// The most pairs of lines that are compared. An edit with more pairs counts as a replacement of all
/// lines.
const MOST_PAIRS: usize = 1 << 12;

/// Lines added and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineCounts {
    pub added: u32,
    pub removed: u32,
}

impl CallArguments<'_> {
    /// The lines that the call adds and removes; `None` if the call changes no file, or its arguments
    /// do not contain the change.
    pub(crate) fn changed_lines(&self) -> Option<LineCounts> {
        if self.access() != FileAccess::Change {
            return None;
        }
        let texts = DIFFS.iter().filter_map(|name| self.text(name));
        if let Some(diff) = self
            .patch()
            .or_else(|| texts.into_iter().find(|text| text.contains("@@")))
        {
            return Some(of_diff(&diff));
        }
        let argument = |name: &str| self.argument(name).and_then(json::string);
        let edits = self.argument("edits").into_iter().flat_map(elements);
        let edits =
            edits.filter_map(|edit| of_edit(|name| json::get(edit, name).and_then(json::string)));
        let edits = of_edit(argument).into_iter().chain(edits);
        let sum = edits.reduce(|sum, edit| LineCounts {
            added: sum.added.saturating_add(edit.added),
            removed: sum.removed.saturating_add(edit.removed),
        });
        sum.or_else(|| {
            let written = WRITTEN.iter().find_map(|name| self.text(name))?;
            Some(LineCounts {
                added: count(written.lines().count()),
                removed: 0,
            })
        })
    }
}

fn of_diff(diff: &str) -> LineCounts {
    let is_change = |line: &&str| !line.starts_with("+++ ") && !line.starts_with("--- ");
    let lines = |mark| {
        diff.lines()
            .filter(is_change)
            .filter(|line| line.starts_with(mark))
            .count()
    };
    LineCounts {
        added: count(lines('+')),
        removed: count(lines('-')),
    }
}

fn of_edit<'a>(text: impl Fn(&str) -> Option<Cow<'a, str>>) -> Option<LineCounts> {
    EDITS
        .iter()
        .find_map(|[old, new]| match (text(old), text(new)) {
            (None, None) => None,
            (old, new) => Some(of_texts(&old.unwrap_or_default(), &new.unwrap_or_default())),
        })
}

/// Counts all lines that are not in the longest common subsequence.
fn of_texts(old: &str, new: &str) -> LineCounts {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let [old, new] = [&old, &new].map(|lines| lines.get(before..).unwrap_or_default());
    let reversed = old.iter().rev().zip(new.iter().rev());
    let after = reversed.take_while(|(a, b)| a == b).count();
    let [old, new] = [old, new].map(|lines| lines.get(..lines.len() - after).unwrap_or_default());
    let common = match old.len().saturating_mul(new.len()) {
        0..=MOST_PAIRS => common(old, new),
        _ => 0,
    };
    LineCounts {
        added: count(new.len() - common),
        removed: count(old.len() - common),
    }
}

/// The length of the longest common subsequence.
fn common(old: &[&str], new: &[&str]) -> usize {
    let mut above = vec![0; new.len() + 1];
    for old_line in old {
        // The value of the previous row in the column before this one.
        let mut corner = 0;
        let mut left = 0;
        for (new_line, slot) in new.iter().zip(above.iter_mut().skip(1)) {
            let longest = match old_line == new_line {
                true => corner + 1,
                false => left.max(*slot),
            };
            corner = std::mem::replace(slot, longest);
            left = longest;
        }
    }
    above.last().copied().unwrap_or_default()
}

fn count(lines: usize) -> u32 {
    u32::try_from(lines).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row of an edit once said only "1 file changed".
    #[test]
    fn edits_of_all_tools_have_their_lines_counted() {
        let check = |name: &str, arguments: &str, counts: Option<(u32, u32)>| {
            let found = CallArguments::new(name, arguments.as_bytes()).changed_lines();
            assert_eq!(
                found.map(|found| (found.added, found.removed)),
                counts,
                "{arguments}"
            );
        };
        let edit = r#"{"file_path":"a","old_string":"a\nb\nc\nd","new_string":"a\nB\nc\nx\ny\nd"}"#;
        check("Edit", edit, Some((3, 1)));
        check(
            "edit",
            r#"{"oldText":"a\nb","newText":"a\nb"}"#,
            Some((0, 0)),
        );
        check(
            "edit",
            r#"{"filePath":"a","oldString":"","newString":"a"}"#,
            Some((1, 0)),
        );
        let edits =
            r#"{"edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":""}]}"#;
        check("MultiEdit", edits, Some((1, 2)));
        check(
            "Write",
            r#"{"content":"one\ntwo\n","file_path":"n.md"}"#,
            Some((2, 0)),
        );
        let patch =
            r#"{"input":"*** Begin Patch\n*** Update File: a.rs\n@@\n-x\n+y\n+z\n*** End Patch"}"#;
        check("apply_patch", patch, Some((2, 1)));
        let unified = r#"{"path":"a","diff":"--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"}"#;
        check("edit", unified, Some((1, 1)));
        check("text_editor", r#"{"command":"view","path":"a"}"#, None);
        check("edit", r#"{"path":"a"}"#, None);
        check("bash", r#"{"content":"x"}"#, None);
    }
}
