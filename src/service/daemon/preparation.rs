//! The facts that a navigation reads before it asks (protocol.md §4, step 5).

use super::convert::stored::id_list;
use super::summaries;
use crate::memory::Reservation;
use treelined_core::context::Edits;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::entry::draft::{self, Draft};
use treelined_core::error::Result;
use treelined_core::flow::navigate::NavigationPlan;
use treelined_core::json;
use treelined_core::summary::files::FileCollector;
use treelined_core::summary::request::{self, Material};
use treelined_core::summary::{FileLists, ModelName};
use treelined_core::tree::Node;
use treelined_files::session::SessionState;
use treelined_wire as wire;

/// The state of the tree at the beginning of the navigation, with bodies.
pub(super) struct Preparation {
    pub(super) plan: NavigationPlan,
    pub(super) abandoned_steps: u64,
    /// The material for the summary. If no summarizer runs, it has no files and no goal.
    pub(super) material: Material,
    /// The ids of the entries, if the entries are too large to be sent.
    pub(super) ids: Option<Ids>,
    pub(super) model: Option<ModelName>,
    pub(super) draft: Option<Draft>,
    /// The reserved memory for the summary, if the daemon makes it.
    pub(super) memory: Option<Reservation>,
}

/// The ids of entries that are too large to be sent.
pub(super) struct Ids {
    /// The entries after the nearest compaction.
    pub(super) entries: wire::IdList,
    /// The entries that the nearest compaction kept.
    pub(super) kept: Option<wire::IdList>,
}

impl Preparation {
    /// Reads the bodies if they have at most `limit` bytes together, or if the summarizer needs them.
    pub(super) fn read(
        state: &SessionState,
        plan: NavigationPlan,
        limit: u64,
        summarizes: bool,
    ) -> Result<Self> {
        let compaction = plan.previous_compaction().map(|node| state.entry(node));
        let compaction = compaction.transpose()?;
        let text = |name: &str| -> Option<String> {
            let raw = json::get(compaction.as_deref()?, name)?;
            Some(json::string(raw)?.into_owned())
        };
        let kept = compaction.as_ref().map(|_| {
            let first = text("firstKeptEntryId").and_then(|id| state.tree.find(&id));
            plan.kept(&state.tree, first)
        });
        let kept_nodes = kept.as_deref().unwrap_or_default();
        let size = state.stored_bytes(plan.entries().iter().copied())
            + state.stored_bytes(kept_nodes.iter().copied());
        let reads = summarizes || size <= limit;
        let bodies = |nodes: &[Node]| match reads {
            true => bodies(state, nodes),
            false => Ok(Vec::new()),
        };
        let mut material = Material {
            previous_summary: text("summary"),
            kept: kept.as_deref().map(bodies).transpose()?,
            entries: bodies(plan.entries())?,
            ..Material::default()
        };
        if summarizes {
            material.files = files(state, &plan, &material.entries)?;
            material.goal = goal(state, &plan, |_| true)?;
        }
        let delivered = material.kept.iter().flatten().chain(&material.entries);
        let delivered: usize = delivered.map(Vec::len).sum();
        let fits = reads && delivered as u64 <= limit;
        let ids = (!fits).then(|| Ids {
            entries: id_list(&state.tree, plan.entries()),
            kept: kept.map(|kept| id_list(&state.tree, &kept)),
        });
        let draft = plan
            .editor_entry
            .map(|node| state.entry(node))
            .transpose()?;
        Ok(Self {
            material,
            ids,
            model: summaries::model(state)?,
            draft: draft.as_deref().map(draft::draft),
            abandoned_steps: plan.abandoned_steps(&state.tree) as u64,
            plan,
            memory: None,
        })
    }
}

fn bodies(state: &SessionState, nodes: &[Node]) -> Result<Vec<Vec<u8>>> {
    let (bodies, fetches) = (state.bodies(), state.fetch(nodes.iter().copied())?);
    let mut reader = bodies.reader();
    fetches.iter().map(|fetch| reader.entry(fetch)).collect()
}

/// The files that the branch read or changed. `entries` are the bodies after the compaction of the branch.
fn files(state: &SessionState, plan: &NavigationPlan, entries: &[Vec<u8>]) -> Result<FileLists> {
    let mut files = FileCollector::default();
    let (bodies, fetches) = (
        state.bodies(),
        state.fetch(plan.compacted().iter().copied())?,
    );
    let mut reader = bodies.reader();
    for fetch in &fetches {
        reader.see_entry(fetch, |entry| files.note_entry(entry))?;
    }
    for entry in entries {
        files.note_entry(entry);
    }
    Ok(files.into_lists())
}

/// The goal of the branch, after the context edits on its path. It is the text of an entry that `takes` accepts.
pub(super) fn goal(
    state: &SessionState,
    plan: &NavigationPlan,
    takes: impl Fn(Node) -> bool,
) -> Result<Option<String>> {
    let mut edits = Edits::default();
    for node in state.tree.path(plan.tip()) {
        if state.tree.kind(node) == EntryKind::ContextEdit {
            edits.note(&state.entry(node)?);
        }
    }
    for node in plan.goals(&state.tree).filter(|node| takes(*node)) {
        if let Some(goal) = request::goal(state.entry(node)?, &edits) {
            return Ok(Some(goal));
        }
    }
    Ok(None)
}
