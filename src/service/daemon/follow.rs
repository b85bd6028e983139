//! Changes by other writers: entries that others append while no client asks, and entries that others write to a file
//! after the file has been replaced (session-file.md §2, §3).

use super::Daemon;
use super::commit_tail::CommitTail;
use super::guard::{Lease, SessionGuard, Tenure, guard_of};
use super::notify::FactsBefore;
use super::open_session::OpenSession;
use super::queue::Access;
use super::watched::WatchedSession;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use treelined_core::error::{Kind, Result};
use treelined_core::flow::PlannedLines;
use treelined_files::cancel::Cancel;
use treelined_files::log::upstream::{LogHook, LogNews, is_replica};
use treelined_files::os::file::Location;
use treelined_files::os::{process, program};
use treelined_files::session::{self, SessionState};
use treelined_wire as wire;

/// The first and the longest pause between two reads of a replaced file.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const LAST_LOOK: Duration = Duration::from_secs(10);
/// The pause between two looks before the process ends.
const LAST_PAUSE: Duration = Duration::from_millis(5);

/// Watches the session's file, so that clients are notified when another writer appends.
pub(crate) fn watch(daemon: &Arc<Daemon>, open: &Arc<OpenSession>) {
    let Some(path) = &open.session.path else {
        return;
    };
    let (watching, weak) = (Arc::downgrade(daemon), Arc::downgrade(open));
    let watched = WatchedSession {
        look: Box::new(move || Box::pin(look(watching.clone(), weak.clone()))),
        runtime: Handle::current(),
        is_due: AtomicBool::new(false),
    };
    let watched = open.watched.get_or_init(|| Arc::new(watched));
    let watcher = &daemon.registry.watcher;
    watcher.add(path, watched, WatchedSession::changed);
    // The watch does not report entries that arrived after the session was opened and before the watch started.
    WatchedSession::changed(Arc::clone(watched));
}

/// Stops the watch of a closed session's file.
pub(crate) fn unwatch(daemon: &Daemon, open: &OpenSession) {
    if let Some(path) = &open.session.path {
        daemon.registry.watcher.remove(path);
    }
    daemon.files.leave_log(&open.id);
}

/// The session of a lease, with its guard. The entries of other writers have been read.
pub(crate) async fn current(
    daemon: &Arc<Daemon>,
    lease: Lease,
    asked: Instant,
) -> Result<(Arc<OpenSession>, SessionGuard)> {
    let (open, guard) = guard_of(lease, asked)?;
    let guard = caught_up(daemon, &open, guard).await?;
    Ok((open, guard))
}

/// Reads the entries that other writers have appended, and announces them.
pub(crate) async fn caught_up(
    daemon: &Arc<Daemon>,
    open: &Arc<OpenSession>,
    guard: SessionGuard,
) -> Result<SessionGuard> {
    let before = FactsBefore::of(&guard);
    let (mut guard, changes) = guard.refreshed().await?;
    let notifier = &daemon.notifier;
    notifier.announce(open, &guard, changes, &before, &[]);
    watch_predecessors(daemon, open, &mut guard);
    Ok(guard)
}

/// Follows the old file of a session for a minute after the file has been replaced. If the session is closed, its old
/// file is still followed.
pub(crate) fn watch_predecessors(
    daemon: &Arc<Daemon>,
    open: &Arc<OpenSession>,
    guard: &mut SessionState,
) {
    if !guard.has_predecessor() || !daemon.registry.begin_following(open) {
        return;
    }
    let (daemon, open) = (Arc::clone(daemon), Arc::clone(open));
    tokio::spawn(async move {
        let mut pause = FIRST_LOOK;
        loop {
            tokio::time::sleep(pause).await;
            if !carry_over(&daemon, &open).await {
                break;
            }
            pause = (pause * 2).min(LAST_LOOK);
        }
        daemon.registry.end_following(&open);
    });
}

/// Copies late entries from replaced files for the last time, before the process ends.
pub(crate) async fn look_a_last_time(daemon: &Arc<Daemon>) {
    for open in daemon.registry.take_following() {
        let is_unheld = |file| process::writers_of(file).is_some_and(|writers| writers.is_empty());
        guard_though_closed(daemon, &open)
            .await
            .end_waiting(is_unheld);
        // Repeats until other writers have completed their incomplete lines.
        while carry_over(daemon, &open).await
            && guard_though_closed(daemon, &open).await.has_arrivals()
        {
            tokio::time::sleep(LAST_PAUSE).await;
        }
        if open.session.syncer.flush().await.is_err() {
            tracing::error!("entries of a replaced file may not be on disk");
        }
        hand_over(daemon, &open).await;
    }
}

