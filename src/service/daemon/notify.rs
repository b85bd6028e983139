//! Notifications about a session (protocol.md §5, §7). They are numbered for each connection, sent in order, and sent
//! only after the change is as durable as the session's policy requires.

use super::connection::Connection;
use super::convert::diagnostics;
use super::convert::line::on_one_line;
use super::convert::member::{push_id_member, push_number_member};
use super::convert::message::message;
use super::convert::stored::raw;
use super::first_message;
use super::notices::{Listener, Notices, PendingCommit, send};
use super::open_session::OpenSession;
use crate::hooks::Hooks;
use crate::stdio::{Class, Message, SharedText};
use std::sync::{Arc, MutexGuard};
use tokio::sync::oneshot;
use treelined_core::json;
use treelined_core::tree::Node;
use treelined_files::lock::lock;
use treelined_files::session::{Changes, SessionState};
use treelined_wire::methods::Notification;
use treelined_wire::notification::{self, Origin};
use treelined_wire::{self as wire, BeforeEvent};

/// `entries_appended` has the bodies of other writers' entries only if the bodies together have at most this many
/// bytes.
const MAX_BODIES_BYTES: u64 = 1 << 20;

/// The position of a commit among the commits of its session; it ends when dropped. The notifications of a commit, and
/// then the responses to its requests, are sent after the notifications and responses of earlier commits (protocol.md
/// §7.3).
#[must_use]
pub(crate) struct Publication {
    open: Arc<OpenSession>,
    number: u64,
}

impl OpenSession {
    /// Begins the publication of a commit that the holder of the session's guard has made. Its notifications wait until
    /// [`Publication::send`], unless the commit `is_durable` and no earlier commit waits.
    pub(crate) fn publication(self: &Arc<Self>, is_durable: bool) -> Publication {
        let mut notices = self.notices();
        notices.last_commit += 1;
        let number = notices.last_commit;
        let is_public = is_durable && notices.commits.is_empty();
        notices.commits.push_back(PendingCommit {
            number,
            is_public,
            waits: None,
            messages: Vec::new(),
        });
        Publication {
            open: Arc::clone(self),
            number,
        }
    }

    fn notices(&self) -> MutexGuard<'_, Notices> {
        lock(&self.notices)
    }

    /// The number of the last notification of this session to the connection.
    pub(crate) fn seq(&self, connection: &Connection) -> u64 {
        let notices = self.notices();
        let mut listeners = notices.listeners.iter();
        let listener = listeners.find(|listener| std::ptr::eq(&*listener.connection, connection));
        listener.map_or(0, |listener| listener.seq)
    }

    /// Numbers the notifications to a connection from 1.
    pub(crate) fn add_listener(&self, connection: &Arc<Connection>) {
        self.notices().listeners.push(Listener {
            connection: Arc::clone(connection),
            seq: 0,
        });
    }

    pub(crate) fn remove_listener(&self, connection: &Connection) {
        let listeners = &mut self.notices().listeners;
        listeners.retain(|listener| !std::ptr::eq(&*listener.connection, connection));
    }

    /// The connections that have the session open, in the order in which they opened it.
    pub(crate) fn connections(&self) -> Vec<Arc<Connection>> {
        let notices = self.notices();
        let listeners = notices.listeners.iter();
        listeners
            .map(|listener| Arc::clone(&listener.connection))
            .collect()
    }
}

impl Publication {
    /// Sends the notifications of a durable commit, once all earlier commits are answered.
    pub(crate) async fn send(&self) {
        let earlier_answered = {
            let mut notices = self.open.notices();
            let place = notices.place(self.number).unwrap_or_default();
            if place == 0 {
                notices.publish_first();
                return;
            }
            let (sender, receiver) = oneshot::channel();
            if let Some(commit) = notices.commits.get_mut(place) {
                commit.waits = Some(sender);
            }
            receiver
        };
        // This commit has the sender, so the sender is not dropped during the wait.
        let _answered = earlier_answered.await;
        self.open.notices().publish_first();
    }
}

impl Drop for Publication {
    fn drop(&mut self) {
        self.open.notices().remove(self.number);
    }
}

fn event_class(open: &OpenSession) -> impl Fn(u64) -> Class {
    |seq| Class::Event {
        session: Arc::clone(&open.id),
        seq,
    }
}

/// The texts of one notification, serialized once for all connections with equal params.
struct Texts<M> {
    /// Makes the message with this number; the flag says whether the connection is special.
    serialize: M,
    is_shared: bool,
    ordinary: Option<Arc<SharedText>>,
    special: Option<Arc<SharedText>>,
}

