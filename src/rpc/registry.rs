//! The order in which sessions are opened, closed and looked for (protocol.md §1): requests about one
//! session take effect as they arrived, and none of them waits for another session's file.
//!
//! A request takes a ticket when it arrives, and is admitted once no earlier ticket concerns the same
//! session. A request that names no session concerns all of them. One that names a path concerns a
//! session whose id is not known before the file's header has been read.

use crate::cancel::Cancel;
use crate::error::Result;
use crate::id::SessionId;
use crate::lock::lock;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// The tickets of a server.
#[derive(Default)]
pub struct Registry {
    state: Mutex<State>,
    /// Told when a ticket is given back.
    left: Notify,
}

/// What a ticket is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Session(SessionId),
    /// The only open session, whichever that is: all earlier tickets have to be given back.
    Only,
    /// The session of a file whose header has not been read.
    Path,
    /// The session of a file whose header takes long to find.
    Nameless,
}

/// Which tickets for paths a session's ticket waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Paths {
    /// The session is open: they are about others.
    None,
    /// Those that will be known soon.
    Soon,
    /// All: the session may be any of theirs.
    All,
}

/// A place in the order, until dropped.
#[must_use]
pub struct Ticket {
    registry: Arc<Registry>,
    number: u64,
}

#[derive(Default)]
struct State {
    next: u64,
    tickets: BTreeMap<u64, Entry>,
    by_session: HashMap<SessionId, Queue>,
    only: BTreeSet<u64>,
    paths: BTreeSet<u64>,
    nameless: BTreeSet<u64>,
}

struct Entry {
    subject: Subject,
    paths: Paths,
    /// Whether it may change what a list of sessions shows.
    changes: bool,
    is_admitted: bool,
    admitted: Arc<Notify>,
}

/// The tickets of one session.
#[derive(Default)]
struct Queue {
    all: BTreeSet<u64>,
    admitted: Option<u64>,
}

impl Registry {
    /// Takes a ticket. `changes` says whether a list of sessions may look different afterwards.
    pub fn enter(self: &Arc<Self>, subject: Subject, paths: Paths, changes: bool) -> Ticket {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let entry = Entry {
            subject: subject.clone(),
            paths,
            changes,
            is_admitted: false,
            admitted: Arc::default(),
        };
        state.tickets.insert(number, entry);
        state.file(number, &subject);
        state.admit(number);
        Ticket {
            registry: Arc::clone(self),
            number,
        }
    }

    /// Whether a request that arrives now has to wait for no other: `None` means the only session.
    pub fn is_clear_for(&self, id: Option<&SessionId>) -> bool {
        let state = self.state();
        match id {
            Some(id) => state.only.is_empty() && !state.by_session.contains_key(id),
            None => state.tickets.is_empty(),
        }
    }

    /// Waits until all tickets that have been taken so far are given back.
    pub async fn earlier_left(&self) {
        let now = self.state().next;
        self.until(|state| state.tickets.range(..now).next().is_none())
            .await;
    }