/// Starts a process for each replaced file that other programs may still write to. The new process continues after this
/// process has ended.
async fn hand_over(daemon: &Daemon, open: &Arc<OpenSession>) {
    let Some(path) = open.session.path.clone() else {
        return;
    };
    let guard = guard_though_closed(daemon, open).await;
    for (old, handover) in guard.handovers() {
        if let Err(error) = program::start_detached(&handover.arguments(&path), &old) {
            tracing::warn!(
                %error,
                "lines that other programs still write to the old file of {} are lost",
                path.display()
            );
        }
    }
}

/// The guard of the session, even if the session is closed.
async fn guard_though_closed(
    daemon: &Daemon,
    open: &Arc<OpenSession>,
) -> session::SessionGuard<Option<Tenure>> {
    loop {
        let asked = Instant::now();
        let lease = daemon.registry.own_place(&open.id).await;
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

/// Copies late entries from replaced files. Returns false when no more entries are expected.
async fn carry_over(daemon: &Arc<Daemon>, open: &Arc<OpenSession>) -> bool {
    let mut guard = guard_though_closed(daemon, open).await;
    if !guard.has_arrivals() {
        return guard.has_predecessor();
    }
    let before = FactsBefore::of(&guard);
    // An empty commit carries late entries over.
    let nothing = |_: &SessionState| Ok(PlannedLines::default());
    let (guard, changes, outcome) = guard.commit(&Cancel::new(), nothing).await;
    let Some(mut guard) = guard else {
        return false;
    };
    let goes_on = guard.has_predecessor();
    let tail = CommitTail::announce(daemon, open, &guard, changes, &before, &[], &outcome);
    drop(guard);
    let (synced, _) = tail.finish().await;
    match outcome {
        Ok(_) if synced.is_err() => daemon.notifier.durability_lost(open),
        Ok(_) => {}
        // The file was deleted after the session was closed.
        Err(error) if open.session.is_closed() && error.kind == Kind::SessionDeleted => {
            return false;
        }
        Err(error) => tracing::warn!(%error, "entries in a replaced file wait"),
    }
    goes_on
}

/// Reads the entries that other writers have appended to a watched file.
async fn look(daemon: Weak<Daemon>, open: Weak<OpenSession>) {
    let (Some(daemon), Some(open)) = (daemon.upgrade(), open.upgrade()) else {
        return;
    };
    if let Ok((open, guard)) = daemon.registry.own_guard(&open.id).await {
        // The next request reports a fault of the file.
        let _unreadable = caught_up(&daemon, &open, guard).await;
    }
}

/// Follows the entries that other machines append to an open session.
pub(crate) fn follow_log(daemon: &Arc<Daemon>, open: &Arc<OpenSession>, access: Access) {
    let (Some(log), Some(path)) = (daemon.files.shared_log(), &open.session.path) else {
        return;
    };
    let is_known = || Location::of_path(path).is_ok_and(|at| is_replica(&at));
    if access == Access::Write || is_known() {
        log.follow(&open.id, news_hook(daemon, open));
    }
}

/// Makes the function that is called with news of the stream. It announces new entries to connections and other
/// machines, and lost entries to connections.
fn news_hook(daemon: &Arc<Daemon>, open: &Arc<OpenSession>) -> LogHook {
    let (daemon, open) = (Arc::downgrade(daemon), Arc::downgrade(open));
    let runtime = Handle::current();
    Arc::new(move |news| {
        let (daemon, open) = (Weak::clone(&daemon), Weak::clone(&open));
        runtime.spawn(async move {
            let (Some(daemon), Some(open)) = (daemon.upgrade(), open.upgrade()) else {
                return;
            };
            match news {
                LogNews::Lost(ids) => return daemon.notifier.note_lost(&open, &ids),
                LogNews::Rewound => {
                    let kind = wire::DiagnosticKind::LogRewound;
                    return daemon.notifier.note_of_file(&open, kind);
                }
                LogNews::Published => {}
            }
            let Ok((open, guard)) = daemon.registry.own_guard(&open.id).await else {
                return;
            };
            // The next request reports a fault of the file.
            if let Ok(guard) = caught_up(&daemon, &open, guard).await {
                daemon.files.describe(&guard);
                daemon.notifier.note_queue(&open, &guard);
            }
        });
    })
}
