//! The changes that a call makes, as lines that begin with a space, `+`, `-` or `@`.

use std::borrow::Cow;
use treelined_core::bytes::part;
use treelined_core::json::{self, Elements};
use treelined_core::tools::{CallArguments, DIFFS, EDITS, FileAccess};

/// The most pairs of lines that are compared for each line of an edit.
const PAIRS_PER_LINE: usize = 200;
/// The most pairs of lines that are compared for one edit. Each pair needs 4 bytes.
const MOST_PAIRS: usize = 1 << 20;
/// The most unchanged lines that are shown on each side of a change.
const CONTEXT_LINES: usize = 3;

/// A change of one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileDiff {
    pub path: Option<String>,
    pub text: String,
}

/// The changes of a call, in the order of the call; empty if the call is not an edit.
pub(super) fn of_call(arguments: &CallArguments<'_>, raw: &[u8]) -> Vec<FileDiff> {
    if let Some(patch) = arguments.patch() {
        return of_patch(&patch);
    }
    if arguments.access() != FileAccess::Change {
        return Vec::new();
    }
    let path = arguments.files().into_iter().next().map(Cow::into_owned);
    if let Some(diff) = json::get_each(raw, DIFFS)
        .into_iter()
        .flatten()
        .find_map(unified)
    {
        return of_unified(&diff, path.as_deref());
    }
    let mut text = String::new();
    push_edit(&mut text, raw);
    if let Some(edits) = json::get(raw, "edits")
        && let Ok(mut elements) = Elements::open(edits, 0)
    {
        while let Ok(Some(span)) = elements.next_value() {
            push_edit(&mut text, part(edits, span));
        }
    }
    match text.is_empty() {
        true => Vec::new(),
        false => vec![FileDiff { path, text }],
    }
}

/// Appends the changed lines of an edit. `edit` is an object with the text before and after the edit.
fn push_edit(out: &mut String, edit: &[u8]) {
    for names in EDITS {
        let [old, new] = json::get_each(edit, *names);
        let [old, new] = [old, new].map(|raw| raw.and_then(json::string));
        if old.is_none() && new.is_none() {
            continue;
        }
        if !out.is_empty() {
            out.push_str("@@\n");
        }
        return push_changed(out, &old.unwrap_or_default(), &new.unwrap_or_default());
    }
}

/// Appends the difference of two texts.
fn push_changed(out: &mut String, old: &str, new: &str) {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let [old_rest, new_rest] = [&old, &new].map(|lines| lines.get(before..).unwrap_or_default());
    let reversed = old_rest.iter().rev().zip(new_rest.iter().rev());
    let after = reversed.take_while(|(a, b)| a == b).count();
    let middle = |lines: &'_ [&'_ str]| lines.len() - after;
    let (old_middle, old_end) = old_rest.split_at(middle(old_rest));
    let (new_middle, _) = new_rest.split_at(middle(new_rest));
    let common = old.get(..before).unwrap_or_default();
    let skipped = common.len().saturating_sub(CONTEXT_LINES);
    push_lines(out, ' ', common.get(skipped..).unwrap_or_default());
    push_middle(out, old_middle, new_middle);
    push_lines(
        out,
        ' ',
        old_end.get(..CONTEXT_LINES.min(after)).unwrap_or_default(),
    );
}

fn push_lines(out: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        out.push(mark);
        out.push_str(line);
        out.push('\n');
    }
}

