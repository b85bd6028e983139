//! The steps as a person and a program read them.

use crate::plan::{Step, What};
use serde_json::{Value, json};
use similar::TextDiff;
use std::fmt::Write;
use treelined_redact::unseen::is_control;

/// The lines of a file that are shown around a change.
const AROUND: usize = 2;

/// One step as text; empty if there is nothing to say.
pub(crate) fn text(step: &Step, is_removal: bool) -> String {
    let path = safe(&step.path.display().to_string());
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _written = match &step.what {
        What::Nothing if is_removal => Ok(()),
        What::Nothing => writeln!(out, "{path}: has it already"),
        What::Edit { before, after, .. } => {
            out.push_str(&diff(&path, before.as_deref(), after.as_deref()));
            Ok(())
        }
        What::Link(to) => writeln!(
            out,
            "{path}: new, a link to {}",
            safe(&to.display().to_string())
        ),
        What::Unlink(_) => writeln!(out, "{path}: is removed"),
        What::Manual { reason, lines } => {
            let lines = safe(lines.trim_end());
            let lines: Vec<String> = lines.lines().map(|line| format!("    {line}")).collect();
            let what = match is_removal {
                true => "Remove, if it has them",
                false => "Add by hand",
            };
            let reason = safe(reason);
            writeln!(
                out,
                "{path}: not changed: {reason}. {what}:\n\n{}\n",
                lines.join("\n")
            )
        }
    };
    out
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
                json!({"diff": diff(&path, before.as_deref(), after.as_deref())}),
            )
        }
        What::Link(to) => ("create", json!({"link": to})),
        What::Unlink(_) => ("remove", json!({})),
        What::Manual { reason, lines } => ("manual", json!({"reason": reason, "lines": lines})),
    };
    let mut row = json!({"tool": step.agent.name(), "path": path, "action": action});
    if let (Some(row), Value::Object(detail)) = (row.as_object_mut(), detail) {
        row.extend(detail);
        row.extend(outcome.map(|error| ("error".to_owned(), error.into())));
    }
    row
}

fn diff(path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    let names = (
        before.map_or("/dev/null", |_| path),
        after.map_or("/dev/null", |_| path),
    );
    let diff = TextDiff::from_lines(old, new);
    let mut shown = diff.unified_diff();
    let shown = shown
        .context_radius(AROUND)
        .header(names.0, names.1)
        .to_string();
    safe(&shown)
}

/// Text that a terminal shows and does not obey.
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