impl<M: Fn(u64, bool) -> Option<Vec<u8>>> Texts<M> {
    fn new(is_shared: bool, serialize: M) -> Self {
        Self {
            serialize,
            is_shared,
            ordinary: None,
            special: None,
        }
    }

    fn message(&mut self, seq: u64, is_special: bool) -> Option<Message> {
        let serialize = |seq| (self.serialize)(seq, is_special).map(on_one_line);
        if !self.is_shared {
            return serialize(seq).map(Message::Own);
        }
        let known = match is_special {
            true => &mut self.special,
            false => &mut self.ordinary,
        };
        let text = match known {
            Some(text) => Arc::clone(text),
            None => {
                let text = SharedText::around_number(serialize(0)?);
                debug_assert!(text.is_some(), "a notification of a session has a number");
                Arc::clone(known.insert(Arc::new(text?)))
            }
        };
        Some(Message::Numbered { text, seq })
    }
}

/// The facts of a session that clients know, before a change.
pub(crate) struct FactsBefore {
    name: Option<String>,
    /// The version of the marks of its branches.
    branches: u64,
}

impl FactsBefore {
    pub(crate) fn of(state: &SessionState) -> Self {
        Self {
            name: state.tree.name().map(str::to_owned),
            branches: state.tree.marks().version(),
        }
    }
}

/// Sends notifications about sessions, to connections and hooks.
#[derive(Clone)]
pub(crate) struct Notifier {
    hooks: Arc<Hooks>,
}

impl Notifier {
    pub(super) fn new(hooks: &Arc<Hooks>) -> Self {
        Self {
            hooks: Arc::clone(hooks),
        }
    }

    /// Whether hooks receive this notification. Hooks receive before events as questions.
    fn is_sent_to_hooks(&self, method: &str) -> bool {
        let is_question = BeforeEvent::ALL.iter().any(|event| event.name() == method);
        !is_question && !self.hooks.listening(method).is_empty()
    }

    /// Sends a notification about a session to each connection that has it open. The function `notification`
    /// gets the number that the notification has for this connection.
    pub(crate) fn notify<N: Notification>(
        &self,
        open: &OpenSession,
        notification: impl Fn(u64) -> N,
    ) {
        self.notify_unlike(open, |_| false, |seq, _| notification(seq));
    }

    /// Like [`Self::notify`]; `notification` also gets whether `is_special` holds for the connection.
    pub(crate) fn notify_unlike<N: Notification>(
        &self,
        open: &OpenSession,
        is_special: impl Fn(&Connection) -> bool,
        notification: impl Fn(u64, bool) -> N,
    ) {
        let message = |seq, is_special| message(&notification(seq, is_special));
        self.notify_as(open, N::NAME, event_class(open), is_special, message);
    }

    /// Sends a notification about a session to one of the connections that have it open, and not to hooks.
    pub(crate) fn notify_one<N: Notification>(
        &self,
        open: &OpenSession,
        connection: &Connection,
        notification: impl Fn(u64) -> N,
    ) {
        let notices = &mut *open.notices();
        let mut listeners = notices.listeners.iter_mut();
        let is_meant = |listener: &&mut Listener| std::ptr::eq(&*listener.connection, connection);
        let Some(listener) = listeners.find(is_meant) else {
            return;
        };
        if !listener.connection.wants(N::NAME) {
            return;
        }
        listener.seq += 1;
        let seq = listener.seq;
        if let Some(text) = message(&notification(seq)) {
            let connection = Arc::clone(&listener.connection);
            let class = event_class(open)(seq);
            let message = Message::Own(on_one_line(text));
            send(&mut notices.commits, &connection, message, class);
        }
    }

    fn notify_as(
        &self,
        open: &OpenSession,
        method: &str,
        class: impl Fn(u64) -> Class,
        is_special: impl Fn(&Connection) -> bool,
        message: impl Fn(u64, bool) -> Option<Vec<u8>>,
    ) {
        let mut hooked = self.is_sent_to_hooks(method);
        // The lock is held until the message is queued, so that the numbers arrive in order.
        let notices = &mut *open.notices();
        let mut texts = Texts::new(notices.listeners.len() > 1, message);
        for listener in &mut notices.listeners {
            let connection = &listener.connection;
            let wanted = connection.wants(method);
            if !wanted && !hooked {
                continue;
            }
            listener.seq += u64::from(wanted);
            let seq = listener.seq;
            let Some(message) = texts.message(seq, is_special(connection)) else {
                continue;
            };
            if std::mem::take(&mut hooked) {
                self.hooks.tell(method, &message.clone().into_text());
            }
            if wanted {
                send(&mut notices.commits, connection, message, class(seq));
            }
        }
    }

