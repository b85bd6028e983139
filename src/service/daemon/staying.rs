//! The ends of a navigation that does not move the leaf (protocol.md §4.2, §3.12, §3.20, §3.23): a label, a judgement,
//! an archive, or a merge that an earlier request has made.

use super::convert::stored::raw;
use super::navigation::{Destination, Navigator, aborted, unmoved};
use super::other_session::OtherSession;
use super::release::PlannedOperation;
use std::sync::Arc;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::branch;
use treelined_core::flow::navigate;
use treelined_core::id::EntryId;
use treelined_core::json;
use treelined_files::session::SessionState;
use treelined_wire::{self as wire, NavigationReason};

impl Navigator {
    /// Step 2, if the leaf is the target: appends the label, if the caller gives one.
    pub(super) async fn stay(
        &self,
        planning: PlannedOperation,
        target_id: EntryId,
    ) -> Result<wire::Navigation> {
        let leaf_id = planning.guard.leaf_id().map(EntryId::new);
        let Some(label) = self.label.clone() else {
            return Ok(unmoved(
                NavigationReason::AlreadyThere,
                false,
                &leaf_id,
                &leaf_id,
            ));
        };
        let change = planning.into_change();
        let (source, abort) = (Arc::clone(&change.daemon.source), change.cancel.clone());
        let expected = self.expected.clone();
        let write = move |state: &SessionState| {
            state.check_expected_leaf(&expected)?;
            // From this point the navigation cannot be aborted.
            if !abort.commit() {
                return Err(Error::cancelled());
            }
            let planned = navigate::label_at_leaf(&state.tree, &*source, &target_id, &label);
            Ok(planned)
        };
        let then =
            |state: &SessionState, written: Option<Durability>| -> Result<wire::Navigation> {
                let entry = state.leaf().map(|node| state.entry(node)).transpose()?;
                Ok(wire::Navigation {
                    new_leaf_id: state.leaf_id().map(str::to_owned),
                    label_entry: entry.as_deref().map(raw),
                    durability: written.unwrap_or(Durability::None),
                    ..unmoved(NavigationReason::AlreadyThere, false, &leaf_id, &leaf_id)
                })
            };
        match change.commit(write, then).await {
            Ok(changed) => changed.seen,
            Err(error) if error.kind == Kind::Cancelled => Ok(aborted(&leaf_id)),
            Err(error) => Err(error),
        }
    }

    /// Archives the branch that begins with this entry. The leaf is not in the branch.
    pub(super) async fn archive(
        &self,
        planning: PlannedOperation,
        head_id: EntryId,
    ) -> Result<wire::Navigation> {
        let leaf_id = planning.guard.leaf_id().map(EntryId::new);
        let change = planning.into_change();
        let source = Arc::clone(&change.daemon.source);
        let (expected, named) = (self.expected.clone(), self.within.clone());
        let write = move |state: &SessionState| {
            state.check_expected_leaf(&expected)?;
            let head = state.find(head_id.as_str())?;
            let within = branch::within(&state.tree, &named, head)?;
            branch::plan_archive(&state.tree, &*source, head, &within)
        };
        let durability = change.commit(write, |_, written| written).await?.seen;
        Ok(wire::Navigation {
            reason: None,
            durability: durability.unwrap_or(Durability::None),
            ..unmoved(NavigationReason::AlreadyThere, false, &leaf_id, &leaf_id)
        })
    }

    /// The result of a merge that an earlier request has made.
    pub(super) fn merged_before(
        &self,
        planning: &PlannedOperation,
        summary_id: &EntryId,
    ) -> Result<wire::Navigation> {
        let guard = &planning.guard;
        let leaf_id = guard.leaf_id().map(EntryId::new);
        let entry = guard.entry(guard.find(summary_id.as_str())?)?;
        let from_hook = json::get(&entry, "fromHook") == Some(b"true");
        Ok(wire::Navigation {
            summary_entry: Some(raw(&entry)),
            from_hook: Some(from_hook),
            ..unmoved(NavigationReason::AlreadyThere, false, &leaf_id, &leaf_id)
        })
    }

    /// Writes the judgement of a choice if the leaf is already at the candidate.
    pub(super) async fn judge(&self, planning: PlannedOperation) -> Result<wire::Navigation> {
        let leaf_id = planning.guard.leaf_id().map(EntryId::new);
        let change = planning.into_change();
        let source = Arc::clone(&change.daemon.source);
        let (expected, judgements) = (self.expected.clone(), self.judgements.clone());
        let write = move |state: &SessionState| {
            state.check_expected_leaf(&expected)?;
            Ok(navigate::judge_at_leaf(&state.tree, &*source, &judgements))
        };
        let then = |state: &SessionState, written: Option<Durability>| wire::Navigation {
            new_leaf_id: state.leaf_id().map(str::to_owned),
            durability: written.unwrap_or(Durability::None),
            ..unmoved(NavigationReason::AlreadyThere, false, &leaf_id, &leaf_id)
        };
        Ok(change.commit(write, then).await?.seen)
    }
}

impl OtherSession {
    /// The destination of a merge. It merges the branch of this other session that ends at `tip_id`. Default: the
    /// branch that ends at the leaf.
    pub(super) fn target(&self, state: &SessionState, tip_id: Option<&str>) -> Result<Destination> {
        let other = &self.guard.tree;
        let tip = self.find(tip_id)?;
        // A branch that differs only by bookkeeping after its last step is the same branch.
        let tip = other.skip_bookkeeping(Some(tip)).unwrap_or(tip);
        let tip_id = other.id(tip);
        if let Some(node) = navigate::merged_before(&state.tree, &self.id, tip_id) {
            return Ok(Destination::Merged(EntryId::new(state.tree.id(node))));
        }
        Ok(
            match navigate::plan_merge_from(&state.tree, &self.id, other, tip) {
                navigate::Navigation::Move(plan) => Destination::Move(plan),
                navigate::Navigation::AlreadyThere => Destination::Leaf(EntryId::new(tip_id)),
            },
        )
    }
}
