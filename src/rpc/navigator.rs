//! A navigation's way through its nine steps (protocol.md §4), with the waiting between them. What the
//! steps mean is [`crate::flow::navigate`]'s, and who asks for one [`super::navigate`]'s.

use super::read;
use super::reply::Reply;
use super::summaries::{self, Listener, Writing, id_text};
use crate::cancel::Cancel;
use crate::context::Edits;
use crate::daemon::call::Call;
use crate::daemon::commit::Change;
use crate::daemon::convert;
use crate::daemon::notify::SessionTree;
use crate::daemon::open_session::{OpenSession, SessionGuard};
use crate::daemon::question::{self, Asking};
use crate::entry::Kind as EntryKind;
use crate::entry::draft::{self, Draft};
use crate::error::{Error, Kind, Result};
use crate::flow::leaf::BranchSummary;
use crate::flow::navigate::{self, Navigation, Plan};
use crate::id::{EntryId, ExpectedLeaf};
use crate::json;
use crate::name;
use crate::session::{Activity, Busy, SessionState};
use crate::summary::files::FileCollector;
use crate::summary::request::{self, Material, SummaryOptions};
use crate::summary::{FileLists, ModelName, Subject, SummaryRequest, Usage, frame};
use crate::tree::Node;
use crate::wire::{self, BeforeEvent, NavigationReason, notification};
use std::sync::Arc;
use std::time::Duration;

/// Entries larger than this together are named instead, where no summary is wanted, in bytes.
const MAX_UNWANTED_BYTES: u64 = 1 << 20;

/// The options of the caller of a navigation.
pub(super) struct Request {
    pub expected: ExpectedLeaf,
    pub navigation_id: String,
    pub wants_summary: bool,
    pub wishes: SummaryOptions,
    pub label: Option<String>,
    pub answer_timeout: Duration,
    pub on_no_answer: wire::OnNoAnswer,
    pub rewind: bool,
    pub dry_run: bool,
}

/// What is done with the other place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NavigationKind {
    /// The leaf goes there; what it leaves may be summarized.
    To,
    /// The leaf stays; a summary of the other branch is appended.
    Merge,
}

pub(super) struct Navigator {
    pub call: Arc<Call>,
    pub open: Arc<OpenSession>,
    pub request: Request,
}

/// What the tree said when the navigation began, bodies included.
struct Preparation {
    plan: Plan,
    /// Without files and goal where no summarizer is asked.
    material: Material,
    /// Where the entries are too large to be told themselves.
    ids: Option<Ids>,
    model: Option<ModelName>,
    draft: Option<Draft>,
}

/// The ids of entries that are too large to go out themselves.
struct Ids {
    /// Of what came after the nearest compaction.
    entries: wire::IdList,
    /// Of what that compaction kept.
    kept: Option<wire::IdList>,
}

impl Preparation {
    /// Reads the bodies where they have no more than `limit` bytes together, or where the summarizer
    /// needs them.
    fn read(core: &SessionState, plan: Plan, limit: u64, summarizes: bool) -> Result<Self> {
        let compaction = plan.previous_compaction().map(|node| core.entry(node));
        let compaction = compaction.transpose()?;
        let text = |name: &str| -> Option<String> {
            let raw = json::get(compaction.as_deref()?, name)?;
            Some(json::string(raw)?.into_owned())
        };
        let kept = compaction.as_ref().map(|_| {
            let first = text("firstKeptEntryId").and_then(|id| core.tree.find(&id));
            plan.kept(&core.tree, first)
        });
        let kept_nodes = kept.as_deref().unwrap_or_default();
        let size = read::size_of(core, plan.entries()) + read::size_of(core, kept_nodes);
        let reads = summarizes || size <= limit;
        let bodies = |nodes: &[Node]| match reads {
            true => bodies(core, nodes),
            false => Ok(Vec::new()),
        };
        let mut material = Material {
            previous_summary: text("summary"),
            kept: kept.as_deref().map(bodies).transpose()?,
            entries: bodies(plan.entries())?,
            ..Material::default()
        };
        if summarizes {
            material.files = files(core, &plan, &material.entries)?;
            material.goal = goal(core, &plan)?;
        }
        let delivered = material.kept.iter().flatten().chain(&material.entries);
        let delivered: usize = delivered.map(Vec::len).sum();
        let fits = reads && delivered as u64 <= limit;
        let ids = (!fits).then(|| Ids {
            entries: convert::id_list(&core.tree, plan.entries()),
            kept: kept.map(|kept| convert::id_list(&core.tree, &kept)),
        });
        let draft = plan.editor_entry.map(|node| core.entry(node)).transpose()?;
        Ok(Self {
            material,
            ids,
            model: summaries::model(core)?,
            draft: draft.as_deref().map(draft::draft),
            plan,
        })
    }
}

