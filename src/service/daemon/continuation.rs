//! `continue_session`: reads the path, runs the summarizer if the request wants summaries, and records the continuation
//! before its files are made (protocol.md §3.18). [`crate::parts::Handoff`] decides which files an agent gets.

use super::preparation::{self, Preparation};
use super::release::{Release, SessionRequest};
use super::summaries::{Piece, SummaryJob};
use super::summary_entries;
use crate::parts::{Handoff, HandoffRun, PreparedHandoff};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use treelined_core::context::PathStep;
use treelined_core::context::handed::{self, HandedContext, PathMessage};
use treelined_core::durability::Durability;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::{Error, Result};
use treelined_core::flow::compact;
use treelined_core::flow::leaf;
use treelined_core::flow::navigate::{self, Navigation};
use treelined_core::json;
use treelined_core::summary::request::{self, Material, SummaryOptions};
use treelined_core::summary::{ModelName, SummaryRequest, SummarySubject, frame};
use treelined_core::tree::Node;
use treelined_files::blocking::blocking;
use treelined_files::session::SessionState;
use treelined_wire as wire;

/// The default for the most tokens that are handed over.
const LIMIT: u64 = 150_000;

/// The path of an entry, read when the request reaches the front of the queue.
struct Reading {
    cwd: String,
    name: Option<String>,
    path: Vec<PathMessage>,
    model: Option<ModelName>,
    /// The beginning of the path, if a summary replaces it.
    earlier: Option<Box<Material>>,
    left: LeftBranch,
}

/// The branch that the conversation leaves: it has the leaf, and the path does not contain it.
enum LeftBranch {
    /// There is no such branch, or the request does not ask for a summary of it.
    None,
    /// The summary of the branch, which the session has already.
    Summarized(String),
    Material(Box<Material>),
}

/// Hands over the path that `params` names.
pub(crate) async fn run(
    release: Release,
    params: wire::ContinueSessionParams,
) -> Result<wire::ContinueSessionResult> {
    let is_writing = is_writing(&params);
    if is_writing && !release.call.connection.may_place_files() {
        let reason = "must be true from a page or an extension, for which no files are made";
        return Err(Error::invalid_params("dryRun", reason));
    }
    let (request, guard) = release.read(is_writing).await?;
    let limit = params.limit.unwrap_or(LIMIT);
    let daemon = Arc::clone(&request.call.daemon);
    let (params, reading) = blocking(move || {
        let reading = Reading::of(&guard, &params, limit, daemon.parts.handoff()?)?;
        Ok((params, reading))
    })
    .await?;
    let summaries = Summaries {
        request: &request,
        model: reading.model.as_ref(),
    };
    let summary = match &reading.earlier {
        Some(material) => Some(summaries.earlier(material).await?),
        None => None,
    };
    let learned = summaries.left(&reading.left).await?;
    let daemon = Arc::clone(&request.call.daemon);
    let session_id = request.open.id.to_string();
    let mut prepared = blocking(move || {
        daemon.parts.handoff()?.prepare(HandoffRun {
            params: &params,
            limit,
            session_id: &session_id,
            cwd: &reading.cwd,
            name: reading.name.as_deref(),
            path: reading.path,
            summary,
            learned,
            store: &daemon.files.store,
            source: &*daemon.source,
        })
    })
    .await?;
    if is_writing {
        prepared = remember(&request, prepared).await?;
    }
    Ok(prepared.result)
}

/// Writes the record of the continuation, then makes the files.
async fn remember(
    request: &SessionRequest,
    mut prepared: PreparedHandoff,
) -> Result<PreparedHandoff> {
    let change = request.writable().await?;
    let source = Arc::clone(&change.daemon.source);
    let record = std::mem::take(&mut prepared.record);
    let plan =
        move |state: &SessionState| Ok(leaf::plan_continuation(&state.tree, &*source, &record));
    let changed = change.commit(plan, |_, written| written).await?;
    prepared.result.durability = changed.seen.unwrap_or(Durability::None);
    let place = std::mem::replace(&mut prepared.place, Box::new(|| Ok(())));
    blocking(place).await?;
    Ok(prepared)
}

fn is_writing(params: &wire::ContinueSessionParams) -> bool {
    params.dry_run != Some(true) && params.tool != wire::ContinueIn::Text
}

impl Reading {
    fn of(
        state: &SessionState,
        params: &wire::ContinueSessionParams,
        limit: u64,
        handoff: &dyn Handoff,
    ) -> Result<Self> {
        let entry = match &params.entry_id {
            Some(id) => Some(state.find(id)?),
            None => state.leaf(),
        };
        let steps = state.steps(entry);
        let bodies = state.bodies();
        let mut reader = bodies.reader();
        let mut body = |node| reader.entry(&bodies.fetch(&state.tree, node)?);
        let HandedContext {
            messages: mut path,
            model,
        } = handed::context(&state.tree, &steps, &mut body)?;
        let model = model.map(|(provider, model_id)| ModelName { provider, model_id });
        let mut earlier = None;
        let may_compact = params.compact == Some(true) && limit > 0;
        if may_compact && handoff.tokens(params, &path) > limit {
            let kept = state.kept(&steps)?;
            let plan = compact::plan(&steps, kept, limit / 2, 0, &mut body)?;
            keep_from(state, &steps, &plan.first_kept_entry_id, &mut path);
            let nodes = plan.history_nodes.iter().chain(&plan.prefix_nodes);
            let nodes = nodes.copied();
            earlier = Some(Box::new(Material {
                previous_summary: plan.previous_text,
                entries: summary_entries::stored(state, nodes, plan.edits, None)?,
                files: plan.files,
                ..Material::default()
            }));
        }
        let left = match params.learned {
            Some(true) => LeftBranch::of(state, entry)?,
            _ => LeftBranch::None,
        };
        Ok(Self {
            cwd: state.cwd().to_owned(),
            name: state.tree.name().map(str::to_owned),
            path,
            model,
            earlier,
            left,
        })
    }
}

