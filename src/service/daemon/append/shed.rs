//! Appends below shed entries. The shed branch is moved back first, unless the append would be refused even after that
//! (session-file.md §4.10).

use treelined_core::error::{Error, Result};
use treelined_core::flow::PlannedLines;
use treelined_core::flow::append::{NewEntry, NewParent, Planner};
use treelined_core::id::ExpectedLeaf;
use treelined_files::session::SessionState;

/// Plans an append after the operations that `planner` has planned; `None` if these operations must be written first.
pub(super) fn planned(
    state: &SessionState,
    planner: &mut Planner<'_>,
    entries: &[NewEntry],
    expected: &ExpectedLeaf,
) -> Result<Option<PlannedLines>> {
    let stored = |node| state.entry(node);
    let planned = planner.plan(entries, &stored);
    let first = entries.first();
    match &planned {
        Ok(None) => return Ok(None),
        // The first attempt of a repeated append has moved the leaf, so the expected leaf is not checked.
        Ok(Some(planned)) if planned.lines.is_empty() => {}
        _ if first.is_some_and(|entry| entry.background) => match expected {
            ExpectedLeaf::Any => {}
            _ if planner.has_planned() => return Ok(None),
            expected => state.check_expected_tip(expected, first.and_then(parent))?,
        },
        _ => match (expected, planner.last()) {
            (ExpectedLeaf::Any, _) => {}
            (ExpectedLeaf::At(expected), Some(last)) if expected == last => {}
            (_, Some(_)) => return Ok(None),
            (expected, None) => state.check_expected_leaf(expected)?,
        },
    }
    planned
}

/// The parent that an entry names.
fn parent(entry: &NewEntry) -> Option<&str> {
    match &entry.parent {
        NewParent::Named(parent) => parent.as_deref(),
        NewParent::Previous => None,
    }
}

/// The shed branch that an append needs, by its first entry. `None` unless `error` says that the append has a shed
/// parent.
pub(super) fn branch_above(entries: &[NewEntry], error: &Error) -> Option<String> {
    let details = error.details.as_ref()?;
    let branch = details.get("shedBranchId")?.as_str()?;
    let shed = details.get("entryId")?.as_str()?;
    let is_above = |entry: &NewEntry| parent(entry) == Some(shed);
    entries.iter().any(is_above).then(|| branch.to_owned())
}
