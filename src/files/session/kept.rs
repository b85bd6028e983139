//! The position where other programs open a file after a background append (session-file.md §4.9).

use super::state::SessionState;
use crate::clock::SystemSource;
use crate::log::append::Lock;
use treelined_core::error::Result;
use treelined_core::flow::leaf;

impl SessionState {
    /// Ends the file with a record of the position where the file opens, if programs that treat the last line as the
    /// leaf need this record. Without the record they may open the file at another position: if a program without the
    /// lock writes just before a background append, the record of this append names the earlier position.
    pub(super) fn keep_for_others(&mut self, lock: &Lock) {
        /// A round fails if another program that takes no lock writes again.
        const ROUNDS: usize = 4;
        for _ in 0..ROUNDS {
            if self.tree.last_line() == self.tree.file_leaf() {
                return;
            }
            if let Err(error) = self.keep_once(lock) {
                // The entries are written, and this daemon opens the file at the right position.
                tracing::warn!(%error, "other programs open the session at another place");
                return;
            }
        }
    }

    fn keep_once(&mut self, lock: &Lock) -> Result<()> {
        let mut lines = vec![leaf::plan_keep(&self.tree, &SystemSource)];
        self.sign(&mut lines);
        let landed = self.log.write(lock, lines)?;
        self.log.take_in(&mut self.tree, &landed)?;
        Ok(())
    }
}
