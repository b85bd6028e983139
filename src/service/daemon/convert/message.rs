//! The JSON of a notification.

use serde::Serialize;
use treelined_wire::methods::Notification;

/// The JSON of a notification.
pub(crate) fn message<N: Notification>(params: &N) -> Option<Vec<u8>> {
    #[derive(Serialize)]
    struct Message<'a, N> {
        jsonrpc: &'static str,
        method: &'static str,
        params: &'a N,
    }
    let method = N::NAME;
    let message = Message {
        jsonrpc: "2.0",
        method,
        params,
    };
    match serde_json::to_vec(&message) {
        Ok(message) => Some(message),
        Err(error) => {
            tracing::error!(method, %error, "a notification could not be written");
            None
        }
    }
}
