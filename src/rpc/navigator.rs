//! A navigation's way through its nine steps (protocol.md §4), with the waiting between them. What the
//! steps mean is [`crate::flow::navigate`]'s, and who asks for one [`super::navigate`]'s.

use super::append::commit;
use super::convert;
use super::method::Reply;
use super::notify::SessionTree;
use super::question::{self, Asking};
use super::server::{Call, OpenSession};
use super::summaries::{self, Listener, Writing, id_text};
use crate::cancel::Cancel;
use crate::error::{Error, Kind, Result};
use crate::flow::leaf::BranchSummary;
use crate::flow::navigate::{self, Draft, Navigation, Plan};
use crate::flow::summarize::{self, Wishes};
use crate::id::EntryId;
use crate::json;
use crate::session::{Activity, Busy, Core, Turn};
use crate::summarizer::{self, ModelName, Subject, Usage};
use crate::tree::Node;
use crate::wire::{self, BeforeEvent, NavigationReason, notification};
use std::sync::Arc;
use std::time::Duration;

/// Entries larger than this together are named instead, where no summary is wanted, in bytes.
const MAX_UNWANTED_BYTES: u64 = 1 << 20;

/// What the caller of a navigation wants.
pub(super) struct Request {
    pub expected: Option<Option<String>>,
    pub navigation_id: String,
    pub wants_summary: bool,
    pub wishes: Wishes,
    pub label: Option<String>,
    pub answer_timeout: Duration,
    pub on_no_answer: wire::OnNoAnswer,
    pub rewind: bool,
    pub dry_run: bool,
}

/// What is done with the other place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
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
    entries: Vec<Vec<u8>>,
    /// Of the abandoned entries, as a JSON array, where they are too large to be told themselves.
    entry_ids: Option<wire::Raw>,
    previous_summary: Option<String>,
    model: Option<ModelName>,
    draft: Option<Draft>,
}

