//! Shows the report of the last import of a session, for `treelined doctor` (session-file.md §5.8).

use super::screen::{Screen, Style};
use super::words::count;
use serde::Deserialize;
use std::io::{self, Write};
use treelined_core::entry::Kind;
use treelined_core::error::Result;
use treelined_core::terminal;
use treelined_files::log::OpenedLog;
use treelined_wire::{ImportedFile, ImportedSession};

/// The record with which an import of a session ends.
#[derive(Deserialize)]
struct ImportLine {
    timestamp: String,
    data: LeafData,
}

#[derive(Deserialize)]
struct LeafData {
    cause: String,
    import: ImportData,
}

#[derive(Deserialize)]
struct ImportData {
    report: Report,
}

#[derive(Deserialize)]
struct Report {
    session: ImportedSession,
    files: Vec<ImportedFile>,
}

/// The imports of one session.
struct Imports {
    count: u64,
    last: ImportLine,
}

/// Shows when and from which files a session was imported, and what it lacks. Shows nothing for a session that was not
/// imported.
pub(super) fn show(screen: &mut Screen, opened: &OpenedLog) -> io::Result<()> {
    // Damaged lines are reported elsewhere.
    let Ok(Some(Imports { count: times, last })) = imports(opened) else {
        return Ok(());
    };
    let ImportLine {
        timestamp,
        data: LeafData { import, .. },
        ..
    } = last;
    let Report { session, files } = import.report;
    let mut facts = vec![format!("from {} {}", session.tool, session.native_id)];
    facts.push(match times {
        1 => format!("at {timestamp}"),
        _ => format!("last at {timestamp} ({times} imports)"),
    });
    let by = session.by.map(|by| format!("joined by {by}"));
    facts.extend(by);
    let split = "kept apart from its family by an earlier import";
    facts.extend(session.family_split.then(|| split.to_owned()));
    facts.extend(some(
        session.recovered,
        "recovered branch",
        "recovered branches",
    ));
    facts.extend(some(session.gaps, "gap", "gaps"));
    facts.extend(some(session.subagents, "subagent", "subagents"));
    let revised = some(session.revised, "revised entry", "revised entries");
    facts.extend(revised);
    let name = screen.style(Style::Dim, &format!("{:<9}", "imported"));
    writeln!(screen, "  {name}{}", terminal::line(&facts.join(", ")))?;
    files.iter().try_for_each(|file| show_file(screen, file))
}

fn imports(opened: &OpenedLog) -> Result<Option<Imports>> {
    let OpenedLog { log, tree, .. } = opened;
    let nodes = (0..tree.node_count()).filter_map(|number| tree.node(number));
    let mut found: Option<Imports> = None;
    for record in nodes.filter(|node| tree.kind(*node) == Kind::LeafRecord) {
        let line = log.bodies().read(tree.place(record))?;
        let Ok(last) = serde_json::from_slice::<ImportLine>(&line) else {
            continue;
        };
        if last.data.cause == "import" {
            let count = found.map_or(0, |found| found.count) + 1;
            found = Some(Imports { count, last });
        }
    }
    Ok(found)
}

fn show_file(screen: &mut Screen, file: &ImportedFile) -> io::Result<()> {
    let mut facts = vec![
        count(file.records, "record", "records"),
        count(file.entries, "entry", "entries"),
    ];
    let mut kinds: Vec<(&String, &u64)> = file.origin_only.iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    if !kinds.is_empty() {
        let total: u64 = file.origin_only.values().sum();
        let kinds = kinds.iter().map(|(kind, count)| format!("{count} {kind}"));
        let kinds: Vec<String> = kinds.collect();
        facts.push(format!("{total} in the origin only ({})", kinds.join(", ")));
    }
    facts.extend(some(file.duplicates, "repeated record", "repeated records"));
    facts.extend(some(file.gaps, "gap", "gaps"));
    let held = file.held.unwrap_or(0);
    facts.extend(some(held, "entry held back", "entries held back"));
    if let Some(other) = &file.prefix_shared_with {
        facts.push(format!("begins like {other}"));
    }
    let shown = format!("{}: {}", file.path, facts.join(", "));
    writeln!(screen, "    {}", terminal::line(&shown))?;
    for [at, len] in &file.unparsable {
        let len = count(*len, "byte", "bytes");
        let kind = screen.style(Style::Red, "unparsable");
        writeln!(screen, "      {kind}: offset {at}, {len}")?;
    }
    if let Some(error) = &file.error {
        let kind = screen.style(Style::Red, &terminal::line(&error.kind));
        writeln!(screen, "      {kind}: {}", terminal::line(&error.message))?;
    }
    Ok(())
}

/// A number with its noun; `None` if the number is zero.
fn some(number: u64, one: &str, several: &str) -> Option<String> {
    (number > 0).then(|| count(number, one, several))
}
