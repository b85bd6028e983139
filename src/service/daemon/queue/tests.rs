//! The order of jobs. The sessions are in memory, a list replaces the runtime, and the tests choose in which order the
//! list runs.

use super::{Access, Lease, Queues, Scope, Sessions};
use futures_util::FutureExt;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use treelined_core::durability::Durability;
use treelined_core::error::{Error, Kind, Result};
use treelined_core::flow::append::{self, NewEntry};
use treelined_core::id::ConnectionId;
use treelined_core::tree::Tree;
use treelined_files::cancel::Cancel;
use treelined_files::clock::SystemSource;
use treelined_files::lock::lock;
use treelined_files::log::{self, Log, OpenedLog};
use treelined_files::session::{Session, SessionState};

/// The events in order: `write 1 2`, `read 3`, `cancelled 4`, …
type Events = Arc<Mutex<Vec<String>>>;
type Runnable = Box<dyn FnOnce() + Send>;

struct InMemory;

struct Open {
    session: Arc<Session>,
    events: Events,
}

struct Append {
    name: String,
    events: Events,
}

impl Sessions for InMemory {
    type Open = Open;
    type Append = Append;

    fn write(lease: Lease<Self>, appends: VecDeque<Append>) {
        let open = Arc::clone(lease.open().unwrap());
        let names: Vec<String> = appends.iter().map(|append| append.name.clone()).collect();
        if names.iter().any(|name| name.contains("panic")) {
            panic!("as the test wants");
        }
        let guard = open.session.guard(Instant::now(), lease).unwrap();
        let entries: Vec<NewEntry> = names.iter().map(|name| entry(name)).collect();
        let plan = move |state: &SessionState| {
            append::plan(&state.tree, &SystemSource, &entries, &|node| {
                state.entry(node)
            })
        };
        let cancel = Cancel::new();
        let committed = guard.commit(&cancel, plan).now_or_never();
        let (_guard, _, committed) = committed.expect("memory is not waited for");
        assert!(committed.unwrap().wrote);
        lock(&open.events).push(format!("write {}", names.join(" ")));
    }

    fn refuse(append: Append, error: Error) {
        lock(&append.events).push(format!("{} {}", error.kind.name(), append.name));
    }
}

