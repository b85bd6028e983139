//! `prepare_compaction` and `compact` (semantics.md §4): the question, the summary and the write, in
//! their order. Where the cut is and what is summarized is [`crate::flow::compact`]'s.

use super::read::{self, INLINE_BYTES};
use super::reply::Reply;
use super::summaries::{self, Listener, Writing};
use crate::blocking::blocking;
use crate::cancel::Cancel;
use crate::context;
use crate::daemon::call::Call;
use crate::daemon::commit::Change;
use crate::daemon::convert;
use crate::daemon::open_session::{OpenSession, SessionGuard};
use crate::daemon::question::{self, ANSWER_TIMEOUT, Asking, Refusal};
use crate::error::{Error, Result};
use crate::flow::compact::{self, Compaction, KEEP_RECENT_TOKENS, Plan};
use crate::id::ExpectedLeaf;
use crate::json;
use crate::session::{Activity, Busy, SessionState};
use crate::summary::request::{self, SummaryOptions};
use crate::summary::{ModelName, Subject, SummaryRequest, Usage, frame};
use crate::wire::notification::{self, CompactionReason};
use crate::wire::{self, BeforeEvent, Mutation};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

pub(super) async fn prepare_compaction(
    call: Arc<Call>,
    params: wire::PrepareCompactionParams,
) -> Result<Reply> {
    let keep = params.keep_recent_tokens.unwrap_or(KEEP_RECENT_TOKENS);
    let max_bytes = call.connection.client_frame_bytes().saturating_sub(8192) as u64;
    let prepared = read::read_again(|| async {
        let (_, turn) = call.fresh(&params).await?;
        let (_, prepared) = prepare(turn, keep, max_bytes).await?;
        Ok(prepared)
    });
    let prepared = prepared.await?;
    let wishes = SummaryOptions {
        custom_instructions: params.custom_instructions,
        replace_instructions: false,
    };
    Reply::of(&wire::PrepareCompactionResult {
        preparation: prepared.preparation(&wishes, max_bytes),
    })
}

pub(super) async fn compact(call: Arc<Call>, params: wire::CompactParams) -> Result<Reply> {
    let (open, turn) = call.fresh(&params).await?;
    open.session.check_writable()?;
    turn.check_expected_leaf(params.expected_leaf())?;
    let abort = call.cancel.clone();
    let busy = open.session.begin(Activity::Compaction {
        abort: abort.clone(),
    })?;
    let mut compactor = Compactor {
        call,
        open,
        abort,
        keep: params.keep_recent_tokens.unwrap_or(KEEP_RECENT_TOKENS),
        expected: params.expected_leaf().clone(),
        answer_timeout: params
            .answer_timeout_ms
            .map_or(ANSWER_TIMEOUT, Duration::from_millis),
        on_no_answer: params.on_no_answer.unwrap_or_default(),
        wishes: SummaryOptions {
            custom_instructions: params.custom_instructions,
            replace_instructions: params.replace_instructions.unwrap_or_default(),
        },
        context: Vec::new(),
        written: AtomicU64::new(0),
    };
    let compacted = compactor.run(turn, busy).await;
    if let Err(error) = &compacted {
        compactor.tell_failure(error);
    }
    compacted
}

/// What the answers come to.
enum Asked {
    /// A compaction.
    Given(Box<Compaction>),
    Nothing,
    Refused(Refusal),
}

fn refused(Refusal { reason, by }: Refusal) -> Result<Reply> {
    Reply::of(&wire::CompactResult {
        cancelled: true,
        reason: Some(reason),
        by,
        compaction_entry: None,
        durability: wire::Durability::None,
    })
}

struct Compactor {
    call: Arc<Call>,
    open: Arc<OpenSession>,
    abort: Cancel,
    keep: u64,
    expected: ExpectedLeaf,
    answer_timeout: Duration,
    on_no_answer: wire::OnNoAnswer,
    wishes: SummaryOptions,
    /// What the answers add for the summarizer.
    context: Vec<String>,
    /// Characters of summaries so far.
    written: AtomicU64,
}

/// What the session said when the compaction began.
struct Prepared {
    plan: Plan,
    tokens_before: u64,
    system_message: Option<Vec<u8>>,
    model: Option<ModelName>,
    old_leaf_id: Option<String>,
}

