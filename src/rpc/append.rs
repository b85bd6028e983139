//! Appending: messages, batches, labels, names (protocol.md §3, §9).

use super::lane;
use super::reply::Reply;
use super::server::{Call, OpenSession, SessionGuard};
use crate::durability::Durability;
use crate::error::{Error, Kind, Result};
use crate::flow;
use crate::flow::PlannedLines;
use crate::flow::append::{NewEntry, NewParent};
use crate::id::{EntryId, ExpectedLeaf};
use crate::session::SessionState;
use crate::wire::{self, Mutation, OnSession, notification};
use std::sync::Arc;

pub async fn append_message(call: Arc<Call>, params: wire::AppendMessageParams) -> Result<Reply> {
    let entry = NewEntry::message(params.message.get().as_bytes())?
        .with_id(params.entry_id.as_deref(), "entryId")?
        .with_parent(match &params.parent_id {
            wire::GivenPosition::Leaf => NewParent::Previous,
            wire::GivenPosition::Empty => NewParent::Named(None),
            wire::GivenPosition::At(parent) => NewParent::Named(Some(parent.clone())),
        });
    let appended = lane::append(&call, params.session_id(), expected(&params), vec![entry]).await?;
    let entry_id = appended.last()?;
    Reply::of(&wire::AppendMessageResult {
        leaf_id: entry_id.clone(),
        entry_id,
        durability: appended.durability,
    })
}

pub async fn append_entries(call: Arc<Call>, params: wire::AppendEntriesParams) -> Result<Reply> {
    let entries = params.entries.iter().enumerate();
    let entries = entries.map(|(index, raw)| NewEntry::parse(index, raw.get().as_bytes()));
    let entries = entries.collect::<Result<Vec<_>>>()?;
    let appended = lane::append(&call, params.session_id(), expected(&params), entries).await?;
    Reply::of(&wire::AppendEntriesResult {
        leaf_id: appended.last()?,
        entry_ids: appended.entry_ids,
        durability: appended.durability,
    })
}

pub async fn append_label(call: Arc<Call>, params: wire::AppendLabelParams) -> Result<Reply> {
    let entry = NewEntry::label(&params.target_id, params.label.as_deref());
    let entry = entry.with_id(params.entry_id.as_deref(), "entryId")?;
    let appended = lane::append(&call, params.session_id(), expected(&params), vec![entry]).await?;
    let entry_id = appended.last()?;
    Reply::of(&wire::AppendLabelResult {
        leaf_id: entry_id.clone(),
        entry_id,
        durability: appended.durability,
    })
}

pub async fn set_session_name(
    call: Arc<Call>,
    params: wire::SetSessionNameParams,
) -> Result<Reply> {
    let entry = NewEntry::session_info(&params.name);
    let appended = lane::append(&call, params.session_id(), expected(&params), vec![entry]).await?;
    let entry_id = appended.last()?;
    Reply::of(&wire::SetSessionNameResult {
        leaf_id: entry_id.clone(),
        entry_id,
        durability: appended.durability,
    })
}

/// The client's idea of the leaf, to be kept beyond the params.
pub(super) fn expected(params: &impl Mutation) -> ExpectedLeaf {
    params.expected_leaf().clone()
}

/// What an append came to.
pub struct Appended {
    pub entry_ids: Vec<String>,
    pub durability: wire::Durability,
}

impl Appended {
    fn last(&self) -> Result<String> {
        let last = self.entry_ids.last().cloned();
        last.ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))
    }
}

/// Appends entries as one operation with a turn that was taken for it, tells of it, and waits as long
/// as the durability asks.
pub(super) async fn append(
    call: &Arc<Call>,
    open: &Arc<OpenSession>,
    turn: SessionGuard,
    expected: ExpectedLeaf,
    entries: Vec<NewEntry>,
) -> Result<Appended> {
    let source = Arc::clone(&call.server.source);
    let chosen: Vec<EntryId> = entries
        .iter()
        .filter_map(|entry| entry.id.clone())
        .collect();
    let plan = move |core: &SessionState| {
        let stored = |node| core.entry(node);
        let planned = flow::append::plan(&core.tree, &*source, &entries, &stored);
        // A retry has moved the leaf itself.
        if planned
            .as_ref()
            .is_ok_and(|planned| planned.lines.is_empty())
        {
            return planned;
        }
        core.check_expected_leaf(&expected)?;
        planned
    };
    let durability = open.session.syncer.durability();
    let repeated = |core: &SessionState, _| core.repeated(chosen.iter());
    let (repeated, entry_ids) = commit(call, open, turn, plan, repeated).await?;
    // Some of them may have been in the file before.
    if let Some(entries) = repeated? {
        let late = {
            let (server, open) = (Arc::clone(&call.server), Arc::clone(open));
            move || server.durability_lost(&open)
        };
        let syncer = &open.session.syncer;
        syncer.after_repetition(durability, entries, late).await?;
    }
    Ok(Appended {
        entry_ids,
        durability: super::convert::durability(durability),
    })
}

/// Writes what `plan` plans, announces it, lets `then` look at the session while nothing has come
/// after, and makes it as durable as is promised. The turn is given up before that.
pub(super) async fn commit<P, T, R>(
    call: &Arc<Call>,
    open: &Arc<OpenSession>,
    turn: SessionGuard,
    plan: P,
    then: T,
) -> Result<(R, Vec<String>)>
where
    P: FnOnce(&SessionState) -> Result<PlannedLines> + Send + 'static,
    T: FnOnce(&SessionState, bool) -> R,
{
    let session = &open.session;
    session.syncer.check()?;
    let name_before = turn.tree.name().map(str::to_owned);
    let (turn, changes, committed) = turn.commit(&call.cancel, plan).await;
    let Some(mut turn) = turn else {
        return Err(committed.err().unwrap_or_else(Error::cancelled));
    };
    if let Err(error) = &committed {
        session.note_failed_making(&turn, error);
    }
    let late = {
        let (server, open) = (Arc::clone(&call.server), Arc::clone(open));
        move || server.durability_lost(&open)
    };
    let wrote = committed.as_ref().is_ok_and(|committed| committed.wrote);
    // What is told from here on is told once it is on disk: persist, then notify.
    let durability = session.syncer.durability();
    let held = (wrote && durability == Durability::Always).then(|| open.hold(&call.server));
    call.server
        .announce(open, &turn, changes, name_before.as_deref());
    let committed = committed?;
    let seen = then(&turn, wrote);
    call.server.watch_predecessors(open, &mut turn);
    drop(turn);
    if let Some(file) = committed.unsynced {
        session.syncer.after_write(durability, file, late).await?;
    }
    drop(held);
    let ids = committed.entry_ids.iter().map(|id| id.as_str().to_owned());
    Ok((seen, ids.collect()))
}

impl super::Server {
    /// Tells that a sync failed after its appends had been answered (storage.md §3).
    pub(super) fn durability_lost(&self, open: &OpenSession) {
        if open.session.is_closed() {
            tracing::error!("entries of a session that has been closed may not be on disk");
            return;
        }
        self.notify(open, "diagnostics", |seq| notification::Diagnostics {
            session_id: open.id.to_string(),
            seq,
            diagnostics: vec![wire::Diagnostic {
                kind: wire::DiagnosticKind::DurabilityUnknown,
                line: 0,
                offset: 0,
                length: 0,
            }],
        });
    }
}
