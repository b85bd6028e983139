//! The team's view of its sessions: a description of each session, and the daemons that have it open. It is a
//! convenience: no append waits for it or fails with it, and only the log says which sessions there are.
//!
//! An engine keeps it (fleet.md, "The team's list"), NATS in two buckets of keys and values beside the stream:
//! [`bucket`] is one of them, [`buckets`] both. [`row`] describes a session, [`presence`] names the sessions that one
//! daemon has open. [`cache`] has what was read of them, and [`upkeep`] writes in the background.
//!
//! A daemon uses [`Team`], a command [`TeamRows`].

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
