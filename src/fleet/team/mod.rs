//! The team's view of its sessions: a description of each session, and the daemons that have it open. The view is a
//! convenience. No append waits for it or fails with it, and only the log decides which sessions exist.
//!
//! An engine keeps the view (fleet.md, "The team's list"). NATS keeps it in two buckets of keys and values beside the
//! stream: [`bucket`] is one bucket, and [`buckets`] has both. [`row`] describes a session, and [`presence`] names the
//! sessions that one daemon has open. [`cache`] has the rows that were read, and [`upkeep`] writes rows in the
//! background.
//!
//! A daemon uses [`Team`], and a command uses [`TeamRows`].

#[cfg(feature = "nats")]
mod bucket;
#[cfg(feature = "nats")]
pub(super) mod buckets;
pub(super) mod cache;
#[cfg(feature = "team")]
mod daemon;
pub(super) mod presence;
pub(super) mod row;
#[cfg(feature = "team")]
mod upkeep;

#[cfg(feature = "team")]
pub use self::daemon::Team;
#[cfg(feature = "team")]
pub use self::daemon::TeamRows;
