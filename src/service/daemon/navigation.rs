//! The nine steps of a navigation (protocol.md §4), and the waiting between them. [`treelined_core::flow::navigate`]
//! has the logic of each step.

use super::commit::Change;
use super::convert::stored::{raw, raw_owned};
use super::event_question;
use super::notify::SessionTree;
use super::other_session::OtherSession;
use super::preparation::{AskedEntries, Preparation};
use super::reading::INLINE_ENTRIES;
use super::release::{PlannedOperation, Release, SessionRequest, WaitingOperation};
use super::summaries::{self, Extent, Piece, SummaryJob, id_text};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use treelined_core::durability::Durability;
use treelined_core::entry::draft::Draft;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::branch;
use treelined_core::flow::leaf::BranchSummary;
use treelined_core::flow::navigate::{self, Judgement, NavigationPlan};
use treelined_core::id::{EntryId, ExpectedLeaf};
use treelined_core::name;
use treelined_core::summary::request::{self, SummaryOptions};
use treelined_core::summary::{SummaryRequest, SummarySubject, Usage, frame};
use treelined_core::tree::Node;
use treelined_files::lock::lock;
pub(crate) use treelined_files::session::{Activity, SessionState};
use treelined_wire::{self as wire, BeforeEvent, NavigationReason, RequestId, notification};

/// If no summary is wanted, and the entries together have more bytes than this, the question has ids instead of
/// entries.
const MAX_UNWANTED_BYTES: u64 = 1 << 20;

/// The options of the caller of a navigation.
pub(crate) struct Navigator {
    pub kind: NavigationKind,
    pub expected: ExpectedLeaf,
    pub navigation_id: String,
    pub wants_summary: bool,
    pub options: SummaryOptions,
    pub label: Option<String>,
    /// For a merge from another session: the other session. `tip_id` is the end of the branch in the other session.
    pub from: Option<Mutex<OtherSession>>,
    pub tip_id: Option<String>,
    /// For a choice: the judgements about the candidates that are not chosen.
    pub judgements: Vec<Judgement>,
    /// For an archive: the first entries of the branches inside the archived branch that get their own records.
    pub within: Vec<String>,
    /// The timeout that the caller gives.
    pub answer_timeout: Option<Duration>,
    pub on_no_answer: wire::OnNoAnswer,
    pub dry_run: bool,
}

/// The kind of a navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavigationKind {
    /// Moves the leaf to the target. A summary of the branch that the leaf leaves is optional. With `rewind`, moves the
    /// leaf above a user message even if that message is the leaf.
    To { rewind: bool },
    /// Appends a summary of the other branch. The leaf does not move to another branch.
    Merge,
    /// Archives the branch that begins with the target. If the leaf is in that branch, moves it out first.
    Archive,
    /// Moves the leaf to the end of a candidate, and writes the judgements about the other candidates.
    Choice,
}

/// The destination of a navigation.
pub(super) enum Destination {
    /// Another entry, with the plan.
    Move(NavigationPlan),
    /// The current leaf.
    Leaf(EntryId),
    /// The summary of the same merge, which an earlier request has made.
    Merged(EntryId),
}

impl Navigator {
    /// Navigates to the entry that `find` finds.
    pub(crate) async fn run(
        self,
        release: Release,
        find: impl FnOnce(&SessionState) -> Result<Node>,
    ) -> Result<wire::Navigation> {
        self.run_with(release, |_, state| find(state)).await
    }

    /// Like [`Self::run`]; `find` also sets the options that depend on the session.
    pub(crate) async fn run_with(
        mut self,
        release: Release,
        find: impl FnOnce(&mut Self, &SessionState) -> Result<Node>,
    ) -> Result<wire::Navigation> {
        let (planning, target) = self.begin(release, find).await?;
        let plan = match target {
            Destination::Move(plan) => plan,
            Destination::Leaf(id) if self.kind == NavigationKind::Archive => {
                return self.archive(planning, id).await;
            }
            Destination::Merged(id) => return self.merged_before(&planning, &id),
            Destination::Leaf(_) if self.kind == NavigationKind::Choice => {
                return self.judge(planning).await;
            }
            Destination::Leaf(id) => return self.stay(planning, id).await,
        };
        if self.wants_summary {
            planning
                .request
                .check_summarizable(BeforeEvent::SessionBeforeTree)?;
        }
        let (planning, preparation) = self.prepare(planning, plan).await?;
        self.go(planning.release(), preparation).await
    }

