//! Programs of the user's that answer before events and hear of what has happened (semantics.md §3).
//! Owns who listens to what, and the order in which a program hears: one event at a
//! time, as they came. What an answer means is `rpc`'s.

use crate::program::{Failure, Program};
use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Events that wait for one program; more are dropped.
const MAX_WAITING: usize = 1024;

/// One program and the events it listens to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// Names of notifications.
    pub events: Vec<String>,
    pub program: Program,
    pub on_failure: OnFailure,
    /// The configuration file that names it.
    pub named_in: PathBuf,
}

/// What a before event is taken to be answered with by a hook that fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// A guard that is missing does not open the gate.
    #[default]
    Cancel,
    Proceed,
}

/// The configured hooks, in the order of the configuration.
#[derive(Default)]
pub struct Hooks {
    hooks: Vec<Arc<Running>>,
}

struct Running {
    hook: Hook,
    waiting: Mutex<Waiting>,
    idle: Notify,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Vec<u8>>,
    /// A task takes events out.
    is_served: bool,
}

impl Hooks {
    pub fn new(hooks: Vec<Hook>) -> Self {
        let running = hooks.into_iter().map(|hook| {
            Arc::new(Running {
                hook,
                waiting: Mutex::default(),
                idle: Notify::new(),
            })
        });
        Self {
            hooks: running.collect(),
        }
    }

    /// Numbers of the hooks that listen to this event.
    pub fn listening(&self, event: &str) -> Vec<usize> {
        let listens = |running: &Arc<Running>| running.hook.events.iter().any(|name| name == event);
        let hooks = self.hooks.iter().enumerate();
        hooks
            .filter(|(_, running)| listens(running))
            .map(|(number, _)| number)
            .collect()
    }

    pub fn hook(&self, number: usize) -> Option<&Hook> {
        self.hooks.get(number).map(|running| &running.hook)
    }

    /// Queues an event for those who listen to it; their output is not looked at.
    pub fn tell(&self, event: &str, message: &[u8]) {
        for number in self.listening(event) {
            let Some(running) = self.hooks.get(number) else {
                continue;
            };
            let mut waiting = running.waiting();
            if waiting.events.len() >= MAX_WAITING {
                let hook = running.hook.program.name();
                tracing::warn!(hook, event, "a hook is too slow and misses an event");
                continue;
            }
            waiting.events.push_back(message.to_vec());
            if waiting.is_served {
                continue;
            }
            match tokio::runtime::Handle::try_current() {
                Ok(runtime) => {
                    waiting.is_served = true;
                    runtime.spawn(serve(Arc::clone(running)));
                }
                Err(error) => tracing::error!(%error, "no hook can be run"),
            }
        }
    }

    /// Waits until every event has been heard.
    pub async fn drained(&self) {
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
    /// Runs the program with one event on its stdin, as a line, and gives its stdout.
    pub async fn run(&self, message: &[u8]) -> Result<Vec<u8>, Failure> {
        let line = [message, b"\n"].concat();
        self.program.run(&line, &|_| {}).await
    }

    pub fn log_failure(&self, failure: &impl fmt::Display) {
        let (hook, named_in) = (self.program.name(), self.named_in.display());
        tracing::warn!(hook, %named_in, "a hook failed: {failure}");
    }
}

impl Running {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(running: Arc<Running>) {
    loop {
        let event = {
            let mut waiting = running.waiting();
            let event = waiting.events.pop_front();
            waiting.is_served = event.is_some();
            event
        };
        let Some(event) = event else {
            running.idle.notify_waiters();
            return;
        };
        if let Err(failure) = running.hook.run(&event).await {
            running.hook.log_failure(&failure);
        }
    }
}
