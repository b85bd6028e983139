//! The page and the WebSocket for browsers: HTTP on a loopback address (protocol.md §17).
//!
//! [`address`] binds the port, with the token that [`saved`] keeps in `web.json` for the next start. [`server`] accepts
//! connections and answers requests: [`gate`] checks `Host` and `Origin`, [`document`] is the page. After the handshake
//! of a WebSocket, [`first_message`] reads its [`token`] before anything of the protocol is read. Then [`bridge`] joins
//! the WebSocket to a connection of the daemon, like one that a client of the Unix socket has.
//!
//! A refused client learns nothing: every refusal has the same status or close code, and no text.

mod address;
mod bridge;
mod document;
mod first_message;
mod gate;
mod saved;
mod server;
mod token;

pub use address::{WebAddress, WebListener};
pub(crate) use bridge::WebBackend;
pub use saved::{WebFolder, page_url};
pub(crate) use server::WebServer;
