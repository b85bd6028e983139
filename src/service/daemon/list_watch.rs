//! `sessions_changed`: notifies the connections that watch the list of sessions about changes of the list (protocol.md
//! §10.4).
//!
//! Commits of this daemon and the watch of the session directory only report that something has changed. A look at the
//! files finds the changed rows. The look comes a little later, so that it covers several changes. If nothing changes,
//! or if no connection watches, no look runs.

use super::list_watchers::{ListWatch, ListWatcher, MAX_BYTES, MadeMessages, MessageInProgress};
use crate::stdio::Class;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use treelined_core::error::Result;
use treelined_core::id::ConnectionId;
use treelined_core::team::{TeamList, TeamQuery, TeamView};
use treelined_files::blocking::blocking;
use treelined_files::lock::lock;
use treelined_files::store::catalogue::Rows;
use treelined_wire::methods::Notification;
use treelined_wire::notification::SessionsChanged;

/// The delay between a change and a look, so that one look covers several changes.
const GATHERING: Duration = Duration::from_millis(20);
/// The pause after a look, as a multiple of the duration of the look.
const REST: u32 = 10;
/// The delay before the next look, if clients read too slowly for this one.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The pause between two looks at the list of the team.
const TEAM_PAUSE: Duration = Duration::from_secs(5);

impl ListWatch {
    /// Notifies a connection of changes of the list from this call on. Replaces an earlier watch of the connection.
    pub(crate) async fn watch(self: &Arc<Self>, watcher: ListWatcher) -> Result<()> {
        let (watch, runtime) = (Arc::clone(self), Handle::current());
        blocking(move || watch.begin(watcher, runtime)).await
    }

    fn begin(self: &Arc<Self>, watcher: ListWatcher, runtime: Handle) -> Result<()> {
        let mut state = lock(&self.state);
        if state.folder.is_none() {
            let watch: Weak<Self> = Arc::downgrade(self);
            state.folder = Some(self.files.store.watch(move || {
                if let Some(watch) = watch.upgrade() {
                    watch.changed();
                }
            })?);
        }
        // Every call has the same runtime.
        let _same = self.runtime.set(runtime.clone());
        // From here on, each change causes a look, and the look waits for the lock. The flag is set before the rows are
        // read. Otherwise a change between the two steps would be missing in the rows, and would cause no look.
        self.is_active.store(true, Ordering::Release);
        let known = self.rows();
        self.is_active.store(
            known.is_ok() || !state.watchers.is_empty(),
            Ordering::Release,
        );
        let known = known?;
        let id = watcher.connection.id;
        state.watchers.retain(|watcher| watcher.connection.id != id);
        state.watchers.push(ListWatcher { known, ..watcher });
        if let Some(team) = self.files.team()
            && !std::mem::replace(&mut state.has_team_task, true)
        {
            runtime.spawn(watch_team(Arc::downgrade(self), team));
        }
        Ok(())
    }

    /// Notifies each watcher that the list of the team has changed. Returns whether there is a watcher.
    fn look_at_team(&self, now: &Arc<TeamList>) -> bool {
        let mut state = lock(&self.state);
        for watcher in &mut state.watchers {
            let known = watcher.team.replace(Arc::clone(now));
            // A client may have read the list before the first look, so the first look notifies it too.
            let is_equal = known.is_some_and(|known| known.has_same_sessions(now));
            let is_shown = !watcher.connection.rights().is_limited();
            if is_shown && !is_equal && watcher.connection.wants(SessionsChanged::NAME) {
                let news = MessageInProgress::new(MAX_BYTES).with_team();
                watcher.connection.send(news, Class::Keep);
            }
        }
        state.has_team_task = !state.watchers.is_empty();
        state.has_team_task
    }

    /// Ends the watch of a connection.
    pub(crate) fn unwatch(&self, id: ConnectionId) {
        if !self.is_active.load(Ordering::Acquire) {
            return;
        }
        let mut state = lock(&self.state);
        state.watchers.retain(|watcher| watcher.connection.id != id);
        if state.watchers.is_empty() {
            self.is_active.store(false, Ordering::Release);
        }
    }

    /// Schedules a look, since a row may have changed.
    pub(crate) fn changed(self: &Arc<Self>) {
        if self.is_active.load(Ordering::Acquire) {
            self.look_after(GATHERING);
        }
    }

    fn look_after(self: &Arc<Self>, least: Duration) {
        if self.is_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let watch = Arc::clone(self);
        let rest = Duration::from_millis(self.rest.load(Ordering::Acquire));
        let delay = rest.max(least);
        if let Some(runtime) = self.runtime.get() {
            runtime.spawn(async move {
                tokio::time::sleep(delay).await;
                watch.is_due.store(false, Ordering::Release);
                let looking = Arc::clone(&watch);
                let looked = blocking(move || looking.look_at_list()).await;
                if let Err(error) = looked {
                    tracing::warn!(%error, "changes of the list of sessions are not announced");
                }
            });
        }
    }

    fn rows(&self) -> Result<Rows> {
        self.files.store.list()
    }

    /// Sends to each watcher the changes that it does not have yet.
    fn look_at_list(self: &Arc<Self>) -> Result<()> {
        let begun = Instant::now();
        let mut state = lock(&self.state);
        let now = self.rows()?;
        let mut made: Vec<MadeMessages> = Vec::new();
        let mut is_any_late = false;
        for watcher in &mut state.watchers {
            if watcher.connection.outbox.is_over_limit() {
                is_any_late = true;
                continue;
            }
            watcher.tell(&now, &mut made)?;
        }
        drop(state);
        let rest = begun.elapsed() * REST;
        let rest = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
        self.rest.store(rest, Ordering::Release);
        if is_any_late {
            self.look_after(LOOK_AGAIN);
        }
        Ok(())
    }
}

/// Looks at the list of the team again and again, as long as a connection watches.
async fn watch_team(watch: Weak<ListWatch>, team: Arc<dyn TeamView>) {
    loop {
        let listing = Arc::clone(&team);
        let Ok(list) = blocking(move || Ok(listing.list(&TeamQuery::default()))).await else {
            return;
        };
        let watch = watch.upgrade();
        let goes_on = watch.is_some_and(|watch| watch.look_at_team(&list));
        if !goes_on {
            return;
        }
        tokio::time::sleep(TEAM_PAUSE).await;
    }
}
