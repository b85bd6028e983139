//! The team's view of the sessions of a stream: a description of each session, and the daemons that have it open. It
//! is a convenience: no append waits for it or fails with it, and only the stream says which sessions there are.
//!
//! Two buckets of keys and values beside the stream keep it (fleet.md, "The team's list"). [`bucket`] is one of them,
//! [`buckets`] both. [`row`] describes a session, [`presence`] names the sessions that one daemon has open. [`cache`]
//! has what was read of them, and [`upkeep`] writes in the background.
//!
//! A daemon uses [`Team`], a command [`TeamRows`].

#[cfg(feature = "nats")]
mod bucket;
#[cfg(feature = "nats")]
mod buckets;
mod cache;
mod presence;
mod row;
#[cfg(feature = "nats")]
mod upkeep;

#[cfg(feature = "nats")]
mod daemon;

#[cfg(feature = "nats")]
pub use self::daemon::Team;
#[cfg(feature = "nats")]
pub use self::daemon::TeamRows;
