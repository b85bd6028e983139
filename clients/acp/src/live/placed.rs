//! Files that were made for sessions of the agent.

use std::fs;
use uuid::Uuid;

/// A file that was made for a session.
#[derive(Debug)]
pub(crate) struct Placed {
    path: String,
    hash: Uuid,
}

impl Placed {
    pub(super) fn look(path: String) -> Option<Placed> {
        let hash = hash(&path)?;
        Some(Placed { path, hash })
    }

    /// Removes the file, unless it was changed since it was made.
    pub(super) fn remove(&self) {
        if hash(&self.path) == Some(self.hash) {
            let _gone = fs::remove_file(&self.path);
        }
    }
}

fn hash(path: &str) -> Option<Uuid> {
    let bytes = fs::read(path).ok()?;
    Some(Uuid::new_v5(&Uuid::NAMESPACE_OID, &bytes))
}