    /// Runs steps 1 to 5 only, and returns the question that clients would get.
    pub(crate) async fn dry_run(
        mut self,
        release: Release,
        find: impl FnOnce(&SessionState) -> Result<Node>,
    ) -> Result<wire::NavigateTreeResult> {
        let find = |_: &mut Self, state: &SessionState| find(state);
        let (planning, target) = self.begin(release, find).await?;
        let plan = match target {
            Destination::Move(plan) => plan,
            Destination::Leaf(_) | Destination::Merged(_) => {
                let leaf_id = planning.guard.leaf_id().map(EntryId::new);
                let stays = unmoved(NavigationReason::AlreadyThere, false, &leaf_id, &leaf_id);
                return Ok(wire::NavigateTreeResult::Navigation(Box::new(stays)));
            }
        };
        let (planning, mut preparation) = self.prepare(planning, plan).await?;
        let can_summarize = planning
            .request
            .check_summarizable(BeforeEvent::SessionBeforeTree)
            .is_ok();
        drop(planning);
        // The entries are moved and not copied, since they may be as large as the client's limit.
        let moved = match &mut preparation.asked {
            AskedEntries::Bodies { entries, .. } => Some(std::mem::take(entries)),
            AskedEntries::Ids { .. } => None,
        };
        let moved = moved.map(|entries| entries.into_iter().map(raw_owned).collect());
        let preparation = wire::TreePreparation {
            entries_to_summarize: moved,
            ..self.preparation(&preparation)
        };
        let dry_run = wire::DryRun {
            preparation,
            can_summarize,
        };
        Ok(wire::NavigateTreeResult::DryRun(Box::new(dry_run)))
    }

    /// Steps 1 to 4.
    async fn begin(
        &mut self,
        release: Release,
        find: impl FnOnce(&mut Self, &SessionState) -> Result<Node>,
    ) -> Result<(PlannedOperation, Destination)> {
        let activity = Activity::Navigation {
            id: self.navigation_id.clone(),
            abort: release.call.cancel.clone(),
        };
        // If a merge is repeated, its first request has moved the leaf. So the expected leaf is checked below, and only
        // if the merge is new.
        let expected = match self.from {
            Some(_) => &ExpectedLeaf::Any,
            None => &self.expected,
        };
        let planning = release.begin(expected, activity).await?;
        let tree = &planning.guard.tree;
        if let Some(other) = &self.from {
            let target = lock(other).target(&planning.guard, self.tip_id.as_deref())?;
            if !matches!(target, Destination::Merged(_)) {
                planning.guard.check_expected_leaf(&self.expected)?;
            }
            return Ok((planning, target));
        }
        let node = find(self, &planning.guard)?;
        if self.kind == NavigationKind::Archive {
            let turns = planning.request.open.client_turn();
            turns.check_branch(tree, node)?;
        }
        let planned = match self.kind {
            NavigationKind::To { rewind } => navigate::plan(tree, node, rewind),
            NavigationKind::Merge => navigate::plan_merge(tree, node),
            NavigationKind::Archive => navigate::plan_archive(tree, node),
            NavigationKind::Choice => navigate::plan_choice(tree, node),
        };
        let target = match planned {
            navigate::Navigation::Move(mut plan) => {
                plan.judgements.clone_from(&self.judgements);
                let within = branch::within(tree, &self.within, node)?;
                let within = within.iter().map(|node| EntryId::new(tree.id(*node)));
                plan.archives.extend(within);
                Destination::Move(plan)
            }
            navigate::Navigation::AlreadyThere => Destination::Leaf(EntryId::new(tree.id(node))),
        };
        Ok((planning, target))
    }