fn bodies(core: &SessionState, nodes: &[Node]) -> Result<Vec<Vec<u8>>> {
    let (bodies, fetches) = (core.bodies(), core.fetch(nodes.iter().copied())?);
    let mut reader = bodies.reader();
    fetches.iter().map(|fetch| reader.entry(fetch)).collect()
}

/// The files that the branch touched; `entries` are the bodies of what came after its compaction.
fn files(core: &SessionState, plan: &Plan, entries: &[Vec<u8>]) -> Result<FileLists> {
    let mut files = FileCollector::default();
    let (bodies, fetches) = (core.bodies(), core.fetch(plan.compacted().iter().copied())?);
    let mut reader = bodies.reader();
    for fetch in &fetches {
        reader.see_entry(fetch, |entry| files.note_entry(entry))?;
    }
    for entry in entries {
        files.note_entry(entry);
    }
    Ok(files.into_lists())
}

/// What the branch was for, as edits leave it.
fn goal(core: &SessionState, plan: &Plan) -> Result<Option<String>> {
    let mut edits = Edits::default();
    for node in core.tree.path(plan.tip()) {
        if core.tree.kind(node) == EntryKind::ContextEdit {
            edits.note(&core.entry(node)?);
        }
    }
    for node in plan.goals(&core.tree) {
        if let Some(goal) = request::goal(core.entry(node)?, &edits) {
            return Ok(Some(goal));
        }
    }
    Ok(None)
}

impl Navigator {
    pub(super) async fn run(
        mut self,
        mut turn: SessionGuard,
        way: NavigationKind,
        find: impl FnOnce(&SessionState) -> Result<Node>,
    ) -> Result<Reply> {
        // Cancelling the request aborts the navigation, whatever it waits for.
        let abort = self.call.cancel.clone();
        let busy = self.open.session.begin(Activity::Navigation {
            id: self.request.navigation_id.clone(),
            abort: abort.clone(),
        })?;
        // Without `initialize` later requests wait, so that a script means what it says.
        let busy = match self.call.connection.client() {
            None => {
                turn.with().busy = Some(busy);
                None
            }
            Some(_) => Some(busy),
        };
        let target = find(&turn)?;
        let planned = match way {
            NavigationKind::To => navigate::plan(&turn.tree, target, self.request.rewind),
            NavigationKind::Merge => navigate::plan_merge(&turn.tree, target),
        };
        let plan = match planned {
            Navigation::Move(plan) => plan,
            Navigation::AlreadyThere => {
                let target_id = EntryId::new(turn.tree.id(target));
                return self.stay(turn, target_id, &abort).await;
            }
        };
        if self.request.wants_summary && !self.request.dry_run {
            let daemon = &self.call.daemon;
            daemon.check_summarizable(&self.open, BeforeEvent::SessionBeforeTree)?;
        }
        let (turn, mut preparation) = self.prepare(turn, plan).await?;
        if self.request.dry_run {
            // Handed over rather than copied: they are as much as the client takes.
            let entries = std::mem::take(&mut preparation.material.entries).into_iter();
            let entries: Vec<wire::Raw> = entries.map(convert::raw_owned).collect();
            let fits = preparation.ids.is_none();
            let preparation = wire::TreePreparation {
                entries_to_summarize: fits.then_some(entries),
                ..self.preparation(&preparation)
            };
            return Reply::of(&wire::NavigateTreeResult::DryRun(Box::new(wire::DryRun {
                preparation,
            })));
        }
        let held = match &busy {
            None => Some(turn),
            Some(_) => {
                drop(turn);
                None
            }
        };
        self.go(held, preparation, &abort, busy).await
    }

