//! The steps as text for people, and as JSON for programs.

use crate::plan::{Step, What};
use serde_json::{Value, json};
use similar::TextDiff;
use treelined_redact::unseen::is_control;
use treelined_redact::{KnownValues, Redactor, secret_variables};

/// The number of unchanged lines that are shown around a change.
const AROUND: usize = 2;
/// The most characters of a line that are shown.
const LONG: usize = 600;
/// In a longer line, the number of characters that are shown before and after a change.
const BESIDE: usize = 40;
/// The instruction for lines that the user must remove by hand.
const REMOVE: &str = ". Remove by hand, if it has them";

/// One step as text; empty if there is nothing to show.
pub(crate) fn text(step: &Step, is_removal: bool) -> String {
    let path = safe(&step.path.display().to_string());
    let by_hand = |reason: &str, what: &str, lines: &str| {
        let lines = safe(lines.trim_end());
        let lines: Vec<String> = lines.lines().map(|line| format!("    {line}")).collect();
        let lines = lines.join("\n");
        format!("{path}: {}{what}:\n\n{lines}\n\n", safe(reason))
    };
    match &step.what {
        What::Nothing if is_removal => String::new(),
        What::Nothing => format!("{path}: has it already\n"),
        What::Edit { before, after, .. } => {
            diff(&path, before.as_deref(), after.as_deref(), AROUND)
        }
        What::Link(to) => {
            let to = safe(&to.display().to_string());
            format!("{path}: new, a link to {to}\n")
        }
        What::Unlink(_) => format!("{path}: is removed\n"),
        What::Manual { reason, lines } => {
            let what = match is_removal {
                true => REMOVE,
                false => ". Add by hand",
            };
            by_hand(&format!("not changed: {reason}"), what, lines)
        }
        What::Advice { reason, lines } => {
            by_hand(reason, if is_removal { REMOVE } else { "" }, lines)
        }
    }
}

/// One step as JSON.
pub(crate) fn json(step: &Step, outcome: Option<&str>) -> Value {
    let path = step.path.display().to_string();
    let (action, detail) = match &step.what {
        What::Nothing => ("none", json!({})),
        What::Edit { before, after, .. } => {
            let action = match (before, after) {
                (None, _) => "create",
                (_, None) => "remove",
                _ => "edit",
            };
            (
                action,
                json!({"diff": diff(&path, before.as_deref(), after.as_deref(), 0)}),
            )
        }
        What::Link(to) => ("create", json!({"link": to})),
        What::Unlink(_) => ("remove", json!({})),
        What::Manual { reason, lines } | What::Advice { reason, lines } => {
            ("manual", json!({"reason": reason, "lines": lines}))
        }
    };
    let mut row = json!({"tool": step.agent.name(), "path": path, "action": action});
    if let (Some(row), Value::Object(detail)) = (row.as_object_mut(), detail) {
        row.extend(detail);
        row.extend(outcome.map(|error| ("error".to_owned(), error.into())));
    }
    row
}

/// The difference with its secrets replaced, and with `around` unchanged lines on each side. Long lines are cut.
fn diff(path: &str, before: Option<&str>, after: Option<&str>, around: usize) -> String {
    // A text that cannot be searched for secrets is not shown.
    let Ok(redactor) = Redactor::new(true, None) else {
        return format!("{path}: is changed\n");
    };
    let mut values = KnownValues::new(b"of the setup");
    values.add_values(secret_variables(std::env::vars_os(), &[]));
    let redactor = redactor.with_values(values);
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    let names = (
        before.map_or("/dev/null", |_| path),
        after.map_or("/dev/null", |_| path),
    );
    let diff = TextDiff::from_lines(old, new);
    let mut shown = diff.unified_diff();
    let shown = shown
        .context_radius(around)
        .missing_newline_hint(false)
        .header(names.0, names.1)
        .to_string();
    // Secrets are replaced before lines are cut: a part of a secret is not recognized.
    let shown = redactor.text(&shown, &mut |_, _| {});
    safe(&cut(&shown))
}

/// The difference, with each long line cut to the part that has changed.
fn cut(diff: &str) -> String {
    let lines: Vec<&str> = diff.split_inclusive('\n').collect();
    let mut out = String::new();
    let mut rest = lines.as_slice();
    while let Some(line) = rest.first() {
        // A change is some removed lines, followed by the lines that replace them.
        let run = |sign: char, lines: &[&str]| {
            let lines = lines.iter().take_while(|line| line.starts_with(sign));
            lines.count()
        };
        let gone = run('-', rest);
        let (gone, after) = rest.split_at(gone);
        let (new, after) = after.split_at(run('+', after));
        for (lines, others) in [(gone, new), (new, gone)] {
            for (at, line) in lines.iter().enumerate() {
                let from_end = others.len().checked_sub(lines.len() - at);
                let last = from_end.and_then(|at| others.get(at)).copied();
                out.push_str(&cut_line(line, others.get(at).copied(), last));
            }
        }
        rest = after;
        if gone.is_empty() && new.is_empty() {
            out.push_str(&cut_line(line, None, None));
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    out
}

/// Cuts a long line, whose first character is its sign. Leaves out the start that is equal to the start of `first`, and
/// the end that is equal to the end of `last`, except for some characters beside the change.
fn cut_line(line: &str, first: Option<&str>, last: Option<&str>) -> String {
    let chars_of = |line: &str| -> Vec<char> {
        let line = line.trim_end_matches(['\r', '\n']);
        line.chars().skip(1).collect()
    };
    let chars = chars_of(line);
    if chars.len() <= LONG {
        return line.to_owned();
    }
    let (first, last) = (
        chars_of(first.unwrap_or_default()),
        chars_of(last.unwrap_or_default()),
    );
    let same = |pair: &(&char, &char)| pair.0 == pair.1;
    let begin = chars.iter().zip(&first).take_while(same).count();
    let pairs = chars.iter().skip(begin).rev().zip(last.iter().rev());
    let end_of_change = chars.len() - pairs.take_while(same).count();
    let from = begin.saturating_sub(BESIDE);
    let to = end_of_change.saturating_add(BESIDE);
    let to = to.min(from + LONG).min(chars.len());
    let shown: String = chars.get(from..to).unwrap_or_default().iter().collect();
    let mark = |is_cut: bool| if is_cut { "…" } else { "" };
    let sign = line.chars().next().unwrap_or(' ');
    let (before, behind) = (mark(from > 0), mark(to < chars.len()));
    format!("{sign}{before}{shown}{behind}\n")
}

/// The text without characters that a terminal obeys instead of showing them.
pub(crate) fn safe(text: &str) -> String {
    let shown = text
        .chars()
        .filter(|char| *char != '\r')
        .map(|char| match char {
            '\n' | '\t' => char,
            char if is_control(char) => char::REPLACEMENT_CHARACTER,
            char => char,
        });
    shown.collect()
}