    /// Steps 6 to 9.
    async fn go(
        &mut self,
        waiting: WaitingOperation,
        mut preparation: Preparation,
    ) -> Result<wire::Navigation> {
        let given = self.ask(&waiting.request, &preparation).await;
        preparation.asked = AskedEntries::none();
        let old = &preparation.plan.old_leaf_id;
        let given = match given {
            Ok(given) => given,
            Err(refusal) => return Ok(refused(refusal, old)),
        };
        let worthless = self.wants_summary && !preparation.plan.worth_summarizing;
        let summary = match given {
            Some(summary) => Some(summary).filter(|summary| !summary.is_empty()),
            None if self.wants_summary && !worthless => {
                match self.summarize(&waiting.request, &preparation).await {
                    Ok(summary) => Some(summary),
                    Err(error) if error.kind == Kind::Cancelled => return Ok(aborted(old)),
                    Err(error) => return Err(error),
                }
            }
            None => None,
        };
        let is_worthless = worthless && summary.is_none();
        let reason = is_worthless.then_some(NavigationReason::NothingToSummarize);
        if summary.is_none() && preparation.plan.merges.is_some() {
            return Ok(unmoved(
                NavigationReason::NothingToSummarize,
                false,
                old,
                old,
            ));
        }
        let abort = waiting.request.call.cancel.clone();
        let change = match waiting.reached().await {
            Ok(change) => change,
            Err(_) if abort.is_cancelled() => return Ok(aborted(old)),
            Err(error) => return Err(error),
        };
        match self.commit(change, &preparation, summary, reason).await {
            Err(error) if error.kind == Kind::Cancelled => Ok(aborted(old)),
            committed => committed,
        }
    }

    /// Step 5: reads the bodies for the clients and the summarizer. Large branches are read on a blocking thread, which
    /// holds the guard, since bodies may need the tree.
    async fn prepare(
        &mut self,
        planning: PlannedOperation,
        plan: NavigationPlan,
    ) -> Result<(PlannedOperation, Preparation)> {
        let limit = self.bodies_limit(&planning);
        let wants_summary = self.wants_summary && plan.worth_summarizing;
        let summarizes = wants_summary
            && !self.dry_run
            && planning.request.call.daemon.settings.summarizer.is_some();
        let other = self.from.take().map(Mutex::into_inner);
        let other = other.map(|other| other.unwrap_or_else(PoisonError::into_inner));
        let of: &SessionState = match &other {
            Some(other) => &other.guard,
            None => &planning.guard,
        };
        // A summarizer needs the goal, and the goal may be anywhere on the path.
        let walks = summarizes && of.tree.node_count() > INLINE_ENTRIES;
        let extent = Extent::of(of, &plan.abandoned);
        let daemon = &planning.request.call.daemon;
        let summarizer = daemon.settings.summarizer.as_ref();
        let memory = match wants_summary && !self.dry_run {
            true => Some(extent.reserve(&daemon.memory, summarizer, limit)?),
            false => None,
        };
        let size = if walks { u64::MAX } else { extent.stored };
        let read = move |state: &SessionState| {
            let of = other.as_ref().map_or(state, |other| &other.guard);
            Preparation::read(of, plan, limit, summarizes)
        };
        let (planning, mut preparation) = planning.read(size, read).await?;
        preparation.memory = memory;
        Ok((planning, preparation))
    }

    /// The limit, in bytes, of all entries together in a before event or a dry run.
    fn bodies_limit(&self, planning: &PlannedOperation) -> u64 {
        let frame = planning.request.call.connection.client_frame_bytes();
        let frame = frame.saturating_sub(8192) as u64;
        if self.wants_summary || self.dry_run {
            frame
        } else {
            frame.min(MAX_UNWANTED_BYTES)
        }
    }

    fn preparation(&self, prepared: &Preparation) -> wire::TreePreparation {
        let raw = |entries: &Vec<Vec<u8>>| -> Vec<wire::Raw> {
            entries.iter().map(|entry| raw(entry)).collect()
        };
        let (bodies, ids) = match &prepared.asked {
            AskedEntries::Bodies { entries, kept } => (Some((entries, kept)), None),
            AskedEntries::Ids { entries, kept } => (None, Some((entries, kept))),
        };
        wire::TreePreparation {
            target_id: prepared.plan.target_id.as_str().to_owned(),
            from_session_id: prepared.plan.from_session.clone(),
            old_leaf_id: id_text(&prepared.plan.old_leaf_id),
            common_ancestor_id: id_text(&prepared.plan.common_ancestor_id),
            abandoned_count: prepared.abandoned_steps,
            previous_summary: prepared.material.previous_summary.clone(),
            kept_entries: bodies.and_then(|(_, kept)| kept.as_ref().map(raw)),
            kept_entry_ids: ids.and_then(|(_, kept)| kept.clone()),
            entries_to_summarize: bodies.map(|(entries, _)| raw(entries)),
            entry_ids: ids.map(|(entries, _)| entries.clone()),
            truncated: ids.map(|_| true),
            user_wants_summary: self.wants_summary,
            model: prepared.model.as_ref().map(summaries::wire_model),
            custom_instructions: self.options.custom_instructions.clone(),
            replace_instructions: Some(self.options.replace_instructions),
            label: self.label.clone(),
        }
    }

