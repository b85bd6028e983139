//! Notifications about a session (protocol.md §5, §7): numbered for each connection, in order, and sent only after
//! what they report has been persisted.

use super::Daemon;
use super::connection::Connection;
use super::convert::{diagnostics, push_id_member, push_number_member, raw};
use super::open_session::OpenSession;
use crate::json;
use crate::lock::lock;
use crate::session::{Changes, SessionState};
use crate::stdio::Class;
use crate::tree::Node;
use crate::wire::BeforeEvent;
use crate::wire::notification::{self, Origin};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};

/// `entries_appended` includes the bodies of other writers' entries up to this many bytes together.
const MAX_BODIES_BYTES: u64 = 1 << 20;

/// The notifications of a session, for each connection that has it open.
pub(crate) struct Notices {
    listeners: Vec<Listener>,
    holds: u64,
}

/// A connection that has the session open.
struct Listener {
    connection: Arc<Connection>,
    /// Number of the last notification made.
    seq: u64,
    /// Messages that wait for a hold, in the order of their numbers.
    waiting: VecDeque<Waiting>,
}

enum Waiting {
    /// The messages behind it wait until the hold of this number ends.
    Hold(u64),
    Message {
        message: Vec<u8>,
        class: Class,
    },
}

impl Notices {
    pub(crate) fn to(connection: &Arc<Connection>) -> Self {
        let listener = Listener {
            connection: Arc::clone(connection),
            seq: 0,
            waiting: VecDeque::new(),
        };
        Self {
            listeners: vec![listener],
            holds: 0,
        }
    }
}

/// Keeps back later notifications of a session until dropped, because what they report is not on disk yet
/// (protocol.md §7).
#[must_use]
pub(crate) struct Hold {
    open: Arc<OpenSession>,
    number: u64,
}

impl OpenSession {
    pub(crate) fn hold(self: &Arc<Self>) -> Hold {
        let mut notices = self.notices();
        notices.holds += 1;
        let number = notices.holds;
        for listener in &mut notices.listeners {
            listener.waiting.push_back(Waiting::Hold(number));
        }
        Hold {
            open: Arc::clone(self),
            number,
        }
    }

    fn notices(&self) -> MutexGuard<'_, Notices> {
        lock(&self.notices)
    }

    /// The number of the last notification of this session that the connection was sent.
    pub(crate) fn seq(&self, connection: &Connection) -> u64 {
        let notices = self.notices();
        let mut listeners = notices.listeners.iter();
        let listener = listeners.find(|listener| std::ptr::eq(&*listener.connection, connection));
        listener.map_or(0, |listener| listener.seq)
    }

    /// The connections that have the session open.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        let notices = self.notices();
        let listeners = notices.listeners.iter();
        listeners
            .map(|listener| Arc::clone(&listener.connection))
            .collect()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut notices = self.open.notices();
        let is_this = |waiting: &Waiting| matches!(waiting, Waiting::Hold(n) if *n == self.number);
        for Listener {
            connection,
            waiting,
            ..
        } in &mut notices.listeners
        {
            waiting.retain(|waiting| !is_this(waiting));
            while let Some(Waiting::Message { .. }) = waiting.front()
                && let Some(Waiting::Message { message, class }) = waiting.pop_front()
            {
                connection.send(message, class);
            }
        }
    }
}

/// The JSON of a notification.
pub(crate) fn message(method: &str, params: &impl Serialize) -> Option<Vec<u8>> {
    #[derive(Serialize)]
    struct Message<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    let message = Message {
        jsonrpc: "2.0",
        method,
        params,
    };
    match serde_json::to_vec(&message) {
        Ok(message) => Some(message),
        Err(error) => {
            tracing::error!(method, %error, "a notification could not be written");
            None
        }
    }
}

impl Daemon {
    /// Whether hooks hear of this as of something that has happened. Before events are put to them
    /// as questions.
    fn is_told_to_hooks(&self, method: &str) -> bool {
        let is_question = BeforeEvent::ALL.iter().any(|event| event.name() == method);
        !is_question && !self.hooks.listening(method).is_empty()
    }

