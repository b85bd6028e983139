//! Drives the real program over real pipes.
//!
//! `places` has the directories, and runs the program to its end. `daemon` has the running child process, `calls` the
//! requests and results, `shared` a daemon with several clients, `web_socket` the clients of the web page, and `checks`
//! the rules for every conversation. `fixture` makes the input.

mod calls;
mod checks;
mod daemon;
mod places;
mod shared;
mod web_socket;

use std::time::Duration;

pub(crate) use self::calls::*;
pub(crate) use self::checks::*;
pub(crate) use self::daemon::*;
pub(crate) use self::places::*;
pub(crate) use self::shared::*;
pub(crate) use self::web_socket::*;
pub(crate) use crate::fixture::*;
pub(crate) use crate::random::Random;
pub(crate) use crate::sample::{self, is_long_run};
pub(crate) use serde_json::json;
pub(crate) type Json = serde_json::Value;

/// How long a test waits for one message, one condition or the end of one process. It is long because a test machine can
/// be busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(300);

/// The random generator of a test, with the seed `TREELINED_TEST_SEED` or `default`, which it prints.
pub(crate) fn seeded_random(default: u64) -> Random {
    Random(sample::seed(default))
}
