//! Search in all sessions of the session directory, open or not (protocol.md §3.16).
//!
//! The session files alone are true: a search reads them, so its results are current, and the index may be missing, old
//! or damaged without a wrong result. In reading order: [`SearchRequest`] is one search; `scan` finds the matching lines
//! of files; `session` turns the lines of one session into hits, with the branch and the labels of each; `page` sorts
//! hits and keeps the best; `run` does all of it for one search. The `index` of large directories excludes most lines
//! from the scan. A session is opened only if a line of its file matches, and the index cannot say that none of its hits
//! is on the page. This crate promises no interface to other programs.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

mod branch;
mod index;
mod labels;
mod page;
mod request;
mod run;
mod scan;
mod session;
#[cfg(test)]
mod tests;

pub use branch::{Branch, BranchFilter};
pub use index::IndexSettings;
pub use page::{Hit, Key};
pub use request::{EntryFilter, FieldSet, SearchRequest};

use labels::LabelledEntry;
use page::Ceiling;
use run::SearchRun;
use std::cmp::Reverse;
use std::ops::Range;
use std::path::PathBuf;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::cancel::Cancel;
use treelined_files::os::file::{Location, Status};
use treelined_files::store::Store;

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
    /// Whether there may be more sessions and entries: the index was enough for the page.
    pub are_least: bool,
}

/// A file that could not be searched, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadFile {
    pub path: PathBuf,
    pub kind: Kind,
}

/// A file to search, and its parts to scan.
#[derive(Debug)]
pub(crate) struct SearchedFile {
    pub location: Location,
    pub status: Status,
    /// Ascending. The last one reaches to the end of a file that grows. A labelled entry is a part of its own, which may
    /// be within another one.
    pub parts: Vec<SearchedPart>,
    /// The entries whose label has a part of the query, in file order; `None` if they are unknown.
    labelled: Option<Vec<LabelledEntry>>,
    /// Whether each line of the file is known to be one entry with an id of its own, below a header. Then each matching
    /// line is a hit, whatever the other lines have.
    pub is_plain: bool,
    /// Whether its session is in the directory of the request; `None` if that is unknown.
    pub is_in_directory: Option<bool>,
}

/// A part of a file that is scanned.
#[derive(Debug, Clone)]
pub(crate) struct SearchedPart {
    /// Bytes from the start of the file.
    pub span: Range<u64>,
    ceiling: Ceiling,
}

/// The receivers of what a search finds while it runs.
pub struct SearchWatch<'w> {
    /// Receives each hit that is among the best so far; a better one may displace it later.
    pub on_hit: &'w mut dyn FnMut(&Hit),
    /// Receives the bytes of files that were searched, and those that are searched in all.
    pub on_progress: &'w mut dyn FnMut(u64, u64),
}

/// The sessions to search: the store, and the settings of the index.
#[derive(Clone, Copy)]
pub struct SearchedStore<'s> {
    pub store: &'s Store,
    pub index: IndexSettings,
}

impl SearchedFile {
    fn whole(location: Location, status: Status) -> Self {
        Self {
            parts: vec![SearchedPart {
                span: 0..status.size,
                ceiling: Ceiling::NONE,
            }],
            location,
            status,
            labelled: None,
            is_plain: false,
            is_in_directory: None,
        }
    }

    fn bytes(&self) -> u64 {
        let bytes = |part: &SearchedPart| part.span.end - part.span.start;
        self.parts.iter().map(bytes).sum()
    }
}

/// Searches all sessions of the store, the most recently changed files first. Fails with `cancelled`, and if the session
/// directory cannot be read.
pub fn search(
    searched: SearchedStore<'_>,
    request: &SearchRequest,
    cancel: &Cancel,
    watch: &mut SearchWatch<'_>,
) -> Result<SearchOutcome> {
    let SearchedStore { store, index } = searched;
    let mut files = store.session_files()?;
    files.sort_by(|(a, one), (b, other)| {
        let by_time = Reverse(one.modified).cmp(&Reverse(other.modified));
        by_time.then_with(|| a.path().cmp(&b.path()))
    });
    let bytes: u64 = files.iter().map(|(_, status)| status.size).sum();
    let whole = |(at, status): &(Location, Status)| SearchedFile::whole(at.clone(), *status);
    let mut searched: Vec<SearchedFile> = files.iter().map(whole).collect();
    if let Some(cache) = store.cache().filter(|_| bytes >= index.from) {
        index::narrow(&cache, request, &mut searched, cancel);
        searched.retain(|file| !file.parts.is_empty() && file.is_in_directory != Some(false));
        store.index_in_background(move |ending| {
            if let Err(error) = index::update(&cache, index, &files, ending) {
                tracing::info!(%error, "the search index could not be brought up to date");
            }
        });
    }
    if cancel.is_cancelled() {
        return Err(Error::cancelled());
    }
    let mut run = SearchRun::new(store, request, cancel);
    run.files(&searched, index, watch)?;
    Ok(run.finish())
}
