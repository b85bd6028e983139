//! The place where other programs open a file after a background append (session-file.md §4.9).

use super::state::SessionState;
use crate::clock::SystemSource;
use crate::log::append::Lock;
use treelined_core::error::Result;
use treelined_core::flow::leaf;

impl SessionState {
    /// Ends the file with a record of the place where it opens, if a program that takes the last line for the leaf opens it
    /// elsewhere: one that takes no lock wrote just before a background append, whose record names the place of before.
    pub(super) fn keep_for_others(&mut self, lock: &Lock) {
        /// Each round loses against another writer without a lock.
        const ROUNDS: usize = 4;
        for _ in 0..ROUNDS {
            if self.tree.last_line() == self.tree.file_leaf() {
                return;
            }
            if let Err(error) = self.keep_once(lock) {
                // The entries are written, and this daemon opens the file where it should.
                tracing::warn!(%error, "other programs open the session at another place");
                return;
            }
        }
    }

    fn keep_once(&mut self, lock: &Lock) -> Result<()> {
        let record = leaf::plan_keep(&self.tree, &SystemSource);
        let landed = self.log.write(lock, vec![record])?;
        self.log.take_in(&mut self.tree, &landed)?;
        Ok(())
    }
}
