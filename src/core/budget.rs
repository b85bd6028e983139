//! The limits, in bytes, of the memory that the daemon keeps between requests and cannot free earlier. Data that can be
//! computed or read again is in `files::kept`. The index of an open session grows with the entries of the session, and
//! is freed with the session.
//!
//! Each limit names the module that enforces it.

/// Events that wait for one hook. If these events exceed the limit, new events are dropped, and the log reports this
/// (`hooks`).
pub const HOOK_QUEUE_BYTES: usize = 8 << 20;
/// The file of marks of sessions. A larger file is refused (`files::store::marks`).
pub const MARKS_BYTES: usize = 16 << 20;
/// The names and ids of the session files of a large session directory. If they exceed the limit, each call reads the
/// directory (`files::store::watched`).
pub const KNOWN_FILES_BYTES: usize = 96 << 20;
/// The statistics of one session by role. Larger statistics are computed again for each request (`stats`).
pub(crate) const STATS_BYTES: usize = 64 << 10;

/// The newest rows of the team's sessions; older rows are read again for each page (`fleet::team`). Three more things
/// take memory that this limit does not count. The part of the older rows that was read last takes up to the same
/// limit. The sessions that others have open take up to the same limit. The ids of a team that has few sessions take up
/// to twice the limit.
pub const TEAM_BYTES: usize = 12 << 20;
/// The rows that lists have shown last, and their JSON. Other rows are made again (`service::daemon::shown_rows`).
pub const SHOWN_ROWS_BYTES: usize = 2 << 20;
