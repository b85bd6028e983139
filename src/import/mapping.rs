//! The versions of readers and mappers. A new version does not change what older versions have written
//! (session-file.md §5.8).

use serde::{Deserialize, Serialize};

/// The version of the readers and mappers. It rises with each change of the entries that they make from a record. Where
/// a change applies, the reader asks [`Former::version_at`].
///
/// Version 2: Claude Code's text beside a result is a message of the user. A message that the model got while it
/// worked is one entry. A second header of Gemini CLI is not a compression.
pub(crate) const VERSION: u32 = 2;

/// The beginning of a source that older versions have read. Each element is a version and the end of its share, in
/// bytes. Versions and ends both rise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Former(Vec<(u32, u64)>);

impl Former {
    /// Adds the share of an import of this version, which has read the source up to `len`. The present version does
    /// not get a share.
    pub(crate) fn and(mut self, version: u32, len: u64) -> Self {
        let end = self.0.last().map_or(0, |(_, end)| *end);
        if version < VERSION && len > end {
            self.0.push((version, len));
        }
        self
    }

    /// The version that decides what the record at this position becomes.
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
