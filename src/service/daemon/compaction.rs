//! The steps of a compaction from the question to the commit (semantics.md §4). [`treelined_core::flow::compact`]
//! decides which entries are replaced and which text is summarized.

use super::commit::Change;
use super::convert::error;
use super::convert::stored::raw;
use super::event_question::{self, Refusal};
use super::release::{PlannedOperation, Release, SessionRequest};
use super::summaries::{self, Extent, Piece, SummaryJob};
use super::summary_entries;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use treelined_core::context;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::compact::{self, Compaction, CompactionPlan};
use treelined_core::id::ExpectedLeaf;
use treelined_core::json;
use treelined_core::summary::entries::SummaryEntries;
use treelined_core::summary::request::{self, Material, SummaryOptions};
use treelined_core::summary::{ModelName, SummaryRequest, SummarySubject, Usage, frame};
use treelined_core::tree::Node;
pub(crate) use treelined_files::session::{Activity, SessionState};
use treelined_wire::notification::{self, CompactionReason};
use treelined_wire::{self as wire, BeforeEvent};

/// The result of the question to clients and hooks.
enum CompactionAnswer {
    /// The compaction that an answer gives.
    Given(Box<Compaction>),
    /// No compaction, but the context that the answers add for the summarizer.
    Nothing(Vec<String>),
    Refused(Refusal),
}

fn refused(refusal: Refusal) -> wire::CompactResult {
    wire::CompactResult {
        cancelled: true,
        reason: Some(refusal.reason),
        by: refusal.by,
        message: refusal.message,
        compaction_entry: None,
        durability: Durability::None,
    }
}

/// The options of the caller of a compaction.
pub(crate) struct Compactor {
    pub keep: u64,
    pub expected: ExpectedLeaf,
    /// The timeout that the caller gives.
    pub answer_timeout: Option<Duration>,
    pub on_no_answer: wire::OnNoAnswer,
    pub options: SummaryOptions,
}

/// The facts of the session at the beginning of the compaction.
pub(crate) struct CompactionInput {
    plan: CompactionPlan,
    tokens_before: u64,
    system_message: Option<Vec<u8>>,
    model: Option<ModelName>,
    old_leaf_id: Option<String>,
}

/// The most bytes of entries in a preparation, for a client that reads frames of `frame_bytes`.
pub(crate) fn preparation_bytes(frame_bytes: usize) -> u64 {
    frame_bytes.saturating_sub(8192) as u64
}

/// The bytes that [`prepare`] reads.
pub(crate) fn bytes_to_prepare(state: &SessionState) -> u64 {
    state.stored_bytes(state.tree.path(state.leaf()))
}

/// Reads the context. If its bodies have more than `max_bytes` together, only the ids are kept.
pub(crate) fn prepare(state: &SessionState, keep: u64, max_bytes: u64) -> Result<CompactionInput> {
    let path = state.steps(state.leaf());
    let kept = state.kept(&path)?;
    let mut body = |node| state.entry(node);
    let plan = compact::plan(&path, kept, keep, max_bytes, &mut body)?;
    let system_messages = context::system_messages(&path, kept, &mut body)?;
    Ok(CompactionInput {
        plan,
        tokens_before: context::tokens(&path, kept, &mut body)?,
        system_message: compact::system_message(&system_messages),
        model: summaries::model(state)?,
        old_leaf_id: state.leaf_id().map(str::to_owned),
    })
}

