//! Brings the kept counts of sessions up to date.

use super::counts::Counts;
use super::kept::{self, KIND, KeptCounts};
use super::segments::{self, Segments};
use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use treelined_files::cache::Cache;
use treelined_files::cancel::Cancel;
use treelined_files::os::file::{Location, Status};
use treelined_files::parallel::{self, ThreadPlan};

/// A file is counted again when it has grown by this number of bytes, or by an eighth (`PART`) of the bytes that were
/// counted.
const WORTHWHILE: u64 = 64 << 10;
const PART: u64 = 8;
/// The number of files that are counted at once. The counts of each are in memory meanwhile.
const AT_ONCE: usize = 2;

/// The bytes of files that have no counts, so that a search must read them.
pub(super) fn missing(cache: &Cache, segments: &Segments, files: &[(Location, Status)]) -> u64 {
    let missing = |(_, status): &(Location, Status)| {
        if segments.row(*status).is_some() {
            return 0;
        }
        let kept = KeptCounts::open(cache, *status);
        let end = kept.map_or(0, |kept| kept.fingerprint.end());
        status.size.saturating_sub(end)
    };
    files.iter().map(missing).sum()
}

/// Whether a file with this status must be counted.
fn is_due(cache: &Cache, segments: &Segments, status: Status) -> bool {
    if segments.row(status).is_some() {
        return false;
    }
    let Some(kept) = KeptCounts::open(cache, status) else {
        return status.size > 0;
    };
    let end = kept.fingerprint.end();
    let behind = status.size.min(kept::MOST).saturating_sub(end);
    let is_other = kept.status != status && status.size <= end;
    is_other || behind > 0 && (behind >= WORTHWHILE || behind >= end / PART)
}

/// Keeps the counts in `read`, which a search has made of whole files. Counts the other files that have no counts. Then
/// updates the segments, if `files` has the files of all sessions. If the update is cancelled, the counts that are
/// already kept remain.
pub(super) fn update(
    cache: &Cache,
    segments: &Segments,
    (files, are_all): (&[(Location, Status)], bool),
    read: &HashMap<usize, Counts>,
    cancel: &Cancel,
) -> io::Result<()> {
    let count = |(): &mut (), number: usize| {
        let Some((location, status)) = files.get(number) else {
            return Ok(false);
        };
        match read.get(&number) {
            _ if cancel.is_cancelled() || status.size == 0 => Ok(false),
            Some(counts) => kept::keep(cache, location, *status, counts),
            None if !is_due(cache, segments, *status) => Ok(false),
            None => kept::count(cache, location, *status, cancel),
        }
    };
    let mut has_written = false;
    let take = |written: io::Result<bool>| match written {
        Ok(written) => {
            has_written |= written;
            ControlFlow::Continue(())
        }
        Err(error) => ControlFlow::Break(error),
    };
    let plan = ThreadPlan::up_to(AT_ONCE);
    let counted = parallel::map_in_order(files.len(), plan, || (), count, take);
    if let ControlFlow::Break(error) = counted {
        return Err(error);
    }
    // The segments come before `prune`: a session in a segment does not need its own file of counts.
    if are_all {
        segments::update(cache, segments, files, cancel)?;
    }
    match has_written {
        true => cache.prune(&KIND),
        false => Ok(()),
    }
}
