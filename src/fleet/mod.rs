//! Sessions beyond one machine: their lines on NATS JetStream, with the file as a replica (schema/fleet.md).
//!
//! In reading order: [`backend`] is a place that keeps the lines of sessions, [`files`] the one of a session directory,
//! [`stream`] the one of a stream, [`publish`] an append to it, [`messages`] a read, [`hints`] a read of what
//! arrives, and [`objects`] keeps lines that are larger than a message. [`subject`] names a session in a stream, [`connection`] reaches the servers with
//! deadlines, and [`limits`] judges a stream. [`replica`] is how far a file and a log are known to be equal;
//! [`transfer`] compares and copies, and [`replicated`] keeps them equal while the session is open, with what a
//! [`follower`] reads; [`live`] does so for the open sessions of a daemon. [`closing`] ends the log of a deleted session,
//! [`trash`] the life of its file, and [`describe`] reads what others see of it. [`team`] is the list of sessions as all
//! machines see it.

pub(crate) mod backend;
pub(crate) mod closing;
#[cfg(feature = "nats")]
mod connection;
pub(crate) mod describe;
pub(crate) mod files;
#[cfg(feature = "nats")]
mod follower;
#[cfg(feature = "nats")]
mod hints;
pub(crate) mod limits;
#[cfg(feature = "nats")]
pub(crate) mod live;
#[cfg(feature = "nats")]
mod messages;
#[cfg(feature = "nats")]
mod objects;
#[cfg(feature = "nats")]
mod publish;
mod replica;
pub(crate) mod replicated;
#[cfg(feature = "nats")]
pub(crate) mod stream;
mod subject;
pub(crate) mod team;
#[cfg(test)]
mod tests;
pub(crate) mod transfer;
#[cfg(feature = "nats")]
mod trash;
