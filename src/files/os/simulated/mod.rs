//! A simulated machine: a disk, a clock, randomness, and processes that take turns.
//!
//! Each process is a thread that runs only while it has the turn. At each call that reaches the disk, a seed decides
//! which process runs next. So a seed gives the same history each time. A process is killed, and the power is cut,
//! between two calls. The thread then unwinds, and its further calls have no effect.

pub mod calls;
mod cut;
mod disk;
mod file;
mod random;

pub use cut::Profile;
pub use disk::Disk;
pub use random::Random;

use crate::os::status::Identity;
use disk::NodeId;
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

/// The time of day at which each simulated machine starts: 2026-03-01, in seconds.
const START: u64 = 1_772_355_600;

/// A call of the engine that is left out, to check that a test detects this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    Nothing,
    /// The sync of a session file after an append.
    AppendSync,
    /// The sync of a file that has a temporary name.
    NewFileSync,
    FolderSync,
    Lock,
    /// The flag `O_APPEND`.
    AppendFlag,
}

/// The settings of a history.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub left_out: LeftOut,
    /// The call at which the power is cut.
    pub cut_at: Option<u64>,
    /// Whether the calls are kept as text.
    pub is_traced: bool,
}

#[derive(Debug)]
pub struct World {
    state: Mutex<State>,
    turns: Vec<Condvar>,
}

#[derive(Debug)]
struct State {
    disk: Disk,
    random: Random,
    rules: Rules,
    /// The time since the start, in nanoseconds.
    now: u64,
    calls: u64,
    is_cut: bool,
    turn: usize,
    processes: Vec<Process>,
    files: BTreeMap<u64, OpenFile>,
    next_file: u64,
    /// The open file that holds the lock of each node.
    locks: BTreeMap<NodeId, u64>,
    /// If this is N, one in N reads, writes and syncs fails.
    fails_one_in: Option<u64>,
    /// If this is N, one in N syncs fails.
    fails_to_sync_one_in: Option<u64>,
    trace: Vec<String>,
    hash: u64,
}

#[derive(Debug, Clone, Default)]
struct Process {
    has_ended: bool,
    is_killed: bool,
    wakes_at: u64,
    calls: u64,
    kill_at: Option<u64>,
}

/// An open file description.
#[derive(Debug)]
struct OpenFile {
    node: NodeId,
    process: usize,
    appends: bool,
    position: u64,
    /// Whether another process has failed to sync the file since this process opened it.
    has_failed: bool,
}

/// The payload of the panic that ends a killed process.
struct Killed;

thread_local! {
    static CURRENT: RefCell<Option<(Arc<World>, usize)>> = const { RefCell::new(None) };
}

impl World {
    /// A machine with this number of processes. None of them runs yet.
    pub fn new(disk: Disk, seed: u64, processes: usize, rules: Rules) -> Arc<Self> {
        let mut random = Random::new(seed);
        let turn = usize::try_from(random.below(processes as u64)).unwrap_or(0);
        Arc::new(Self {
            state: Mutex::new(State {
                disk,
                random,
                rules,
                now: 0,
                calls: 0,
                is_cut: false,
                turn,
                processes: vec![Process::default(); processes],
                files: BTreeMap::new(),
                next_file: 0,
                locks: BTreeMap::new(),
                fails_one_in: None,
                fails_to_sync_one_in: None,
                trace: Vec::new(),
                hash: 0,
            }),
            turns: (0..processes).map(|_| Condvar::new()).collect(),
        })
    }

    /// Kills a process at one of its calls.
    pub fn kill_at(&self, process: usize, call: u64) {
        if let Some(process) = self.lock().processes.get_mut(process) {
            process.kill_at = Some(call);
        }
    }

    /// Limits the free bytes of the disk.
    pub fn limit_space(&self, free: Option<u64>) {
        self.lock().disk.space = free;
    }

    /// Makes one in `fails_one_in` reads, writes and syncs fail with `EIO`.
    pub fn break_disk(&self, fails_one_in: Option<u64>) {
        self.lock().fails_one_in = fails_one_in;
    }

    /// Makes one in `fails_one_in` syncs fail, and no other call.
    pub fn break_syncs(&self, fails_one_in: Option<u64>) {
        self.lock().fails_to_sync_one_in = fails_one_in;
    }