    /// Waits until those are given back that are admitted and may change a list.
    pub async fn earlier_changes_left(&self) {
        let now = self.state().next;
        let is_change = |entry: &Entry| entry.changes && entry.is_admitted;
        self.until(|state| {
            let mut earlier = state.tickets.range(..now);
            !earlier.any(|(_, entry)| is_change(entry))
        })
        .await;
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            let mut left = std::pin::pin!(self.left.notified());
            left.as_mut().enable();
            if holds(&self.state()) {
                return;
            }
            left.await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Ticket {
    /// Waits until no earlier ticket concerns the same session.
    pub async fn admitted(&self, cancel: &Cancel) -> Result<()> {
        let admitted = {
            let state = self.registry.state();
            let entry = state.tickets.get(&self.number);
            match entry.filter(|entry| !entry.is_admitted) {
                Some(entry) => Arc::clone(&entry.admitted),
                None => return Ok(()),
            }
        };
        cancel.guard(admitted.notified()).await
    }

    /// Says which session a path turned out to be of; it is to be admitted again.
    pub fn is_about(&self, subject: Subject) {
        let mut state = self.registry.state();
        state.unfile(self.number);
        if let Some(entry) = state.tickets.get_mut(&self.number) {
            entry.subject = subject.clone();
            entry.is_admitted = false;
            entry.admitted = Arc::default();
        }
        state.file(self.number, &subject);
        state.admit_all();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.registry.state();
        state.unfile(self.number);
        match state
            .tickets
            .remove(&self.number)
            .map(|entry| entry.subject)
        {
            Some(Subject::Session(id)) => {
                let next = state
                    .by_session
                    .get(&id)
                    .and_then(|queue| queue.all.first());
                if let Some(next) = next.copied() {
                    state.admit(next);
                }
                if let Some(first) = state.tickets.keys().next().copied() {
                    state.admit(first);
                }
            }
            _ => state.admit_all(),
        }
        drop(state);
        self.registry.left.notify_waiters();
    }
}

impl State {
    fn file(&mut self, number: u64, subject: &Subject) {
        let _is_new = match subject {
            Subject::Session(id) => {
                let queue = self.by_session.entry(id.clone()).or_default();
                queue.all.insert(number)
            }
            Subject::Only => self.only.insert(number),
            Subject::Path => self.paths.insert(number),
            Subject::Nameless => self.nameless.insert(number),
        };
    }

    fn unfile(&mut self, number: u64) {
        let Some(entry) = self.tickets.get(&number) else {
            return;
        };
        match &entry.subject {
            Subject::Session(id) => {
                if let Some(queue) = self.by_session.get_mut(id) {
                    queue.all.remove(&number);
                    queue.admitted = queue.admitted.filter(|admitted| *admitted != number);
                    if queue.all.is_empty() {
                        let id = id.clone();
                        self.by_session.remove(&id);
                    }
                }
            }
            Subject::Only => drop(self.only.remove(&number)),
            Subject::Path => drop(self.paths.remove(&number)),
            Subject::Nameless => drop(self.nameless.remove(&number)),
        }
    }

    /// Admits the ticket if nothing is in its way.
    fn admit(&mut self, number: u64) {
        let Some(entry) = self.tickets.get(&number) else {
            return;
        };
        let earlier = |numbers: &BTreeSet<u64>| numbers.first().is_some_and(|n| *n < number);
        let is_free = match &entry.subject {
            Subject::Session(id) => {
                let queue = self.by_session.get(id);
                queue.is_none_or(|queue| {
                    queue.all.first() == Some(&number) && queue.admitted.is_none()
                }) && !earlier(&self.only)
                    && (entry.paths < Paths::Soon || !earlier(&self.paths))
                    && (entry.paths < Paths::All || !earlier(&self.nameless))
            }
            Subject::Only => self.tickets.keys().next() == Some(&number),
            Subject::Path => false,
            Subject::Nameless => !earlier(&self.only),
        };
        if !is_free || entry.is_admitted {
            return;
        }
        if let Subject::Session(id) = &entry.subject
            && let Some(queue) = self.by_session.get_mut(id)
        {
            queue.admitted = Some(number);
        }
        if let Some(entry) = self.tickets.get_mut(&number) {
            entry.is_admitted = true;
            entry.admitted.notify_one();
        }
    }

    /// Admits every ticket that nothing is in the way of.
    fn admit_all(&mut self) {
        let fronts = self
            .by_session
            .values()
            .filter_map(|queue| queue.all.first());
        let mut numbers: Vec<u64> = fronts.chain(&self.nameless).copied().collect();
        numbers.extend(self.tickets.keys().next());
        for number in numbers {
            self.admit(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str) -> Subject {
        Subject::Session(SessionId::new(id))
    }

    fn is_admitted(ticket: &Ticket) -> bool {
        ticket.registry.state().tickets[&ticket.number].is_admitted
    }

    /// Opening one session held up the opening, making and closing of all others.
    #[test]
    fn tickets_of_different_sessions_do_not_wait_for_each_other() {
        let registry = Arc::new(Registry::default());
        let slow = registry.enter(session("a"), Paths::Soon, false);
        let other = registry.enter(session("b"), Paths::Soon, true);
        assert!(is_admitted(&slow) && is_admitted(&other));
        let path = registry.enter(Subject::Path, Paths::Soon, false);
        path.is_about(session("c"));
        assert!(is_admitted(&path));
        let open_already = registry.enter(session("d"), Paths::None, true);
        assert!(is_admitted(&open_already));
    }

    #[test]
    fn tickets_of_one_session_are_admitted_one_by_one_as_they_came() {
        let registry = Arc::new(Registry::default());
        let first = registry.enter(session("a"), Paths::All, false);
        let second = registry.enter(session("a"), Paths::All, false);
        let third = registry.enter(session("a"), Paths::All, false);
        assert!(is_admitted(&first) && !is_admitted(&second));
        drop(second);
        assert!(!is_admitted(&third));
        drop(first);
        assert!(is_admitted(&third));
        assert!(!registry.is_clear_for(Some(&SessionId::new("a"))));
        drop(third);
        assert!(registry.is_clear_for(None));
    }

    #[test]
    fn a_ticket_for_the_only_session_waits_for_all_and_all_for_it() {
        let registry = Arc::new(Registry::default());
        let before = registry.enter(session("a"), Paths::Soon, false);
        let only = registry.enter(Subject::Only, Paths::All, false);
        let after = registry.enter(session("b"), Paths::Soon, false);
        assert!(!is_admitted(&only) && !is_admitted(&after));
        drop(before);
        assert!(is_admitted(&only) && !is_admitted(&after));
        drop(only);
        assert!(is_admitted(&after));
    }

    #[test]
    fn a_path_keeps_its_place_once_its_session_is_known() {
        let registry = Arc::new(Registry::default());
        let path = registry.enter(Subject::Path, Paths::Soon, false);
        let [same, other] = ["a", "b"].map(|id| registry.enter(session(id), Paths::Soon, true));
        let looks = registry.enter(session("c"), Paths::All, false);
        assert!(!is_admitted(&same) && !is_admitted(&other) && !is_admitted(&looks));
        path.is_about(Subject::Nameless);
        assert!(is_admitted(&path) && is_admitted(&same) && is_admitted(&other));
        assert!(!is_admitted(&looks), "it may be the session of the path");
        // Too late to come first: the other one has begun.
        path.is_about(session("a"));
        assert!(!is_admitted(&path) && is_admitted(&looks));
        drop(same);
        assert!(is_admitted(&path));
    }

    #[test]
    fn waiting_ends_when_admitted_or_cancelled() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let mut runtime = runtime;
        runtime.build().unwrap().block_on(async {
            let registry = Arc::new(Registry::default());
            let first = registry.enter(session("a"), Paths::Soon, true);
            let second = registry.enter(session("a"), Paths::Soon, true);
            let cancel = Cancel::new();
            cancel.cancel();
            assert!(second.admitted(&cancel).await.is_err());
            let waits = tokio::spawn(async move { second.admitted(&Cancel::new()).await });
            tokio::task::yield_now().await;
            assert!(!waits.is_finished());
            drop(first);
            waits.await.unwrap().unwrap();
            registry.earlier_left().await;
            registry.earlier_changes_left().await;
        });
    }
}
