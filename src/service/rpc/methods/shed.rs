//! `shed_branches` and `unshed_branches` (protocol.md §3.24).

use crate::daemon::commit::ChangePlace;
use treelined_core::durability::Durability;
use treelined_core::error::Result;
use treelined_core::flow::shed;
use treelined_files::log::shed::{StayReason, StayingBranch};
use treelined_files::session::SessionState;
use treelined_files::session::shed::ColdMove;
use treelined_wire as wire;

pub(in crate::rpc) async fn shed_branches(
    place: ChangePlace,
    params: wire::ShedBranchesParams,
) -> Result<wire::ShedBranchesResult> {
    let change = place.writable().await?.caught_up().await?;
    change.guard.check_expected_leaf(&params.expected_leaf_id)?;
    let entry_ids = params.entry_ids.unwrap_or_default();
    let (branches, durability) = change.move_cold(ColdMove::Shed, entry_ids).await?;
    let ids = ids(&branches.moved);
    Ok(wire::ShedBranchesResult {
        shed: branches.moved.into_iter().map(to_wire).collect(),
        staying: branches.staying.into_iter().map(staying).collect(),
        inverse: inverse(wire::ShedVerb::UnshedBranches, ids),
        durability: durability.unwrap_or(Durability::None),
    })
}

pub(in crate::rpc) async fn unshed_branches(
    place: ChangePlace,
    params: wire::UnshedBranchesParams,
) -> Result<wire::UnshedBranchesResult> {
    let change = place.writable().await?.caught_up().await?;
    change.guard.check_expected_leaf(&params.expected_leaf_id)?;
    let entry_ids = params.entry_ids.unwrap_or_default();
    let (branches, durability) = change.move_cold(ColdMove::Unshed(None), entry_ids).await?;
    let entry_ids = ids(&branches.moved);
    Ok(wire::UnshedBranchesResult {
        inverse: inverse(wire::ShedVerb::ShedBranches, entry_ids.clone()),
        entry_ids,
        durability: durability.unwrap_or(Durability::None),
    })
}

/// The number of shed branches, if there are some, and the branches themselves if they are `shown`.
pub(super) fn listed(
    state: &SessionState,
    shown: bool,
) -> Result<(Option<u64>, Vec<wire::ShedBranch>)> {
    if !state.tree.has_shed() {
        return Ok((None, Vec::new()));
    }
    let count = state.tree.shed().len() as u64;
    let branches = if shown {
        state.shed_branches()?
    } else {
        Vec::new()
    };
    Ok((Some(count), branches.into_iter().map(to_wire).collect()))
}

fn ids(branches: &[shed::ShedBranch]) -> Vec<String> {
    let ids = branches.iter().map(|branch| branch.entry_id.clone());
    ids.collect()
}

fn inverse(method: wire::ShedVerb, entry_ids: Vec<String>) -> Option<wire::ShedInverse> {
    (!entry_ids.is_empty()).then_some(wire::ShedInverse {
        method,
        params: wire::ShedInverseArguments { entry_ids },
    })
}

fn to_wire(branch: shed::ShedBranch) -> wire::ShedBranch {
    wire::ShedBranch {
        entry_id: branch.entry_id,
        fork_id: branch.fork_id,
        entries: branch.entries,
        bytes: branch.bytes,
        name: branch.name,
        first_prompt: branch.first_prompt,
    }
}

fn staying(branch: StayingBranch) -> wire::StayingBranch {
    wire::StayingBranch {
        entry_id: branch.entry_id,
        reason: match branch.reason {
            StayReason::Named => wire::StayReason::Named,
            StayReason::Names => wire::StayReason::Names,
            StayReason::Damaged => wire::StayReason::Damaged,
        },
        by: branch.by,
    }
}