impl Navigator {
    pub async fn run(
        mut self,
        mut turn: Turn,
        way: Way,
        find: impl FnOnce(&Core) -> Result<Node>,
    ) -> Result<Reply> {
        // Cancelling the request aborts the navigation, whatever it waits for.
        let abort = self.call.cancel.clone();
        let busy = self.open.session.begin(Activity::Navigation {
            id: self.request.navigation_id.clone(),
            abort: abort.clone(),
        })?;
        // Without `initialize` later requests wait, so that a script means what it says.
        let busy = match self.call.server.client() {
            None => {
                turn.hold(busy);
                None
            }
            Some(_) => Some(busy),
        };
        let target = find(&turn)?;
        let planned = match way {
            Way::To => navigate::plan(&turn.tree, target, self.request.rewind),
            Way::Merge => navigate::plan_merge(&turn.tree, target),
        };
        let plan = match planned {
            Navigation::Move(plan) => plan,
            Navigation::AlreadyThere => {
                let leaf_id = turn.leaf_id().map(EntryId::new);
                return unmoved(NavigationReason::AlreadyThere, false, &leaf_id, &leaf_id);
            }
        };
        if self.request.wants_summary && !self.request.dry_run {
            let server = &self.call.server;
            server.check_summarizable(BeforeEvent::SessionBeforeTree)?;
        }
        let (turn, mut preparation) = self.prepare(turn, plan).await?;
        if self.request.dry_run {
            // Handed over rather than copied: they are as much as the client takes.
            let entries = std::mem::take(&mut preparation.entries).into_iter();
            let entries: Vec<wire::Raw> = entries.map(convert::raw_owned).collect();
            let fits = preparation.entry_ids.is_none();
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

    /// Steps 6 to 9.
    async fn go(
        &mut self,
        held: Option<Turn>,
        preparation: Preparation,
        abort: &Cancel,
        busy: Option<Busy>,
    ) -> Result<Reply> {
        let old = &preparation.plan.old_leaf_id;
        let given = match self.ask(&preparation, abort).await {
            Ok(given) => given,
            Err(reason) => return unmoved(reason, true, old, old),
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
            None => self.open.session.turn(abort).await,
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
    async fn prepare(&self, turn: Turn, plan: Plan) -> Result<(Turn, Preparation)> {
        let size = super::read::size_of(&turn, &plan.abandoned);
        let limit = self.bodies_limit();
        let is_written = self.request.wants_summary && !self.request.dry_run;
        let needs_bodies = is_written || size <= limit;
        let read = move || {
            let nodes = &plan.abandoned;
            let entries = if needs_bodies {
                let (bodies, fetches) = (turn.bodies(), turn.fetch(nodes.iter().copied())?);
                let mut reader = bodies.reader();
                let entries = fetches.iter().map(|fetch| reader.entry(fetch));
                entries.collect::<Result<Vec<_>>>()?
            } else {
                Vec::new()
            };
            let size: usize = entries.iter().map(Vec::len).sum();
            let fits = entries.len() == nodes.len() && size as u64 <= limit;
            let entry_ids = (!fits).then(|| convert::id_array(&turn.tree, nodes));
            let previous = plan
                .previous_compaction
                .map(|node| turn.entry(node))
                .transpose()?;
            let previous_summary = previous
                .and_then(|entry| Some(json::string(json::get(&entry, "summary")?)?.into_owned()));
            let draft = plan.editor_entry.map(|node| turn.entry(node)).transpose()?;
            let model = summaries::model(&turn)?;
            let preparation = Preparation {
                entries,
                entry_ids,
                previous_summary,
                model,
                draft: draft.as_deref().map(navigate::draft),
                plan,
            };
            Ok((turn, preparation))
        };
        super::read::inline_or_blocking(size, read).await
    }

    /// The most the entries of a before event may have together, in bytes.
    fn bodies_limit(&self) -> u64 {
        let frame = self.call.server.client_frame_bytes().saturating_sub(8192) as u64;
        if self.request.wants_summary || self.request.dry_run {
            frame
        } else {
            frame.min(MAX_UNWANTED_BYTES)
        }
    }

    fn preparation(&self, prepared: &Preparation) -> wire::TreePreparation {
        let request = &self.request;
        let fits = prepared.entry_ids.is_none();
        wire::TreePreparation {
            target_id: prepared.plan.target_id.as_str().to_owned(),
            old_leaf_id: id_text(&prepared.plan.old_leaf_id),
            common_ancestor_id: id_text(&prepared.plan.common_ancestor_id),
            entries_to_summarize: fits.then(|| {
                prepared
                    .entries
                    .iter()
                    .map(|entry| convert::raw(entry))
                    .collect()
            }),
            entry_ids: prepared.entry_ids.clone(),
            truncated: (!fits).then_some(true),
            user_wants_summary: request.wants_summary,
            previous_summary: prepared.previous_summary.clone(),
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
    ) -> std::result::Result<Option<BranchSummary>, NavigationReason> {
        let request = &self.request;
        let asking = Asking {
            server: &self.call.server,
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
        let decision = decided.await.map_err(|_| NavigationReason::Aborted)?;
        if decision.cancelled {
            return Err(NavigationReason::CancelledByClient);
        }
        if decision.is_silent && self.request.on_no_answer == wire::OnNoAnswer::Cancel {
            return Err(NavigationReason::NoAnswer);
        }
        let request = &mut self.request;
        if decision.custom_instructions.is_some() {
            request.wishes.custom_instructions = decision.custom_instructions;
        }
        if let Some(replace) = decision.replace_instructions {
            request.wishes.replace_instructions = replace;
        }
        if decision.label.is_some() {
            request.label = decision.label;
        }
        Ok(decision.summary.map(|given| BranchSummary {
            text: given.summary,
            details: given.details.map(|raw| raw.get().as_bytes().to_vec()),
            usage: None,
            from_hook: true,
        }))
    }

    /// Step 7: the configured summarizer.
    async fn summarize(&self, prepared: &Preparation, abort: &Cancel) -> Result<BranchSummary> {
        let writing = Writing {
            server: &self.call.server,
            open: &self.open,
            listener: Listener::Deltas {
                navigation_id: &self.request.navigation_id,
            },
            model: prepared.model.as_ref(),
            abort,
        };
        let entries = prepared.entries.clone();
        let previous = prepared.previous_summary.clone();
        let (wishes, model) = (self.request.wishes.clone(), prepared.model.clone());
        let subject = match prepared.plan.merges {
            Some(_) => Subject::Merge,
            None => Subject::Branch,
        };
        let written = writing.write(move |summarizer| summarizer::Request {
            subject,
            ..summarize::request(entries, previous, wishes, summarizer.budget(model.as_ref()))
        });
        let (request, summary) = written.await?;
        Ok(BranchSummary {
            text: summarize::finish(subject, &summary.text, &request.files),
            details: Some(request.files.to_details()),
            usage: summary.usage.map(Usage::to_json),
            from_hook: false,
        })
    }

    /// Step 8 and 9: one write, then `session_tree`.
    async fn commit(
        &self,
        turn: Turn,
        prepared: &Preparation,
        summary: Option<BranchSummary>,
        reason: Option<NavigationReason>,
        abort: &Cancel,
    ) -> Result<wire::NavigateTreeResult> {
        let source = Arc::clone(&self.call.server.source);
        let (plan, label) = (prepared.plan.clone(), self.request.label.clone());
        let from_hook = summary.as_ref().is_some_and(|summary| summary.from_hook);
        let has_summary = summary.is_some();
        let has_label = label.as_deref().is_some_and(|label| !label.is_empty());
        let abort = abort.clone();
        let expected = self.request.expected.clone();
        let write = move |core: &Core| {
            core.check_expected_leaf(expected.as_ref().map(Option::as_deref))?;
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
        let then = |core: &Core, wrote: bool| -> Result<wire::Navigation> {
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
                from_hook,
            };
            // A merge only appends.
            if prepared.plan.merges.is_none() {
                self.call.server.session_tree(&self.open, moved);
            }
            let draft = prepared.draft.as_ref();
            let images = draft
                .map(|draft| &draft.images)
                .filter(|images| !images.is_empty());
            Ok(wire::Navigation {
                cancelled: false,
                reason,
                editor_text: draft.map(|draft| draft.text.clone()),
                editor_images: images
                    .map(|images| images.iter().map(|image| convert::raw(image)).collect()),
                old_leaf_id: old_leaf_id.clone(),
                new_leaf_id,
                summary_entry: summary_entry.as_deref().map(convert::raw),
                label_entry: label_entry.as_deref().map(convert::raw),
                from_hook: has_summary.then_some(from_hook),
                durability: self.open.durability(wrote),
            })
        };
        let (navigation, _) = commit(&self.call, &self.open, turn, write, then).await?;
        Ok(wire::NavigateTreeResult::Navigation(Box::new(navigation?)))
    }
}

/// A navigation that changed nothing.
pub(super) fn unmoved(
    reason: NavigationReason,
    cancelled: bool,
    old_leaf_id: &Option<EntryId>,
    new_leaf_id: &Option<EntryId>,
) -> Result<Reply> {
    Reply::of(&wire::NavigateTreeResult::Navigation(Box::new(
        wire::Navigation {
            cancelled,
            reason: Some(reason),
            editor_text: None,
            editor_images: None,
            old_leaf_id: id_text(old_leaf_id),
            new_leaf_id: id_text(new_leaf_id),
            summary_entry: None,
            label_entry: None,
            from_hook: None,
            durability: wire::Durability::None,
        },
    )))
}