    /// Runs a process on this thread. Returns `None` if it was killed, or if the power was cut.
    pub fn run<T>(self: &Arc<Self>, process: usize, work: impl FnOnce() -> T) -> Option<T> {
        CURRENT.set(Some((Arc::clone(self), process)));
        let state = self.wait_for_turn(self.lock(), process);
        drop(state);
        let done = catch_unwind(AssertUnwindSafe(work));
        let mut state = self.lock();
        // A process that was killed has given its turn to another one.
        if state
            .processes
            .get(process)
            .is_some_and(|process| !process.has_ended)
        {
            state.end(process, false);
            self.next(&mut state);
        }
        drop(state);
        CURRENT.set(None);
        match done {
            Ok(done) => Some(done),
            Err(payload) if payload.is::<Killed>() => None,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Whether the power was cut.
    pub fn is_cut(&self) -> bool {
        self.lock().is_cut
    }

    /// Whether a process was killed.
    pub fn is_killed(&self, process: usize) -> bool {
        let state = self.lock();
        state.processes.get(process).is_some_and(|it| it.is_killed)
    }

    /// The number of calls so far.
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    pub fn disk(&self) -> Disk {
        self.lock().disk.clone()
    }

    /// A hash of all calls so far, and their text if they are kept.
    pub fn trace(&self) -> (u64, Vec<String>) {
        let state = self.lock();
        (state.hash, state.trace.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the turn to a process that can run. If all processes wait, the clock advances.
    fn next(&self, state: &mut State) {
        let waiting = state.processes.iter().filter(|process| !process.has_ended);
        let Some(first) = waiting.map(|process| process.wakes_at).min() else {
            return;
        };
        state.now = state.now.max(first);
        let now = state.now;
        let ready = state.processes.iter().enumerate();
        let ready = ready.filter(|(_, process)| !process.has_ended && process.wakes_at <= now);
        let ready: Vec<usize> = ready.map(|(number, _)| number).collect();
        if let Some(next) = state.random.pick(&ready) {
            state.turn = *next;
        }
        if let Some(turn) = self.turns.get(state.turn) {
            turn.notify_all();
        }
    }

    fn wait_for_turn<'w>(
        &'w self,
        mut state: MutexGuard<'w, State>,
        process: usize,
    ) -> MutexGuard<'w, State> {
        while state.turn != process && !state.is_cut {
            if let Some(turn) = self.turns.get(process) {
                state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        state
    }

    /// Begins a call: another process may run first, this process may be killed, and the power may be cut. `text` names
    /// the call in the trace. `last` runs if the process is killed at this call.
    fn call(
        &self,
        process: usize,
        text: impl FnOnce(&State) -> String,
        last: impl FnOnce(&mut State),
    ) -> Result<MutexGuard<'_, State>, Errno> {
        let mut state = self.alive(self.lock(), process)?;
        if state.random.one_in(2) {
            self.next(&mut state);
            state = self.alive(self.wait_for_turn(state, process), process)?;
        }
        state.calls += 1;
        state.now += 1_000 + state.random.below(200_000);
        let text = format!("{process} {}", text(&state));
        for byte in text.bytes() {
            state.hash = (state.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        if state.rules.is_traced {
            state.trace.push(text);
        }
        if Some(state.calls) == state.rules.cut_at {
            state.is_cut = true;
            for turn in &self.turns {
                turn.notify_all();
            }
            return self.alive(state, process);
        }
        let own = state.processes.get_mut(process);
        let is_last = own.is_some_and(|own| {
            own.calls += 1;
            Some(own.calls) == own.kill_at
        });
        if is_last {
            last(&mut state);
            state.end(process, true);
            self.next(&mut state);
        }
        self.alive(state, process)
    }

    /// Ends this thread if its process has ended, or if the power was cut.
    fn alive<'w>(
        &'w self,
        state: MutexGuard<'w, State>,
        process: usize,
    ) -> Result<MutexGuard<'w, State>, Errno> {
        let own = state.processes.get(process);
        if !state.is_cut && own.is_some_and(|process| !process.has_ended) {
            return Ok(state);
        }
        drop(state);
        if std::thread::panicking() {
            return Err(Errno::IO);
        }
        // Unlike `panic!` this prints nothing.
        resume_unwind(Box::new(Killed))
    }
}

impl State {
    /// Whether a call fails.
    fn fails(&mut self) -> bool {
        let random = &mut self.random;
        self.fails_one_in.is_some_and(|of| random.one_in(of))
    }

    fn fails_to_sync(&mut self) -> bool {
        let random = &mut self.random;
        let one_in = self.fails_to_sync_one_in;
        one_in.is_some_and(|of| random.one_in(of)) || self.fails()
    }

    /// Ends a process, which closes its files.
    fn end(&mut self, process: usize, is_killed: bool) {
        if let Some(process) = self.processes.get_mut(process) {
            process.has_ended = true;
            process.is_killed |= is_killed;
        }
        if is_killed {
            self.files.retain(|_, file| file.process != process);
            let open = &self.files;
            self.locks.retain(|_, holder| open.contains_key(holder));
        }
    }
}

/// The machine and the process of this thread.
fn current() -> (Arc<World>, usize) {
    let current = CURRENT.with_borrow(Clone::clone);
    assert!(
        current.is_some(),
        "a file is used outside of a simulated process"
    );
    current.unwrap_or_else(|| unreachable!())
}

type Called<T> = Result<T, Errno>;

/// Makes a call of the process of this thread.
fn call<T>(
    text: impl FnOnce(&State) -> String,
    act: impl FnOnce(&mut State, usize) -> Called<T>,
) -> Called<T> {
    let (world, process) = current();
    let mut state = world.call(process, text, |_| ())?;
    act(&mut state, process)
}

/// Sets the times of a node that has changed.
fn touch(state: &mut State, node: NodeId, is_written: bool) {
    let now = START * 1_000_000_000 + state.now;
    if let Some(node) = state.disk.nodes.get_mut(&node)
        && (node.changed == 0 || is_written)
    {
        (node.changed, node.modified) = (now, now);
    }
}

pub(super) fn now() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    let (world, _) = current();
    let now = world.lock().now;
    *START.get_or_init(Instant::now) + Duration::from_nanos(now)
}

pub(super) fn system_now() -> SystemTime {
    let (world, _) = current();
    let now = world.lock().now;
    SystemTime::UNIX_EPOCH + Duration::from_secs(START) + Duration::from_nanos(now)
}

/// Waits while other processes run.
pub fn sleep(pause: Duration) {
    let (world, process) = current();
    let Ok(mut state) = world.alive(world.lock(), process) else {
        return;
    };
    let until = state.now + u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
    if let Some(process) = state.processes.get_mut(process) {
        process.wakes_at = until;
    }
    world.next(&mut state);
    let state = world.wait_for_turn(state, process);
    drop(world.alive(state, process));
}

pub(super) fn random() -> Uuid {
    let (world, _) = current();
    let mut state = world.lock();
    let (high, low) = (state.random.number(), state.random.number());
    uuid::Builder::from_random_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
        .into_uuid()
}

/// A number below `end`, for the test.
pub fn choose(end: u64) -> u64 {
    let (world, _) = current();
    world.lock().random.below(end)
}

/// Ends this thread if its process has ended, or if the power was cut. A runtime catches the panic of a task, so the
/// other tasks of the process must call this function to end too.
pub fn check() {
    let (world, process) = current();
    drop(world.alive(world.lock(), process));
}

/// Adds a line to the trace, for the test.
pub fn note(text: impl FnOnce() -> String) {
    let (world, process) = current();
    let mut state = world.lock();
    if state.rules.is_traced {
        let text = format!("{process} # {}", text());
        state.trace.push(text);
    }
}

/// The other processes that have a file open.
pub(super) fn openers_of(identity: Identity) -> Vec<u32> {
    let (world, process) = current();
    let state = world.lock();
    let others = state.files.values().filter(|file| {
        let node = state.disk.node(file.node);
        file.process != process && node.is_some_and(|node| node.inode == identity.inode)
    });
    let numbers = others.map(|file| u32::try_from(file.process).unwrap_or(0));
    numbers.collect()
}
