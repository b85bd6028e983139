//! Sessions that exist and are written anew: from the beginning of their sources, with the present readers and mappers.

use super::ledger::{Ledger, SourceRow};
use super::source::Source;
use crate::error::{Error, Kind, Result};
use std::collections::HashSet;

/// The names of the sources of a session. `importFailed` if one of them was not found: the new file would lack its
/// entries.
pub(super) fn sources(session: &str, found: &[Source], ledger: &Ledger) -> Result<HashSet<String>> {
    let mut anew = HashSet::new();
    for row in ledger.sources_of(session) {
        let before = anew.len();
        let its = found.iter().filter(|source| is_of(source, row, ledger));
        anew.extend(its.map(Source::name));
        if anew.len() == before && !anew.contains(&row.source) {
            return Err(refused(
                session,
                &format!("its source {} was not found", row.source),
            ));
        }
    }
    match anew.is_empty() {
        true => Err(refused(session, "no import has noted its sources")),
        false => Ok(anew),
    }
}

/// Whether a source is the one of the row, which may have been at another place.
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
