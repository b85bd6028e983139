//! The team's view of its sessions: a description of each session, and the daemons that have it open. The view is a
//! convenience. No append waits for it or fails with it, and only the log decides which sessions exist.
//!
//! An engine keeps the view (fleet.md, "The team's list"). [`row`] describes a session, and [`presence`] names the
//! sessions that one daemon has open. [`parts`] puts a list together, and [`upkeep`] writes rows in the background.
//!
//! NATS keeps the view in two streams of keys and [`values`], which [`nats_index`] has. [`row_reader`] reads the stream
//! of rows backwards from its end. The newest rows stay in a [`window`], and [`selection`] has the rows that a query
//! selects.
//!
//! A daemon uses [`Team`], and a command uses [`TeamRows`].

#[cfg(feature = "team")]
mod daemon;
#[cfg(feature = "nats")]
pub(super) mod nats_index;
pub(super) mod parts;
pub(super) mod presence;
pub(super) mod row;
#[cfg(feature = "nats")]
mod row_reader;
#[cfg(any(feature = "nats", test))]
mod selection;
#[cfg(feature = "team")]
mod upkeep;
#[cfg(feature = "nats")]
mod values;
#[cfg(any(feature = "nats", test))]
mod window;

#[cfg(feature = "team")]
pub use self::daemon::Team;
#[cfg(feature = "team")]
pub use self::daemon::TeamRows;
