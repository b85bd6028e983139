//! The entries of a session, as counts have them in memory and as a segment has them.

use std::borrow::Cow;
use treelined_core::timestamp::Millis;

/// The bytes of an entry in a segment.
const ENTRY: usize = 24;

/// An entry, or another line with an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountedEntry {
    /// Its line, in bytes from the start of the file.
    pub offset: u64,
    /// `None` if it has no readable time.
    pub at: Option<Millis>,
    /// Its terms, with repetitions.
    pub terms: u32,
    /// The number of its branch: a chain of entries of which each is the first child of the one before.
    pub branch: u32,
    /// The hash of its id.
    pub id: u64,
    /// Whether an entry hangs below it.
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

/// The entries of a session in a segment, without their ids. An entry is decoded when it is asked for, since a question asks
/// for few.
pub(super) struct PackedEntries<'s>(Cow<'s, [u8]>);

impl<'s> PackedEntries<'s> {
    pub(super) fn new(bytes: Cow<'s, [u8]>) -> Self {
        Self(bytes)
    }

    /// Appends entries in the form in which a segment has them.
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