fn entry(name: &str) -> NewEntry {
    let entry = NewEntry::message(br#"{"role":"user","content":"x"}"#).unwrap();
    entry.with_id(Some(&format!("e{name}")), "entryId").unwrap()
}

struct World {
    queues: Arc<Queues<InMemory>>,
    events: Events,
    spawned: Arc<Mutex<Vec<Runnable>>>,
}

impl World {
    fn new(sessions: &[&str]) -> Self {
        let spawned: Arc<Mutex<Vec<Runnable>>> = Arc::default();
        let keeps = Arc::clone(&spawned);
        let world = Self {
            queues: Queues::new(Box::new(move |job| lock(&keeps).push(job))),
            events: Arc::default(),
            spawned,
        };
        for id in sessions {
            world.open(id, "");
        }
        world
    }

    /// Opens a session. Records an event if `name` is not empty.
    fn open(&self, id: &str, name: &str) {
        let (events, name) = (Arc::clone(&self.events), name.to_owned());
        let header = log::header::Header::new(id, 0, "/", None);
        let open = move |lease: Result<Lease<InMemory>>| {
            let opened = OpenedLog {
                log: Log::ephemeral(header),
                tree: Tree::new(),
                diagnostics: Vec::new(),
            };
            let session = Session::new(opened, false, Durability::None);
            if !name.is_empty() {
                lock(&events).push(format!("open {name}"));
            }
            let open = Open { session, events };
            lease.unwrap().set_open(Some(Arc::new(open)));
        };
        self.queues
            .run(None, Some(id), Scope::Open, &Cancel::new(), open);
    }

    fn append(&self, id: &str, name: &str, holds: bool) -> Cancel {
        let cancel = Cancel::new();
        let append = Append {
            name: name.to_owned(),
            events: Arc::clone(&self.events),
        };
        self.queues.append(None, Some(id), &cancel, append, holds);
        cancel
    }

    fn job(
        &self,
        id: Option<&str>,
        scope: Scope,
        name: &str,
        then: impl FnOnce(Lease<InMemory>) + Send + 'static,
    ) -> Cancel {
        let cancel = Cancel::new();
        let (events, name) = (Arc::clone(&self.events), name.to_owned());
        self.queues
            .run(None, id, scope, &cancel, move |lease| match lease {
                Ok(lease) => {
                    lock(&events).push(format!("read {name}"));
                    then(lease);
                }
                Err(error) => lock(&events).push(format!("{} {name}", error.kind.name())),
            });
        cancel
    }

    /// Opens a session for a connection.
    fn admit(&self, id: &str, connection: ConnectionId, access: Access) {
        let admit = move |lease: Result<Lease<InMemory>>| lease.unwrap().admit(connection, access);
        let by = Some(connection);
        self.queues
            .run(by, Some(id), Scope::Open, &Cancel::new(), admit);
    }

    /// A job of a connection that records its outcome.
    fn job_of(&self, by: ConnectionId, id: Option<&str>, name: &str) {
        let (events, name) = (Arc::clone(&self.events), name.to_owned());
        let job = move |lease: Result<Lease<InMemory>>| {
            let outcome = lease.err().map_or("read", |error| error.kind.name());
            lock(&events).push(format!("{outcome} {name}"));
        };
        self.queues
            .run(Some(by), id, Scope::Session, &Cancel::new(), job);
    }

    fn append_of(&self, by: ConnectionId, id: &str, name: &str) {
        let append = Append {
            name: name.to_owned(),
            events: Arc::clone(&self.events),
        };
        self.queues
            .append(Some(by), Some(id), &Cancel::new(), append, false);
    }

    fn read(&self, id: &str, name: &str) -> Cancel {
        self.job(Some(id), Scope::Session, name, drop)
    }

    /// A job that keeps its lease until the test empties the returned slot.
    fn keep(&self, id: &str, scope: Scope, name: &str) -> Arc<Mutex<Option<Lease<InMemory>>>> {
        let kept: Arc<Mutex<Option<_>>> = Arc::default();
        let slot = Arc::clone(&kept);
        self.job(Some(id), scope, name, move |lease| {
            *lock(&slot) = Some(lease);
        });
        kept
    }

    /// Runs the jobs that were given to the runtime, the oldest first.
    fn settle(&self) {
        loop {
            let mut spawned = lock(&self.spawned);
            if spawned.is_empty() {
                return;
            }
            let next = spawned.remove(0);
            drop(spawned);
            next();
        }
    }

    #[track_caller]
    fn expect(&self, events: &[&str]) {
        self.settle();
        assert_eq!(std::mem::take(&mut *lock(&self.events)), events);
    }
}

fn release(kept: &Mutex<Option<Lease<InMemory>>>) {
    let lease = lock(kept).take();
    assert!(lease.is_some(), "the job has its lease");
}

#[test]
fn a_job_runs_at_once_while_nothing_is_queued() {
    let world = World::new(&["a"]);
    world.read("a", "1");
    world.append("a", "2", false);
    world.job(None, Scope::Session, "3", drop);
    assert!(lock(&world.spawned).is_empty(), "all ran on this thread");
    world.expect(&["read 1", "write 2", "read 3"]);
}

#[test]
fn adjacent_appends_are_one_write() {
    let world = World::new(&["a"]);
    let busy = world.keep("a", Scope::Session, "1");
    for name in ["2", "3"] {
        world.append("a", name, false);
    }
    world.read("a", "4");
    world.append("a", "5", false);
    release(&busy);
    world.expect(&["read 1", "write 2 3", "read 4", "write 5"]);
}

#[test]
fn held_appends_are_written_together_when_the_input_is_settled_or_another_job_comes() {
    let world = World::new(&["a", "b"]);
    for name in ["1", "2"] {
        world.append("a", name, true);
    }
    world.append("b", "3", true);
    world.expect(&[]);
    world.queues.settle();
    world.expect(&["write 1 2", "write 3"]);
    world.append("a", "4", true);
    world.append("b", "5", true);
    world.read("a", "6");
    world.expect(&["write 4", "read 6"]);
    world.queues.settle();
    world.expect(&["write 5"]);
}

#[test]
fn a_job_cancelled_in_the_queue_is_answered_at_once_and_leaves_its_place() {
    let world = World::new(&["a"]);
    let busy = world.keep("a", Scope::Session, "1");
    let append = world.append("a", "2", false);
    let read = world.read("a", "3");
    world.append("a", "4", false);
    append.cancel();
    read.cancel();
    world.expect(&["read 1", "cancelled 2", "cancelled 3"]);
    release(&busy);
    world.expect(&["write 4"]);
    assert!(read.is_cancelled() && !read.cancel());
}

#[test]
fn a_job_that_panics_leaves_the_session_to_the_next() {
    let world = World::new(&["a"]);
    let busy = world.keep("a", Scope::Session, "1");
    world.job(Some("a"), Scope::Session, "2", |_lease| {
        panic!("as the test wants")
    });
    world.append("a", "panic", false);
    world.read("a", "3");
    release(&busy);
    world.expect(&["read 1", "read 2", "read 3"]);
    world.job(Some("a"), Scope::Session, "4", |_lease| {
        panic!("as the test wants")
    });
    world.append("a", "5", false);
    world.expect(&["read 4", "write 5"]);
}

/// A job like a navigation: it plans with the lease, asks without the lease, and commits after the jobs that arrived
/// meanwhile.
#[test]
fn a_job_that_gives_up_its_lease_queues_again_behind_the_others() {
    let world = World::new(&["a"]);
    let plans = world.keep("a", Scope::Session, "plan");
    world.append("a", "1", false);
    world.read("a", "2");
    release(&plans);
    let busy = world.keep("a", Scope::Session, "3");
    world.expect(&["read plan", "write 1", "read 2", "read 3"]);
    let commits = world.keep("a", Scope::Session, "commit");
    world.append("a", "4", false);
    world.expect(&[]);
    release(&busy);
    world.expect(&["read commit"]);
    release(&commits);
    world.expect(&["write 4"]);
}

#[test]
fn jobs_behind_a_close_do_not_find_the_session() {
    let world = World::new(&["a", "b"]);
    let close = world.keep("a", Scope::Change, "close");
    world.read("a", "1");
    world.append("a", "2", false);
    world.append("a", "3", false);
    let only = world.job(None, Scope::Session, "4", drop);
    world.open("a", "5");
    world.read("a", "6");
    world.expect(&["read close"]);
    if let Some(lease) = &mut *lock(&close) {
        lease.set_open(None);
    }
    release(&close);
    world.expect(&[
        "sessionNotFound 1",
        "sessionNotFound 2",
        "sessionNotFound 3",
        "open 5",
        "read 4",
        "read 6",
    ]);
    assert!(!only.is_cancelled());
    world.read("c", "7");
    world.expect(&["sessionNotFound 7"]);
}

/// The slow opening of one session once delayed the opening, creation and closing of all other sessions.
#[test]
fn a_job_that_opens_a_session_does_not_hold_other_sessions() {
    let world = World::new(&["b"]);
    let slow = world.keep("a", Scope::Open, "open a");
    world.read("b", "1");
    world.open("c", "c");
    world.read("a", "2");
    world.expect(&["read open a", "read 1", "open c"]);
    drop(world.job(Some("b"), Scope::Change, "close b", |mut lease| {
        lease.set_open(None);
    }));
    world.expect(&["read close b"]);
    release(&slow);
    world.expect(&["sessionNotFound 2"]);
}

#[test]
fn a_job_for_the_only_session_waits_for_all_registry_jobs_and_all_later_jobs_for_it() {
    let world = World::new(&["a"]);
    let opens = world.keep("b", Scope::Open, "open b");
    world.job(None, Scope::Session, "only", drop);
    world.read("a", "1");
    world.open("c", "c");
    world.expect(&["read open b"]);
    release(&opens);
    world.expect(&["read only", "open c", "read 1"]);
    // Two sessions are open.
    world.job(None, Scope::Session, "which", drop);
    world.expect(&["invalidParams which"]);
    let only = World::new(&["a"]);
    let opens = only.keep("b", Scope::Open, "open b");
    let cancelled = only.job(None, Scope::Change, "only", drop);
    only.read("a", "1");
    cancelled.cancel();
    only.expect(&["read open b", "cancelled only", "read 1"]);
    release(&opens);
}

#[test]
fn a_file_keeps_its_place_once_its_session_is_known() {
    let world = World::new(&["open"]);
    let file = world.queues.unnamed(None, &Cancel::new());
    world.read("open", "1");
    world.open("a", "a");
    world.open("b", "b");
    world.read("c", "2");
    world.expect(&["read 1"]);
    let lease = file.lease("a");
    world.expect(&["open b", "sessionNotFound 2"]);
    let lease = lease.now_or_never().expect("it is the first").unwrap();
    drop(lease);
    world.expect(&["open a"]);
}

#[test]
fn a_file_whose_header_takes_long_holds_only_jobs_of_sessions_that_are_not_open() {
    let world = World::new(&[]);
    let file = world.queues.unnamed(None, &Cancel::new());
    world.open("a", "a");
    world.read("c", "may be the file's");
    world.expect(&[]);
    file.header_is_late();
    world.expect(&["open a"]);
    drop(file);
    world.expect(&["sessionNotFound may be the file's"]);
}

#[test]
fn a_list_waits_for_the_jobs_before_it_only() {
    let world = World::new(&["a"]);
    let busy = world.keep("a", Scope::Session, "1");
    let makes = world.keep("b", Scope::Create, "2");
    let mut earlier = Box::pin(world.queues.earlier_ended());
    let mut changes = Box::pin(world.queues.changes_ended());
    assert!(earlier.as_mut().now_or_never().is_none());
    assert!(changes.as_mut().now_or_never().is_none());
    world.read("a", "later");
    release(&makes);
    assert!(changes.as_mut().now_or_never().is_some());
    assert!(earlier.as_mut().now_or_never().is_none());
    release(&busy);
    assert!(earlier.as_mut().now_or_never().is_some());
}

/// A session that an import was about to create was once opened, searched and listed before the import had written it.
#[test]
fn an_import_holds_only_openings_and_deletions_of_sessions_that_are_not_open() {
    let world = World::new(&["open"]);
    let before = Box::pin(world.queues.imports_ended(None));
    let import = world.queues.import(None);
    let mut after = Box::pin(world.queues.imports_ended(None));
    assert!(before.now_or_never().is_some());
    world.open("new", "new");
    world.read("new", "1");
    let deleted = world.job(Some("old"), Scope::Change, "deleted", drop);
    world.job(Some("older"), Scope::Change, "older", drop);
    world.job(Some("made"), Scope::Create, "made", drop);
    world.open("open", "again");
    world.job(Some("open"), Scope::Change, "2", drop);
    world.read("none", "3");
    world.expect(&["read made", "open again", "read 2", "sessionNotFound 3"]);
    deleted.cancel();
    world.expect(&["cancelled deleted"]);
    assert!(after.as_mut().now_or_never().is_none());
    drop(import);
    assert!(after.as_mut().now_or_never().is_some());
    world.expect(&["open new", "read older", "read 1"]);
}

/// A seeded generator of numbers.
struct Random(pub u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Submits, cancels, holds and releases jobs of three sessions at random, while the runtime runs its jobs in any order.
/// The jobs of one session must run in the order of their submission, and each job once.
#[test]
fn jobs_of_a_session_run_in_order_whatever_the_runtime_does() {
    for seed in 1..=300 {
        let mut random = Random(seed * 0x9e37_79b9);
        let sessions = ["a", "b", "c"];
        let world = World::new(&sessions);
        let mut submitted: HashMap<&str, Vec<usize>> = HashMap::new();
        let (mut kept, mut cancels) = (Vec::new(), Vec::new());
        for number in 0..60 {
            let id = sessions[random.below(3)];
            let name = format!("{id}{number}");
            submitted.entry(id).or_default().push(number);
            match random.below(8) {
                0..=2 => cancels.push(world.append(id, &name, random.below(2) == 0)),
                3 => kept.push(world.keep(id, Scope::Session, &name)),
                4 => kept.push(world.keep(id, Scope::Change, &name)),
                5 => drop(world.job(Some(id), Scope::Session, &name, |_| {
                    panic!("as the test wants")
                })),
                _ => cancels.push(world.read(id, &name)),
            }
            for _ in 0..random.below(4) {
                let (count, kept_count) = (lock(&world.spawned).len(), kept.len());
                match random.below(4) {
                    0 if kept_count > 0 => {
                        drop(lock(&kept.swap_remove(random.below(kept_count))).take())
                    }
                    1 if !cancels.is_empty() && random.below(3) == 0 => {
                        cancels[random.below(cancels.len())].cancel();
                    }
                    2 => world.queues.settle(),
                    _ if count > 0 => {
                        let next = lock(&world.spawned).swap_remove(random.below(count));
                        next();
                    }
                    _ => {}
                }
            }
        }
        // A slot may be emptied before its job begins. The slot then gets the lease later and must be emptied again.
        world.queues.settle();
        let mut rounds = 0;
        while rounds < 200 {
            world.settle();
            kept.iter().for_each(|kept| drop(lock(kept).take()));
            rounds += 1;
        }
        check(&world, &submitted, seed);
    }
}

#[test]
fn a_session_exists_for_the_connections_that_have_opened_it() {
    let world = World::new(&["a", "b"]);
    let (reader, writer, stranger) = (ConnectionId(1), ConnectionId(2), ConnectionId(3));
    world.admit("a", reader, Access::Read);
    world.admit("a", writer, Access::Write);
    world.admit("b", writer, Access::Write);
    let running = world.keep("a", Scope::Session, "r");
    world.append_of(writer, "a", "1");
    world.append_of(reader, "a", "2");
    world.append_of(stranger, "a", "3");
    world.append_of(writer, "a", "4");
    world.job_of(reader, None, "5");
    world.job_of(writer, None, "6");
    world.job_of(stranger, Some("b"), "7");
    drop(lock(&running).take());
    world.settle();
    let mut events = lock(&world.events).clone();
    events.sort_unstable();
    let expect = [
        "invalidParams 6",
        "read 5",
        "read r",
        "readOnly 2",
        "sessionNotFound 3",
        "sessionNotFound 7",
        "write 1",
        "write 4",
    ];
    assert_eq!(events, expect);
}

/// A slow opening by one connection once held up the requests of all other connections that named no session.
#[test]
fn a_job_for_the_only_session_waits_for_registry_jobs_of_its_own_connection_only() {
    let world = World::new(&["a"]);
    let (slow, other) = (ConnectionId(1), ConnectionId(2));
    world.admit("a", slow, Access::Write);
    world.admit("a", other, Access::Write);
    let opening = world.queues.unnamed(Some(slow), &Cancel::new());
    world.job_of(slow, None, "1");
    world.job_of(other, None, "2");
    world.settle();
    assert_eq!(*lock(&world.events), ["read 2"]);
    drop(opening);
    world.settle();
    assert_eq!(*lock(&world.events), ["read 2", "read 1"]);
}

fn check(world: &World, submitted: &HashMap<&str, Vec<usize>>, seed: u64) {
    let events = lock(&world.events).clone();
    for (id, numbers) in submitted {
        let names = |kinds: &[&str]| -> Vec<usize> {
            let of_kind = events.iter().filter_map(|event| event.split_once(' '));
            let of_kind = of_kind.filter(|(kind, _)| kinds.contains(kind));
            let names = of_kind.flat_map(|(_, names)| names.split(' '));
            names
                .filter_map(|name| name.strip_prefix(id)?.parse().ok())
                .collect()
        };
        let done = names(&["write", "read"]);
        assert!(done.is_sorted(), "seed {seed}: {done:?}");
        let mut all = [done, names(&["cancelled"])].concat();
        all.sort_unstable();
        assert_eq!(all, *numbers, "seed {seed}: each is answered once");
        let session = &world.queues.find(id).unwrap().session;
        let guard = session.guard(Instant::now(), ()).expect("nobody has it");
        let stored = guard
            .tree
            .entries()
            .map(|node| guard.tree.id(node).to_owned());
        let written: Vec<String> = names(&["write"])
            .iter()
            .map(|n| format!("e{id}{n}"))
            .collect();
        assert_eq!(stored.collect::<Vec<_>>(), written, "seed {seed}");
    }
    assert_eq!(Kind::Cancelled.name(), "cancelled");
}