/// Appends the difference of two runs of lines, by their longest common subsequence of lines. The first lines of the
/// runs differ, and so do the last lines. If there are too many lines to compare, appends all old lines, then all new
/// lines.
fn push_middle(out: &mut String, old: &[&str], new: &[&str]) {
    let pairs = old.len().saturating_mul(new.len());
    if pairs > MOST_PAIRS.min((old.len() + new.len()) * PAIRS_PER_LINE) {
        push_lines(out, '-', old);
        return push_lines(out, '+', new);
    }
    let width = new.len() + 1;
    // For each pair of indexes into `old` and `new`: the number of common lines from these indexes on.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    let count =
        |common: &[u32], a: usize, b: usize| common.get(a * width + b).copied().unwrap_or_default();
    for (a, old_line) in old.iter().enumerate().rev() {
        for (b, new_line) in new.iter().enumerate().rev() {
            let longest = match old_line == new_line {
                true => count(&common, a + 1, b + 1) + 1,
                false => count(&common, a + 1, b).max(count(&common, a, b + 1)),
            };
            if let Some(slot) = common.get_mut(a * width + b) {
                *slot = longest;
            }
        }
    }
    let (mut a, mut b) = (0, 0);
    loop {
        let (mark, line) = match (old.get(a), new.get(b)) {
            (Some(old_line), Some(new_line)) if old_line == new_line => {
                (a, b) = (a + 1, b + 1);
                (' ', old_line)
            }
            (Some(line), other)
                if other.is_none() || count(&common, a + 1, b) >= count(&common, a, b + 1) =>
            {
                a += 1;
                ('-', line)
            }
            (_, Some(line)) => {
                b += 1;
                ('+', line)
            }
            (_, None) => return,
        };
        push_lines(out, mark, &[line]);
    }
}

/// The changes of a patch in the format of Codex, file by file.
fn of_patch(patch: &str) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    for line in patch.lines() {
        if let Some(head) = line.strip_prefix("*** ") {
            let file = head.split_once(" File: ");
            let moved = head.strip_prefix("Move to: ");
            if let Some((what @ ("Add" | "Update" | "Delete"), path)) = file {
                let text = match what {
                    "Delete" => "@@ deleted @@\n".to_owned(),
                    _ => String::new(),
                };
                let path = Some(path.trim().to_owned());
                files.push(FileDiff { path, text });
            } else if let (Some(path), Some(file)) = (moved, files.last_mut()) {
                file.text.push_str(&format!("@@ moved to {path} @@\n"));
            }
        } else if let Some(file) = files.last_mut() {
            push_diff_line(&mut file.text, line);
        }
    }
    files
}

/// The text of an argument if it is a unified diff.
fn unified(raw: &[u8]) -> Option<Cow<'_, str>> {
    let text = json::string(raw)?;
    let is_diff = text.starts_with("@@ ") || text.contains("\n@@ ");
    is_diff.then_some(text)
}

/// The changes of a unified diff, file by file.
fn of_unified(diff: &str, path: Option<&str>) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    let mut lines = diff.lines().peekable();
    while let Some(line) = lines.next() {
        let is_head = [
            "diff --git ",
            "index ",
            "new file ",
            "deleted file ",
            "similarity ",
            "rename ",
        ]
        .iter()
        .any(|start| line.starts_with(start));
        let next = lines.peek().and_then(|next| next.strip_prefix("+++ "));
        if let (true, Some(new)) = (line.starts_with("--- "), next) {
            lines.next();
            files.push(FileDiff {
                path: Some(changed_path(line, new)),
                text: String::new(),
            });
        } else if !is_head {
            if files.is_empty() {
                let path = path.map(str::to_owned);
                files.push(FileDiff {
                    path,
                    text: String::new(),
                });
            }
            if let Some(file) = files.last_mut() {
                push_diff_line(&mut file.text, line);
            }
        }
    }
    files.retain(|file| !file.text.is_empty());
    files
}