    /// Step 6: sends the question and waits for the answers. Overrides change the options; a refusal is the error.
    async fn ask(
        &mut self,
        request: &SessionRequest,
        prepared: &Preparation,
    ) -> std::result::Result<Option<BranchSummary>, NavigationEnd> {
        let asking = event_question::EventQuestion {
            navigation_id: Some(&self.navigation_id),
            takes_summary: self.wants_summary,
            ..request.asking(BeforeEvent::SessionBeforeTree, self.answer_timeout)
        };
        let decided = event_question::put(asking, |put| notification::SessionBeforeTree {
            session_id: put.session_id,
            seq: put.seq,
            event_id: put.event_id,
            navigation_id: self.navigation_id.clone(),
            timeout_ms: put.timeout_ms,
            preparation: self.preparation(prepared),
        });
        let mut decision = decided.await.map_err(|_| NavigationEnd::Aborted)?;
        if let Some(refusal) = decision.refusal(self.on_no_answer) {
            return Err(NavigationEnd::Answered(refusal));
        }
        summaries::override_options(&mut self.options, &mut decision);
        if let Some(label) = &decision.label {
            self.label = name::given(label);
        }
        Ok(decision.summary.as_ref().map(summaries::given))
    }

    /// Step 7: runs the configured summarizer.
    async fn summarize(
        &self,
        request: &SessionRequest,
        prepared: &Preparation,
    ) -> Result<BranchSummary> {
        let (open, id) = (&request.open, &self.navigation_id);
        // A connection that does not want the pieces gets the number of characters as progress.
        let hear = |piece: &Piece<'_>| {
            for connection in open.connections() {
                if !connection.summary_delta(&open.id, id, piece.index, piece.text) {
                    connection.progress(&RequestId::Text(id.clone()), piece.total);
                }
            }
        };
        let writing = SummaryJob {
            summarizer: request.call.daemon.summarizer()?,
            hear: &hear,
            model: prepared.model.as_ref(),
            abort: &request.call.cancel,
        };
        let material = prepared.material.clone();
        let (options, model) = (self.options.clone(), prepared.model.clone());
        let subject = match prepared.plan.merges {
            Some(_) => SummarySubject::Merge,
            None => SummarySubject::Branch,
        };
        let written = writing.write(move |summarizer| {
            let budget = summarizer.budget(model.as_ref());
            let request = request::request(material, options, budget)?;
            Ok(SummaryRequest { subject, ..request })
        });
        let (request, summary) = written.await?;
        Ok(BranchSummary {
            text: frame::finish(subject, &summary.text, &request.files),
            details: Some(request.files.to_details()),
            usage: summary.usage.map(Usage::to_json),
            from_hook: false,
        })
    }

    /// Steps 8 and 9: one write, then `session_tree`.
    async fn commit(
        &self,
        change: Change,
        prepared: &Preparation,
        summary: Option<BranchSummary>,
        reason: Option<NavigationReason>,
    ) -> Result<wire::Navigation> {
        let (daemon, open) = (Arc::clone(&change.daemon), Arc::clone(&change.open));
        if self.kind == NavigationKind::Archive {
            // A turn may have begun after the plan.
            let head = change.guard.find(prepared.plan.target_id.as_str())?;
            open.client_turn().check_branch(&change.guard.tree, head)?;
        }
        let source = Arc::clone(&daemon.source);
        let (plan, label) = (prepared.plan.clone(), self.label.clone());
        let from_hook = summary.as_ref().is_some_and(|summary| summary.from_hook);
        let has_summary = summary.is_some();
        let has_label = label.is_some();
        let abort = change.cancel.clone();
        let expected = self.expected.clone();
        let write = move |state: &SessionState| {
            state.check_expected_leaf(&expected)?;
            state.check_leaf_is_still(plan.old_leaf_id.as_ref().map(EntryId::as_str))?;
            // From this point the navigation cannot be aborted.
            if !abort.commit() {
                return Err(Error::cancelled());
            }
            let summary = summary.as_ref();
            navigate::commit(&state.tree, &*source, &plan, summary, label.as_deref())
        };
        // Another request may have appended bookkeeping after the plan.
        let old_leaf_id = change.guard.leaf_id().map(str::to_owned);
        let then =
            |state: &SessionState, written: Option<Durability>| -> Result<wire::Navigation> {
                let path: Vec<_> = state.tree.ancestors(state.leaf()).take(2).collect();
                let label_node = path.first().copied().filter(|_| has_label);
                let summary_node = path
                    .get(usize::from(has_label))
                    .copied()
                    .filter(|_| has_summary);
                let entry = |node| state.entry(node);
                let label_entry = label_node.map(entry).transpose()?;
                let summary_entry = summary_node.map(entry).transpose()?;
                let new_leaf_id = state.leaf_id().map(str::to_owned);
                let moved = SessionTree {
                    old_leaf_id: old_leaf_id.as_deref(),
                    new_leaf_id: new_leaf_id.as_deref(),
                    cause: wire::MoveCause::NavigateTree,
                    navigation_id: Some(&self.navigation_id),
                    summary_entry: summary_entry.as_deref(),
                    label_entry: label_entry.as_deref(),
                    from_hook: has_summary.then_some(from_hook),
                };
                // A merge does not move the leaf to another branch, so it sends no `session_tree`.
                if prepared.plan.merges.is_none() {
                    daemon.notifier.session_tree(&open, moved);
                }
                let draft = prepared.draft.as_ref();
                Ok(wire::Navigation {
                    cancelled: false,
                    reason,
                    by: None,
                    message: None,
                    editor_text: draft.map(|draft| draft.text.clone()),
                    editor_images: draft.and_then(editor_images),
                    old_leaf_id: old_leaf_id.clone(),
                    new_leaf_id,
                    summary_entry: summary_entry.as_deref().map(raw),
                    label_entry: label_entry.as_deref().map(raw),
                    from_hook: has_summary.then_some(from_hook),
                    durability: written.unwrap_or(Durability::None),
                })
            };
        change.commit(write, then).await?.seen
    }
}

