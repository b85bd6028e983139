//! Search in all sessions of the session directory, open or not (protocol.md §3.16).
//!
//! A search reads the session files, so its results are current. The index only makes it faster: if the index is
//! missing, old or damaged, the results are the same. In reading order: [`SearchRequest`] is one search; `scan` finds
//! the matching lines of files; `session` turns the lines of one session into hits, with the branch and the labels of
//! each; `page` sorts hits and keeps the best; `run` does all of it for one search. The `index` of large directories
//! excludes most lines from the scan. A session is opened only if a line of its file matches, and if one of its hits
//! may be on the page. [`ask`] ranks entries by a question instead. `left` finds why a branch was left, `turn` finds
//! which branches were left in the turn of an entry, and `explain` adds this to hits. This crate promises no interface
//! to other programs.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "numbers of tests are small"
    )
)]

mod ask;
mod branch;
mod explain;
mod file;
mod index;
mod labels;
mod left;
mod outcome;
mod page;
mod request;
mod run;
mod scan;
mod searched;
mod session;
#[cfg(test)]
mod tests;
mod turn;
mod weights;

pub use ask::{
    AskIndex, AskRequest, AskState, MoreHits, NearWords, Phrases, RankedLines, Ranking,
    RankingPage, ask, known_values, rank_lines, unknown_values,
};
pub use branch::Branch;
use file::SearchedFile;
pub use index::IndexSettings;
pub use outcome::{SearchOutcome, SearchWatch, Totals, UnreadFile};
pub use page::{Hit, Key};
pub use request::{DirectoryTest, EntryFilter, FieldSet, SearchRequest, WantedDirectory};

pub use left::{LeftBranch, LeftReason, ReasonKind, SaidText};
pub use searched::SearchedStore;
pub use turn::{LeftAttempt, LeftInTurn};

use run::SearchRun;
use std::cmp::Reverse;
use treelined_core::error::{Error, Result};
use treelined_files::cancel::Cancel;
use treelined_files::os::file::{Location, Status};

/// Searches all sessions of the store, the most recently changed files first. Fails with `cancelled`, and if the
/// session directory cannot be read.
pub fn search(
    searched: SearchedStore<'_>,
    request: &SearchRequest,
    cancel: &Cancel,
    watch: &mut SearchWatch<'_>,
) -> Result<SearchOutcome> {
    let SearchedStore { store, index } = searched;
    let (mut files, shed) = (searched.files(request)?, searched.shed(request)?);
    files.sort_by(|(a, one), (b, other)| {
        let by_time = Reverse(one.modified).cmp(&Reverse(other.modified));
        by_time.then_with(|| a.path().cmp(&b.path()))
    });
    let bytes: u64 = files.iter().map(|(_, status)| status.size).sum();
    let whole = |(at, status): &(Location, Status)| SearchedFile::whole(at.clone(), *status);
    let mut searched: Vec<SearchedFile> = files.iter().map(whole).collect();
    let is_indexed = bytes >= index.from && request.session.is_none();
    if let Some(cache) = store.cache().filter(|_| is_indexed) {
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
    let mut outcome = run.finish();
    outcome.totals.shed = shed;
    Ok(outcome)
}
