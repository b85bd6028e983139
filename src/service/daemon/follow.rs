//! Changes by other writers: entries that they append while no client asks, and entries that arrive in a file after
//! it has been replaced (session-file.md §2, §3).

use super::Daemon;
use super::commit::CommitTail;
use super::open_session::{OpenSession, SessionGuard, Tenure};
use super::watched::WatchedSession;
use crate::daemon::queue::Scope;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use treelined_core::error::{Kind, Result};
use treelined_core::flow::PlannedLines;
use treelined_files::cancel::Cancel;
use treelined_files::os::program;
use treelined_files::session::{self, SessionState};

/// The first and the longest pause between two looks at a replaced file.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(10);
/// The pause between two looks before the process ends.
const LAST_PAUSE: Duration = Duration::from_millis(5);

impl Daemon {
    /// Watches the session's file, so that clients are notified when other writers append.
    pub(crate) fn watch(self: &Arc<Self>, open: &Arc<OpenSession>) {
        let Some(path) = &open.session.path else {
            return;
        };
        let (daemon, weak) = (Arc::downgrade(self), Arc::downgrade(open));
        let watched = WatchedSession {
            look: Box::new(move || Box::pin(look(daemon.clone(), weak.clone()))),
            runtime: Handle::current(),
            is_due: AtomicBool::new(false),
        };
        let watched = open.watched.get_or_init(|| Arc::new(watched));
        self.watcher.add(path, watched, WatchedSession::changed);
        // The watch does not report entries that arrived between the opening and its start.
        WatchedSession::changed(Arc::clone(watched));
    }

    pub(crate) fn unwatch(&self, open: &OpenSession) {
        if let Some(path) = &open.session.path {
            self.watcher.remove(path);
        }
        self.leave_log(open);
    }

    /// Reads the entries that other writers have appended, and announces them.
    pub(crate) async fn caught_up(
        self: &Arc<Self>,
        open: &Arc<OpenSession>,
        turn: SessionGuard,
    ) -> Result<SessionGuard> {
        let name_before = turn.tree.name().map(str::to_owned);
        let (mut turn, changes) = turn.refreshed().await?;
        self.announce(open, &turn, changes, name_before.as_deref(), &[]);
        self.watch_predecessors(open, &mut turn);
        Ok(turn)
    }

    /// Follows the session's old file for a minute after it has been replaced, whether or not the session stays
    /// open.
    pub(crate) fn watch_predecessors(
        self: &Arc<Self>,
        open: &Arc<OpenSession>,
        turn: &mut SessionState,
    ) {
        if !turn.has_predecessor() || !self.begin_following(open) {
            return;
        }
        let (daemon, open) = (Arc::clone(self), Arc::clone(open));
        tokio::spawn(async move {
            let mut pause = FIRST_LOOK;
            loop {
                tokio::time::sleep(pause).await;
                if !daemon.carry_over(&open).await {
                    break;
                }
                pause = (pause * 2).min(LAST_LOOK);
            }
            daemon
                .following()
                .retain(|known| !Arc::ptr_eq(known, &open));
        });
    }

    /// Copies late entries from replaced files, a last time before the process ends.
    pub(crate) async fn look_a_last_time(self: &Arc<Self>) {
        let following = std::mem::take(&mut *self.following());
        for open in following {
            // Repeats until the incomplete lines of other writers are complete.
            while self.carry_over(&open).await
                && self.turn_though_closed(&open).await.has_arrivals()
            {
                tokio::time::sleep(LAST_PAUSE).await;
            }
            if open.session.syncer.flush().await.is_err() {
                tracing::error!("entries of a replaced file may not be on disk");
            }
            self.hand_over(&open).await;
        }
    }

    /// Starts a process for each replaced file that other programs may still write to: it goes on when this one has
    /// ended.
    async fn hand_over(&self, open: &Arc<OpenSession>) {
        let Some(path) = open.session.path.clone() else {
            return;
        };
        let turn = self.turn_though_closed(open).await;
        for (old, handover) in turn.handovers() {
            if let Err(error) = program::start_detached(&handover.arguments(&path), &old) {
                tracing::warn!(
                    %error,
                    "lines that other programs still write to the old file of {} are lost",
                    path.display()
                );
            }
        }
    }

    /// The session's guard, also after the session has been closed.
    async fn turn_though_closed(
        &self,
        open: &Arc<OpenSession>,
    ) -> session::SessionGuard<Option<Tenure>> {
        loop {
            let asked = Instant::now();
            let lease = self
                .queues
                .lease(None, Some(&open.id), Scope::Session, &Cancel::new())
                .await;
            let lease = lease
                .ok()
                .filter(|lease| lease.open().is_some_and(|now| Arc::ptr_eq(now, open)));
            let Some(lease) = lease else {
                return open.session.guard_after_close(None).await;
            };
            let tenure = Some(Tenure { busy: None, lease });
            if let Ok(guard) = open.session.guard(asked, tenure) {
                return guard;
            }
        }
    }

    /// Returns false if the old file is already followed.
    fn begin_following(&self, open: &Arc<OpenSession>) -> bool {
        let mut following = self.following();
        let is_new = !following.iter().any(|known| Arc::ptr_eq(known, open));
        if is_new {
            following.push(Arc::clone(open));
        }
        is_new
    }

    /// Copies late entries from replaced files; returns false once no more are expected.
    async fn carry_over(self: &Arc<Self>, open: &Arc<OpenSession>) -> bool {
        let mut turn = self.turn_though_closed(open).await;
        if !turn.has_arrivals() {
            return turn.has_predecessor();
        }
        let name_before = turn.tree.name().map(str::to_owned);
        // An empty commit carries late entries over.
        let nothing = |_: &SessionState| Ok(PlannedLines::default());
        let (turn, changes, outcome) = turn.commit(&Cancel::new(), nothing).await;
        let Some(mut turn) = turn else {
            return false;
        };
        let goes_on = turn.has_predecessor();
        let name_before = name_before.as_deref();
        let tail = CommitTail::announce(self, open, &turn, changes, name_before, &[], &outcome);
        drop(turn);
        let (synced, _) = tail.finish().await;
        match outcome {
            Ok(_) if synced.is_err() => self.durability_lost(open),
            Ok(_) => {}
            // The file was deleted after the session had been closed.
            Err(error) if open.session.is_closed() && error.kind == Kind::SessionDeleted => {
                return false;
            }
            Err(error) => tracing::warn!(%error, "entries in a replaced file wait"),
        }
        goes_on
    }
}

/// Reads the entries that other writers have appended to a watched file.
async fn look(daemon: Weak<Daemon>, open: Weak<OpenSession>) {
    let (Some(daemon), Some(open)) = (daemon.upgrade(), open.upgrade()) else {
        return;
    };
    let turn = daemon.turn(None, Some(&open.id), &Cancel::new()).await;
    if let Ok((open, turn)) = turn {
        // The next call reports a fault of the file.
        let _unreadable = daemon.caught_up(&open, turn).await;
    }
}