impl CompactionInput {
    /// The preparation for clients. If the entries have more than `max_bytes` together, it has their ids instead.
    pub(crate) fn preparation(
        &self,
        options: &SummaryOptions,
        max_bytes: u64,
    ) -> wire::CompactionPreparation {
        let plan = &self.plan;
        let prefix = plan.turn_prefix.as_ref();
        let all = plan.history.iter().chain(prefix.into_iter().flatten());
        let size = all.map(|entry| entry.len() as u64).sum::<u64>();
        let fits = plan.ids.is_none() && size <= max_bytes;
        let bodies = |entries: &Vec<Vec<u8>>| -> Vec<wire::Raw> {
            entries.iter().map(|entry| raw(entry)).collect()
        };
        let ids = |entries: &Vec<Vec<u8>>| -> Vec<String> {
            let id = |entry: &Vec<u8>| Some(json::string(json::get(entry, "id")?)?.into_owned());
            entries.iter().filter_map(id).collect()
        };
        let (history_ids, prefix_ids) = match &plan.ids {
            Some((history, prefix)) => (history.clone(), prefix.clone()),
            None => (ids(&plan.history), prefix.map(ids)),
        };
        wire::CompactionPreparation {
            first_kept_entry_id: plan.first_kept_entry_id.clone(),
            entries_to_summarize: fits.then(|| bodies(&plan.history)),
            entry_ids: (!fits).then_some(history_ids),
            turn_prefix: prefix.filter(|_| fits).map(bodies),
            turn_prefix_ids: prefix_ids.filter(|_| !fits),
            truncated: (!fits).then_some(true),
            is_split_turn: plan.turn_prefix.is_some(),
            previous_summary: plan.previous_summary.clone(),
            previous_compactions: plan.previous_compactions.clone(),
            model: self.model.as_ref().map(summaries::wire_model),
            custom_instructions: options.custom_instructions.clone(),
            replace_instructions: Some(options.replace_instructions),
            tokens_before: self.tokens_before,
            file_ops: wire::FileOps {
                read_files: plan.files.read_files.clone(),
                modified_files: plan.files.modified_files.clone(),
            },
        }
    }
}

impl Compactor {
    /// Compacts the context at the leaf of the session.
    pub(crate) async fn run(self, release: Release) -> Result<wire::CompactResult> {
        let abort = release.call.cancel.clone();
        let activity = Activity::Compaction { abort };
        let planning = release.begin(&self.expected, activity).await?;
        let (daemon, open) = (
            Arc::clone(&planning.request.call.daemon),
            Arc::clone(&planning.request.open),
        );
        let compacted = self.compact(planning).await;
        if let Err(error) = &compacted {
            daemon
                .notifier
                .notify(&open, |seq| notification::SessionCompactFailed {
                    session_id: open.id.to_string(),
                    seq,
                    reason: CompactionReason::Manual,
                    error: error::to_wire(error),
                });
        }
        compacted
    }

    async fn compact(mut self, planning: PlannedOperation) -> Result<wire::CompactResult> {
        let (bytes, keep) = (bytes_to_prepare(&planning.guard), self.keep);
        let client = &planning.request.call.connection;
        let limit = preparation_bytes(client.client_frame_bytes());
        let daemon = &planning.request.call.daemon;
        let path = planning.guard.tree.path(planning.guard.leaf());
        let extent = Extent::of(&planning.guard, &path);
        let summarizer = daemon.settings.summarizer.as_ref();
        let _memory = extent.reserve(&daemon.memory, summarizer, limit)?;
        let read = move |state: &SessionState| {
            let prepared = prepare(state, keep, limit)?;
            let material = SummaryMaterial::of(state, &prepared.plan)?;
            Ok((prepared, material))
        };
        let (planning, (mut prepared, material)) = planning.read(bytes, read).await?;
        planning
            .request
            .check_summarizable(BeforeEvent::SessionBeforeCompact)?;
        let waiting = planning.release();
        let answer = self.ask(&waiting.request, &prepared).await?;
        prepared.plan.forget_bodies();
        let compaction = match answer {
            CompactionAnswer::Given(given) => *given,
            CompactionAnswer::Nothing(context) => {
                let summarizer = SummaryRun {
                    request: &waiting.request,
                    prepared: &prepared,
                    material,
                    options: &self.options,
                    context,
                    written: AtomicU64::new(0),
                };
                summarizer.compaction().await?
            }
            CompactionAnswer::Refused(refusal) => return Ok(refused(refusal)),
        };
        let change = waiting.reached().await?;
        self.commit(change, &prepared, compaction).await
    }

