//! Sessions beyond one machine: their lines on NATS JetStream, with the file as a replica (schema/fleet.md).
//!
//! In reading order: [`backend`] is a place that keeps the lines of sessions, [`files`] the one of a session directory,
//! [`stream`] the one of a stream. [`subject`] names a session in a stream, [`connection`] reaches the servers with
//! deadlines, and [`limits`] judges a stream. [`replica`] is how far a file and a log are known to be equal;
//! [`transfer`] compares and copies.

pub(crate) mod backend;
#[cfg(feature = "nats")]
mod connection;
pub(crate) mod files;
pub(crate) mod limits;
mod replica;
#[cfg(feature = "nats")]
pub(crate) mod stream;
mod subject;
#[cfg(test)]
mod tests;
pub(crate) mod transfer;
