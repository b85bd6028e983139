//! The output of commands. Names and texts of sessions are escaped before they reach a terminal.

use crate::apply::Outcome;
use crate::changes::Change;
use crate::name::Name;
use crate::record::Record;
use crate::restore::Plan;
use crate::snapshot::Head;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// The most files that a preview lists.
const MAX_LISTED: usize = 200;

/// A text in which all characters that a terminal would obey are escaped.
pub fn safe(text: &str) -> String {
    Name(text.as_bytes().to_vec()).to_string()
}

/// A size in the largest unit in which it is at least 1.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
    }
}

/// A count with its noun: `1 file`, `2 files`.
pub fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// Writes the changes of a plan: the files to write and the files to remove. A file that another program has changed
/// since gets a mark.
pub fn plan(out: &mut impl Write, plan: &Plan, outside: &BTreeSet<Name>) -> io::Result<()> {
    let removed = plan
        .changes
        .iter()
        .filter(|change| change.new.is_none())
        .count();
    let written = plan.changes.len() - removed;
    for change in plan.changes.iter().take(MAX_LISTED) {
        let mark = match outside.contains(&change.name) {
            true => "  ! changed outside of this session since",
            false => "",
        };
        let held = match plan.held.contains(&change.name) {
            true => "  ! a program has it open for writing, and its later writes are lost",
            false => "",
        };
        let counts = plan.lines.get(&change.name).copied();
        writeln!(
            out,
            "{} {}{}{mark}{held}",
            verb(change),
            change.name,
            lines(counts)
        )?;
    }
    if plan.changes.len() > MAX_LISTED {
        writeln!(out, "… {} more", plan.changes.len() - MAX_LISTED)?;
    }
    writeln!(
        out,
        "{} to write, {} to remove",
        count(written, "file"),
        count(removed, "file")
    )?;
    for name in plan.kept.iter().take(MAX_LISTED) {
        writeln!(out, "keep    {name}  (left out then)")?;
    }
    for name in plan.since.iter().take(MAX_LISTED) {
        writeln!(out, "changed since the restore: {name}")?;
    }
    if !plan.since.is_empty() {
        writeln!(
            out,
            "{} not included: changed since the restore; --all includes all",
            count(plan.since.len(), "file")
        )?;
    }
    if plan.left > 0 {
        writeln!(
            out,
            "{} not included: changed by no turn of this session; --all includes all",
            count(plan.left, "file")
        )?;
    }
    Ok(())
}

fn verb(change: &Change) -> &'static str {
    match (&change.old, &change.new) {
        (None, _) => "create ",
        (_, None) => "remove ",
        _ => "replace",
    }
}

fn lines(counts: Option<Option<(u64, u64)>>) -> String {
    match counts {
        Some(Some((added, removed))) => format!("  +{added} −{removed}"),
        Some(None) => "  (not text)".to_owned(),
        None => String::new(),
    }
}

/// A text about the time at which the files of a record were saved.
pub fn record(record: &Record) -> String {
    let when = safe(&record.timestamp);
    let entry = safe(&record.data.entry_id);
    format!("the files of {when}, at {entry}")
}

/// A text that says how the user's repository has moved since a record; `None` if it has not.
pub fn moved(record: &Record, head: &Head) -> Option<String> {
    let short = |commit: &Option<String>| {
        let commit = commit.as_deref().unwrap_or("no commit");
        safe(commit.get(..9).unwrap_or(commit))
    };
    if record.data.branch != head.branch {
        let name = |branch: &Option<String>| safe(branch.as_deref().unwrap_or("no branch"));
        return Some(format!(
            "the repository was on {} then and is on {} now; only files are restored",
            name(&record.data.branch),
            name(&head.branch)
        ));
    }
    (record.data.head != head.commit).then(|| {
        format!(
            "the repository was at {} then and is at {} now; only files are restored",
            short(&record.data.head),
            short(&head.commit)
        )
    })
}

pub fn outcome(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    for name in &outcome.left {
        writeln!(
            out,
            "{name} has bytes of an interrupted restore that are saved nowhere else"
        )?;
    }
    for (name, why) in &outcome.conflicts {
        writeln!(out, "left as it is: {name}: {}", safe(why))?;
    }
    writeln!(
        out,
        "{} written, {} removed",
        count(outcome.written, "file"),
        count(outcome.removed, "file")
    )
}
