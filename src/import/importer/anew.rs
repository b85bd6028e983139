//! Writes existing sessions anew: all their sources are read from the beginning, with the present readers and
//! mappers.

use super::discover::source_at;
use super::ledger::Ledger;
use super::ledger::rows::SourceRow;
use super::source::facts::Source;
use std::collections::HashSet;
use std::path::Path;
use treelined_core::error::{Error, Kind, Result};

/// The names of all sources of a session. Sources that are not in `found` are added to it if their files still exist.
/// Fails with `importFailed` if the file of a source is missing, because the new session file would lack its entries.
pub(super) fn sources(
    session: &str,
    session_dir: &Path,
    found: &mut Vec<Source>,
    ledger: &Ledger,
    is_recorded: bool,
) -> Result<HashSet<String>> {
    if is_recorded || ledger.rows(session).any(|row| row.is_home) {
        let message = format!(
            "session {session} is not written anew: agents have continued it, and a new file would lose the entries from which they continued"
        );
        return Err(Error::new(Kind::ImportFailed, message));
    }
    let mut anew = HashSet::new();
    for row in ledger.sources_of(session) {
        let sources = found.iter().filter(|source| is_of(source, row, ledger));
        let mut names: Vec<String> = sources.map(Source::name).collect();
        if names.is_empty() {
            let Some(source) = source_at(row.tool, Path::new(&row.source), session_dir) else {
                let why = format!("its source {} was not found", row.source);
                return Err(refused(session, &why));
            };
            names.push(source.name());
            found.push(source);
        }
        anew.extend(names);
    }
    match anew.is_empty() {
        true => Err(refused(session, "no import has noted its sources")),
        false => Ok(anew),
    }
}

/// Whether a row is about this source. The file may have moved since the row was written.
fn is_of(source: &Source, row: &SourceRow, ledger: &Ledger) -> bool {
    let name = source.name();
    let now = ledger.source(source.tool, &name);
    let is_moved = |now: &SourceRow| !row.origin.is_empty() && now.origin == row.origin;
    source.tool == row.tool && (name == row.source || now.is_some_and(is_moved))
}

fn refused(session: &str, why: &str) -> Error {
    let message = format!(
        "session {session} is not written anew: {why}; import all its sources once, and name the places that the tool \
         does not have by itself"
    );
    Error::new(Kind::ImportFailed, message)
}
