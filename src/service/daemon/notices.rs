//! The notifications of a session that wait for their commits, for each connection that has it open.

use super::connection::Connection;
use crate::stdio::{Class, Message};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The notifications of a session, for each connection that has it open.
pub(crate) struct Notices {
    pub(super) listeners: Vec<Listener>,
    /// The commits whose responses are not queued yet, in order.
    pub(super) commits: VecDeque<PendingCommit>,
    pub(super) last_commit: u64,
}

/// A connection that has the session open.
pub(super) struct Listener {
    pub(super) connection: Arc<Connection>,
    /// The number of the last notification.
    pub(super) seq: u64,
}

/// A commit whose responses are not queued yet.
pub(super) struct PendingCommit {
    pub(super) number: u64,
    /// Whether the commit is as durable as promised, and all earlier commits are answered. Only the first commit can be
    /// public.
    pub(super) is_public: bool,
    /// Notified when all earlier commits are answered.
    pub(super) waits: Option<oneshot::Sender<()>>,
    /// The notifications after this commit and before the next one, in the order of their numbers.
    pub(super) messages: Vec<HeldNotification>,
}

/// A notification that waits for its commit.
pub(super) struct HeldNotification {
    pub(super) connection: Arc<Connection>,
    pub(super) message: Message,
    pub(super) class: Class,
}

impl Notices {
    /// The notifications of a session that is open for only this connection.
    pub(crate) fn to(connection: &Arc<Connection>) -> Self {
        let listener = Listener {
            connection: Arc::clone(connection),
            seq: 0,
        };
        Self {
            listeners: vec![listener],
            commits: VecDeque::new(),
            last_commit: 0,
        }
    }

    /// Sends the notifications of the first commit. Its later notifications are sent at once.
    pub(super) fn publish_first(&mut self) {
        if let Some(first) = self.commits.front_mut() {
            first.is_public = true;
            first.messages.drain(..).for_each(HeldNotification::send);
        }
    }

    pub(super) fn place(&self, number: u64) -> Option<usize> {
        let place = self
            .commits
            .binary_search_by_key(&number, |commit| commit.number);
        place.ok()
    }

    /// Removes a commit. Its notifications move to the commit before it. If there is no earlier commit, or if the
    /// earlier commit is public, they are sent.
    pub(super) fn remove(&mut self, number: u64) {
        let Some(place) = self.place(number) else {
            return;
        };
        let removed = self.commits.remove(place);
        let mut messages = removed.map(|commit| commit.messages).unwrap_or_default();
        let earlier = place
            .checked_sub(1)
            .and_then(|place| self.commits.get_mut(place));
        match earlier {
            Some(earlier) if !earlier.is_public => earlier.messages.append(&mut messages),
            _ => messages.into_iter().for_each(HeldNotification::send),
        }
        if place == 0
            && let Some(waits) = self
                .commits
                .front_mut()
                .and_then(|first| first.waits.take())
        {
            let _gone = waits.send(());
        }
    }
}

/// Sends a notification, or keeps it if it must wait for a commit.
pub(super) fn send(
    commits: &mut VecDeque<PendingCommit>,
    connection: &Arc<Connection>,
    message: Message,
    class: Class,
) {
    match commits.back_mut().filter(|commit| !commit.is_public) {
        Some(commit) => commit.messages.push(HeldNotification {
            connection: Arc::clone(connection),
            message,
            class,
        }),
        None => connection.send_message(message, class),
    }
}

impl HeldNotification {
    fn send(self) {
        self.connection.send_message(self.message, self.class);
    }
}