    /// Sends the question and waits for the answers. Overrides change the options.
    async fn ask(
        &mut self,
        request: &SessionRequest,
        prepared: &CompactionInput,
    ) -> Result<CompactionAnswer> {
        let asking = request.asking(BeforeEvent::SessionBeforeCompact, self.answer_timeout);
        let max_bytes = preparation_bytes(request.call.connection.client_frame_bytes());
        let decided = event_question::put(asking, |put| notification::SessionBeforeCompact {
            session_id: put.session_id,
            seq: put.seq,
            event_id: put.event_id,
            timeout_ms: put.timeout_ms,
            preparation: prepared.preparation(&self.options, max_bytes),
            model: prepared.model.as_ref().map(summaries::wire_model),
            reason: CompactionReason::Manual,
        });
        let mut decision = decided.await?;
        if let Some(refusal) = decision.refusal(self.on_no_answer) {
            return Ok(CompactionAnswer::Refused(refusal));
        }
        summaries::override_options(&mut self.options, &mut decision);
        let Some(given) = decision.compaction else {
            return Ok(CompactionAnswer::Nothing(decision.context));
        };
        Ok(CompactionAnswer::Given(Box::new(Compaction {
            summary: given.summary,
            first_kept_entry_id: match given.first_kept_entry_id {
                wire::KeptFrom::AsPrepared => Some(prepared.plan.first_kept_entry_id.clone()),
                wire::KeptFrom::Nothing => None,
                wire::KeptFrom::Entry(id) => Some(id),
            },
            tokens_before: given.tokens_before.unwrap_or(prepared.tokens_before),
            details: given.details.map(|raw| raw.get().as_bytes().to_vec()),
            usage: given.usage.map(|raw| raw.get().as_bytes().to_vec()),
            from_hook: true,
            ..prepared.compaction()
        })))
    }

    /// Commits the compaction in one write, then announces `session_compact`.
    async fn commit(
        &self,
        change: Change,
        prepared: &CompactionInput,
        compaction: Compaction,
    ) -> Result<wire::CompactResult> {
        let (daemon, open) = (Arc::clone(&change.daemon), Arc::clone(&change.open));
        let (source, abort) = (Arc::clone(&daemon.source), change.cancel.clone());
        let (expected, old_leaf_id) = (self.expected.clone(), prepared.old_leaf_id.clone());
        let from_hook = compaction.from_hook;
        let plan = move |state: &SessionState| {
            state.check_expected_leaf(&expected)?;
            state.check_leaf_is_still(old_leaf_id.as_deref())?;
            if let Some(id) = &compaction.first_kept_entry_id {
                let kept = state.find(id)?;
                if state.tree.common_ancestor(state.leaf(), Some(kept)) != Some(kept) {
                    return Err(Error::entry_not_found(id));
                }
            }
            // From this point the compaction cannot be aborted.
            if !abort.commit() {
                return Err(Error::cancelled());
            }
            Ok(compact::commit(&state.tree, &*source, &compaction))
        };
        let then = |state: &SessionState, _| -> Result<Option<Vec<u8>>> {
            let entry = state.leaf().map(|leaf| state.entry(leaf)).transpose()?;
            if let Some(entry) = &entry {
                daemon
                    .notifier
                    .notify(&open, |seq| notification::SessionCompact {
                        session_id: open.id.to_string(),
                        seq,
                        compaction_entry: raw(entry),
                        from_hook,
                    });
            }
            Ok(entry)
        };
        let changed = change.commit(plan, then).await?;
        let entry = changed
            .seen?
            .ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))?;
        Ok(wire::CompactResult {
            cancelled: false,
            reason: None,
            by: None,
            message: None,
            compaction_entry: Some(raw(&entry)),
            durability: changed.durability,
        })
    }
}

/// The entries that the summaries of a compaction are made of.
struct SummaryMaterial {
    history: SummaryEntries,
    /// The beginning of a split turn.
    prefix: SummaryEntries,
}

