//! The page and the WebSocket for browsers: HTTP on a loopback address (protocol.md §17).
//!
//! [`address`] binds the port. [`saved`] keeps the port and its token in `web.json` for the next start. [`server`]
//! accepts connections and answers requests: [`gate`] checks `Host` and `Origin`, and [`document`] is the page. After
//! the handshake of a WebSocket, [`first_message`] reads the [`token`], before any message of the protocol. Then
//! [`bridge`] joins the WebSocket to a connection of the daemon, like the connection of a client of the Unix socket.
//!
//! A refused client gets no information: refusals have a status or a close code, but no text.

mod address;
mod bridge;
mod document;
mod first_message;
mod gate;
mod saved;
mod server;
mod token;

pub use address::{WebAddress, WebListener};
pub(crate) use bridge::{Admission, WebBackend};
pub use saved::{WebFolder, access_token, page_url};
pub(crate) use server::WebServer;
pub use token::Token;
