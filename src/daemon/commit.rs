//! Committing one operation with a session's guard: the write, what is announced of it, and its durability.

use super::Daemon;
use super::convert;
use super::open_session::{OpenSession, SessionGuard};
use crate::cancel::Cancel;
use crate::durability::Durability;
use crate::error::{Error, Kind, Result};
use crate::flow;
use crate::flow::PlannedLines;
use crate::flow::append::NewEntry;
use crate::id::{EntryId, ExpectedLeaf};
use crate::session::SessionState;
use crate::wire::{self, notification};
use std::sync::Arc;

/// An append that has been carried out.
pub(crate) struct Appended {
    pub(crate) entry_ids: Vec<String>,
    pub(crate) durability: wire::Durability,
}

impl Appended {
    pub(crate) fn last(&self) -> Result<String> {
        let last = self.entry_ids.last().cloned();
        last.ok_or_else(|| Error::new(Kind::InternalError, "nothing was appended"))
    }
}

/// Appends entries as one operation with a turn that was taken for it, tells of it, and waits as long
/// as the durability asks.
pub(crate) async fn append(
    daemon: &Arc<Daemon>,
    cancel: &Cancel,
    open: &Arc<OpenSession>,
    turn: SessionGuard,
    expected: ExpectedLeaf,
    entries: Vec<NewEntry>,
) -> Result<Appended> {
    let source = Arc::clone(&daemon.source);
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
    let (repeated, entry_ids) = commit(daemon, cancel, open, turn, plan, repeated).await?;
    // Some of them may have been in the file before.
    if let Some(entries) = repeated? {
        let late = {
            let (daemon, open) = (Arc::clone(daemon), Arc::clone(open));
            move || daemon.durability_lost(&open)
        };
        let syncer = &open.session.syncer;
        syncer.after_repetition(durability, entries, late).await?;
    }
    Ok(Appended {
        entry_ids,
        durability: convert::durability(durability),
    })
}

/// Writes what `plan` plans, announces it, lets `then` look at the session while nothing has come
/// after, and makes it as durable as is promised. The turn is given up before that.
pub(crate) async fn commit<P, T, R>(
    daemon: &Arc<Daemon>,
    cancel: &Cancel,
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
    let (turn, changes, committed) = turn.commit(cancel, plan).await;
    let Some(mut turn) = turn else {
        return Err(committed.err().unwrap_or_else(Error::cancelled));
    };
    if let Err(error) = &committed {
        session.note_failed_making(&turn, error);
    }
    let late = {
        let (daemon, open) = (Arc::clone(daemon), Arc::clone(open));
        move || daemon.durability_lost(&open)
    };
    let wrote = committed.as_ref().is_ok_and(|committed| committed.wrote);
    // What is told from here on is told once it is on disk: persist, then notify.
    let durability = session.syncer.durability();
    let held = (wrote && durability == Durability::Always).then(|| open.hold());
    daemon.announce(open, &turn, changes, name_before.as_deref());
    let committed = committed?;
    let seen = then(&turn, wrote);
    daemon.watch_predecessors(open, &mut turn);
    drop(turn);
    if let Some(file) = committed.unsynced {
        session.syncer.after_write(durability, file, late).await?;
    }
    drop(held);
    let ids = committed.entry_ids.iter().map(|id| id.as_str().to_owned());
    Ok((seen, ids.collect()))
}

impl Daemon {
    /// Tells that a sync failed after its appends had been answered (session-file.md §3).
    pub(crate) fn durability_lost(&self, open: &OpenSession) {
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