impl SummaryMaterial {
    fn of(state: &SessionState, plan: &CompactionPlan) -> Result<Self> {
        let stored = |nodes: &[Node]| {
            let nodes = nodes.iter().copied();
            summary_entries::stored(state, nodes, plan.edits.clone(), None)
        };
        Ok(Self {
            history: stored(&plan.history_nodes)?,
            prefix: stored(&plan.prefix_nodes)?,
        })
    }
}

/// The work of the configured summarizer for a compaction.
struct SummaryRun<'a> {
    request: &'a SessionRequest,
    prepared: &'a CompactionInput,
    material: SummaryMaterial,
    options: &'a SummaryOptions,
    /// The context that the answers add for the summarizer.
    context: Vec<String>,
    /// The characters of the summaries so far.
    written: AtomicU64,
}

impl SummaryRun<'_> {
    /// Runs the configured summarizer: once for the turns before the cut, and once for the beginning of a turn that the
    /// cut splits.
    async fn compaction(&self) -> Result<Compaction> {
        let plan = &self.prepared.plan;
        let mut usage: Option<Usage> = None;
        let mut history = plan.previous_text.clone();
        if !plan.history_nodes.is_empty() {
            let entries = self.material.history.clone();
            let (text, used) = self
                .write(SummarySubject::Context, entries, history)
                .await?;
            history = Some(text);
            usage = used;
        }
        let text = match plan.turn_prefix {
            Some(_) => {
                let prefix = self.material.prefix.clone();
                let written = self.write(SummarySubject::TurnPrefix, prefix, None);
                let (text, used) = written.await?;
                usage = match (usage, used) {
                    (Some(usage), Some(used)) => Some(usage + used),
                    (usage, used) => usage.or(used),
                };
                frame::joined(history.as_deref(), &text)
            }
            None => history.unwrap_or_default(),
        };
        Ok(Compaction {
            summary: frame::finish(SummarySubject::Context, &text, &plan.files),
            details: Some(plan.files.to_details()),
            usage: usage.map(Usage::to_json),
            ..self.prepared.compaction()
        })
    }

    async fn write(
        &self,
        subject: SummarySubject,
        entries: SummaryEntries,
        previous: Option<String>,
    ) -> Result<(String, Option<Usage>)> {
        let call = &self.request.call;
        // The progress counts the characters of all summaries of the request.
        let hear = |piece: &Piece<'_>| {
            let before = self.written.fetch_add(piece.characters, Ordering::Relaxed);
            if let Some(token) = &call.id {
                call.connection.progress(token, before + piece.characters);
            }
        };
        let writing = SummaryJob {
            summarizer: call.daemon.summarizer()?,
            hear: &hear,
            model: self.prepared.model.as_ref(),
            abort: &call.cancel,
        };
        // Only one summary gets the context. The summary of a turn's beginning is joined to the summary of the history,
        // which has the context already.
        let is_first =
            subject == SummarySubject::Context || self.prepared.plan.history_nodes.is_empty();
        let context = if is_first {
            self.context.clone()
        } else {
            Vec::new()
        };
        let options = self.options.clone();
        let (files, model) = (
            self.prepared.plan.files.clone(),
            self.prepared.model.clone(),
        );
        let material = Material {
            previous_summary: previous,
            entries,
            files,
            ..Material::default()
        };
        let written = writing.write(move |summarizer| {
            let budget = summarizer.budget(model.as_ref());
            let request = request::request(material, options, budget)?;
            Ok(SummaryRequest {
                subject,
                context,
                ..request
            })
        });
        let (_, summary) = written.await?;
        Ok((summary.text, summary.usage))
    }
}

impl CompactionInput {
    /// The planned compaction, without its summary.
    fn compaction(&self) -> Compaction {
        Compaction {
            summary: String::new(),
            first_kept_entry_id: Some(self.plan.first_kept_entry_id.clone()),
            tokens_before: self.tokens_before,
            details: None,
            usage: None,
            system_message: self.system_message.clone(),
            from_hook: false,
        }
    }
}
