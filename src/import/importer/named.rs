//! Finds a session that an import has made, by its id or by the id of a native session in it.

use super::ledger::Ledger;
use super::origin::Origins;
use std::path::Path;
use treelined_core::error::{Error, Kind, Result};

/// The beginning of an id must have at least this many bytes to name a session.
const FEWEST: usize = 4;

/// The id of an imported session. `name` is the id of the session, the id of a native session in it, or the beginning
/// of the session's id. A session that was purged has no file, but the ledger has its id. Fails with `sessionNotFound`
/// if there is no such session, and with `invalidParams` if there are several.
pub fn session_named(session_dir: &Path, name: &str) -> Result<String> {
    named_in(&Ledger::open(session_dir, true)?, name)
}

/// Deletes the kept bytes of all sources of a session. The session is found like in [`session_named`]. Returns the
/// number of deleted origins.
pub fn forget(session_dir: &Path, name: &str) -> Result<usize> {
    let mut ledger = Ledger::open(session_dir, false)?;
    let session_id = named_in(&ledger, name)?;
    let origins = Origins::of(session_dir)?;
    let mut removed = 0;
    for origin in ledger.forget(&session_id)? {
        removed += usize::from(origins.remove(&origin)?);
    }
    Ok(removed)
}

/// Notes that the user has deleted these sessions, so that imports skip them until a request names them in `again`.
/// Sessions that no import has made are ignored. Fails with `importBusy` while an import runs.
pub fn skip(session_dir: &Path, sessions: &[&str]) -> Result<()> {
    let is_imported = |ledger: &Ledger| sessions.iter().any(|id| ledger.has_noted(id));
    if !is_imported(&Ledger::open(session_dir, true)?) {
        return Ok(());
    }
    let mut ledger = Ledger::open(session_dir, false)?;
    for session in sessions {
        ledger.note_trashed(session, true)?;
    }
    Ok(())
}

/// Whether [`forget`] has deleted the origin `origin` of this session. This is so if the ledger has the session, but
/// no source with any generation of that origin.
pub fn is_forgotten(session_dir: &Path, session_id: &str, origin: &str) -> bool {
    let Ok(ledger) = Ledger::open(session_dir, true) else {
        return false;
    };
    let base = |name: &str| name.split('-').next().map(str::to_owned);
    let mut is_known = false;
    for row in ledger.all() {
        if !row.origin.is_empty() && base(&row.origin) == base(origin) {
            return false;
        }
        is_known |= row.targets.iter().any(|target| target == session_id);
    }
    is_known
}

fn named_in(ledger: &Ledger, name: &str) -> Result<String> {
    let mut found = ledger.named(name);
    if found.is_empty() && name.len() >= FEWEST {
        found = ledger.beginning_with(name);
    }
    match found.as_slice() {
        [session] => Ok((*session).to_owned()),
        [] => {
            let message = format!("no import has made a session {name:?}");
            Err(Error::new(Kind::SessionNotFound, message))
        }
        several => {
            let message = format!("several sessions have {name:?}: {}", several.join(", "));
            Err(Error::new(Kind::InvalidParams, message))
        }
    }
}
