//! The limits, in bytes, of the memory that the daemon keeps between requests: caches, and queues for slow clients.
//! One table has all limits (`KEPT`), so that their sum is known. Two kinds of memory are not in the table: the index
//! of an open session, which grows with its entries and is freed with the session; and an answer that is being made,
//! whose size the client limits.
//!
//! The input buffer of each connection adds 64 KiB (`stdio::frame`). Frames that are arriving, output that is not read
//! and summaries that are being made share the setting `max_working_bytes` (`service::memory`).
//!
//! Each limit names the module that enforces it.

/// The rows of the latest tree views, for all sessions together. A view that is larger than this is not kept. A new
/// view displaces the views of other sessions (`rpc::tree`).
pub const VIEW_BYTES: usize = 192 << 20;
/// Events that wait for one hook. If they have more bytes than this, new events are dropped, and the log says so
/// (`hooks`).
pub const HOOK_QUEUE_BYTES: usize = 8 << 20;
/// The file of marks of sessions. A larger one is refused (`files::store::marks`).
pub const MARKS_BYTES: usize = 16 << 20;
/// The names and ids of the session files of a large session directory. If they have more bytes than this, each call
/// reads the directory (`files::store::watched`).
pub const KNOWN_FILES_BYTES: usize = 96 << 20;
/// The JSON of one row of `list_sessions`. A longer row is not kept, and is made again for each call (`rpc::list`).
pub const SHOWN_ROW_BYTES: usize = 4 << 10;
/// The statistics of one session by role. Larger ones are computed again for each request (`stats`).
pub(crate) const STATS_BYTES: usize = 64 << 10;

/// The result of the last import that found nothing new, with the names of its sources. A longer result is not kept
/// (`importer::repeat`).
pub const LAST_IMPORT_BYTES: usize = 8 << 20;

/// The answers of the last searches in the mode `ask`, kept for their later pages (`find::ask::ranking`).
pub const RANKING_BYTES: usize = 8 << 20;

/// The segments of the search index: the tables of term counts, and as many of the lists of entries as fit. Each
/// question reads the other lists from their files (`find::ask::segments`).
pub const SEGMENT_BYTES: usize = 64 << 20;

/// The newest rows of the team's sessions; older rows are read again for each page (`fleet::team`). Three things take
/// memory beyond this limit: the part of the older rows that was read last takes as much again, the sessions that others
/// have open take as much again, and the ids of a team that has few sessions take twice as much.
pub const TEAM_BYTES: usize = 12 << 20;

/// The number of instances of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Per {
    Process,
    Hook,
    /// One for each open session.
    Session,
    /// One for each file in the session directory.
    Row,
    /// One if the daemon keeps its sessions in a team.
    Log,
}

/// Name, number of instances, and bytes of each limit.
pub(crate) const KEPT: &[(&str, Per, usize)] = &[
    ("views", Per::Process, VIEW_BYTES),
    ("marks", Per::Process, 4 * MARKS_BYTES),
    ("known files", Per::Process, KNOWN_FILES_BYTES),
    ("rankings", Per::Process, RANKING_BYTES),
    ("counts of terms", Per::Process, SEGMENT_BYTES),
    ("the last import", Per::Process, LAST_IMPORT_BYTES),
    ("the team's sessions", Per::Log, 5 * TEAM_BYTES),
    ("hook queues", Per::Hook, HOOK_QUEUE_BYTES),
    ("statistics", Per::Session, STATS_BYTES),
    ("rows of the list", Per::Row, SHOWN_ROW_BYTES),
];

/// The most bytes kept with this many hooks, open sessions, and files in the session directory, without a team.
pub fn most_kept(hooks: usize, sessions: usize, files: usize) -> usize {
    let times = |per| match per {
        Per::Process => 1,
        Per::Hook => hooks,
        Per::Session => sessions,
        Per::Row => files,
        Per::Log => 0,
    };
    KEPT.iter().map(|(_, per, bytes)| times(*per) * bytes).sum()
}
