//! The ids of a tree. They are hashed for the table of ids, and stored one after the other.

use super::node::NodeRow;
use hashbrown::DefaultHashBuilder;
use std::hash::BuildHasher;

/// Hashes ids for one tree. Threads that scan a file hash its ids in advance, with a copy of the
/// hasher.
#[derive(Clone, Default)]
pub struct IdHasher(DefaultHashBuilder);

impl IdHasher {
    #[inline]
    pub fn hash(&self, id: &str) -> IdHash {
        self.hash_bytes(id.as_bytes())
    }

    #[inline]
    fn hash_bytes(&self, id: &[u8]) -> IdHash {
        // The low half of the hash.
        #[allow(clippy::cast_possible_truncation)]
        IdHash(self.0.hash_one(id) as u32)
    }
}

/// The hash of an id in one tree. It has only 32 bits, since a scan keeps many hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdHash(pub(super) u32);

impl IdHash {
    /// The hash spread over 64 bits, since the hash table uses the low and the high bits.
    #[inline]
    pub(super) fn wide(self) -> u64 {
        u64::from(self.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// The hash of the id of the row at `at`.
pub(super) fn hash_at(hasher: &IdHasher, rows: &[NodeRow], ids: &[u8], at: u32) -> u64 {
    let id = id_of(rows, ids, at);
    debug_assert!(id.is_some(), "each row has an id");
    hasher.hash_bytes(id.unwrap_or_default()).wide()
}

/// The id of the row at `at`, as a part of `ids`, which has all ids.
pub(super) fn id_of<'i>(rows: &[NodeRow], ids: &'i [u8], at: u32) -> Option<&'i [u8]> {
    let at = at as usize;
    let start = rows.get(at)?.id_at as usize;
    let end = rows
        .get(at + 1)
        .map_or(ids.len(), |next| next.id_at as usize);
    ids.get(start..end)
}
