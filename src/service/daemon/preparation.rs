//! The facts that a navigation reads before it asks (protocol.md §4, step 5).

use super::convert::stored::id_list;
use super::{summaries, summary_entries};
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
    /// The material for the summary. If no summarizer runs, it has no entries, no files and no goal.
    pub(super) material: Material,
    /// The entries for the question.
    pub(super) asked: AskedEntries,
    pub(super) model: Option<ModelName>,
    pub(super) draft: Option<Draft>,
    /// The reserved memory for the summary, if the daemon makes it.
    pub(super) memory: Option<Reservation>,
}

/// The entries of a question: the entries after the nearest compaction, and the entries that this compaction kept.
pub(super) enum AskedEntries {
    Bodies {
        entries: Vec<Vec<u8>>,
        kept: Option<Vec<Vec<u8>>>,
    },
    /// For entries that are too large to be sent.
    Ids {
        entries: wire::IdList,
        kept: Option<wire::IdList>,
    },
}

impl Preparation {
    /// Reads the bodies for the question if they have at most `limit` bytes together. Reads what a summarizer needs, if
    /// one runs.
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
        let all = || kept_nodes.iter().chain(plan.entries()).copied();
        let mut material = Material {
            previous_summary: text("summary"),
            ..Material::default()
        };
        if summarizes {
            let edits = summary_entries::edits(state, all())?;
            let count = kept.as_ref().map(Vec::len);
            material.entries = summary_entries::stored(state, all(), edits, count)?;
            material.files = files(state, &plan)?;
            material.goal = goal(state, &plan, |_| true)?;
        }
        let asked = match state.stored_bytes(all()) <= limit {
            true => AskedEntries::read(state, plan.entries(), kept.as_deref(), limit)?,
            false => None,
        };
        let asked = asked.unwrap_or_else(|| AskedEntries::Ids {
            entries: id_list(&state.tree, plan.entries()),
            kept: kept.as_deref().map(|kept| id_list(&state.tree, kept)),
        });
        let draft = plan
            .editor_entry
            .map(|node| state.entry(node))
            .transpose()?;
        Ok(Self {
            material,
            asked,
            model: summaries::model(state)?,
            draft: draft.as_deref().map(draft::draft),
            abandoned_steps: plan.abandoned_steps(&state.tree) as u64,
            plan,
            memory: None,
        })
    }
}

impl AskedEntries {
    /// No entries, after the question.
    pub(super) fn none() -> Self {
        Self::Bodies {
            entries: Vec::new(),
            kept: None,
        }
    }

    /// `None` if the entries have more than `limit` bytes together in the form that clients get.
    fn read(
        state: &SessionState,
        entries: &[Node],
        kept: Option<&[Node]>,
        limit: u64,
    ) -> Result<Option<Self>> {
        let entries = bodies(state, entries)?;
        let kept = kept.map(|kept| bodies(state, kept)).transpose()?;
        let delivered: usize = kept.iter().flatten().chain(&entries).map(Vec::len).sum();
        let fits = delivered as u64 <= limit;
        Ok(fits.then_some(Self::Bodies { entries, kept }))
    }
}

fn bodies(state: &SessionState, nodes: &[Node]) -> Result<Vec<Vec<u8>>> {
    let (bodies, fetches) = (state.bodies(), state.fetch(nodes.iter().copied())?);
    let mut reader = bodies.reader();
    fetches.iter().map(|fetch| reader.entry(fetch)).collect()
}

/// The files that the branch read or changed.
fn files(state: &SessionState, plan: &NavigationPlan) -> Result<FileLists> {
    let mut files = FileCollector::default();
    let bodies = state.bodies();
    let mut reader = bodies.reader();
    for node in plan.compacted().iter().chain(plan.entries()) {
        let fetch = bodies.fetch(&state.tree, *node)?;
        reader.see_entry(&fetch, |entry| files.note_entry(entry))?;
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
