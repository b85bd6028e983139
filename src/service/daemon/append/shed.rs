//! Appends below shed entries: the branch is moved back first (session-file.md §4.10).

use serde_json::json;
use treelined_core::error::{Error, Result};
use treelined_core::flow::append::{NewEntry, NewParent};
use treelined_files::session::commit::CommitOutcome;
use treelined_files::session::shed::MovedBranches;

/// The first entry of the shed branch below which an append is, if `error` says that its parent is shed.
pub(super) fn branch_above(entries: &[NewEntry], error: &Error) -> Option<String> {
    let details = error.details.as_ref()?;
    let branch = details.get("shedBranchId")?.as_str()?;
    let shed = details.get("entryId")?.as_str()?;
    let is_above =
        |entry: &NewEntry| matches!(&entry.parent, NewParent::Named(Some(id)) if id == shed);
    entries.iter().any(is_above).then(|| branch.to_owned())
}

/// Whether the branch is back and durable. An error also names the branch that stays shed.
pub(super) fn is_back(
    moved: Result<(MovedBranches, CommitOutcome)>,
    synced: Result<()>,
    branch: &str,
) -> Result<()> {
    let back = moved.and_then(|(branches, _)| match branches.moved.is_empty() {
        true => Err(Error::entry_not_found(branch)),
        false => synced,
    });
    back.map_err(|error| {
        let mut details = error.details.clone().unwrap_or_else(|| json!({}));
        if let Some(details) = details.as_object_mut() {
            details.insert("shedBranchId".to_owned(), json!(branch));
        }
        error.with_details(details)
    })
}
