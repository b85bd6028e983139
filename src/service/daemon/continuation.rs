//! `continue_session`: reads the path, has the summaries written that are wanted, and remembers the continuation before
//! its files are made (protocol.md §3.18). What an agent gets is decided by the part [`crate::parts::Handoff`].

use super::call::Call;
use super::commit::Change;
use super::navigation::Preparation;
use super::open_session::{OpenSession, Place, SessionGuard, check_writable, guard};
use super::queue::Scope;
use super::reading;
use super::summaries::{Listener, SummaryJob};
use crate::parts::{HandoffRun, PathMessage, PreparedHandoff};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use treelined_core::context::{self, Format, PathStep};
use treelined_core::durability::Durability;
use treelined_core::entry::Kind as EntryKind;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::compact::{self, CompactionPlan};
use treelined_core::flow::leaf;
use treelined_core::flow::navigate::{self, Navigation};
use treelined_core::json;
use treelined_core::summary::request::{self, Material, SummaryOptions};
use treelined_core::summary::{ModelName, SummaryRequest, SummarySubject, frame};
use treelined_core::tree::Node;
use treelined_files::blocking::blocking;
use treelined_files::session::SessionState;
use treelined_wire as wire;

/// The most tokens that are handed over by default.
pub(crate) const LIMIT: u64 = 150_000;
/// The most bytes of messages that are handed over.
const MAX_BYTES: usize = 512 << 20;

/// A request to hand a path over.
pub(crate) struct Continuation {
    call: Arc<Call>,
    params: wire::ContinueSessionParams,
    place: Place,
}

/// The path of an entry, as it was when the request was reached.
struct Reading {
    cwd: String,
    name: Option<String>,
    path: Vec<PathMessage>,
    model: Option<ModelName>,
    /// The beginning of the path, which a summary is to replace.
    earlier: Option<CompactionPlan>,
    left: LeftBranch,
}

/// The branch that is left.
enum LeftBranch {
    /// None, or nothing about it is wanted.
    None,
    /// Its summary.
    Summarized(String),
    Material(Box<Material>),
}

impl Continuation {
    pub(crate) fn new(call: &Arc<Call>, params: wire::ContinueSessionParams) -> Result<Self> {
        if is_writing(&params) && !call.connection.may_place_files() {
            let reason = "must be true from a page or an extension, for which no files are made";
            return Err(Error::invalid_params("dryRun", reason));
        }
        Ok(Self {
            call: Arc::clone(call),
            place: call.place(params.session_id.as_deref(), Scope::Session),
            params,
        })
    }

    pub(crate) async fn run(self) -> Result<wire::ContinueSessionResult> {
        let Self {
            call,
            params,
            place,
        } = self;
        let asked = place.asked;
        let (open, turn) = guard(place.await?, asked)?;
        let mut turn = call.daemon.caught_up(&open, turn).await?;
        let is_writing = is_writing(&params);
        if is_writing {
            check_writable(&open, &mut turn)?;
        }
        let (params, reading) = blocking(move || {
            let reading = Reading::of(&turn, &params)?;
            Ok((params, reading))
        })
        .await?;
        let summaries = Summaries {
            call: &call,
            open: &open,
            model: reading.model.as_ref(),
        };
        let summary = match &reading.earlier {
            Some(plan) => Some(summaries.earlier(plan).await?),
            None => None,
        };
        let learned = summaries.left(&reading.left).await?;
        let daemon = Arc::clone(&call.daemon);
        let session_id = open.id.to_string();
        let mut prepared = blocking(move || {
            daemon.handoff()?.prepare(HandoffRun {
                params: &params,
                session_id: &session_id,
                cwd: &reading.cwd,
                name: reading.name.as_deref(),
                path: reading.path,
                summary,
                learned,
                store: &daemon.store,
                source: &*daemon.source,
            })
        })
        .await?;
        if is_writing {
            let place = call.place(Some(&open.id), Scope::Session);
            let asked = place.asked;
            let (open, turn) = guard(place.await?, asked)?;
            prepared = remember(&call, open, turn, prepared).await?;
        }
        Ok(prepared.result)
    }
}

/// Writes the record, then makes the files.
async fn remember(
    call: &Arc<Call>,
    open: Arc<OpenSession>,
    mut turn: SessionGuard,
    mut prepared: PreparedHandoff,
) -> Result<PreparedHandoff> {
    check_writable(&open, &mut turn)?;
    let change = Change::new(call, open, turn);
    let source = Arc::clone(&change.daemon.source);
    let record = std::mem::take(&mut prepared.record);
    let plan =
        move |core: &SessionState| Ok(leaf::plan_continuation(&core.tree, &*source, &record));
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
    fn of(core: &SessionState, params: &wire::ContinueSessionParams) -> Result<Self> {
        let entry = match &params.entry_id {
            Some(id) => Some(core.find(id)?),
            None => core.leaf(),
        };
        let steps = reading::steps(core, entry);
        let (mut path, model) = messages(core, &steps)?;
        let mut earlier = None;
        let limit = params.limit.unwrap_or(LIMIT);
        let json = path.iter().map(|message| message.json.as_slice());
        if params.compact == Some(true) && limit > 0 && context::estimated_tokens(json) > limit {
            let kept = reading::kept(core, &steps)?;
            let mut body = |node| core.entry(node);
            let plan = compact::plan(&steps, kept, limit / 2, u64::MAX, &mut body)?;
            keep_from(core, &steps, &plan.first_kept_entry_id, &mut path);
            earlier = Some(plan);
        }
        let left = match params.learned {
            Some(true) => LeftBranch::of(core, entry)?,
            _ => LeftBranch::None,
        };
        Ok(Self {
            cwd: core.cwd().to_owned(),
            name: core.tree.name().map(str::to_owned),
            path,
            model,
            earlier,
            left,
        })
    }
}