/// Removes the messages of entries before `first_kept`, the first entry that a compaction keeps.
fn keep_from(
    state: &SessionState,
    steps: &[PathStep],
    first_kept: &str,
    path: &mut Vec<PathMessage>,
) {
    let places: HashMap<&str, usize> = steps
        .iter()
        .enumerate()
        .map(|(at, step)| (state.tree.id(step.node), at))
        .collect();
    let first = places.get(first_kept).copied().unwrap_or_default();
    path.retain(|message| {
        let at = places.get(message.entry_id.as_str());
        let is_summary = at
            .and_then(|at| steps.get(*at))
            .is_some_and(|step| step.kind == EntryKind::Compaction);
        !is_summary && at.is_some_and(|at| *at >= first)
    });
}

impl LeftBranch {
    /// The part of the path to the leaf that is not part of the path to the entry. The entries above this part are not
    /// summarized, since the continued conversation has them.
    fn of(state: &SessionState, entry: Option<Node>) -> Result<Self> {
        let tree = &state.tree;
        let (point, left) = tree.branch(state.leaf(), entry);
        if left.is_empty() {
            return Ok(Self::None);
        }
        let left: HashSet<Node> = left.into_iter().collect();
        let nodes = (0..state.tree.node_count()).rev();
        let nodes = nodes.filter_map(|number| state.tree.node(number));
        for node in nodes.filter(|node| state.tree.kind(*node) == EntryKind::BranchSummary) {
            let summary = state.entry(node)?;
            let text = |name: &str| json::get(&summary, name).and_then(json::string);
            let from = text("fromId").and_then(|id| tree.find(&id));
            let is_below = |from: Node| {
                let fork = tree.common_ancestor(tree.parent(node), Some(from));
                tree.is_same_conversation(fork, point) || fork.is_some_and(|at| left.contains(&at))
            };
            if from.is_some_and(|from| left.contains(&from) && is_below(from))
                && let Some(text) = text("summary").filter(|text| !text.trim().is_empty())
            {
                return Ok(Self::Summarized(text.into_owned()));
            }
        }
        let Some(target) = entry.or_else(|| state.tree.entries().next()) else {
            return Ok(Self::None);
        };
        match navigate::plan(&state.tree, target, false) {
            Navigation::Move(plan) if plan.worth_summarizing => {
                let Preparation {
                    plan, mut material, ..
                } = Preparation::read(state, plan, 0, true)?;
                material.goal = preparation::goal(state, &plan, |node| left.contains(&node))?;
                Ok(Self::Material(Box::new(material)))
            }
            _ => Ok(Self::None),
        }
    }
}

/// Writes the summaries that a continuation needs.
struct Summaries<'a> {
    request: &'a SessionRequest,
    model: Option<&'a ModelName>,
}

impl Summaries<'_> {
    async fn left(&self, left: &LeftBranch) -> Result<Option<String>> {
        let material = match left {
            LeftBranch::None => return Ok(None),
            LeftBranch::Summarized(text) => return Ok(Some(text.clone())),
            LeftBranch::Material(material) => Material::clone(material),
        };
        let subject = SummarySubject::Branch;
        let (request, text) = self.write(subject, material).await?;
        Ok(Some(frame::finish(subject, &text, &request.files)))
    }

    /// The summary of the entries that a compaction would replace.
    async fn earlier(&self, material: &Material) -> Result<String> {
        let subject = SummarySubject::Context;
        let (request, text) = self.write(subject, material.clone()).await?;
        Ok(frame::finish(subject, &text, &request.files))
    }

    async fn write(
        &self,
        subject: SummarySubject,
        material: Material,
    ) -> Result<(Arc<SummaryRequest>, String)> {
        let call = &self.request.call;
        let hear = |piece: &Piece<'_>| {
            if let Some(token) = &call.id {
                call.connection.progress(token, piece.total);
            }
        };
        let writing = SummaryJob {
            summarizer: call.daemon.summarizer()?,
            hear: &hear,
            model: self.model,
            abort: &call.cancel,
        };
        let model = self.model.cloned();
        let written = writing.write(move |summarizer| {
            let budget = summarizer.budget(model.as_ref());
            let request = request::request(material, SummaryOptions::default(), budget)?;
            Ok(SummaryRequest { subject, ..request })
        });
        let (request, summary) = written.await?;
        Ok((request, summary.text))
    }
}
