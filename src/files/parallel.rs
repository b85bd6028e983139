//! Runs work on several threads, and delivers the results in order.
//!
//! This module has the threads of all work that is divided between cores. [`map_in_order`] maps numbers to results,
//! [`in_order`] maps parts of a range, and [`Background`] does one kind of work while its caller continues. Results
//! arrive in order, only a limited number of them wait, and a panic of any thread is raised again on the thread of
//! the caller.

use crate::lock::{lock, wait};
use std::collections::VecDeque;
use std::io;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Condvar, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use treelined_core::error::Result;

/// The number of bodies that one thread reads at a time.
pub const CHUNK: usize = 2048;
/// The most threads that one request may use.
const REQUEST_THREADS: usize = 4;

/// How work is divided between threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadPlan {
    /// The number of threads besides the thread of the caller.
    pub helpers: usize,
    /// The most results that may be begun and not taken yet; at least 1. This number limits the memory of the results.
    pub ahead: usize,
}

impl ThreadPlan {
    /// A plan with one thread for each core, at most `threads`, and one waiting result for each thread. If `threads`
    /// is 1, the system is not asked for its number of cores.
    pub fn up_to(threads: usize) -> Self {
        let threads = match threads {
            0 | 1 => 1,
            _ => cores().min(threads),
        };
        Self {
            helpers: threads - 1,
            ahead: threads,
        }
    }
}

/// The number of cores that this process may use. Asking the system takes several reads, so the first answer is
/// remembered.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    if cfg!(feature = "simulation") {
        // A simulated process has one thread.
        return 1;
    }
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Calls `work` for each number below `count` on several threads. Passes the results to `take` on the calling thread,
/// in order, until `take` breaks. `state` makes the state of each thread.
///
/// The calling thread also works while the next result is not ready. It does all the work if `count` is 1, or if no
/// thread can be started. After a break no new work begins, and running work is waited for. A panic of `work` is raised
/// on the calling thread, at the latest when the result of this work would be taken.
pub fn map_in_order<S, T: Send, B>(
    count: usize,
    plan: ThreadPlan,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
    mut take: impl FnMut(T) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let helpers = plan.helpers.min(count.saturating_sub(1));
    let queue = WorkQueue {
        count,
        ahead: plan.ahead.max(1),
        slots: Mutex::default(),
        ready: Condvar::new(),
        room: Condvar::new(),
    };
    let help = || {
        let mut own = state();
        while let Some(number) = queue.begin_when_there_is_room() {
            let done = catch_unwind(AssertUnwindSafe(|| work(&mut own, number)));
            let panicked = done.is_err();
            queue.finish(number, done);
            if panicked {
                break;
            }
        }
    };
    thread::scope(|scope| {
        // This value stops the helpers when this function returns or unwinds.
        let _stop = StopOnDrop(&queue);
        for _ in 0..helpers {
            let helper = thread::Builder::new().name("parallel".to_owned());
            if helper.spawn_scoped(scope, help).is_err() {
                break;
            }
        }
        let mut own = state();
        for _ in 0..count {
            let done = loop {
                match queue.take_or_begin() {
                    NextStep::Take(Ok(done)) => break done,
                    NextStep::Take(Err(panic)) => resume_unwind(panic),
                    NextStep::Work(number) => queue.finish(number, Ok(work(&mut own, number))),
                }
            };
            take(done)?;
        }
        ControlFlow::Continue(())
    })
}

/// Like [`map_in_order`], for chunks of `range` with at most `size` numbers. Fails with the first failure in the
/// order of the chunks. If there is only one chunk, the calling thread does the work.
pub fn in_order<T: Send>(
    range: Range<usize>,
    size: usize,
    work: impl Fn(Range<usize>) -> Result<T> + Sync,
    mut take: impl FnMut(T) -> ControlFlow<()>,
) -> Result<()> {
    let chunk = |number: usize| {
        let start = range.start + number * size;
        start..range.end.min(start + size)
    };
    let count = range.len().div_ceil(size);
    let work = |(): &mut (), number: usize| work(chunk(number));
    let done = map_in_order(
        count,
        ThreadPlan::up_to(REQUEST_THREADS),
        || (),
        work,
        |done| match done.map(&mut take) {
            Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
            Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(())),
            Err(error) => ControlFlow::Break(Err(error)),
        },
    );
    done.break_value().unwrap_or(Ok(()))
}