/// Reads the context where that disturbs nobody. Bodies of more than `max_bytes` together are named, not
/// kept.
async fn prepare(
    turn: SessionGuard,
    keep: u64,
    max_bytes: u64,
) -> Result<(SessionGuard, Prepared)> {
    let path = read::steps(&turn, turn.leaf());
    let long = read::size_of_steps(&turn, &path) > INLINE_BYTES;
    let work = move || {
        let kept = read::kept(&turn, &path)?;
        let mut body = |node| turn.entry(node);
        let plan = compact::plan(&path, kept, keep, max_bytes, &mut body)?;
        let system_messages = context::system_messages(&path, kept, &mut body)?;
        let prepared = Prepared {
            plan,
            tokens_before: context::tokens(&path, kept, &mut body)?,
            system_message: compact::system_message(&system_messages),
            model: summaries::model(&turn)?,
            old_leaf_id: turn.leaf_id().map(str::to_owned),
        };
        Ok((turn, prepared))
    };
    if long { blocking(work).await } else { work() }
}

impl Prepared {
    /// Names the entries instead where they have more than `max_bytes` together.
    fn preparation(&self, wishes: &SummaryOptions, max_bytes: u64) -> wire::CompactionPreparation {
        let plan = &self.plan;
        let prefix = plan.turn_prefix.as_ref();
        let all = plan.history.iter().chain(prefix.into_iter().flatten());
        let size = all.map(|entry| entry.len() as u64).sum::<u64>();
        let fits = plan.ids.is_none() && size <= max_bytes;
        let bodies = |entries: &Vec<Vec<u8>>| -> Vec<wire::Raw> {
            entries.iter().map(|entry| convert::raw(entry)).collect()
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
            custom_instructions: wishes.custom_instructions.clone(),
            replace_instructions: Some(wishes.replace_instructions),
            tokens_before: self.tokens_before,
            file_ops: wire::FileOps {
                read_files: plan.files.read_files.clone(),
                modified_files: plan.files.modified_files.clone(),
            },
        }
    }
}

impl Compactor {
    async fn run(&mut self, mut turn: SessionGuard, busy: Busy) -> Result<Reply> {
        let daemon = Arc::clone(&self.call.daemon);
        // Without `initialize` later requests wait, so that a script means what it says.
        let busy = match self.call.connection.client() {
            None => {
                turn.with().busy = Some(busy);
                None
            }
            Some(_) => Some(busy),
        };
        let (turn, prepared) = prepare(turn, self.keep, u64::MAX).await?;
        daemon.check_summarizable(&self.open, BeforeEvent::SessionBeforeCompact)?;
        let held = match &busy {
            None => Some(turn),
            Some(_) => {
                drop(turn);
                None
            }
        };
        let compaction = match self.ask(&prepared).await? {
            Asked::Given(given) => *given,
            Asked::Nothing => self.summarize(&prepared).await?,
            Asked::Refused(refusal) => return refused(refusal),
        };
        let turn = match held {
            Some(turn) => turn,
            None => {
                let id = Some(&*self.open.id);
                self.call.daemon.turn(id, &self.abort).await?.1
            }
        };
        let compacted = self.commit(turn, &prepared, compaction).await;
        drop(busy);
        compacted
    }

