//! What the daemon keeps from one request to the next only to be quick, or because others are slow, and
//! how many bytes each of these may have. Everything else it holds is the index of an open session, which
//! grows with the number of its entries and goes with the session, or an answer under way, which has at
//! most the bytes that the client takes.
//!
//! One table, so that the sum is known ([`KEPT`]); what enforces a line stands at the place it names.

/// The rows of the views that were asked for last, of all sessions together. A view that is larger alone
/// is not kept; for another one the views of other sessions are given up (`rpc::tree`).
pub const VIEW_BYTES: usize = 192 << 20;
/// Events that wait for one hook. Further ones are dropped, and the log says so (`hooks`).
pub const HOOK_QUEUE_BYTES: usize = 8 << 20;
/// The ready JSON of one row of `list_sessions`; a longer one is written anew each time (`rpc::list`).
pub const SHOWN_ROW_BYTES: usize = 4 << 10;
/// The statistics of one session: the roles of its messages. Larger ones are counted anew each time
/// (`stats`).
pub const STATS_BYTES: usize = 64 << 10;
/// The buffer of the input, after the frame that needed a larger one (`stdio::frame`).
pub const INPUT_BYTES: usize = 1 << 20;

/// How often something is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    Process,
    Hook,
    /// Of those that are open.
    Session,
    /// Of those in the session directory.
    Row,
}

/// What is kept, how often, and the bytes of each.
pub const KEPT: &[(&str, Per, usize)] = &[
    ("views", Per::Process, VIEW_BYTES),
    ("input", Per::Process, INPUT_BYTES),
    ("hook queues", Per::Hook, HOOK_QUEUE_BYTES),
    ("statistics", Per::Session, STATS_BYTES),
    ("rows of the list", Per::Row, SHOWN_ROW_BYTES),
];

/// The most that is kept with so many hooks, open sessions and files in the session directory, in bytes.
pub fn most_kept(hooks: usize, sessions: usize, files: usize) -> usize {
    let times = |per| match per {
        Per::Process => 1,
        Per::Hook => hooks,
        Per::Session => sessions,
        Per::Row => files,
    };
    KEPT.iter().map(|(_, per, bytes)| times(*per) * bytes).sum()
}