/// Runs `here` on this thread while another thread runs `other`. If no thread can be started, this thread runs both,
/// one after the other.
pub(crate) fn join<A, B: Send>(here: impl FnOnce() -> A, other: impl Fn() -> B + Sync) -> (A, B) {
    thread::scope(|scope| {
        let helper = thread::Builder::new().name("parallel".to_owned());
        let helper = helper.spawn_scoped(scope, &other).ok();
        let here = here();
        match helper.map(thread::ScopedJoinHandle::join) {
            Some(Ok(other)) => (here, other),
            Some(Err(panic)) => resume_unwind(panic),
            None => (here, other()),
        }
    })
}

/// The numbers in progress, and the results that wait to be taken.
struct WorkQueue<T> {
    count: usize,
    ahead: usize,
    slots: Mutex<WorkSlots<T>>,
    /// Notified when the next result is ready.
    ready: Condvar,
    /// Notified when more work may begin, or when all work has ended.
    room: Condvar,
}

/// A result, or the panic of its work.
type WorkResult<T> = thread::Result<T>;

struct WorkSlots<T> {
    /// The number of results that were taken.
    taken: usize,
    /// The results of the begun numbers, from `taken` on; `None` while the work on a number is in progress.
    begun: VecDeque<Option<WorkResult<T>>>,
    /// The number of helpers that wait for room.
    waiting: usize,
    stopped: bool,
}

impl<T> Default for WorkSlots<T> {
    fn default() -> Self {
        Self {
            taken: 0,
            begun: VecDeque::new(),
            waiting: 0,
            stopped: false,
        }
    }
}

/// The caller's next step.
enum NextStep<T> {
    Take(WorkResult<T>),
    Work(usize),
}

impl<T> WorkQueue<T> {
    /// Reserves the next number. The caller then works on it.
    fn begin(&self, slots: &mut WorkSlots<T>) -> Option<usize> {
        let number = slots.taken + slots.begun.len();
        let may_begin = number < self.count && slots.begun.len() < self.ahead;
        may_begin.then(|| {
            slots.begun.push_back(None);
            number
        })
    }

    /// Waits for room, and reserves the next number. `None` if there is no further number.
    fn begin_when_there_is_room(&self) -> Option<usize> {
        let mut slots = lock(&self.slots);
        loop {
            if slots.stopped || slots.taken + slots.begun.len() >= self.count {
                return None;
            }
            if let Some(number) = self.begin(&mut slots) {
                return Some(number);
            }
            slots.waiting += 1;
            slots = wait(&self.room, slots);
            slots.waiting -= 1;
        }
    }

    fn finish(&self, number: usize, done: WorkResult<T>) {
        let mut slots = lock(&self.slots);
        let at = number - slots.taken;
        if let Some(slot) = slots.begun.get_mut(at) {
            *slot = Some(done);
        }
        drop(slots);
        if at == 0 {
            self.ready.notify_one();
        }
    }

    fn take_or_begin(&self) -> NextStep<T> {
        let mut slots = lock(&self.slots);
        loop {
            if let Some(Some(_)) = slots.begun.front()
                && let Some(Some(done)) = slots.begun.pop_front()
            {
                slots.taken += 1;
                if slots.waiting > 0 {
                    self.room.notify_one();
                }
                return NextStep::Take(done);
            }
            if let Some(number) = self.begin(&mut slots) {
                return NextStep::Work(number);
            }
            slots = wait(&self.ready, slots);
        }
    }
}

struct StopOnDrop<'q, T>(&'q WorkQueue<T>);

impl<T> Drop for StopOnDrop<'_, T> {
    fn drop(&mut self) {
        lock(&self.0.slots).stopped = true;
        self.0.room.notify_all();
    }
}

