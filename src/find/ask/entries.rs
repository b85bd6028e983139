//! The entries of a session in two forms: as counts in memory, and packed as in a segment.

use std::borrow::Cow;
use treelined_core::timestamp::Millis;

/// The bytes of an entry in a segment.
const ENTRY: usize = 24;

/// An entry of a session, without its terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountedEntry {
    /// Where its line begins, in bytes from the start of the file.
    pub offset: u64,
    /// `None` if it has no readable time.
    pub at: Option<Millis>,
    /// The number of its terms. A repeated term counts each time.
    pub terms: u32,
    /// The number of its branch. Here, a branch is a chain of entries in which each entry is the first child of the
    /// entry before.
    pub branch: u32,
    /// The hash of its id, or its offset if it has no id.
    pub id: u64,
    /// Whether it has a child.
    pub has_child: bool,
}

/// The entries of a session, in file order.
pub(super) enum EntryList<'c> {
    Counted(&'c [CountedEntry]),
    Packed(PackedEntries<'c>),
}

impl EntryList<'_> {
    /// The entry with this number.
    pub(super) fn get(&self, number: u32) -> Option<CountedEntry> {
        match self {
            Self::Counted(entries) => entries.get(number as usize).copied(),
            Self::Packed(entries) => entries.get(number),
        }
    }
}

/// The entries of a session in a segment, without their ids. Each entry is decoded on use, since a question needs few
/// of them.
pub(super) struct PackedEntries<'s>(Cow<'s, [u8]>);

impl<'s> PackedEntries<'s> {
    pub(super) fn new(bytes: Cow<'s, [u8]>) -> Self {
        Self(bytes)
    }

    /// Appends the entries to `out`, packed as in a segment.
    pub(super) fn pack(entries: &[CountedEntry], out: &mut Vec<u8>) {
        for entry in entries {
            out.extend(entry.offset.to_le_bytes());
            out.extend(entry.at.unwrap_or(Millis::MIN).to_le_bytes());
            out.extend(entry.terms.to_le_bytes());
            out.extend(entry.branch.to_le_bytes());
        }
    }

    /// The entry with this number.
    fn get(&self, number: u32) -> Option<CountedEntry> {
        let (entries, _) = self.0.as_chunks::<ENTRY>();
        let entry = entries.get(number as usize)?;
        let (offset, rest) = entry.split_first_chunk()?;
        let (at, rest) = rest.split_first_chunk()?;
        let (terms, rest) = rest.split_first_chunk()?;
        Some(CountedEntry {
            offset: u64::from_le_bytes(*offset),
            at: Some(i64::from_le_bytes(*at)).filter(|at| *at != Millis::MIN),
            terms: u32::from_le_bytes(*terms),
            branch: u32::from_le_bytes(*rest.first_chunk()?),
            id: 0,
            has_child: false,
        })
    }
}
