//! The limits, in bytes, of memory that the daemon keeps between requests and that cannot be given up. What can be made or
//! read again is in `files::kept`. The index of an open session grows with its entries, and is freed with the session.
//!
//! Each limit names the module that enforces it.

/// Events that wait for one hook. If they have more bytes than this, new events are dropped, and the log says so
/// (`hooks`).
pub const HOOK_QUEUE_BYTES: usize = 8 << 20;
/// The file of marks of sessions. A larger one is refused (`files::store::marks`).
pub const MARKS_BYTES: usize = 16 << 20;
/// The names and ids of the session files of a large session directory. If they have more bytes than this, each call
/// reads the directory (`files::store::watched`).
pub const KNOWN_FILES_BYTES: usize = 96 << 20;
/// The statistics of one session by role. Larger ones are computed again for each request (`stats`).
pub(crate) const STATS_BYTES: usize = 64 << 10;

/// The newest rows of the team's sessions; older rows are read again for each page (`fleet::team`). Three things take
/// memory beyond this limit: the part of the older rows that was read last takes as much again, the sessions that others
/// have open take as much again, and the ids of a team that has few sessions take twice as much.
pub const TEAM_BYTES: usize = 12 << 20;
/// The JSON of the rows that lists have shown last, and these rows. Others are made again (`service::daemon::shown_rows`).
pub const SHOWN_ROWS_BYTES: usize = 2 << 20;
