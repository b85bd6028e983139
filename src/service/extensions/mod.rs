//! Extensions: clients that the daemon starts (protocol.md §11). The module has their settings, and the connections of
//! the running extensions.
//!
//! [`configured`] has the extensions of the configuration. [`supervisor`] starts and restarts them, [`restart`] decides
//! when, and [`stderr`] logs what they write to stderr. `serve` serves their connections, and `daemon` opens sessions
//! for them.

mod configured;
mod restart;
mod stderr;
mod supervisor;

pub(crate) use configured::Extensions;
pub use configured::{Extension, ExtensionMay, ExtensionSessions, NAME_VARIABLE};
pub(crate) use supervisor::{ExtensionRun, ExtensionSockets, ServeExtension, Supervisors};