    /// Sends a notification about a session to each connection that has it open; `params` get its number there.
    pub(crate) fn notify<P: Serialize>(
        &self,
        open: &OpenSession,
        method: &str,
        params: impl Fn(u64) -> P,
    ) {
        let message = |seq, _: &Connection| message(method, &params(seq));
        self.notify_as(open, method, |_| Class::Keep, message);
    }

    fn notify_as(
        &self,
        open: &OpenSession,
        method: &str,
        class: impl Fn(u64) -> Class,
        message: impl Fn(u64, &Connection) -> Option<Vec<u8>>,
    ) {
        let mut hooked = self.is_told_to_hooks(method);
        // Locked until the message is queued: numbers leave in order.
        let mut notices = open.notices();
        for listener in &mut notices.listeners {
            let wanted = listener.connection.wants(method);
            if !wanted && !hooked {
                continue;
            }
            listener.seq += u64::from(wanted);
            let seq = listener.seq;
            let Some(message) = message(seq, &listener.connection) else {
                continue;
            };
            if std::mem::take(&mut hooked) {
                self.hooks.tell(method, &message);
            }
            if !wanted {
                continue;
            }
            let class = class(seq);
            if listener.waiting.is_empty() {
                listener.connection.send(message, class);
            } else {
                listener
                    .waiting
                    .push_back(Waiting::Message { message, class });
            }
        }
    }

    /// Announces the changes of an operation: entries of other writers, then our own, and the session's name if it
    /// differs from `name_before`.
    pub(crate) fn announce(
        &self,
        open: &OpenSession,
        core: &SessionState,
        changes: Changes,
        name_before: Option<&str>,
    ) {
        self.announce_each(open, core, changes, &[], name_before);
    }

    /// The same of several operations that were written together, each as if it had been alone;
    /// `ends` says after how many of our entries each was done.
    pub(crate) fn announce_each(
        &self,
        open: &OpenSession,
        core: &SessionState,
        changes: Changes,
        ends: &[usize],
        name_before: Option<&str>,
    ) {
        let own = &changes.own;
        // Where the leaf stood after a group that was not the last.
        let after = |end: usize| match end.checked_sub(1) {
            Some(last) if end < own.len() => Some(own.get(last).copied()),
            _ => None,
        };
        if changes.others_moved || !changes.others.is_empty() {
            let first = ends.first().copied().unwrap_or(own.len());
            self.entries_appended(open, core, Origin::Other, &changes.others, after(first));
        }
        let mut start = 0;
        for end in ends.iter().copied().chain([own.len()]) {
            if let Some(group) = own.get(start..end).filter(|group| !group.is_empty()) {
                self.entries_appended(open, core, Origin::This, group, after(end));
                start = end;
            }
        }
        if !changes.diagnostics.is_empty() {
            self.notify(open, "diagnostics", |seq| notification::Diagnostics {
                session_id: open.id.to_string(),
                seq,
                diagnostics: diagnostics(&changes.diagnostics),
            });
        }
        let name = core.tree.name();
        if name != name_before {
            self.notify(open, "session_info_changed", |seq| {
                notification::SessionInfoChanged {
                    session_id: open.id.to_string(),
                    seq,
                    name: name.map(str::to_owned),
                }
            });
        }
    }

    /// `leaf`: where it stood then, if no longer there.
    fn entries_appended(
        &self,
        open: &OpenSession,
        core: &SessionState,
        origin: Origin,
        nodes: &[Node],
        leaf: Option<Option<Node>>,
    ) {
        let class = |seq| Class::Droppable {
            session: Arc::clone(&open.id),
            seq,
        };
        let (leaf_id, file_leaf_id) = (
            core.id_of(leaf.unwrap_or(core.leaf())),
            core.id_of(leaf.unwrap_or(core.tree.file_leaf())),
        );
        let ids = nodes.iter().map(|node| core.tree.id(*node));
        self.notify_as(
            open,
            "entries_appended",
            class,
            |seq, connection| match origin {
                Origin::This => Some(own_appended(
                    &open.id,
                    seq,
                    ids.clone(),
                    leaf_id,
                    file_leaf_id,
                )),
                Origin::Other => {
                    let told = notification::EntriesAppended {
                        session_id: open.id.to_string(),
                        seq,
                        origin,
                        entry_ids: ids.clone().map(str::to_owned).collect(),
                        leaf_id: leaf_id.map(str::to_owned),
                        file_leaf_id: file_leaf_id.map(str::to_owned),
                        entries: bodies(core, nodes, connection.client_frame_bytes()),
                    };
                    message("entries_appended", &told)
                }
            },
        );
    }