/// A thread that does one kind of work on items, in the order in which they were [pushed](Self::push), while the
/// caller prepares the next item. Dropping this value waits until the pushed items are done.
pub struct Background<T> {
    items: Option<SyncSender<T>>,
    used: Receiver<T>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl<T: Send + 'static> Background<T> {
    /// Starts the thread. At most `waiting` items wait for it. The thread ends at the first failure of `work`.
    pub fn start(
        name: &str,
        waiting: usize,
        mut work: impl FnMut(&T) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (items, received) = mpsc::sync_channel::<T>(waiting);
        let (give_back, used) = mpsc::channel();
        let run = move || {
            for item in received {
                work(&item)?;
                // The caller may be finishing, and then takes no items back.
                let _unwanted = give_back.send(item);
            }
            Ok(())
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self {
            items: Some(items),
            used,
            thread: Some(thread),
        })
    }

    /// Passes an item to the thread; waits while too many items wait. Returns a finished item for reuse, if there is
    /// one. Fails with the failure that ended the thread.
    pub fn push(&mut self, item: T) -> io::Result<Option<T>> {
        let sent = self.items.as_ref().map(|items| items.send(item));
        if let Some(Ok(())) = sent {
            return Ok(self.used.try_recv().ok());
        }
        self.finish()?;
        Err(io::Error::other("the background thread has ended"))
    }