/// The path in the head of a file in a unified diff: the new path, or the old path for a deleted file.
fn changed_path(old: &str, new: &str) -> String {
    let own = |text: &str| {
        text.split('\t')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let new = own(new);
    match &*new {
        "/dev/null" => {
            let old = own(old.trim_start_matches("--- "));
            old.strip_prefix("a/").map(str::to_owned).unwrap_or(old)
        }
        path => path.strip_prefix("b/").unwrap_or(path).to_owned(),
    }
}

/// Appends a line of a diff. A line that begins with another character is an unchanged line without its space.
fn push_diff_line(out: &mut String, line: &str) {
    if !line.starts_with([' ', '+', '-', '@']) {
        out.push(' ');
    }
    out.push_str(line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tool: &str, arguments: &serde_json::Value, expected: &[(&str, &str)]) {
        let raw = arguments.to_string().into_bytes();
        let found = of_call(&CallArguments::new(tool, &raw), &raw);
        let found: Vec<_> = found
            .iter()
            .map(|file| (file.path.as_deref().unwrap_or_default(), &*file.text))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn edits_of_the_well_known_agents_are_diffs() {
        let expected = [("a.rs", " x\n-y\n+z\n w\n")];
        for [old, new] in EDITS {
            let arguments =
                serde_json::json!({ "file_path": "a.rs", *old: "x\ny\nw", *new: "x\nz\nw" });
            check("Edit", &arguments, &expected);
            let edit = serde_json::json!({ *old: "x\ny\nw", *new: "x\nz\nw" });
            let many =
                serde_json::json!({ "path": "a.rs", "edits": [edit, { *old: "b", *new: "" }] });
            check("MultiEdit", &many, &[("a.rs", " x\n-y\n+z\n w\n@@\n-b\n")]);
        }
        check(
            "bash",
            &serde_json::json!({ "old_string": "a", "new_string": "b" }),
            &[],
        );
        check(
            "Write",
            &serde_json::json!({ "path": "a", "content": "b" }),
            &[],
        );
    }

    #[test]
    fn unchanged_lines_far_from_a_change_are_left_out() {
        let lines = |middle: &str| format!("1\n2\n3\n4\n{middle}\n5\n6\n7\n8");
        let arguments =
            serde_json::json!({ "path": "a", "old_string": lines("x"), "new_string": lines("y") });
        check(
            "edit",
            &arguments,
            &[("a", " 2\n 3\n 4\n-x\n+y\n 5\n 6\n 7\n")],
        );
        let apart = serde_json::json!({
            "path": "a", "oldText": "a\nb\nc\nd", "newText": "A\nb\nc\nD\ne",
        });
        check("edit", &apart, &[("a", "-a\n+A\n b\n c\n-d\n+D\n+e\n")]);
    }

    /// To compare each old line with each new line takes 2^32 steps here.
    #[test]
    fn texts_of_many_lines_are_compared_in_linear_time() {
        let text = |mark: &str| {
            let lines = (0..1 << 16).map(|line| format!("{mark}{line}\n"));
            lines.collect::<String>()
        };
        let mut out = String::new();
        push_changed(&mut out, &text("a"), &text("b"));
        assert_eq!(out.lines().count(), 2 << 16);
    }

    #[test]
    fn patches_are_diffs_of_each_file() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: c.rs\n@@ fn main\n x\n-y\n+z\n\n\
                     *** Add File: b.rs\n+new\n*** Delete File: d.rs\n*** End Patch";
        let expected = [
            ("a.rs", "@@ moved to c.rs @@\n@@ fn main\n x\n-y\n+z\n \n"),
            ("b.rs", "+new\n"),
            ("d.rs", "@@ deleted @@\n"),
        ];
        check(
            "apply_patch",
            &serde_json::json!({ "input": patch }),
            &expected,
        );
        check(
            "patch",
            &serde_json::json!({ "patchText": patch }),
            &expected,
        );
    }

    #[test]
    fn unified_diffs_are_diffs_of_each_file() {
        let diff = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\
                    --- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n";
        let expected = [("x", "@@ -1 +1 @@\n-a\n+b\n"), ("y", "@@ -1 +0,0 @@\n-c\n")];
        check(
            "apply_patch",
            &serde_json::json!({ "patch": diff }),
            &expected,
        );
        let bare = serde_json::json!({ "path": "z", "diff": "@@ -1 +1 @@\n-a\n+b" });
        check("edit", &bare, &[("z", "@@ -1 +1 @@\n-a\n+b\n")]);
    }
}
