//! The versions of readers and mappers, so that a new one leaves alone what older ones have written (session-file.md
//! §5.8).

use serde::{Deserialize, Serialize};

/// The version of the readers and mappers. It rises with each change of what they make of a record; the reader asks
/// [`Former::version_at`] where the change applies.
///
/// 2: Claude Code's text beside a result is a message of the user, and a message that was given to the model while it
/// worked is one entry; a second header of Gemini CLI is not a compression.
pub(crate) const VERSION: u32 = 2;

/// The beginning of a source that imports with older versions have read: each version, with the offset in bytes at
/// which its share ends. Both ascend.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Former(Vec<(u32, u64)>);

impl Former {
    /// Adds that an import of this version has read the source up to `len`. The present version has no share.
    pub(crate) fn and(mut self, version: u32, len: u64) -> Self {
        let end = self.0.last().map_or(0, |(_, end)| *end);
        if version < VERSION && len > end {
            self.0.push((version, len));
        }
        self
    }

    /// The version that decides what the record at this offset becomes.
    pub(crate) fn version_at(&self, at: u64) -> u32 {
        let share = self.0.iter().find(|(_, end)| at < *end);
        share.map_or(VERSION, |(version, _)| *version)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_belongs_to_the_version_that_read_it_first() {
        let former = Former::default().and(0, 10).and(1, 10).and(1, 30);
        let former = former.and(VERSION, 90).and(1, 20);
        let versions = [0, 9, 10, 29, 30, 99].map(|at| former.version_at(at));
        assert_eq!(versions, [0, 0, 1, 1, VERSION, VERSION]);
        assert_eq!(serde_json::to_string(&former).unwrap(), "[[0,10],[1,30]]");
        assert!(Former::default().and(VERSION, 5).is_empty());
    }
}
