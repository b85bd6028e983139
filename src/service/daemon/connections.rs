//! The connections of a daemon, in the order in which they came.

use super::connection::Connection;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tokio::sync::Notify;
use treelined_core::id::ConnectionId;
use treelined_files::lock::lock;

/// The connections, until the output of each is written.
#[derive(Default)]
pub(crate) struct Connections {
    list: Mutex<ConnectionList>,
    /// Notified when a connection ends.
    ended: Notify,
}

#[derive(Default)]
struct ConnectionList {
    /// Number of the last connection.
    last: u64,
    by_id: BTreeMap<ConnectionId, Arc<Connection>>,
}

impl Connections {
    /// Adds the connection that `connect` makes with its id.
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

    /// All connections, in the order in which they came.
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
        // Dropped without the lock: it may be the last reference to much.
        let _removed = self.list().by_id.remove(&id);
        self.ended.notify_waiters();
    }

    /// Waits until all connections except this one have ended, at most until `deadline`.
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