    /// Step 2, at the target: appends the label, if one is wanted.
    async fn stay(&self, turn: SessionGuard, target_id: EntryId, abort: &Cancel) -> Result<Reply> {
        let leaf_id = turn.leaf_id().map(EntryId::new);
        let label = self.request.label.clone().filter(|_| !self.request.dry_run);
        let Some(label) = label else {
            return unmoved(NavigationReason::AlreadyThere, false, &leaf_id, &leaf_id);
        };
        let (source, abort) = (Arc::clone(&self.call.daemon.source), abort.clone());
        let expected = self.request.expected.clone();
        let write = move |core: &SessionState| {
            core.check_expected_leaf(&expected)?;
            // From here on it cannot be aborted any more.
            if !abort.commit() {
                return Err(Error::cancelled());
            }
            let planned = navigate::label_at_leaf(&core.tree, &*source, &target_id, &label);
            Ok(planned)
        };
        let then = |core: &SessionState, wrote: bool| -> Result<wire::Navigation> {
            let entry = core.leaf().map(|node| core.entry(node)).transpose()?;
            Ok(wire::Navigation {
                new_leaf_id: core.leaf_id().map(str::to_owned),
                label_entry: entry.as_deref().map(convert::raw),
                durability: self.open.durability(wrote),
                ..nowhere(NavigationReason::AlreadyThere, false, &leaf_id, &leaf_id)
            })
        };
        let change = Change::new(&self.call, Arc::clone(&self.open), turn);
        match change.commit(write, then).await {
            Ok(changed) => Reply::of(&changed.seen?),
            Err(error) if error.kind == Kind::Cancelled => {
                unmoved(NavigationReason::Aborted, true, &leaf_id, &leaf_id)
            }
            Err(error) => Err(error),
        }
    }

    /// Steps 6 to 9.
    async fn go(
        &mut self,
        held: Option<SessionGuard>,
        preparation: Preparation,
        abort: &Cancel,
        busy: Option<Busy>,
    ) -> Result<Reply> {
        let old = &preparation.plan.old_leaf_id;
        let given = match self.ask(&preparation, abort).await {
            Ok(given) => given,
            Err(refusal) => return refused(refusal, old),
        };
        let worthless = self.request.wants_summary && !preparation.plan.worth_summarizing;
        let summary = match given {
            Some(summary) => Some(summary),
            None if self.request.wants_summary && !worthless => {
                match self.summarize(&preparation, abort).await {
                    Ok(summary) => Some(summary),
                    Err(error) if error.kind == Kind::Cancelled => {
                        return unmoved(NavigationReason::Aborted, true, old, old);
                    }
                    Err(error) => return Err(error),
                }
            }
            None => None,
        };
        if summary.is_none() && preparation.plan.merges.is_some() {
            return unmoved(NavigationReason::NothingToSummarize, false, old, old);
        }
        let turn = match held {
            Some(turn) => Ok(turn),
            None => {
                let again = self.call.daemon.turn(Some(&self.open.id), abort).await;
                again.map(|(_, turn)| turn)
            }
        };
        let turn = match turn {
            Ok(turn) => turn,
            Err(_) if abort.is_cancelled() => {
                return unmoved(NavigationReason::Aborted, true, old, old);
            }
            Err(error) => return Err(error),
        };
        let reason =
            (worthless && summary.is_none()).then_some(NavigationReason::NothingToSummarize);
        let committed = self
            .commit(turn, &preparation, summary, reason, abort)
            .await;
        drop(busy);
        match committed {
            Err(error) if error.kind == Kind::Cancelled => {
                unmoved(NavigationReason::Aborted, true, old, old)
            }
            Ok(navigation) => Reply::of(&navigation),
            Err(error) => Err(error),
        }
    }

    /// Step 5: reads what the clients and the summarizer are given. Large branches are read where
    /// that disturbs nobody, with the turn, since bodies may need the tree.
    async fn prepare(&self, turn: SessionGuard, plan: Plan) -> Result<(SessionGuard, Preparation)> {
        let limit = self.bodies_limit();
        let wants_summary = self.request.wants_summary && plan.worth_summarizing;
        let summarizes =
            wants_summary && !self.request.dry_run && self.call.daemon.config.summarizer.is_some();
        // A summarizer's goal is looked for on the whole path.
        let walks = summarizes && turn.tree.node_count() > read::INLINE_ENTRIES;
        let size = match walks {
            true => u64::MAX,
            false => read::size_of(&turn, &plan.abandoned),
        };
        let work = move || {
            let preparation = Preparation::read(&turn, plan, limit, summarizes)?;
            Ok((turn, preparation))
        };
        read::inline_or_blocking(size, work).await
    }

    /// The most that the entries of a before event, or of a dry run, may have together, in bytes.
    fn bodies_limit(&self) -> u64 {
        let frame = self
            .call
            .connection
            .client_frame_bytes()
            .saturating_sub(8192) as u64;
        if self.request.wants_summary || self.request.dry_run {
            frame
        } else {
            frame.min(MAX_UNWANTED_BYTES)
        }
    }