    /// Announces the changes of operations that were written together: first the entries of other writers, then our
    /// own. Each operation is announced as if it were alone. The session's name and branches follow if they differ from
    /// `before`. `ends` has, for each operation, the number of our entries up to its end; it is empty for a single
    /// operation.
    pub(crate) fn announce(
        &self,
        open: &OpenSession,
        state: &SessionState,
        changes: Changes,
        before: &FactsBefore,
        ends: &[usize],
    ) {
        let own = &changes.own;
        // The leaf after an operation, unless the operation is the last.
        let after = |end: usize| match end.checked_sub(1) {
            Some(last) if end < own.len() && !changes.stays => Some(own.get(last).copied()),
            _ => None,
        };
        if let Some(change) = &changes.reordered {
            self.notify(open, |seq| notification::SessionReordered {
                session_id: open.id.to_string(),
                seq,
                since: change.since.clone(),
            });
        }
        if changes.others_moved || !changes.others.is_empty() {
            let first = ends.first().copied().unwrap_or(own.len());
            self.entries_appended(open, state, Origin::Other, &changes.others, after(first));
        }
        let mut start = 0;
        for end in ends.iter().copied().chain([own.len()]) {
            if let Some(group) = own.get(start..end).filter(|group| !group.is_empty()) {
                self.entries_appended(open, state, Origin::This, group, after(end));
                start = end;
            }
        }
        if !changes.diagnostics.is_empty() {
            self.notify(open, |seq| notification::Diagnostics {
                session_id: open.id.to_string(),
                seq,
                diagnostics: diagnostics::to_wire(&changes.diagnostics),
            });
        }
        let name = state.tree.name();
        if name != before.name.as_deref() {
            self.notify(open, |seq| notification::SessionInfoChanged {
                session_id: open.id.to_string(),
                seq,
                name: name.map(str::to_owned),
            });
        }
        if state.tree.marks().version() != before.branches {
            let archived = state.tree.archived().count() as u64;
            self.notify(open, |seq| notification::BranchesChanged {
                session_id: open.id.to_string(),
                seq,
                archived_branches: archived,
            });
        }
    }

    /// `leaf` is the leaf after these entries, if later entries have moved the leaf.
    fn entries_appended(
        &self,
        open: &OpenSession,
        state: &SessionState,
        origin: Origin,
        nodes: &[Node],
        leaf: Option<Option<Node>>,
    ) {
        let class = |seq| Class::Droppable {
            session: Arc::clone(&open.id),
            seq,
        };
        let (leaf_id, file_leaf_id) = (
            state.id_of(leaf.unwrap_or(state.leaf())),
            state.id_of(leaf.unwrap_or(state.tree.file_leaf())),
        );
        let ids = nodes.iter().map(|node| state.tree.id(*node));
        let bytes = nodes
            .iter()
            .map(|node| u64::from(state.tree.place(*node).len));
        let bytes: u64 = bytes.sum();
        let said = first_message::among(state, nodes);
        let has_bodies = |connection: &Connection| {
            let frame_bytes = connection.client_frame_bytes() as u64;
            // The other half of a frame is for ids and escapes.
            origin == Origin::Other && bytes <= MAX_BODIES_BYTES.min(frame_bytes / 2)
        };
        let message = |seq, has_bodies: bool| match origin {
            Origin::This => {
                let ids = ids.clone();
                Some(own_appended(
                    &open.id,
                    seq,
                    ids,
                    leaf_id,
                    file_leaf_id,
                    said,
                ))
            }
            Origin::Other => message(&notification::EntriesAppended {
                session_id: open.id.to_string(),
                seq,
                origin,
                entry_ids: ids.clone().map(str::to_owned).collect(),
                leaf_id: leaf_id.map(str::to_owned),
                file_leaf_id: file_leaf_id.map(str::to_owned),
                entries: has_bodies.then(|| bodies(state, nodes)).flatten(),
                first_message: said.map(str::to_owned),
            }),
        };
        let name = notification::EntriesAppended::NAME;
        self.notify_as(open, name, class, has_bodies, message);
    }