/// The context at the end of a path.
fn messages(
    core: &SessionState,
    steps: &[PathStep],
) -> Result<(Vec<PathMessage>, Option<ModelName>)> {
    let kept = reading::kept(core, steps)?;
    let bodies = core.bodies();
    let mut reader = bodies.reader();
    let mut imported = HashSet::new();
    let mut body = |node: Node| {
        let entry = reader.entry(&bodies.fetch(&core.tree, node)?)?;
        if core.tree.kind(node) == EntryKind::CustomMessage && json::get(&entry, "origin").is_some()
        {
            imported.insert(core.tree.id(node).to_owned());
        }
        Ok(entry)
    };
    let context = context::build_within(steps, kept, Format::Agent, MAX_BYTES, &mut body);
    let context = context.map_err(|error| match error.kind {
        Kind::ResponseTooLarge => {
            let why = "the path has more than 512 MiB: hand over the last turns, or compact it";
            Error::new(Kind::ContextTooLarge, why)
        }
        _ => error,
    })?;
    let ids = context.entry_ids.into_iter();
    let messages = context.messages.into_iter().zip(ids).map(|(json, id)| {
        let entry_id = id.unwrap_or_default();
        PathMessage {
            is_scaffolding: imported.contains(&entry_id),
            json,
            entry_id,
        }
    });
    let model = context
        .model
        .map(|(provider, model_id)| ModelName { provider, model_id });
    Ok((messages.collect(), model))
}

/// Removes the messages of entries before the one that a compaction keeps first.
fn keep_from(
    core: &SessionState,
    steps: &[PathStep],
    first_kept: &str,
    path: &mut Vec<PathMessage>,
) {
    let places: HashMap<&str, usize> = steps
        .iter()
        .enumerate()
        .map(|(at, step)| (core.tree.id(step.node), at))
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
    /// The part of the path to the leaf that is not on the path to the entry.
    fn of(core: &SessionState, entry: Option<Node>) -> Result<Self> {
        let (_, left) = core.tree.branch(core.leaf(), entry);
        if left.is_empty() {
            return Ok(Self::None);
        }
        let nodes = (0..core.tree.node_count()).rev();
        let nodes = nodes.filter_map(|number| core.tree.node(number));
        for node in nodes.filter(|node| core.tree.kind(*node) == EntryKind::BranchSummary) {
            let summary = core.entry(node)?;
            let text = |name: &str| json::get(&summary, name).and_then(json::string);
            let from = text("fromId").and_then(|id| core.tree.find(&id));
            if from.is_some_and(|from| left.contains(&from))
                && let Some(text) = text("summary").filter(|text| !text.trim().is_empty())
            {
                return Ok(Self::Summarized(text.into_owned()));
            }
        }
        let Some(target) = entry.or_else(|| core.tree.entries().next()) else {
            return Ok(Self::None);
        };
        match navigate::plan(&core.tree, target, false) {
            Navigation::Move(plan) if plan.worth_summarizing => {
                let material = Preparation::read(core, plan, 0, true)?.material;
                Ok(Self::Material(Box::new(material)))
            }
            _ => Ok(Self::None),
        }
    }
}

/// Writes the summaries that a continuation needs.
struct Summaries<'a> {
    call: &'a Arc<Call>,
    open: &'a OpenSession,
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
    async fn earlier(&self, plan: &CompactionPlan) -> Result<String> {
        let subject = SummarySubject::Context;
        let prefix = plan.turn_prefix.iter().flatten();
        let material = Material {
            previous_summary: plan.previous_text.clone(),
            entries: plan.history.iter().chain(prefix).cloned().collect(),
            files: plan.files.clone(),
            ..Material::default()
        };
        let (request, text) = self.write(subject, material).await?;
        Ok(frame::finish(subject, &text, &request.files))
    }

    async fn write(
        &self,
        subject: SummarySubject,
        material: Material,
    ) -> Result<(Arc<SummaryRequest>, String)> {
        let writing = SummaryJob {
            daemon: &self.call.daemon,
            connection: &self.call.connection,
            open: self.open,
            listener: Listener::Progress {
                token: self.call.id.as_ref(),
                written: &AtomicU64::new(0),
            },
            model: self.model,
            abort: &self.call.cancel,
        };
        let model = self.model.cloned();
        let written = writing.write(move |summarizer| SummaryRequest {
            subject,
            ..request::branch_request(
                material,
                SummaryOptions::default(),
                summarizer.budget(model.as_ref()),
            )
        });
        let (request, summary) = written.await?;
        Ok((request, summary.text))
    }
}
