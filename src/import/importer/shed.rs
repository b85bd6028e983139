//! Sessions with shed branches: an import compares a session with its source, so it needs all lines of the session
//! (session-file.md §4.10).

use super::batch::Batch;
use std::collections::HashMap;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::log::{cold, shed};
use treelined_files::os::file::Location;

/// Whether a session has at least as many bytes as it had once. The lines of shed branches count.
pub(super) fn is_as_long(at: &Location, len: Option<u64>) -> bool {
    cold::size_with(at).is_ok_and(|size| len.is_none_or(|len| size >= len))
}

/// Moves the shed branches of the sessions of a batch back. A session whose branches cannot be moved back is not
/// compared.
pub(super) fn bring_back(batch: &mut Batch, known: &HashMap<String, Location>, writes: bool) {
    let sessions = batch.forest.sessions.iter().enumerate();
    let failed: Vec<(usize, Error)> = sessions
        .filter_map(|(number, tree)| {
            let at = known.get(&tree.session_id)?;
            Some((number, whole(at, writes).err()?))
        })
        .collect();
    batch.not_compared.extend(failed);
}

fn whole(at: &Location, writes: bool) -> Result<()> {
    match writes {
        true => shed::restore(at),
        false if cold::is_there(at) => {
            let why = "the session has shed branches, which only an import that writes brings back: \
                       run `treelined unshed` first";
            Err(Error::new(Kind::SessionLocked, why))
        }
        false => Ok(()),
    }
}
