//! Looks into several session files at once.

use crate::outcome::UnreadFile;
use std::ops::ControlFlow;
use treelined_core::error::{Error, Kind, Result};
use treelined_files::cancel::Cancel;
use treelined_files::os::file::{Location, Status};
use treelined_files::parallel::{self, ThreadPlan};

const MAX_THREADS: usize = 8;

/// Calls `look` for some files. Returns each result with the number of its file. Files that cannot be read are added to
/// `partial`.
pub(super) fn in_files<W: Sync, T: Send>(
    of_files: &[(usize, W)],
    files: &[(Location, Status)],
    cancel: &Cancel,
    partial: &mut Vec<UnreadFile>,
    look: impl Fn(&W, &Location) -> Result<T> + Sync,
) -> Result<Vec<(usize, T)>> {
    let look = |(): &mut (), at: usize| {
        let (number, wanted) = of_files.get(at)?;
        let (location, _) = files.get(*number)?;
        Some((*number, look(wanted, location)))
    };
    let plan = ThreadPlan::up_to(if of_files.len() < 4 { 1 } else { MAX_THREADS });
    let mut all = Vec::new();
    let done = parallel::map_in_order(
        of_files.len(),
        plan,
        || (),
        look,
        |found| {
            match found {
                Some((number, Ok(found))) => all.push((number, found)),
                Some((number, Err(error))) if error.kind != Kind::Cancelled => {
                    let path = files.get(number).map(|(location, _)| location.path());
                    partial.extend(path.map(|path| UnreadFile {
                        path,
                        kind: error.kind,
                    }));
                }
                _ => {}
            }
            match cancel.is_cancelled() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        },
    );
    match done {
        ControlFlow::Continue(()) => Ok(all),
        ControlFlow::Break(()) => Err(Error::cancelled()),
    }
}