    /// Announces a move of the leaf.
    pub(crate) fn session_tree(&self, open: &OpenSession, moved: SessionTree<'_>) {
        self.notify(open, "session_tree", |seq| notification::SessionTree {
            session_id: open.id.to_string(),
            seq,
            new_leaf_id: moved.new_leaf_id.map(str::to_owned),
            old_leaf_id: moved.old_leaf_id.map(str::to_owned),
            cause: moved.cause,
            navigation_id: moved.navigation_id.map(str::to_owned),
            summary_entry: moved.summary_entry.map(raw),
            label_entry: moved.label_entry.map(raw),
            from_hook: moved.from_hook,
        });
    }
}

/// `entries_appended` of our own entries, written straight from the tree: it goes out with every append.
fn own_appended<'a>(
    session_id: &str,
    seq: u64,
    entry_ids: impl Iterator<Item = &'a str>,
    leaf_id: Option<&str>,
    file_leaf_id: Option<&str>,
) -> Vec<u8> {
    const HEAD: &[u8] =
        b"{\"jsonrpc\":\"2.0\",\"method\":\"entries_appended\",\"params\":{\"sessionId\":";
    let mut out = Vec::with_capacity(256 + entry_ids.size_hint().0 * 16);
    out.extend_from_slice(HEAD);
    json::push_string(&mut out, session_id);
    push_number_member(&mut out, "seq", seq);
    out.extend_from_slice(b",\"origin\":\"self\",\"entryIds\":[");
    for (index, id) in entry_ids.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::push_string(&mut out, id);
    }
    out.push(b']');
    push_id_member(&mut out, "leafId", leaf_id);
    push_id_member(&mut out, "fileLeafId", file_leaf_id);
    out.extend_from_slice(b"}}");
    out
}

/// The params of `session_tree`.
pub(crate) struct SessionTree<'a> {
    pub old_leaf_id: Option<&'a str>,
    pub new_leaf_id: Option<&'a str>,
    pub cause: crate::wire::MoveCause,
    pub navigation_id: Option<&'a str>,
    pub summary_entry: Option<&'a [u8]>,
    pub label_entry: Option<&'a [u8]>,
    /// Whether a client wrote the summary, if there is one.
    pub from_hook: Option<bool>,
}

fn bodies(
    core: &SessionState,
    nodes: &[Node],
    frame_bytes: usize,
) -> Option<Vec<crate::wire::Raw>> {
    let size: u64 = nodes
        .iter()
        .map(|node| u64::from(core.tree.place(*node).len))
        .sum();
    // Half of a frame is left for ids and escapes.
    if size > MAX_BODIES_BYTES.min(frame_bytes as u64 / 2) {
        return None;
    }
    let entries = nodes.iter().map(|node| Some(raw(&core.entry(*node).ok()?)));
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_entries_are_told_of_as_all_others_are() {
        let ids = ["0a1b2c3d", "q1", "\u{2028}\"\\"];
        for count in 0..=ids.len() {
            for leaf in [None, Some("q1")] {
                let told = notification::EntriesAppended {
                    session_id: "a \"session\"".to_owned(),
                    seq: 7,
                    origin: Origin::This,
                    entry_ids: ids[..count].iter().map(|id| (*id).to_owned()).collect(),
                    leaf_id: leaf.map(str::to_owned),
                    file_leaf_id: Some("x".to_owned()),
                    entries: None,
                };
                let general = message("entries_appended", &told).unwrap();
                let own = own_appended(
                    &told.session_id,
                    told.seq,
                    told.entry_ids.iter().map(String::as_str),
                    leaf,
                    told.file_leaf_id.as_deref(),
                );
                let own = String::from_utf8(own).unwrap();
                let general = super::super::convert::on_one_line(general);
                assert_eq!(own, String::from_utf8(general).unwrap());
            }
        }
    }
}
