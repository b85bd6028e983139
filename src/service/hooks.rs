//! The user's programs that answer before events and receive other events (semantics.md §3). This module has the
//! subscriptions of the programs, and keeps the order of events: a program gets one event at a time, in the order in
//! which the events happened. `daemon` reads the answers.

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use treelined_core::budget::HOOK_QUEUE_BYTES;
use treelined_files::cancel::Cancel;
use treelined_files::lock::lock;
use treelined_files::os::program::{Failure, Program};

/// The most events that wait for one program. Further events are dropped.
const MAX_WAITING: usize = 1024;
/// How long the process waits at its end until all events are delivered.
const LAST_EVENTS: Duration = Duration::from_secs(5);
/// How long a program may run after the daemon begins to end, if its own limit is longer (protocol.md §5.8).
const LAST_RUN: Duration = Duration::from_secs(5);

/// One program and its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The names of the notifications that the program gets.
    pub events: Vec<String>,
    pub program: Program,
    pub on_failure: OnFailure,
    /// The configuration file that has the hook.
    pub named_in: PathBuf,
}

/// The answer to a before event if the hook fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Cancels the operation. If a hook that checks operations fails, the operation must not happen unchecked.
    #[default]
    Cancel,
    Proceed,
}

/// The configured hooks, in the order of the configuration.
#[derive(Default)]
pub struct Hooks {
    hooks: Vec<Arc<HookQueue>>,
    /// Cancelled when the daemon begins to end.
    ending: Cancel,
}

struct HookQueue {
    hook: Hook,
    waiting: Mutex<QueuedEvents>,
    idle: Notify,
    /// A copy of the member of [`Hooks`].
    ending: Cancel,
    /// Ends the program that is running.
    over: Cancel,
}

#[derive(Default)]
struct QueuedEvents {
    events: VecDeque<Arc<[u8]>>,
    /// The bytes of all waiting events.
    bytes: usize,
    /// The number of events that were dropped so far.
    dropped: u64,
    /// Whether the process is about to exit. Then nothing more is delivered.
    is_over: bool,
    /// Whether a task is delivering events.
    is_served: bool,
}

impl Hooks {
    pub fn new(hooks: Vec<Hook>) -> Self {
        let ending = Cancel::new();
        let running = hooks.into_iter().map(|hook| {
            Arc::new(HookQueue {
                hook,
                waiting: Mutex::default(),
                idle: Notify::new(),
                ending: ending.clone(),
                over: Cancel::new(),
            })
        });
        Self {
            hooks: running.collect(),
            ending,
        }
    }

    /// The numbers of the hooks that have subscribed to this event.
    pub fn listening(&self, event: &str) -> Vec<usize> {
        let listens =
            |running: &Arc<HookQueue>| running.hook.events.iter().any(|name| name == event);
        let hooks = self.hooks.iter().enumerate();
        hooks
            .filter(|(_, running)| listens(running))
            .map(|(number, _)| number)
            .collect()
    }

    pub fn hook(&self, number: usize) -> Option<&Hook> {
        self.hooks.get(number).map(|running| &running.hook)
    }

    /// Limits the time of running programs and of programs that start later, since the daemon ends.
    pub fn begin_end(&self) {
        self.ending.cancel();
    }

    /// Runs the program of a hook and returns its stdout. The stdin of the program is one event, as a line. `heard`
    /// gets the output as it arrives, even if the program fails later.
    pub async fn run(
        &self,
        hook: &Hook,
        message: &[u8],
        heard: &(dyn Fn(&[u8]) + Send + Sync),
    ) -> Result<Vec<u8>, Failure> {
        hook.run(message, &self.ending, heard).await
    }

    /// Queues an event for its subscribers. Their output is ignored. If the queue of a slow hook is over its budget,
    /// the event is dropped for that hook, and a message is logged. Before events are never dropped, since they use
    /// [`Hooks::run`].
    pub fn tell(&self, event: &str, message: &[u8]) {
        let mut shared: Option<Arc<[u8]>> = None;
        for number in self.listening(event) {
            let Some(running) = self.hooks.get(number) else {
                continue;
            };
            let mut waiting = running.waiting();
            let is_full = waiting.events.len() >= MAX_WAITING
                || waiting.bytes + message.len() > HOOK_QUEUE_BYTES;
            if is_full || waiting.is_over {
                waiting.dropped += 1;
                let (hook, dropped) = (running.hook.program.name(), waiting.dropped);
                tracing::warn!(
                    hook,
                    event,
                    dropped,
                    "a hook is too slow and misses an event"
                );
                continue;
            }
            waiting.bytes += message.len();
            let shared = shared.get_or_insert_with(|| message.into());
            waiting.events.push_back(Arc::clone(shared));
            if waiting.is_served {
                continue;
            }
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => {
                    waiting.is_served = true;
                    runtime.spawn(serve(Arc::clone(running)));
                }
                Err(error) => tracing::error!(%error, "hooks cannot be run"),
            }
        }
    }

    /// Waits a limited time until every event is delivered. After that, drops the other events, ends the running
    /// programs, and writes this to the log.
    pub async fn drained(&self) {
        if tokio::time::timeout(LAST_EVENTS, self.all_heard())
            .await
            .is_ok()
        {
            return;
        }
        for running in &self.hooks {
            running.over.cancel();
            let mut waiting = running.waiting();
            waiting.is_over = true;
            waiting.bytes = 0;
            let dropped = std::mem::take(&mut waiting.events).len();
            if dropped > 0 {
                let hook = running.hook.program.name();
                tracing::warn!(
                    hook,
                    dropped,
                    "a hook misses the last events: the daemon ends"
                );
            }
        }
        self.all_heard().await;
    }

    async fn all_heard(&self) {
        for running in &self.hooks {
            loop {
                let idle = running.idle.notified();
                if !running.waiting().is_served {
                    break;
                }
                idle.await;
            }
        }
    }
}

impl Hook {
    async fn run(
        &self,
        message: &[u8],
        ending: &Cancel,
        heard: &(dyn Fn(&[u8]) + Send + Sync),
    ) -> Result<Vec<u8>, Failure> {
        let line = [message, b"\n"].concat();
        let too_late = async {
            ending.cancelled().await;
            tokio::time::sleep(LAST_RUN).await;
        };
        // When the future is dropped, the program is killed.
        tokio::select! {
            done = self.program.run(&line[..], heard) => done,
            () = too_late => Err(Failure::TimedOut(LAST_RUN)),
        }
    }

    pub fn log_failure(&self, failure: &impl fmt::Display) {
        let (hook, named_in) = (self.program.name(), self.named_in.display());
        tracing::warn!(hook, %named_in, "a hook failed: {failure}");
    }
}

impl HookQueue {
    fn waiting(&self) -> MutexGuard<'_, QueuedEvents> {
        lock(&self.waiting)
    }
}

async fn serve(running: Arc<HookQueue>) {
    loop {
        let event = {
            let mut waiting = running.waiting();
            let event = waiting.events.pop_front();
            waiting.bytes -= event.as_ref().map_or(0, |event| event.len());
            waiting.is_served = event.is_some();
            event
        };
        let Some(event) = event else {
            running.idle.notify_waiters();
            return;
        };
        tokio::select! {
            biased;
            () = running.over.cancelled() => {
                running.hook.log_failure(&"it was ended, since the daemon ends");
            }
            done = running.hook.run(&event, &running.ending, &|_| {}) => {
                if let Err(failure) = done {
                    running.hook.log_failure(&failure);
                }
            }
        }
    }
}
