//! The connections of a daemon, in the order of their arrival.

use super::connection::Connection;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tokio::sync::Notify;
use treelined_core::id::ConnectionId;
use treelined_files::lock::lock;

/// The connections. A connection stays here until its output is written.
#[derive(Default)]
pub(crate) struct Connections {
    list: Mutex<ConnectionList>,
    /// Notified when a connection is removed.
    ended: Notify,
}

#[derive(Default)]
struct ConnectionList {
    /// The number of the last connection.
    last: u64,
    by_id: BTreeMap<ConnectionId, Arc<Connection>>,
}

impl Connections {
    /// Makes an id, and adds the connection that `connect` makes with it.
    pub(crate) fn add(
        &self,
        connect: impl FnOnce(ConnectionId) -> Arc<Connection>,
    ) -> Arc<Connection> {
        let mut list = self.list();
        list.last += 1;
        let id = ConnectionId(list.last);
        let connection = connect(id);
        list.by_id.insert(id, Arc::clone(&connection));
        connection
    }

    /// All connections, in the order of their arrival.
    pub(crate) fn all(&self) -> Vec<Arc<Connection>> {
        self.list().by_id.values().cloned().collect()
    }

    pub(crate) fn find(&self, id: ConnectionId) -> Option<Arc<Connection>> {
        self.list().by_id.get(&id).cloned()
    }

    pub(crate) fn count(&self) -> usize {
        self.list().by_id.len()
    }

    /// The number of connections that are not extensions.
    pub(crate) fn count_clients(&self) -> usize {
        let list = self.list();
        let clients = list.by_id.values().filter(|one| one.extension().is_none());
        clients.count()
    }

    /// Removes a connection that has ended.
    pub(crate) fn remove(&self, id: ConnectionId) {
        // The connection is dropped after the lock is released, since the drop may free many objects.
        let _removed = self.list().by_id.remove(&id);
        self.ended.notify_waiters();
    }

    /// Waits until all connections except `kept` have ended, but not longer than `deadline`.
    pub(crate) async fn ended_except(&self, kept: Option<ConnectionId>, deadline: Instant) {
        let others_ended = async {
            loop {
                let mut ended = pin!(self.ended.notified());
                ended.as_mut().enable();
                if self.list().by_id.keys().all(|id| Some(*id) == kept) {
                    return;
                }
                ended.await;
            }
        };
        let _late = tokio::time::timeout_at(deadline.into(), others_ended).await;
    }

    fn list(&self) -> MutexGuard<'_, ConnectionList> {
        lock(&self.list)
    }
}