    fn preparation(&self, prepared: &Preparation) -> wire::TreePreparation {
        let request = &self.request;
        let material = &prepared.material;
        let raw = |entries: &Vec<Vec<u8>>| -> Vec<wire::Raw> {
            entries.iter().map(|entry| convert::raw(entry)).collect()
        };
        let ids = prepared.ids.as_ref();
        let fits = ids.is_none();
        wire::TreePreparation {
            target_id: prepared.plan.target_id.as_str().to_owned(),
            old_leaf_id: id_text(&prepared.plan.old_leaf_id),
            common_ancestor_id: id_text(&prepared.plan.common_ancestor_id),
            abandoned_count: prepared.plan.abandoned.len() as u64,
            previous_summary: material.previous_summary.clone(),
            kept_entries: material.kept.as_ref().filter(|_| fits).map(raw),
            kept_entry_ids: ids.and_then(|ids| ids.kept.clone()),
            entries_to_summarize: fits.then(|| raw(&material.entries)),
            entry_ids: ids.map(|ids| ids.entries.clone()),
            truncated: (!fits).then_some(true),
            user_wants_summary: request.wants_summary,
            model: prepared.model.as_ref().map(summaries::wire_model),
            custom_instructions: request.wishes.custom_instructions.clone(),
            replace_instructions: Some(request.wishes.replace_instructions),
            label: request.label.clone(),
        }
    }

    /// Step 6: tells everyone, and waits for those who answer. Overrides change the request; what
    /// ends the navigation is the error.
    async fn ask(
        &mut self,
        prepared: &Preparation,
        abort: &Cancel,
    ) -> std::result::Result<Option<BranchSummary>, Refusal> {
        let request = &self.request;
        let asking = Asking {
            daemon: &self.call.daemon,
            open: &self.open,
            event: BeforeEvent::SessionBeforeTree,
            navigation_id: Some(&request.navigation_id),
            timeout: request.answer_timeout,
            abort,
            takes_summary: request.wants_summary,
        };
        let decided = question::put(asking, |put| notification::SessionBeforeTree {
            session_id: put.session_id,
            seq: put.seq,
            event_id: put.event_id,
            navigation_id: request.navigation_id.clone(),
            timeout_ms: put.timeout_ms,
            preparation: self.preparation(prepared),
        });
        let mut decision = decided.await.map_err(|_| Refusal::Aborted)?;
        if let Some(refusal) = decision.refusal(request.on_no_answer) {
            return Err(Refusal::Answered(refusal));
        }
        let request = &mut self.request;
        if decision.custom_instructions.is_some() {
            request.wishes.custom_instructions = decision.custom_instructions;
        }
        if let Some(replace) = decision.replace_instructions {
            request.wishes.replace_instructions = replace;
        }
        if let Some(label) = &decision.label {
            request.label = name::given(label);
        }
        Ok(decision.summary.as_ref().map(summaries::given))
    }

    /// Step 7: the configured summarizer.
    async fn summarize(&self, prepared: &Preparation, abort: &Cancel) -> Result<BranchSummary> {
        let writing = Writing {
            connection: &self.call.connection,
            open: &self.open,
            listener: Listener::Deltas {
                navigation_id: &self.request.navigation_id,
            },
            model: prepared.model.as_ref(),
            abort,
        };
        let material = prepared.material.clone();
        let (wishes, model) = (self.request.wishes.clone(), prepared.model.clone());
        let subject = match prepared.plan.merges {
            Some(_) => Subject::Merge,
            None => Subject::Branch,
        };
        let written = writing.write(move |summarizer| SummaryRequest {
            subject,
            ..request::branch_request(material, wishes, summarizer.budget(model.as_ref()))
        });
        let (request, summary) = written.await?;
        Ok(BranchSummary {
            text: frame::finish(subject, &summary.text, &request.files),
            details: Some(request.files.to_details()),
            usage: summary.usage.map(Usage::to_json),
            from_hook: false,
        })
    }