/// The images of a draft, if it has any.
fn editor_images(draft: &Draft) -> Option<Vec<wire::Raw>> {
    let images = draft.images.iter().map(|image| raw(image));
    (!draft.images.is_empty()).then(|| images.collect())
}

/// The reason why a navigation ends while its question is open.
enum NavigationEnd {
    Aborted,
    Answered(event_question::Refusal),
}

fn refused(refusal: NavigationEnd, leaf_id: &Option<EntryId>) -> wire::Navigation {
    let (reason, by, message) = match refusal {
        NavigationEnd::Aborted => (NavigationReason::Aborted, None, None),
        NavigationEnd::Answered(refusal) => (refusal.reason.into(), refusal.by, refusal.message),
    };
    wire::Navigation {
        by,
        message,
        ..unmoved(reason, true, leaf_id, leaf_id)
    }
}

/// The result of an aborted navigation; `leaf_id` is the leaf before and after.
pub(crate) fn aborted(leaf_id: &Option<EntryId>) -> wire::Navigation {
    unmoved(NavigationReason::Aborted, true, leaf_id, leaf_id)
}

/// A navigation that changed nothing.
pub(super) fn unmoved(
    reason: NavigationReason,
    cancelled: bool,
    old_leaf_id: &Option<EntryId>,
    new_leaf_id: &Option<EntryId>,
) -> wire::Navigation {
    wire::Navigation {
        cancelled,
        reason: Some(reason),
        by: None,
        message: None,
        editor_text: None,
        editor_images: None,
        old_leaf_id: id_text(old_leaf_id),
        new_leaf_id: id_text(new_leaf_id),
        summary_entry: None,
        label_entry: None,
        from_hook: None,
        durability: Durability::None,
    }
}
