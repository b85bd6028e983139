//! A session that an import has made, by its name: its id or that of a conversation in it.

use super::ledger::Ledger;
use super::origin::Origins;
use std::path::Path;
use treelined_core::error::{Error, Kind, Result};

/// The id of the session that an import has made and that has this id, or has a tool's conversation with this id.
/// `sessionNotFound` if there is none, `invalidParams` if several tools gave this id.
pub fn session_named(session_dir: &Path, name: &str) -> Result<String> {
    named_in(&Ledger::open(session_dir, true)?, name)
}

/// Deletes the kept bytes of the sources of a session, named as for [`session_named`]; returns the number of sources.
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

/// Whether the kept bytes of a source of this session were deleted by [`forget`]: imports know the session, and none of its
/// sources has this name any more, in whatever version.
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
    let found = ledger.named(name);
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
