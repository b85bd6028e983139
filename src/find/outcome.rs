//! The hits of a search, and their receivers.

use super::page::{Hit, Key};
use std::path::PathBuf;
use treelined_core::error::Kind;

/// The result of a search.
#[derive(Debug, Default)]
pub struct SearchOutcome {
    /// The best hits after the cursor, in order.
    pub hits: Vec<(Key, Hit)>,
    pub totals: Totals,
    /// Whether more hits follow.
    pub has_more: bool,
    /// Files that could not be searched.
    pub partial: Vec<UnreadFile>,
}

/// Sums over all pages of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sessions with a hit.
    pub sessions: u64,
    /// Entries that are hits.
    pub entries: u64,
    /// The bytes of files that the scan read.
    pub scanned_bytes: u64,
    /// Whether there may be more sessions and entries than these numbers say. If so, the search ended as soon as its
    /// page was known.
    pub are_least: bool,
    /// Sessions that were not read completely, since the time was over.
    pub unread: u64,
    /// Searched sessions with shed branches. The shed branches are not searched.
    pub shed: u64,
}

/// A file that could not be searched, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadFile {
    pub path: PathBuf,
    pub kind: Kind,
}

/// The receivers of what a search finds while it runs.
pub struct SearchWatch<'w> {
    /// Receives each hit that is among the best so far. A better hit may displace it later.
    pub on_hit: &'w mut dyn FnMut(&Hit),
    /// Receives two numbers: how many bytes were searched so far, and how many will be searched in all.
    pub on_progress: &'w mut dyn FnMut(u64, u64),
}