    /// Announces a move of the leaf.
    pub(crate) fn session_tree(&self, open: &OpenSession, moved: SessionTree<'_>) {
        self.notify(open, |seq| notification::SessionTree {
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

    /// Asks the clients of a session to begin a turn for a message.
    pub(crate) fn request_turn(&self, open: &OpenSession, entry_id: &str) {
        self.notify(open, |seq| notification::TurnRequested {
            session_id: open.id.to_string(),
            seq,
            entry_id: entry_id.to_owned(),
        });
    }

    /// Announces that a sync failed after its appends had been answered (session-file.md §3).
    pub(crate) fn durability_lost(&self, open: &OpenSession) {
        if open.session.is_closed() {
            tracing::error!("entries of a session that has been closed may not be on disk");
            return;
        }
        self.note_of_file(open, wire::DiagnosticKind::DurabilityUnknown);
    }

    /// Announces a finding about the whole file of a session.
    pub(crate) fn note_of_file(&self, open: &OpenSession, kind: wire::DiagnosticKind) {
        self.notify(open, |seq| notification::Diagnostics {
            session_id: open.id.to_string(),
            seq,
            diagnostics: vec![wire::Diagnostic::of_file(kind)],
        });
    }

    /// Announces whether entries of a session wait for the team, if this has changed.
    pub(crate) fn note_queue(&self, open: &OpenSession, state: &SessionState) {
        let queued = state.waits_for_log();
        let before = lock(&open.queued).replace(queued);
        if before.is_some_and(|before| before != queued) {
            self.notify(open, |seq| notification::SessionLogChanged {
                session_id: open.id.to_string(),
                seq,
                queued,
                lost: Vec::new(),
            });
        }
    }

    /// Announces that some entries of a session are only in the trash, since another machine has deleted the session.
    pub(crate) fn note_lost(&self, open: &OpenSession, ids: &[String]) {
        *lock(&open.queued) = Some(false);
        self.notify(open, |seq| notification::SessionLogChanged {
            session_id: open.id.to_string(),
            seq,
            queued: false,
            lost: ids.to_vec(),
        });
    }
}

/// Makes `entries_appended` for our own entries. It is written without serde, since every append sends it.
fn own_appended<'a>(
    session_id: &str,
    seq: u64,
    entry_ids: impl Iterator<Item = &'a str>,
    leaf_id: Option<&str>,
    file_leaf_id: Option<&str>,
    first_message: Option<&str>,
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
    if first_message.is_some() {
        push_id_member(&mut out, "firstMessage", first_message);
    }
    out.extend_from_slice(b"}}");
    out
}

/// The params of `session_tree`.
pub(crate) struct SessionTree<'a> {
    pub old_leaf_id: Option<&'a str>,
    pub new_leaf_id: Option<&'a str>,
    pub cause: wire::MoveCause,
    pub navigation_id: Option<&'a str>,
    pub summary_entry: Option<&'a [u8]>,
    pub label_entry: Option<&'a [u8]>,
    /// Whether a client wrote the summary, if there is one.
    pub from_hook: Option<bool>,
}

/// The bodies of the entries; `None` if one cannot be read.
fn bodies(state: &SessionState, nodes: &[Node]) -> Option<Vec<wire::Raw>> {
    let entries = nodes
        .iter()
        .map(|node| Some(raw(&state.entry(*node).ok()?)));
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_is_serialized_once_however_many_hear_it() {
        let serialized = std::cell::Cell::new(0);
        let mut texts = Texts::new(true, |seq, is_special| {
            serialized.set(serialized.get() + 1);
            Some(format!("{{\"seq\":{seq},\"special\":{is_special}}}").into_bytes())
        });
        for seq in 1..=100 {
            let message = texts.message(seq, seq % 2 == 0).unwrap();
            let expected = format!("{{\"seq\":{seq},\"special\":{}}}", seq % 2 == 0);
            assert_eq!(message.into_text(), expected.as_bytes());
        }
        assert_eq!(serialized.get(), 2, "once for each kind of connection");
    }

    #[test]
    fn our_own_entries_are_announced_like_those_of_others() {
        let ids = ["0a1b2c3d", "q1", "\u{2028}\"\\"];
        for count in 0..=ids.len() {
            for leaf in [None, Some("q1")] {
                let announced = notification::EntriesAppended {
                    session_id: "a \"session\"".to_owned(),
                    seq: 7,
                    origin: Origin::This,
                    entry_ids: ids[..count].iter().map(|id| (*id).to_owned()).collect(),
                    leaf_id: leaf.map(str::to_owned),
                    file_leaf_id: Some("x".to_owned()),
                    entries: None,
                    first_message: leaf.map(|_| "What?".to_owned()),
                };
                let general = message(&announced).unwrap();
                let own = own_appended(
                    &announced.session_id,
                    announced.seq,
                    announced.entry_ids.iter().map(String::as_str),
                    leaf,
                    announced.file_leaf_id.as_deref(),
                    announced.first_message.as_deref(),
                );
                let own = String::from_utf8(own).unwrap();
                let general = super::on_one_line(general);
                assert_eq!(own, String::from_utf8(general).unwrap());
            }
        }
    }
}