    /// Step 8 and 9: one write, then `session_tree`.
    async fn commit(
        &self,
        turn: SessionGuard,
        prepared: &Preparation,
        summary: Option<BranchSummary>,
        reason: Option<NavigationReason>,
        abort: &Cancel,
    ) -> Result<wire::NavigateTreeResult> {
        let source = Arc::clone(&self.call.daemon.source);
        let (plan, label) = (prepared.plan.clone(), self.request.label.clone());
        let from_hook = summary.as_ref().is_some_and(|summary| summary.from_hook);
        let has_summary = summary.is_some();
        let has_label = label.is_some();
        let abort = abort.clone();
        let expected = self.request.expected.clone();
        let write = move |core: &SessionState| {
            core.check_expected_leaf(&expected)?;
            core.check_leaf_is_still(plan.old_leaf_id.as_ref().map(EntryId::as_str))?;
            // From here on it cannot be aborted any more.
            if !abort.commit() {
                return Err(Error::cancelled());
            }
            let summary = summary.as_ref();
            navigate::commit(&core.tree, &*source, &plan, summary, label.as_deref())
        };
        // Labels and names may have come since it was planned.
        let old_leaf_id = turn.leaf_id().map(str::to_owned);
        let then = |core: &SessionState, wrote: bool| -> Result<wire::Navigation> {
            let path: Vec<_> = core.tree.ancestors(core.leaf()).take(2).collect();
            let label_node = path.first().copied().filter(|_| has_label);
            let summary_node = path
                .get(usize::from(has_label))
                .copied()
                .filter(|_| has_summary);
            let entry = |node| core.entry(node);
            let label_entry = label_node.map(entry).transpose()?;
            let summary_entry = summary_node.map(entry).transpose()?;
            let new_leaf_id = core.leaf_id().map(str::to_owned);
            let moved = SessionTree {
                old_leaf_id: old_leaf_id.as_deref(),
                new_leaf_id: new_leaf_id.as_deref(),
                cause: wire::MoveCause::NavigateTree,
                navigation_id: Some(&self.request.navigation_id),
                summary_entry: summary_entry.as_deref(),
                label_entry: label_entry.as_deref(),
                from_hook: has_summary.then_some(from_hook),
            };
            // A merge only appends.
            if prepared.plan.merges.is_none() {
                self.call.daemon.session_tree(&self.open, moved);
            }
            let draft = prepared.draft.as_ref();
            Ok(wire::Navigation {
                cancelled: false,
                reason,
                by: None,
                editor_text: draft.map(|draft| draft.text.clone()),
                editor_images: draft.and_then(editor_images),
                old_leaf_id: old_leaf_id.clone(),
                new_leaf_id,
                summary_entry: summary_entry.as_deref().map(convert::raw),
                label_entry: label_entry.as_deref().map(convert::raw),
                from_hook: has_summary.then_some(from_hook),
                durability: self.open.durability(wrote),
            })
        };
        let change = Change::new(&self.call, Arc::clone(&self.open), turn);
        let navigation = change.commit(write, then).await?.seen;
        Ok(wire::NavigateTreeResult::Navigation(Box::new(navigation?)))
    }
}

/// The images of a draft, if it has any.
fn editor_images(draft: &Draft) -> Option<Vec<wire::Raw>> {
    let images = draft.images.iter().map(|image| convert::raw(image));
    (!draft.images.is_empty()).then(|| images.collect())
}

/// What ends a navigation while its question is open.
enum Refusal {
    Aborted,
    Answered(question::Refusal),
}

fn refused(refusal: Refusal, leaf_id: &Option<EntryId>) -> Result<Reply> {
    let (reason, by) = match refusal {
        Refusal::Aborted => (NavigationReason::Aborted, None),
        Refusal::Answered(question::Refusal { reason, by }) => (reason.into(), by),
    };
    let navigation = wire::Navigation {
        by,
        ..nowhere(reason, true, leaf_id, leaf_id)
    };
    Reply::of(&wire::NavigateTreeResult::Navigation(Box::new(navigation)))
}

/// A navigation that changed nothing.
pub(super) fn unmoved(
    reason: NavigationReason,
    cancelled: bool,
    old_leaf_id: &Option<EntryId>,
    new_leaf_id: &Option<EntryId>,
) -> Result<Reply> {
    Reply::of(&nowhere(reason, cancelled, old_leaf_id, new_leaf_id))
}

fn nowhere(
    reason: NavigationReason,
    cancelled: bool,
    old_leaf_id: &Option<EntryId>,
    new_leaf_id: &Option<EntryId>,
) -> wire::Navigation {
    wire::Navigation {
        cancelled,
        reason: Some(reason),
        by: None,
        editor_text: None,
        editor_images: None,
        old_leaf_id: id_text(old_leaf_id),
        new_leaf_id: id_text(new_leaf_id),
        summary_entry: None,
        label_entry: None,
        from_hook: None,
        durability: wire::Durability::None,
    }
}