    /// Tells everyone, and waits for those who answer. Overrides change what is wanted.
    async fn ask(&mut self, prepared: &Prepared) -> Result<Asked> {
        let daemon = &self.call.daemon;
        let asking = Asking {
            daemon,
            open: &self.open,
            event: BeforeEvent::SessionBeforeCompact,
            navigation_id: None,
            timeout: self.answer_timeout,
            abort: &self.abort,
            takes_summary: true,
        };
        let max_bytes = self
            .call
            .connection
            .client_frame_bytes()
            .saturating_sub(8192) as u64;
        let decided = question::put(asking, |put| notification::SessionBeforeCompact {
            session_id: put.session_id,
            seq: put.seq,
            event_id: put.event_id,
            timeout_ms: put.timeout_ms,
            preparation: prepared.preparation(&self.wishes, max_bytes),
            model: prepared.model.as_ref().map(summaries::wire_model),
            reason: CompactionReason::Manual,
        });
        let mut decision = decided.await?;
        if let Some(refusal) = decision.refusal(self.on_no_answer) {
            return Ok(Asked::Refused(refusal));
        }
        if decision.custom_instructions.is_some() {
            self.wishes.custom_instructions = decision.custom_instructions;
        }
        if let Some(replace) = decision.replace_instructions {
            self.wishes.replace_instructions = replace;
        }
        self.context = decision.context;
        let Some(given) = decision.compaction else {
            return Ok(Asked::Nothing);
        };
        Ok(Asked::Given(Box::new(Compaction {
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

    /// The configured summarizer: the turns before the cut, and the beginning of the turn that is
    /// cut, each by itself.
    async fn summarize(&self, prepared: &Prepared) -> Result<Compaction> {
        let plan = &prepared.plan;
        let mut usage: Option<Usage> = None;
        let mut history = plan.previous_text.clone();
        if !plan.history.is_empty() {
            let entries = plan.history.clone();
            let (text, used) = self
                .write(prepared, Subject::Context, entries, history)
                .await?;
            history = Some(text);
            usage = used;
        }
        let text = match &plan.turn_prefix {
            Some(prefix) => {
                let written = self.write(prepared, Subject::TurnPrefix, prefix.clone(), None);
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
            summary: frame::finish(Subject::Context, &text, &plan.files),
            details: Some(plan.files.to_details()),
            usage: usage.map(Usage::to_json),
            ..prepared.compaction()
        })
    }

    async fn write(
        &self,
        prepared: &Prepared,
        subject: Subject,
        entries: Vec<Vec<u8>>,
        previous: Option<String>,
    ) -> Result<(String, Option<Usage>)> {
        let writing = Writing {
            connection: &self.call.connection,
            open: &self.open,
            listener: Listener::Progress {
                token: self.call.id.as_ref(),
                written: &self.written,
            },
            model: prepared.model.as_ref(),
            abort: &self.abort,
        };
        // The prefix of a turn is added to a summary that has it already.
        let is_first = subject == Subject::Context || prepared.plan.history.is_empty();
        let context = if is_first {
            self.context.clone()
        } else {
            Vec::new()
        };
        let wishes = self.wishes.clone();
        let (files, model) = (prepared.plan.files.clone(), prepared.model.clone());
        let written = writing.write(move |summarizer| SummaryRequest {
            subject,
            files,
            context,
            ..request::request(entries, previous, wishes, summarizer.budget(model.as_ref()))
        });
        let (_, summary) = written.await?;
        Ok((summary.text, summary.usage))
    }

    /// One write, then `session_compact`.
    async fn commit(
        &self,
        turn: SessionGuard,
        prepared: &Prepared,
        compaction: Compaction,
    ) -> Result<Reply> {
        let (source, abort) = (Arc::clone(&self.call.daemon.source), self.abort.clone());
        let (expected, old_leaf_id) = (self.expected.clone(), prepared.old_leaf_id.clone());
        let from_hook = compaction.from_hook;
        let plan = move |core: &SessionState| {
            core.check_expected_leaf(&expected)?;
            core.check_leaf_is_still(old_leaf_id.as_deref())?;
            if let Some(id) = &compaction.first_kept_entry_id {
                let kept = core.find(id)?;
                if core.tree.common_ancestor(core.leaf(), Some(kept)) != Some(kept) {
                    return Err(Error::entry_not_found(id));
                }
            }
            // From here on it cannot be aborted any more.
            if !abort.commit() {
                return Err(Error::cancelled());
            }
            Ok(compact::commit(&core.tree, &*source, &compaction))
        };
        let then = |core: &SessionState, _wrote: bool| -> Result<Option<Vec<u8>>> {
            let entry = core.leaf().map(|leaf| core.entry(leaf)).transpose()?;
            if let Some(entry) = &entry {
                let daemon = &self.call.daemon;
                daemon.notify(&self.open, "session_compact", |seq| {
                    notification::SessionCompact {
                        session_id: self.open.id.to_string(),
                        seq,
                        compaction_entry: convert::raw(entry),
                        from_hook,
                    }
                });
            }
            Ok(entry)
        };
        let change = Change::new(&self.call, Arc::clone(&self.open), turn);
        let entry = change.commit(plan, then).await?.seen;
        Reply::of(&wire::CompactResult {
            cancelled: false,
            reason: None,
            by: None,
            compaction_entry: Some(convert::raw(&entry?.unwrap_or_default())),
            durability: convert::durability(self.open.session.syncer.durability()),
        })
    }

    fn tell_failure(&self, error: &Error) {
        let daemon = &self.call.daemon;
        daemon.notify(&self.open, "session_compact_failed", |seq| {
            notification::SessionCompactFailed {
                session_id: self.open.id.to_string(),
                seq,
                reason: CompactionReason::Manual,
                error: convert::error_object(error),
            }
        });
    }
}

impl Prepared {
    /// A compaction of what was planned, without its summary.
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