    /// Waits until all items are done. Nothing can be pushed afterwards.
    pub fn finish(&mut self) -> io::Result<()> {
        self.items = None;
        match self.thread.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(done)) => done,
            Some(Err(panic)) => resume_unwind(panic),
        }
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.items = None;
        if let Some(thread) = self.thread.take() {
            // Nothing receives the failure or panic of the thread here.
            let _ended = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;
    use treelined_core::error::{Error, Kind};

    /// Several helpers even if this machine has one core, so that the tests use several threads on every machine.
    const PLAN: ThreadPlan = ThreadPlan {
        helpers: 3,
        ahead: 5,
    };

    fn collect(count: usize, plan: ThreadPlan) -> Vec<usize> {
        let mut all = Vec::new();
        let work = |(): &mut (), number: usize| {
            // Of every four numbers, the first one takes the longest time.
            thread::sleep(Duration::from_micros((3 - number as u64 % 4) * 100));
            number
        };
        let done = map_in_order(
            count,
            plan,
            || (),
            work,
            |number| {
                all.push(number);
                ControlFlow::<()>::Continue(())
            },
        );
        assert!(done.is_continue());
        all
    }

    #[test]
    fn results_arrive_in_order_whoever_is_first() {
        for count in [0, 1, 2, 5, 100] {
            let expected: Vec<usize> = (0..count).collect();
            assert_eq!(collect(count, PLAN), expected);
            for (helpers, ahead) in [(0, 1), (0, 0), (3, 1), (9, 2)] {
                assert_eq!(collect(count, ThreadPlan { helpers, ahead }), expected);
            }
        }
    }

    #[test]
    fn no_more_than_the_look_ahead_is_begun_and_not_taken() {
        let (begun, most, mut taken) = (AtomicUsize::new(0), AtomicUsize::new(0), 0);
        let taken_by_now = AtomicUsize::new(0);
        let work = |(): &mut (), _: usize| {
            let begun = begun.fetch_add(1, Ordering::SeqCst) + 1;
            let open = begun - taken_by_now.load(Ordering::SeqCst);
            most.fetch_max(open, Ordering::SeqCst);
        };
        let done = map_in_order(
            200,
            PLAN,
            || (),
            work,
            |()| {
                thread::sleep(Duration::from_micros(200));
                taken += 1;
                taken_by_now.store(taken, Ordering::SeqCst);
                ControlFlow::<()>::Continue(())
            },
        );
        assert!(done.is_continue());
        // The queue does not count the result that `take` has, but `most` does.
        let most = most.load(Ordering::SeqCst);
        assert!((2..=PLAN.ahead + 1).contains(&most), "{most}");
    }

    #[test]
    fn a_break_cancels_what_was_not_begun() {
        let begun = AtomicUsize::new(0);
        let work = |(): &mut (), number: usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            number
        };
        let stop_at = |number| match number {
            10 => ControlFlow::Break("enough"),
            _ => ControlFlow::Continue(()),
        };
        let done = map_in_order(1_000_000, PLAN, || (), work, stop_at);
        assert_eq!(done, ControlFlow::Break("enough"));
        assert!(begun.load(Ordering::SeqCst) <= 11 + PLAN.ahead);
    }

    #[test]
    fn each_thread_has_a_state_of_its_own() {
        let states = AtomicUsize::new(0);
        let state = || (states.fetch_add(1, Ordering::SeqCst), 0);
        let work = |(state, calls): &mut (usize, usize), _: usize| {
            *calls += 1;
            thread::sleep(Duration::from_micros(100));
            (*state, *calls)
        };
        let mut calls = [0; 4];
        let done = map_in_order(50, PLAN, state, work, |(state, call)| {
            calls[state] = call.max(calls[state]);
            ControlFlow::<()>::Continue(())
        });
        assert!(done.is_continue());
        assert_eq!(calls.iter().sum::<usize>(), 50);
    }

    /// The results before the panic are taken, and no caller waits for ever.
    #[test]
    fn a_panic_in_a_worker_is_raised_on_the_caller() {
        for plan in [
            PLAN,
            ThreadPlan {
                helpers: 0,
                ahead: 1,
            },
        ] {
            let taken = AtomicUsize::new(0);
            let run = || {
                let work = |(): &mut (), number: usize| {
                    thread::sleep(Duration::from_micros(100));
                    assert!(number != 20, "in number 20");
                };
                map_in_order(
                    100,
                    plan,
                    || (),
                    work,
                    |()| {
                        taken.fetch_add(1, Ordering::SeqCst);
                        ControlFlow::<()>::Continue(())
                    },
                )
            };
            let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"in number 20"));
            assert!(taken.load(Ordering::SeqCst) <= 20);
        }
    }

    #[test]
    fn chunks_arrive_in_order_until_a_break_or_the_first_failure() {
        let collect = |end: usize, stop: usize, bad: usize| {
            let mut all = Vec::new();
            let work = |range: Range<usize>| match range.contains(&bad) {
                true => Err(Error::new(Kind::InternalError, "bad")),
                false => Ok(range),
            };
            let done = in_order(3..end, 10, work, |range| {
                all.extend(range.clone());
                match range.contains(&stop) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            (all, done.is_ok())
        };
        let none = usize::MAX;
        assert_eq!(collect(3, none, none), (vec![], true));
        assert_eq!(collect(4, none, none), (vec![3], true));
        assert_eq!(collect(103, none, none), ((3..103).collect(), true));
        assert_eq!(collect(103, 25, none), ((3..33).collect(), true));
        assert_eq!(collect(103, none, 25), ((3..23).collect(), false));
        assert_eq!(collect(103, 13, 25), ((3..23).collect(), true));
    }

    #[test]
    fn two_jobs_run_side_by_side() {
        let (sender, receiver) = mpsc::channel();
        let both = join(|| receiver.recv().unwrap() + 1, || sender.send(1).is_ok());
        assert_eq!(both, (2, true));
    }

    #[test]
    fn background_work_is_done_in_order_and_finished_when_dropped() {
        let done = std::sync::Arc::new(Mutex::new(Vec::new()));
        let work = {
            let done = std::sync::Arc::clone(&done);
            move |item: &usize| {
                lock(&done).push(*item);
                Ok(())
            }
        };
        let mut background = Background::start("test", 2, work).unwrap();
        let mut given_back = Vec::new();
        for item in 0..100 {
            given_back.extend(background.push(item).unwrap());
        }
        drop(background);
        assert_eq!(*lock(&done), (0..100).collect::<Vec<_>>());
        assert!(given_back.is_sorted() && given_back.len() <= 100);
    }

    #[test]
    fn a_failure_in_the_background_is_returned_once_and_ends_the_work() {
        let after = std::sync::Arc::new(AtomicBool::new(false));
        let work = {
            let after = std::sync::Arc::clone(&after);
            move |item: &usize| {
                after.fetch_or(*item > 3, Ordering::SeqCst);
                match item {
                    3 => Err(io::Error::other("disk")),
                    _ => Ok(()),
                }
            }
        };
        let mut background = Background::start("test", 1, work).unwrap();
        let failed = (0..100).find_map(|item| background.push(item).err());
        assert_eq!(failed.unwrap().to_string(), "disk");
        assert!(background.push(0).is_err());
        assert!(background.finish().is_ok());
        assert!(!after.load(Ordering::SeqCst));
    }
}
